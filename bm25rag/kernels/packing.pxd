# What C has and Python lacks.
cdef extern from * nogil:
    """
    static inline unsigned long long bm25rag_eight(const unsigned char *data) {
        unsigned long long eight;
        __builtin_memcpy(&eight, data, 8);
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        eight = __builtin_bswap64(eight);
    #endif
        return eight;
    }
    """
    unsigned long long bm25rag_eight(const unsigned char *data)

cdef inline unsigned long long load(const unsigned char[::1] data, Py_ssize_t place) noexcept nogil:
    return bm25rag_eight(&data[place])
