"""BM25HybridRetriever, which fuses BM25 with any vector store of LangChain."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.indexing import RecordManager, UpsertResponse
from langchain_core.indexing.base import DeleteResponse
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import Field, PrivateAttr, SkipValidation, model_validator

from bm25rag import Analyzer, BM25Index, Hit
from bm25rag.adapters import Mode, OnDuplicate, Tokenizer, check_count
from bm25rag.errors import ReadOnlyError, UncommittedWarning
from bm25rag.fusion import FusionMethod, Ranking, fuse
from bm25rag.hybrid import HybridSearch, OnUnknown
from langchain_bm25rag.aligning import (
    Aligned,
    align_documents,
    align_records,
    delete_vectors,
    find_all,
    replace_vectors,
)
from langchain_bm25rag.document_index import BM25DocumentIndex, refuse
from langchain_bm25rag.documents import (
    read_documents,
    read_ids,
    replace_metadata,
    to_document,
    write,
)
from langchain_bm25rag.filters import Filter, choose, filter_of, is_filter_alone, passing
from langchain_bm25rag.searching import TAKES
from langchain_bm25rag.settings import (
    check_call,
    make_index,
    naming_preprocess_func,
    with_variant,
    without_none,
)
from langchain_bm25rag.steps import Plan, arun, run
from langchain_bm25rag.threads import asking, building, gathered, mirrors, reading, writing
from langchain_bm25rag.tracing import atraced, traced


class BM25HybridRetriever(BM25DocumentIndex):
    """BM25 and a vector store of the same documents, fused into one ranking.

    Every result passes the filter, whether the vector store knows filters or not: what it finds
    is looked up in the index by id. So both must hold the same documents under the same ids, as
    ``from_documents``, ``add_documents`` and ``delete`` see to, and ``rollback``, ``close`` and
    ``with``, which take back in the vector store what the index loses. After a crash, ``align``
    makes the vector store hold what the index holds.

    ``k``, ``filter``, ``min_score``, ``correct``, ``expand`` and ``offset`` are arguments of the
    constructor, and of each call of ``invoke``, ``ainvoke``, ``batch``, ``abatch`` and ``bind``,
    where ``None`` means the constructor's. The vector store gets the question as it is asked;
    ``correct`` and ``expand`` change it for BM25. Scores are the fused ones.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> documents = [Document("A cat sat.", id="a"), Document("Dogs run.", id="b")]
    >>> retriever = BM25HybridRetriever.from_documents(documents, store, k=1, weights=[1, 0])
    >>> [document.id for document in retriever.invoke("cats")]
    ['a']
    """

    vector_store: VectorStore
    """Any vector store that returns the ids of its documents."""

    store_id_key: str | None = None
    """The metadata key for the ids, if the vector store returns them there: ``"_id"`` for Qdrant's;
    ``None`` if they are the ids of the documents, as in most stores."""

    fetch_k: SkipValidation[int] = 100
    """How many documents of each of both are fused, and re-ranked; at least ``k`` are."""

    method: FusionMethod = "minmax"
    """``"minmax"``, ``"zscore"`` or ``"rrf"``, as in ``bm25rag.fusion.fuse``."""

    weights: Sequence[float] | None = None
    """The weights of BM25 and the vector store; ``None`` for equal ones."""

    rank_constant: int = 60
    """The constant of ``"rrf"``."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Other arguments of the vector store's search; not for filters."""

    translate_filter: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes of a filter that is a dict the arguments of the vector store's search that mean the
    same, such as ``lambda filter: {"filter": filter}`` for a store that takes the same dicts.
    Otherwise, the store is searched without a filter, and asked for more where too few of what it
    finds pass: up to all documents."""

    on_unknown: OnUnknown = "error"
    """What to do if the vector store finds a document that the index does not hold: ``"error"``,
    or ``"skip"`` if this process reads an index that others write, and may lag behind."""

    reranker: BaseDocumentCompressor | None = None
    """Ranks the fused documents anew, such as LangChain's ``CrossEncoderReranker``."""

    # The ids that were written since the last commit: what to look at in the vector store where
    # the index goes back to it.
    _touched: set[str] = PrivateAttr(default_factory=set)

    @model_validator(mode="after")
    def _check_fusion(self) -> Self:
        check_count("fetch_k", self.fetch_k)
        fuse([[], []], self.method, self.weights, rank_constant=self.rank_constant)
        return self

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        vector_store: VectorStore,
        *,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        k: int = 4,
        filter: Filter | None = None,
        min_score: float | None = None,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        fetch_k: int | None = None,
        **fields: Any,
    ) -> Self:
        """Index documents, and add them to a vector store under the same ids.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        vector_store
            The vector store, empty.
        bm25_params, preprocess_func, analyzer, bm25_variant
            As in ``BM25Retriever.from_texts``, which also lists the exceptions.
        k, filter, min_score, method, weights, fetch_k, **fields
            The fields: ``reranker``, ``score_key``, ...; ``None`` for the default of ``fetch_k``.

        Raises
        ------
        RuntimeError
            If the vector store fails.
        """
        params = with_variant(bm25_params, bm25_variant)
        retriever = cls(
            index=make_index(analyzer, preprocess_func, params),
            vector_store=vector_store,
            k=k,
            filter=filter,
            min_score=min_score,
            method=method,
            weights=weights,
            **without_none(fetch_k=fetch_k),
            **fields,
        )
        with naming_preprocess_func(preprocess_func):
            retriever.add_documents(documents)
        return retriever

    @classmethod
    @mirrors(from_documents, building)
    async def afrom_documents(
        cls,
        documents: Iterable[Document] | AsyncIterable[Document],
        vector_store: VectorStore,
        **kwargs: Any,
    ) -> Self:
        """Run ``from_documents`` in a thread; ``documents`` may be an async iterable."""
        given = await gathered(documents)
        call = partial(cls.from_documents, given, vector_store, **kwargs)
        made: Self = await building(cls, call)
        return made

    @classmethod
    def open(  # type: ignore[override]
        cls,
        path: str | PathLike[str],
        *,
        vector_store: VectorStore,
        mode: Mode = "r",
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
        analyzer: Analyzer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        k: int = 4,
        filter: Filter | None = None,
        min_score: float | None = None,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        **fields: Any,
    ) -> Self:
        """Open a saved index beside its vector store.

        After a crash of a writer, call ``align``.

        Parameters
        ----------
        path
            The folder, or its URL for ``mode="r"``.
        vector_store
            The vector store.
        mode, mmap, tokenizer, verify, untrusted, timeout, analyzer, bm25_params
            As in ``BM25VectorStore.open``, which also lists the exceptions.
        k, filter, min_score, method, weights, **fields
            The fields of the retriever, which are not saved.
        """
        return super().open(
            path,
            mode=mode,
            mmap=mmap,
            tokenizer=tokenizer,
            verify=verify,
            untrusted=untrusted,
            timeout=timeout,
            analyzer=analyzer,
            bm25_params=bm25_params,
            k=k,
            filter=filter,
            min_score=min_score,
            vector_store=vector_store,
            method=method,
            weights=weights,
            **fields,
        )

    # --- writing ------------------------------------------------------------------

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        on_duplicate: OnDuplicate = "replace",
    ) -> list[str]:
        """Add documents to both.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        ids
            Ids in place of the documents' own.
        on_duplicate
            What to do where an id is there already: ``"replace"`` the document, ``"skip"`` the
            new one, or raise an ``"error"`` and write nothing.

        Returns
        -------
        ids
            The id of each document, without those that were skipped.

        Raises
        ------
        TypeError
            If an element is not a document.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        RuntimeError
            If the vector store fails. The index then has the documents: BM25 finds them, and
            adding them again, under the same ids, or ``align`` completes the vector store.
        """
        return run(self._adding(documents, ids, on_duplicate))

    @mirrors(add_documents, writing)
    async def aadd_documents(
        self,
        documents: Iterable[Document] | AsyncIterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        on_duplicate: OnDuplicate = "replace",
    ) -> list[str]:
        """Do what ``add_documents`` does, with the asynchronous methods of the vector store.

        ``documents`` may be an async iterable.
        """
        return await arun(self._adding(await gathered(documents), ids, on_duplicate), self.index)

    def _adding(
        self,
        documents: Iterable[Document],
        ids: Iterable[str | float | None] | None,
        on_duplicate: OnDuplicate,
    ) -> Plan[list[str]]:
        given, before = list(read_documents(documents, ids)), self.index.snapshot()
        written = write(self.index, given, "documents", on_duplicate)
        self._touched.update(written)
        yield from self._replacing(written, [id for id in dict.fromkeys(written) if id in before])
        return written

    def _replacing(self, ids: Iterable[str], replaced: list[str]) -> Plan[None]:
        """Give the vector store what the index has of some documents by now."""
        documents = {one.id: to_document(one) for one in self.index.get(list(dict.fromkeys(ids)))}
        with self._naming_store():
            yield from replace_vectors(self.vector_store, documents, replaced)

    def upsert(
        self, items: Iterable[Document], /, *, on_duplicate: OnDuplicate = "replace", **kwargs: Any
    ) -> UpsertResponse:
        """Do what ``add_documents`` does, for LangChain's ``index()``."""
        refuse("upsert", kwargs, "on_duplicate")
        return UpsertResponse(
            succeeded=self.add_documents(items, on_duplicate=on_duplicate), failed=[]
        )

    @mirrors(upsert, writing)
    async def aupsert(
        self, items: Iterable[Document], /, *, on_duplicate: OnDuplicate = "replace", **kwargs: Any
    ) -> UpsertResponse:
        """Do what ``upsert`` does, with the asynchronous methods of the vector store."""
        refuse("upsert", kwargs, "on_duplicate")
        written = await self.aadd_documents(items, on_duplicate=on_duplicate)
        return UpsertResponse(succeeded=written, failed=[])

    def delete(
        self,
        ids: Iterable[str | float] | None = None,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> DeleteResponse:
        """Delete documents from both, by their ids, by a filter or by both.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. The index ignores unknown ones. ``None`` for all
            documents that the filter passes.
        filter
            As in searches; documents that it rejects stay.
        **kwargs
            Not accepted.

        Returns
        -------
        response
            LangChain's: what was deleted from the index.

        Raises
        ------
        TypeError
            If ``ids`` is not an iterable of strings and numbers.
        ValueError
            If neither is given, or the filter rejects nothing.
        RuntimeError
            If the vector store fails; nothing is deleted from the index then.
        ReadOnlyError
            If the index was opened for reading; nothing is deleted from either then.
        """
        refuse("delete", kwargs, "filter")
        return run(self._deleting(ids, filter))

    @mirrors(delete, writing)
    async def adelete(
        self,
        ids: Iterable[str | float] | None = None,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> DeleteResponse:
        """Do what ``delete`` does, with the asynchronous method of the vector store."""
        refuse("delete", kwargs, "filter")
        return await arun(self._deleting(ids, filter), self.index)

    def _deleting(
        self, ids: Iterable[str | float] | None, filter: Filter | None
    ) -> Plan[DeleteResponse]:
        self.index.delete([])  # raises if the index cannot be written to
        chosen = choose(self.index, ids, filter)
        self._touched.update(chosen)
        # From the vector store first: what it finds must be in the index at any time.
        with self._naming_store():
            yield from delete_vectors(self.vector_store, chosen)
        return self._deleted(self.index.delete(chosen))

    def update_metadata(
        self, ids: Iterable[str | float], metadatas: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of documents in both; the vector store embeds them again.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. Unknown ones are ignored.
        metadatas
            The whole new metadata of each.

        Returns
        -------
        ids
            The ids of the documents that were changed.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type.
        ValueError
            If the two differ in length.
        MetadataError
            If metadata cannot be stored.
        RuntimeError
            If the vector store fails; the index has the new metadata then.
        """
        return run(self._updating(ids, metadatas))

    @mirrors(update_metadata, writing)
    async def aupdate_metadata(
        self, ids: Iterable[str | float], metadatas: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Do what ``update_metadata`` does, with the asynchronous methods of the vector store."""
        return await arun(self._updating(ids, metadatas), self.index)

    def _updating(
        self, ids: Iterable[str | float], metadatas: Iterable[Mapping[str, Any] | None]
    ) -> Plan[list[str]]:
        given = read_ids(ids)
        changed = replace_metadata(self.index, given, metadatas)
        self._touched.update(given)
        yield from self._replacing(given, [id for id in dict.fromkeys(given) if id in self.index])
        return changed

    # --- keeping both in step -----------------------------------------------------

    def commit(self) -> None:
        """Make the changes of the index since the last commit durable, in one atomic step.

        The vector store got them when they were made.

        Raises
        ------
        ReadOnlyError
            If this was not opened for writing.
        """
        super().commit()
        self._touched.clear()

    def rollback(self) -> None:
        """Go back to the last commit, and take the changes since back in the vector store.

        Raises
        ------
        ReadOnlyError
            If this was not opened for writing.
        RuntimeError
            If the vector store fails; the index has gone back then, and ``align`` does the rest.
        """
        run(self._rolling_back())

    @mirrors(rollback, writing)
    async def arollback(self) -> None:
        """Do what ``rollback`` does, with the asynchronous methods of the vector store."""
        await arun(self._rolling_back(), self.index)

    def _rolling_back(self) -> Plan[Aligned]:
        self.index.rollback()
        touched = set(self._touched)
        aligned = yield from self._aligning_documents(touched)
        self._touched -= touched
        return aligned

    def close(self) -> None:
        """Release the writer's lock without a commit; do nothing if there is no lock.

        Changes since the last commit are lost, in the vector store too; it warns of that.

        Raises
        ------
        RuntimeError
            If the vector store fails; ``align`` does the rest once it works.
        """
        run(self._closing())

    @mirrors(close, writing)
    async def aclose(self) -> None:
        """Do what ``close`` does, with the asynchronous methods of the vector store."""
        await arun(self._closing(), self.index)

    def _closing(self) -> Plan[None]:
        undone = Aligned([], [])
        try:
            if self._touched:
                undone = yield from self._rolling_back()
        except ReadOnlyError:
            pass  # an index in memory, or of another writer, has nothing to go back to
        finally:
            self.index.close()
        if undone.added or undone.deleted:
            message = (
                "closed without the changes since the last commit(), which were taken back in the "
                "vector store, too: call commit() before close(), or rollback() to drop them"
            )
            warnings.warn(message, UncommittedWarning, stacklevel=4)

    def align(self, records: RecordManager | None = None) -> Aligned:  # type: ignore[override]
        """Make the vector store hold what the index holds; after a crash they can differ.

        What the vector store holds beyond that is found by asking it for all of its documents.
        One that answers with an approximation may keep some of them.

        Parameters
        ----------
        records
            The record manager of ``index()``, if that is used: first, the retriever and the record
            manager forget what only one of the two knows, as in ``BM25DocumentIndex.align``.

        Returns
        -------
        aligned
            The ids of documents that the vector store was given, and of those taken from it.

        Raises
        ------
        RuntimeError
            If the vector store fails.
        """
        return run(self._aligning(records))

    @mirrors(align, writing)
    async def aalign(self, records: RecordManager | None = None) -> Aligned:  # type: ignore[override]
        """Do what ``align`` does, with the asynchronous methods of both."""
        return await arun(self._aligning(records), self.index)

    def _aligning(self, records: RecordManager | None) -> Plan[Aligned]:
        if records is not None:
            yield from align_records(self, records)
        with self._naming_store():
            held = yield from find_all(self.vector_store, self.index, self._id_of)
        return (yield from self._aligning_documents([*self.index.ids(), *held]))

    def _aligning_documents(self, ids: Iterable[str]) -> Plan[Aligned]:
        try:
            with self._naming_store():
                return (yield from align_documents(self.index, self.vector_store, ids, self._id_of))
        except RuntimeError as error:
            message = f"{error}; once it works, align() makes it hold what the index holds"
            raise RuntimeError(message) from error.__cause__

    # --- searching ----------------------------------------------------------------

    def _get_relevant_documents(  # type: ignore[override]
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        asked = self._read_call(query, **given)
        if asked.alone is not None:
            return self._documents(asked.alone())
        search = asked.search
        traced(run_manager, "BM25", query, search.search_index, asked.documents)
        enough = False
        while not enough:
            ask = partial(self._ask_store, query, search.wanted, asked.keywords)
            answer = traced(run_manager, type(self.vector_store).__name__, query, ask, _found)
            enough = self._take(search, answer)
        found = self._documents(search.hits())
        if self.reranker is not None:
            found = [*self.reranker.compress_documents(found, query, run_manager.get_child())]
        return found[asked.page]

    @mirrors(_get_relevant_documents, asking)
    async def _aget_relevant_documents(  # type: ignore[override]
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        asked = self._read_call(query, **given)
        if asked.alone is not None:
            return self._documents(await run_in_executor(None, asked.alone))
        search = asked.search
        by_index = partial(run_in_executor, None, search.search_index)
        by_words = asyncio.ensure_future(
            atraced(run_manager, "BM25", query, by_index, asked.documents)
        )
        try:
            enough = False
            while not enough:
                ask = partial(self._aask_store, query, search.wanted, asked.keywords)
                name = type(self.vector_store).__name__
                answer = await atraced(run_manager, name, query, ask, _found)
                enough = await run_in_executor(None, self._take, search, answer)
        finally:
            await by_words
        found = await run_in_executor(None, lambda: self._documents(search.hits()))
        if self.reranker is not None:
            child = run_manager.get_child()
            found = [*await self.reranker.acompress_documents(found, query, child)]
        return found[asked.page]

    def _read_call(
        self,
        query: str,
        *,
        k: int | None = None,
        filter: Filter | None = None,
        min_score: float | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int | None = None,
        **unknown: Any,
    ) -> _Asked:
        check_call(type(self).__name__, query, unknown, TAKES)
        if not isinstance(query, str):
            message = (
                "query must be a str, got weights of terms: the vector store needs a text; "
                "BM25Retriever takes weights"
            )
            raise TypeError(message)
        most = check_count("k", self.k if k is None else k)
        first = check_count("offset", self.offset if offset is None else offset)
        filter = self.filter if filter is None else filter
        floor = self.min_score if min_score is None else min_score
        keywords = self.search_kwargs
        if filter and isinstance(filter, Mapping) and self.translate_filter is not None:
            keywords = keywords | self.translate_filter(filter)
        snapshot = self.index.snapshot()
        parsed = filter_of(snapshot, filter)
        page = slice(0, most) if self.reranker is None else slice(first, first + most)
        search = HybridSearch(
            snapshot,
            query,
            most if self.reranker is None else max(first + most, self.fetch_k),
            parsed,
            min_score=floor,
            correct=self.correct if correct is None else correct,
            expand=self.expand if expand is None else expand,
            offset=first if self.reranker is None else 0,
            fetch_k=self.fetch_k,
            method=self.method,
            weights=self.weights,
            rank_constant=self.rank_constant,
            on_unknown=self.on_unknown,
            known=self.index.__contains__,
        )
        alone = None
        if is_filter_alone(query, parsed):
            alone = partial(passing, snapshot, parsed, most, floor, first)
        return _Asked(snapshot, search, keywords, page, alone)

    def _take(self, search: HybridSearch, answer: list[tuple[Document, float]]) -> bool:
        with self._naming_store():
            scores = [(self._id_of(document), score) for document, score in answer]
        try:
            return search.take(scores)
        except ValueError as error:
            message = f"{error}. align() of this retriever makes the vector store hold the same"
            raise ValueError(message) from None

    def _ask_store(
        self, query: str, k: int, keywords: dict[str, Any]
    ) -> list[tuple[Document, float]]:
        store = self.vector_store
        with self._naming_store():
            if self.method != "rrf":
                return store.similarity_search_with_score(query, k=k, **keywords)
            # It needs no scores, and not every store has them.
            return [(found, 0.0) for found in store.similarity_search(query, k=k, **keywords)]

    @mirrors(_ask_store, reading)
    async def _aask_store(
        self, query: str, k: int, keywords: dict[str, Any]
    ) -> list[tuple[Document, float]]:
        store = self.vector_store
        with self._naming_store():
            if self.method != "rrf":
                return await store.asimilarity_search_with_score(query, k=k, **keywords)
            found = await store.asimilarity_search(query, k=k, **keywords)
            return [(document, 0.0) for document in found]

    def _id_of(self, document: Document) -> str:
        key = self.store_id_key
        id = document.id if key is None else document.metadata.get(key)
        if id is None:
            where = "id" if key is None else f"{key!r} in its metadata"
            message = (
                f"it returned a document without {where}: add documents with add_documents of this "
                "retriever, and if the store returns their ids as metadata, name the key as "
                f"store_id_key; this one has {list(document.metadata)!r:.100}"
            )
            raise ValueError(message)
        return str(id)

    @contextmanager
    def _naming_store(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            name, why = type(self.vector_store).__name__, f"{type(error).__name__}: {error}"
            message = f"the vector store, {name}, failed: {why}"
            raise RuntimeError(message) from error


class _Asked(NamedTuple):
    """A call, read: what to search, and what to return of it."""

    snapshot: BM25Index
    search: HybridSearch
    keywords: dict[str, Any]
    page: slice
    alone: Callable[[], list[Hit]] | None
    """What answers where there is a filter, and no question."""

    def documents(self, ranking: Ranking) -> list[Document]:
        """Return the documents of a ranking, for a trace."""
        return [to_document(one) for one in self.snapshot.get([id for id, _ in ranking])]


def _found(answer: list[tuple[Document, float]]) -> list[Document]:
    return [document for document, _ in answer]
