"""Converts LangChain's documents to bm25rag's, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from numbers import Number
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag import Document as StoredDocument
from bm25rag.adapters import check_sequence
from bm25rag.errors import MetadataError

_END = object()

# The fields of a document that are not the index's.
_REST = {
    name: value
    for name, value in Document(id="", page_content="", metadata={}).__dict__.items()
    if name not in {"id", "page_content", "metadata"}
}
_set = object.__setattr__


def to_document(found: StoredDocument | Hit) -> Document:
    """Convert a stored document to a LangChain document.

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
    # As ``model_construct`` makes a document that needs no check, in a third of its time.
    document = Document.__new__(Document)
    _set(
        document,
        "__dict__",
        {"id": found.id, "metadata": found.metadata, "page_content": found.text, **_REST},
    )
    _set(document, "__pydantic_fields_set__", {"id", "page_content", "metadata"})
    _set(document, "__pydantic_extra__", None)
    _set(document, "__pydantic_private__", None)
    return document


def add_documents(index: BM25Index, documents: Iterable[Document]) -> list[str]:
    """Add all documents, or none on error, replacing those with the same ids.

    Parameters
    ----------
    index
        The index to add to.
    documents
        As in ``read_documents``.

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
    """
    return write(index, read_documents(documents))


def read_documents(
    documents: Iterable[Document], ids: Iterable[str | float | None] | None = None
) -> Iterator[StoredDocument]:
    """Return documents as they are stored; what is wrong raises as they are iterated.

    Parameters
    ----------
    documents
        Any iterable; it is read once. A document without an id gets a UUID.
    ids
        Ids in place of the documents' own, as for ``read_texts``.

    Raises
    ------
    TypeError
        If an element is not a document, or an id neither a string nor a number.
    ValueError
        If there are more or fewer ids than documents.
    """
    found = _from_documents(iter(check_sequence("documents", documents, "Document")))
    if ids is not None:
        found = _with_ids(found, iter(check_sequence("ids", ids, "str")))
    return found


def read_texts(
    texts: Iterable[str],
    metadatas: Iterable[Mapping[str, Any] | None] | None,
    ids: Iterable[str | float | None] | None,
) -> Iterator[StoredDocument]:
    """Return texts as ``read_documents`` returns documents.

    Parameters
    ----------
    texts
        Any iterable of texts.
    metadatas
        A dict or None for each text; an empty list means no metadata.
    ids
        An id for each text, or None for a UUID; an empty list means no ids. A number becomes a
        string, as in LangChain's ``Document``.

    Raises
    ------
    TypeError
        If an element has the wrong type.
    ValueError
        If the iterables differ in length.
    """
    optional = {"ids": (ids, "str"), "metadatas": (metadatas, "dict")}
    columns = {
        name: iter(check_sequence(name, values, kind))
        for name, (values, kind) in optional.items()
        if values is not None and not (isinstance(values, Sized) and len(values) == 0)
    }
    return _from_texts(iter(check_sequence("texts", texts, "str")), columns)


def write(
    index: BM25Index, documents: Iterable[StoredDocument], source: str = "documents"
) -> list[str]:
    """Add all documents, or none on error, replacing those with the same ids.

    Parameters
    ----------
    index
        The index to add to.
    documents
        From ``read_documents`` or ``read_texts``.
    source
        The caller's argument that holds the metadata.

    Returns
    -------
    ids
        The id of each document.

    Raises
    ------
    MetadataError
        If metadata cannot be stored; the message names row, document and key.
    """
    ids: list[str] = []

    def noting_ids() -> Iterator[StoredDocument]:
        for document in documents:
            ids.append(document.id)
            yield document

    try:
        index.add_documents(noting_ids(), on_duplicate="replace")
    except MetadataError as error:
        raise error.at(error.row.replace("documents", source)) from None
    return ids


def read_ids(ids: Iterable[str | float]) -> list[str]:
    """Return document ids as they are stored: a number becomes a string.

    Raises
    ------
    TypeError
        If they are not an iterable of strings and numbers.
    """
    given = check_sequence("ids", ids, "str")
    return [_id_of(id, row, " or a number") for row, id in enumerate(given)]


def _from_documents(documents: Iterator[Any]) -> Iterator[StoredDocument]:
    for row, document in enumerate(documents):
        if not isinstance(document, Document):
            got = type(document).__name__
            message = f"documents[{row}] must be a LangChain Document, got {got}"
            raise TypeError(message)
        id = str(uuid4()) if document.id is None else document.id
        yield StoredDocument(id, document.page_content, document.metadata)


def _with_ids(documents: Iterator[StoredDocument], ids: Iterator[Any]) -> Iterator[StoredDocument]:
    row = -1
    for row, document in enumerate(documents):
        id = next(ids, _END)
        if id is _END:
            raise _wrong_length("ids", f"only {row}", "document")
        if id is not None:
            document.id = _id_of(id, row, ", a number or None")
        yield document
    if next(ids, _END) is not _END:
        raise _wrong_length("ids", f"more than {row + 1}", "document")


def _from_texts(
    texts: Iterator[Any], columns: Mapping[str, Iterator[Any]]
) -> Iterator[StoredDocument]:
    row = -1
    for row, text in enumerate(texts):
        values = {name: next(column, _END) for name, column in columns.items()}
        for name, value in values.items():
            if value is _END:
                raise _wrong_length(name, f"only {row}")
        if not isinstance(text, str):
            message = f"texts[{row}] must be a str, got {type(text).__name__}"
            raise TypeError(message)
        metadata = values.get("metadatas")
        if metadata is not None and not isinstance(metadata, Mapping):
            message = f"metadatas[{row}] must be a dict or None, got {type(metadata).__name__}"
            raise TypeError(message)
        id = values.get("ids")
        id = str(uuid4()) if id is None else _id_of(id, row, ", a number or None")
        yield StoredDocument(id, text, dict(metadata or {}))
    for name, column in columns.items():
        if next(column, _END) is not _END:
            raise _wrong_length(name, f"more than {row + 1}")


def _id_of(id: object, row: int, or_none: str) -> str:
    is_number = isinstance(id, Number) and not isinstance(id, bool)
    # NaN, a data frame's missing value, does not equal itself; all of them would become one id.
    if isinstance(id, str) or (is_number and id == id):
        return str(id)
    message = f"ids[{row}] must be a str{or_none}, got {id!r:.100}"
    raise TypeError(message)


def _wrong_length(name: str, got: str, what: str = "text") -> ValueError:
    return ValueError(f"{name} must have one element for each {what}, got {got}")
