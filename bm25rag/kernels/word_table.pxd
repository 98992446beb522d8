cdef class Words:
    cdef public object arrays
    cdef unsigned long long[::1] slots
    cdef unsigned long long[:, ::1] entries
    cdef unsigned char[::1] pool
    cdef long long[::1] used

cdef Words new_words(Py_ssize_t room)
cdef int number_words(
    Words words,
    const unsigned long long[:, ::1] keys,
    Py_ssize_t count,
    const unsigned char[::1] source,
    Py_ssize_t size,
    unsigned int[::1] numbers,
    Py_ssize_t first,
    unsigned long long[::1] hashes,
) except -1 nogil

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef bint _same(const unsigned char[::1] pool, Py_ssize_t start, const unsigned char[::1] source,
                Py_ssize_t first, Py_ssize_t length) noexcept nogil
cdef void _write(unsigned long long low, unsigned long long high,
                 const unsigned char[::1] source, Py_ssize_t first, Py_ssize_t length,
                 unsigned char[::1] pool, Py_ssize_t start) noexcept nogil
