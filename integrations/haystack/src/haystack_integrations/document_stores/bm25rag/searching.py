"""Searches of one state of the index, and the documents that they find."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from haystack.dataclasses import Document, SparseEmbedding
from haystack_integrations.document_stores.bm25rag.conversion import from_core
from haystack_integrations.document_stores.bm25rag.filters import translate

from bm25rag import BM25Index, Hit, Query
from bm25rag.adapters import Asking, check_count, check_flag, is_blank
from bm25rag.adapters import Question as CoreQuestion
from bm25rag.filters import Filter
from bm25rag.vectors import read_vector

if TYPE_CHECKING:
    Question: TypeAlias = str | list[str] | dict[str, float] | Query
else:
    # What components connect to and models fill. For a text alone, Haystack unwraps lists of one,
    # as generators return their replies; as a list of terms, a reply would be one odd term.
    Question = str | dict[str, float]
"""A text, terms, terms with their weights, or what documents must have and must not have."""

# As in Haystack's in-memory store: a score of 0 becomes 0.5, a score of 10 becomes 0.78.
_SCALING_FACTOR = 8


def filter_of(index: BM25Index, filters: dict[str, Any] | None) -> Filter | None:
    """Translate a filter of the documents of an index."""
    return translate(filters, lambda id: from_core(index.get([id]))[0])


def path_of(field: str) -> str:
    """Return the core's path for a field of the meta, as filters name it."""
    return field.removeprefix("meta.")


def check_query(query: object, name: str = "query") -> Question:
    """Return a query; refuse an empty one."""
    if not isinstance(query, (str, list, dict, Query)):
        expected = f"{name} must be a str, got {type(query).__name__}"
        raise TypeError(
            f"{expected}; or a list of terms, a dict of terms and their weights, or a bm25rag.Query"
        )
    if not query:
        raise ValueError(f"{name} must not be empty")
    return query


def check_sparse_embedding(query: object) -> dict[str, float]:
    """Return the sparse embedding of a query as weights by term."""
    name = "query_sparse_embedding"
    if not isinstance(query, SparseEmbedding):
        raise TypeError(f"{name} must be a SparseEmbedding, got {query!r:.100}")
    return read_vector(query, name)


class Search:
    """A page of what passes a filter, in one state of the index, of which it takes a snapshot.

    The arguments are those of ``BM25DocumentStore`` and ``BM25Retriever.run``.
    """

    def __init__(
        self,
        index: BM25Index,
        with_embedding: bool,
        spans_key: str | None,
        filters: dict[str, Any] | None,
        top_k: int,
        scale_score: bool = False,
        **options: Any,
    ) -> None:
        self.index, self._with_embedding, self._spans_key = index, with_embedding, spans_key
        self.limit = check_count("top_k", top_k)
        self._scaled = check_flag("scale_score", scale_score)
        self.filter = filter_of(index, filters)
        Asking.check_names(options, "filters", "top_k", "scale_score")
        self.asking = Asking(**options).with_paths(path_of).checked()
        self._floor = self.asking.min_score
        if self._scaled:  # what is scaled is compared later
            self.asking = self.asking._replace(min_score=None)

    def by_words(self, queries: Mapping[str, Question]) -> list[list[Document]]:
        """Answer queries, each under its name in messages."""
        asked = {
            name: self.rewritten(check_query(query, name))
            for name, query in queries.items()
            if self.filter is None or not is_blank(query)
        }
        index, few, page = self.index, [*asked.values()], self.asking.page
        if len(queries) == 1:
            hits = [index.search(one, self.limit, self.filter, **page) for one in few]
        else:
            hits = index.search_batch(few, self.limit, self.filter, **page).hits()
        by_name = dict(zip(asked, map(self.documents, hits), strict=True))
        return [by_name[name] if name in by_name else self.page() for name in queries]

    def rewritten(self, query: Question) -> CoreQuestion:
        """Return a query, parsed, corrected and expanded as asked."""
        if self.asking.is_usual:
            return query
        read = self.asking.read(query, self.index)
        question, correct = self.asking.rewrite(read, self.index, self.filter)
        return self.index.correct(question, self.filter).terms if correct else question

    def page(self) -> list[Document]:
        """Return some of the documents that pass, in the order of writing."""
        hits = self.asking.find(self.index, "", self.limit, self.filter)
        return from_core(hits, None, self._with_embedding, self._spans_key)

    def documents(self, hits: Sequence[Hit]) -> list[Document]:
        """Return what was found, with scores as asked."""
        scores = [hit.score for hit in hits]
        if self._scaled:
            # The logistic function, in the form that does not overflow.
            halved = 2 * _SCALING_FACTOR
            scores = [0.5 + 0.5 * math.tanh(score / halved) for score in scores]
        if self._floor is not None:
            hits = [hit for hit, score in zip(hits, scores, strict=True) if score >= self._floor]
        return from_core(hits, scores[: len(hits)], self._with_embedding, self._spans_key)
