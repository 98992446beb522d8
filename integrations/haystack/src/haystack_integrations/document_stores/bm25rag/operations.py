"""The synchronous methods of the document store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from haystack import logging
from haystack.dataclasses import Document, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.document_stores.bm25rag.arguments import (
    AnyQuestion,
    asks_for_all,
    check_documents,
    check_query,
    check_sparse_embedding,
    check_strings,
)
from haystack_integrations.document_stores.bm25rag.conversion import from_core, from_hit, to_core
from haystack_integrations.document_stores.bm25rag.fields import (
    Meta,
    field_name,
    least_and_greatest,
    types_of_fields,
    unique_values,
)
from haystack_integrations.document_stores.bm25rag.searching import Search, filter_of, in_core

from bm25rag import BM25Index, Query
from bm25rag.adapters import (
    DecayLike,
    OnDuplicate,
    Showing,
    check_count,
    in_fields,
    sample_metadata,
)
from bm25rag.errors import DuplicateIdError, LockedError, ReadOnlyError
from bm25rag.filters import Filter
from bm25rag.following import FollowedFolder, SharedIndex
from bm25rag.fusion import FusionMethod
from bm25rag.hybrid import HybridSearch

logger = logging.getLogger(__name__)

_ON_DUPLICATE: dict[DuplicatePolicy, OnDuplicate] = {
    DuplicatePolicy.NONE: "error",
    DuplicatePolicy.FAIL: "error",
    DuplicatePolicy.SKIP: "skip",
    DuplicatePolicy.OVERWRITE: "replace",
}


class Operations:
    """The synchronous methods of ``BM25DocumentStore``.

    A read sees one state of the index, whatever is written meanwhile. Every write raises
    ``bm25rag.errors.LockedError`` if another process writes to the folder for longer than
    ``lock_timeout``. A wrong argument raises ``TypeError`` or ``ValueError``, a malformed filter
    Haystack's ``FilterError``; a write then changes nothing.
    """

    return_embedding: bool
    spans_key: str | None
    lock_timeout: float
    commit_every: float
    _shared: SharedIndex | FollowedFolder

    restrict: dict[str, Any] | None
    # A state of the index, and the view of it that ``restrict`` makes; replaced together.
    _restricted: tuple[BM25Index, BM25Index] | None = None

    @property
    def _current(self) -> BM25Index:
        """What may be read."""
        index, made = self._shared.current, self._restricted
        if self.restrict is None:
            return index
        if made is None or made[0] is not index:
            asked = filter_of(index, self.restrict)
            if asked is None:
                raise FilterError(f"restrict must have a condition, got {self.restrict!r}")
            made = self._restricted = (index, index.restricted(asked))
        return made[1]

    @contextmanager
    def _writing(self) -> Iterator[BM25Index]:
        if self.restrict is not None:
            raise ReadOnlyError("a store with restrict can only be read: write by one without it")
        shared = self._shared
        if isinstance(shared, FollowedFolder):
            writing = shared.writing(self.lock_timeout, self.commit_every)
        else:
            writing = shared.writing()
        try:
            with writing as index:
                yield index
        except LockedError as error:
            raise LockedError(f"{error}, or give the store a longer lock_timeout") from error

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
            if (fields := index.fields) is not None:
                for record in records:
                    record.fields = in_fields(record.text or "", record.metadata, fields)
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

        An empty filter is an error; for all, use ``delete_all_documents``.
        """
        with self._writing() as index:
            return len(index.delete(filter=_required(index, filters)))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set some fields of the meta of the documents that pass, and return how many they are.

        The other fields stay. An empty filter is an error.
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
        """Replace the whole meta of each document, and return how many were changed.

        Unknown ids are ignored, and what is not meta stays.
        """
        with self._writing() as index:
            return len(index.update_metadata(check_strings("document_ids", document_ids), metas))

    # --- reading ------------------------------------------------------------------

    def bm25_retrieval(
        self,
        query: AnyQuestion,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[Document]:
        """Find the best documents that contain a term of the query.

        Parameters
        ----------
        query, filters, top_k, scale_score, min_score, correct, expand, offset
            As in ``BM25Retriever.run``, as are ``group``, ``per_group`` and ``decay``.
        """
        shaping = {"group": group, "per_group": per_group, "decay": decay}
        search = self._search(filters, top_k, offset, scale_score, min_score, **shaping)
        (found,) = search.by_words({"query": query}, correct, expand)
        return found

    def bm25_retrieval_batch(
        self,
        queries: Sequence[AnyQuestion],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[list[Document]]:
        """Do what ``bm25_retrieval`` does for each of many queries at once, on several threads."""
        if isinstance(queries, str | dict) or not isinstance(queries, Iterable):
            raise TypeError(f"queries must be a list of str, got {queries!r:.100}")
        shaping = {"group": group, "per_group": per_group, "decay": decay}
        search = self._search(filters, top_k, offset, scale_score, min_score, **shaping)
        named = {f"queries[{number}]": query for number, query in enumerate(queries)}
        return search.by_words(named, correct, expand)

    def sparse_embedding_retrieval(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[Document]:
        """Find the best documents whose sparse embeddings share an index with the query's.

        The score is the dot product, see ``bm25rag.vectors``.

        Parameters
        ----------
        query_sparse_embedding
            The sparse embedding of the query; an empty one matches nothing. An index that occurs
            twice or is negative, and a value that is NaN or beyond 1e30, is a ``ValueError``.
        filters, top_k, scale_score, min_score, offset, group, per_group, decay
            As in ``BM25Retriever.run``.
        """
        vector = check_sparse_embedding(query_sparse_embedding)
        shaping = {"group": group, "per_group": per_group, "decay": decay}
        search = self._search(filters, top_k, offset, scale_score, min_score, **shaping)
        vectors, options = search.index.vectors, search.options
        return search.documents(vectors.search(vector, search.limit, search.filter, **options))

    def sparse_hybrid_retrieval(
        self,
        query: AnyQuestion,
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
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[Document]:
        """Find the best documents by BM25 and by their sparse embeddings, fused.

        Parameters
        ----------
        query, filters, top_k, correct, expand, offset, group, per_group, decay
            As in ``BM25Retriever.run``; the last three are of the fused scores.
        query_sparse_embedding
            As in ``sparse_embedding_retrieval``.
        top_k_per_retriever
            How many documents of each ranking are fused, >= 0; at least ``top_k`` are.
        method, weights, rank_constant
            As in ``bm25rag.fusion.fuse``; the first weight is that of BM25.
        """
        shaping = {"group": group, "per_group": per_group, "decay": decay}
        search = self._search(filters, top_k, offset, **shaping)
        if asks_for_all(query, search.filter):
            return search.page()
        hits = search.index.search_hybrid(
            search.rewritten(check_query(query), correct, expand),
            check_sparse_embedding(query_sparse_embedding),
            search.limit,
            search.filter,
            fetch_k=check_count("top_k_per_retriever", top_k_per_retriever),
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            **search.page_options,
        )
        return search.documents(hits)

    def parsed(self, query: AnyQuestion) -> AnyQuestion:
        """Return a query; a text that is not blank as ``bm25rag.Query.parse`` reads it."""
        if not isinstance(query, str) or not query.strip():
            return query
        return Query.parse(query, fields=self._shared.current.fields)

    def hybrid_search(
        self, query: AnyQuestion, filters: dict[str, Any] | None, top_k: int, **options: Any
    ) -> HybridSearch:
        """Return a search by BM25 and by another retriever, which the caller asks.

        Parameters
        ----------
        query, filters, top_k
            As in ``BM25Retriever.run``.
        **options
            More arguments of ``bm25rag.hybrid.HybridSearch``.
        """
        index = self._current
        asked, core_filter = check_query(query), filter_of(index, filters)
        return HybridSearch(index, asked, top_k, core_filter, known=self._holds, **in_core(options))

    def _holds(self, id: str) -> bool:
        return id in self._current

    def hybrid_documents(self, search: HybridSearch) -> list[Document]:
        """Return what a hybrid search has found: new documents with fused scores, best first."""
        with_embedding, key = self.return_embedding, self.spans_key
        return [from_hit(hit, hit.score, with_embedding, key) for hit in search.hits()]

    def _search(self, *arguments: Any, **shaping: Any) -> Search:
        fixed = self._current, self.return_embedding, self.spans_key
        return Search(*fixed, *arguments, **shaping)

    def count_documents(self) -> int:
        """Return the number of documents."""
        return len(self._current)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return copies of the documents that pass, in the order of writing."""
        index = self._current
        stored = index.get(index.ids(filter_of(index, filters)))
        return [from_core(document, with_embedding=self.return_embedding) for document in stored]

    def count_documents_by_filter(self, filters: dict[str, Any] | None) -> int:
        """Return the number of documents that pass."""
        index = self._current
        return index.count(filter_of(index, filters))

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
        index = self._current
        return sample_metadata(index, showing, field, filter_of(index, filters))


def _name_duplicate(index: BM25Index, documents: Iterable[Document]) -> str:
    """Say which document cannot be written, and how it could be."""
    counts = Counter(document.id for document in documents)
    id = next(id for id, count in counts.items() if count > 1 or id in index)
    where = "is in the store already" if id in index else "occurs twice in documents"
    return (
        f"ID {id!r} {where}, and nothing was written: policy=DuplicatePolicy.SKIP keeps the first "
        "document of an id, DuplicatePolicy.OVERWRITE the last"
    )


def _log_skipped(documents: Iterable[Document], written: Iterable[str]) -> None:
    remaining = set(written)
    for document in documents:
        if document.id in remaining:
            remaining.discard(document.id)  # the first document of an id is kept
        else:
            logger.warning("ID '{document_id}' already exists", document_id=document.id)


def _required(index: BM25Index, filters: dict[str, Any]) -> Filter:
    """Return a filter, which must have a condition."""
    core_filter = filter_of(index, filters)
    if core_filter is None:
        raise FilterError(f"filters must have a condition here, got {filters!r}")
    return core_filter
