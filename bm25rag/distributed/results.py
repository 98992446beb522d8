"""What a search of a served index returns, of pages, groups and vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from bm25rag.analysis.snippets import QueryMatcher
from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.checks import check_count, check_flag
from bm25rag.common.sparse import Vector
from bm25rag.decay import Decay, DecayLike, Prior, multiplied, multiplier_of, read_decay
from bm25rag.distributed.asking import DEADLINE, Answers
from bm25rag.distributed.operations import Found, Match, best_of_groups, found_of
from bm25rag.documents import Hit, Matcher, matched
from bm25rag.filters import And, Condition, FilterSpec, parse_filter
from bm25rag.filters.operators import In
from bm25rag.filters.parse import parse_path
from bm25rag.fusion import FusionMethod, fuse
from bm25rag.search.shaping import TEXT, check_group, group_key, group_value
from bm25rag.vectors import vector_terms, vector_terms_each


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


Search: TypeAlias = Callable[[list[Any], Page, FilterSpec | None, float], tuple[Answers, Found]]
"""Finds the best matches of queries, as all shards have them, within some seconds."""


def find_members(
    search: Search, queries: list[Any], page: Page, filter: FilterSpec | None, deadline: float
) -> tuple[Answers, Found]:
    """Find the best groups and then, in the same commit, the best documents of each.

    In the first search, a shard leaves out its documents of a group if it has k groups that are
    better. Groups cannot be by text: no filter passes the documents of some texts.
    """
    if page.group is None or page.group == TEXT:
        raise ValueError(
            "a cluster finds only the best document of equal texts: per_group must be 1 with "
            f"the group '$text', got {page.per_group!r}"
        )
    path, parsed = parse_path(page.group, "group"), parse_filter(filter)
    end = monotonic() + deadline
    while True:
        left = max(0.0, end - monotonic())
        answers, bests = search(queries, page._replace(per_group=1), parsed, left)
        commits, missing, cut = {answers.commit}, answers.missing, set(bests.cut)
        chosen: list[list[Match]] = []
        for number, query in enumerate(queries):
            best = bests.matches(number)[page.offset :]
            values = [match[3] for match in best if group_key(match[3]) is not None]
            # What has no value is the only one of its group.
            matches = [match for match in best if group_key(match[3]) is None]
            if values:
                of_groups = Condition(path, In(tuple(values)))
                among = of_groups if parsed is None else And((parsed, of_groups))
                groups = page._replace(k=len(values), offset=0)
                own, members = search([query], groups, among, max(0.0, end - monotonic()))
                commits.add(own.commit)
                missing = missing | own.missing
                cut.update([number] if members.cut else [])
                matches += members.matches(0)
            chosen.append(sorted(matches, key=lambda match: (-match[0], match[1])))
        if len(commits) == 1:
            return answers._replace(missing=missing), found_of(chosen, sorted(cut))


class RayVectors:
    """The sparse vectors of a served index, as ``RayIndex.vectors`` returns them.

    The arguments of its methods are those of ``RayIndex``, vectors those of ``Vectors``; they raise
    what these do.

    Parameters
    ----------
    search
        Asks the actors for the best documents by a list of vectors.
    """

    def __init__(self, search: Callable[..., RayBatch]) -> None:
        self._search = search

    def search(
        self,
        vector: Vector,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        deadline: float = DEADLINE,
    ) -> list[Hit]:
        """Find the best k documents whose vectors have a term of the query's."""
        limits = (k, filter, min_score, offset, True, deadline, False, group, per_group, decay)
        return self._search([vector_terms(vector)], *limits).hits()[0]

    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        contents: bool = True,
        deadline: float = DEADLINE,
        partial: bool = False,
    ) -> RayBatch:
        """Search for many vectors at once."""
        batch = vector_terms_each(vectors)
        check_flag("contents", contents)
        limits = (k, filter, min_score, offset, contents, deadline, partial)
        return self._search(batch, *limits, group, per_group, decay)
