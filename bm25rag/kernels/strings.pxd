from cpython.unicode cimport PyUnicode_DecodeUTF8

from bm25rag.kernels.signs cimport may_be_inside

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef class _Words:
    cdef object text
    cdef const unsigned char *data
    cdef Py_ssize_t size
    cdef Py_ssize_t start
    cdef Py_ssize_t stop
    cdef const unsigned char[::1] source

cdef class _Analysis:
    cdef dict known
    cdef object unwanted
    cdef object stemmer
    cdef object stem
    cdef list terms
    cdef list rest
