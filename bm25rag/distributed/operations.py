"""What a server of shards can be asked: how a shard answers, and how answers are merged.

Merging is associative and keeps the order of the shards, so a server merges those of its shards,
and the client those of the servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bm25rag.common.arrays import Int64
from bm25rag.common.sparse import Vector
from bm25rag.decay import DecayLike
from bm25rag.documents import Document, Hit
from bm25rag.errors import DocumentNotFoundError
from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index
from bm25rag.kernels.records import Matches
from bm25rag.open_shard import Ranking, merge_rankings
from bm25rag.search.explain import Explanation
from bm25rag.search.finding import check_wanted
from bm25rag.search.hybrid_and_fused import find_both
from bm25rag.search.known_fields import fields_of, has_field
from bm25rag.search.query_terms import QueryLike, terms_of
from bm25rag.search.results import BatchResult, batch_result
from bm25rag.search.shaping import best_places, group_key, group_value
from bm25rag.vectors import vector_terms

_T = TypeVar("_T")
_UNSHAPED: Mapping[str, Any] = {"group": None, "per_group": 1, "decay": None}
Match: TypeAlias = tuple[float, int, Any, Any]
"""The score and row of a match, what is sent of it, and the value by which it is grouped."""


class Found(NamedTuple):
    """The best matches of a batch: rows in the whole index, and the hits or only ids of each.

    ``cut`` is as in ``BatchResult``. ``groups`` has the value by which each match is grouped.
    """

    ranking: Ranking
    items: Sequence[list[Hit]] | Sequence[list[str]]
    cut: list[int]
    # In a restricted view, whose rows begin at 0 in each shard: how many documents pass.
    passing: int | None = None
    groups: Sequence[list[Any]] | None = None

    def matches(self, number: int) -> list[Match]:
        """Return the matches of a query in a search of groups."""
        scores, rows = self.ranking.scores[number].tolist(), self.ranking.rows[number].tolist()
        groups = () if self.groups is None else self.groups[number]
        return list(zip(scores, rows, self.items[number], groups, strict=False))

    def shifted(self, first_row: int) -> Found:
        """Return it with its rows in the whole index."""
        rows = _shifted(self.ranking.rows, first_row)
        return self._replace(ranking=self.ranking._replace(rows=rows), passing=None)

    def behind(self, offset: int) -> Found:
        """Return what is behind the best matches of each query."""
        rows, scores, counts = self.ranking
        offset = min(offset, rows.shape[1])  # NumPy takes no longer integers than int64
        ranking = Ranking(rows[:, offset:], scores[:, offset:], np.maximum(counts - offset, 0))
        items: Any = [items[offset:] for items in self.items]
        return self._replace(ranking=ranking, items=items)


class Asked(NamedTuple):
    """A shard that is asked, its first row, and the threads to use."""

    shard: BM25Index
    first_row: int
    threads: int


class Operation(NamedTuple):
    """``answer`` gets what is ``Asked`` and the arguments of a call.

    ``merge`` gets the answers and the same arguments. ``read`` reads what a merged
    answer has not read yet.
    """

    answer: Callable[..., Any]
    merge: Callable[..., Any]
    read: Callable[[Any], object] = lambda _: None


def _search(
    asked: Asked,
    queries: Sequence[Any],
    k: int,
    filter: FilterSpec | None,
    min_score: float | None,
    contents: bool,
    shaping: Mapping[str, Any] = _UNSHAPED,
    *,
    by_vectors: bool = False,
) -> Found:
    searched: Any = asked.shard.vectors if by_vectors else asked.shard
    batch = searched.search_batch(
        queries, k, filter, min_score=min_score, threads=asked.threads, **shaping
    )
    result = _found(asked, batch, contents)
    if (group := shaping["group"]) is None:
        return result
    groups = [[group_value(hit, group) for hit in row] for row in batch.hits()]
    return result._replace(groups=groups)


def _found(asked: Asked, batch: BatchResult, contents: bool) -> Found:
    ranking = Ranking(_shifted(batch.rows, asked.first_row), batch.scores, batch.counts)
    items = batch.hits() if contents else batch.ids()
    passing = len(asked.shard) if asked.shard._snapshot.is_restricted else None
    return Found(ranking, items, batch.cut, passing)


def _shifted(rows: Int64, by: int) -> Int64:
    return np.where(rows < 0, -1, rows + by)


def _read_hits(answer: Found) -> None:
    for row in answer.items:
        for hit in row:
            if isinstance(hit, Hit):
                hit.__reduce__()  # reads text, metadata and payload, as sending it does


def _merge_found(
    answers: Sequence[Found],
    queries: Sequence[object],
    k: int,
    filter: FilterSpec | None = None,
    min_score: float | None = None,
    contents: bool = True,
    shaping: Mapping[str, Any] = _UNSHAPED,
) -> Found:
    if len(answers) == 1:
        return answers[0]
    if answers and answers[0].passing is not None:
        passing = [one.passing or 0 for one in answers]
        first_rows = accumulate(passing[:-1], initial=0)
        numbered = [one.shifted(first) for one, first in zip(answers, first_rows, strict=True)]
        merged = _merge_found(numbered, queries, k, filter, min_score, contents, shaping)
        return merged._replace(passing=sum(passing))
    if not answers:
        empty = np.empty((len(queries), 0))
        counts = np.zeros(len(queries), np.int64)
        none: list[list[str]] = [[] for _ in queries]
        return Found(Ranking(empty.astype(np.int64), empty, counts), none, [])
    cut = sorted({number for one in answers for number in one.cut})
    if answers[0].groups is not None:
        return _merge_groups(answers, k, shaping["per_group"], cut)
    ranking = merge_rankings([one.ranking for one in answers], [0] * len(answers), k)
    items = []
    for number, count in enumerate(ranking.counts.tolist()):
        row: list[Any] = []
        scores = []
        for one in answers:
            row += one.items[number]
            scores.append(one.ranking.scores[number, : one.ranking.counts[number]])
        # As in ``merge_rankings``: of equal scores, the earlier shard's first.
        order = np.argsort(-np.concatenate(scores), kind="stable")[:count]
        items.append([row[position] for position in order.tolist()])
    return Found(ranking, items, cut)


def _merge_groups(answers: Sequence[Found], k: int, per_group: int, cut: list[int]) -> Found:
    """Merge the best of each group: the group may have a better one in another shard."""
    chosen = []
    for number in range(len(answers[0].items)):
        matches = [match for one in answers for match in one.matches(number)]
        # As in ``merge_rankings``: of equal scores, the earlier shard's first.
        matches.sort(key=lambda match: -match[0])
        chosen.append(best_of_groups(matches, [match[3] for match in matches], k, per_group))
    return found_of(chosen, cut)


def best_of_groups(
    matches: Sequence[_T], values: Iterable[Any], k: int, per_group: int, offset: int = 0
) -> list[_T]:
    """Return up to ``per_group`` matches of each of the best k groups behind ``offset``.

    ``values`` are those by which the matches, best first, are grouped.
    """
    keys = [group_key(value) or number for number, value in enumerate(values)]
    return [matches[place] for place in best_places(keys, k, per_group, offset)]


def found_of(matches: Sequence[Sequence[Match]], cut: list[int]) -> Found:
    """Return the matches of each query, best first."""
    width = max(map(len, matches), default=0)
    rows = np.full((len(matches), width), -1, np.int64)
    scores = np.full((len(matches), width), -np.inf)
    for number, row in enumerate(matches):
        scores[number, : len(row)] = [match[0] for match in row]
        rows[number, : len(row)] = [match[1] for match in row]
    counts = np.array([len(row) for row in matches], np.int64)
    items: Any = [[match[2] for match in row] for row in matches]
    groups = [[match[3] for match in row] for row in matches]
    return Found(Ranking(rows, scores, counts), items, cut, groups=groups)


def _search_hybrid(
    asked: Asked, query: QueryLike, vector: Vector, k: int, filter: FilterSpec | None
) -> list[Found]:
    snapshot = asked.shard._snapshot
    terms = terms_of(snapshot.analyzer, query)
    wanted = check_wanted(snapshot, k, filter, None, 0)
    both = find_both(snapshot, terms, vector_terms(vector), wanted)
    each = [
        Matches(np.array([rows], np.int64), np.array([scores], np.float64), np.array([len(rows)]))
        for rows, scores in both
    ]
    batches = [batch_result(snapshot, one, [terms], wanted) for one in each]
    return [_found(asked, batch, True) for batch in batches]


def _merge_hybrid(
    answers: Sequence[Sequence[Found]], query: QueryLike, vector: Vector, k: int, *_: object
) -> list[Found]:
    return [_merge_found([both[n] for both in answers], [query], k) for n in range(2)]


def _get(asked: Asked, ids: Sequence[str], filter: FilterSpec | None) -> dict[str, Document]:
    return {document.id: document for document in asked.shard.get(ids, filter)}


def _explain(
    asked: Asked,
    query: QueryLike,
    id: str,
    filter: FilterSpec | None,
    decay: DecayLike | None = None,
) -> Explanation | None:
    try:
        return asked.shard.explain(query, id, filter, decay=decay)
    except DocumentNotFoundError:
        return None


def _fields(asked: Asked, paths: Sequence[tuple[str | None, ...]] | None) -> set[tuple[Any, ...]]:
    """Return which of some fields documents have; ``None``: all that they have or had."""
    snapshot = asked.shard._snapshot
    if paths is None:
        return fields_of(snapshot)
    return {path for path in paths if has_field(snapshot, path)}


def _first(answers: Iterable[Any], *_: object) -> Any:
    return next((one for one in answers if one is not None), None)


OPERATIONS = {
    "search": Operation(_search, _merge_found, _read_hits),
    "search_vectors": Operation(partial(_search, by_vectors=True), _merge_found, _read_hits),
    "search_hybrid": Operation(
        _search_hybrid, _merge_hybrid, lambda both: [*map(_read_hits, both)]
    ),
    "get": Operation(
        _get, lambda answers, *_: {id: it for one in answers for id, it in one.items()}
    ),
    "count": Operation(
        lambda asked, filter: asked.shard.count(filter), lambda counts, *_: sum(counts)
    ),
    "explain": Operation(_explain, _first),
    "fields": Operation(_fields, lambda answers, *_: set().union(*answers)),
    "settings": Operation(lambda asked: (asked.shard.analyzer, asked.shard.fields), _first),
}
