"""The synchronous methods of the document store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from haystack import logging
from haystack.dataclasses import Document, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.document_stores.bm25rag.arguments import (
    Question,
    asks_for_all,
    check_documents,
    check_flag,
    check_min_score,
    check_query,
    check_sparse_embedding,
    check_strings,
)
from haystack_integrations.document_stores.bm25rag.conversion import from_core, to_core
from haystack_integrations.document_stores.bm25rag.fields import (
    Meta,
    field_name,
    least_and_greatest,
    types_of_fields,
    unique_values,
)
from haystack_integrations.document_stores.bm25rag.filters import translate
from haystack_integrations.document_stores.bm25rag.shared_indexes import SharedIndex

from bm25rag import BM25Index, Hit
from bm25rag.adapters import OnDuplicate, Showing, check_count, read_hits, sample_metadata
from bm25rag.errors import DuplicateIdError
from bm25rag.filters import Filter
from bm25rag.fusion import FusionMethod
from bm25rag.hybrid import HybridSearch, OnUnknown

logger = logging.getLogger(__name__)

_ON_DUPLICATE: dict[DuplicatePolicy, OnDuplicate] = {
    DuplicatePolicy.NONE: "error",
    DuplicatePolicy.FAIL: "error",
    DuplicatePolicy.SKIP: "skip",
    DuplicatePolicy.OVERWRITE: "replace",
}

# As in Haystack's in-memory store: a score of 0 becomes 0.5, a score of 10 becomes 0.78.
_SCALING_FACTOR = 8


class Operations:
    """The synchronous methods of ``BM25DocumentStore``.

    A read sees one state of the index, whatever is written meanwhile. Every write raises
    ``bm25rag.errors.LockedError`` if another process writes to the folder for longer than
    ``lock_timeout``.
    """

    return_embedding: bool
    lock_timeout: float
    commit_every: float
    _shared: SharedIndex

    def _writing(self) -> AbstractContextManager[BM25Index]:
        return self._shared.writing(self.lock_timeout, self.commit_every)

    # --- writing ------------------------------------------------------------------

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write all documents, or none if anything is wrong.

        Parameters
        ----------
        documents
            Any documents; those without content are stored and match no query, and those without
            a sparse embedding match no sparse embedding.
        policy
            What to do about ids that exist already or occur twice in the call: ``FAIL`` (and
            ``NONE``) writes nothing, ``SKIP`` keeps the first and logs a warning for each of
            the others, ``OVERWRITE`` keeps the last.

        Returns
        -------
        count
            How many were written; with ``OVERWRITE``, how many were given.

        Raises
        ------
        ValueError
            If ``documents`` holds anything but documents, or if meta or an embedding cannot be
            stored; the message says which.
        DuplicateDocumentError
            If ``policy`` is ``FAIL`` or ``NONE`` and an id exists already.
        """
        given = check_documents(documents)
        if not isinstance(policy, DuplicatePolicy):
            raise TypeError(f"policy must be a DuplicatePolicy, got {policy!r}")
        if not given:
            return 0  # without waiting for a lock
        records = to_core(given)
        with self._writing() as index:
            try:
                written = index.add_documents(records, on_duplicate=_ON_DUPLICATE[policy])
            except DuplicateIdError:
                raise DuplicateDocumentError(_name_duplicate(index, given)) from None
        if policy is DuplicatePolicy.SKIP:
            _log_skipped(given, written)
        return len(given) if policy is DuplicatePolicy.OVERWRITE else len(written)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; unknown ids are ignored."""
        if wanted := check_strings("document_ids", document_ids):
            with self._writing() as index:
                index.delete(wanted)

    def delete_all_documents(self) -> None:
        """Delete all documents."""
        with self._writing() as index:
            index.delete(index.ids())

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that pass, and return how many.

        Raises
        ------
        FilterError
            If the filter is malformed or empty; for all, use ``delete_all_documents``.
        """
        with self._writing() as index:
            return len(index.delete(filter=_required(index, filters)))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Update the meta of the documents that pass, and return how many they are.

        Parameters
        ----------
        filters
            Which documents.
        meta
            The fields to set; the others stay.

        Raises
        ------
        FilterError
            If the filter is malformed or empty.
        TypeError
            If ``meta`` is not a dict.
        ValueError
            If ``meta`` cannot be stored; the message names document and key.
        """
        if not isinstance(meta, dict):
            raise TypeError(f"meta must be a dict, got {type(meta).__name__}")
        with self._writing() as index:
            found = index.get(index.ids(_required(index, filters)))
            changed = index.update_metadata(
                [document.id for document in found],
                [document.metadata | meta for document in found],
            )
            return len(changed)

    def update_metadata(self, document_ids: list[str], metas: list[dict[str, Any]]) -> int:
        """Replace the meta of documents, and nothing else; return how many were changed.

        Parameters
        ----------
        document_ids
            The documents; unknown ids are ignored.
        metas
            The whole new meta of each.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If there are not as many of both, or a meta cannot be stored.
        """
        with self._writing() as index:
            return len(index.update_metadata(check_strings("document_ids", document_ids), metas))

    # --- reading ------------------------------------------------------------------

    def bm25_retrieval(
        self,
        query: Question,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
    ) -> list[Document]:
        """Find the best documents that contain a term of the query.

        Parameters
        ----------
        query
            A text, a list of terms as the analyzer makes them, or a dict of terms and their
            weights. Stop words alone match nothing, and so does a blank query; but with filters, a
            blank query finds all documents that pass, in the order of writing, without scores.
        filters
            Which documents may be found.
        top_k
            The maximum number of documents, >= 0.
        scale_score
            Whether to scale scores to the range 0 to 1, as Haystack's in-memory store does.
        min_score
            The lowest score that is returned, on the scaled range if scores are scaled;
            ``None`` for any.
        correct
            Whether to replace terms that no document has by terms that are spelt alike.
        expand
            Whether to add terms of the best documents to the query (RM3), as ``BM25Index.expand``.
        offset
            How many of the best documents to leave out: the next page begins at ``offset + top_k``.

        Returns
        -------
        documents
            New documents with their scores, best first.

        Raises
        ------
        ValueError
            If the query is empty and there are no filters, ``top_k`` or ``offset`` is negative, or
            ``min_score`` is NaN.
        TypeError
            If an argument has the wrong type.
        FilterError
            If the filter is malformed.
        """
        (found,) = self._by_words(
            [(query, "query")], filters, top_k, scale_score, min_score, correct, expand, offset
        )
        return found

    def bm25_retrieval_batch(
        self,
        queries: Sequence[Question],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
    ) -> list[list[Document]]:
        """Do what ``bm25_retrieval`` does for many queries at once, on several threads.

        Parameters
        ----------
        queries
            The queries.
        filters, top_k, scale_score, min_score, correct, expand, offset
            As in ``bm25_retrieval``, for each query.

        Returns
        -------
        documents
            What ``bm25_retrieval`` returns for each query, in their order.

        Raises
        ------
        ValueError, TypeError, FilterError
            As from ``bm25_retrieval``; the message says which query.
        """
        if isinstance(queries, str | dict) or not isinstance(queries, Iterable):
            raise TypeError(f"queries must be a list of str, got {queries!r:.100}")
        named = [(query, f"queries[{number}]") for number, query in enumerate(queries)]
        return self._by_words(
            named, filters, top_k, scale_score, min_score, correct, expand, offset
        )

    def _by_words(
        self,
        queries: Sequence[tuple[Question, str]],
        filters: dict[str, Any] | None,
        top_k: int,
        scale_score: bool,
        min_score: float | None,
        correct: bool,
        expand: bool,
        offset: int,
    ) -> list[list[Document]]:
        """Answer queries, each given with its name in messages."""
        limit, first = check_count("top_k", top_k), check_count("offset", offset)
        scaled, floor = check_flag("scale_score", scale_score), check_min_score(min_score)
        index = self._shared.current
        core_filter = _core_filter(index, filters)
        asked = [
            _rewritten(index, check_query(query, name), core_filter, correct, expand)
            for query, name in queries
            if not asks_for_all(query, filters)
        ]
        least = None if scaled else floor
        if len(queries) == 1:
            hits = [
                index.search(one, limit, core_filter, min_score=least, offset=first)
                for one in asked
            ]
        else:
            hits = index.search_batch(
                asked, limit, core_filter, min_score=least, offset=first
            ).hits()
        found = iter([self._found(of_one, scaled, floor) for of_one in hits])
        return [
            self._page(index, core_filter, limit, first)
            if asks_for_all(query, filters)
            else next(found)
            for query, _ in queries
        ]

    def _page(
        self, index: BM25Index, core_filter: Filter | None, limit: int, first: int
    ) -> list[Document]:
        """Return some of the documents that pass, in the order of writing."""
        stored = index.get(index.ids(core_filter, k=limit, offset=first))
        return [from_core(document, with_embedding=self.return_embedding) for document in stored]

    def sparse_embedding_retrieval(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        offset: int = 0,
    ) -> list[Document]:
        """Find the best documents whose sparse embeddings share an index with the query's.

        The score is the dot product, see ``bm25rag.vectors``.

        Parameters
        ----------
        query_sparse_embedding
            The sparse embedding of the query; an empty one matches nothing.
        filters, top_k, scale_score, min_score, offset
            As in ``bm25_retrieval``.

        Returns
        -------
        documents
            New documents with their scores, best first.

        Raises
        ------
        ValueError
            If ``top_k`` is negative, ``min_score`` is NaN, or the embedding has an index twice, a
            negative one, or a value that is NaN or beyond 1e30.
        TypeError
            If an argument has the wrong type.
        FilterError
            If the filter is malformed.
        """
        vector = check_sparse_embedding(query_sparse_embedding)
        limit, first = check_count("top_k", top_k), check_count("offset", offset)
        scaled, floor = check_flag("scale_score", scale_score), check_min_score(min_score)
        index = self._shared.current
        least, core_filter = None if scaled else floor, _core_filter(index, filters)
        hits = index.vectors.search(vector, limit, core_filter, min_score=least, offset=first)
        return self._found(hits, scaled, floor)

    def sparse_hybrid_retrieval(
        self,
        query: Question,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        *,
        top_k_per_retriever: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
    ) -> list[Document]:
        """Find the best documents by BM25 and by their sparse embeddings, fused.

        Parameters
        ----------
        query, filters, top_k, correct, expand, offset
            As in ``bm25_retrieval``.
        query_sparse_embedding
            As in ``sparse_embedding_retrieval``.
        top_k_per_retriever
            How many documents of each ranking are fused, >= 0; at least ``top_k`` are.
        method, weights, rank_constant
            As in ``bm25rag.fusion.fuse``; the first weight is that of BM25.

        Returns
        -------
        documents
            New documents with their fused scores, best first.

        Raises
        ------
        ValueError, TypeError, FilterError
            If an argument is wrong.
        """
        index = self._shared.current
        core_filter = _core_filter(index, filters)
        limit, first = check_count("top_k", top_k), check_count("offset", offset)
        if asks_for_all(query, filters):
            return self._page(index, core_filter, limit, first)
        hits = index.search_hybrid(
            _rewritten(index, check_query(query), core_filter, correct, expand),
            check_sparse_embedding(query_sparse_embedding),
            limit,
            core_filter,
            fetch_k=check_count("top_k_per_retriever", top_k_per_retriever),
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            offset=first,
        )
        return self._found(hits, scaled=False, floor=None)

    def hybrid_search(
        self,
        query: Question,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        *,
        top_k_per_retriever: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        on_unknown: OnUnknown = "error",
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
    ) -> HybridSearch:
        """Return a search by BM25 and by another retriever, which the caller asks.

        Parameters
        ----------
        query, filters, top_k, correct, expand, offset
            As in ``bm25_retrieval``.
        top_k_per_retriever
            How many documents of each retriever are fused.
        method, weights, rank_constant, on_unknown
            As in ``bm25rag.hybrid.HybridSearch``.

        Raises
        ------
        ValueError, TypeError, FilterError
            If an argument is wrong.
        """
        index = self._shared.current
        return HybridSearch(
            index,
            check_query(query),
            top_k,
            _core_filter(index, filters),
            correct=correct,
            expand=expand,
            offset=offset,
            fetch_k=top_k_per_retriever,
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            on_unknown=on_unknown,
            known=lambda id: id in self._shared.current,
        )

    def hybrid_documents(self, search: HybridSearch) -> list[Document]:
        """Return what a hybrid search has found: new documents with fused scores, best first."""
        return [from_core(hit, hit.score, self.return_embedding) for hit in search.hits()]

    def _found(self, hits: list[Hit], scaled: bool, floor: float | None) -> list[Document]:
        read_hits(hits, "text", "metadata", "payload")
        scores = [_scaled(hit.score) if scaled else hit.score for hit in hits]
        return [
            from_core(hit, score, self.return_embedding)
            for hit, score in zip(hits, scores, strict=True)
            if floor is None or score >= floor
        ]

    def count_documents(self) -> int:
        """Return the number of documents."""
        return len(self._shared.current)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return copies of the documents that pass, in the order of writing."""
        index = self._shared.current
        stored = index.get(index.ids(_core_filter(index, filters)))
        return [from_core(document, with_embedding=self.return_embedding) for document in stored]

    def count_documents_by_filter(self, filters: dict[str, Any] | None) -> int:
        """Return the number of documents that pass."""
        index = self._shared.current
        return index.count(_core_filter(index, filters))

    def count_unique_metadata_by_filter(
        self, filters: dict[str, Any] | None, metadata_fields: list[str]
    ) -> dict[str, int]:
        """Return the number of distinct values of each field among the documents that pass."""
        names = [field_name(field) for field in check_strings("metadata_fields", metadata_fields)]
        return {
            name: len(unique_values(self._sample("values", name, filters), name)) for name in names
        }

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return the fields of all meta, with their types: keyword, int, float or boolean."""
        return types_of_fields(self._sample("ends"))

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the minimum and maximum of a field; ``None`` if its values do not compare."""
        name = field_name(metadata_field)
        return least_and_greatest(self._sample("extremes", name), name)

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the distinct values of a field, and their total number.

        Parameters
        ----------
        metadata_field
            The field, with or without the prefix ``meta.``.
        search_term
            A part of the values, regardless of case; ``None`` for all values.
        from_, size
            The start of the page, and its length.
        filters
            Which documents count.
        """
        if not isinstance(search_term, str | None):
            raise TypeError(f"search_term must be a str or None, got {search_term!r:.100}")
        first, most = check_count("from_", from_), check_count("size", size)
        name = field_name(metadata_field)
        values = unique_values(self._sample("values", name, filters), name)
        if search_term:
            values = [value for value in values if search_term.lower() in str(value).lower()]
        return values[first : first + most], len(values)

    def _sample(
        self, showing: Showing, field: str | None = None, filters: dict[str, Any] | None = None
    ) -> list[Meta]:
        """Return the meta of documents that tell as much of a field as all of them."""
        index = self._shared.current
        core_filter = _core_filter(index, filters)
        metas = sample_metadata(index, showing, field, core_filter)
        if metas is None:  # there are too many fields for an index of each
            metas = [document.metadata for document in index.get(index.ids(core_filter))]
        return metas


def _name_duplicate(index: BM25Index, documents: Iterable[Document]) -> str:
    """Say which document cannot be written, and how it could be."""
    seen: set[str] = set()
    for document in documents:
        if document.id in seen or document.id in index:
            where = (
                "occurs twice in documents" if document.id in seen else "is in the store already"
            )
            return (
                f"ID {document.id!r} {where}, and nothing was written: policy=DuplicatePolicy.SKIP "
                "keeps the first document of an id, DuplicatePolicy.OVERWRITE the last"
            )
        seen.add(document.id)
    raise AssertionError("unreachable")


def _log_skipped(documents: Iterable[Document], written: Iterable[str]) -> None:
    remaining = set(written)
    for document in documents:
        if document.id in remaining:
            remaining.discard(document.id)  # the first document of an id is kept
        else:
            logger.warning("ID '{document_id}' already exists", document_id=document.id)


def _core_filter(index: BM25Index, filters: dict[str, Any] | None) -> Filter | None:
    return translate(filters, lambda id: from_core(index.get([id])[0]))


def _required(index: BM25Index, filters: dict[str, Any]) -> Filter:
    """Return a filter, which must have a condition."""
    core_filter = _core_filter(index, filters)
    if core_filter is None:
        raise FilterError(f"filters must have a condition here, got {filters!r}")
    return core_filter


def _rewritten(
    index: BM25Index, query: Question, core_filter: Filter | None, correct: bool, expand: bool
) -> Question:
    """Return a query, corrected and expanded as asked."""
    if check_flag("correct", correct):
        terms = index.correct(query, core_filter).terms
        query = dict(terms) if isinstance(terms, dict) else list(terms)
    return index.expand(query, filter=core_filter) if check_flag("expand", expand) else query


def _scaled(score: float) -> float:
    # The logistic function, in the form that does not overflow.
    return 0.5 + 0.5 * math.tanh(score / (2 * _SCALING_FACTOR))
