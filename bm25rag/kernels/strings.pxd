from cpython.unicode cimport PyUnicode_DecodeUTF8

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
