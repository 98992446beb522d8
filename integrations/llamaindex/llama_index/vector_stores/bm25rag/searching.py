"""Answers the queries of a store: by BM25, by vectors, or by both, fused."""

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

from bm25rag.adapters import check_count, check_real
from bm25rag.fusion import FusionMethod, fuse

_WORDS = (VectorStoreQueryMode.TEXT_SEARCH, VectorStoreQueryMode.SPARSE)


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
        if mode in _WORDS:
            k = _count("sparse_top_k", query.sparse_top_k, k)
            found = self._nodes.find_words(query, scope, k)
        elif self._vectors is None:
            if mode is not VectorStoreQueryMode.DEFAULT:
                raise ValueError(
                    f"query mode {mode.value!r} needs vectors: give BM25VectorStore(dense=...), or "
                    "use 'text_search'"
                )
            found = self._nodes.find_words(query, scope, k)
        elif mode is VectorStoreQueryMode.HYBRID:
            found = yield from self._hybrid(query, scope, k, options)
        else:
            found = yield from self._find_vectors(query, scope, k, options)
        return _result(found)

    def _hybrid(
        self, query: VectorStoreQuery, scope: Scope, similarity_top_k: int, options: dict[str, Any]
    ) -> Calls[list[NodeWithScore]]:
        k = _count("hybrid_top_k", query.hybrid_top_k, similarity_top_k)
        alpha = self._alpha if query.alpha is None else check_real("alpha", query.alpha, 0, 1)
        depth = max(k, similarity_top_k, self._fetch_k)
        words, vectors = [], []
        if alpha < 1:
            most = _count("sparse_top_k", query.sparse_top_k, depth)
            words = self._nodes.find_words(query, scope, most)
        if alpha > 0:
            asked = replace(query, mode=VectorStoreQueryMode.DEFAULT)
            vectors = yield from self._find_vectors(asked, scope, depth, options)
        return self._fuse(words, vectors, alpha, k)

    def _find_vectors(
        self, query: VectorStoreQuery, scope: Scope, k: int, options: dict[str, Any]
    ) -> Calls[list[NodeWithScore]]:
        if self._vectors is not None:
            self._vectors.check_query(query.query_embedding)
        return (yield from self._nodes.find_vectors(query, scope, k, options)) if k else []

    def _fuse(
        self, words: list[NodeWithScore], vectors: list[NodeWithScore], alpha: float, k: int
    ) -> list[NodeWithScore]:
        nodes = {found.node.node_id: found.node for found in [*vectors, *words]}
        scores = [found.score for found in vectors]
        if None in scores and self._method != "rrf":
            raise DenseStoreError(
                "the dense store returned no similarities; method='rrf' needs none"
            )
        rankings = [
            [(found.node.node_id, found.score or 0.0) for found in leg] for leg in (words, vectors)
        ]
        try:
            fused = fuse(rankings, self._method, [1 - alpha, alpha], k, self._rank_constant)
        except ValueError as error:  # all else has been checked
            raise DenseStoreError(f"the dense store's answer cannot be fused: {error}") from None
        return [NodeWithScore(node=nodes[id], score=score) for id, score in fused]


def _count(name: str, value: int | None, default: int) -> int:
    return default if value is None else check_count(name, value)


def _result(found: Sequence[NodeWithScore]) -> VectorStoreQueryResult:
    scores = [each.score for each in found if each.score is not None]
    return VectorStoreQueryResult(
        nodes=[each.node for each in found],
        similarities=scores if len(scores) == len(found) else None,
        ids=[each.node.node_id for each in found],
    )
