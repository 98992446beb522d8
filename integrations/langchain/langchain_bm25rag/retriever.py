"""BM25Retriever, for chains, agents and ensembles."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from typing import Any, Self, Unpack

from langchain_core.documents import Document

from bm25rag import Analyzer
from bm25rag.adapters import OnDuplicate, Tokenizer
from langchain_bm25rag.awaiting import awaited, building, streams, writing
from langchain_bm25rag.documents import (
    Ids,
    Metadatas,
    NewIds,
    read_documents,
    read_ids,
    read_texts,
    write,
)
from langchain_bm25rag.filters import Filter, delete
from langchain_bm25rag.searching import Fields, SearchingBM25
from langchain_bm25rag.settings import Making


class MakingFields(Making, Fields):
    """What makes an index, and fields."""


class BM25Retriever(SearchingBM25):
    """An exact, updatable, durable BM25 retriever.

    It returns only documents that contain a term of the query, as new objects equal to those
    that were stored. ``k``, ``filter``, ``min_score``, ``correct``, ``expand``, ``offset`` and
    ``parse_query`` are arguments of the constructor, and of each call of ``invoke``, ``ainvoke``,
    ``batch``, ``abatch`` and ``bind``, where ``None`` means the constructor's. A question is a
    text, a dict of terms and their weights, or a ``bm25rag.Query``; a blank text with a filter
    returns all that passes, in document order.

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
        metadatas: Metadatas | None = None,
        ids: NewIds | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        *,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        **fields: Unpack[Fields],
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
            ``k1``, ``b``, ``variant``, ``delta``, ``delta_on`` and ``fields``, as in
            ``BM25Index``; the fields of a document are its metadata by their names.
        preprocess_func
            A callable from text to a list or tuple of terms, in place of an analyzer.
        analyzer
            How texts become terms; ``None`` for ``Analyzer()``, English.
        bm25_variant
            ``"okapi"`` or ``"plus"``, the names of langchain-community's class, for the default
            variant or ``"bm25+"``.
        k, filter, ...
            The fields.

        Raises
        ------
        TypeError, ValueError, MetadataError
            If an argument or an element has the wrong type, the iterables differ in length, a
            parameter is not supported, or metadata cannot be stored; the message names row,
            document and key.
        """
        retriever = cls._made(analyzer, preprocess_func, bm25_params, bm25_variant, **fields)
        write(retriever.index, read_texts(texts, metadatas, ids), "metadatas")
        return retriever

    @classmethod
    def from_documents(cls, documents: Iterable[Document], **options: Unpack[MakingFields]) -> Self:
        """Index documents, any iterable; a document without an id gets a UUID.

        The keywords are those of ``from_texts``, which also lists the exceptions.
        """
        retriever = cls._made(**options)
        retriever.add_documents(documents)
        return retriever

    def add_documents(
        self, documents: Iterable[Document], *, on_duplicate: OnDuplicate = "replace"
    ) -> list[str]:
        """Add all documents, or none on error; return the id of each that was not skipped.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        on_duplicate
            What to do where an id is there already: ``"replace"`` the document, ``"skip"`` the
            new one, or raise an ``"error"`` and write nothing.

        Raises
        ------
        TypeError, MetadataError, DuplicateIdError, ReadOnlyError
            If an element is not a document, metadata cannot be stored (the message names row,
            document and key), an id is there already and ``on_duplicate`` is ``"error"``, or the
            index was opened for reading.
        """
        return write(self.index, read_documents(documents), "documents", on_duplicate)

    @streams(add_documents, writing)
    async def aadd_documents(  # type: ignore[empty-body]
        self,
        documents: Iterable[Document] | AsyncIterable[Document],
        *,
        on_duplicate: OnDuplicate = "replace",
    ) -> list[str]:
        """Do what ``add_documents`` does; ``documents`` may be an async iterable."""

    @classmethod
    @streams(from_texts, building)
    async def afrom_texts(  # type: ignore[empty-body]
        cls, texts: Iterable[str] | AsyncIterable[str], *args: Any, **kwargs: Any
    ) -> Self:
        """Do what ``from_texts`` does; ``texts`` may be an async iterable."""

    @classmethod
    @streams(from_documents, building, add_documents)
    async def afrom_documents(  # type: ignore[empty-body]
        cls,
        documents: Iterable[Document] | AsyncIterable[Document],
        **options: Unpack[MakingFields],
    ) -> Self:
        """Do what ``from_documents`` does; ``documents`` may be an async iterable."""

    def delete(self, ids: Ids | None = None, *, filter: Filter | None = None) -> list[str]:
        """Delete documents by their ids, by a filter or by both; return the ids of those there are.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. ``None`` for all documents that the filter passes.
        filter
            As in searches; documents that it rejects stay.

        Raises
        ------
        TypeError, ValueError, ReadOnlyError
            If ``ids`` is not an iterable of strings and numbers, if there are none, and the filter
            rejects nothing (some stores delete everything then), or if the index was opened for
            reading.
        """
        given = None if ids is None and filter is not None else read_ids(ids)
        return delete(self.index, given, filter)

    adelete = awaited(delete, writing)
