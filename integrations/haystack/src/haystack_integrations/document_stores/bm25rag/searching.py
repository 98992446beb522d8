"""Searches of one state of the index, and the documents that they find."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from haystack.dataclasses import Document
from haystack_integrations.document_stores.bm25rag.arguments import (
    AnyQuestion,
    asks_for_all,
    check_min_score,
    check_query,
)
from haystack_integrations.document_stores.bm25rag.conversion import from_core, from_hit
from haystack_integrations.document_stores.bm25rag.filters import translate

from bm25rag import BM25Index, Hit
from bm25rag.adapters import check_count, check_flag, decay_dict, read_hits
from bm25rag.filters import Filter

# As in Haystack's in-memory store: a score of 0 becomes 0.5, a score of 10 becomes 0.78.
_SCALING_FACTOR = 8
# The values of ``group``, ``per_group`` and ``decay`` that change nothing.
_UNSHAPED = [None, 1, None]


def filter_of(index: BM25Index, filters: dict[str, Any] | None) -> Filter | None:
    """Translate a filter of the documents of an index."""
    return translate(filters, lambda id: from_core(index.get([id])[0]))


def in_core(shaping: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``group`` and ``decay``, which name fields of the meta as filters do, for the core."""
    changed = dict(shaping)
    if isinstance(group := changed.get("group"), str):
        changed["group"] = group.removeprefix("meta.")
    if (decay := decay_dict(changed.get("decay"))) is not None:
        changed["decay"] = decay | {"path": str(decay["path"]).removeprefix("meta.")}
    return changed


class Search:
    """A page of what passes a filter, in one state of the index.

    Parameters
    ----------
    index
        A snapshot of the index.
    filters, top_k, scale_score, min_score, offset, **shaping
        As in ``BM25Retriever.run``; the last are ``group``, ``per_group`` and ``decay``.
    with_embedding, spans_key
        What documents have beside what was written, as in ``BM25DocumentStore``.
    """

    def __init__(
        self,
        index: BM25Index,
        with_embedding: bool,
        spans_key: str | None,
        filters: dict[str, Any] | None,
        top_k: int,
        offset: int,
        scale_score: bool = False,
        min_score: float | None = None,
        **shaping: Any,
    ) -> None:
        self.index, self._with_embedding, self._spans_key = index, with_embedding, spans_key
        self.limit, self.offset = check_count("top_k", top_k), check_count("offset", offset)
        self._scaled = check_flag("scale_score", scale_score)
        self._floor = check_min_score(min_score)
        self.filter, self._shaping = filter_of(index, filters), shaping
        if shaping and [*shaping.values()] != _UNSHAPED:
            self._shaping = in_core(shaping)
            index.search("", 0, **self._shaping)  # checks them

    @property
    def page_options(self) -> dict[str, Any]:
        """Which results are wanted, as arguments of the core's searches."""
        return {"offset": self.offset, **self._shaping}

    @property
    def options(self) -> dict[str, Any]:
        """More arguments of a search by one kind of score."""
        return {"min_score": None if self._scaled else self._floor, **self.page_options}

    def by_words(
        self, queries: Mapping[str, AnyQuestion], correct: bool, expand: bool
    ) -> list[list[Document]]:
        """Answer queries, each under its name in messages."""
        asked = {
            name: self.rewritten(check_query(query, name), correct, expand)
            for name, query in queries.items()
            if not asks_for_all(query, self.filter)
        }
        index, few = self.index, [*asked.values()]
        if len(queries) == 1:
            hits = [index.search(one, self.limit, self.filter, **self.options) for one in few]
        else:
            hits = index.search_batch(few, self.limit, self.filter, **self.options).hits()
        found = dict(zip(asked, map(self.documents, hits), strict=True))
        return [found[name] if name in found else self.page() for name in queries]

    def rewritten(self, query: AnyQuestion, correct: bool, expand: bool) -> AnyQuestion:
        """Return a query, corrected and expanded as asked."""
        if check_flag("correct", correct):
            query = self.index.correct(query, self.filter).terms
        if check_flag("expand", expand):
            return self.index.expand(query, filter=self.filter)
        return query

    def page(self) -> list[Document]:
        """Return some of the documents that pass, in the order of writing."""
        stored = self.index.get(self.index.ids(self.filter, k=self.limit, offset=self.offset))
        return [from_core(document, with_embedding=self._with_embedding) for document in stored]

    def documents(self, hits: Sequence[Hit]) -> list[Document]:
        """Return what was found, with scores as asked."""
        read_hits(hits, "text", "metadata", "payload")
        scores = [_scale(hit.score) if self._scaled else hit.score for hit in hits]
        return [
            from_hit(hit, score, self._with_embedding, self._spans_key)
            for hit, score in zip(hits, scores, strict=True)
            if self._floor is None or score >= self._floor
        ]


def _scale(score: float) -> float:
    # The logistic function, in the form that does not overflow.
    return 0.5 + 0.5 * math.tanh(score / (2 * _SCALING_FACTOR))
