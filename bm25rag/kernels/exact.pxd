from bm25rag.kernels.collecting cimport (
    collect, enter_block, has_room, keep_best, sift,
)
from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, least_sum, part
from bm25rag.kernels.selecting cimport (
    chunk_length, drain, kth_lower_bound, lowest_bit, mask, sum_if,
)

cdef void rank(Segment segment, Plan plan, Query query, Scratch scratch) noexcept nogil
cdef void rank_signed(Segment segment, Plan plan, Query query, Scratch scratch) noexcept nogil
