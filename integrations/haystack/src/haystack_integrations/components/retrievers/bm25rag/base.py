"""What the retrievers of ``BM25DocumentStore`` share: settings, checked and serialised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.arguments import (
    asked_for,
    check_flag,
    check_min_score,
    check_policy,
)
from haystack_integrations.document_stores.bm25rag.filters import check_filters, combine

from bm25rag.adapters import check_count
from bm25rag.fusion import FusionMethod, fuse


class StoreRetriever:
    """A retriever of a ``BM25DocumentStore``, whose filters and ``top_k`` a call may override.

    Parameters
    ----------
    document_store, filters, top_k, filter_policy
        As in ``BM25Retriever``.
    """

    def __init__(
        self,
        document_store: BM25DocumentStore,
        filters: dict[str, Any] | None,
        top_k: int,
        filter_policy: FilterPolicy | str,
    ) -> None:
        if not isinstance(document_store, BM25DocumentStore):
            got = type(document_store).__name__
            raise TypeError(f"document_store must be a BM25DocumentStore, got {got}")
        self.document_store = document_store
        self.filters = check_filters(filters)
        self.top_k = check_count("top_k", top_k, least=1)
        self.filter_policy = check_policy(filter_policy)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, including those of the store."""
        return default_to_dict(self, **self._settings())

    def _settings(self) -> dict[str, Any]:
        return {
            "document_store": self.document_store.to_dict(),
            "filters": self.filters,
            "top_k": self.top_k,
            "filter_policy": self.filter_policy.value,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the retriever that ``to_dict`` described, with stores of the original classes."""
        settings = dict(data.get("init_parameters", {}))  # older versions of Haystack modify it
        return default_from_dict(cls, {**data, "init_parameters": settings})

    def close(self) -> None:
        """Close the store, as Haystack's own retrievers do."""
        self.document_store.close()

    async def close_async(self) -> None:
        """Run ``close``."""
        await self.document_store.close_async()

    def _set_rewriting(self, correct: bool, expand: bool) -> None:
        self.correct = check_flag("correct", correct)
        self.expand = check_flag("expand", expand)

    def _rewriting(self) -> dict[str, bool]:
        return {"correct": self.correct, "expand": self.expand}

    def _options(
        self, correct: bool | None, expand: bool | None, offset: int = 0
    ) -> dict[str, Any]:
        return asked_for(
            correct=self.correct if correct is None else correct,
            expand=self.expand if expand is None else expand,
            offset=offset,
        )

    def _combined(self, filters: dict[str, Any] | None) -> dict[str, Any] | None:
        return combine(self.filters, filters, self.filter_policy)

    def _most(self, top_k: int | None) -> int:
        return self.top_k if top_k is None else top_k


class ScoringRetriever(StoreRetriever):
    """A retriever by one kind of score, which it can scale, and cut by.

    Parameters
    ----------
    document_store, filters, top_k, scale_score, filter_policy, min_score
        As in ``BM25Retriever``.
    """

    def __init__(
        self,
        document_store: BM25DocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        filter_policy: FilterPolicy | str = FilterPolicy.REPLACE,
        min_score: float | None = None,
    ) -> None:
        super().__init__(document_store, filters, top_k, filter_policy)
        self.scale_score = check_flag("scale_score", scale_score)
        self.min_score = check_min_score(min_score)

    def _settings(self) -> dict[str, Any]:
        scoring = {"scale_score": self.scale_score, "min_score": self.min_score}
        return super()._settings() | scoring

    def _arguments(
        self,
        filters: dict[str, Any] | None,
        top_k: int | None,
        scale_score: bool | None,
        min_score: float | None,
    ) -> tuple[dict[str, Any] | None, int, bool, float | None]:
        return (
            self._combined(filters),
            self._most(top_k),
            self.scale_score if scale_score is None else scale_score,
            self.min_score if min_score is None else min_score,
        )


class FusingRetriever(StoreRetriever):
    """A retriever that fuses two rankings.

    Parameters
    ----------
    document_store, filters, top_k, filter_policy
        As in ``BM25Retriever``.
    top_k_per_retriever, method, weights, rank_constant, correct, expand
        As in ``BM25HybridRetriever``.
    """

    def __init__(
        self,
        document_store: BM25DocumentStore,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy | str = FilterPolicy.REPLACE,
        top_k_per_retriever: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        correct: bool = False,
        expand: bool = False,
    ) -> None:
        super().__init__(document_store, filters, top_k, filter_policy)
        self._set_rewriting(correct, expand)
        self.top_k_per_retriever = check_count("top_k_per_retriever", top_k_per_retriever)
        fuse([[], []], method, weights, rank_constant=rank_constant)  # checks them
        self.method: FusionMethod = method
        self.weights = weights
        self.rank_constant = check_count("rank_constant", rank_constant)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | self._fusion() | self._rewriting()

    def _fusion(self) -> dict[str, Any]:
        return {
            "top_k_per_retriever": self.top_k_per_retriever,
            "method": self.method,
            "weights": None if self.weights is None else [*map(float, self.weights)],
            "rank_constant": self.rank_constant,
        }
