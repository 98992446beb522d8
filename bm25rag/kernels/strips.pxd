from bm25rag.kernels.coarse cimport keep_allowed, score_best
from bm25rag.kernels.collecting cimport collect, enter_block, first_at_least, has_room
from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, Strips, Terms, least_sum, prefetch
from bm25rag.kernels.selecting cimport drain, kth_lower_bound, lowest_bit, units_above

# How many documents a strip has.
cdef enum:
    WIDTH = 32
    SHIFT = 5

cdef extern from * nogil:
    """
    /* Adds levels, times a multiplier and shifted, to bounds: a multiple of 8. Of a loop, compilers
       make products of 32 bits, which takes four times as long. */
    typedef unsigned char bm25rag_bytes __attribute__((vector_size(8), aligned(1), may_alias));
    typedef unsigned short bm25rag_words __attribute__((vector_size(16), aligned(2), may_alias));
    static inline void bm25rag_add_levels(
            const unsigned char *levels, unsigned short multiplier, unsigned short shift,
            short *bounds, Py_ssize_t count) {
        bm25rag_words factor = multiplier - (bm25rag_words){0}, bits = shift - (bm25rag_words){0};
        for (Py_ssize_t i = 0; i < count; i += 8) {
            bm25rag_words units = __builtin_convertvector(
                *(const bm25rag_bytes *)(levels + i), bm25rag_words) * factor >> bits;
            *(bm25rag_words *)(bounds + i) += units;
        }
    }

    /* The sum of every second byte, 0 if one of these is 0. Four at once in the 16-bit parts of a
       number; a plain loop takes 15 times as long. */
    static inline unsigned long long bm25rag_sum_gaps(
            const unsigned char *pairs, Py_ssize_t count) {
        const unsigned long long low = 0x00FF00FF00FF00FFULL, above = 0x0100010001000100ULL;
        unsigned long long sum = 0;
        while (count >= 4) {
            Py_ssize_t some = count / 4 < 256 ? count / 4 : 256;  /* more could overflow a part */
            unsigned long long sums = 0, positive = above, four;
            for (Py_ssize_t i = 0; i < some; i++) {
                __builtin_memcpy(&four, pairs + 8 * i, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
                four >>= 8;
    #endif
                four &= low;
                sums += four;
                positive &= four + low;
            }
            if (positive != above)
                return 0;
            sum += (sums & 0xFFFF) + (sums >> 16 & 0xFFFF) + (sums >> 32 & 0xFFFF) + (sums >> 48);
            pairs += 8 * some;
            count -= 4 * some;
        }
        for (; count > 0; count--, pairs += 2) {
            if (*pairs == 0)
                return 0;
            sum += *pairs;
        }
        return sum;
    }
    """
    unsigned long long sum_gaps "bm25rag_sum_gaps" (const unsigned char *pairs, Py_ssize_t count)
    void add_levels "bm25rag_add_levels" (
        const unsigned char *levels, unsigned short multiplier, unsigned short shift,
        short *bounds, Py_ssize_t count)

cdef bint _ascends(Strips strips, Py_ssize_t row) noexcept nogil
cdef int _row_at(const long long[::1] starts, long long start) noexcept nogil
cdef void _add_row(
    const unsigned char[::1] row, Py_ssize_t first, Py_ssize_t following, unsigned int multiplier,
    unsigned int shift, short[::1] bounds, Py_ssize_t start, Py_ssize_t count) noexcept nogil
cdef void _add_pairs(
    const unsigned char[::1] pairs, Py_ssize_t first, Py_ssize_t last,
    unsigned long long multiplier, short[::1] bounds) noexcept nogil
cdef void _add_postings(
    const unsigned short[::1] documents, const unsigned short[::1] codes,
    const unsigned char[::1] levels, long long[:, ::1] starts, Py_ssize_t term,
    unsigned long long multiplier, short[::1] bounds, Py_ssize_t in_block) noexcept nogil
cdef unsigned long long _above(short[::1] bounds, Py_ssize_t first, short least) noexcept nogil
cdef bint _are_few(short[::1] bounds, Py_ssize_t cells, short least,
                   Py_ssize_t room) noexcept nogil
cdef Py_ssize_t _walk(
    const unsigned short[::1] documents, const unsigned short[::1] codes,
    const unsigned short[::1] levels, short[::1] units, Query query, Scratch scratch,
    Py_ssize_t term, unsigned long long multiplier, double least,
    Py_ssize_t taken) noexcept nogil
cdef find_rows(Segment segment, Terms terms, const long long[::1] numbers, Py_ssize_t first,
               Py_ssize_t last, Py_ssize_t k)
cdef bint rank_by_strips(Segment segment, Strips strips, Plan plan, Query query, Query ordered,
                         Scratch scratch) noexcept nogil
