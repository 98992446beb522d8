"""Jupyter notebooks: the sources of their cells and what these have printed, as passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bm25rag.readers.decoding import Tolerance, content
from bm25rag.readers.jsonl import parse_json
from bm25rag.readers.lines import OtherContentError, name_of
from bm25rag.readers.passages import Block, passage_reader, text_blocks


@passage_reader
def read_notebook(path: Path, tolerance: Tolerance) -> Iterator[Block]:
    """Split a notebook into passages at the headings of its Markdown, and at cells.

    Of the outputs, texts are read, and neither images nor HTML; see ``PassageReader``. What is no
    notebook is an ``OtherContentError``.
    """
    cells = _cells(parse_json(content(path, tolerance), path, None))
    if cells is None:
        message = f"{name_of(path)}: expected a notebook, an object with a list of cells"
        raise OtherContentError(message)
    for cell in cells:
        yield from _blocks(cell)


def _cells(notebook: Any) -> list[Any] | None:
    """Return the cells; None if there is no list of them."""
    if not isinstance(notebook, Mapping):
        return None
    # Before format 4 they were on sheets.
    sheets = notebook.get("worksheets")
    if isinstance(sheets, list):
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, Mapping)]
        return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    cells = notebook.get("cells")
    return cells if isinstance(cells, list) else None


def _blocks(cell: Any) -> Iterator[Block]:
    if not isinstance(cell, Mapping):
        return
    kind = cell.get("cell_type")
    source = _text(cell.get("source", cell.get("input")))
    if kind == "heading":  # of format 3
        level = cell.get("level")
        level = level if isinstance(level, int) and 1 <= level <= 6 else 1
        yield Block(level, " ".join(source.split()))
    else:
        yield from text_blocks(source, markdown=kind == "markdown")
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        yield from text_blocks(_printed(output), markdown=False)


def _printed(output: Any) -> str:
    """Return the text of an output."""
    if not isinstance(output, Mapping):
        return ""
    if output.get("output_type") == "error":
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    data = output.get("data")
    return _text(data.get("text/plain") if isinstance(data, Mapping) else output.get("text"))


def _text(value: Any) -> str:
    """Return a text that may be a list of its lines."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
