"""Reads a file of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bm25rag import Document
from bm25rag.readers.arrow import read_arrow, read_parquet
from bm25rag.readers.html_pages import read_html
from bm25rag.readers.jsonl import read_json, read_jsonl
from bm25rag.readers.passages import read_passages
from bm25rag.readers.plain import read_lines, read_text
from bm25rag.readers.records import Fields
from bm25rag.readers.tables import read_csv, read_tsv

__all__ = ["FORMATS", "read_file"]

_RECORDS: dict[str, Callable[[Path, Fields | None, str | None], Iterator[Document]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "arrow": read_arrow,
}
_PIECES = {"html": read_html, "passages": read_passages}
_PLAIN = {"text": read_text, "lines": read_lines}
FORMATS = (*_RECORDS, *_PIECES, *_PLAIN)


def read_file(
    path: Path, kind: str, name: str, in_folder: bool, fields: Fields, passage_size: int
) -> Iterator[Document]:
    """Read the documents of a file.

    Parameters
    ----------
    path
        The file.
    kind
        One of ``FORMATS``.
    name
        The file's name in ids.
    in_folder
        Whether the file is one of a folder: ids of its records then begin with ``name``.
    fields
        Which fields of a record make a document.
    passage_size
        Maximum characters of a passage.

    Raises
    ------
    ValueError
        As the readers of the kinds.
    """
    if kind in _RECORDS:
        return _RECORDS[kind](path, fields, name if in_folder else None)
    if kind in _PIECES:
        return _PIECES[kind](path, passage_size, name)
    return _PLAIN[kind](path, name)
