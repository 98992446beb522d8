from bm25rag.kernels.fold_bits cimport (
    ANY, ASKED_SINGLE, CJK, CLUSTER, DIGIT, FIRST, JOINER, KIND, MARK, MEETING, OTHER, PECULIAR, SECOND,
    SIGN, SINGLE, SIZE, STOP, SYMBOL, WORD,
)
from bm25rag.kernels.selecting cimport lowest_bit
from bm25rag.kernels.signs cimport class_of, is_inside
from bm25rag.kernels.analyzing cimport mark_inside
from bm25rag.kernels.utf8 cimport utf8_room, write_utf8
from bm25rag.kernels.word_table cimport Words, new_words, number_words

cdef extern from "Python.h":
    bytes PyUnicode_AsUTF8String(object text)
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)

# Here, because Cython checks what is given to a function of the module alone for None, which raises.
cdef unsigned long long _low_key(const unsigned char[::1] source, Py_ssize_t first,
                                 Py_ssize_t length) noexcept nogil
cdef unsigned long long _high_key(const unsigned char[::1] source, Py_ssize_t first,
                                  Py_ssize_t length) noexcept nogil
cdef Py_ssize_t _append(unsigned char[::1] source, unsigned long long entry, Py_ssize_t end) noexcept nogil
cdef Py_ssize_t _decode(const unsigned char[::1] data, Py_ssize_t place) noexcept nogil
cdef bint _is_ascii(const unsigned char[::1] source, Py_ssize_t first, Py_ssize_t length,
                    unsigned long long low, unsigned long long high) noexcept nogil
cdef unsigned char _first_of_plain(const unsigned long long[::1] table, unsigned char byte) noexcept nogil
cdef bint _are_plain(const unsigned char[::1] data, Py_ssize_t start, unsigned char latin,
                     unsigned char upper, unsigned char lower) noexcept nogil
cdef unsigned long long _load_word(const unsigned char[::1] source, Py_ssize_t place) noexcept nogil
