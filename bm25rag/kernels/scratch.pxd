# The records that the kernels of a search share, and what they compute alike.
cdef class Strips:
    cdef dict rows
    cdef object free
    cdef unsigned char[:, ::1] levels
    cdef unsigned short[:, ::1] places
    cdef float[::1] most
    cdef Py_ssize_t shift
    cdef Py_ssize_t step_shift
    cdef Py_ssize_t in_block
    cdef Py_ssize_t places_in_block
    cdef Py_ssize_t least

cdef class Segment:
    cdef const unsigned short[::1] documents
    cdef const unsigned short[::1] narrow
    cdef const unsigned int[::1] wide
    cdef bint is_narrow
    cdef const float[::1] weights
    cdef const unsigned short[::1] levels
    cdef double lowest
    cdef double highest
    cdef Py_ssize_t size
    cdef Py_ssize_t block_size
    cdef Py_ssize_t blocks
    cdef bint has_strips
    cdef Strips strips
    cdef list scratches

cdef class Terms:
    cdef const long long[:, ::1] starts
    cdef const float[::1] idf
    cdef float absent

cdef class Plan:
    cdef Py_ssize_t k
    cdef const unsigned char[::1] allowed
    cdef Py_ssize_t window
    cdef Py_ssize_t heavy
    cdef Py_ssize_t sparse
    cdef Py_ssize_t coarse
    cdef Py_ssize_t strips
    cdef bint filtered_first
    cdef bint most
    cdef const unsigned int[::1] numbers

cdef class Query:
    cdef Py_ssize_t length
    cdef long long[:, ::1] starts
    cdef double[::1] idf
    cdef double[::1] counts
    cdef double[::1] rest
    cdef double shift
    cdef Py_ssize_t walked
    cdef bint positive
    cdef bint prune
    cdef bint coarse
    cdef bint by_bound
    cdef bint by_strips

cdef class Scratch:
    cdef Py_ssize_t width
    cdef Py_ssize_t room
    cdef Py_ssize_t longest
    cdef Query query
    cdef Query ordered
    cdef Py_ssize_t block
    cdef Py_ssize_t first
    cdef Py_ssize_t in_block
    cdef Py_ssize_t base
    cdef Py_ssize_t end
    cdef long long[::1] cursors
    cdef long long[::1] begins
    cdef double[::1] sums
    cdef short[::1] units
    cdef unsigned long long[::1] bits
    cdef long long[::1] waiting
    cdef double[::1] waiting_sums
    cdef double floor
    cdef Py_ssize_t collected
    cdef long long[::1] numbers
    cdef double[::1] scores
    cdef double scale
    cdef Py_ssize_t cut
    cdef Py_ssize_t tallied
    cdef long long[::1] tallies
    cdef double[::1] maxima
    cdef long long[::1] spare_numbers
    cdef double[::1] spare
    cdef long long[::1] work
    cdef long long[::1] terms
    cdef double[::1] weights
    cdef long long[::1] slots
    cdef long long[::1] distinct
    cdef long long[::1] origins
    cdef int[::1] rows
    cdef short[::1] bounds
    cdef Py_ssize_t block_bounds
    cdef long long[::1] own_rows
    cdef long long[::1] multipliers
    cdef long long[::1] shifts
    cdef double[::1] most
    cdef double[::1] loose
    cdef double[::1] postings
    cdef double[::1] waited

# What a posting adds to a score: a product of float32, times a count in float64.
cdef inline double part(float weight, float idf, double count) noexcept nogil:
    cdef float product = weight * idf
    return product * count

# What a sum must exceed if its score may exceed a floor. What subtracting a shift from a floor can
# be off by is less than 1e-15 of their size.
cdef inline double least_sum(double floor, double shift) noexcept nogil:
    return floor - shift - (abs(floor) + abs(shift)) * 1e-15

cpdef Py_ssize_t slots_for(Py_ssize_t terms) noexcept nogil
