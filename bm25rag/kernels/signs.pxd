from bm25rag.kernels.fold_bits cimport (
    APOSTROPHE, COMMA, DIGIT, HASH, KIND, LETTER, MARK, PLUS, SIGN, SIZE, STOP, WORD,
)

cdef int class_of(unsigned long long entry, bint in_cluster, bint inside) noexcept nogil
cdef bint is_inside(
    unsigned long long entry, int prior, unsigned long long following, unsigned long long after
) noexcept nogil
