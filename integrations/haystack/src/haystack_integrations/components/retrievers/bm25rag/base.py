"""What the retrievers of ``BM25DocumentStore`` share: settings, checked and serialised."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.document_stores.types import FilterPolicy
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.filters import check_filters, combine, dumpable

from bm25rag.adapters import Asking, check_count, check_flag, check_real, decay_dict
from bm25rag.fusion import FusionMethod, check_fusion

# The settings that are arguments of a search.
_OF_CALLS = {"top_k", "scale_score", *Asking._fields}


class StoreRetriever:
    """A retriever of a ``BM25DocumentStore``, whose settings a call may override."""

    document_store: BM25DocumentStore
    filters: dict[str, Any] | None
    filter_policy: FilterPolicy
    top_k_per_retriever: int
    method: FusionMethod
    weights: list[float] | None
    rank_constant: int
    parse_query: bool
    _names: tuple[str, ...] = ()

    def _set(self, settings: dict[str, Any]) -> None:
        """Check settings, the ``locals()`` of a constructor, and keep them for calls and dumps."""
        self._names = tuple(name for name in settings if name != "self")
        for name in self._names:
            check, value = _CHECKS.get(name), settings[name]
            setattr(self, name, value if check is None else check(name, value))

    def _settled(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call, its ``locals()``, with our settings for ``None``."""
        settled = {name: getattr(self, name) for name in self._names if name in _OF_CALLS}
        settled |= {name: given[name] for name in _OF_CALLS if given.get(name) is not None}
        return settled | {"filters": combine(self.filters, given["filters"], self.filter_policy)}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, including those of the store."""
        settings = {name: getattr(self, name) for name in self._names}
        dumped = {"filters": dumpable(self.filters), "filter_policy": self.filter_policy.value}
        return default_to_dict(self, **settings | dumped)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the retriever that ``to_dict`` described, with stores of the original classes."""
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Close the store, as Haystack's own retrievers do."""
        self.document_store.close()

    async def close_async(self) -> None:
        """Run ``close``."""
        await self.document_store.close_async()


def _check_store(name: str, store: object) -> BM25DocumentStore:
    if not isinstance(store, BM25DocumentStore):
        raise TypeError(f"{name} must be a BM25DocumentStore, got {type(store).__name__}")
    return store


def _check_policy(name: str, policy: object) -> FilterPolicy:
    if isinstance(policy, str):
        return FilterPolicy.from_str(policy)
    if not isinstance(policy, FilterPolicy):
        raise TypeError(f"{name} must be a FilterPolicy, got {policy!r}")
    return policy


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "document_store": _check_store,
    "filters": lambda _, filters: check_filters(filters),
    "filter_policy": _check_policy,
    "top_k": partial(check_count, least=1),
    "top_k_per_retriever": check_count,
    "rank_constant": check_count,
    "method": lambda _, method: check_fusion(method) and method,
    "weights": lambda _, weights: None if weights is None else check_fusion("rrf", weights),
    "min_score": lambda name, score: (
        None if score is None else check_real(name, score, -math.inf, math.inf)
    ),
    "scale_score": check_flag,
    "correct": check_flag,
    "expand": check_flag,
    "per_group": partial(check_count, least=1),
    "decay": lambda _, decay: decay_dict(decay),
    "parse_query": check_flag,
}
