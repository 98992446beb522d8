"""Constants that hide paths, set small."""

from __future__ import annotations

SMALL = {
    "bm25rag.postings.NARROW": 3,  # codes widen almost at once
    "bm25rag.adding.CHUNK": 5,  # every second document begins a run
    "bm25rag.snapshot._FEWEST_TERMS": 1,
    "bm25rag.snapshot._MOST_TERMS": 2,  # the caches of terms and of masks overflow
    "bm25rag.masks.MOST_BYTES": 1,
    "bm25rag.masks.AT_ONCE": 2,
    "bm25rag.masks.FEW": 1,  # changed metadata get fields of their own
    "bm25rag.fields.building.AT_ONCE": 2,  # fields are merged of chunks of two documents
    "bm25rag.fields.building.BLOCK": 2,  # sorted strings are united piece by piece
    "bm25rag.fields.merging.BLOCK": 2,
    "bm25rag.fields.merging._STEP": 1,
    "bm25rag.fields.field.BLOCK": 2,
    "bm25rag.fields.store.BLOCK": 2,
    "bm25rag.fields.store.NARROW": 1,  # the codes of values widen almost at once
    "bm25rag.fields.store.MIDDLE": 2,
    "bm25rag.stripes.STRIPE": 7,  # most corpora have several stripes
    "bm25rag.stripes._AT_ONCE": 9,
    "bm25rag.search.WINDOW": 3,  # the compiled kernel walks three documents at a time
    "bm25rag.search._WINDOW_BY_K": 0,
    "bm25rag.search._HEAVY_BY_K": 0,
    "bm25rag.search.HEAVY": 0,  # terms are looked up wherever that may be cheaper
    "bm25rag.search.SPARSE": 1,  # often are postings few for the documents of a window
    "bm25rag.search._QUERIES_PER_THREAD": 1,  # two queries are enough for two threads
    "bm25rag.arrays_file.BLOCK": 64,  # a checksum for every cache line
}
