"""Files to documents: JSON lines, BEIR folders, plain text, passages of Markdown.

Every reader is a generator, so that a corpus need not fit in memory twice, and
every complaint about the input is a ``ValueError`` that begins with
``file:line:``. Files are UTF-8, with or without a byte order mark; names that
end in ``.gz`` are unpacked on the way; ``-`` is the standard input.

Ids are made from the path *as it was given* (``docs/guide.md#3``), so that two
folders with a ``README.md`` each do not get in each other's way.
"""

from __future__ import annotations

from bm25rag.readers.jsonl import TEXT_FIELDS, find_beir_corpus, is_jsonl, read_jsonl
from bm25rag.readers.passages import PASSAGE_SIZE, read_passages, walk_texts
from bm25rag.readers.plain import read_lines, read_text
from bm25rag.readers.queries import Query, read_queries

__all__ = [
    "PASSAGE_SIZE",
    "TEXT_FIELDS",
    "Query",
    "find_beir_corpus",
    "is_jsonl",
    "read_jsonl",
    "read_lines",
    "read_passages",
    "read_queries",
    "read_text",
    "walk_texts",
]
