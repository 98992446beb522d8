"""BM25Retriever, for chains, agents and ensembles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor

from bm25rag import Analyzer
from bm25rag.adapters import Tokenizer, in_write_thread
from langchain_bm25rag.documents import (
    add_documents,
    read_ids,
    read_texts,
    to_document,
    write,
)
from langchain_bm25rag.searching import SearchingBM25
from langchain_bm25rag.settings import make_index, naming_preprocess_func, with_variant
from langchain_bm25rag.threads import in_build_thread


class BM25Retriever(SearchingBM25):
    """An exact, updatable, durable BM25 retriever.

    It returns only documents that contain a term of the query, as new objects equal to those
    that were stored. ``k``, ``filter`` and ``min_score`` are arguments of the constructor, and of
    each call of ``invoke``, ``ainvoke``, ``batch``, ``abatch`` and ``bind``, where ``None`` means
    the constructor's.

    Examples
    --------
    >>> retriever = BM25Retriever.from_texts(["A cat sat.", "Dogs run."], ids=["a", "b"], k=3)
    >>> [document.id for document in retriever.invoke("cats")]
    ['a']
    """

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        ids: Iterable[str | float | None] | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        *,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Index texts.

        Parameters
        ----------
        texts
            Any iterable of texts; it may be empty.
        metadatas
            A dict of JSON values, dates and datetimes for each text, or ``None``; an empty list
            means no metadata. The page "Metadata" of bm25rag lists what else is accepted.
        ids
            An id for each text, or ``None`` for a UUID; an empty list means no ids. Of equal
            ids the last wins. A number becomes a string.
        bm25_params
            ``k1``, ``b``, ``variant``, ``delta`` and ``delta_on``, as in ``BM25Index``.
        preprocess_func
            A callable from text to a list or tuple of terms, in place of an analyzer.
        analyzer
            How texts become terms; ``None`` for ``Analyzer()``, English.
        bm25_variant
            ``"okapi"`` or ``"plus"``, the names of langchain-community's class, for the default
            variant or ``"bm25+"``.
        **kwargs
            Other fields: ``k``, ``filter``, ``min_score``, ``score_key``, ``id_key``, ``tags``, ...

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type.
        ValueError
            If the iterables differ in length, or a parameter is not supported.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        """
        params = with_variant(bm25_params, bm25_variant)
        retriever = cls(index=make_index(analyzer, preprocess_func, params), **kwargs)
        with naming_preprocess_func(preprocess_func):
            write(retriever.index, read_texts(texts, metadatas, ids), "metadatas")
        return retriever

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Index documents.

        Parameters
        ----------
        documents
            Any iterable; it may be empty. A document without an id gets a UUID.
        bm25_params, preprocess_func, analyzer, bm25_variant, **kwargs
            As in ``from_texts``, which also lists the exceptions.
        """
        params = with_variant(bm25_params, bm25_variant)
        retriever = cls(index=make_index(analyzer, preprocess_func, params), **kwargs)
        with naming_preprocess_func(preprocess_func):
            add_documents(retriever.index, documents)
        return retriever

    @classmethod
    async def afrom_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any] | None] | None = None,
        ids: Iterable[str | float | None] | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        *,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Run ``from_texts`` in a thread."""
        return await in_build_thread(
            cls.from_texts,
            texts,
            metadatas,
            ids,
            bm25_params,
            preprocess_func,
            analyzer=analyzer,
            bm25_variant=bm25_variant,
            **kwargs,
        )

    @classmethod
    async def afrom_documents(
        cls,
        documents: Iterable[Document],
        *,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Run ``from_documents`` in a thread."""
        return await in_build_thread(
            cls.from_documents,
            documents,
            bm25_params=bm25_params,
            preprocess_func=preprocess_func,
            analyzer=analyzer,
            bm25_variant=bm25_variant,
            **kwargs,
        )

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add all documents, or none on error, replacing those with the same ids.

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
        ReadOnlyError
            If the index was opened for reading.
        """
        return add_documents(self.index, documents)

    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """Run ``add_documents`` in a thread."""
        return await in_write_thread(self.index, self.add_documents, documents)

    def delete(self, ids: Iterable[str | float]) -> int:
        """Delete documents; unknown ids are ignored.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.

        Returns
        -------
        count
            How many documents were deleted.

        Raises
        ------
        TypeError
            If ``ids`` is not an iterable of strings and numbers.
        ReadOnlyError
            If the index was opened for reading.
        """
        return self.index.delete(read_ids(ids))

    async def adelete(self, ids: Iterable[str | float]) -> int:
        """Run ``delete`` in a thread."""
        return await in_write_thread(self.index, self.delete, ids)

    def get_by_ids(self, ids: Iterable[str | float]) -> list[Document]:
        """Return documents in the order of the ids; unknown ids are skipped.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.

        Raises
        ------
        TypeError
            If ``ids`` is not an iterable of strings and numbers.
        """
        return [to_document(found) for found in self.index.get(read_ids(ids))]

    async def aget_by_ids(self, ids: Iterable[str | float]) -> list[Document]:
        """Run ``get_by_ids`` in a thread."""
        return await run_in_executor(None, self.get_by_ids, ids)
