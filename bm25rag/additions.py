"""Documents as they are given to an index: checked, and gathered in blocks of one analysis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, repeat
from pathlib import PurePath
from typing import Any, NamedTuple, Protocol

from bm25rag.common.checks import DEEPEST, check_flag, check_id, check_sequence
from bm25rag.common.gil import releasing_gil
from bm25rag.common.sparse import Vector, read_each, read_vector
from bm25rag.common.storable import PLAIN_TYPES, copy_metadata
from bm25rag.common.strings import CONTEXT, TEXT, FieldTexts, TermList, join_terms
from bm25rag.documents import Document, Text, all_fields, in_fields

# Characters of text in a block, which is analysed and counted at once.
CHUNK = 1 << 20
# Most documents in a block, and the characters that a value of metadata or a weight counts for.
_MOST, _VALUE = 1 << 14, 8
# Texts of a list that are fetched into the processor's cache at once.
_FETCHED = 1 << 10

_END = object()
_TEXTS = {str, type(None)}
_HINT = ": make the index with fields, BM25Index(fields={'title': 3.0}), or take its text out first"
_OPTIONAL = ("ids", "metadata", "payloads", "vectors")


class Block(NamedTuple):
    """Some documents, with their rows in the call; ``None`` for what was not given."""

    rows: Sequence[int]
    texts: list[str | TermList | FieldTexts]
    ids: list[str] | None = None
    metadata: list[Mapping[str, Any] | None] | None = None
    payloads: list[bytes | None] | None = None
    vectors: list[dict[str, float] | None] | None = None

    def only(self, indices: list[int]) -> Block:
        """Return some of the documents."""
        columns: list[Any] = [
            None if column is None else [column[index] for index in indices] for column in self
        ]
        return Block(*columns)


class Source(Protocol):
    """Where new documents come from.

    ``row`` is the name in messages of what a row's metadata come from, ``store_text`` whether
    to keep the texts. Once a segment takes ``room`` bytes, the other documents are not read.
    ``merged`` is whether it is only to be merged with others.
    """

    row: str
    store_text: bool
    room: float = math.inf
    merged: bool = False

    def __iter__(self) -> Iterator[Block]: ...


class NewDocuments(Source):
    """The arguments of ``add``, checked as they are iterated."""

    row = "metadata[{}]"

    def __init__(
        self,
        texts: Iterable[Text],
        ids: Iterable[str | int] | None,
        metadata: Iterable[Mapping[str, Any] | None] | None,
        payloads: Iterable[bytes | None] | None,
        vectors: Iterable[Vector | None] | None,
        store_text: bool,
        progress: bool,
        names: tuple[str, ...] | None,
    ) -> None:
        self._checked = _Checked(names)
        self.ids = ids
        self.metadata = metadata
        self.payloads = payloads
        self.vectors: Iterator[dict[str, float] | None] | None = (
            None if vectors is None else read_each(vectors, "vectors")
        )
        self.store_text = check_flag("store_text", store_text)
        self.progress = progress
        self.texts: Iterable[Any] = check_sequence("texts", texts, "texts")
        for name in ("ids", "metadata", "payloads"):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, check_sequence(name, value, "one element for each text"))

    def __iter__(self) -> Iterator[Block]:
        """Yield the documents in blocks."""
        optional = {
            name: iter(given) for name in _OPTIONAL if (given := getattr(self, name)) is not None
        }
        done = 0
        for texts, columns in self._gather(optional):
            if "ids" in columns:
                ids = enumerate(columns["ids"], done)
                columns["ids"] = [check_id(f"ids[{number}]", id) for number, id in ids]
            for number, payload in enumerate(columns.get("payloads", ()), done):
                _check_payload(payload, f"payloads[{number}]")
            yield Block(range(done, done + len(texts)), texts, **columns)
            done += len(texts)
        for name, given in optional.items():
            if next(given, _END) is not _END:
                raise _wrong_length(name, f"more than {done}")

    def _gather(
        self, optional: dict[str, Iterator[Any]]
    ) -> Iterator[tuple[list[str | TermList | FieldTexts], dict[str, list[Any]]]]:
        """Yield texts with their ids, metadata and payloads.

        Iterators advance in step with the texts, since they may share a source with them,
        and what they yield is copied, since they may yield the same dict each time.
        """
        in_step = [name for name in optional if not isinstance(getattr(self, name), (list, tuple))]
        texts: list[str | TermList | FieldTexts] = []
        columns: dict[str, list[Any]] = {name: [] for name in in_step}
        room, done = CHUNK, 0
        check, size, plain = self._checked, self._checked.size, self._checked.plain
        for number, text in enumerate(releasing_gil(shown(self.texts, self.progress))):
            texts.append(text if type(text) is plain else check(text, f"texts[{number}]"))
            for name in in_step:
                if (value := next(optional[name], _END)) is _END:
                    raise _wrong_length(name, f"only {number}")
                columns[name].append(copy_metadata(value) if name == "metadata" else value)
            room -= size(texts[-1])
            if "vectors" in columns:
                room -= _VALUE * len(columns["vectors"][-1] or ())
            if room <= 0 or len(texts) == _MOST:
                yield texts, columns | self._slices(optional, in_step, done, len(texts))
                done += len(texts)
                texts, columns, room = [], {name: [] for name in in_step}, CHUNK
        if texts:
            yield texts, columns | self._slices(optional, in_step, done, len(texts))

    def _slices(
        self, optional: dict[str, Iterator[Any]], in_step: list[str], done: int, size: int
    ) -> dict[str, list[Any]]:
        columns = {}
        for name in optional.keys() - in_step:
            columns[name] = list(islice(optional[name], size))
            if len(columns[name]) < size:
                raise _wrong_length(name, f"only {done + len(columns[name])}")
        return columns


class NewRecords(Source):
    """The documents of ``add_documents``, checked as they are iterated.

    ``bounded`` is whether all that documents hold counts for the size of a block, as a build
    of bounded memory needs, and not their texts alone.
    """

    row = "documents[{}]"

    def __init__(
        self,
        documents: Iterable[Document | Mapping[str, Any]],
        store_text: bool,
        progress: bool,
        names: tuple[str, ...] | None,
        *,
        bounded: bool = False,
    ) -> None:
        self._checked, self._names = _Checked(names), names
        self.store_text = check_flag("store_text", store_text)
        self.progress = progress
        self._bounded = bounded
        self._documents = check_sequence("documents", _rows(documents), "bm25rag.Document")
        # See ``NewDocuments._gather``.
        self._copy = not isinstance(documents, (list, tuple))

    def __iter__(self) -> Iterator[Block]:
        """Yield the documents in blocks."""
        given = enumerate(releasing_gil(shown(self._documents, self.progress)))
        while (block := self._gather(given)).texts:
            yield block

    def _gather(self, given: Iterator[tuple[int, Document | Mapping[str, Any]]]) -> Block:
        """Return the next documents, as many as a block has; none if there are no more."""
        texts, ids, each_metadata = list[Any](), list[str](), list[Any]()
        payloads, vectors = list[bytes | None](), list[dict[str, float] | None]()
        room, row = CHUNK, -1
        for row, document in given:
            text, id, values, payload, vector = self._check(row, document)
            texts.append(text)
            ids.append(id)
            each_metadata.append(values)
            payloads.append(payload)
            vectors.append(vector)
            room -= self._checked.size(text) + _VALUE * len(vector or ())
            if self._bounded:  # as much again for each value of the metadata
                room -= len(id) + len(payload or b"") + _size(values)
            if room <= 0 or len(texts) == _MOST:
                break
        rows = range(row + 1 - len(texts), row + 1)
        bare = all(type(one) is dict and not one for one in each_metadata)
        metadata = None if bare else each_metadata
        return Block(rows, texts, ids, metadata, payloads, vectors if any(vectors) else None)

    def _check(
        self, row: int, document: Document | Mapping[str, Any]
    ) -> tuple[Any, str, Any, bytes | None, dict[str, float] | None]:
        """Return what a document has. Most are right, and need no name for messages."""
        if type(document) is not Document:
            if isinstance(document, Mapping):
                document = _document(document, f"documents[{row}]", self._names)
            if not isinstance(document, Document):
                raise TypeError(
                    f"documents[{row}] must be a bm25rag.Document, got {document!r:.100}"
                )
        text: Any = document.text
        plain = type(text) is self._checked.plain
        if not (plain and document.fields is None and document.context is None):
            text = self._checked.text_of(document, f"documents[{row}]")
        id, metadata, payload = document.id, document.metadata, document.payload
        if type(id) is not str:
            id = check_id(f"documents[{row}].id", id)
        if self._copy:
            metadata = copy_metadata(metadata)
        if payload is not None:
            _check_payload(payload, f"documents[{row}].payload")
        vector = None
        if document.vector is not None:
            vector = read_vector(document.vector, f"documents[{row}].vector")
        return text, id, metadata, payload, vector


def _rows(documents: Iterable[Any]) -> Iterable[Any]:
    """Return the rows of a table as mappings, some at a time; other iterables as they are."""
    if not hasattr(documents, "columns"):
        return documents
    if hasattr(documents, "iter_rows"):  # of Polars
        named_rows: Iterable[Any] = documents.iter_rows(named=True)
        return named_rows
    if hasattr(documents, "to_batches"):  # of Arrow
        return chain.from_iterable(batch.to_pylist() for batch in documents.to_batches())
    if hasattr(documents, "itertuples"):  # of pandas
        named = [*documents.columns]
        rows = documents.itertuples(index=False, name=None)
        return (dict(zip(named, row, strict=True)) for row in rows)
    return documents


def _document(row: Mapping[str, Any], name: str, fields: Sequence[str] | None) -> Document:
    """Make a document of a row: its id, its text, and the rest as its metadata."""
    metadata = dict(row)
    id, text = metadata.pop("id", None), metadata.pop(TEXT, None)
    if id is None or (text is None and fields is None):
        raise ValueError(
            f"{name} must have an 'id' and a 'text', got the columns {[*row]!r:.200}; add counts "
            "ids itself, and bm25rag.readers.read_rows takes columns of other names"
        )
    if isinstance(metadata.get("metadata"), Mapping):
        metadata = {**metadata.pop("metadata"), **metadata}
    if fields is None:
        return Document(id, text, metadata)
    context = metadata.pop(CONTEXT, None) if CONTEXT in fields else None
    given = in_fields(text, metadata, fields)
    if text is None:
        del given[TEXT]
    return Document(id, text, metadata, fields=given, context=context)


def _size(metadata: object) -> int:
    """Return about how many characters of text take as much memory as metadata."""
    try:
        return _size_of(metadata, DEEPEST)
    except RecursionError:  # refused later
        return 0


def _size_of(value: Any, depth: int) -> int:
    """Do so, unless there are more levels than ``depth``: small stacks would not hold all."""
    kind = type(value)
    if kind is str:
        return len(value)
    if kind is dict or kind is list or kind is tuple:
        if not value:
            return 0
        if not depth:
            raise RecursionError
        held = value.values() if kind is dict else value
        return _VALUE * len(value) + sum(map(_size_of, held, repeat(depth - 1)))
    return 0 if kind in PLAIN_TYPES else getattr(value, "nbytes", 0)  # of an array


def _fetched(items: Iterable[Any]) -> Iterable[Any]:
    """Return items, those of a list some at a time.

    To copy a part of a list touches all objects in it, which the processor fetches at once;
    a loop would wait for each.
    """
    if type(items) is list or type(items) is tuple:
        return chain.from_iterable(items[n : n + _FETCHED] for n in range(0, len(items), _FETCHED))
    return items


def shown(items: Iterable[Any], progress: bool) -> Iterable[Any]:
    """Return items, with a progress bar if ``progress``."""
    if not check_flag("progress", progress):
        return _fetched(items)
    from tqdm import tqdm

    bar: Iterable[Any] = tqdm(items, desc="indexing", unit=" docs")
    return bar


def _wrong_length(name: str, got: str) -> ValueError:
    return ValueError(f"{name} must have one element for each text, got {got}")


class _Checked:
    """Checks texts, and returns them as blocks have them: with ``names`` of fields, as tuples.

    ``plain`` is the type of texts that need no check.
    """

    def __init__(self, names: tuple[str, ...] | None) -> None:
        self._names = names
        self.plain: type[str] | None = str if names is None else None
        # How many characters a text has.
        self.size: Callable[[Any], int] = len if names is None else _size_of_fields

    def __call__(self, text: object, name: str) -> str | TermList | FieldTexts:
        """Check a text; raise ``TypeError`` or ``ValueError``."""
        if self._names is None:
            return _check_text(text, name)
        if type(text) is dict:  # most are right
            texts = tuple(map(text.get, self._names))
            if len(text) == len(texts) - texts.count(None) > 0 and _TEXTS.issuperset(
                map(type, texts)
            ):
                return texts
        if not isinstance(text, Mapping):
            whole = _check_text(text, name)
            return tuple([whole if key == TEXT else None for key in self._names])
        if not text:
            raise ValueError(f"{name} must have a field, one of {', '.join(self._names)}, got none")
        for key in text:
            if key not in self._names:
                raise ValueError(
                    f"{name} has the field {key!r:.100}, but those of the index are "
                    f"{', '.join(self._names)}"
                )
        given = {key: _check_text(one, f"{name}[{key!r}]") for key, one in text.items()}
        if len({isinstance(one, str) for one in given.values()}) > 1:
            raise TypeError(f"{name} must have fields that are all texts or all lists of terms")
        return tuple([given.get(key) for key in self._names])

    def text_of(self, document: Document, name: str) -> str | TermList | FieldTexts:
        """Check the text and the fields of a document; raise as for a text."""
        text, fields = document.text, document.fields
        if document.context is not None:
            fields = self._with_context(document, name)
        if text is None and fields is None:
            raise ValueError(
                f"{name} ({document.id!r}) has no text: it was stored without one; "
                "index it again from its source"
            )
        if fields is None:
            return self(text, f"{name}.text")
        if self._names is None:
            raise ValueError(f"{name} ({document.id!r}) has fields, but the index has none{_HINT}")
        if not isinstance(fields, Mapping):
            raise TypeError(f"{name}.fields must be a dict of texts, got {fields!r:.100}")
        if text is None:
            return self(fields, f"{name}.fields")
        if fields.get(TEXT, text) != text:
            raise ValueError(f"{name} ({document.id!r}) has a text that is not fields['text']")
        return self({**fields, TEXT: text}, f"{name}.fields")

    def _with_context(self, document: Document, name: str) -> dict[str, Any] | None:
        """Return all fields of a document with a context; raise if it is wrong."""
        context, fields = document.context, document.fields
        _check_text(context, f"{name}.context")
        if CONTEXT not in (self._names or ()):
            raise ValueError(
                f"{name} ({document.id!r}) has a context, but the index has no field for it: make "
                "it with BM25Index(fields={'context': 1.0})"
            )
        if fields is not None and not isinstance(fields, Mapping):
            return fields  # which is wrong, too
        if (fields or {}).get(CONTEXT, context) != context:
            raise ValueError(
                f"{name} ({document.id!r}) has a context that is not fields['context']"
            )
        return all_fields(document)


def _size_of_fields(texts: FieldTexts) -> int:
    return sum(map(len, filter(None, texts)))


def _check_text(text: object, name: str) -> str | TermList:
    if isinstance(text, str):
        return text
    if isinstance(text, (list, tuple)):
        with suppress(TypeError):
            return join_terms(text)
    hint = ""
    if isinstance(text, PurePath):
        hint = "; read the file first: path.read_text()"
    elif isinstance(text, Mapping):
        hint = f"{_HINT}; add_documents takes rows"
    raise TypeError(f"{name} must be a str or a list of terms, got {text!r:.100}{hint}")


def _check_payload(payload: object, name: str) -> bytes | None:
    if payload is not None and not isinstance(payload, bytes):
        raise TypeError(f"{name} must be bytes or None, got {type(payload).__name__}")
    return payload
