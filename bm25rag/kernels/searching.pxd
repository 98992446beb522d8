# Cython has ``from ... import`` of C functions in such a file alone.
from cpython.dict cimport PyDict_GetItemWithError
from libc.math cimport floor, nextafter

from bm25rag.kernels.selecting cimport (
    chunk_length, collect, drain, drain_units, kth_of_maxima, kth_of_units, largest, lowest_bit,
    sort,
)

cdef extern from * nogil:
    """
    /* A size or 0, without a branch. */
    static inline Py_ssize_t bm25rag_size_if(int taken, Py_ssize_t size) {
    #if defined(__clang__)
        return __builtin_unpredictable(taken) ? size : 0;
    #else
        return taken ? size : 0;
    #endif
    }
    """
    Py_ssize_t size_if "bm25rag_size_if" (bint taken, Py_ssize_t size)
    void prefetch "__builtin_prefetch" (const void *address)

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef Py_ssize_t _first_at_least(const unsigned short[::1] documents, Py_ssize_t start,
                                Py_ssize_t stop, Py_ssize_t wanted) noexcept nogil
cdef void _find(const unsigned short[::1] documents, Py_ssize_t start, Py_ssize_t stop,
                long long[::1] wanted, Py_ssize_t count, long long[::1] postings) noexcept nogil
