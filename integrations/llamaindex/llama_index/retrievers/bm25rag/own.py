"""What the adapter keeps of a node beside its text and metadata, and how it is found again.

Under ``OWN_KEY`` the core's metadata hold what is looked up: the source document, the index id
of an index node without a stored object, and the metadata mode. Whoever writes metadata through
the core may drop that key, so the payload, which nobody else writes, has all three as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from llama_index.core.schema import MetadataMode, NodeRelationship
from pydantic_core import from_json

from bm25rag import BM25Index, Document, Hit
from bm25rag.errors import CorruptIndexError

OWN_KEY = "__node__"
REF_DOC_ID = "ref_doc_id"
MARK = "llama_index"
DATES = "dates"

SOURCE_PATH = f"{OWN_KEY}.{REF_DOC_ID}"
DATES_PATH = f"{OWN_KEY}.{DATES}"
_INDEX_ID = "index_id"
MODE = "mode"
_START = b'{"llama_index":'
WITHOUT_KEY = {f"{OWN_KEY}.{MODE}": {"$exists": False}}
_AT_ONCE = 1000


def describe(mode: MetadataMode, source: str | None, index_id: str | None) -> dict[str, str]:
    """Return what is kept under ``OWN_KEY``."""
    given = {MODE: mode.value, REF_DOC_ID: source, _INDEX_ID: index_id}
    return {name: value for name, value in given.items() if value is not None}


def parse_payload(found: Hit | Document) -> Any:
    """Return what the payload of a document holds, ``None`` if it was not stored as a node.

    Raises
    ------
    CorruptIndexError
        If the payload is damaged.
    """
    payload = found.payload
    if payload is None or not payload.startswith(_START):
        return None
    try:
        try:
            kept = from_json(payload)[MARK]  # 0.5 microseconds, and 2.5 by json.loads
        except ValueError:  # it refuses lone surrogates, which a node may have
            kept = json.loads(payload)[MARK]
    except (ValueError, RecursionError) as error:
        raise CorruptIndexError(f"payload of node {found.id!r}: {error}") from None
    if not isinstance(kept, dict) or not isinstance(kept.get("node"), dict):
        raise CorruptIndexError(f"payload of node {found.id!r}: it holds no fields of a node")
    return kept


# --- looking up -------------------------------------------------------------------


def read_documents(index: BM25Index, ids: Sequence[str]) -> Iterator[Document]:
    """Yield documents by id, some at a time; those that are gone meanwhile are left out."""
    for first in range(0, len(ids), _AT_ONCE):
        yield from index.get(ids[first : first + _AT_ONCE])


def without_key(index: BM25Index) -> Iterator[tuple[Document, Any]]:
    """Yield the nodes whose metadata were written by others since, with what payloads hold."""
    for document in read_documents(index, index.ids(WITHOUT_KEY)):
        kept = parse_payload(document)
        if kept is not None:
            yield document, kept


def source_of(kept: Any) -> str | None:
    """Return the id of the source document that a payload names."""
    related = relations_of(kept).get(NodeRelationship.SOURCE.value)
    source = related.get("node_id") if isinstance(related, dict) else None
    return source if isinstance(source, str) else None


def relations_of(kept: Any) -> dict[Any, Any]:
    """Return the related nodes that a payload names, by kind."""
    relations = kept["node"].get("relationships")
    return relations if isinstance(relations, dict) else {}


def index_id_of(kept: Any) -> str | None:
    """Return the index id that a payload names, if it holds no object for it."""
    fields = kept["node"]
    return fields.get(_INDEX_ID) if fields.get("obj") is None else None


def sources_without_key(index: BM25Index) -> dict[str, set[str]]:
    """Return, by source document, the nodes whose metadata do not name it any more."""
    found: dict[str, set[str]] = {}
    for document, kept in without_key(index):
        source = source_of(kept)
        if source is not None:
            found.setdefault(source, set()).add(document.id)
    return found


def held_index_ids(index: BM25Index, index_ids: Iterable[str]) -> list[str]:
    """Return those of some index ids under which the index holds a node without an object."""
    asked = sorted(index_ids)
    if not asked:
        return []
    loose = {index_id_of(kept) for _, kept in without_key(index)}
    return [id for id in asked if id in loose or index.count({f"{OWN_KEY}.{_INDEX_ID}": id})]


def mode_of(index: BM25Index) -> MetadataMode | None:
    """Return the metadata mode of the nodes that the index holds, ``None`` without any."""
    path = f"{OWN_KEY}.{MODE}"
    held = (mode for mode in MetadataMode if index.count({path: mode.value}))
    return next(held, None) or _mode_in_payloads(index)


def _mode_in_payloads(index: BM25Index) -> MetadataMode | None:
    """Look at some: where those are no nodes, the documents are others', and may be many."""
    for document in index.get(index.ids(WITHOUT_KEY)[:_AT_ONCE]):
        try:
            kept = parse_payload(document)
        except CorruptIndexError:  # whoever reads the node is told
            continue
        if kept is not None and (mode := mode_in(kept)) is not None:
            return mode
    return None


def mode_in(kept: Any) -> MetadataMode | None:
    """Return the metadata mode that a payload names; version 0.1.0 wrote none."""
    mode = kept.get(MODE)
    return next((known for known in MetadataMode if known.value == mode), None)


def is_outdated(index: BM25Index, what: str = OWN_KEY) -> bool:
    """Whether the index holds nodes as version 0.1.0 stored them, with ``what`` in metadata."""
    return bool(index.count({what: {"$exists": True}, **WITHOUT_KEY}))
