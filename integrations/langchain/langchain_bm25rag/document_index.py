"""BM25DocumentIndex, to which ``langchain_core.indexing.index()`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex

from bm25rag.adapters import in_write_thread
from langchain_bm25rag.documents import add_documents, read_ids, to_document
from langchain_bm25rag.searching import SearchingBM25


class BM25DocumentIndex(SearchingBM25, DocumentIndex):
    """LangChain's ``DocumentIndex`` over a ``BM25Index``.

    It searches like ``BM25Retriever``, and may share its index:
    ``BM25DocumentIndex(index=retriever.index)``.
    """

    def upsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Add all documents, or none on error, replacing those with the same ids.

        Parameters
        ----------
        items
            The documents; one without an id gets a UUID.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If an element is not a document, or a keyword is given.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        """
        _refuse("upsert", kwargs)
        return UpsertResponse(succeeded=add_documents(self.index, items), failed=[])

    async def aupsert(self, items: Sequence[Document], /, **kwargs: Any) -> UpsertResponse:
        """Run ``upsert`` in a thread."""
        return await in_write_thread(self.index, self.upsert, items, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Delete documents; unknown ids are ignored.

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
        ValueError
            If no ids are given.
        """
        _refuse("delete", kwargs)
        if ids is None:
            message = "ids must be given; an empty list deletes nothing"
            raise ValueError(message)
        deleted = self.index.delete(read_ids(ids))
        return DeleteResponse(
            succeeded=list(deleted.ids), num_deleted=len(deleted.ids), failed=[], num_failed=0
        )

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> DeleteResponse:
        """Run ``delete`` in a thread."""
        return await in_write_thread(self.index, self.delete, ids, **kwargs)

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
        _refuse("get", kwargs)
        return [to_document(found) for found in self.index.get(read_ids(ids))]


def _refuse(method: str, kwargs: dict[str, Any]) -> None:
    if kwargs:
        message = f"{method} takes no keywords, got {', '.join(kwargs)}"
        raise TypeError(message)
