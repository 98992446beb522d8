"""Reads documents: JSON, CSV, Parquet, Arrow, BEIR folders, text, passages of Markdown and HTML.

The command line, ``bm25rag.evaluation`` and the examples use these readers.

Every reader is a generator, so a corpus need not fit in memory; only ``read_json`` and what cuts
passages read a file whole. Every error in the input is a ``ValueError`` whose message begins with
``file:line:``, or the part of the file. Texts are UTF-8, with or without a byte order mark; files
whose names end in ``.gz`` or ``.zst`` are unpacked; ``-`` is standard input.

Ids are made from the name that the caller gives a file (``guide.md#3``): its path within the
folder that is read, with ``/`` on every platform.
"""

from __future__ import annotations

from bm25rag.readers.arrow import read_arrow, read_parquet
from bm25rag.readers.folders import KINDS, Found, find_files, find_matches, kind_of
from bm25rag.readers.html_pages import read_html
from bm25rag.readers.jsonl import find_beir_corpus, read_json, read_jsonl
from bm25rag.readers.kinds import FORMATS, read_file
from bm25rag.readers.lines import OtherContentError, size_limit
from bm25rag.readers.passages import PASSAGE_SIZE, read_passages
from bm25rag.readers.plain import read_lines, read_text
from bm25rag.readers.queries import Query, read_queries
from bm25rag.readers.records import TEXT_FIELDS, Fields, parse_vector
from bm25rag.readers.rows import read_rows
from bm25rag.readers.tables import read_csv, read_tsv

__all__ = [
    "FORMATS",
    "KINDS",
    "PASSAGE_SIZE",
    "TEXT_FIELDS",
    "Fields",
    "Found",
    "OtherContentError",
    "Query",
    "find_beir_corpus",
    "find_files",
    "find_matches",
    "kind_of",
    "parse_vector",
    "read_arrow",
    "read_csv",
    "read_file",
    "read_html",
    "read_json",
    "read_jsonl",
    "read_lines",
    "read_parquet",
    "read_passages",
    "read_queries",
    "read_rows",
    "read_text",
    "read_tsv",
    "size_limit",
]
