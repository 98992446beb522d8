from cpython.bytes cimport PyBytes_AsString
from libc.string cimport memcpy

from bm25rag.kernels.fold_bits cimport (
    CJK, CLUSTER, KIND, MARK, OTHER, PECULIAR, SIGN, SINGLE, SIZE, STOP, WORD,
)
from bm25rag.kernels.signs cimport class_of, is_inside, mark_inside
from bm25rag.kernels.words cimport Words, new_words, number_words

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
