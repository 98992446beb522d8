# Cython has ``from ... import`` of C functions in such a file alone.
from bm25rag.kernels.coarse cimport rank_coarsely
from bm25rag.kernels.collecting cimport keep_best, start
from bm25rag.kernels.exact cimport rank, rank_signed
from bm25rag.kernels.planning cimport choose_way, order_by_bound, resolve
from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, Terms
