"""BM25DocumentIndex, to which ``langchain_core.indexing.index()`` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import RecordManager, UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex

from bm25rag.adapters import OnDuplicate
from langchain_bm25rag.aligning import align_records
from langchain_bm25rag.documents import read_documents, write
from langchain_bm25rag.filters import Filter, delete
from langchain_bm25rag.searching import SearchingBM25
from langchain_bm25rag.steps import arun, run
from langchain_bm25rag.threads import mirrors, runs, writing


class BM25DocumentIndex(SearchingBM25, DocumentIndex):
    """LangChain's ``DocumentIndex`` over a ``BM25Index``.

    It searches like ``BM25Retriever``, and may share its index:
    ``BM25DocumentIndex(index=retriever.index)``.
    """

    model_config = SearchingBM25.model_config

    def upsert(
        self, items: Iterable[Document], /, *, on_duplicate: OnDuplicate = "replace", **kwargs: Any
    ) -> UpsertResponse:
        """Add all documents, or none on error.

        Parameters
        ----------
        items
            The documents; one without an id gets a UUID.
        on_duplicate
            What to do where an id is there already: ``"replace"`` the document, ``"skip"`` the
            new one, or raise an ``"error"`` and write nothing.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If an element is not a document, or another keyword is given.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        """
        refuse("upsert", kwargs, "on_duplicate")
        written = write(self.index, read_documents(items), "documents", on_duplicate)
        return UpsertResponse(succeeded=written, failed=[])

    @runs(upsert, writing)
    def aupsert(self) -> None:
        """Run ``upsert`` in a thread."""

    def delete(
        self,
        ids: Iterable[str | float] | None = None,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> DeleteResponse:
        """Delete documents by their ids, by a filter or by both; unknown ids are ignored.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. ``None`` for all documents that the filter passes.
        filter
            As in searches; documents that it rejects stay.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If ``ids`` holds anything but strings and numbers, or another keyword is given.
        ValueError
            If neither is given, or the filter rejects nothing.
        """
        refuse("delete", kwargs, "filter")
        return self._deleted(delete(self.index, ids, filter))

    @runs(delete, writing)
    def adelete(self) -> None:
        """Run ``delete`` in a thread."""

    def _deleted(self, ids: list[str]) -> DeleteResponse:
        return DeleteResponse(succeeded=ids, num_deleted=len(ids), failed=[], num_failed=0)

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Return documents in the order of the ids; unknown ids are skipped.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If ``ids`` holds anything but strings and numbers, or a keyword is given.
        """
        refuse("get", kwargs)
        return self.get_by_ids(ids)

    def align(self, records: RecordManager) -> None:
        """Make the index and a record manager forget what only one of the two knows.

        After a crash they can differ; the run of ``index()`` that follows adds what is wanted.

        Parameters
        ----------
        records
            The record manager. Nothing else may write to its namespace, or to the index.
        """
        run(align_records(self, records))

    @mirrors(align, writing)
    async def aalign(self, records: RecordManager) -> None:
        """Do what ``align`` does, with the asynchronous methods of the record manager."""
        await arun(align_records(self, records), self.index)


def refuse(method: str, kwargs: dict[str, Any], takes: str = "") -> None:
    """Raise ``TypeError`` for keywords that a method does not take."""
    if kwargs:
        beside = f", besides {takes}" if takes else ""
        message = f"{method} takes no keywords, got {', '.join(kwargs)}{beside}"
        raise TypeError(message)
