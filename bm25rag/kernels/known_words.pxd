from bm25rag.kernels.utf8 cimport utf8_of

cdef class KnownWords:
    cdef unsigned long long[::1] slots
    cdef long long[::1] ends
    cdef unsigned char[::1] pool
    cdef list terms
    cdef unsigned long long[::1] folds

cdef object terms_at(KnownWords known, const unsigned char *data, Py_ssize_t start,
                     Py_ssize_t stop)
cdef void remember(KnownWords known, const unsigned char *data, Py_ssize_t start,
                   Py_ssize_t stop, object terms) except *
