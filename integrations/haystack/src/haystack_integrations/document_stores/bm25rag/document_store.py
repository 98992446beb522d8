"""The document store: its settings, and the asynchronous methods."""

from __future__ import annotations

import asyncio
import uuid
from os import PathLike
from pathlib import Path
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.core.errors import SerializationError
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.bm25rag.operations import Operations
from haystack_integrations.document_stores.bm25rag.shelves import open_shelf

from bm25rag import Analyzer


class BM25DocumentStore(Operations):
    """Keeps documents and finds them by exact BM25.

    Any number of threads may read and write at once. Each asynchronous method runs its
    synchronous twin in a thread.

    Parameters
    ----------
    path
        A folder to keep the documents in; ``None`` for memory. Each write is committed
        before it returns, and locks the folder only so long. The stores of a process that
        have the same folder see each other's writes; another process sees them when it
        writes itself or opens the folder anew.
    index
        A name for the place in memory. The stores of a process that have the same name share
        their documents, so those of a pipeline still do after ``dumps`` and ``loads``; they
        last while there is such a store. ``None`` for a name of its own.
    analyzer
        How texts and queries become terms; ``None`` for what the index there has, or English.
    variant, k1, b, delta, delta_on
        As for ``bm25rag.BM25Index``; ``None`` for what the index there has, or the defaults.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a parameter is out of range, or not what the index there was made with, or both
        ``path`` and ``index`` are given.
    bm25rag.errors.StorageError
        If the folder holds something else, is damaged, or is locked by another writer.

    Examples
    --------
    >>> store = BM25DocumentStore()
    >>> store.write_documents([Document(content="A cat sat."), Document(content="Dogs run.")])
    2
    >>> [document.content for document in store.bm25_retrieval("cats")]
    ['A cat sat.']
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        index: str | None = None,
        analyzer: Analyzer | None = None,
        variant: str | None = None,
        k1: float | None = None,
        b: float | None = None,
        delta: float | None = None,
        delta_on: str | None = None,
    ) -> None:
        if path is not None and index is not None:
            raise ValueError("index names a place in memory; leave it out if there is a path")
        if not isinstance(index, str | None):
            raise TypeError(f"index must be a str or None, got {type(index).__name__}")
        self.path = None if path is None else Path(path)
        self.index = str(uuid.uuid4()) if path is None and index is None else index
        settings = {
            "analyzer": analyzer,
            "variant": variant,
            "k1": k1,
            "b": b,
            "delta": delta,
            "delta_on": delta_on,
        }
        self._given = {name: value for name, value in settings.items() if value is not None}
        self._shelf = open_shelf(self.path or self.index or "", self._given)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that were given, and where the documents are.

        Raises
        ------
        SerializationError
            If the analyzer has a callable tokenizer.
        """
        settings: dict[str, Any] = dict(self._given)
        if isinstance(analyzer := self._given.get("analyzer"), Analyzer):
            if analyzer.tokenizer is not None:
                message = f"a tokenizer that is a callable cannot be serialized: {analyzer!r}"
                raise SerializationError(message)
            settings["analyzer"] = analyzer.to_dict()
        settings["path"] = None if self.path is None else str(self.path)
        settings["index"] = self.index
        return default_to_dict(self, **settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the store that ``to_dict`` described.

        ``analyzer`` may also hold just some of ``Analyzer``'s arguments, such as
        ``{"language": "german"}``.
        """
        settings = dict(data.get("init_parameters", {}))
        if isinstance(settings.get("analyzer"), dict):
            settings["analyzer"] = Analyzer(**settings["analyzer"])
        return default_from_dict(cls, {**data, "init_parameters": settings})

    # --- asynchronous twins -------------------------------------------------------

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Do as ``write_documents``."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """Do as ``delete_documents``."""
        await asyncio.to_thread(self.delete_documents, document_ids)

    async def delete_all_documents_async(self) -> None:
        """Do as ``delete_all_documents``."""
        await asyncio.to_thread(self.delete_all_documents)

    async def delete_by_filter_async(self, filters: dict[str, Any]) -> int:
        """Do as ``delete_by_filter``."""
        return await asyncio.to_thread(self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Do as ``update_by_filter``."""
        return await asyncio.to_thread(self.update_by_filter, filters, meta)

    async def bm25_retrieval_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
    ) -> list[Document]:
        """Do as ``bm25_retrieval``."""
        return await asyncio.to_thread(self.bm25_retrieval, query, filters, top_k, scale_score)

    async def count_documents_async(self) -> int:
        """Do as ``count_documents``."""
        return await asyncio.to_thread(self.count_documents)

    async def filter_documents_async(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Do as ``filter_documents``."""
        return await asyncio.to_thread(self.filter_documents, filters)

    async def count_documents_by_filter_async(self, filters: dict[str, Any] | None) -> int:
        """Do as ``count_documents_by_filter``."""
        return await asyncio.to_thread(self.count_documents_by_filter, filters)

    async def count_unique_metadata_by_filter_async(
        self, filters: dict[str, Any] | None, metadata_fields: list[str]
    ) -> dict[str, int]:
        """Do as ``count_unique_metadata_by_filter``."""
        return await asyncio.to_thread(
            self.count_unique_metadata_by_filter, filters, metadata_fields
        )

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        """Do as ``get_metadata_fields_info``."""
        return await asyncio.to_thread(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        """Do as ``get_metadata_field_min_max``."""
        return await asyncio.to_thread(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Do as ``get_metadata_field_unique_values``."""
        return await asyncio.to_thread(
            self.get_metadata_field_unique_values, metadata_field, search_term, from_, size, filters
        )
