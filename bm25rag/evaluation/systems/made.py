"""Whatever a factory makes: a callable, or a retriever of a framework."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from bm25rag.documents import Document
from bm25rag.evaluation.retrievers import answering
from bm25rag.evaluation.systems.base import Found, System


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
        self._answer = answering(self._factory(list(documents)))

    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k; without scores, scores that decrease by rank."""
        return self._answer(query, k)
