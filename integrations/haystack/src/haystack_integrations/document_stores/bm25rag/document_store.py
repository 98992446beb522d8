"""The document store: its settings, and the asynchronous methods."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.dataclasses import Document, SparseEmbedding
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.document_stores.bm25rag.analyzers import (
    analyzer_from_dict,
    analyzer_to_dict,
)
from haystack_integrations.document_stores.bm25rag.arguments import (
    Question,
    asked_for,
    check_analyzer,
    check_flag,
    check_path,
)
from haystack_integrations.document_stores.bm25rag.operations import Operations
from haystack_integrations.document_stores.bm25rag.read_threads import ReadThreads
from haystack_integrations.document_stores.bm25rag.shared_indexes import open_shared_index

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import (
    DeltaOn,
    VariantName,
    check_real,
    end_threads,
    in_write_thread,
    is_url,
)
from bm25rag.fusion import FusionMethod


class BM25DocumentStore(Operations):
    """Keeps documents and finds them by exact BM25.

    Any number of threads may read and write at once. Each asynchronous method runs the synchronous
    method in a thread of the store's own; a read never waits for a write.

    Parameters
    ----------
    path
        A folder to keep the documents in, ``~`` for the home folder; ``None`` for memory. Each
        write is committed before it returns, and locks the folder only until then. A read sees
        the last commit, whichever process made it. Or the URL of a folder, such as
        ``"s3://bucket/index"``, for reading only: the store stays at the commit that was the last
        when a store was made for that URL. A ``Secret`` such as
        ``Secret.from_env_var("BM25_PATH")`` is resolved here, and never written to a dump.
    index
        A name for documents in memory. The stores of a process that have the same name share
        their documents, so the stores of a pipeline still do after ``dumps`` and ``loads``. The
        documents live as long as one such store. ``None`` for a unique name.
    analyzer
        How texts and queries become terms; ``None`` for the analyzer of the existing index, or
        English.
    variant, k1, b, delta, delta_on
        As for ``bm25rag.BM25Index``; ``None`` for those of the existing index, or the defaults.
    return_embedding
        Whether returned documents have their embeddings; the embeddings are stored in any case.
    lock_timeout
        How many seconds a write waits while another process writes to the folder.
    commit_every
        0 commits each write before it returns. Otherwise writes are committed together, up to so
        many seconds after the first of them; ``close``, and the end of the process, commit at
        once. This process reads them at once, others after the commit, and until then these
        cannot write. If the process is killed or the machine fails, writes of that time are lost.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a parameter is out of range or differs from that of the existing index, or if both
        ``path`` and ``index`` are given.
    bm25rag.errors.StorageError
        If the folder holds something else or is damaged.
    bm25rag.errors.TokenizerRequiredError
        If the folder's analyzer has a custom tokenizer and ``analyzer`` is missing.

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
        path: str | PathLike[str] | Secret | None = None,
        *,
        index: str | None = None,
        analyzer: Analyzer | None = None,
        variant: VariantName | None = None,
        k1: float | None = None,
        b: float | None = None,
        delta: float | None = None,
        delta_on: DeltaOn | None = None,
        return_embedding: bool = True,
        lock_timeout: float = 60.0,
        commit_every: float = 0.0,
    ) -> None:
        if path is not None and index is not None:
            raise ValueError("index names documents in memory; leave it out if there is a path")
        if not isinstance(index, str | None):
            raise TypeError(f"index must be a str or None, got {type(index).__name__}")
        if is_url(index):
            raise ValueError("index names documents in memory; a URL is a path")
        named = check_path(path)
        self._path_as_given = path if isinstance(path, Secret) else named
        self.path: Path | str | None = named
        if named is not None and not is_url(named):
            self.path = Path(named).expanduser()
        self._unnamed = path is None and index is None
        self.index = str(uuid.uuid4()) if self._unnamed else index
        self.return_embedding = check_flag("return_embedding", return_embedding)
        self.lock_timeout = check_real("lock_timeout", lock_timeout, 0.0, math.inf)
        self.commit_every = check_real("commit_every", commit_every, 0.0, math.inf)
        settings = {
            "analyzer": check_analyzer(analyzer),
            "variant": variant,
            "k1": k1,
            "b": b,
            "delta": delta,
            "delta_on": delta_on,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        self._connect(given)
        # As the index has them: Python's numbers where NumPy's were given.
        current = self._shared.current
        self._given = {name: _plain(getattr(current, name)) for name in given}

    def _connect(self, given: dict[str, Any], content: BM25Index | None = None) -> None:
        location = self.path or self.index or ""
        self._shared = open_shared_index(location, given, self.lock_timeout, content)
        self._read_threads = ReadThreads()

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the documents if they are in memory."""
        state = self.__dict__.copy()
        shared = state.pop("_shared")
        del state["_read_threads"]
        return state | {"content": shared.current if self.path is None else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a copy: with the same folder, the same name, or documents of its own."""
        content = state.pop("content")
        self.__dict__.update(state)
        if self._unnamed:
            self.index = str(uuid.uuid4())
        self._connect(self._given, content)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that were given, and where the documents are stored.

        Raises
        ------
        SerializationError
            If the analyzer has a tokenizer that cannot be imported by name.
        """
        settings: dict[str, Any] = dict(self._given)
        if isinstance(analyzer := settings.get("analyzer"), Analyzer):
            settings["analyzer"] = analyzer_to_dict(analyzer)
        path = self._path_as_given
        settings["path"] = path.to_dict() if isinstance(path, Secret) else path
        settings["index"] = self.index
        settings["return_embedding"] = self.return_embedding
        settings["lock_timeout"] = self.lock_timeout
        settings["commit_every"] = self.commit_every
        return default_to_dict(self, **settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the store that ``to_dict`` described.

        ``analyzer`` holds some of ``Analyzer``'s arguments, such as ``{"language": "german"}``,
        or a ``tokenizer`` by name, which is imported if Haystack allows it: see
        ``allowed_modules`` of ``Pipeline.loads``. Haystack before 3.0 allows everything.

        Raises
        ------
        DeserializationError
            If Haystack does not allow importing the tokenizer, or does not find it.
        """
        settings = dict(data.get("init_parameters", {}))
        if isinstance(settings.get("analyzer"), dict):
            settings["analyzer"] = analyzer_from_dict(settings["analyzer"])
        if isinstance(settings.get("path"), dict):
            settings["path"] = Secret.from_dict(settings["path"])
        return default_from_dict(cls, {**data, "init_parameters": settings})

    def close(self) -> None:
        """Commit what ``commit_every`` has delayed, and end the threads of asynchronous methods.

        They finish first what they were given. The store can still be used: a later call starts
        new threads.
        """
        end_threads(self)
        self._shared.commit()
        self._read_threads.close()

    # --- asynchronous versions -------------------------------------------------------

    async def close_async(self) -> None:
        """Run ``close`` in a thread."""
        await asyncio.to_thread(self.close)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Run ``write_documents`` in a thread."""
        return await in_write_thread(self, self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """Run ``delete_documents`` in a thread."""
        await in_write_thread(self, self.delete_documents, document_ids)

    async def delete_all_documents_async(self) -> None:
        """Run ``delete_all_documents`` in a thread."""
        await in_write_thread(self, self.delete_all_documents)

    async def delete_by_filter_async(self, filters: dict[str, Any]) -> int:
        """Run ``delete_by_filter`` in a thread."""
        return await in_write_thread(self, self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Run ``update_by_filter`` in a thread."""
        return await in_write_thread(self, self.update_by_filter, filters, meta)

    async def update_metadata_async(
        self, document_ids: list[str], metas: list[dict[str, Any]]
    ) -> int:
        """Run ``update_metadata`` in a thread."""
        return await in_write_thread(self, self.update_metadata, document_ids, metas)

    async def bm25_retrieval_async(
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
        """Run ``bm25_retrieval`` in a thread."""
        options = asked_for(correct=correct, expand=expand, offset=offset)
        retrieval = partial(self.bm25_retrieval, **options)
        return await self._read_threads.run(
            retrieval, query, filters, top_k, scale_score, min_score
        )

    async def bm25_retrieval_batch_async(
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
        """Run ``bm25_retrieval_batch`` in a thread."""
        options = asked_for(correct=correct, expand=expand, offset=offset)
        retrieval = partial(self.bm25_retrieval_batch, **options)
        return await self._read_threads.run(
            retrieval, queries, filters, top_k, scale_score, min_score
        )

    async def sparse_embedding_retrieval_async(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        *,
        offset: int = 0,
    ) -> list[Document]:
        """Run ``sparse_embedding_retrieval`` in a thread."""
        return await self._read_threads.run(
            partial(self.sparse_embedding_retrieval, **asked_for(offset=offset)),
            query_sparse_embedding,
            filters,
            top_k,
            scale_score,
            min_score,
        )

    async def sparse_hybrid_retrieval_async(
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
        """Run ``sparse_hybrid_retrieval`` in a thread."""
        retrieval = partial(
            self.sparse_hybrid_retrieval,
            top_k_per_retriever=top_k_per_retriever,
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            **asked_for(correct=correct, expand=expand, offset=offset),
        )
        return await self._read_threads.run(
            retrieval, query, query_sparse_embedding, filters, top_k
        )

    async def count_documents_async(self) -> int:
        """Run ``count_documents`` in a thread."""
        return await self._read_threads.run(self.count_documents)

    async def filter_documents_async(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Run ``filter_documents`` in a thread."""
        return await self._read_threads.run(self.filter_documents, filters)

    async def count_documents_by_filter_async(self, filters: dict[str, Any] | None) -> int:
        """Run ``count_documents_by_filter`` in a thread."""
        return await self._read_threads.run(self.count_documents_by_filter, filters)

    async def count_unique_metadata_by_filter_async(
        self, filters: dict[str, Any] | None, metadata_fields: list[str]
    ) -> dict[str, int]:
        """Run ``count_unique_metadata_by_filter`` in a thread."""
        return await self._read_threads.run(
            self.count_unique_metadata_by_filter, filters, metadata_fields
        )

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        """Run ``get_metadata_fields_info`` in a thread."""
        return await self._read_threads.run(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        """Run ``get_metadata_field_min_max`` in a thread."""
        return await self._read_threads.run(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Run ``get_metadata_field_unique_values`` in a thread."""
        return await self._read_threads.run(
            self.get_metadata_field_unique_values, metadata_field, search_term, from_, size, filters
        )


def _plain(setting: Any) -> Any:
    return str(setting) if isinstance(setting, str) else setting
