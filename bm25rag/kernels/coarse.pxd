from libc.math cimport nextafter, sqrt

from bm25rag.kernels.collecting cimport (
    collect, enter_block, has_room, look_up, sift, start,
)
from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, fetch, least_sum
from bm25rag.kernels.selecting cimport drain, kth_lower_bound, mask

cdef bint rank_coarsely(Segment segment, Plan plan, Query query, Query ordered,
                        Scratch scratch) noexcept nogil
cdef void score_best(Segment segment, Query query, Scratch scratch, double slack) noexcept nogil
cdef void score_collected(Segment segment, Query query, Scratch scratch) noexcept nogil
cdef Py_ssize_t keep_allowed(Plan plan, Scratch scratch, Py_ssize_t waiting) noexcept nogil

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef bint _are_few(short[::1] units, Py_ssize_t first, Py_ssize_t in_block, double least,
                   Py_ssize_t postings) noexcept nogil
