# The records that the kernels of a search share, and what they compute alike.
cdef class Scratch

cdef class Strips:
    cdef const long long[::1] starts
    cdef const unsigned char[::1] levels
    cdef const long long[::1] offsets
    cdef const unsigned char[::1] of_codes
    cdef object check
    cdef Py_ssize_t in_block
    cdef Py_ssize_t cells
    cdef Py_ssize_t cost
    cdef Py_ssize_t worth

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
    cdef Strips strips
    cdef Scratch spare
    cdef Py_ssize_t spares

cdef extern from * nogil:
    void prefetch "__builtin_prefetch" (const void *address)

# Have some of a segment's postings fetched into the cache.
cdef inline void fetch(Segment segment, Py_ssize_t posting, Py_ssize_t stop) noexcept nogil:
    while posting < stop:
        prefetch(&segment.documents[posting])
        if segment.is_narrow:
            prefetch(&segment.narrow[posting])
        else:
            prefetch(&segment.wide[posting])
            prefetch(&segment.wide[posting] + 16)
        posting += 32

cdef class Terms:
    cdef const long long[:, ::1] starts
    cdef const float[::1] idf
    cdef float absent
    cdef int[::1] rows

cdef class Plan:
    cdef Py_ssize_t k
    cdef Py_ssize_t size
    cdef const unsigned char[::1] allowed
    cdef const unsigned long long[::1] bits
    cdef Py_ssize_t window
    cdef Py_ssize_t sparse
    cdef Py_ssize_t coarse
    cdef bint filtered_first
    cdef bint most
    cdef const unsigned int[::1] numbers

cdef class Query:
    cdef Py_ssize_t length
    cdef long long[:, ::1] starts
    cdef double[::1] idf
    cdef double[::1] counts
    cdef double[::1] rest
    cdef long long[::1] rows
    cdef Py_ssize_t walked
    cdef double shift
    cdef bint positive
    cdef bint coarse
    cdef bint by_strips
    cdef bint by_bound

cdef class Scratch:
    cdef Scratch next
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
    cdef int[::1] tallies
    cdef double[::1] maxima
    cdef long long[::1] spare_numbers
    cdef double[::1] spare
    cdef long long[::1] work
    cdef long long[::1] terms
    cdef double[::1] weights
    cdef long long[::1] slots
    cdef long long[::1] distinct
    cdef short[::1] bounds
    cdef double[::1] strip_maxima
    cdef double[::1] strip_spare
    cdef long long[::1] multipliers
    cdef long long[::1] shifts
    cdef Py_ssize_t wary
    cdef Py_ssize_t rests
    cdef Py_ssize_t failures

# What a posting adds to a score: a product of float32, times a count in float64.
cdef inline double part(float weight, float idf, double count) noexcept nogil:
    cdef float product = weight * idf
    return product * count

# What a sum must exceed if its score may exceed a floor. What subtracting a shift from a floor can
# be off by is less than 1e-15 of their size.
cdef inline double least_sum(double floor, double shift) noexcept nogil:
    return floor - shift - (abs(floor) + abs(shift)) * 1e-15

cdef Segment prepare_segment(segment)
cdef Terms prepare_terms(terms, Segment segment)
cdef Plan prepare_plan(plan, Segment segment)
cdef Scratch borrow(Segment segment, Plan plan, Py_ssize_t longest)
cdef give_back(Segment segment, Scratch scratch)

cpdef Py_ssize_t slots_for(Py_ssize_t terms) noexcept nogil
