from libc.math cimport nextafter

from bm25rag.kernels.coarse cimport score_collected
from bm25rag.kernels.collecting cimport (
    collect, collect_signed, enter_block, find, first_at_least, has_room, keep_best,
    look_up, sift,
)
from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, least_sum, part, prefetch

cdef void rank_filtered(Segment segment, Plan plan, Query query, Query terms,
                        Scratch scratch) noexcept nogil
