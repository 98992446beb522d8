"""BM25VectorStore, for all that LangChain builds on a vector store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from bm25rag import Analyzer, BM25Index
from bm25rag import Document as StoredDocument
from bm25rag.adapters import Tokenizer, check_count, check_real, in_write_thread, read_hits
from bm25rag.fusion import FusionMethod, fuse
from bm25rag.vectors import Vector
from langchain_bm25rag.documents import read_documents, read_ids, read_texts, to_document, write
from langchain_bm25rag.filters import Filter, narrow
from langchain_bm25rag.settings import check_call, make_index, naming_preprocess_func
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
from langchain_bm25rag.storing import Stored
from langchain_bm25rag.threads import in_build_thread


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
        **kwargs: Any,
    ) -> Self:
        """Index texts.

        Parameters
        ----------
        texts, metadatas, ids, analyzer, preprocess_func, bm25_params
            As in ``BM25Retriever.from_texts``, which also lists the exceptions.
        embedding
            Not used: there are no dense vectors. Other stores need one in this place.
        **kwargs
            Other arguments of the constructor: ``sparse_embedding``, ``retrieval_mode``, ...

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
        store = cls(make_index(analyzer, preprocess_func, bm25_params), **kwargs)
        with naming_preprocess_func(preprocess_func):
            store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    def from_documents(
        cls, documents: Iterable[Document], embedding: Embeddings | None = None, **kwargs: Any
    ) -> Self:
        """Index documents.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        embedding, **kwargs
            As in ``from_texts``.
        """
        ids = kwargs.pop("ids", None)
        store = cls.from_texts([], embedding, **kwargs)
        with naming_preprocess_func(kwargs.get("preprocess_func")):
            store.add_documents(documents, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | None = None,
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Run ``from_texts`` in a thread."""
        return await in_build_thread(cls.from_texts, texts, embedding, metadatas, ids=ids, **kwargs)

    @classmethod
    async def afrom_documents(
        cls, documents: Iterable[Document], embedding: Embeddings | None = None, **kwargs: Any
    ) -> Self:
        """Run ``from_documents`` in a thread."""
        return await in_build_thread(cls.from_documents, documents, embedding, **kwargs)

    # --- writing -----------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add all texts, or none on error, replacing documents with the same ids.

        Parameters
        ----------
        texts, metadatas, ids
            As in ``BM25Retriever.from_texts``, which also lists the exceptions.
        **kwargs
            Not accepted.

        Returns
        -------
        ids
            The id of each text.

        Raises
        ------
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        _refuse("add_texts", kwargs)
        return self._add(read_texts(texts, metadatas, ids), "metadatas")

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add all documents, or none on error, replacing those with the same ids.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        ids
            Ids in place of the documents' own.
        batch_size
            Not used: all are added in one step. LangChain's ``index()`` gives it.
        **kwargs
            Not accepted.

        Returns
        -------
        ids
            The id of each document.

        Raises
        ------
        TypeError
            If an element is not a document.
        ValueError
            If there are more or fewer ids than documents.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        _refuse("add_documents", kwargs)
        return self._add(read_documents(documents, ids), "documents")

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Run ``add_texts`` in a thread; ``aembed_documents`` is awaited outside."""
        _refuse("aadd_texts", kwargs)
        return await self._aadd(read_texts(texts, metadatas, ids), "metadatas")

    async def aadd_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Run ``add_documents`` in a thread; ``aembed_documents`` is awaited outside."""
        _refuse("aadd_documents", kwargs)
        return await self._aadd(read_documents(documents, ids), "documents")

    def _add(self, documents: Iterable[StoredDocument], source: str) -> list[str]:
        if self.sparse_embedding is not None:
            documents = with_vectors(self.sparse_embedding, documents)
        return write(self.index, documents, source)

    async def _aadd(self, documents: Iterator[StoredDocument], source: str) -> list[str]:
        if not hasattr(self.sparse_embedding, "aembed_documents"):
            return await in_write_thread(self.index, self._add, documents, source)
        given = await in_write_thread(self.index, list, documents)
        given = await awith_vectors(self.sparse_embedding, given)
        return await in_write_thread(self.index, write, self.index, given, source)

    def delete(self, ids: Iterable[str | float] | None = None, **kwargs: Any) -> bool:
        """Delete documents; unknown ids are ignored.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.
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
            If no ids are given; some stores delete everything then.
        """
        _refuse("delete", kwargs)
        if ids is None:
            message = (
                "ids must be given; an empty list deletes nothing, "
                "and store.index.ids() are those of all documents"
            )
            raise ValueError(message)
        self.index.delete(read_ids(ids))
        return True

    async def adelete(self, ids: Iterable[str | float] | None = None, **kwargs: Any) -> bool:
        """Run ``delete`` in a thread."""
        return await in_write_thread(self.index, self.delete, ids, **kwargs)

    # --- reading -----------------------------------------------------------------

    def get_by_ids(self, ids: Iterable[str | float], /) -> list[Document]:
        """Return documents in the order of the ids; unknown ids are skipped.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.
        """
        return [to_document(found) for found in self.index.get(read_ids(ids))]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        retrieval_mode: RetrievalMode | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Find the best k documents that contain a word of the query, or a term of its vector.

        Parameters
        ----------
        query
            A text.
        k
            How many at most, >= 0.
        filter
            A dict in bm25rag's filter language, a set of ids, or a callable on the document.
        min_score
            The lowest score that is returned; in ``"hybrid"`` mode, of the fused scores.
        retrieval_mode
            As in the constructor; ``None`` for the mode given there.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If ``k`` is negative, ``min_score`` NaN, or the mode unknown, or if the mode needs a
            ``sparse_embedding`` and there is none.
        FilterError
            If the filter is malformed.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        found = self.similarity_search_with_score(
            query, k, filter=filter, min_score=min_score, retrieval_mode=retrieval_mode, **kwargs
        )
        return [document for document, _ in found]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Run ``similarity_search`` in a thread; ``aembed_query`` is awaited outside."""
        found = await self.asimilarity_search_with_score(query, k, **kwargs)
        return [document for document, _ in found]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        retrieval_mode: RetrievalMode | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Find the same with their scores, of which the highest is the best.

        Parameters
        ----------
        query, k, filter, min_score, retrieval_mode, **kwargs
            As in ``similarity_search``, which also lists the exceptions.
        """
        mode = self._read_call(query, retrieval_mode, kwargs)
        embedding = None if mode == "bm25" else self.sparse_embedding
        vector = None if embedding is None else embed_query(embedding, query)
        return self._search(query, vector, mode, k, filter, min_score)

    async def asimilarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        retrieval_mode: RetrievalMode | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Run ``similarity_search_with_score`` in a thread; ``aembed_query`` is awaited outside."""
        mode = self._read_call(query, retrieval_mode, kwargs)
        embedding = None if mode == "bm25" else self.sparse_embedding
        vector = None if embedding is None else await aembed_query(embedding, query)
        return await run_in_executor(None, self._search, query, vector, mode, k, filter, min_score)

    def _read_call(
        self, query: str, mode: RetrievalMode | None, unknown: Mapping[str, Any]
    ) -> RetrievalMode:
        takes = "k, filter, min_score and retrieval_mode"
        check_call(type(self).__name__, query, unknown, takes)
        return read_mode(self.retrieval_mode if mode is None else mode, self.sparse_embedding)

    def _search(
        self,
        query: str,
        vector: Vector | None,
        mode: RetrievalMode,
        k: int,
        filter: Filter | None,
        min_score: float | None,
    ) -> list[tuple[Document, float]]:
        floor = -math.inf
        if min_score is not None:
            floor = check_real("min_score", min_score, -math.inf, math.inf)
        index, parsed = narrow(self.index, filter)
        if vector is None:
            hits = index.search(query, k, parsed, min_score)
        elif mode == "sparse":
            hits = index.vectors.search(vector, k, parsed, min_score)
        else:
            hits = index.search_hybrid(
                query,
                vector,
                k,
                parsed,
                fetch_k=self.fetch_k,
                method=self.method,
                weights=self.weights,
                rank_constant=self.rank_constant,
            )
        read_hits(hits, "text", "metadata")  # of all, before some are left out
        return [(to_document(hit), hit.score) for hit in hits if hit.score >= floor]

    # --- what needs dense vectors, or a scale ------------------------------------

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        largest = self._largest_score(kwargs.get("retrieval_mode"))
        found = self.similarity_search_with_score(query, k, **kwargs)
        return [(document, score / largest) for document, score in found]

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
