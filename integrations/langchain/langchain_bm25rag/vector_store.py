"""BM25VectorStore, for all that LangChain builds on a vector store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from bm25rag import Analyzer, BM25Index, Hit
from bm25rag.adapters import Tokenizer, in_write_thread, read_hits
from langchain_bm25rag.documents import add_documents, add_texts, read_ids, to_document
from langchain_bm25rag.filters import Filter, search
from langchain_bm25rag.settings import check_call, make_index, naming_preprocess_func
from langchain_bm25rag.storing import Stored
from langchain_bm25rag.threads import in_build_thread


class BM25VectorStore(Stored, VectorStore):
    """LangChain's ``VectorStore`` over a ``BM25Index``, without vectors.

    It finds the documents that contain a word of the query. It may share the index of a
    ``BM25Retriever``: ``BM25VectorStore(retriever.index)``.

    Parameters
    ----------
    index
        The index, shared; ``None`` for an empty one with the default analyzer.

    Examples
    --------
    >>> store = BM25VectorStore.from_texts(["A cat sat.", "Dogs run."], ids=["a", "b"])
    >>> [document.id for document in store.similarity_search("cats")]
    ['a']
    """

    def __init__(self, index: BM25Index | None = None) -> None:
        if index is not None and not isinstance(index, BM25Index):
            message = f"index must be a BM25Index, got {type(index).__name__}"
            raise TypeError(message)
        self.index = BM25Index() if index is None else index

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
            Not used: there are no vectors. Other stores need one in this place.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If ``embedding`` is anything else, such as metadata, which come second in a retriever.
        """
        _refuse("from_texts", kwargs)
        if embedding is not None and not isinstance(embedding, Embeddings):
            got = type(embedding).__name__
            message = f"embedding must be an Embeddings or None, got {got}; metadatas come after it"
            raise TypeError(message)
        store = cls(make_index(analyzer, preprocess_func, bm25_params))
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
        """
        _refuse("add_texts", kwargs)
        return add_texts(self.index, texts, metadatas, ids)

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
        """
        _refuse("add_documents", kwargs)
        return add_documents(self.index, documents, ids)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        ids: Iterable[str | float | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Run ``add_texts`` in a thread."""
        return await in_write_thread(
            self.index, self.add_texts, texts, metadatas, ids=ids, **kwargs
        )

    async def aadd_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: Iterable[str | float | None] | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Run ``add_documents`` in a thread."""
        return await in_write_thread(self.index, self.add_documents, documents, ids=ids, **kwargs)

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
        **kwargs: Any,
    ) -> list[Document]:
        """Find the best k documents that contain a word of the query.

        Parameters
        ----------
        query
            A text.
        k
            How many at most, >= 0.
        filter
            A dict in bm25rag's filter language, a set of ids, or a callable on the document.
        min_score
            The lowest score that is returned.
        **kwargs
            Not accepted.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If ``k`` is negative or ``min_score`` NaN.
        FilterError
            If the filter is malformed.
        """
        found = self._search(query, k, filter, min_score, kwargs)
        return [to_document(hit) for hit in found]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Filter | None = None,
        min_score: float | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Find the same with their scores, of which the highest is the best.

        Parameters
        ----------
        query, k, filter, min_score, **kwargs
            As in ``similarity_search``, which also lists the exceptions.
        """
        found = self._search(query, k, filter, min_score, kwargs)
        return [(to_document(hit), hit.score) for hit in found]

    def _search(
        self,
        query: str,
        k: int,
        filter: Filter | None,
        min_score: float | None,
        unknown: Mapping[str, Any],
    ) -> list[Hit]:
        check_call(type(self).__name__, query, unknown)
        hits = search(self.index, query, k, filter, min_score)
        read_hits(hits, "text", "metadata")
        return hits

    # --- what needs vectors, or a scale ------------------------------------------

    def _similarity_search_with_relevance_scores(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        message = (
            "BM25 has no relevance between 0 and 1: its scores have no upper bound, and mean "
            "something within one query only. Use min_score, or similarity_search_with_score"
        )
        raise NotImplementedError(message)

    async def _asimilarity_search_with_relevance_scores(
        self, *_args: Any, **_kwargs: Any
    ) -> NoReturn:
        self._similarity_search_with_relevance_scores()

    def similarity_search_by_vector(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no vectors."""
        _no_vectors("similarity_search_by_vector")

    def max_marginal_relevance_search(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no vectors."""
        _no_vectors("max_marginal_relevance_search")

    def max_marginal_relevance_search_by_vector(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no vectors."""
        _no_vectors("max_marginal_relevance_search_by_vector")


def _no_vectors(method: str) -> NoReturn:
    message = (
        f"{method} needs vectors, and a BM25VectorStore has none: use similarity_search, "
        "or this method of a vector store beside it"
    )
    raise NotImplementedError(message)


def _refuse(method: str, kwargs: Mapping[str, Any]) -> None:
    if kwargs:
        message = f"{method} does not take {', '.join(kwargs)}"
        raise TypeError(message)
