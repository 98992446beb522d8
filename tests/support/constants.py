"""Small values for the constants that hide code paths from small corpora."""

from __future__ import annotations

SMALL = {
    "bm25rag.segments.postings_builder.NARROW": 3,  # codes widen almost at once
    "bm25rag.segments.postings_builder._PAIRS": 3,  # pairs are looked at a few at a time
    "bm25rag.analysis.encoder._RETURNED": 4,  # and so are the tokens of a callable numbered
    "bm25rag.additions.CHUNK": 5,  # every second document begins a run
    "bm25rag.segments.term_counter._COUNTED": 0,
    "bm25rag.search.snapshot._FEWEST_TERMS": 1,
    "bm25rag.search.snapshot._MOST_ROOM": 1,  # of few terms of a batch the distinct are counted
    "bm25rag.search.snapshot._MOST_TERMS": 2,  # the caches of terms and of masks overflow
    "bm25rag.metadata.mask_cache.MAX_BYTES": 1,
    "bm25rag.search.filter_masks.SCAN_BLOCK": 2,
    "bm25rag.search.filter_masks.FEW_CHANGED": 1,  # changed metadata gets its own fields
    "bm25rag.metadata.field_builder.CHUNK": 2,  # fields are merged from chunks of two documents
    "bm25rag.common.gil.BLOCK": 2,  # strings are sorted, merged and encoded piece by piece
    "bm25rag.metadata.fields.NARROW": 1,  # the codes of values widen almost at once
    "bm25rag.metadata.fields.MIDDLE": 2,
    "bm25rag.segments.doc_blocks.DOC_BLOCK": 7,  # most corpora have several document blocks
    "bm25rag.segments.doc_blocks._AT_ONCE": 9,
    "bm25rag.common.chunks._BYTES": 24,  # arrays on disk are read in pieces of a few elements
    "bm25rag.columns.merge.STRINGS": 2,
    "bm25rag.columns.packing.LEAST": 1,  # texts in files are packed, however few
    "bm25rag.segments.postings_builder.LEAST_GROUP": 16,  # runs are divided
    "bm25rag.metadata.field_merge.VALUES": 2,
    "bm25rag.metadata.field_merge._FAR": 1,
    "bm25rag.merging.merged_postings._LENGTHS": 2,
    "bm25rag.search.ranking.WINDOW": 3,  # the compiled kernel walks three documents at a time
    "bm25rag.search.ranking.SPARSE": 1,  # windows often have few postings for their documents
    "bm25rag.search.ranking.COARSE": 0,  # sums are coarse at first wherever they may be
    "bm25rag.segments.strip_rows.STRIPS_FROM": 0,  # vectors of any number have bounds
    "bm25rag.segments.postings.STRIP_COST": 0,  # and strips are looked at, however many
    "bm25rag.segments.postings.STRIPS_WORTH": 0,
    "bm25rag.segments.strip_rows.LEAST_IN_STRIP": 0.0,  # every term has a row of bounds
    "bm25rag.search.ranking._QUERIES_PER_THREAD": 1,  # two queries are enough for two threads
    "bm25rag.storage.checksummed_file.BLOCK": 64,  # a checksum for every cache line
}
