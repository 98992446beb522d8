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
MODE = "mode"
_INDEX_ID = "index_id"

SOURCE_PATH = f"{NODE_KEY}.{REF_DOC_ID}"
LACKS_KEY = {f"{NODE_KEY}.{MODE}": {"$exists": False}}
_START = b'{"llama_index":'
_AT_ONCE = 1000


def lookup_fields(mode: str | None, source: str | None, index_id: str | None) -> dict[str, str]:
    """Return what ``NODE_KEY`` holds."""
    given = {MODE: mode, REF_DOC_ID: source, _INDEX_ID: index_id}
    return {name: value for name, value in given.items() if value is not None}


def lookup_fields_in(stored_fields: Any) -> dict[str, str]:
    """Return what ``NODE_KEY`` holds, from the payload of a node."""
    node = stored_fields["node"]
    # An object that is stored with the node needs no looking up.
    index_id = node.get(_INDEX_ID) if node.get("obj") is None else None
    return lookup_fields(stored_fields.get(MODE), source_of(stored_fields), index_id)


def parse_payload(found: Hit | Document) -> Any:
    """Return the fields in the payload of a document, ``None`` if it was not stored as a node."""
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


def relations_of(stored_fields: Any) -> dict[Any, Any]:
    """Return the related nodes that a payload names, by kind."""
    relations = stored_fields["node"].get("relationships")
    return relations if isinstance(relations, dict) else {}


def source_of(stored_fields: Any) -> str | None:
    """Return the id of the source document that a payload names."""
    related = relations_of(stored_fields).get(NodeRelationship.SOURCE.value)
    source = related.get("node_id") if isinstance(related, dict) else None
    return source if isinstance(source, str) else None


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
    loose = {lookup_fields_in(fields).get(_INDEX_ID) for _, fields in nodes_without_key(index)}
    return [id for id in asked if id in loose or index.count({f"{NODE_KEY}.{_INDEX_ID}": id})]


def mode_of(index: BM25Index) -> MetadataMode | None:
    """Return the metadata mode of the nodes in the index, ``None`` if there are none."""
    for mode in MetadataMode:
        if index.count({f"{NODE_KEY}.{MODE}": mode.value}):
            return mode
    # One batch alone: documents that are not nodes may be many.
    for document in index.get(index.ids(LACKS_KEY, k=_AT_ONCE)):
        try:
            stored_fields = parse_payload(document)
            if stored_fields is not None:
                return MetadataMode(stored_fields.get(MODE))
        except (CorruptIndexError, ValueError):  # raised when the node is read
            continue
    return None
