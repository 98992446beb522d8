"""What a server of shards can be asked: how a shard answers, and how answers are merged.

Merging is associative and keeps the order of the shards, so a server merges those of its shards,
and the client those of the servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.sparse import Vector
from bm25rag.decay import DecayLike
from bm25rag.documents import Document, Hit
from bm25rag.errors import DocumentNotFoundError
from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index
from bm25rag.kernels.records import Matches
from bm25rag.search.explain import Explanation
from bm25rag.search.finding import check_wanted, find_both
from bm25rag.search.known_fields import fields_of, has_field
from bm25rag.search.queries import QueryLike, terms_of
from bm25rag.search.results import BatchResult, batch_result
from bm25rag.search.shaping import group_of
from bm25rag.shards import Ranking, merge_rankings
from bm25rag.vectors import vector_terms

__all__ = ["OPERATIONS", "Found", "Operation"]


class Found(NamedTuple):
    """The best matches of a batch: rows in the whole index, and the hits or only ids of each.

    ``cut`` is as in ``BatchResult``. ``groups`` has a key of each match's group, ``None`` if it is
    the only one, in a search of such.
    """

    ranking: Ranking
    items: Sequence[list[Hit]] | Sequence[list[str]]
    cut: list[int]
    groups: Sequence[list[str | None]] | None = None


class Operation(NamedTuple):
    """``answer`` gets a shard, its first row, the threads to use and the arguments of a call.

    ``merge`` gets the answers and the same arguments. ``read`` reads what a merged
    answer has not read yet.
    """

    answer: Callable[..., Any]
    merge: Callable[..., Any]
    read: Callable[[Any], object] = lambda _: None


def _search(
    shard: BM25Index,
    first_row: int,
    threads: int,
    queries: Sequence[Any],
    k: int,
    filter: FilterSpec | None,
    min_score: float | None,
    contents: bool,
    group: str | None = None,
    decay: DecayLike | None = None,
) -> Found:
    batch = shard.search_batch(
        queries, k, filter, min_score=min_score, threads=threads, group=group, decay=decay
    )
    found = _found(batch, first_row, contents)
    if group is None:
        return found
    groups = [[group_of(hit, group) for hit in row] for row in batch.hits()]
    return found._replace(groups=groups)


def _search_vectors(
    shard: BM25Index,
    first_row: int,
    threads: int,
    vectors: Sequence[Any],
    k: int,
    filter: FilterSpec | None,
    min_score: float | None,
    contents: bool,
) -> Found:
    batch = shard.vectors.search_batch(vectors, k, filter, min_score=min_score, threads=threads)
    return _found(batch, first_row, contents)


def _found(batch: BatchResult, first_row: int, contents: bool) -> Found:
    rows = np.where(batch.rows < 0, -1, batch.rows + first_row)
    ranking = Ranking(rows, batch.scores, batch.counts)
    return Found(ranking, batch.hits() if contents else batch.ids(), batch.cut)


def _read_hits(answer: Found) -> None:
    for row in answer.items:
        for hit in row:
            if isinstance(hit, Hit):
                hit.__reduce__()  # reads text, metadata and payload, as sending it does


def _merge_found(answers: Sequence[Found], queries: Sequence[object], k: int, *_: object) -> Found:
    if len(answers) == 1:
        return answers[0]
    if not answers:
        empty = np.empty((len(queries), 0))
        counts = np.zeros(len(queries), np.int64)
        none: list[list[str]] = [[] for _ in queries]
        return Found(Ranking(empty.astype(np.int64), empty, counts), none, [])
    cut = sorted({number for one in answers for number in one.cut})
    if answers[0].groups is not None:
        return _merge_groups(answers, k, cut)
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


def _merge_groups(answers: Sequence[Found], k: int, cut: list[int]) -> Found:
    """Merge the best of each group: the group may have a better one in another shard."""
    queries = len(answers[0].items)
    width = min(k, sum(one.ranking.rows.shape[1] for one in answers))
    rows, scores = np.full((queries, width), -1), np.full((queries, width), -np.inf)
    counts = np.zeros(queries, np.int64)
    items: list[list[Any]] = []
    groups: list[list[str | None]] = []
    for number in range(queries):
        found = [
            match
            for one in answers
            for match in zip(
                one.ranking.scores[number].tolist(),
                one.ranking.rows[number].tolist(),
                one.items[number],
                (one.groups or ())[number],
                strict=False,  # unused cells have no items
            )
        ]
        # As in ``merge_rankings``: of equal scores, the earlier shard's first.
        found.sort(key=lambda match: -match[0])
        seen: set[str] = set()
        chosen: list[Any] = []
        for match in found:
            if (key := match[3]) is None or key not in seen:
                chosen.append(match)
                seen.add(key or "")
        del chosen[k:]
        counts[number] = len(chosen)
        scores[number, : len(chosen)] = [match[0] for match in chosen]
        rows[number, : len(chosen)] = [match[1] for match in chosen]
        items.append([match[2] for match in chosen])
        groups.append([match[3] for match in chosen])
    return Found(Ranking(rows.astype(np.int64), scores, counts), items, cut, groups)


def _search_hybrid(
    shard: BM25Index,
    first_row: int,
    threads: int,
    query: QueryLike,
    vector: Vector,
    k: int,
    filter: FilterSpec | None,
) -> list[Found]:
    snapshot = shard._snapshot
    terms = terms_of(snapshot.analyzer, query)
    wanted = check_wanted(snapshot, k, filter, None, 0)
    both = find_both(snapshot, terms, vector_terms(vector), wanted)
    each = [
        Matches(np.array([rows], np.int64), np.array([scores], np.float64), np.array([len(rows)]))
        for rows, scores in both
    ]
    return [_found(batch_result(snapshot, one, [terms]), first_row, True) for one in each]


def _read_both(answers: Iterable[Found]) -> None:
    for one in answers:
        _read_hits(one)


def _merge_hybrid(
    answers: Sequence[Sequence[Found]], query: QueryLike, vector: Vector, k: int, *_: object
) -> list[Found]:
    return [_merge_found([both[n] for both in answers], [query], k) for n in range(2)]


def _get(
    shard: BM25Index,
    first_row: int,
    threads: int,
    ids: Sequence[str],
    filter: FilterSpec | None,
) -> dict[str, Document]:
    return {document.id: document for document in shard.get(ids, filter)}


def _merge_got(answers: Iterable[dict[str, Document]], *_: object) -> dict[str, Document]:
    return {id: document for one in answers for id, document in one.items()}


def _count(shard: BM25Index, first_row: int, threads: int, filter: FilterSpec | None) -> int:
    return shard.count(filter)


def _merge_counts(counts: Iterable[int], *_: object) -> int:
    return sum(counts)


def _explain(
    shard: BM25Index,
    first_row: int,
    threads: int,
    query: QueryLike,
    id: str,
    filter: FilterSpec | None,
    decay: DecayLike | None = None,
) -> Explanation | None:
    try:
        return shard.explain(query, id, filter, decay=decay)
    except DocumentNotFoundError:
        return None


def _fields(
    shard: BM25Index, first_row: int, threads: int, paths: Sequence[tuple[str, ...]] | None
) -> set[tuple[str, ...]]:
    """Return which of some fields documents have; ``None``: all that they have or had."""
    snapshot = shard._snapshot
    if paths is None:
        return fields_of(snapshot)
    return {path for path in paths if has_field(snapshot, path)}


def _merge_fields(answers: Iterable[set[tuple[str, ...]]], *_: object) -> set[tuple[str, ...]]:
    return set().union(*answers)


def _analyzer(shard: BM25Index, first_row: int, threads: int) -> Analyzer:
    return shard.analyzer


def _first(answers: Iterable[Any], *_: object) -> Any:
    return next((one for one in answers if one is not None), None)


OPERATIONS = {
    "search": Operation(_search, _merge_found, _read_hits),
    "search_vectors": Operation(_search_vectors, _merge_found, _read_hits),
    "search_hybrid": Operation(_search_hybrid, _merge_hybrid, _read_both),
    "get": Operation(_get, _merge_got),
    "count": Operation(_count, _merge_counts),
    "explain": Operation(_explain, _first),
    "fields": Operation(_fields, _merge_fields),
    "analyzer": Operation(_analyzer, _first),
}
