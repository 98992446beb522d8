"""Rows that are mappings: Hugging Face datasets, records of a data frame or of a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bm25rag import Document
from bm25rag.readers.lines import fail
from bm25rag.readers.records import Fields, Record, Records


def read_rows(
    rows: Iterable[Mapping[str, Any]], fields: Fields | None = None, name: str = "rows"
) -> Iterator[Document]:
    """Make one document per row, as the rows come.

    Rows are any iterable of mappings: a ``Dataset`` or an ``IterableDataset`` of Hugging Face, but
    not the mapping of its splits, ``frame.to_dict("records")`` of pandas,
    ``frame.iter_rows(named=True)`` of Polars. ``name`` is what they are called in messages, and in
    the ids of rows without one (``name#1``, ``name#2``, ...). A ``ValueError`` says that a row is
    not a mapping, or a field is missing or has the wrong type; its message begins with ``name: row
    1:``.
    """
    if isinstance(rows, Mapping):
        shown = ", ".join(map(repr, list(rows)[:3]))
        raise TypeError(
            f"rows must be an iterable of mappings, got {type(rows).__name__} of {shown}: "
            "give one of its values"
        )
    records = Records(Path(name), fields or Fields(), None)
    yield from records.documents(_checked(rows, records.path))


def _checked(rows: Iterable[Mapping[str, Any]], path: Path) -> Iterator[Record]:
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            problem = f"expected a mapping of fields to values, got {type(row).__name__}"
            fail(path, f"row {number}", problem)
        yield number, f"row {number}", row
