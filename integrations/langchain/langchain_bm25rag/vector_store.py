"""BM25VectorStore, for all that LangChain builds on a vector store."""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, NoReturn, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import RecordManager
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from bm25rag import Analyzer, BM25Index, Hit
from bm25rag import Document as StoredDocument
from bm25rag.adapters import (
    Mode,
    OnDuplicate,
    Tokenizer,
    check_count,
    check_real,
    in_write_thread,
    read_hits,
)
from bm25rag.filters import Filter as ParsedFilter
from bm25rag.fusion import FusionMethod, fuse
from bm25rag.vectors import Vector
from langchain_bm25rag.aligning import align_records
from langchain_bm25rag.documents import read_documents, read_ids, read_texts, to_document, write
from langchain_bm25rag.filters import (
    Filter,
    Question,
    delete,
    is_filter_alone,
    narrow,
    passing,
    search,
)
from langchain_bm25rag.settings import (
    check_call,
    make_index,
    naming_preprocess_func,
    without_none,
)
from langchain_bm25rag.sparse import (
    RetrievalMode,
    SparseEmbeddings,
    aembed_query,
    awith_vectors,
    embed_query,
    read_embedding,
    read_mode,
    with_vectors,
)
from langchain_bm25rag.steps import arun, run
from langchain_bm25rag.storing import Stored
from langchain_bm25rag.threads import building, mirrors, pulled, reading, runs, streams, writing

# What calls take, as ``check_call`` says it.
_TAKES = (
    "k, filter, min_score, retrieval_mode, correct, expand and offset for each call, got {}: "
    "method, weights, rank_constant and fetch_k belong to the store's constructor"
)


class BM25VectorStore(Stored, VectorStore):
    """LangChain's ``VectorStore`` over a ``BM25Index``, without dense vectors.

    It finds the documents that contain a word of the query. It may share the index of a
    ``BM25Retriever``: ``BM25VectorStore(retriever.index)``.

    With ``sparse_embedding``, it stores a learned sparse vector beside each text that it adds,
    and also finds the documents whose vectors have a term of the query's.

    Parameters
    ----------
    index
        The index, shared; ``None`` for an empty one with the default analyzer.
    sparse_embedding
        What makes sparse vectors, such as ``FastEmbedSparse`` of langchain-qdrant; it is not saved.
    retrieval_mode
        What to search by: ``"bm25"``, ``"sparse"`` or ``"hybrid"``, which is both, fused; ``None``
        for ``"hybrid"`` with a ``sparse_embedding``, and ``"bm25"`` without.
    fetch_k, method, weights, rank_constant
        How ``"hybrid"`` fuses, as in ``BM25HybridRetriever``; the first weight is that of BM25.

    Examples
    --------
    >>> store = BM25VectorStore.from_texts(["A cat sat.", "Dogs run."], ids=["a", "b"])
    >>> [document.id for document in store.similarity_search("cats")]
    ['a']
    """

    def __init__(
        self,
        index: BM25Index | None = None,
        *,
        sparse_embedding: SparseEmbeddings | None = None,
        retrieval_mode: RetrievalMode | None = None,
        fetch_k: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
    ) -> None:
        if index is not None and not isinstance(index, BM25Index):
            message = f"index must be a BM25Index, got {type(index).__name__}"
            raise TypeError(message)
        fuse([[], []], method, weights, rank_constant=rank_constant)  # checks them
        self.index = BM25Index() if index is None else index
        self.sparse_embedding = read_embedding(sparse_embedding)
        if retrieval_mode is None:
            retrieval_mode = "bm25" if sparse_embedding is None else "hybrid"
        self.retrieval_mode = read_mode(retrieval_mode, sparse_embedding)
        self.fetch_k = check_count("fetch_k", fetch_k)
        self.method, self.weights, self.rank_constant = method, weights, rank_constant

    def __repr__(self) -> str:
        shown = [f"index={self.index!r}", f"retrieval_mode={self.retrieval_mode!r}"]
        if self.sparse_embedding is not None:
            shown.append(f"sparse_embedding={type(self.sparse_embedding).__name__}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # --- making ------------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | None = None,
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        analyzer: Analyzer | None = None,
        preprocess_func: Tokenizer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        sparse_embedding: SparseEmbeddings | None = None,
        retrieval_mode: RetrievalMode | None = None,
        fetch_k: int | None = None,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        **kwargs: Any,
    ) -> Self:
        """Index texts.

        Parameters
        ----------
        texts, metadatas, ids, analyzer, preprocess_func, bm25_params
            As in ``BM25Retriever.from_texts``, which also lists the exceptions.
        embedding
            Not used: there are no dense vectors. Other stores need one in this place.
        sparse_embedding, retrieval_mode, fetch_k, method, weights, rank_constant, **kwargs
            Other arguments of the constructor; ``None`` for the default of ``fetch_k``.

        Raises
        ------
        TypeError
            If ``embedding`` is anything else, such as metadata, which come second in a retriever.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        if embedding is not None and not isinstance(embedding, Embeddings):
            got = type(embedding).__name__
            message = (
                f"embedding must be an Embeddings or None, got {got}; metadatas come after it, and "
                "what makes sparse vectors is sparse_embedding"
            )
            raise TypeError(message)
        store = cls(
            make_index(analyzer, preprocess_func, bm25_params),
            sparse_embedding=sparse_embedding,
            retrieval_mode=retrieval_mode,
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            **without_none(fetch_k=fetch_k),
            **kwargs,
        )
        with naming_preprocess_func(preprocess_func):
            store.add_texts(texts, metadatas, **without_none(ids=ids))
        return store

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        analyzer: Analyzer | None = None,
        preprocess_func: Tokenizer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        sparse_embedding: SparseEmbeddings | None = None,
        retrieval_mode: RetrievalMode | None = None,
        fetch_k: int | None = None,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        **kwargs: Any,
    ) -> Self:
        """Index documents.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        embedding, ids, analyzer, preprocess_func, bm25_params
            As in ``from_texts``; ``ids`` stand for the documents' own.
        sparse_embedding, retrieval_mode, fetch_k, method, weights, rank_constant, **kwargs
            As in ``from_texts``.
        """
        store = cls.from_texts(
            [],
            embedding,
            analyzer=analyzer,
            preprocess_func=preprocess_func,
            bm25_params=bm25_params,
            fetch_k=fetch_k,
            sparse_embedding=sparse_embedding,
            retrieval_mode=retrieval_mode,
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            **kwargs,
        )
        with naming_preprocess_func(preprocess_func):
            store.add_documents(documents, **without_none(ids=ids))
        return store

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        mode: Mode = "r",
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
        analyzer: Analyzer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        sparse_embedding: SparseEmbeddings | None = None,
        retrieval_mode: RetrievalMode | None = None,
        fetch_k: int | None = None,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        **kwargs: Any,
    ) -> Self:
        """Open what ``save`` wrote, or any saved ``BM25Index``.

        Parameters
        ----------
        path
            The folder, or its URL for ``mode="r"``.
        mode
            ``"r"`` to search; ``refresh`` then loads later commits. ``"w"`` or ``"a"`` to write
            too: the folder is locked until ``close``, and made if it is missing; ``commit`` makes
            the changes durable, and ``with`` commits and closes.
        mmap
            Whether to map the files into memory rather than read them.
        tokenizer
            The ``preprocess_func`` that the index was made with, if any.
        verify
            Whether to check every byte on opening.
        untrusted
            Whether the folder comes from an untrusted source; see ``BM25Index.open``.
        timeout
            How many seconds to wait for another writer to close, >= 0.
        analyzer, bm25_params
            As in ``BM25Retriever.from_texts``: the settings of a new index. An existing one must
            have the same.
        sparse_embedding, retrieval_mode, fetch_k, method, weights, rank_constant, **kwargs
            Other arguments of the constructor, which are not saved.

        Raises
        ------
        StorageError
            If the folder holds no index, a damaged one, or one that ``untrusted`` refuses, or if
            another writer still has it open.
        TokenizerRequiredError
            If the index was made with a callable and ``tokenizer`` is missing.
        ValueError
            If the index was made with a different ``analyzer`` or ``bm25_params``.
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
            sparse_embedding=sparse_embedding,
            retrieval_mode=retrieval_mode,
            method=method,
            weights=weights,
            rank_constant=rank_constant,
            **without_none(fetch_k=fetch_k),
            **kwargs,
        )

    # --- writing -----------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        on_duplicate: OnDuplicate = "replace",
        **kwargs: Any,
    ) -> list[str]:
        """Add all texts, or none on error.

        Parameters
        ----------
        texts, metadatas, ids
            As in ``BM25Retriever.from_texts``, which also lists the exceptions.
        on_duplicate
            What to do where an id is there already: ``"replace"`` the document, ``"skip"`` the
            new one, or raise an ``"error"`` and write nothing.
        **kwargs
            Not accepted.

        Returns
        -------
        ids
            The id of each text, without those that were skipped.

        Raises
        ------
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        _refuse("add_texts", kwargs)
        return self._add(read_texts(texts, metadatas, ids), "metadatas", on_duplicate)

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        batch_size: int | None = None,
        on_duplicate: OnDuplicate = "replace",
        **kwargs: Any,
    ) -> list[str]:
        """Add all documents, or none on error.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        ids
            Ids in place of the documents' own.
        batch_size
            Not used: all are added in one step. LangChain's ``index()`` gives it.
        on_duplicate
            What to do where an id is there already: ``"replace"`` the document, ``"skip"`` the
            new one, or raise an ``"error"`` and write nothing.
        **kwargs
            Not accepted.

        Returns
        -------
        ids
            The id of each document, without those that were skipped.

        Raises
        ------
        TypeError
            If an element is not a document.
        ValueError
            If there are more or fewer ids than documents.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        _refuse("add_documents", kwargs)
        return self._add(read_documents(documents, ids), "documents", on_duplicate)

    @mirrors(add_texts, writing)
    async def aadd_texts(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        on_duplicate: OnDuplicate = "replace",
        **kwargs: Any,
    ) -> list[str]:
        """Run ``add_texts`` in a thread; ``texts`` may be an async iterable.

        ``aembed_documents`` of the ``sparse_embedding`` is awaited, if it has that.
        """
        _refuse("aadd_texts", kwargs)
        with pulled(texts) as given:
            return await self._aadd(read_texts(given, metadatas, ids), "metadatas", on_duplicate)

    @mirrors(add_documents, writing)
    async def aadd_documents(
        self,
        documents: Iterable[Document] | AsyncIterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        batch_size: int | None = None,
        on_duplicate: OnDuplicate = "replace",
        **kwargs: Any,
    ) -> list[str]:
        """Run ``add_documents`` in a thread; ``documents`` may be an async iterable.

        ``aembed_documents`` of the ``sparse_embedding`` is awaited, if it has that.
        """
        _refuse("aadd_documents", kwargs)
        with pulled(documents) as given:
            return await self._aadd(read_documents(given, ids), "documents", on_duplicate)

    @classmethod
    @streams(from_texts, building, add_texts)
    async def afrom_texts(  # type: ignore[empty-body]
        cls,
        texts: Iterable[str] | AsyncIterable[str],
        embedding: Embeddings | None = None,
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Run ``from_texts`` in a thread; ``texts`` may be an async iterable."""

    @classmethod
    @streams(from_documents, building, add_documents)
    async def afrom_documents(  # type: ignore[empty-body]
        cls,
        documents: Iterable[Document] | AsyncIterable[Document],
        embedding: Embeddings | None = None,
        **kwargs: Any,
    ) -> Self:
        """Run ``from_documents`` in a thread; ``documents`` may be an async iterable."""

    def _add(
        self, documents: Iterable[StoredDocument], source: str, on_duplicate: OnDuplicate
    ) -> list[str]:
        if self.sparse_embedding is not None:
            documents = with_vectors(self.sparse_embedding, documents)
        return write(self.index, documents, source, on_duplicate)

    @mirrors(_add, writing)
    async def _aadd(
        self, documents: Iterator[StoredDocument], source: str, on_duplicate: OnDuplicate
    ) -> list[str]:
        if not hasattr(self.sparse_embedding, "aembed_documents"):
            return await in_write_thread(self.index, self._add, documents, source, on_duplicate)
        given = await in_write_thread(self.index, list, documents)
        given = await awith_vectors(self.sparse_embedding, given)
        return await in_write_thread(self.index, write, self.index, given, source, on_duplicate)

    def delete(
        self,
        ids: Iterable[str | float] | None = None,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> bool:
        """Delete documents by their ids, by a filter or by both; unknown ids are ignored.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. ``None`` for all documents that the filter passes.
        filter
            As in searches; documents that it rejects stay.
        **kwargs
            Not accepted.

        Returns
        -------
        deleted
            True.

        Raises
        ------
        TypeError
            If ``ids`` is not an iterable of strings and numbers.
        ValueError
            If neither is given, or the filter rejects nothing; some stores delete everything then.
        """
        _refuse("delete", kwargs)
        delete(self.index, ids, filter)
        return True

    @runs(delete, writing)
    def adelete(self) -> None:
        """Run ``delete`` in a thread."""

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

    # --- reading -----------------------------------------------------------------

    def get_by_ids(self, ids: Iterable[str | float], /) -> list[Document]:
        """Return documents in the order of the ids; unknown ids are skipped.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.
        """
        return [to_document(found) for found in self.index.get(read_ids(ids))]

    @runs(get_by_ids, reading)
    def aget_by_ids(self) -> None:
        """Run ``get_by_ids`` in a thread."""

    def similarity_search(
        self,
        query: Question,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        retrieval_mode: RetrievalMode | None = None,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[Document]:
        """Find the best k documents that contain a word of the query, or a term of its vector.

        A subclass that overrides ``similarity_search_with_score`` changes all searches: this one,
        those with relevance scores, and their asynchronous twins.

        Parameters
        ----------
        query
            A text, or terms and their weights, in ``"bm25"`` mode. A blank text and a filter ask
            for all documents that pass, in document order.
        k
            How many at most, >= 0.
        filter
            A dict in bm25rag's filter language, a set of ids, or a callable on the document.
        min_score
            The lowest score that is returned; in ``"hybrid"`` mode, of the fused scores.
        retrieval_mode
            As in the constructor; ``None`` for the mode given there.
        correct
            Whether to correct words that no document has, as ``BM25Index.correct`` does, in
            ``"bm25"`` mode.
        expand
            Whether to add words of the best documents, as ``BM25Index.expand`` does, in ``"bm25"``
            mode.
        offset
            How many of the best documents to leave out: the next page begins at ``offset + k``.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If ``k`` is negative, ``min_score`` NaN, or the mode unknown, or if the mode needs a
            ``sparse_embedding`` and there is none, or does without what is asked for.
        FilterError
            If the filter is malformed.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        options = without_none(
            filter=filter,
            min_score=min_score,
            retrieval_mode=retrieval_mode,
            correct=correct or None,
            expand=expand or None,
            offset=offset or None,
        )
        found = self.similarity_search_with_score(query, k, **options, **kwargs)
        return [document for document, _ in found]

    @mirrors(similarity_search, reading)
    async def asimilarity_search(
        self, query: Question, k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Run ``similarity_search`` in a thread; an ``aembed_query`` is awaited outside."""
        found = await self.asimilarity_search_with_score(query, k, **kwargs)
        return [document for document, _ in found]

    def similarity_search_with_score(
        self,
        query: Question,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        retrieval_mode: RetrievalMode | None = None,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Find the same with their scores, of which the highest is the best.

        Parameters
        ----------
        query, k, filter, min_score, retrieval_mode, correct, expand, offset, **kwargs
            As in ``similarity_search``, which also lists the exceptions.
        """
        changes = {"correct": correct, "expand": expand}
        mode = self._read_call(query, retrieval_mode, changes, kwargs)
        embedding = None if mode == "bm25" else self.sparse_embedding
        vector = None if embedding is None else embed_query(embedding, str(query))
        return self._search(query, vector, mode, k, filter, min_score, offset, changes)

    @mirrors(similarity_search_with_score, reading)
    async def asimilarity_search_with_score(
        self,
        query: Question,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        retrieval_mode: RetrievalMode | None = None,
        correct: bool = False,
        expand: bool = False,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Run ``similarity_search_with_score`` in a thread; ``aembed_query`` is awaited outside."""
        changes = {"correct": correct, "expand": expand}
        mode = self._read_call(query, retrieval_mode, changes, kwargs)
        embedding = None if mode == "bm25" else self.sparse_embedding
        vector = None if embedding is None else await aembed_query(embedding, str(query))
        return await run_in_executor(
            None, self._search, query, vector, mode, k, filter, min_score, offset, changes
        )

    def _read_call(
        self,
        query: Question,
        mode: RetrievalMode | None,
        changes: Mapping[str, bool],
        unknown: Mapping[str, Any],
    ) -> RetrievalMode:
        check_call(type(self).__name__, query, unknown, _TAKES)
        mode = read_mode(self.retrieval_mode if mode is None else mode, self.sparse_embedding)
        asked = [name for name, wanted in changes.items() if wanted]
        if not isinstance(query, str):
            asked.append("a query of weights")
        if asked and mode != "bm25":
            message = f"{' and '.join(asked)} needs retrieval_mode='bm25', got {mode!r}"
            raise ValueError(message)
        return mode

    def _search(
        self,
        query: Question,
        vector: Vector | None,
        mode: RetrievalMode,
        k: int,
        filter: Filter | None,
        min_score: float | None,
        offset: int,
        changes: Mapping[str, bool],
    ) -> list[tuple[Document, float]]:
        if vector is None:
            hits = search(self.index, query, k, filter, min_score, offset=offset, **changes)
            return [(to_document(hit), hit.score) for hit in hits]
        index, parsed = narrow(self.index, filter)
        if is_filter_alone(query, parsed):
            hits = passing(index, parsed, k, min_score, offset)
        elif mode == "sparse":
            hits = index.vectors.search(vector, k, parsed, min_score=min_score, offset=offset)
            read_hits(hits, "text", "metadata")
        else:
            hits = self._search_both(index, query, vector, k, parsed, min_score, offset)
        return [(to_document(hit), hit.score) for hit in hits]

    def _search_both(
        self,
        index: BM25Index,
        query: Question,
        vector: Vector,
        k: int,
        filter: ParsedFilter | None,
        min_score: float | None,
        offset: int,
    ) -> list[Hit]:
        floor = -math.inf
        if min_score is not None:
            floor = check_real("min_score", min_score, -math.inf, math.inf)
        hits = index.search_hybrid(
            query,
            vector,
            k,
            filter,
            fetch_k=self.fetch_k,
            method=self.method,
            weights=self.weights,
            rank_constant=self.rank_constant,
            offset=offset,
        )
        read_hits(hits, "text", "metadata")  # of all, before some are left out
        return [hit for hit in hits if hit.score >= floor]

    # --- what needs dense vectors, or a scale ------------------------------------

    @mirrors(VectorStore.search, reading)
    async def asearch(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """Run ``search`` in a thread, or what that calls."""
        return await super().asearch(query, search_type, **kwargs)

    @mirrors(VectorStore.similarity_search_with_relevance_scores, reading)
    async def asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Run ``similarity_search_with_relevance_scores`` in a thread, or what that calls."""
        return await super().asimilarity_search_with_relevance_scores(query, k, **kwargs)

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        largest = self._largest_score(kwargs.get("retrieval_mode"))
        found = self.similarity_search_with_score(query, k, **kwargs)
        return [(document, score / largest) for document, score in found]

    @mirrors(_similarity_search_with_relevance_scores, reading)
    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        largest = self._largest_score(kwargs.get("retrieval_mode"))
        found = await self.asimilarity_search_with_score(query, k, **kwargs)
        return [(document, score / largest) for document, score in found]

    def _largest_score(self, mode: RetrievalMode | None) -> float:
        """Return the score of a document that is the best of both rankings; the lowest is 0."""
        if (mode or self.retrieval_mode) == "hybrid" and self.method == "minmax":
            by_words, by_vectors = (1.0, 1.0) if self.weights is None else self.weights
            return float(by_words + by_vectors)
        message = (
            "there is a relevance between 0 and 1 only in retrieval_mode 'hybrid' with method "
            "'minmax': scores of BM25 and of sparse vectors have no upper bound, and mean "
            "something within one query only. Use min_score, or similarity_search_with_score"
        )
        raise NotImplementedError(message)

    def similarity_search_by_vector(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no dense vectors."""
        _no_vectors("similarity_search_by_vector")

    def max_marginal_relevance_search(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no dense vectors."""
        _no_vectors("max_marginal_relevance_search")

    def max_marginal_relevance_search_by_vector(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no dense vectors."""
        _no_vectors("max_marginal_relevance_search_by_vector")


def _no_vectors(method: str) -> NoReturn:
    message = (
        f"{method} needs dense vectors, and a BM25VectorStore has none: use similarity_search, "
        "or this method of a vector store beside it"
    )
    raise NotImplementedError(message)


def _refuse(method: str, kwargs: Mapping[str, Any]) -> None:
    if kwargs:
        message = f"{method} does not take {', '.join(kwargs)}"
        raise TypeError(message)
