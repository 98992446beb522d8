from libc.math cimport nextafter

from bm25rag.kernels.scratch cimport Query, Scratch, Segment, part
from bm25rag.kernels.selecting cimport largest, sort

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

cdef void start(Scratch scratch, double floor) noexcept nogil
cdef void enter_block(Segment segment, Query query, Scratch scratch,
                      Py_ssize_t block) noexcept nogil
cdef Py_ssize_t first_at_least(const unsigned short[::1] documents, Py_ssize_t start,
                               Py_ssize_t stop, Py_ssize_t wanted) noexcept nogil
cdef void find(const unsigned short[::1] documents, Py_ssize_t start, Py_ssize_t stop,
               long long[::1] wanted, Py_ssize_t count, long long[::1] postings) noexcept nogil
cdef Py_ssize_t look_up(Segment segment, Query query, Scratch scratch, Py_ssize_t walked,
                        double least, Py_ssize_t waiting) noexcept nogil
cdef void collect(Scratch scratch, Py_ssize_t waiting, Py_ssize_t k, double shift,
                  double slack) noexcept nogil
cdef void collect_signed(Scratch scratch, Py_ssize_t waiting, double shift) noexcept nogil
cdef bint has_room(Scratch scratch, double slack) noexcept nogil
cdef void sift(Scratch scratch, double least) noexcept nogil
cdef void keep_best(Scratch scratch, Py_ssize_t k) noexcept nogil

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef Py_ssize_t _find_near(const unsigned short[::1] documents, Py_ssize_t start, Py_ssize_t stop,
                           Py_ssize_t wanted, Py_ssize_t guess) noexcept nogil
