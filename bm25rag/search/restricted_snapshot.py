"""The documents of a snapshot that pass a filter, as if there were no others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Float32, Int64
from bm25rag.common.lazy import lazy_property
from bm25rag.filters import Filter
from bm25rag.kernels.records import SegmentArrays
from bm25rag.scoring.variants import Parameters
from bm25rag.search.filter_masks import numbers_anew
from bm25rag.search.snapshot import Snapshot
from bm25rag.search.term_numbers import TermCache
from bm25rag.segments.part import PartView
from bm25rag.segments.view import SegmentView


class RestrictedSnapshot(Snapshot):
    """A snapshot of some documents of another, which are those of its views.

    What it computes from ``views`` alone, which is all but scores, knows no other document.
    ``whole`` is the snapshot by whose statistics documents are scored, with the same segments;
    ``None``: by those of the documents themselves.
    """

    collection_size: int
    average_length: float

    is_restricted = True

    def __init__(
        self,
        views: Sequence[SegmentView],
        parameters: Parameters,
        analyzer: Analyzer,
        whole: Snapshot | None,
    ) -> None:
        super().__init__(views, parameters, analyzer)
        self._whole = whole
        if whole is not None:
            self.collection_size, self.average_length = whole.collection_size, whole.average_length

    @property
    def is_part(self) -> bool:
        """Whether the whole is one, by whose statistics documents are scored."""
        return self._whole is not None and self._whole.is_part

    def tuned(self, parameters: Parameters, analyzer: Analyzer) -> Snapshot:
        whole = None if self._whole is None else self._whole.tuned(parameters, analyzer)
        return RestrictedSnapshot(self.views, parameters, analyzer, whole)

    @lazy_property
    def matching(self) -> Snapshot:
        matched = self.parameters.matched_fields
        views = [view.matching(matched) for view in self.views]
        whole = None if self._whole is None else self._whole.matching
        return RestrictedSnapshot(views, self.parameters, self.analyzer, whole)

    # What the whole has made for one part serves all parts.

    def term_numbers(self, terms: Collection[str]) -> tuple[TermCache, list[int]]:
        whole = self._whole
        return super().term_numbers(terms) if whole is None else whole.term_numbers(terms)

    def query_numbers(
        self, queries: Sequence[Collection[str]]
    ) -> tuple[TermCache, tuple[Int64, Int64]]:
        whole = self._whole
        return super().query_numbers(queries) if whole is None else whole.query_numbers(queries)

    def idf(self, terms: Sequence[str], frequencies: Int64) -> Float32:
        if self._whole is None:
            return super().idf(terms, frequencies)
        cache, numbers = self._whole.term_numbers(terms)
        return cache.idf[numbers]

    @lazy_property
    def tables(self) -> tuple[Float32, ...]:
        return super().tables if self._whole is None else self._whole.tables

    @lazy_property
    def arrays(self) -> tuple[SegmentArrays, ...]:
        return super().arrays if self._whole is None else self._whole.arrays

    def stats(self) -> dict[str, Any]:
        """Return counts of its documents; all else, such as sizes, would tell of others."""
        stats = super().stats()
        counts = {name: stats[name] for name in ("documents", "terms", "postings", "tokens")}
        return counts | {"average_length": self.averages[0]}


def restrict(snapshot: Snapshot, filter: Filter, by_whole: bool) -> RestrictedSnapshot:
    """Return the documents of a snapshot that pass, scored by its statistics or by their own."""
    parts = [PartView(view, numbers_anew(view, filter)) for view in snapshot.views]
    whole = snapshot if by_whole else None
    return RestrictedSnapshot(parts, snapshot.parameters, snapshot.analyzer, whole)
