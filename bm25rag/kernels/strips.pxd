from libc.math cimport nextafter

from bm25rag.kernels.coarse cimport score_collected
from bm25rag.kernels.collecting cimport collect, enter_block, first_at_least, has_room, sift
from bm25rag.kernels.scratch cimport (
    Plan, Query, Scratch, Segment, Strips, Terms, least_sum, part,
)
from bm25rag.kernels.selecting cimport kth_lower_bound, lowest_bit, mask, sort, units_above

cdef extern from * nogil:
    """
    /* What levels are in units, added to sums: a loop that compilers make vectors of. */
    static inline void bm25rag_add_levels(short *restrict sums,
                                          const unsigned char *restrict levels,
                                          unsigned short multiplier, Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; i++) {
            unsigned short level = (unsigned short)(levels[i] << 8);
            sums[i] += (short)(((unsigned int)level * multiplier) >> 16);
        }
    }
    """
    void add_levels "bm25rag_add_levels" (short *sums, const unsigned char *levels,
                                          unsigned short multiplier, Py_ssize_t count)

cpdef learn(Segment segment, Terms terms, const long long[::1] numbers, Py_ssize_t first,
            Py_ssize_t last, Scratch scratch)
cdef bint rank_by_strips(Segment segment, Strips strips, Plan plan, Query query, Query ordered,
                         Scratch scratch) noexcept nogil
