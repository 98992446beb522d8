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
from llama_index.vector_stores.bm25rag.calls import Calls, DenseStoreError
from llama_index.vector_stores.bm25rag.legs import Legs, Scope
from llama_index.vector_stores.bm25rag.vectors import Vectors, check_options

from bm25rag import Hit
from bm25rag.adapters import check_count, check_real
from bm25rag.fusion import FusionMethod, Ranking, fuse


class Searching:
    """What a store asks, and how it fuses the answers.

    Parameters
    ----------
    nodes
        The nodes of the store.
    vectors
        The dense store, if there is one.
    alpha, method, rank_constant, fetch_k
        As in ``BM25VectorStore``.

    Raises
    ------
    TypeError, ValueError
        If one of them is wrong.
    """

    def __init__(
        self,
        nodes: Legs,
        vectors: Vectors | None,
        alpha: float,
        method: FusionMethod,
        rank_constant: int,
        fetch_k: int,
    ) -> None:
        fuse([], method, rank_constant=rank_constant)  # checks them
        self._nodes, self._vectors = nodes, vectors
        self._alpha = check_real("alpha", alpha, 0, 1)
        self._method, self._rank_constant = method, rank_constant
        self._fetch_k = check_count("fetch_k", fetch_k)

    def query(
        self, query: VectorStoreQuery, options: dict[str, Any]
    ) -> Calls[VectorStoreQueryResult]:
        """Answer a query; ``BM25VectorStore.query`` says how, and lists the exceptions."""
        check_options("query", options, self._vectors)
        mode = VectorStoreQueryMode(query.mode)
        k = check_count("similarity_top_k", query.similarity_top_k)
        scope = Scope.of(query, self._nodes.bm25)
        if mode in (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE):
            sparse = mode is VectorStoreQueryMode.SPARSE
            find = self._nodes.find_sparse if sparse else self._nodes.find_words
            hits = find(query, scope, _count("sparse_top_k", query.sparse_top_k, k))
            found = self._nodes.with_scores(hits)
        elif mode is VectorStoreQueryMode.HYBRID and (self._vectors or self._nodes.encodes_queries):
            found = yield from self._hybrid(query, scope, k, options)
        elif self._vectors is not None:
            found = yield from self._find_vectors(query, scope, k, options)
        elif mode is VectorStoreQueryMode.DEFAULT:
            found = self._nodes.with_scores(self._nodes.find_words(query, scope, k))
        else:
            other = " or (sparse_query_fn=...)" * (mode is VectorStoreQueryMode.HYBRID)
            raise ValueError(
                f"query mode {mode.value!r} needs vectors: give BM25VectorStore(dense=...){other}, "
                "or use 'text_search'"
            )
        return _result(found)

    def _hybrid(
        self, query: VectorStoreQuery, scope: Scope, similarity_top_k: int, options: dict[str, Any]
    ) -> Calls[list[NodeWithScore]]:
        k = _count("hybrid_top_k", query.hybrid_top_k, similarity_top_k)
        alpha = self._alpha if query.alpha is None else check_real("alpha", query.alpha, 0, 1)
        depth = max(k, similarity_top_k, self._fetch_k)
        most = _count("sparse_top_k", query.sparse_top_k, depth)
        weights = of_words, of_sparse, of_dense = self._weights(alpha)
        words = self._nodes.find_words(query, scope, most) if of_words else []
        sparse = self._nodes.find_sparse(query, scope, most) if of_sparse else []
        dense = []
        if of_dense:
            asked = replace(query, mode=VectorStoreQueryMode.DEFAULT)
            dense = yield from self._find_vectors(asked, scope, depth, options)
        fused = self._fuse(words, sparse, dense, weights, k)
        nodes = {each.node.node_id: each.node for each in dense}
        nodes |= self._nodes.read([id for id, _ in fused if id not in nodes], scope)
        return [NodeWithScore(node=nodes[id], score=score) for id, score in fused]

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
        if None in [found.score for found in dense] and self._method != "rrf":
            raise DenseStoreError(
                "the dense store returned no similarities; method='rrf' needs none"
            )
        rankings = [[(hit.id, hit.score) for hit in leg] for leg in (words, sparse)]
        rankings.append([(found.node.node_id, found.score or 0.0) for found in dense])
        try:
            return fuse(rankings, self._method, weights, k, self._rank_constant)
        except ValueError as error:  # all else has been checked
            raise DenseStoreError(f"the dense store's answer cannot be fused: {error}") from None


def _count(name: str, value: int | None, default: int) -> int:
    return default if value is None else check_count(name, value)


def _result(found: Sequence[NodeWithScore]) -> VectorStoreQueryResult:
    scores = [each.score for each in found if each.score is not None]
    return VectorStoreQueryResult(
        nodes=[each.node for each in found],
        similarities=scores if len(scores) == len(found) else None,
        ids=[each.node.node_id for each in found],
    )
