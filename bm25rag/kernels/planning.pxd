from bm25rag.kernels.scratch cimport Plan, Query, Scratch, Segment, Terms, fetch, part, slots_for
from bm25rag.kernels.selecting cimport sort

cdef void resolve(Segment segment, Terms known, const long long[::1] terms,
                  const double[::1] weights, Py_ssize_t start, Py_ssize_t stop, Query query,
                  Scratch scratch) noexcept nogil
cdef void choose_way(Segment segment, Plan plan, Query query) noexcept nogil
cdef void fetch_first(Segment segment, Query query) noexcept nogil
cdef void order_by_bound(Segment segment, Query query, Query ordered,
                         Scratch scratch) noexcept nogil
