"""BM25DocumentIndex, to which ``langchain_core.indexing.index()`` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex

from bm25rag.adapters import OnDuplicate
from langchain_bm25rag.awaiting import awaits, writing
from langchain_bm25rag.documents import Ids, read_documents, write
from langchain_bm25rag.filters import Filter, delete
from langchain_bm25rag.retriever import SearchingBM25
from langchain_bm25rag.storing import refuse


class BM25DocumentIndex(SearchingBM25, DocumentIndex):
    """LangChain's ``DocumentIndex`` over a ``BM25Index``.

    It searches like ``BM25Retriever``, and may share its index:
    ``BM25DocumentIndex(index=retriever.index)``.
    """

    model_config = SearchingBM25.model_config

    def upsert(
        self, items: Iterable[Document], /, *, on_duplicate: OnDuplicate = "replace", **kwargs: Any
    ) -> UpsertResponse:
        """Add documents as ``BM25Retriever.add_documents`` does; other keywords are refused."""
        refuse("upsert", kwargs)
        written = write(self.index, read_documents(items), "documents", on_duplicate)
        return UpsertResponse(succeeded=written, failed=[])

    @awaits(upsert, writing)
    def aupsert(self) -> None:
        """Do what ``upsert`` does while the event loop goes on."""

    def delete(
        self, ids: Ids | None = None, *, filter: Filter | None = None, **kwargs: Any
    ) -> DeleteResponse:
        """Delete documents as ``BM25Retriever.delete`` does; other keywords are refused."""
        refuse("delete", kwargs)
        return self._deleted(delete(self.index, ids, filter))

    @awaits(delete, writing)
    def adelete(self) -> None:
        """Do what ``delete`` does while the event loop goes on."""

    def _deleted(self, ids: list[str]) -> DeleteResponse:
        return DeleteResponse(succeeded=ids, num_deleted=len(ids), failed=[], num_failed=0)

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Do what ``get_by_ids`` does."""
        refuse("get", kwargs)
        return self.get_by_ids(ids)
