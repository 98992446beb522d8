"""Converts LangChain's documents to bm25rag's, and back."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import zip_longest
from numbers import Number
from typing import Any, TypeAlias
from uuid import uuid4

from langchain_core.documents import Document

from bm25rag import BM25Index, Hit
from bm25rag import Document as StoredDocument
from bm25rag.adapters import OnDuplicate, check_sequence, columns, make_models, with_fields
from bm25rag.errors import MetadataError

Ids: TypeAlias = Iterable[str | float]
"""Ids of documents; a number becomes a string, as in LangChain's ``Document``."""
NewIds: TypeAlias = Iterable[str | float | None]
"""Ids of new documents; one without, or with an empty one, gets a UUID."""
Metadatas: TypeAlias = Iterable[Mapping[str, Any] | None]

_END = object()
_BLANK = Document(id="", page_content="", metadata={})


class _Unnamed(StoredDocument):
    """A document that came without an id; messages must not name the UUID that it got."""

    __slots__ = ()


def to_documents(stored: Sequence[StoredDocument | Hit]) -> list[Document]:
    """Convert documents of an index; raise ``ValueError`` if it does not hold the text of one."""
    ids, texts, metadata = columns(stored, "id", "text", "metadata")
    if None in texts:
        pairs = zip(texts, stored, strict=True)
        texts = [_other_text(one) if text is None else text for text, one in pairs]
    return make_models(_BLANK, {"id": ids, "metadata": metadata, "page_content": texts})


def _other_text(document: StoredDocument | Hit) -> str:
    """Return the text of a document that has fields, but not this one."""
    if document.fields is not None:
        return ""
    raise ValueError(
        f"document {document.id!r} has no text to return: it was added to the BM25Index "
        "with store_text=False or as a list of terms"
    )


def read_documents(
    documents: Iterable[Document], ids: NewIds | None = None
) -> Iterator[StoredDocument]:
    """Yield documents as they are stored; of ``ids``, those that are not None replace their own."""
    if isinstance(documents, Document):  # which is an iterable, of its fields
        message = "documents must be an iterable of Document, got one Document: put it in a list"
        raise TypeError(message)
    columns = {} if ids is None else {"ids": _iterate("ids", ids, "str")}
    rows = _zip("document", _iterate("documents", documents, "Document"), columns)
    for row, (document, given) in enumerate(rows):
        if not isinstance(document, Document):
            got = type(document).__name__
            raise TypeError(f"documents[{row}] must be a LangChain Document, got {got}")
        id = document.id if given.get("ids") is None else _id_of(given["ids"], row)
        yield _stored(id, document.page_content, document.metadata)


def read_texts(
    texts: Iterable[str], metadatas: Metadatas | None, ids: NewIds | None
) -> Iterator[StoredDocument]:
    """Yield texts as documents; empty ``metadatas`` or ``ids`` are as good as None."""
    optional = {"ids": (ids, "str"), "metadatas": (metadatas, "dict")}
    columns = {
        name: _iterate(name, values, kind)
        for name, (values, kind) in optional.items()
        if values is not None and not (isinstance(values, Sized) and len(values) == 0)
    }
    for row, (text, given) in enumerate(_zip("text", _iterate("texts", texts, "str"), columns)):
        if not isinstance(text, str):
            raise TypeError(f"texts[{row}] must be a str, got {type(text).__name__}")
        metadata, id = given.get("metadatas"), given.get("ids")
        if metadata is not None and not isinstance(metadata, Mapping):
            message = f"metadatas[{row}] must be a dict or None, got {type(metadata).__name__}"
            raise TypeError(message)
        yield _stored(None if id is None else _id_of(id, row), text, dict(metadata or {}))


def write(
    index: BM25Index,
    documents: Iterable[StoredDocument],
    source: str = "documents",
    on_duplicate: OnDuplicate = "replace",
) -> list[str]:
    """Add all documents, or none on error, and return the ids of those that were not skipped.

    A ``MetadataError`` names row, document and key; ``source`` is the caller's argument that holds
    the metadata.
    """
    ids: list[str] = []
    named = bytearray()  # a byte for each document

    def noting() -> Iterator[StoredDocument]:
        for document in with_fields(index, documents):
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


def replace_metadata(index: BM25Index, ids: Ids, metadatas: Metadatas) -> list[str]:
    """Replace the metadata of documents, and return the ids of those there are."""
    given = list(_iterate("metadatas", metadatas, "dict"))
    try:
        return index.update_metadata(read_ids(ids), given)
    except MetadataError as error:
        raise error.at(error.row.replace("metadata", "metadatas")) from None


def read_ids(ids: Ids | None) -> list[str]:
    """Return document ids as they are stored; raise ``TypeError`` for what can be none."""
    return [_id_of(id, row, " or a number") for row, id in enumerate(_iterate("ids", ids, "str"))]


def _stored(id: str | None, text: str, metadata: dict[str, Any]) -> StoredDocument:
    if not id:  # to LangChain, "" is none
        return _Unnamed(str(uuid4()), text, metadata)
    return StoredDocument(id, text, metadata)


def _id_of(id: object, row: int, others: str = ", a number or None") -> str:
    is_number = isinstance(id, Number) and not isinstance(id, bool)
    # NaN, a data frame's missing value, does not equal itself; all of them would become one id.
    if isinstance(id, str) or (is_number and id == id):
        return str(id)
    raise TypeError(f"ids[{row}] must be a str{others}, got {id!r:.100}")


def _iterate(name: str, values: object, kind: str) -> Iterator[Any]:
    if isinstance(values, AsyncIterable):
        raise TypeError(
            f"{name} must be an iterable of {kind}, got {type(values).__name__}: async iterables "
            "are for the method with an a in front, such as aadd_documents"
        )
    return iter(check_sequence(name, values, kind))


def _zip(
    what: str, elements: Iterator[Any], columns: Mapping[str, Iterator[Any]]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each element with its values of the columns, which must be as long."""
    rows = zip_longest(elements, *columns.values(), fillvalue=_END)
    for row, (element, *values) in enumerate(rows):
        for name, value in zip(columns, values, strict=True):
            if (value is _END) is not (element is _END):
                got = f"only {row}" if value is _END else f"more than {row}"
                raise ValueError(f"{name} must have one element for each {what}, got {got}")
        yield element, dict(zip(columns, values, strict=True))
