"""Turns records, which have fields by name, into documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from bm25rag import Document
from bm25rag.common.sparse import read_vector
from bm25rag.readers.lines import fail, name_of

__all__ = [
    "TEXT_FIELDS",
    "Fields",
    "Records",
    "id_of",
    "parse_vector",
    "reject_constant",
    "text_of",
    "vector_of",
]

TEXT_FIELDS = ("title", "text")
_ID_FIELDS = ("_id", "id")


class Fields(NamedTuple):
    """Which fields of a record make a document.

    ``id``: the field with the id; None tries ``_id``, then ``id``, and makes ``file#line`` if
    both are missing or blank. Integers become strings.
    ``texts``: the fields with text, joined by a space; missing, null or empty ones are skipped,
    but at least one must be present.
    ``metadata``: the fields to keep as metadata; None means all others. In place of a field
    ``metadata`` that is an object, as in BEIR and in what ``export`` writes, its own fields are
    kept then; of the same name, the one beside it counts.
    ``vector``: the field with a sparse vector, which every record has, if only as null; see
    ``parse_vector``. None: records have none.
    """

    id: str | None = None
    texts: Sequence[str] = TEXT_FIELDS
    metadata: Sequence[str] | None = None
    vector: str | None = None


class Records(NamedTuple):
    """A file of records.

    For a file in a folder, ``name`` is its path in the folder. Ids begin with it, so that ids of
    different files differ, and it is the metadata's ``source``, unless the records have a field
    of that name.
    """

    path: Path
    fields: Fields
    name: str | None

    def document(self, record: Mapping[str, Any], number: int, line: int | str) -> Document:
        """Return the document for a record.

        Parameters
        ----------
        record
            Its fields.
        number
            The number for its id if the record has no id.
        line
            Its position, for messages.

        Raises
        ------
        ValueError
            If a field is missing or has the wrong type.
        """
        id, taken = id_of(record, self.path, line, self.fields.id)
        text = text_of(record, self.path, line, self.fields.texts)
        vector = vector_of(record, self.path, line, self.fields.vector)
        metadata = {} if self.name is None else {"source": self.name}
        if self.fields.metadata is None:
            used = {taken, *self.fields.texts, self.fields.vector}
            kept = {key: value for key, value in record.items() if key not in used}
            if isinstance(kept.get("metadata"), Mapping):
                metadata |= kept.pop("metadata")
            metadata |= kept
        else:
            metadata |= {key: record[key] for key in self.fields.metadata if key in record}
        if id is None:
            id = f"{self.name or name_of(self.path).rpartition('/')[2]}#{number}"
        elif self.name is not None:
            id = f"{self.name}#{id}"
        return Document(id=id, text=text, metadata=metadata, payload=None, vector=vector)


def reject_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity in ``json.loads``."""
    message = f"{name} is not JSON"
    raise ValueError(message)


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
    for candidate in _ID_FIELDS if field is None else (field,):
        if candidate in record:
            id, taken = _id_of(record[candidate], path, line, candidate), candidate
            if id.strip():
                return id, taken
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
            problem = f"text field {field!r}: expected a string, got {type(value).__name__}"
            fail(path, line, problem)
    return " ".join(value for _, value in present if value)


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
    """Return a sparse vector as files have it, checked.

    Parameters
    ----------
    value
        ``{"dog": 1.5}``, weights by term, as in Anserini's ``JsonVectorCollection``, where a
        null is no weight, as in structs of Arrow; or what else ``read_vector`` takes, such as
        ``{"indices": [7, 9], "values": [1.5, 0.3]}``.
    name
        Its name in messages.

    Raises
    ------
    TypeError, ValueError
        As ``read_vector``.
    """
    if isinstance(value, Mapping):
        value = {term: weight for term, weight in value.items() if weight is not None}
    return read_vector(value, name)
