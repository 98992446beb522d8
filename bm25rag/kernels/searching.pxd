# Cython has ``from ... import`` of C functions in such a file alone.
from cpython.dict cimport PyDict_GetItemWithError

from bm25rag.kernels.checksum cimport crc_after
from bm25rag.kernels.coarse cimport rank_coarsely
from bm25rag.kernels.collecting cimport keep_best, start
from bm25rag.kernels.exact cimport rank, rank_signed
from bm25rag.kernels.filtered cimport rank_filtered
from bm25rag.kernels.planning cimport choose_way, fetch_first, order_by_bound, resolve
from bm25rag.kernels.lookup cimport Postings, count_living, find_term, prepare_postings
from bm25rag.kernels.rows cimport Rows, SegmentRows, prepare_rows, prepare_segment_rows, rank_each
from bm25rag.kernels.scratch cimport (
    Plan, Query, Scratch, Segment, Strips, Terms, borrow, give_back, prepare_plan,
    prepare_segment, prepare_terms
)
from bm25rag.kernels.strips cimport find_rows, rank_by_strips
from bm25rag.kernels.utf8 cimport short_utf8_of

cdef class _Column:
    cdef Postings postings
    cdef SegmentRows rows
    cdef long long[:, ::1] starts
    cdef Py_ssize_t first

cdef class _Row:
    cdef object places
    cdef long long[::1] starts

cdef class _Table:
    cdef list columns
    cdef _Row spare
    cdef Py_ssize_t width
    cdef long long[::1] frequencies
    cdef float[::1] idf
    cdef const float[::1] idfs
    cdef object free
    cdef bint counts
