cdef class SegmentRows:
    cdef const unsigned int[::1] numbers
    cdef bint kept
    cdef const unsigned char[::1] living

cdef class Rows:
    cdef list segments
    cdef const long long[::1] bases

cdef SegmentRows prepare_segment_rows(rows)
cdef Rows prepare_rows(rows)
cdef Py_ssize_t first_from(const unsigned int[::1] numbers, Py_ssize_t low,
                           Py_ssize_t number) noexcept nogil
cdef void rank_each(SegmentRows rows, long long[::1] numbers, Py_ssize_t count) noexcept nogil
cdef Py_ssize_t _number_at(SegmentRows rows, Py_ssize_t rank) noexcept nogil
