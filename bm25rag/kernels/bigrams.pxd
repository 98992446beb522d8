from bm25rag.kernels.fold_bits cimport SIZE
