cdef class Words:
    cdef public object arrays
    cdef unsigned long long[::1] slots
    cdef unsigned long long[:, ::1] entries
    cdef unsigned char[::1] pool
    cdef long long[::1] used

cdef Words new_words(Py_ssize_t room)
cdef void number_words(
    Words words,
    const unsigned long long[:, ::1] found,
    Py_ssize_t count,
    const unsigned char[::1] source,
    Py_ssize_t size,
    unsigned int[::1] numbers,
    Py_ssize_t first,
    unsigned long long[::1] hashes,
) noexcept nogil
