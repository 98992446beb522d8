# What C has and Python has not, and what other kernels call.
cdef extern from * nogil:
    """
    /* Which of 64 numbers are greater than one more, as bits. Clang makes of the vectors what the
       processor has for it; a loop takes twice as long where that has no more than SSE2. */
    static inline unsigned long long bm25rag_above(const double *numbers, double least) {
        unsigned long long mask = 0;
    #if defined(__clang__)
        typedef double eight __attribute__((ext_vector_type(8), aligned(8)));
        typedef _Bool bits __attribute__((ext_vector_type(8)));
        for (int i = 0; i < 64; i += 8) {
            bits above = __builtin_convertvector(*(const eight *)(numbers + i) > least, bits);
            unsigned char byte;
            __builtin_memcpy(&byte, &above, 1);
            mask |= (unsigned long long)byte << i;
        }
    #else
        for (int i = 0; i < 64; i++)
            mask |= (unsigned long long)(numbers[i] > least) << i;
    #endif
        return mask;
    }
    /* The same for 64 numbers of 16 bits, of which mostly none is. */
    static inline unsigned long long bm25rag_units_above(const short *numbers, short least) {
        unsigned long long mask = 0;
    #if defined(__clang__)
        typedef short eight __attribute__((ext_vector_type(8), aligned(2)));
        typedef _Bool bits __attribute__((ext_vector_type(8)));
        eight any = 0;
        for (int i = 0; i < 64; i += 8)
            any |= *(const eight *)(numbers + i) > least;
        if (!__builtin_reduce_or(any))
            return 0;
        for (int i = 0; i < 64; i += 8) {
            bits above = __builtin_convertvector(*(const eight *)(numbers + i) > least, bits);
            unsigned char byte;
            __builtin_memcpy(&byte, &above, 1);
            mask |= (unsigned long long)byte << i;
        }
    #else
        for (int i = 0; i < 64; i++)
            mask |= (unsigned long long)(numbers[i] > least) << i;
    #endif
        return mask;
    }
    """
    unsigned long long units_above "bm25rag_units_above" (const short *numbers, short least)
    unsigned long long above "bm25rag_above" (const double *numbers, double least)
    int lowest_bit "__builtin_ctzll" (unsigned long long mask)

cpdef double kth(double[::1] scores, Py_ssize_t count, Py_ssize_t k, double[::1] spare,
                 long long[::1] work) noexcept nogil
cpdef double largest(double[::1] scores, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cpdef void sort(long long[::1] numbers, double[::1] scores, Py_ssize_t count,
                long long[::1] spare_numbers, double[::1] spare_scores,
                long long[::1] work) noexcept nogil
cpdef Py_ssize_t drain(double[::1] sums, Py_ssize_t count, double least, long long[::1] places,
                       double[::1] drained) noexcept nogil
cpdef Py_ssize_t collect(double[::1] sums, long long[::1] places, double[::1] drained,
                         unsigned long long[::1] bits, Py_ssize_t listed, Py_ssize_t count,
                         double least) noexcept nogil
cpdef double kth_of_maxima(double[::1] sums, Py_ssize_t count, Py_ssize_t k, double[::1] maxima,
                           double[::1] spare, long long[::1] work) noexcept nogil
cpdef Py_ssize_t drain_units(short[::1] units, Py_ssize_t base, Py_ssize_t end, double least,
                             double unit, long long[::1] places, double[::1] drained) noexcept nogil
cpdef double kth_of_units(short[::1] units, Py_ssize_t base, Py_ssize_t end, Py_ssize_t k,
                          double[::1] maxima, double[::1] spare, long long[::1] work) noexcept nogil
