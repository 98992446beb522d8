"""The document store: its settings, and the asynchronous methods."""

from __future__ import annotations

import asyncio
import copy
import math
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.utils import Secret
from haystack_integrations.document_stores.bm25rag.analyzers import (
    analyzer_from_dict,
    analyzer_to_dict,
)
from haystack_integrations.document_stores.bm25rag.awaited import reads, writes
from haystack_integrations.document_stores.bm25rag.operations import Operations

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import DeltaOn, VariantName, check_flag, check_real, end_threads, is_url
from bm25rag.following import follow, share


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
    variant, k1, b, delta, delta_on, fields
        As for ``bm25rag.BM25Index``; ``None`` for those of the existing index, or the defaults.
        The fields of a document are its meta by their names.
    return_embedding
        Whether returned documents have their embeddings; the embeddings are stored in any case.
    spans_key
        The key in ``meta`` for the words of a result that match, each a dict of ``start`` and
        ``end`` in its content, and ``term``; ``None`` for none.
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
    >>> from haystack import Document
    >>> store = BM25DocumentStore()
    >>> store.write_documents([Document(content="A cat sat."), Document(content="Dogs run.")])
    2
    >>> [document.content for document in store.bm25_retrieval("cats")]
    ['A cat sat.']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Secret | None = None,
        *,
        index: str | None = None,
        analyzer: Analyzer | None = None,
        variant: VariantName | None = None,
        k1: float | None = None,
        b: float | None = None,
        delta: float | None = None,
        delta_on: DeltaOn | None = None,
        fields: Mapping[str, float] | None = None,
        return_embedding: bool = True,
        spans_key: str | None = None,
        lock_timeout: float = 60.0,
        commit_every: float = 0.0,
    ) -> None:
        if path is not None and index is not None:
            raise ValueError("index names documents in memory; leave it out if there is a path")
        if not isinstance(index, str | None):
            raise TypeError(f"index must be a str or None, got {type(index).__name__}")
        if is_url(index):
            raise ValueError("index names documents in memory; a URL is a path")
        named = _resolve(path)
        self._path_as_given = path if isinstance(path, Secret) else named
        self.path: Path | str | None = named
        if named is not None and not is_url(named):
            self.path = Path(named).expanduser()
        self._unnamed = path is None and index is None
        self.index = str(uuid.uuid4()) if self._unnamed else index
        self.return_embedding = check_flag("return_embedding", return_embedding)
        if not isinstance(spans_key, str | None):
            raise TypeError(f"spans_key must be a str or None, got {spans_key!r:.100}")
        self.spans_key = spans_key
        self.lock_timeout = check_real("lock_timeout", lock_timeout, 0.0, math.inf)
        self.commit_every = check_real("commit_every", commit_every, 0.0, math.inf)
        settings: dict[str, Any] = {
            "analyzer": _check_analyzer(analyzer),
            "variant": variant,
            "k1": k1,
            "b": b,
            "delta": delta,
            "delta_on": delta_on,
            "fields": fields,
        }
        self._given = {name: value for name, value in settings.items() if value is not None}
        self._connect()
        # As the index has them: Python's numbers where NumPy's were given.
        current = self._shared.current
        self._given = {name: _plain(getattr(current, name)) for name in self._given}

    def _connect(self, content: BM25Index | None = None) -> None:
        if self.path is not None:
            self._shared = follow(self.path, timeout=self.lock_timeout, **self._given)
        else:
            index = BM25Index(**self._given) if content is None else copy.copy(content)
            self._shared = share(self.index or "", index, **self._given)

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the documents if they are in memory."""
        state = self.__dict__.copy()
        shared = state.pop("_shared")
        return state | {"content": shared.current if self.path is None else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a copy: with the same folder, the same name, or documents of its own."""
        content = state.pop("content")
        self.__dict__.update(state)
        if self._unnamed:
            self.index = str(uuid.uuid4())
        self._connect(content)

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
        return default_to_dict(
            self,
            **settings,
            path=self._path_as_given,
            index=self.index,
            return_embedding=self.return_embedding,
            spans_key=self.spans_key,
            lock_timeout=self.lock_timeout,
            commit_every=self.commit_every,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the store that ``to_dict`` described.

        ``analyzer`` holds some of ``Analyzer``'s arguments, such as ``{"language": "german"}``,
        or a ``tokenizer`` by name, which is imported if Haystack allows it: see
        ``allowed_modules`` of ``Pipeline.loads``.

        Raises
        ------
        DeserializationError
            If Haystack does not allow importing the tokenizer, or does not find it.
        """
        settings = dict(data.get("init_parameters", {}))
        if isinstance(settings.get("analyzer"), dict):
            settings["analyzer"] = analyzer_from_dict(settings["analyzer"])
        return default_from_dict(cls, {**data, "init_parameters": settings})

    def close(self) -> None:
        """Commit what ``commit_every`` has delayed, and end the threads of asynchronous methods.

        They finish first what they were given. The store can still be used: a later call starts
        new threads.
        """
        end_threads(self)
        self._shared.commit()

    async def close_async(self) -> None:
        """Run ``close`` in a thread."""
        await asyncio.to_thread(self.close)

    write_documents_async = writes(Operations.write_documents)
    delete_documents_async = writes(Operations.delete_documents)
    delete_all_documents_async = writes(Operations.delete_all_documents)
    delete_by_filter_async = writes(Operations.delete_by_filter)
    update_by_filter_async = writes(Operations.update_by_filter)
    update_metadata_async = writes(Operations.update_metadata)

    bm25_retrieval_async = reads(Operations.bm25_retrieval)
    bm25_retrieval_batch_async = reads(Operations.bm25_retrieval_batch)
    sparse_embedding_retrieval_async = reads(Operations.sparse_embedding_retrieval)
    sparse_hybrid_retrieval_async = reads(Operations.sparse_hybrid_retrieval)
    count_documents_async = reads(Operations.count_documents)
    filter_documents_async = reads(Operations.filter_documents)
    count_documents_by_filter_async = reads(Operations.count_documents_by_filter)
    count_unique_metadata_by_filter_async = reads(Operations.count_unique_metadata_by_filter)
    get_metadata_fields_info_async = reads(Operations.get_metadata_fields_info)
    get_metadata_field_min_max_async = reads(Operations.get_metadata_field_min_max)
    get_metadata_field_unique_values_async = reads(Operations.get_metadata_field_unique_values)


def _plain(setting: Any) -> Any:
    return str(setting) if isinstance(setting, str) else setting


def _resolve(path: object) -> str | None:
    """Return the path or URL of a folder as a string; ``None`` means memory."""
    if path is None:
        return None
    if isinstance(path, Secret):
        named, path = path, path.resolve_value()
        if not path:
            raise ValueError(f"path must name a folder, but {named!r} is not set, or empty")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str, a Path or None, got {path!r:.100}; or a Secret")
    if path == "":
        raise ValueError("path must name a folder, got ''; leave it out for memory")
    return str(path) if is_url(path) else str(Path(path))


def _check_analyzer(analyzer: object) -> Analyzer | None:
    if not isinstance(analyzer, Analyzer | None):
        raise TypeError(
            f"analyzer must be an Analyzer or None, got {analyzer!r:.100}: write, for example, "
            "Analyzer('german'), or in YAML, analyzer: {language: german}"
        )
    return analyzer
