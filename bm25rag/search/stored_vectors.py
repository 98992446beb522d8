"""The vectors of documents, read from the postings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from bm25rag.common.arrays import Int64, as_index
from bm25rag.common.strings import text_of
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.view import SegmentView


def read_vectors(snapshot: Snapshot, ids: Iterable[str]) -> list[dict[str, float]]:
    """Return the vectors of the documents that there are; see ``Vectors.get``."""
    places = [place for id in ids if (place := snapshot.find(id)) is not None]
    stored = {
        (segment_index, number): vector
        for segment_index in sorted({segment_index for segment_index, _ in places})
        for number, vector in _read(
            snapshot.views[segment_index],
            np.unique([number for index, number in places if index == segment_index]),
        ).items()
    }
    return [dict(stored[place]) for place in places]


def _read(view: SegmentView, numbers: Int64) -> dict[int, dict[str, float]]:
    """Return the vectors of some documents of a segment, given ascending, by their numbers."""
    postings = view.segment.postings
    postings.check_all()
    chosen = np.zeros(len(view.segment), np.bool_)
    chosen[numbers] = True
    documents = postings.all_documents()
    places = np.flatnonzero(chosen.take(as_index(documents)))
    places = places[np.argsort(documents[places], kind="stable")]
    used, terms = np.unique(postings.term_numbers()[places], return_inverse=True)
    column = postings.terms.column
    spelled = [text_of(column[number]) for number in used.tolist()]
    bits = postings.code_tf.take(as_index(postings.codes[places]))
    weights = bits.view(np.float32).astype(np.float64).tolist()
    entries = zip(map(spelled.__getitem__, terms.tolist()), weights, strict=True)
    sizes = np.bincount(as_index(documents[places]), minlength=len(chosen))[numbers]
    each = zip(numbers.tolist(), sizes.tolist(), strict=True)
    return {number: dict(islice(entries, size)) for number, size in each}
