from bm25rag.kernels.checksum cimport crc_after
from bm25rag.kernels.collecting cimport first_at_least
from bm25rag.kernels.rows cimport SegmentRows, first_from
from bm25rag.kernels.utf8 cimport text_of

cdef extern from * nogil:
    """
    static inline Py_ssize_t bm25rag_length(unsigned long long piece) {
        return (71 - __builtin_clzll(piece | 1)) >> 3;
    }
    static inline void bm25rag_store(unsigned char *data, unsigned long long piece) {
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        piece = __builtin_bswap64(piece);
    #endif
        __builtin_memcpy(data, &piece, 8);
    }
    static inline void bm25rag_fetch(const void *data, Py_ssize_t size) {
        const char *at = (const char *)data, *end = at + size;
        for (; at < end; at += 64) __builtin_prefetch(at);
    }
    """
    void bm25rag_fetch(const void *data, Py_ssize_t size)
    Py_ssize_t length_of "bm25rag_length" (unsigned long long piece)
    void bm25rag_store(unsigned char *data, unsigned long long piece)

cdef inline void store(unsigned char[::1] data, Py_ssize_t place,
                       unsigned long long piece) noexcept nogil:
    bm25rag_store(&data[place], piece)

cdef inline void fetch(const unsigned char[::1] data, const unsigned short[::1] numbers,
                       Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    if stop > start:
        if data.shape[0]:
            bm25rag_fetch(&data[start], stop - start)
        else:
            bm25rag_fetch(&numbers[start], 2 * (stop - start))

cdef class _Blocks:
    cdef unsigned char[::1] flags
    cdef Py_ssize_t size
    cdef const unsigned char[::1] data
    cdef const unsigned int[::1] sums

cdef class _Strings:
    cdef _Blocks blocks
    cdef const unsigned int[::1] narrow
    cdef const unsigned long long[::1] wide
    cdef bint is_narrow
    cdef Py_ssize_t count
    cdef const unsigned char[::1] data
    cdef const unsigned short[::1] numbers
    cdef const unsigned long long[::1] pieces
    cdef Py_ssize_t width
    cdef Py_ssize_t starts_at
    cdef Py_ssize_t data_at
    cdef Py_ssize_t pieces_at

cdef class Postings:
    cdef _Blocks blocks
    cdef _Strings terms
    cdef const unsigned int[::1] keys
    cdef const unsigned int[::1] indptr
    cdef const unsigned short[::1] documents
    cdef const unsigned short[::1] narrow
    cdef const unsigned int[::1] wide
    cdef const unsigned int[::1] frequent
    cdef const unsigned int[:, ::1] edges
    cdef const unsigned int[::1] before
    cdef const unsigned short[::1] high
    cdef bint is_narrow
    cdef Py_ssize_t codes
    cdef Py_ssize_t size
    cdef Py_ssize_t block_size
    cdef Py_ssize_t doc_blocks
    cdef Py_ssize_t indptr_at
    cdef Py_ssize_t documents_at
    cdef Py_ssize_t codes_at
    cdef Py_ssize_t edges_at
    cdef Py_ssize_t high_at

cdef _Strings prepare_strings(strings)
cdef Postings prepare_postings(postings)
cdef bint _decode_one(_Strings strings, list decoded, Py_ssize_t i) except? -1
# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef bint _checked(_Blocks blocks, Py_ssize_t start, Py_ssize_t stop) noexcept nogil
cdef bint _check_block(_Blocks blocks, Py_ssize_t block) noexcept nogil
cdef bint _lies_right(_Strings strings, Py_ssize_t number) noexcept nogil
cdef bint find_term(Postings postings, const unsigned char *name, Py_ssize_t size,
                     unsigned int key, long long *starts) noexcept nogil
cdef Py_ssize_t count_living(Postings postings, long long *starts,
                             SegmentRows rows) noexcept nogil
cdef Py_ssize_t _count_common(Postings postings, long long *starts,
                              const unsigned int[::1] numbers) noexcept nogil
cdef bint _is_string(_Strings strings, Py_ssize_t number, const unsigned char *name,
                     Py_ssize_t size) noexcept nogil
cdef int _wrong(const unsigned short[::1] numbers, Py_ssize_t first, const long long *edges,
                Py_ssize_t blocks, Py_ssize_t block_size, Py_ssize_t size) noexcept nogil
