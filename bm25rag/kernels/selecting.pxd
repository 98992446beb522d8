# What C has and Python has not, and what other kernels call.
cdef extern from * nogil:
    """
    /* Which of 64 numbers are greater than one more, as bits. Clang makes of vectors of bits what
       the processor has for them. Gcc, and Clang before 15, have none, and a loop over 64 bits takes
       gcc three to six times as long as these. */
    #if defined(__clang__) && __clang_major__ >= 15
    #define BM25RAG_BITS
    #else
    typedef double bm25rag_doubles __attribute__((vector_size(16), aligned(8)));
    typedef short bm25rag_shorts __attribute__((vector_size(16), aligned(2)));
    typedef long long bm25rag_pair __attribute__((vector_size(16)));
    #endif
    static inline unsigned long long bm25rag_above(const double *numbers, double least) {
        unsigned long long mask = 0;
    #ifdef BM25RAG_BITS
        typedef double eight __attribute__((ext_vector_type(8), aligned(8)));
        typedef _Bool bits __attribute__((ext_vector_type(8)));
        for (int i = 0; i < 64; i += 8) {
            bits above = __builtin_convertvector(*(const eight *)(numbers + i) > least, bits);
            unsigned char byte;
            __builtin_memcpy(&byte, &above, 1);
            mask |= (unsigned long long)byte << i;
        }
    #else
        bm25rag_pair above = {0, 0}, bits = {1, 2};
        for (int i = 0; i < 64; i += 2, bits <<= 2)
            above |= (*(const bm25rag_doubles *)(numbers + i) > least) & bits;
        mask = above[0] | above[1];
    #endif
        return mask;
    }
    /* The same for 64 numbers of 16 bits, of which mostly none is. */
    static inline unsigned long long bm25rag_units_above(const short *numbers, short least) {
        unsigned long long mask = 0;
    #ifdef BM25RAG_BITS
        typedef short eight __attribute__((ext_vector_type(8), aligned(2)));
        typedef _Bool bits __attribute__((ext_vector_type(8)));
        eight largest = *(const eight *)numbers;
        for (int i = 8; i < 64; i += 8)
            largest = __builtin_elementwise_max(largest, *(const eight *)(numbers + i));
        if (!__builtin_reduce_or(largest > least))
            return 0;
        for (int i = 0; i < 64; i += 8) {
            bits above = __builtin_convertvector(*(const eight *)(numbers + i) > least, bits);
            unsigned char byte;
            __builtin_memcpy(&byte, &above, 1);
            mask |= (unsigned long long)byte << i;
        }
    #else
        bm25rag_shorts any = *(const bm25rag_shorts *)numbers > least;
        for (int i = 8; i < 64; i += 8)
            any |= *(const bm25rag_shorts *)(numbers + i) > least;
        bm25rag_pair some = (bm25rag_pair)any;
        if (!(some[0] | some[1]))
            return 0;
        for (int i = 0; i < 64; i += 8) {
            some = (bm25rag_pair)(*(const bm25rag_shorts *)(numbers + i) > least);
            for (int j = i; j < i + 8 && (some[0] | some[1]); j++)
                mask |= (unsigned long long)(numbers[j] > least) << j;
        }
    #endif
        return mask;
    }
    /* The largest of a multiple of 8 numbers. A comparison takes as long as several that do not
       wait for each other. */
    static inline double bm25rag_largest(const double *numbers, Py_ssize_t count) {
    #if defined(__clang__)
        typedef double eight __attribute__((ext_vector_type(8), aligned(8)));
        eight largest = *(const eight *)numbers;
        for (Py_ssize_t i = 8; i < count; i += 8) {
            eight next = *(const eight *)(numbers + i);
            largest = next > largest ? next : largest;
        }
    #else
        double largest[8];
        for (int j = 0; j < 8; j++)
            largest[j] = numbers[j];
        for (Py_ssize_t i = 8; i < count; i += 8)
            for (int j = 0; j < 8; j++)
                largest[j] = numbers[i + j] > largest[j] ? numbers[i + j] : largest[j];
    #endif
        double last = largest[0];
        for (int j = 1; j < 8; j++)
            last = largest[j] > last ? largest[j] : last;
        return last;
    }
    /* A sum or 0, without a branch: of several at once, if they follow each other. */
    static inline double bm25rag_sum_if(unsigned char allowed, double sum) {
        long long bits;
        __builtin_memcpy(&bits, &sum, 8);
        bits &= -(long long)(allowed != 0);
        __builtin_memcpy(&sum, &bits, 8);
        return sum;
    }
    """
    double sum_if "bm25rag_sum_if" (unsigned char allowed, double sum)
    double largest_of_eights "bm25rag_largest" (const double *numbers, Py_ssize_t count)
    unsigned long long units_above "bm25rag_units_above" (const short *numbers, short least)
    unsigned long long above "bm25rag_above" (const double *numbers, double least)
    int lowest_bit "__builtin_ctzll" (unsigned long long mask)

# Scores, or coarse sums.
ctypedef fused Sums:
    double
    short

cpdef double kth(double[::1] scores, Py_ssize_t count, Py_ssize_t k, double[::1] spare,
                 long long[::1] work) noexcept nogil
cpdef double largest(double[::1] scores, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cpdef void sort(long long[::1] numbers, double[::1] scores, Py_ssize_t count,
                long long[::1] spare_numbers, double[::1] spare_scores,
                long long[::1] work) noexcept nogil
cpdef Py_ssize_t drain(Sums[::1] sums, Py_ssize_t start, Py_ssize_t end, double least, double unit,
                       double[::1] maxima, Py_ssize_t known, long long[::1] places,
                       double[::1] drained) noexcept nogil
cpdef Py_ssize_t chunk_length(Py_ssize_t count, Py_ssize_t k) noexcept nogil
cpdef double kth_lower_bound(Sums[::1] sums, Py_ssize_t start, Py_ssize_t end, Py_ssize_t k,
                             double[::1] maxima, double[::1] spare,
                             long long[::1] work) noexcept nogil
cdef void mask(Sums[::1] sums, Py_ssize_t start, Py_ssize_t end, const unsigned char[::1] allowed,
               Py_ssize_t first) noexcept nogil
