"""Whatever a factory makes: a callable, or a retriever of a framework."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import Found, System

__all__ = ["Made"]


class Made(System):
    """A system made by a factory: a callable, or a framework's retriever.

    Parameters
    ----------
    path
        ``module:factory``; the factory takes a list of ``Document`` and returns a callable
        from query and k to ids or (id, score) pairs, or a retriever of LangChain,
        LlamaIndex or Haystack that returns documents whose id is the document's.
    """

    def __init__(self, path: str) -> None:
        module, _, name = path.partition(":")
        self._factory = getattr(importlib.import_module(module), name)

    def build(self, documents: Sequence[Document]) -> None:
        """Call the factory."""
        self._answer = _answering(self._factory(list(documents)))

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k; without scores, scores that decrease by rank."""
        found = list(self._answer(query, k))[:k]
        if all(isinstance(one, str) for one in found):
            return [(id, float(-rank)) for rank, id in enumerate(found)]
        return [(id, float(score)) for id, score in found]


def _answering(made: Any) -> Callable[[str, int], Iterable[Any]]:
    """Return a search function for a factory's result; methods identify frameworks."""
    if hasattr(made, "invoke"):
        return lambda query, k: [one.id for one in made.invoke(query)]
    if hasattr(made, "retrieve"):
        return lambda query, k: [one.node.node_id for one in made.retrieve(query)]
    if hasattr(made, "run"):
        return lambda query, k: [one.id for one in made.run(query=query, top_k=k)["documents"]]
    if callable(made):
        return made  # type: ignore[no-any-return]
    raise TypeError(f"a factory must return a callable or a retriever, got {type(made).__name__}")
