from bm25rag.kernels.known_words cimport KnownWords, remember, terms_at
from bm25rag.kernels.utf8 cimport SHORT, folded_of, text_of, utf8_of

cdef extern from "Python.h":
    unsigned int PyUnicode_ReadChar(object text, Py_ssize_t index) except? 0xFFFFFFFF

cdef class _Words:
    cdef object text
    cdef const unsigned char *data
    cdef Py_ssize_t size
    cdef Py_ssize_t start
    cdef Py_ssize_t stop
    cdef const unsigned char[::1] source

cdef class _Analysis:
    cdef KnownWords known
    cdef object unwanted
    cdef int runs
    cdef object letters
    cdef bint folds
    cdef object stemmer
    cdef object analyze
    cdef object stem
    cdef list terms
    cdef list rest
    cdef list left
    cdef list places

cdef Py_ssize_t mark_inside(
    const unsigned char[::1] source, unsigned char[::1] inside, Py_ssize_t size, bint possessives,
    long long[::1] links
) noexcept nogil
