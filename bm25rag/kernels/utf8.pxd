# What utf8.py does, in C.
cdef extern from *:
    """
    static inline const unsigned char *bm25rag_utf8(PyObject *text, Py_ssize_t *size) {
        const char *data = PyUnicode_AsUTF8AndSize(text, size);
        if (data == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
            *size = -1;
            data = "";
        }
        return (const unsigned char *)data;
    }

    /* Words of letters of two bytes take a third of the time that decoding takes. */
    #define BM25RAG_SHORT 64

    static PyObject *bm25rag_text(
        const unsigned char *data, Py_ssize_t start, Py_ssize_t stop
    ) {
        wchar_t wide[BM25RAG_SHORT];
        Py_ssize_t place = start, count = 0;
        while (place < stop && count < BM25RAG_SHORT) {
            unsigned int byte = data[place];
            if (byte >= 0x80) {
                if (byte < 0xC2 || byte >= 0xE0 || place + 1 == stop) break;
                if ((data[++place] & 0xC0) != 0x80) break;
                byte = (byte & 0x1F) << 6 | (data[place] & 0x3F);
            }
            wide[count++] = (wchar_t)byte;
            place++;
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
    object text_of "bm25rag_text" (const unsigned char *data, Py_ssize_t start, Py_ssize_t stop)
    object folded_of "bm25rag_folded" (const unsigned char *data, Py_ssize_t start, Py_ssize_t stop,
                                       const unsigned long long *folds)
