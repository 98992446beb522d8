from libc.math cimport nextafter

from bm25rag.kernels.scratch cimport Query, Scratch, Segment, part
from bm25rag.kernels.selecting cimport largest, sort

cdef void start(Scratch scratch, double floor) noexcept nogil
cdef void enter_block(Segment segment, Query query, Scratch scratch,
                      Py_ssize_t block) noexcept nogil
cdef void skip_to_base(Segment segment, Query query, Scratch scratch) noexcept nogil
cdef Py_ssize_t look_up(Segment segment, Query query, Scratch scratch, Py_ssize_t walked,
                        double least, Py_ssize_t waiting) noexcept nogil
cdef void collect(Scratch scratch, Py_ssize_t waiting, Py_ssize_t k, double shift,
                  double slack) noexcept nogil
cdef bint has_room(Scratch scratch, double slack) noexcept nogil
cdef void sift(Scratch scratch, double least) noexcept nogil
cdef void keep_best(Scratch scratch, Py_ssize_t k) noexcept nogil

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef Py_ssize_t _first_at_least(const unsigned short[::1] documents, Py_ssize_t start,
                                Py_ssize_t stop, Py_ssize_t wanted) noexcept nogil
