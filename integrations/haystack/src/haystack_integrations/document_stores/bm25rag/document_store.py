"""The document store."""

from __future__ import annotations

import asyncio
import copy
import math
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from haystack import default_from_dict, default_to_dict, logging
from haystack.dataclasses import Document, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils import Secret
from haystack_integrations.document_stores.bm25rag.analyzers import (
    analyzer_from_dict,
    analyzer_to_dict,
)
from haystack_integrations.document_stores.bm25rag.awaited import reads, writes
from haystack_integrations.document_stores.bm25rag.conversion import (
    check_documents,
    from_core,
    to_core,
)
from haystack_integrations.document_stores.bm25rag.fields import (
    Meta,
    field_name,
    least_and_greatest,
    types_of_fields,
    unique_values,
)
from haystack_integrations.document_stores.bm25rag.filters import dumpable
from haystack_integrations.document_stores.bm25rag.searching import (
    Question,
    Search,
    check_query,
    check_sparse_embedding,
    filter_of,
    path_of,
)

from bm25rag import Analyzer, BM25Index, Query
from bm25rag.adapters import (
    Asking,
    DeltaOn,
    OnDuplicate,
    Options,
    Page,
    Showing,
    VariantName,
    check_choice,
    check_count,
    check_flag,
    check_real,
    check_strings,
    end_threads,
    is_blank,
    is_url,
    local_path,
    sample_metadata,
    with_fields,
)
from bm25rag.errors import DuplicateIdError, LockedError, ReadOnlyError
from bm25rag.filters import Filter
from bm25rag.following import FollowedFolder, SharedIndex, follow, share
from bm25rag.fusion import FusionMethod
from bm25rag.hybrid import HybridSearch

logger = logging.getLogger(__name__)

_ON_DUPLICATE: dict[DuplicatePolicy, OnDuplicate] = {
    DuplicatePolicy.NONE: "error",
    DuplicatePolicy.FAIL: "error",
    DuplicatePolicy.SKIP: "skip",
    DuplicatePolicy.OVERWRITE: "replace",
}


class BM25DocumentStore:
    """Keeps documents and finds them by exact BM25.

    Any number of threads may read and write at once. Each asynchronous method runs the synchronous
    method in a thread of the store's own; a read never waits for a write, and sees one state of
    the index, whatever is written meanwhile. A write raises ``bm25rag.errors.LockedError`` if
    another process writes to the folder for longer than ``lock_timeout``. A wrong argument raises
    ``TypeError`` or ``ValueError``, a malformed filter Haystack's ``FilterError``; a write then
    changes nothing.

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
    restrict
        A filter in Haystack's language: documents that do not pass are as if the store did not hold
        them, whatever its methods, retrievers and filters ask, and nothing can be written. Scores
        are by ``restrict_statistics``. ``None`` for no such limit.
    restrict_statistics
        By which statistics a store with ``restrict`` scores: ``"whole"`` for those of all documents
        of the folder, ``"part"`` for those of the documents that pass.
    lock_timeout
        How many seconds a write waits while another process writes to the folder.
    commit_every
        0 commits each write before it returns. Otherwise writes are committed together, up to so
        many seconds after the first of them; ``close``, and the end of the process, commit at
        once. This process reads them at once; until the commit, others neither see them nor can
        write. If the process is killed or the machine fails, writes of that time are lost.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, a parameter is out of range or differs from that of the
        existing index, or if both ``path`` and ``index`` are given.
    bm25rag.errors.StorageError, bm25rag.errors.TokenizerRequiredError
        If the folder holds something else or is damaged; if its analyzer has a custom tokenizer
        and ``analyzer`` is missing.

    Examples
    --------
    >>> from haystack import Document
    >>> store = BM25DocumentStore()
    >>> store.write_documents([Document(content="A cat sat."), Document(content="Dogs run.")])
    2
    >>> [document.content for document in store.bm25_retrieval("cats")]
    ['A cat sat.']
    """

    # A state of the index, and the view of it that ``restrict`` makes; replaced together.
    _restricted: tuple[BM25Index, BM25Index] | None = None

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
        restrict: dict[str, Any] | None = None,
        restrict_statistics: Literal["whole", "part"] = "whole",
        lock_timeout: float = 60.0,
        commit_every: float = 0.0,
    ) -> None:
        if path is not None and index is not None:
            raise ValueError("index names documents in memory; leave it out if there is a path")
        if not isinstance(index, str | None):
            raise TypeError(f"index must be a str or None, got {type(index).__name__}")
        if is_url(index):
            raise ValueError("index names documents in memory; a URL is a path")
        self._path_as_given = path if isinstance(path, Secret | None) else str(path)
        self.path = _resolve(path)
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
        self.restrict = copy.deepcopy(restrict)
        check_choice("restrict_statistics", restrict_statistics, ("whole", "part"))
        self.restrict_statistics = restrict_statistics
        self._connect()
        # As the index has them: Python's numbers where NumPy's were given.
        current = self._current
        for name in self._given:
            value = getattr(current, name)
            self._given[name] = str(value) if isinstance(value, str) else value

    def _connect(self, content: BM25Index | None = None) -> None:
        self._shared: SharedIndex | FollowedFolder
        if self.path is not None:
            self._shared = follow(self.path, timeout=self.lock_timeout, **self._given)
        else:
            index = BM25Index(**self._given) if content is None else copy.copy(content)
            self._shared = share(self.index or "", index, **self._given)

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the documents if they are in memory."""
        state = self.__dict__.copy()
        del state["_shared"]
        state.pop("_restricted", None)
        return state | {"content": self._current if self.path is None else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a copy: with the same folder, the same name, or documents of its own."""
        content = state.pop("content")
        self.__dict__.update(state)
        if self._unnamed:
            self.index = str(uuid.uuid4())
        self._connect(content)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that were given, and where the documents are stored.

        A tokenizer that cannot be imported by name is a ``SerializationError``.
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
            restrict=dumpable(self.restrict),
            restrict_statistics=self.restrict_statistics,
            lock_timeout=self.lock_timeout,
            commit_every=self.commit_every,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the store that ``to_dict`` described.

        ``analyzer`` holds some of ``Analyzer``'s arguments, such as ``{"language": "german"}``,
        or a ``tokenizer`` by name, which is imported if Haystack allows it: see
        ``allowed_modules`` of ``Pipeline.loads``. Otherwise, or if Haystack does not find it, it
        is a ``DeserializationError``.
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

    # --- what may be read, and who writes ----------------------------------------------

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
            view = index.restricted(asked, statistics=self.restrict_statistics)
            made = self._restricted = (index, view)
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
        """Write all documents, or none if anything is wrong; return how many were written.

        Parameters
        ----------
        documents
            Any documents; those without content are stored and match no query, and those without
            a sparse embedding match no sparse embedding.
        policy
            What to do about ids that exist already or occur twice in the call: ``FAIL`` (and
            ``NONE``) writes nothing, ``SKIP`` keeps the first and logs a warning for each of
            the others, ``OVERWRITE`` keeps the last, and counts all that were given.

        Raises
        ------
        ValueError, DuplicateDocumentError
            If ``documents`` holds anything but documents, meta or an embedding cannot be stored
            (the message says which), or ``policy`` is ``FAIL`` or ``NONE`` and an id exists.
        """
        given = check_documents(documents)
        if not isinstance(policy, DuplicatePolicy):
            raise TypeError(f"policy must be a DuplicatePolicy, got {policy!r}")
        if not given:
            return 0  # without waiting for a lock
        records = to_core(given)
        with self._writing() as index:
            try:
                written = index.add_documents(
                    with_fields(index, records), on_duplicate=_ON_DUPLICATE[policy]
                )
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
            documents = index.get(index.ids(_required(index, filters)))
            changed = index.update_metadata(
                [document.id for document in documents],
                [document.metadata | meta for document in documents],
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
        query: Question,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        **options: Unpack[Options],
    ) -> list[Document]:
        """Find documents as ``BM25Retriever.run`` does; it takes ``parse_query``, too."""
        search = self._search(filters, top_k, scale_score, **options)
        (documents,) = search.by_words({"query": query})
        return documents

    def bm25_retrieval_batch(
        self,
        queries: Sequence[Question],
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        **options: Unpack[Options],
    ) -> list[list[Document]]:
        """Do what ``bm25_retrieval`` does for each of many queries at once, on several threads."""
        if isinstance(queries, str | dict) or not isinstance(queries, Iterable):
            raise TypeError(f"queries must be a list of str, got {queries!r:.100}")
        search = self._search(filters, top_k, scale_score, **options)
        return search.by_words({f"queries[{n}]": query for n, query in enumerate(queries)})

    def sparse_embedding_retrieval(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        min_score: float | None = None,
        **options: Unpack[Page],
    ) -> list[Document]:
        """Find the best documents whose sparse embeddings share an index with the query's.

        The score is the dot product, see ``bm25rag.vectors``.

        Parameters
        ----------
        query_sparse_embedding
            The sparse embedding of the query; an empty one matches nothing. An index that occurs
            twice or is negative, and a value that is NaN or beyond 1e30, is a ``ValueError``.
        filters, top_k, scale_score, min_score, **options
            As in ``BM25Retriever.run``.
        """
        vector = check_sparse_embedding(query_sparse_embedding)
        search = self._search(filters, top_k, scale_score, min_score=min_score, **options)
        page = search.asking.page
        return search.documents(
            search.index.vectors.search(vector, search.limit, search.filter, **page)
        )

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
        **options: Unpack[Options],
    ) -> list[Document]:
        """Find the best documents by BM25 and by their sparse embeddings, fused.

        The arguments are those of ``BM25SparseHybridRetriever`` and its ``run``.
        """
        search = self._search(filters, top_k, **options)
        if search.filter is not None and is_blank(query):
            return search.page()
        page = search.asking.page
        del page["min_score"]
        hits = search.index.search_hybrid(
            search.rewritten(check_query(query)),
            check_sparse_embedding(query_sparse_embedding),
            search.limit,
            search.filter,
            fetch_k=check_count("top_k_per_retriever", top_k_per_retriever),
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            **page,
        )
        return search.documents(hits)

    def parsed(self, query: Question) -> Question:
        """Return a query; a text that is not blank as ``bm25rag.Query.parse`` reads it."""
        if not isinstance(query, str) or not query.strip():
            return query
        return Query.parse(query, fields=self._shared.current.fields)

    def hybrid_search(
        self, query: Question, filters: dict[str, Any] | None, top_k: int, **options: Any
    ) -> HybridSearch:
        """Return a search by BM25 and by another retriever, which the caller asks.

        ``options`` are more arguments of ``bm25rag.hybrid.HybridSearch``.
        """
        index = self._current
        asked, core_filter = check_query(query), filter_of(index, filters)
        named = Asking(group=options.get("group"), decay=options.get("decay")).with_paths(path_of)
        options |= {"group": named.group, "decay": named.decay}
        options["known"] = lambda id: id in self._current
        return HybridSearch(index, asked, top_k, core_filter, **options)

    def hybrid_documents(self, search: HybridSearch) -> list[Document]:
        """Return what a hybrid search has found: new documents with fused scores, best first."""
        hits = search.hits()
        scores = [hit.score for hit in hits]
        return from_core(hits, scores, self.return_embedding, self.spans_key)

    def _search(self, *arguments: Any, **options: Any) -> Search:
        fixed = self._current, self.return_embedding, self.spans_key
        return Search(*fixed, *arguments, **options)

    def count_documents(self) -> int:
        """Return the number of documents."""
        return len(self._current)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return copies of the documents that pass, in the order of writing."""
        index = self._current
        stored = index.get(index.ids(filter_of(index, filters)))
        return from_core(stored, with_embedding=self.return_embedding)

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
        first, count = check_count("from_", from_), check_count("size", size)
        name = field_name(metadata_field)
        values = unique_values(self._sample("values", name, filters), name)
        if search_term:
            values = [value for value in values if search_term.lower() in str(value).lower()]
        return values[first : first + count], len(values)

    def _sample(
        self, showing: Showing, field: str | None = None, filters: dict[str, Any] | None = None
    ) -> list[Meta]:
        """Return the meta of documents that tell as much of a field as all of them."""
        index = self._current
        return sample_metadata(index, showing, field, filter_of(index, filters))

    # --- asynchronous methods ---------------------------------------------------------

    write_documents_async = writes(write_documents)
    delete_documents_async = writes(delete_documents)
    delete_all_documents_async = writes(delete_all_documents)
    delete_by_filter_async = writes(delete_by_filter)
    update_by_filter_async = writes(update_by_filter)
    update_metadata_async = writes(update_metadata)

    bm25_retrieval_async = reads(bm25_retrieval)
    bm25_retrieval_batch_async = reads(bm25_retrieval_batch)
    sparse_embedding_retrieval_async = reads(sparse_embedding_retrieval)
    sparse_hybrid_retrieval_async = reads(sparse_hybrid_retrieval)
    count_documents_async = reads(count_documents)
    filter_documents_async = reads(filter_documents)
    count_documents_by_filter_async = reads(count_documents_by_filter)
    count_unique_metadata_by_filter_async = reads(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = reads(get_metadata_fields_info)
    get_metadata_field_min_max_async = reads(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = reads(get_metadata_field_unique_values)


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


def _resolve(path: str | os.PathLike[str] | Secret | None) -> Path | str | None:
    """Return the path of a folder, or its URL as a string; ``None`` means memory."""
    if isinstance(path, Secret):
        named, path = path, path.resolve_value()
        if not path:
            raise ValueError(f"path must name a folder, but {named!r} is not set, or empty")
    return path if path is None or is_url(path) else Path(local_path(path))


def _check_analyzer(analyzer: object) -> Analyzer | None:
    if not isinstance(analyzer, Analyzer | None):
        raise TypeError(
            f"analyzer must be an Analyzer or None, got {analyzer!r:.100}: write, for example, "
            "Analyzer('german'), or in YAML, analyzer: {language: german}"
        )
    return analyzer
