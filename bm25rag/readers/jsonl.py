"""JSON lines, in BEIR's format or with fields named by the caller, and JSON arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bm25rag.readers.decoding import content, numbered_lines
from bm25rag.readers.lines import OtherContentError, fail, find_packed, located, name_of, suffix_of
from bm25rag.readers.records import Record, Records, record_reader, reject_constant


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


@record_reader
def read_jsonl(records: Records) -> Iterator[Record]:
    """Read JSON lines, an object each; see ``RecordReader``."""
    path = records.path
    for number, line in numbered_lines(path, records.tolerance):
        row: dict[str, Any] | ValueError
        try:
            row = parse_record(line, path, number)
        except ValueError as error:
            row = error
        yield number, number, row


@record_reader
def read_json(records: Records) -> Iterator[Record]:
    """Read a JSON array of objects; see ``RecordReader``.

    An object without an id gets ``file#1``, ``file#2``, ... Anything but an array is an
    ``OtherContentError``.
    """
    path = records.path
    values = parse_json(content(path, records.tolerance), path, None)
    if not isinstance(values, list):
        message = f"{name_of(path)}: expected a JSON array of objects, got {type(values).__name__}"
        raise OtherContentError(message)
    for number, value in enumerate(values, start=1):
        item = f"item {number}"
        wrong = f"expected a JSON object, got {type(value).__name__}"
        yield number, item, value if isinstance(value, dict) else located(path, item, wrong)


def is_jsonl(path: Path) -> bool:
    """Tell by its name whether a file is JSON lines."""
    return suffix_of(path) in (".jsonl", ".ndjson")


def find_beir_corpus(folder: Path) -> Path | None:
    """Return the corpus file of a BEIR folder; None for any other folder."""
    return find_packed(folder / "corpus.jsonl")
