"""Converts LangChain's documents to bm25rag's, and back."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sized
from numbers import Number
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag import Document as StoredDocument
from bm25rag.adapters import OnDuplicate, check_sequence
from bm25rag.errors import MetadataError

_END = object()


class _Unnamed(StoredDocument):
    """A document that came without an id; messages must not name the UUID that it got."""

    __slots__ = ()


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
    if isinstance(documents, Document):  # which is an iterable, of its fields
        message = "documents must be an iterable of Document, got one Document: put it in a list"
        raise TypeError(message)
    found = _from_documents(_iterate("documents", documents, "Document"))
    if ids is not None:
        found = _with_ids(found, _iterate("ids", ids, "str"))
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
        name: _iterate(name, values, kind)
        for name, (values, kind) in optional.items()
        if values is not None and not (isinstance(values, Sized) and len(values) == 0)
    }
    return _from_texts(_iterate("texts", texts, "str"), columns)


def write(
    index: BM25Index,
    documents: Iterable[StoredDocument],
    source: str = "documents",
    on_duplicate: OnDuplicate = "replace",
) -> list[str]:
    """Add all documents, or none on error.

    Parameters
    ----------
    index
        The index to add to.
    documents
        From ``read_documents`` or ``read_texts``.
    source
        The caller's argument that holds the metadata.
    on_duplicate
        As in ``BM25Index.add``.

    Returns
    -------
    ids
        The id of each document, without those that were skipped.

    Raises
    ------
    MetadataError
        If metadata cannot be stored; the message names row, document and key.
    DuplicateIdError
        If an id is there already and ``on_duplicate`` is ``"error"``.
    """
    ids: list[str] = []
    named = bytearray()  # a byte for each document

    def noting() -> Iterator[StoredDocument]:
        for document in documents:
            ids.append(document.id)
            named.append(type(document) is not _Unnamed)
            yield document

    try:
        written = index.add_documents(noting(), on_duplicate=on_duplicate)
    except MetadataError as error:
        row = error.row.replace("documents", source)
        document = error.document if named[int(error.row[10:-1])] else ""
        raise MetadataError(document, error.key, error.problem, row) from None
    return ids if on_duplicate == "replace" else written


def replace_metadata(
    index: BM25Index, ids: Iterable[str | float], metadatas: Iterable[Mapping[str, Any] | None]
) -> list[str]:
    """Replace the metadata of documents, which keep their texts; unknown ids are ignored.

    Parameters
    ----------
    index
        The index.
    ids
        The ids; a number becomes a string.
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
    """
    given = [None if one is None else dict(one) for one in _iterate("metadatas", metadatas, "dict")]
    try:
        return index.update_metadata(read_ids(ids), given)
    except MetadataError as error:
        raise error.at(error.row.replace("metadata", "metadatas")) from None


def read_ids(ids: Iterable[str | float] | None) -> list[str]:
    """Return document ids as they are stored: a number becomes a string.

    Raises
    ------
    TypeError
        If they are not an iterable of strings and numbers.
    """
    given = _iterate("ids", ids, "str")
    return [_id_of(id, row, " or a number") for row, id in enumerate(given)]


def _from_documents(documents: Iterator[Any]) -> Iterator[StoredDocument]:
    for row, document in enumerate(documents):
        if not isinstance(document, Document):
            got = type(document).__name__
            message = f"documents[{row}] must be a LangChain Document, got {got}"
            raise TypeError(message)
        if document.id is None:
            yield _Unnamed(str(uuid4()), document.page_content, document.metadata)
        else:
            yield StoredDocument(document.id, document.page_content, document.metadata)


def _with_ids(documents: Iterator[StoredDocument], ids: Iterator[Any]) -> Iterator[StoredDocument]:
    row = -1
    for row, document in enumerate(documents):
        id = next(ids, _END)
        if id is _END:
            raise _wrong_length("ids", f"only {row}", "document")
        if id is not None:
            id = _id_of(id, row, ", a number or None")
            document = StoredDocument(id, document.text, document.metadata)
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
        if id is None:
            yield _Unnamed(str(uuid4()), text, dict(metadata or {}))
        else:
            yield StoredDocument(_id_of(id, row, ", a number or None"), text, dict(metadata or {}))
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


def _iterate(name: str, values: object, kind: str) -> Iterator[Any]:
    if isinstance(values, AsyncIterable):
        message = (
            f"{name} must be an iterable of {kind}, got {type(values).__name__}: async iterables "
            "are for the method with an a in front, such as aadd_documents"
        )
        raise TypeError(message)
    return iter(check_sequence(name, values, kind))


def _wrong_length(name: str, got: str, what: str = "text") -> ValueError:
    return ValueError(f"{name} must have one element for each {what}, got {got}")
