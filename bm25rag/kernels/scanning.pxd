from bm25rag.kernels.fold_bits cimport (
    CJK, CLUSTER, KIND, MARK, OTHER, PECULIAR, SIGN, SINGLE, SIZE, STOP, WORD,
)
from bm25rag.kernels.signs cimport class_of, is_inside, mark_inside
from bm25rag.kernels.words cimport Words, new_words, number_words
