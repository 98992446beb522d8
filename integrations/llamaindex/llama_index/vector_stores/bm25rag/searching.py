"""Answers the queries of a store: by BM25, by sparse or dense vectors, or by several, fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import (
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.retrievers.bm25rag.persistence import Settings
from llama_index.retrievers.bm25rag.questions import Options, is_blank
from llama_index.vector_stores.bm25rag.calls import Calls, DenseStoreError
from llama_index.vector_stores.bm25rag.legs import Legs, Scope
from llama_index.vector_stores.bm25rag.vectors import Vectors, check_options

from bm25rag import Hit
from bm25rag.adapters import check_count, check_real
from bm25rag.fusion import Ranking, fuse


class Searching:
    """What a store asks, and how it fuses the answers.

    Parameters
    ----------
    nodes
        The nodes of the store.
    vectors
        The dense store, if there is one.
    settings
        How results are fused; see ``BM25VectorStore``.
    ignores_vectors
        Whether ``hybrid`` may leave the sparse vectors of the nodes out.
    """

    def __init__(
        self, nodes: Legs, vectors: Vectors | None, settings: Settings, ignores_vectors: bool
    ) -> None:
        self._nodes, self._vectors = nodes, vectors
        self._settings, self._ignores_vectors = settings, ignores_vectors

    def query(
        self, query: VectorStoreQuery, given: dict[str, Any]
    ) -> Calls[VectorStoreQueryResult]:
        """Answer a query; ``BM25VectorStore.query`` says how, and lists the exceptions."""
        others = dict(given)
        options = Options.taken_from(others)
        check_options("query", others, self._vectors)
        mode = VectorStoreQueryMode(query.mode)
        scope = Scope.of(query, self._nodes.snapshot())
        by_words = mode in (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE)
        k = self._count(query, mode)
        no_vector = by_words or self._vectors is None or _has_none(query.query_embedding)
        if scope.filter is not None and is_blank(query.query_str) and no_vector:
            return _result(self._nodes.find(query, scope, k, options))
        if mode is VectorStoreQueryMode.SPARSE:
            _refuse_rewriting(options, mode, self._nodes.encodes_queries)
            found = self._nodes.with_scores(self._nodes.find_sparse(query, scope, k, options))
        elif by_words or (mode is VectorStoreQueryMode.DEFAULT and self._vectors is None):
            found = self._nodes.with_scores(self._nodes.find_words(query, scope, k, options))
        elif mode is VectorStoreQueryMode.HYBRID and (self._vectors or self._nodes.encodes_queries):
            found = yield from self._hybrid(query, scope, k, options, others)
        elif self._vectors is not None:
            _refuse_rewriting(options, mode, True)
            asked = self._find_vectors(query, scope, k and k + options.offset, others)
            found = _page((yield from asked), options)
        else:
            other = " or (sparse_query_fn=...)" * (mode is VectorStoreQueryMode.HYBRID)
            raise ValueError(
                f"query mode {mode.value!r} needs vectors: give BM25VectorStore(dense=...){other}, "
                "or use 'text_search'"
            )
        return _result(found)

    def _count(self, query: VectorStoreQuery, mode: VectorStoreQueryMode) -> int:
        """Return how many nodes a mode returns."""
        k = check_count("similarity_top_k", query.similarity_top_k)
        if mode is VectorStoreQueryMode.HYBRID:
            return _count("hybrid_top_k", query.hybrid_top_k, k)
        if mode in (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE):
            return _count("sparse_top_k", query.sparse_top_k, k)
        return k

    def _hybrid(
        self,
        query: VectorStoreQuery,
        scope: Scope,
        k: int,
        options: Options,
        others: dict[str, Any],
    ) -> Calls[list[NodeWithScore]]:
        alpha = query.alpha
        alpha = self._settings.alpha if alpha is None else check_real("alpha", alpha, 0, 1)
        last = k + options.offset
        depth = max(k, query.similarity_top_k, self._settings.fetch_k)
        most = _count("sparse_top_k", query.sparse_top_k, depth)
        self._check_all_legs(query, scope)
        weights = of_words, of_sparse, of_dense = self._weights(alpha)
        # All of each leg is fused: the page and the least score are those of the result.
        whole = options._replace(min_score=None, offset=0)
        words = self._nodes.find_words(query, scope, most, whole) if of_words else []
        sparse = self._nodes.find_sparse(query, scope, most, Options()) if of_sparse else []
        dense = []
        if of_dense:
            asked = replace(query, mode=VectorStoreQueryMode.DEFAULT)
            dense = yield from self._find_vectors(asked, scope, depth, others)
        fused = self._fuse(words, sparse, dense, weights, last)
        nodes = {each.node.node_id: each.node for each in dense}
        nodes |= self._nodes.read([id for id, _ in fused if id not in nodes], scope)
        return _page([NodeWithScore(node=nodes[id], score=score) for id, score in fused], options)

    def _check_all_legs(self, query: VectorStoreQuery, scope: Scope) -> None:
        """Refuse to leave the sparse vectors of the nodes out, unless that was asked for.

        Raises
        ------
        ValueError
            If nodes have vectors, and ``sparse_query_fn`` was not given.
        """
        if self._nodes.encodes_queries or self._ignores_vectors or not scope.snapshot.vectors:
            return
        raise ValueError(
            "query mode 'hybrid' would leave the sparse vectors of the nodes out: give "
            "BM25VectorStore(sparse_query_fn=...), or sparse_query_fn=None to ask BM25 and the "
            "dense store alone"
        )

    def _weights(self, alpha: float) -> tuple[float, float, float]:
        """Return the weights of BM25, of sparse vectors and of the dense store."""
        if self._vectors is None:
            return 1 - alpha, alpha, 0.0
        if not self._nodes.encodes_queries:
            return 1 - alpha, 0.0, alpha
        return (1 - alpha) / 2, (1 - alpha) / 2, alpha

    def _find_vectors(
        self, query: VectorStoreQuery, scope: Scope, k: int, options: dict[str, Any]
    ) -> Calls[list[NodeWithScore]]:
        if self._vectors is not None:
            self._vectors.check_query(query.query_embedding)
        return (yield from self._nodes.find_vectors(query, scope, k, options)) if k else []

    def _fuse(
        self,
        words: Sequence[Hit],
        sparse: Sequence[Hit],
        dense: Sequence[NodeWithScore],
        weights: Sequence[float],
        k: int,
    ) -> Ranking:
        method = self._settings.method
        if None in [found.score for found in dense] and method != "rrf":
            raise DenseStoreError(
                "the dense store returned no similarities; method='rrf' needs none"
            )
        rankings = [[(hit.id, hit.score) for hit in leg] for leg in (words, sparse)]
        rankings.append([(found.node.node_id, found.score or 0.0) for found in dense])
        try:
            return fuse(rankings, method, weights, k, self._settings.rank_constant)
        except ValueError as error:  # all else has been checked
            raise DenseStoreError(f"the dense store's answer cannot be fused: {error}") from None


def _count(name: str, value: int | None, default: int) -> int:
    return default if value is None else check_count(name, value)


def _has_none(embedding: Sequence[float] | None) -> bool:
    return embedding is None or len(embedding) == 0


def _refuse_rewriting(options: Options, mode: VectorStoreQueryMode, by_vectors: bool) -> None:
    """Refuse what changes the words of a question where none are searched for.

    Raises
    ------
    ValueError
        If there is such an option; the message names it.
    """
    for name in ("correct", "expand"):
        if by_vectors and getattr(options, name):
            raise ValueError(
                f"{name} changes words, for which query mode {mode.value!r} does not search: "
                "use 'text_search' or 'hybrid'"
            )


def _page(ranked: Sequence[NodeWithScore], options: Options) -> list[NodeWithScore]:
    """Return what follows the offset and has the least score."""
    floor = options.min_score
    return [
        each
        for each in ranked[options.offset :]
        if floor is None or (each.score is not None and each.score >= floor)
    ]


def _result(found: Sequence[NodeWithScore]) -> VectorStoreQueryResult:
    scores = [each.score for each in found if each.score is not None]
    return VectorStoreQueryResult(
        nodes=[each.node for each in found],
        similarities=scores if len(scores) == len(found) else None,
        ids=[each.node.node_id for each in found],
    )
