from bm25rag.kernels.checksum cimport crc_after
