"""BM25HybridRetriever, which fuses BM25 with any vector store of LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, SkipValidation, model_validator

from bm25rag import Analyzer
from bm25rag.adapters import Tokenizer, check_count, in_write_thread
from bm25rag.fusion import FusionMethod, fuse
from bm25rag.hybrid import HybridSearch, OnUnknown
from langchain_bm25rag.documents import add_documents, read_ids, to_document
from langchain_bm25rag.filters import Filter, copy_filter, filter_of, read_filter
from langchain_bm25rag.searching import Index
from langchain_bm25rag.settings import check_call, make_index, naming_preprocess_func, with_variant
from langchain_bm25rag.storing import Stored
from langchain_bm25rag.threads import in_build_thread


class BM25HybridRetriever(Stored, BaseRetriever):
    """BM25 and a vector store of the same documents, fused into one ranking.

    Every result passes the filter, whether the vector store knows filters or not: what it finds
    is looked up in the index by id. So both must hold the same documents under the same ids, as
    ``from_documents``, ``add_documents`` and ``delete`` see to.

    ``k`` and ``filter`` are arguments of the constructor, and of each call of ``invoke``,
    ``ainvoke``, ``batch``, ``abatch`` and ``bind``, where ``None`` means the constructor's.

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

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index
    """The index, which may be that of a ``BM25Retriever`` or ``BM25VectorStore``."""

    vector_store: VectorStore
    """Any vector store that returns the ids of its documents."""

    store_id_key: str | None = None
    """The metadata key for the ids, if the vector store returns them there: ``"_id"`` for Qdrant's;
    ``None`` if they are the ids of the documents, as in most stores."""

    k: SkipValidation[int] = 4
    """The maximum number of documents to return, >= 0."""

    filter: SkipValidation[Filter | None] = None
    """Which documents may be returned, as in ``BM25Retriever``."""

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

    score_key: str | None = None
    """The metadata key for the fused score of a result; ``None`` for none."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.filter is not None:
            read_filter(self.filter)
            self.filter = copy_filter(self.filter)
        check_count("k", self.k)
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
        **kwargs: Any,
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
        **kwargs
            Other fields: ``k``, ``weights``, ``reranker``, ...

        Raises
        ------
        RuntimeError
            If the vector store fails.
        """
        params = with_variant(bm25_params, bm25_variant)
        index = make_index(analyzer, preprocess_func, params)
        retriever = cls(index=index, vector_store=vector_store, **kwargs)
        with naming_preprocess_func(preprocess_func):
            retriever.add_documents(documents)
        return retriever

    @classmethod
    async def afrom_documents(
        cls, documents: Iterable[Document], vector_store: VectorStore, **kwargs: Any
    ) -> Self:
        """Run ``from_documents`` in a thread."""
        return await in_build_thread(cls.from_documents, documents, vector_store, **kwargs)

    # --- writing ------------------------------------------------------------------

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add documents to both, replacing those with the same ids.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.

        Returns
        -------
        ids
            The id of each document.

        Raises
        ------
        TypeError
            If an element is not a document.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        RuntimeError
            If the vector store fails. The index then has the documents: BM25 finds them, and
            adding them again, under the same ids, completes the vector store.
        """
        given, before = list(documents), self.index.snapshot()
        ids = add_documents(self.index, given)
        if unique := _with_ids(given, ids):
            with self._naming_store():
                self._delete_vectors([id for id in unique if id in before])
                written = self.vector_store.add_documents([*unique.values()], ids=[*unique])
                _check_written([*unique], written)
        return ids

    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """Do what ``add_documents`` does, with the asynchronous method of the vector store."""
        given, before = list(documents), self.index.snapshot()
        ids = await in_write_thread(self.index, add_documents, self.index, given)
        if unique := _with_ids(given, ids):
            with self._naming_store():
                await self._adelete_vectors([id for id in unique if id in before])
                written = await self.vector_store.aadd_documents([*unique.values()], ids=[*unique])
                _check_written([*unique], written)
        return ids

    def _delete_vectors(self, replaced: list[str]) -> None:
        """Delete what will be replaced: FAISS breaks where it is given an id that it has."""
        try:
            held = self.vector_store.get_by_ids(replaced) if replaced else []
        except NotImplementedError:  # it has to replace, then
            return
        if old := [document.id for document in held if document.id is not None]:
            _check_deleted(self.vector_store.delete(old))

    async def _adelete_vectors(self, replaced: list[str]) -> None:
        try:
            held = await self.vector_store.aget_by_ids(replaced) if replaced else []
        except NotImplementedError:
            return
        if old := [document.id for document in held if document.id is not None]:
            _check_deleted(await self.vector_store.adelete(old))

    def delete(self, ids: Iterable[str | float]) -> int:
        """Delete documents from both.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. The index ignores unknown ones.

        Returns
        -------
        count
            How many documents were deleted from the index.

        Raises
        ------
        TypeError
            If ``ids`` is not an iterable of strings and numbers.
        RuntimeError
            If the vector store fails; nothing is deleted from the index then.
        ReadOnlyError
            If the index was opened for reading; nothing is deleted from either then.
        """
        # From the vector store first: what it finds must be in the index at any time.
        given = read_ids(ids)
        self.index.delete([])  # raises if the index cannot be written to
        if given:  # some stores delete everything where none are named
            with self._naming_store():
                _check_deleted(self.vector_store.delete(given))
        return self.index.delete(given)

    async def adelete(self, ids: Iterable[str | float]) -> int:
        """Do what ``delete`` does, with the asynchronous method of the vector store."""
        given = read_ids(ids)
        await in_write_thread(self.index, self.index.delete, [])
        if given:
            with self._naming_store():
                _check_deleted(await self.vector_store.adelete(given))
        return await in_write_thread(self.index, self.index.delete, given)

    # --- searching ----------------------------------------------------------------

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(ls_retriever_name="bm25rag")

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        **unknown: Any,
    ) -> list[Document]:
        search, keywords, wanted = self._read_call(query, k, filter, unknown)
        while not search.take(self._ask_store(query, search.wanted, keywords)):
            pass
        found = self._documents(search)
        if self.reranker is not None:
            found = self.reranker.compress_documents(found, query, run_manager.get_child())
        return list(found)[:wanted]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        **unknown: Any,
    ) -> list[Document]:
        search, keywords, wanted = self._read_call(query, k, filter, unknown)
        by_words = asyncio.ensure_future(run_in_executor(None, search.search_index))
        try:
            enough = False
            while not enough:
                answer = await self._aask_store(query, search.wanted, keywords)
                enough = await run_in_executor(None, search.take, answer)
        finally:
            await by_words
        found = await run_in_executor(None, self._documents, search)
        if self.reranker is not None:
            found = await self.reranker.acompress_documents(found, query, run_manager.get_child())
        return list(found)[:wanted]

    def _read_call(
        self, query: str, k: int | None, filter: Filter | None, unknown: Mapping[str, Any]
    ) -> tuple[HybridSearch, dict[str, Any], int]:
        """Return the search, further arguments for the vector store's, and k."""
        check_call(type(self).__name__, query, unknown, "k and filter")
        wanted = check_count("k", self.k if k is None else k)
        filter = self.filter if filter is None else filter
        keywords = self.search_kwargs
        if filter and isinstance(filter, Mapping) and self.translate_filter is not None:
            keywords = keywords | self.translate_filter(filter)
        snapshot = self.index.snapshot()
        search = HybridSearch(
            snapshot,
            query,
            wanted if self.reranker is None else max(wanted, self.fetch_k),
            filter_of(snapshot, filter),
            fetch_k=self.fetch_k,
            method=self.method,
            weights=self.weights,
            rank_constant=self.rank_constant,
            on_unknown=self.on_unknown,
            known=self.index.__contains__,
        )
        return search, keywords, wanted

    def _ask_store(self, query: str, k: int, keywords: dict[str, Any]) -> list[tuple[str, float]]:
        store = self.vector_store
        with self._naming_store():
            if self.method == "rrf":  # which needs no scores, and not every store has them
                found = store.similarity_search(query, k=k, **keywords)
                return [(self._id_of(document), 0.0) for document in found]
            scored = store.similarity_search_with_score(query, k=k, **keywords)
            return [(self._id_of(document), score) for document, score in scored]

    async def _aask_store(
        self, query: str, k: int, keywords: dict[str, Any]
    ) -> list[tuple[str, float]]:
        store = self.vector_store
        with self._naming_store():
            if self.method == "rrf":
                found = await store.asimilarity_search(query, k=k, **keywords)
                return [(self._id_of(document), 0.0) for document in found]
            scored = await store.asimilarity_search_with_score(query, k=k, **keywords)
            return [(self._id_of(document), score) for document, score in scored]

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

    def _documents(self, search: HybridSearch) -> Sequence[Document]:
        hits = search.hits()
        if self.score_key is not None:
            for hit in hits:
                hit.metadata[self.score_key] = hit.score
        return [to_document(hit) for hit in hits]

    @contextmanager
    def _naming_store(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            name, why = type(self.vector_store).__name__, f"{type(error).__name__}: {error}"
            message = f"the vector store, {name}, failed: {why}"
            raise RuntimeError(message) from error


def _with_ids(documents: Iterable[Document], ids: Iterable[str]) -> dict[str, Document]:
    """Return documents by the ids that the index gave them; of equal ids the last."""
    return {
        id: document.model_copy(update={"id": id})
        for id, document in zip(ids, documents, strict=True)
    }


def _check_written(ids: list[str], written: list[str]) -> None:
    if list(written) != ids:
        message = f"it stored documents under ids of its own, {written!r:.100}, not {ids!r:.100}"
        raise ValueError(message)


def _check_deleted(deleted: bool | None) -> None:
    if deleted is False:
        message = "it says that it did not delete"
        raise ValueError(message)
