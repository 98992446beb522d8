# Cython has ``from ... import`` of C functions in such a file alone.
from cpython.dict cimport PyDict_GetItemWithError
from libc.math cimport floor, nextafter

from bm25rag.kernels.selecting cimport collect, drain, kth_of_maxima, largest, lowest_bit, sort
