"""Reads documents from files, and finds the files of a folder.

The command line, ``bm25rag.evaluation`` and the examples use these readers. ``KINDS`` says which
files are read, and how. To read a folder as ``bm25rag index`` does::

    told = Tolerance(report=print, lenient=True)
    for found in find_files(Path("docs"), selection=Selection(exclude=["drafts/"])):
        if found.problem is None and found.kind is not None:
            for document in read_file(
                found.path, found.kind, found.name, True, Fields(), PASSAGE_SIZE, told
            ):
                ...

and to read the texts alone, for instance for a framework's own splitter, ``file_text(found.path)``
where ``found.kind`` is "passages".

Every reader is a generator, so a corpus need not fit in memory; only ``read_json`` and what cuts
passages read a file whole. Every error in the input is a ``ValueError`` whose message begins with
``file:line:``, or the part of the file; what is no regular file is an ``OSError`` before it could
block. Texts are UTF-8 or have a byte order mark; a ``Tolerance`` names another encoding, or allows
to guess it and to leave out bad lines, which it reports. Files whose names end in ``.gz`` or
``.zst`` are unpacked; ``-`` is standard input.

Ids are made from the name that the caller gives a file (``guide.md#3``): its path within the
folder that is read, with ``/`` on every platform.
"""

from __future__ import annotations

from bm25rag.readers.arrow import read_arrow, read_parquet
from bm25rag.readers.decoding import STRICT, Note, Tolerance
from bm25rag.readers.folders import EVERYTHING, Found, Selection, find_files
from bm25rag.readers.html_pages import read_html
from bm25rag.readers.jsonl import find_beir_corpus, read_json, read_jsonl
from bm25rag.readers.kinds import FORMATS, KINDS, NAMES, kind_alone, kind_among, kind_of, read_file
from bm25rag.readers.lines import OtherContentError, size_limit
from bm25rag.readers.notebooks import read_notebook
from bm25rag.readers.passages import PASSAGE_SIZE, read_passages
from bm25rag.readers.pdf import read_pdf
from bm25rag.readers.plain import file_text, read_lines, read_text
from bm25rag.readers.queries import Query, read_queries
from bm25rag.readers.records import TEXT_FIELDS, Fields, parse_vector
from bm25rag.readers.rows import read_rows
from bm25rag.readers.sources import Source, find_sources
from bm25rag.readers.tables import read_csv, read_tsv
from bm25rag.readers.word import read_docx

__all__ = [
    "EVERYTHING",
    "FORMATS",
    "KINDS",
    "NAMES",
    "PASSAGE_SIZE",
    "STRICT",
    "TEXT_FIELDS",
    "Fields",
    "Found",
    "Note",
    "OtherContentError",
    "Query",
    "Selection",
    "Source",
    "Tolerance",
    "file_text",
    "find_beir_corpus",
    "find_files",
    "find_sources",
    "kind_alone",
    "kind_among",
    "kind_of",
    "parse_vector",
    "read_arrow",
    "read_csv",
    "read_docx",
    "read_file",
    "read_html",
    "read_json",
    "read_jsonl",
    "read_lines",
    "read_notebook",
    "read_parquet",
    "read_passages",
    "read_pdf",
    "read_queries",
    "read_rows",
    "read_text",
    "read_tsv",
    "size_limit",
]
