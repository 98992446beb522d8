"""What a search of a served index returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bm25rag.analysis.snippets import QueryMatcher
from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.checks import check_count
from bm25rag.decay import Decay, DecayLike, Prior, multiplied, multiplier_of, read_decay
from bm25rag.distributed.operations import best_of_groups
from bm25rag.documents import Hit, Matcher, matched
from bm25rag.fusion import FusionMethod, fuse
from bm25rag.search.shaping import check_group, group_value


@dataclass(eq=False)
class RayBatch:
    """The matches of a batch of q queries, in w columns, with what ``BatchResult`` has.

    ``commit`` is that of the index that all of it is from; ``missing`` has the number of each shard
    that is not in it, with the reason, and is empty without ``partial``.
    """

    rows: Int64
    scores: Float64
    counts: Int64
    commit: int
    missing: dict[int, str]
    cut: list[int]
    _items: Sequence[list[Hit]] | Sequence[list[str]]

    def ids(self) -> list[list[str]]:
        """Return the ids of the matches of each query."""
        return [[one if isinstance(one, str) else one.id for one in row] for row in self._items]

    def hits(self) -> list[list[Hit]]:
        """Return the matches of each query, unless they were asked for with ``contents=False``."""
        hits = [[one for one in row if isinstance(one, Hit)] for row in self._items]
        if list(map(len, hits)) != list(map(len, self._items)):
            raise ValueError("the batch has ids only: search with contents=True for hits")
        return hits

    def __repr__(self) -> str:
        queries, width = self.rows.shape
        return f"RayBatch({queries} queries, up to {width} matches each)"


class Page(NamedTuple):
    """What is wanted of a ranking, as for ``BM25Index.search``, checked."""

    k: int
    offset: int
    group: str | None
    per_group: int
    decay: Decay | Prior | None

    @property
    def depth(self) -> int:
        """How many must be found, with those that are left out."""
        return self.k + self.offset if self.k else 0

    @property
    def shaping(self) -> dict[str, Any]:
        """The arguments of a shard's search that shape a ranking."""
        return {"group": self.group, "per_group": self.per_group, "decay": self.decay}


def read_page(
    k: int, offset: int, group: str | None, per_group: int, decay: DecayLike | None
) -> Page:
    """Check what is wanted of a ranking; one present is for all shards."""
    check_group(group, per_group)
    started = None if decay is None else read_decay(decay)
    return Page(check_count("k", k), check_count("offset", offset), group, per_group, started)


def fuse_hits(
    results: Sequence[list[Hit]],
    method: FusionMethod,
    weights: Sequence[float] | None,
    rank_constant: int,
    page: Page,
) -> list[Hit]:
    """Fuse the hits of several searches; return the page that is wanted."""
    rankings = [[(hit.id, hit.score) for hit in hits] for hits in results]
    known = {hit.id: hit for hits in results for hit in hits}
    matcher = _of_all(hits[0]._matcher for hits in results if hits)
    fused = []
    for id, score in fuse(rankings, method, weights, None, rank_constant):
        one = known[id]
        if page.decay is not None:
            score = multiplied(score, multiplier_of(page.decay, one.metadata))
        contents = (one.text, one.metadata, one.payload, None, one.fields)
        fused.append(matched(matcher, id, score, *contents))
    if page.decay is not None:
        fused.sort(key=lambda hit: -hit.score)
    values = [None if page.group is None else group_value(hit, page.group) for hit in fused]
    return best_of_groups(fused, values, page.k, page.per_group, page.offset)


def _of_all(matchers: Iterable[Matcher | None]) -> Matcher | None:
    """Return what finds the words of all queries that have hits."""
    each = [one for one in matchers if isinstance(one, QueryMatcher)]
    terms = {term for one in each for term in one.terms}
    return QueryMatcher(each[0].analyzer, terms) if each else None
