# What other kernels call; and what C has and Python has not.
cdef extern from * nogil:
    int lowest_bit "__builtin_ctzll" (unsigned long long mask)

cpdef double kth(double[::1] scores, Py_ssize_t count, Py_ssize_t k, double[::1] spare,
                 long long[::1] work) noexcept nogil
cpdef double keep_best(long long[::1] numbers, double[::1] scores, Py_ssize_t count, Py_ssize_t k,
                       double[::1] spare, long long[::1] work) noexcept nogil
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
