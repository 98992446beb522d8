"""Between LangChain's documents and bm25rag's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee
from operator import itemgetter
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag import Document as StoredDocument
from bm25rag.errors import MetadataError


def to_document(found: StoredDocument | Hit) -> Document:
    """Make a LangChain document of a stored one.

    Raises
    ------
    ValueError
        If the index does not hold the document's text.
    """
    if found.text is None:
        message = (
            f"document {found.id!r} has no text to return: it was added to the BM25Index "
            "with store_text=False or as a list of terms"
        )
        raise ValueError(message)
    return Document(id=found.id, page_content=found.text, metadata=found.metadata)


def add_documents(index: BM25Index, documents: Iterable[Document]) -> list[str]:
    """Add documents, in place of those with the same id; all of them or none.

    Parameters
    ----------
    index
        Where to.
    documents
        Any iterable, which is read once. A document without an id gets a UUID.

    Returns
    -------
    ids
        The id of each document.

    Raises
    ------
    TypeError
        If an element is no document.
    MetadataError
        If metadata cannot be stored; the message names document and key.
    """
    rows = tee(_rows(_elements("documents", documents, Document)), 3)
    texts, ids, metadata = (map(itemgetter(column), rows[column]) for column in range(3))
    return _add(index, texts, ids, metadata, "documents")


def add_texts(
    index: BM25Index,
    texts: Iterable[str],
    metadatas: Iterable[dict[str, Any] | None] | None,
    ids: Iterable[str | None] | None,
) -> list[str]:
    """Add texts; otherwise as ``add_documents``.

    Parameters
    ----------
    index
        Where to.
    texts
        Any iterable of texts.
    metadatas
        A dict for each, or None.
    ids
        An id for each, or None for a UUID.

    Raises
    ------
    TypeError
        If an element has the wrong type.
    ValueError
        If the iterables differ in length.
    """
    given, counted = tee(_elements("texts", texts, str))
    named = (None for _ in counted) if ids is None else _elements("ids", ids, (str, type(None)))
    return _add(index, given, named, metadatas, "texts")


def _add(
    index: BM25Index,
    texts: Iterable[str],
    ids: Iterable[str | None],
    metadata: Iterable[dict[str, Any] | None] | None,
    what: str,
) -> list[str]:
    named: list[str] = []

    def name() -> Iterator[str]:
        for id in ids:
            named.append(str(uuid4()) if id is None else id)
            yield named[-1]

    try:
        index.add(texts, name(), metadata, on_duplicate="replace")
    except MetadataError as error:
        # The id may be one that the caller has never seen.
        error.add_note(f"This is {what}[{len(named) - 1}].")
        raise
    return named


def _rows(documents: Iterable[Document]) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    for document in documents:
        yield document.page_content, document.id, document.metadata


def _elements(name: str, values: Iterable[Any], kind: Any) -> Iterator[Any]:
    """Check now that ``values`` is iterable, and later that its elements are of a kind."""
    expected = kind.__name__ if isinstance(kind, type) else "str or None"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        message = f"{name} must be an iterable of {expected}, got {type(values).__name__}"
        raise TypeError(message)

    def check() -> Iterator[Any]:
        for number, value in enumerate(values):
            if not isinstance(value, kind):
                message = f"{name}[{number}] must be a {expected}, got {type(value).__name__}"
                raise TypeError(message)
            yield value

    return check()
