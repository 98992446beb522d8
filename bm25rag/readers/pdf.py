"""PDF files split into passages, with pypdf, in a process of their own.

pypdf has been maintained since 2022 (and as PyPDF2 since 2012), is typed, pure Python and under the
BSD licence. A hostile file can keep any reader of PDF busy: the process has a limit of time and
one of memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bm25rag import Document
from bm25rag.errors import MissingDependencyError
from bm25rag.readers import pdf_process
from bm25rag.readers.decoding import STRICT, Tolerance
from bm25rag.readers.lines import fail, name_of, raw_content
from bm25rag.readers.passages import PASSAGE_SIZE, cut_blocks, text_blocks

# A book of a thousand pages takes half a minute.
_MOST_SECONDS = 120.0


def read_pdf(
    path: Path, size: int = PASSAGE_SIZE, name: str | None = None, tolerance: Tolerance = STRICT
) -> Iterator[Document]:
    """Split a PDF file into passages at pages and paragraphs.

    Pages without text, such as scanned ones, have no passages. As a ``PassageReader``, with the
    number of the ``page`` in the metadata, from 1. A ``ValueError`` says that this is not a PDF
    file, is encrypted, or is larger or takes longer than any document.
    """
    if find_spec("pypdf") is None:
        raise MissingDependencyError("PDF needs pypdf: pip install 'bm25rag[pdf]'")
    name, number = name or name_of(path), 0
    for page, text in enumerate(_pages(path), start=1):
        for passage in cut_blocks(text_blocks(text, markdown=False), size, name):
            number += 1
            metadata = {**passage.metadata, "page": page}
            yield replace(passage, id=f"{name}#{number}", metadata=metadata)


def _pages(path: Path) -> list[str]:
    """Return the texts of the pages."""
    raw = raw_content(path)
    if b"%PDF-" not in raw[:1024]:
        fail(path, None, "not a PDF file")
    # -P: the modules beside that file are not those that pypdf imports.
    command = [sys.executable, "-P", pdf_process.__file__]
    try:
        done = subprocess.run(
            command, input=raw, capture_output=True, timeout=_MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as cause:
        fail(path, None, f"it could not be read in {_MOST_SECONDS:.0f} seconds", cause)
    try:
        answer: Any = json.loads(done.stdout)
    except ValueError:
        answer = "its process has ended: too large, or damaged"
    if isinstance(answer, str):
        fail(path, None, f"not a PDF file that can be read: {answer}")
    return [page for page in answer if isinstance(page, str)]
