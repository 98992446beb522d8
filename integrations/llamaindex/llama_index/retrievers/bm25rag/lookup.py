"""The fields by which the adapter looks nodes up, and how it reads them.

In the core's metadata, ``NODE_KEY`` holds them: the source document, the index id of an index node
without a stored object, and the metadata mode. Users who write metadata through the core may drop
that key, so the payload, which only the adapter writes, has all three as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from llama_index.core.schema import MetadataMode, NodeRelationship
from pydantic_core import from_json

from bm25rag import BM25Index, Document, Hit
from bm25rag.errors import CorruptIndexError

NODE_KEY = "__node__"
REF_DOC_ID = "ref_doc_id"
MARK = "llama_index"
DATES = "dates"

SOURCE_PATH = f"{NODE_KEY}.{REF_DOC_ID}"
DATES_PATH = f"{NODE_KEY}.{DATES}"
_INDEX_ID = "index_id"
MODE = "mode"
_START = b'{"llama_index":'
LACKS_KEY = {f"{NODE_KEY}.{MODE}": {"$exists": False}}
_AT_ONCE = 1000


def lookup_fields(mode: MetadataMode, source: str | None, index_id: str | None) -> dict[str, str]:
    """Return what ``NODE_KEY`` holds."""
    given = {MODE: mode.value, REF_DOC_ID: source, _INDEX_ID: index_id}
    return {name: value for name, value in given.items() if value is not None}


def parse_payload(found: Hit | Document) -> Any:
    """Return the fields in the payload of a document, ``None`` if it was not stored as a node.

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
            stored_fields = from_json(payload)[MARK]  # 0.5 microseconds, and 2.5 by json.loads
        except ValueError:  # it refuses lone surrogates, which a node may contain
            stored_fields = json.loads(payload)[MARK]
    except (ValueError, RecursionError) as error:
        raise CorruptIndexError(f"payload of node {found.id!r}: {error}") from None
    if not isinstance(stored_fields, dict) or not isinstance(stored_fields.get("node"), dict):
        raise CorruptIndexError(f"payload of node {found.id!r}: it has no node fields")
    return stored_fields


# --- looking up -------------------------------------------------------------------


def read_documents(index: BM25Index, ids: Sequence[str]) -> Iterator[Document]:
    """Yield documents by id, read in batches; those deleted meanwhile are skipped."""
    for first in range(0, len(ids), _AT_ONCE):
        yield from index.get(ids[first : first + _AT_ONCE])


def nodes_without_key(index: BM25Index) -> Iterator[tuple[Document, Any]]:
    """Yield the nodes whose metadata lost the key, each with the fields in its payload."""
    for document in read_documents(index, index.ids(LACKS_KEY)):
        stored_fields = parse_payload(document)
        if stored_fields is not None:
            yield document, stored_fields


def source_of(stored_fields: Any) -> str | None:
    """Return the id of the source document that a payload names."""
    related = relations_of(stored_fields).get(NodeRelationship.SOURCE.value)
    source = related.get("node_id") if isinstance(related, dict) else None
    return source if isinstance(source, str) else None


def relations_of(stored_fields: Any) -> dict[Any, Any]:
    """Return the related nodes that a payload names, by kind."""
    relations = stored_fields["node"].get("relationships")
    return relations if isinstance(relations, dict) else {}


def index_id_of(stored_fields: Any) -> str | None:
    """Return the index id that a payload names, unless the object is stored with it."""
    fields = stored_fields["node"]
    return fields.get(_INDEX_ID) if fields.get("obj") is None else None


def sources_without_key(index: BM25Index) -> dict[str, set[str]]:
    """Return, by source document, the ids of nodes whose metadata no longer name it."""
    found: dict[str, set[str]] = {}
    for document, stored_fields in nodes_without_key(index):
        source = source_of(stored_fields)
        if source is not None:
            found.setdefault(source, set()).add(document.id)
    return found


def held_index_ids(index: BM25Index, index_ids: Iterable[str]) -> list[str]:
    """Return those of the index ids for which the index holds a node without its object."""
    asked = sorted(index_ids)
    if not asked:
        return []
    loose = {index_id_of(stored_fields) for _, stored_fields in nodes_without_key(index)}
    return [id for id in asked if id in loose or index.count({f"{NODE_KEY}.{_INDEX_ID}": id})]


def mode_of(index: BM25Index) -> MetadataMode | None:
    """Return the metadata mode of the nodes in the index, ``None`` if there are none."""
    path = f"{NODE_KEY}.{MODE}"
    held = (mode for mode in MetadataMode if index.count({path: mode.value}))
    return next(held, None) or _mode_in_payloads(index)


def _mode_in_payloads(index: BM25Index) -> MetadataMode | None:
    """Look at one batch: documents that are not nodes may be many."""
    for document in index.get(index.ids(LACKS_KEY)[:_AT_ONCE]):
        try:
            stored_fields = parse_payload(document)
        except CorruptIndexError:  # raised when the node is read
            continue
        if stored_fields is not None and (mode := mode_in(stored_fields)) is not None:
            return mode
    return None


def mode_in(stored_fields: Any) -> MetadataMode | None:
    """Return the metadata mode that a payload names; version 0.1.0 did not write it."""
    mode = stored_fields.get(MODE)
    return next((known for known in MetadataMode if known.value == mode), None)


def is_outdated(index: BM25Index, what: str = NODE_KEY) -> bool:
    """Whether the index holds nodes that version 0.1.0 stored, with ``what`` in the metadata."""
    return bool(index.count({what: {"$exists": True}, **LACKS_KEY}))
