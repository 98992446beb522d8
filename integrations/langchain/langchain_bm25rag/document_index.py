"""BM25DocumentIndex, to which ``langchain_core.indexing.index()`` writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex

from bm25rag.adapters import Call, OnDuplicate, Plan, planned
from langchain_bm25rag.awaiting import awaits, writing
from langchain_bm25rag.documents import Ids
from langchain_bm25rag.filters import Filter, delete
from langchain_bm25rag.retriever import SearchingBM25
from langchain_bm25rag.storing import refuse


class BM25DocumentIndex(SearchingBM25, DocumentIndex):
    """LangChain's ``DocumentIndex`` over a ``BM25Index``.

    It searches like ``BM25Retriever``, and may share its index:
    ``BM25DocumentIndex(index=retriever.index)``.
    """

    model_config = SearchingBM25.model_config

    @planned
    def upsert(
        self, items: Iterable[Document], /, *, on_duplicate: OnDuplicate = "replace", **kwargs: Any
    ) -> Plan[UpsertResponse]:
        """Do what ``add_documents`` does, for LangChain's ``index()``."""
        refuse("upsert", kwargs)
        written = yield Call(self, "add_documents", (items,), {"on_duplicate": on_duplicate})
        return UpsertResponse(succeeded=written, failed=[])

    @awaits(upsert, writing)
    def aupsert(self) -> None:
        """Do what ``upsert`` does while the event loop goes on."""

    @planned
    def delete(
        self, ids: Ids | None = None, *, filter: Filter | None = None, **kwargs: Any
    ) -> Plan[DeleteResponse]:
        """Delete documents as ``BM25Retriever.delete`` does; other keywords are refused."""
        refuse("delete", kwargs)
        ids = yield from self._deleting(ids, filter)
        return DeleteResponse(succeeded=ids, num_deleted=len(ids), failed=[], num_failed=0)

    @awaits(delete, writing)
    def adelete(self) -> None:
        """Do what ``delete`` does while the event loop goes on."""

    def _deleting(self, ids: Ids | None, filter: Filter | None) -> Plan[list[str]]:
        yield from ()  # nobody is asked
        return delete(self.index, ids, filter)

    def get(self, ids: Sequence[str], /, **kwargs: Any) -> list[Document]:
        """Do what ``get_by_ids`` does."""
        refuse("get", kwargs)
        return self.get_by_ids(ids)
