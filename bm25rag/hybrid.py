"""One question to BM25 and to another retriever of the same documents, fused.

It asks nobody itself, so one class serves synchronous and asynchronous callers of any framework.
How two rankings become one is in ``fusion``; of one index alone, ``search.hybrid_and_fused``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, TypeAlias, get_args

from bm25rag.analysis.snippets import QueryMatcher
from bm25rag.common.checks import check_choice, check_count, check_flag, check_sequence
from bm25rag.common.lazy import lazy_property
from bm25rag.decay import DecayLike
from bm25rag.documents import Hit
from bm25rag.filters import And, Filter, FilterSpec, parse_filter
from bm25rag.fusion import FusionMethod, Ranking, check_fusion, check_pair, fuse
from bm25rag.index import BM25Index
from bm25rag.search.finding import check_wanted
from bm25rag.search.hybrid_and_fused import page_of
from bm25rag.search.parts import parts_filter
from bm25rag.search.plain_terms import RestrictedTerms
from bm25rag.search.query import Query
from bm25rag.search.query_terms import QueryLike, terms_of

__all__ = ["HybridSearch", "OnUnknown", "with_parts"]

OnUnknown: TypeAlias = Literal["error", "skip"]
"""What to do with ids that the index does not hold."""

# How much more to ask for where too few documents pass the filter.
_GROWTH = 4


class HybridSearch:
    """A search by BM25, and what another retriever must be asked beside it.

    Ask the other retriever for ``wanted`` documents and give its answer to ``take``, until that
    returns True; ``hits`` then has the result. Every hit is a document of the index that passes
    the filter, whether the other retriever knows filters or not: what it finds is looked up in
    the index by id.

    Parameters
    ----------
    index
        The index, of which a snapshot is searched.
    query
        The query for BM25, as in ``BM25Index.search``; the other retriever may have another form
        of it. What a ``Query`` restricts matches to holds for both, as the filter does.
    k
        How many hits at most, >= 0.
    filter
        As in ``BM25Index.search``; it holds for both retrievers.
    min_score
        The least fused score of a hit.
    correct
        Whether to correct the query for BM25 first, as ``BM25Index.correct`` does.
    expand
        Whether to expand the query for BM25, as ``BM25Index.expand`` does.
    offset
        How many of the best documents to leave out. All pages are of one ranking, of the documents
        that are fused: a larger ``fetch_k`` lets them go deeper.
    group, per_group, decay
        As in ``BM25Index.search``, of the fused scores.
    fetch_k
        How many documents of each retriever are fused, >= 0; at least ``k`` are.
    method, weights, rank_constant
        As in ``fuse``; the first weight is that of BM25.
    on_unknown
        What to do if the other retriever finds an id that the index does not hold: ``"error"``,
        or ``"skip"`` where it may be ahead of the index, such as that of a process that has not
        loaded the last commit.
    known
        If ``index`` is a snapshot: says whether an id is in the index by now. What was added since
        may be found by the other retriever, and is left out.

    Attributes
    ----------
    wanted
        How many documents the other retriever must be asked for.

    Raises
    ------
    TypeError, ValueError, FilterError
        If an argument is wrong.

    Examples
    --------
    >>> index = BM25Index.from_texts(["A cat sat.", "Dogs run."], ids=["a", "b"])
    >>> search = HybridSearch(index, "cats")
    >>> search.take([("b", 0.9), ("a", 0.7)])
    True
    >>> [(hit.id, hit.score) for hit in search.hits()]
    [('a', 1.0), ('b', 1.0)]
    """

    wanted: int

    def __init__(
        self,
        index: BM25Index,
        query: QueryLike,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        fetch_k: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        on_unknown: OnUnknown = "error",
        known: Callable[[str], bool] | None = None,
    ) -> None:
        check_fusion(method, weights, rank_constant)
        self._method, self._weights, self._rank_constant = method, weights, rank_constant
        self._skip = check_choice("on_unknown", on_unknown, get_args(OnUnknown)) == "skip"
        self._correct, self._expand = check_flag("correct", correct), check_flag("expand", expand)
        # Before anybody is asked, so that nothing that is found can be missing.
        self._snapshot, self._query, self._filter = index.snapshot(), query, parse_filter(filter)
        self._known = index.__contains__ if known is None else known
        page = (k, None, min_score, offset, group, per_group, decay)
        self._wanted = check_wanted(self._snapshot._snapshot, *page)
        self._depth = self.wanted = max(self._wanted.k, check_count("fetch_k", fetch_k))
        self._by_words: list[tuple[str, float]] | None = None
        self._terms: Collection[str] = ()  # by which words are marked
        self._others: list[tuple[str, float]] = []

    def search_index(self) -> Ranking:
        """Search by BM25, perhaps while the other retriever searches; or ``hits`` does it."""
        query = self._corrected
        if self._expand:
            query = self._snapshot.expand(query, filter=self._filter)
        hits = self._snapshot.search(query, self._depth, self._filter)
        matcher = hits[0]._matcher if hits else None
        self._terms = matcher.terms if isinstance(matcher, QueryMatcher) else ()
        self._by_words = [(hit.id, hit.score) for hit in hits]
        return self._by_words

    @lazy_property
    def _corrected(self) -> QueryLike:
        """The query for BM25, corrected if that was asked for."""
        if not self._correct:
            return self._query
        return self._snapshot.correct(self._query, self._filter).terms

    @lazy_property
    def _with_parts(self) -> Filter | None:
        return with_parts(self._snapshot, self._corrected, self._filter)

    def take(self, ranking: Ranking) -> bool:
        """Take all that the other retriever found, best first, and say whether it is enough.

        It is not if some of ``wanted`` documents do not pass the filter, occur twice or are
        skipped, and there may be others below them: then ``wanted`` has grown, until the other
        retriever has found every document or returns fewer than that. An id that is not in the
        index is a ``ValueError`` where ``on_unknown`` is ``"error"``.
        """
        scores: dict[str, float] = {}
        found = list(check_sequence("ranking", ranking, "(id, score)"))
        for place, pair in enumerate(found):
            id, score = check_pair(f"ranking[{place}]", pair)
            scores.setdefault(id, score)
        passing = self._passing(list(scores))
        for id in scores if not self._skip else ():
            if id not in passing and id not in self._snapshot and not self._known(id):
                raise ValueError(
                    f"the other retriever found {id!r}, which is not in the BM25 index: both must "
                    "hold the same documents under the same ids; if the index only lags behind, "
                    "on_unknown='skip' leaves such results out"
                )
        self._others = [pair for pair in scores.items() if pair[0] in passing][: self._depth]
        if len(found) < self.wanted or len(self._others) == self._depth:
            return True
        held = len(self._snapshot)
        if sum(id in self._snapshot for id in scores) == held:
            return True
        # It may hold more than the index: several vectors of a document, or ids to skip.
        more = _GROWTH * self.wanted
        self.wanted = min(more, held) if self.wanted < held else more
        return False

    def _passing(self, ids: list[str]) -> set[str]:
        passing = self._filter
        if isinstance(self._query, Query):
            passing = self._with_parts
        if passing is None:  # a tenth of the time of reading the documents
            return {id for id in ids if id in self._snapshot}
        return {document.id for document in self._snapshot.get(ids, passing)}

    def hits(self) -> list[Hit]:
        """Return the best documents with their fused scores; new objects. Raise as ``fuse``."""
        if self._by_words is None:
            self.search_index()
        shaped = self._wanted.shaping is not None
        try:
            fused = fuse(
                [self._by_words or [], self._others],
                self._method,
                self._weights,
                2 * self._depth if shaped else self._wanted.depth,
                self._rank_constant,
            )
        except (TypeError, ValueError) as error:
            message = f"the scores of the other retriever, rankings[1], cannot be fused: {error}"
            raise type(error)(message) from None
        snapshot = self._snapshot._snapshot
        by_row = [(snapshot.row_of(id), score) for id, score in fused]
        rows, scores, totals = page_of(snapshot, self._wanted, by_row)
        if (floor := self._wanted.min_score) is not None:  # scores fall
            scores = [score for score in scores if score >= floor]
        return snapshot.hits(rows[: len(scores)], scores, terms=self._terms, totals=totals)


def with_parts(index: BM25Index, query: QueryLike, filter: FilterSpec | None) -> Filter | None:
    """Return a filter that also passes only what a ``Query`` restricts its matches to.

    For what another retriever finds beside BM25; the index is a snapshot.
    """
    parsed, snapshot = parse_filter(filter), index._snapshot
    terms = terms_of(snapshot.analyzer, query)
    if not isinstance(terms, RestrictedTerms):
        return parsed
    parts = parts_filter(snapshot, terms)
    return parts if parsed is None else And((parsed, parts))
