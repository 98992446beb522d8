from libc.math cimport nextafter

from bm25rag.kernels.coarse cimport score_collected
from bm25rag.kernels.collecting cimport (
    collect, enter_block, first_at_least, has_room, sift, start,
)
from bm25rag.kernels.scratch cimport (
    Plan, Query, Scratch, Segment, Strips, Terms, least_sum, part,
)
from bm25rag.kernels.selecting cimport (
    kth, kth_lower_bound, lowest_bit, mask, sort, units_above,
)

cdef extern from * nogil:
    """
    /* What levels are in units, added to sums. All fits 16 bits, so that vectors are multiplied in
       one step: .08 ns each, and .29 if products have 32. */
    static inline void bm25rag_add_levels(short *restrict sums,
                                          const unsigned char *restrict levels,
                                          unsigned short multiplier, int shift, Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; i++) {
            unsigned short product = (unsigned short)(levels[i] * multiplier);
            sums[i] += (short)(product >> shift);
        }
    }
    /* Have bytes fetched while others are worked on. */
    static inline void bm25rag_fetch(const void *start, Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; i += 64)
            __builtin_prefetch((const char *)start + i);
    }
    """
    void add_levels "bm25rag_add_levels" (short *sums, const unsigned char *levels,
                                          unsigned short multiplier, int shift, Py_ssize_t count)
    void fetch "bm25rag_fetch" (const void *start, Py_ssize_t count)

cpdef learn(Segment segment, Terms terms, const long long[::1] numbers, Py_ssize_t first,
            Py_ssize_t last, Scratch scratch)
cdef bint rank_by_strips(Segment segment, Strips strips, Plan plan, Query query, Query ordered,
                         Scratch scratch) noexcept nogil
