from libc.math cimport nextafter

from bm25rag.kernels.collecting cimport collect, enter_block, has_room, look_up, sift
from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, least_sum, part
from bm25rag.kernels.selecting cimport drain, kth_lower_bound, mask

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

cdef bint rank_coarsely(Segment segment, Plan plan, Query query, Query ordered,
                        Scratch scratch) noexcept nogil

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef void _find(const unsigned short[::1] documents, Py_ssize_t start, Py_ssize_t stop,
                long long[::1] wanted, Py_ssize_t count, long long[::1] postings) noexcept nogil
