from cpython.dict cimport PyDict_GetItemWithError

from bm25rag.kernels.reading cimport find_term, Postings

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef class _Column:
    cdef Postings postings
    cdef long long[:, ::1] starts
    cdef Py_ssize_t first

cdef class _Row:
    cdef object places
    cdef long long[::1] starts

cdef class _Table:
    cdef list columns
    cdef list rows
    cdef Py_ssize_t width
    cdef long long[::1] frequencies
    cdef float[::1] idf
    cdef const float[::1] idfs
    cdef const unsigned int[::1] crc
    cdef object free
    cdef bint counts
