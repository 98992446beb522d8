"""Turns records, which have fields by name, into documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import update_wrapper
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from bm25rag import Document
from bm25rag.common.sparse import read_vector
from bm25rag.common.strings import TEXT
from bm25rag.documents import in_fields
from bm25rag.readers.decoding import STRICT, Tolerance, or_raise
from bm25rag.readers.lines import fail, name_of

TEXT_FIELDS = ("title", "text")
# Where a record has none of the first, the others: beside an "id", an "ID" may be anything.
ID_FIELDS = (("_id", "id"), ("ID", "Id"))
# Where there is no field "text", fields of these names are texts.
_TEXT_NAMES = {
    *("title", "text", "content", "contents", "body", "passage", "abstract", "description"),
    *("summary", "question", "answer"),
}
# So are fields of prose: of this many words on average, or of this many characters of a script
# that has no spaces between words; by so many of the first records.
_WORDS, _CHARACTERS, _SAMPLE = 3, 10, 100


class Fields(NamedTuple):
    """Which fields of a record make a document.

    ``id``: the field with the id; None tries ``_id``, then ``id``, or where a record has
    neither, ``ID``, then ``Id``, and makes ``file#line`` if all are missing or blank. Integers
    become strings.
    ``texts``: the fields with text, joined by a space; missing, null or empty ones are skipped,
    but at least one must be present. None: ``title`` and ``text`` if the records have a ``text``,
    or else all fields, in their order, that are called ``title``, ``content``, ``contents``,
    ``body``, ``passage``, ``abstract``, ``description``, ``summary``, ``question`` or ``answer``,
    and all that hold prose: three words or more on average of the first hundred records.
    ``metadata``: the fields to keep as metadata; None means all others. In place of a field
    ``metadata`` that is an object, as in BEIR and in what ``export`` writes, its own fields are
    kept then; of the same name, the one beside it counts.
    ``vector``: the field with a sparse vector, which every record has, if only as null; see
    ``parse_vector``. None: records have none.
    ``weighted``: the fields of the index, as ``BM25Index.fields``: those of a document are its
    metadata by these names, which are strings and are not joined to the text.
    """

    id: str | None = None
    texts: Sequence[str] | None = None
    metadata: Sequence[str] | None = None
    vector: str | None = None
    weighted: Collection[str] | None = None


Record = tuple[int, int | str, Mapping[str, Any] | ValueError]
"""The number for the id if the record has none, its position for messages, and its fields, or what
is wrong with it."""


class Records(NamedTuple):
    """A file of records.

    For a file in a folder, ``name`` is its path in the folder. Ids begin with it, so that ids of
    different files differ, and it is the metadata's ``source``, unless the records have a field
    of that name. With ``own_ids`` it only stands in the ids of records without one.
    """

    path: Path
    fields: Fields
    name: str | None
    own_ids: bool = False
    tolerance: Tolerance = STRICT

    def documents(self, rows: Iterator[Record]) -> Iterator[Document]:
        """Make a document of each record, or refuse it."""
        texts, rows = self._choose_texts(rows)
        records = self._replace(fields=self.fields._replace(texts=texts))
        for number, line, row in rows:
            try:
                document = records.document(or_raise(row), number, line)
            except ValueError as error:
                self.tolerance.refuse(self.path, error)
                continue
            yield document

    def _choose_texts(self, rows: Iterator[Record]) -> tuple[Sequence[str], Iterator[Record]]:
        """Return the fields with text by the first records, and all records."""
        if self.fields.texts is not None:
            return self.fields.texts, rows
        sample: list[Record] = []
        for record in rows:
            sample.append(record)
            known = not isinstance(record[2], ValueError) and "text" in record[2]
            if known or len(sample) == _SAMPLE:
                break
        texts = self.choose([row for _, _, row in sample if not isinstance(row, ValueError)])
        return texts, chain(sample, rows)

    def choose(self, sample: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        """Return the fields with text by the first records, and tell which; see ``Fields``."""
        names = dict.fromkeys(name for record in sample for name in record)
        id, _, metadata, vector, weighted = self.fields
        kept = {*chain(*ID_FIELDS), id, vector, *(metadata or ()), *(weighted or ())}
        chosen = [
            name
            for name in names
            if name not in kept and _is_text(name, [record.get(name) for record in sample])
        ]
        if "text" in names or not chosen:
            return TEXT_FIELDS
        self.tolerance.tell("fields", self.path, ", ".join(chosen))
        return chosen

    def document(self, record: Mapping[str, Any], number: int, line: int | str) -> Document:
        """Return the document for a record; ``number`` and ``line`` as in ``Record``."""
        texts = TEXT_FIELDS if self.fields.texts is None else self.fields.texts
        apart = [name for name in self.fields.weighted or () if name != TEXT and name in record]
        texts = [name for name in texts if name not in apart]
        id, taken = id_of(record, self.path, line, self.fields.id)
        has_text = not apart or any(record.get(name) is not None for name in texts)
        text = text_of(record, self.path, line, texts) if has_text else ""
        vector = vector_of(record, self.path, line, self.fields.vector)
        in_folder = self.name is not None and not self.own_ids
        metadata = {"source": self.name} if in_folder else {}
        if self.fields.metadata is None:
            used = {taken, *texts, self.fields.vector}
            kept = {key: value for key, value in record.items() if key not in used}
            if isinstance(kept.get("metadata"), Mapping):
                metadata |= kept.pop("metadata")
            metadata |= kept
        else:
            kept_keys = dict.fromkeys([*self.fields.metadata, *apart])
            metadata |= {key: record[key] for key in kept_keys if key in record}
        if id is None:
            id = f"{self.name or name_of(self.path).rpartition('/')[2]}#{number}"
        elif in_folder:
            id = f"{self.name}#{id}"
        made = Document(id=id, text=text, metadata=metadata, payload=None, vector=vector)
        return with_fields(made, self.path, line, self.fields)


class RecordReader(Protocol):
    """Reads a file of records, a document each, in the order of the file.

    ``path`` may be ``-``; ``name`` and ``own_ids`` are as for ``Records``. A ``ValueError`` says
    that a record cannot be read, or a field is missing or has the wrong type, and records are not
    to be skipped; or that the whole file cannot be read.
    """

    def __call__(
        self,
        path: Path,
        fields: Fields | None = None,
        name: str | None = None,
        own_ids: bool = False,
        tolerance: Tolerance = STRICT,
    ) -> Iterator[Document]:
        """Yield the documents."""


def record_reader(rows: Callable[[Records], Iterator[Record]]) -> RecordReader:
    """Make a reader of what yields the records of a file."""

    def read(
        path: Path,
        fields: Fields | None = None,
        name: str | None = None,
        own_ids: bool = False,
        tolerance: Tolerance = STRICT,
    ) -> Iterator[Document]:
        records = Records(path, fields or Fields(), name, own_ids, tolerance)
        yield from records.documents(rows(records))

    update_wrapper(read, rows)
    del read.__wrapped__  # type: ignore[attr-defined]  # whose signature is another
    return read


def _is_text(name: str, values: Sequence[Any]) -> bool:
    """Tell whether a field holds text, by its name or its values."""
    texts = [value for value in values if value is not None and value != ""]
    if not texts or not all(isinstance(text, str) for text in texts):
        return False
    if name.lower() in _TEXT_NAMES:
        return True
    words = sum(any(map(str.isalpha, word)) for text in texts for word in text.split())
    unspaced = sum(char >= "\u2e80" for text in texts for char in text)
    return words >= _WORDS * len(texts) or unspaced >= _CHARACTERS * len(texts)


def reject_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity in ``json.loads``."""
    raise ValueError(f"{name} is not JSON")


def _id_of(value: object, path: Path, line: int | str, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        problem = f"id field {field!r}: expected a string or an integer, got {type(value).__name__}"
        fail(path, line, problem)
    return str(value)


def id_of(
    record: Mapping[str, Any], path: Path, line: int | str, field: str | None
) -> tuple[str | None, str | None]:
    """Return the id of a record, None if it is missing or blank, and the field it came from."""
    taken = None
    for names in ID_FIELDS if field is None else [(field,)]:
        for candidate in names:
            if candidate in record:
                id, taken = _id_of(record[candidate], path, line, candidate), candidate
                if id.strip():
                    return id, taken
        if taken is not None:
            break
    if field is not None and taken is not None:
        fail(path, line, f"id field {field!r} is blank")
    if field is not None:
        fail(path, line, f"no id field {field!r}; fields are {sorted(record)}")
    return None, taken


def text_of(record: Mapping[str, Any], path: Path, line: int | str, fields: Sequence[str]) -> str:
    """Return the texts of the fields that are present, joined by a space."""
    present = [(field, record[field]) for field in fields if record.get(field) is not None]
    if not present:
        wanted = " or ".join(repr(field) for field in fields)
        fail(path, line, f"no text field {wanted}; fields are {sorted(record)}")
    for field, value in present:
        if not isinstance(value, str):
            fail(path, line, f"text field {field!r}: expected a string, got {type(value).__name__}")
    return " ".join(value for _, value in present if value)


def with_fields(document: Document, path: Path, line: int | str, fields: Fields) -> Document:
    """Give a document its fields, if the index has any; its metadata hold them."""
    if fields.weighted is not None:
        document.fields = in_fields(document.text or "", document.metadata, fields.weighted)
        for name, text in document.fields.items():
            if not isinstance(text, str):
                fail(path, line, f"field {name!r}: expected a string, got {type(text).__name__}")
    return document


def vector_of(
    record: Mapping[str, Any], path: Path, line: int | str, field: str | None
) -> dict[str, float] | None:
    """Return the sparse vector of a record, None for null; see ``parse_vector``."""
    if field is None:
        return None
    if field not in record:
        problem = f"no vector field {field!r}; fields are {sorted(record)}"
        fail(path, line, f"{problem}; null stands for no vector")
    if record[field] is None:
        return None
    try:
        return parse_vector(record[field], f"vector field {field!r}")
    except (TypeError, ValueError) as cause:
        fail(path, line, str(cause), cause)


def parse_vector(value: object, name: str) -> dict[str, float]:
    """Return a sparse vector as files have it, checked; ``name`` is what messages call it.

    It is ``{"dog": 1.5}``, weights by term, as in Anserini's ``JsonVectorCollection``, where a null
    is no weight, as in structs of Arrow; or what else ``read_vector`` takes, such as ``{"indices":
    [7, 9], "values": [1.5, 0.3]}``.
    """
    if isinstance(value, Mapping):
        value = {term: weight for term, weight in value.items() if weight is not None}
    return read_vector(value, name)
