"""The postings of a segment that match: not those of terms that are in fields of weight 0 alone.

They are left out, so that searches need not know of weights: a field of weight 0 is as if it were
empty. That takes 0.1 s for ten million postings, and their memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bm25rag.columns.merge import JoinedTerms
from bm25rag.common.arrays import Bool, Int64, UInt32, Unsigned, as_index
from bm25rag.kernels.records import Run
from bm25rag.segments.postings import Postings
from bm25rag.segments.postings_builder import place_postings


def matching_postings(postings: Postings, matched: Sequence[bool]) -> Postings:
    """Return the postings of terms in fields that are matched; raise as ``Postings.find``."""
    postings.check_all()  # nothing will check those that are made here
    fields = postings.text_fields
    tf, lengths = postings.pairs()
    assert fields is not None  # without fields, no weight is 0
    codes = _Codes(
        fields.counts[:, list(matched)].any(axis=1).take(as_index(tf)), postings.codes.dtype
    )
    terms = JoinedTerms([postings.terms])
    runs = list(postings.runs(terms.numbers[0], codes.keep))
    placed = place_postings(terms, runs, len(postings.lengths), codes)
    kept = (tf[codes.kept], lengths[codes.kept], postings.lengths)
    return placed.postings(*kept, text_fields=fields)


class _Codes:
    """The codes that are kept, which are numbered anew."""

    def __init__(self, kept: Bool, dtype: np.dtype[np.generic]) -> None:
        self.kept, self.type = kept, dtype.type
        self._new = (np.cumsum(kept) - 1).astype(dtype)

    def keep(
        self, sizes: Int64, documents: UInt32, codes: Unsigned
    ) -> tuple[Int64, UInt32, Unsigned]:
        """Keep some postings, as ``LivingPostings`` does."""
        kept = self.kept.take(as_index(codes))
        ends = np.cumsum(np.concatenate(([False], kept)))[np.cumsum(sizes)]
        return np.diff(ends, prepend=0), documents[kept], self._new.take(as_index(codes[kept]))

    def codes(self, run: Run) -> Unsigned:
        """Return the code of every posting of a run that has codes in place of tf."""
        return run.tf
