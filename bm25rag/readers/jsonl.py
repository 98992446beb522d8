"""JSON lines, in BEIR's shape or with fields named by the caller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bm25rag import Document
from bm25rag.readers.lines import fail, name_of, numbered_lines

__all__ = [
    "TEXT_FIELDS",
    "find_beir_corpus",
    "id_of",
    "is_jsonl",
    "parse_record",
    "read_jsonl",
    "text_of",
]

TEXT_FIELDS = ("title", "text")
_ID_FIELDS = ("_id", "id")
_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def _reject_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)


def parse_record(line: str, path: Path, number: int) -> dict[str, Any]:
    """Parse one line, which must be a JSON object."""
    try:
        value = json.loads(line, parse_constant=_reject_constant)
    except json.JSONDecodeError as cause:
        fail(path, number, f"invalid JSON at column {cause.colno}: {cause.msg}", cause)
    except (ValueError, RecursionError) as cause:
        fail(path, number, f"invalid JSON: {cause}", cause)
    if not isinstance(value, dict):
        fail(path, number, f"expected a JSON object, got {type(value).__name__}")
    return value


def _id_of(value: object, path: Path, number: int, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        problem = f"id field {field!r}: expected a string or an integer, got {type(value).__name__}"
        fail(path, number, problem)
    return str(value)


def id_of(
    record: dict[str, Any], path: Path, number: int, field: str | None
) -> tuple[str, str | None]:
    """Return the id of a record, and the field it came from if it came from one."""
    for candidate in _ID_FIELDS if field is None else (field,):
        if candidate in record:
            return _id_of(record[candidate], path, number, candidate), candidate
    if field is not None:
        fail(path, number, f"no id field {field!r}; fields are {sorted(record)}")
    return f"{name_of(path)}#{number}", None


def text_of(record: dict[str, Any], path: Path, number: int, fields: Sequence[str]) -> str:
    """Return the texts of the fields that are there, joined by a space."""
    present = [(field, record[field]) for field in fields if record.get(field) is not None]
    if not present:
        wanted = " or ".join(repr(field) for field in fields)
        fail(path, number, f"no text field {wanted}; fields are {sorted(record)}")
    for field, value in present:
        if not isinstance(value, str):
            problem = f"text field {field!r}: expected a string, got {type(value).__name__}"
            fail(path, number, problem)
    return " ".join(value for _, value in present if value)


def read_jsonl(
    path: Path,
    id_field: str | None = None,
    text_fields: Sequence[str] = TEXT_FIELDS,
    metadata_fields: Sequence[str] | None = None,
) -> Iterator[Document]:
    """Read one document a line.

    Parameters
    ----------
    path
        The file, or ``-``.
    id_field
        Where the id stands. None takes ``_id``, then ``id``, then makes
        ``path#line``. Integers are turned into strings.
    text_fields
        Joined by a space; those that are absent, null or empty are left out,
        but one at least must be there.
    metadata_fields
        Which fields become metadata; None means all that are left.

    Yields
    ------
    Document
        In the order of the file.

    Raises
    ------
    ValueError
        If a line is no JSON object or a field is missing or of a wrong type.
    """
    for number, line in numbered_lines(path):
        record = parse_record(line, path, number)
        id, taken = id_of(record, path, number, id_field)
        text = text_of(record, path, number, text_fields)
        if metadata_fields is None:
            used = {taken, *text_fields}
            metadata = {key: value for key, value in record.items() if key not in used}
        else:
            metadata = {key: record[key] for key in metadata_fields if key in record}
        yield Document(id=id, text=text, metadata=metadata, payload=None)


def is_jsonl(path: Path) -> bool:
    """Tell whether a file is JSON lines by its name."""
    return path.name.lower().endswith(_SUFFIXES)


def find_beir_corpus(folder: Path) -> Path | None:
    """Return the corpus file of a BEIR folder, or None where the folder is none."""
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if (folder / name).is_file():
            return folder / name
    return None
