"""``export``: the documents of an index, for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bm25rag.cli.options import examples, filter_option, open_index, reading_argument, usage_errors
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import write_result
from bm25rag.common.strings import TEXT
from bm25rag.documents import Document, all_fields
from bm25rag.index import BM25Index

# Documents that are in memory at once; more if they have vectors, since to read some of these takes
# a look at the postings of all, 2 ns for each.
_BATCH, _BATCH_WITH_VECTORS = 1000, 10_000


@click.command(
    "export",
    epilog=examples(
        "bm25rag export docs.bm25 > docs.jsonl",
        "bm25rag export docs.bm25 | zstd > docs.jsonl.zst",
        """bm25rag export docs.bm25 --filter '{"year": {"$gte": 2020}}'""",
    ),
)
@reading_argument
@filter_option
def export_command(index_path: Path, filter_: dict[str, Any] | None, **options: Any) -> None:
    """Write the documents of an index as JSON lines, in their order.

    Each line has id, text and metadata and, if the index has sparse vectors, vector,
    which 'bm25rag index --vector-field vector' reads. Dates are ISO strings there;
    payloads, which are bytes, are left out, and the text is null where the index keeps
    none. Fields of the index are in the metadata.
    """
    index = open_index(index_path, options).snapshot()
    with usage_errors():
        ids = index.ids(filter_)
    has_vectors = bool(index.vectors)
    size = batch_size(has_vectors)
    for start in range(0, len(ids), size):
        records = [
            {"id": one.id, "text": one.text, "metadata": one.metadata | _beside(one)}
            | ({"vector": one.vector} if has_vectors else {})
            for one in read_stored(index, ids[start : start + size], has_vectors)
        ]
        write_result("\n".join(map(to_json, records)))


def batch_size(has_vectors: bool) -> int:
    """Return how many documents of an index to read at once."""
    return _BATCH_WITH_VECTORS if has_vectors else _BATCH


def read_stored(index: BM25Index, ids: list[str], has_vectors: bool) -> list[Document]:
    """Return documents of an index with their vectors."""
    stored = index.get(ids)
    if has_vectors:
        for one, vector in zip(stored, index.vectors.get(ids), strict=True):
            one.vector = vector
    return stored


def _beside(document: Document) -> dict[str, str]:
    """Return the fields beside the text, the context among them."""
    return {name: text for name, text in (all_fields(document) or {}).items() if name != TEXT}
