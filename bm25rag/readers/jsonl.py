"""JSON lines, in BEIR's format or with fields named by the caller, and JSON arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bm25rag import Document
from bm25rag.readers.decoding import STRICT, Tolerance, content, numbered_lines
from bm25rag.readers.lines import OtherContentError, fail, find_packed, name_of, suffix_of
from bm25rag.readers.records import Fields, Record, Records, reject_constant


def parse_json(text: str, path: Path, line: int | None) -> Any:
    """Parse JSON; the error names the file and the line."""
    try:
        return json.loads(text, parse_constant=reject_constant)
    except json.JSONDecodeError as cause:
        at = cause.lineno if line is None else line
        fail(path, at, f"invalid JSON at column {cause.colno}: {cause.msg}", cause)
    except (ValueError, RecursionError) as cause:
        fail(path, line, f"invalid JSON: {cause}", cause)


def parse_record(line: str, path: Path, number: int) -> dict[str, Any]:
    """Parse one line, which must be a JSON object."""
    value = parse_json(line, path, number)
    if not isinstance(value, dict):
        fail(path, number, f"expected a JSON object, got {type(value).__name__}")
    return value


def read_jsonl(
    path: Path,
    fields: Fields | None = None,
    name: str | None = None,
    own_ids: bool = False,
    tolerance: Tolerance = STRICT,
) -> Iterator[Document]:
    """Read one document per line.

    Parameters
    ----------
    path
        The file, or ``-``.
    fields
        Which fields make a document.
    name, own_ids
        The path of the file in its folder, if the whole folder is read; see ``Records``.
    tolerance
        The encoding, and who is told of what is guessed or left out.

    Yields
    ------
    Document
        In the order of the file.

    Raises
    ------
    ValueError
        If a line is not a JSON object, or a field is missing or has the wrong type, and lines
        are not to be skipped.
    """
    records = Records(path, fields or Fields(), name, own_ids, tolerance)
    yield from records.documents(_lines(path, tolerance))


def _lines(path: Path, tolerance: Tolerance) -> Iterator[Record]:
    for number, line in numbered_lines(path, tolerance):
        try:
            yield number, number, parse_record(line, path, number)
        except ValueError as error:
            tolerance.refuse(path, error)


def read_json(
    path: Path,
    fields: Fields | None = None,
    name: str | None = None,
    own_ids: bool = False,
    tolerance: Tolerance = STRICT,
) -> Iterator[Document]:
    """Read a JSON array of objects, one document each.

    Parameters
    ----------
    path, fields, name, own_ids, tolerance
        As in ``read_jsonl``; an object without an id gets ``file#1``, ``file#2``, ...

    Yields
    ------
    Document
        In the order of the array.

    Raises
    ------
    OtherContentError
        If this is not an array.
    ValueError
        If an element is not an object, or a field is missing or has the wrong type, and such
        elements are not to be skipped.
    """
    values = parse_json(content(path, tolerance), path, None)
    if not isinstance(values, list):
        message = f"{name_of(path)}: expected a JSON array of objects, got {type(values).__name__}"
        raise OtherContentError(message)
    records = Records(path, fields or Fields(), name, own_ids, tolerance)
    yield from records.documents(_items(values, path, tolerance))


def _items(values: list[Any], path: Path, tolerance: Tolerance) -> Iterator[Record]:
    for number, value in enumerate(values, start=1):
        item = f"item {number}"
        try:
            if not isinstance(value, dict):
                fail(path, item, f"expected a JSON object, got {type(value).__name__}")
        except ValueError as error:
            tolerance.refuse(path, error)
            continue
        yield number, item, value


def is_jsonl(path: Path) -> bool:
    """Tell by its name whether a file is JSON lines."""
    return suffix_of(path) in (".jsonl", ".ndjson")


def find_beir_corpus(folder: Path) -> Path | None:
    """Return the corpus file of a BEIR folder; None for any other folder."""
    return find_packed(folder / "corpus.jsonl")
