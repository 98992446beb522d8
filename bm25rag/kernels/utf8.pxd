# What utf8.py does, in C.
cdef extern from *:
    """
    #include <string.h>  /* which Python's headers leave out with the limited API */

    static inline const unsigned char *bm25rag_utf8(PyObject *text, Py_ssize_t *size) {
        const char *data = PyUnicode_AsUTF8AndSize(text, size);
        if (data == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
            *size = -1;
            data = "";
        }
        return (const unsigned char *)data;
    }

    /* Bytes that a string is written in at most; -1: it is left to Python, which makes an object
       for each, or has each keep its UTF-8. */
    static inline Py_ssize_t bm25rag_room(PyObject *text) {
    #ifndef Py_LIMITED_API
    #if PY_VERSION_HEX < 0x030C0000
        if (!PyUnicode_IS_READY(text)) return -1;
    #endif
        if (PyUnicode_IS_ASCII(text)) return PyUnicode_GET_LENGTH(text);
        if (PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND) return 2 * PyUnicode_GET_LENGTH(text);
        if (PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND) return 3 * PyUnicode_GET_LENGTH(text);
    #endif
        return -1;
    }

    /* Write such a string, or bytes; return of how many bytes it is: -1 if it has surrogates. */
    static inline Py_ssize_t bm25rag_write(PyObject *text, unsigned char *start) {
        unsigned char *out = start;
        if (PyBytes_Check(text)) {
            memcpy(out, PyBytes_AsString(text), PyBytes_Size(text));
            return PyBytes_Size(text);
        }
    #ifndef Py_LIMITED_API
        Py_ssize_t length = PyUnicode_GET_LENGTH(text), i;
        if (PyUnicode_IS_ASCII(text)) {
            memcpy(out, PyUnicode_1BYTE_DATA(text), length);
            out += length;
        } else if (PyUnicode_KIND(text) == PyUnicode_1BYTE_KIND) {
            const Py_UCS1 *data = PyUnicode_1BYTE_DATA(text);
            for (i = 0; i < length; i++) {
                if (data[i] >= 0x80) *out++ = (unsigned char)(0xC0 | data[i] >> 6);
                *out++ = data[i] >= 0x80 ? (unsigned char)(0x80 | (data[i] & 0x3F)) : data[i];
            }
        } else {
            const Py_UCS2 *data = PyUnicode_2BYTE_DATA(text);
            for (i = 0; i < length; i++) {
                unsigned int point = data[i];
                if (point < 0x80) {
                    *out++ = (unsigned char)point;
                    continue;
                }
                if (point < 0x800) {
                    *out++ = (unsigned char)(0xC0 | point >> 6);
                } else {
                    if ((point & 0xF800) == 0xD800) return -1;
                    *out++ = (unsigned char)(0xE0 | point >> 12);
                    *out++ = (unsigned char)(0x80 | (point >> 6 & 0x3F));
                }
                *out++ = (unsigned char)(0x80 | (point & 0x3F));
            }
        }
    #endif
        return out - start;
    }

    /* Short texts of ASCII take four fifths of the instructions, and words of letters of two bytes a
       third of the time, that decoding takes. */
    #define BM25RAG_SHORT 64

    static inline const unsigned char *bm25rag_short_utf8(
        PyObject *text, Py_ssize_t *size, unsigned char *room, Py_ssize_t length
    ) {
        Py_ssize_t most = PyUnicode_Check(text) ? bm25rag_room(text) : -1;
        if (most >= 0 && most <= length) {
            *size = bm25rag_write(text, room);
            if (*size >= 0) return room;
        }
        return bm25rag_utf8(text, size);
    }

    static PyObject *bm25rag_text(
        const unsigned char *data, Py_ssize_t start, Py_ssize_t stop
    ) {
        wchar_t wide[BM25RAG_SHORT];
        Py_ssize_t place = start, count = 0;
        unsigned char any = 0;
        if (stop - start > BM25RAG_SHORT)
            return PyUnicode_DecodeUTF8((const char *)data + start, stop - start, "surrogatepass");
    #ifndef Py_LIMITED_API
        for (; place < stop; place++) any |= data[place];
        if (any < 0x80) {
            PyObject *text = PyUnicode_New(stop - start, 0x7F);
            if (text != NULL) memcpy(PyUnicode_1BYTE_DATA(text), data + start, stop - start);
            return text;
        }
    #endif
        for (place = start; place < stop; place++) {
            unsigned int byte = data[place];
            if (byte >= 0x80) {
                if (byte < 0xC2 || byte >= 0xE0 || place + 1 == stop) break;
                if ((data[++place] & 0xC0) != 0x80) break;
                byte = (byte & 0x1F) << 6 | (data[place] & 0x3F);
            }
            wide[count++] = (wchar_t)byte;
        }
        if (place == stop)
            return PyUnicode_FromWideChar(wide, count);
        return PyUnicode_DecodeUTF8((const char *)data + start, stop - start, "surrogatepass");
    }

    static PyObject *bm25rag_folded(
        const unsigned char *data, Py_ssize_t start, Py_ssize_t stop,
        const unsigned long long *folds
    ) {
        wchar_t wide[2 * BM25RAG_SHORT];
        Py_ssize_t count = 0;
        for (Py_ssize_t place = start; place < stop; place++) {
            unsigned long long fold = data[place];
            if (fold >= 0x80) {
                place++;
                fold = folds[(fold & 0x1F) << 6 | (data[place] & 0x3F)];
            }
            wide[count++] = (wchar_t)(fold & 0xFFFF);
            if (fold >> 16) wide[count++] = (wchar_t)(fold >> 16);
        }
        return PyUnicode_FromWideChar(wide, count);
    }
    """
    Py_ssize_t SHORT "BM25RAG_SHORT"
    const unsigned char *utf8_of "bm25rag_utf8" (object text, Py_ssize_t *size) except NULL
    const unsigned char *short_utf8_of "bm25rag_short_utf8" (object text, Py_ssize_t *size,
                                                             unsigned char *room,
                                                             Py_ssize_t length) except NULL
    Py_ssize_t utf8_room "bm25rag_room" (object text)
    Py_ssize_t write_utf8 "bm25rag_write" (object text, unsigned char *start)
    object text_of "bm25rag_text" (const unsigned char *data, Py_ssize_t start, Py_ssize_t stop)
    object folded_of "bm25rag_folded" (const unsigned char *data, Py_ssize_t start, Py_ssize_t stop,
                                       const unsigned long long *folds)
