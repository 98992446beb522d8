"""Converts nodes to documents of the core, and back.

A document's text is the text that is indexed. Its metadata are those of the node that LlamaIndex's
filters see, with dates as ISO strings, and one key for what nodes are looked up by. Its payload is
JSON of everything else in the node. The node's own text is almost always a part of the indexed
text, so the payload stores its position, or nothing if it is all of it.

Nodes are looked up by their source document, the index id of an index node without a stored object,
and the metadata mode, all below ``NODE_KEY``. Users who write metadata through the core may drop
that key, so the payload, which only the adapter writes, has all three as well.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore.utils import doc_to_json
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from bm25rag import BM25Index, Hit
from bm25rag import Document as Stored
from bm25rag.adapters import columns, decode_metadata, encode_metadata, make_models, spans_of
from bm25rag.errors import CorruptIndexError, MetadataError

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
_PLAIN = frozenset({str, int, float, bool, type(None)})
_RESOURCES = ("text_resource", "image_resource", "audio_resource", "video_resource")
_TEXT_NODE = TextNode.__pydantic_validator__
_BLANK: BaseNode = TextNode(id_="", text="")
_SCORED = NodeWithScore(node=_BLANK, score=0.0)


# --- writing ----------------------------------------------------------------------


def to_document(node: BaseNode, mode: MetadataMode) -> Stored:
    """Return the document that stores a node: everything but its embedding."""
    text = node.get_content(metadata_mode=mode)
    stored_fields: dict[str, Any] = {MODE: mode.value, "node": _fields(node)}
    if type(node) is not TextNode:
        stored_fields["class"] = class_name(type(node))
    content = _content(node)
    if content == text:
        pass  # as of most nodes: their payloads are all the same
    elif content is not None and content in text:
        start = text.index(content)
        stored_fields["at"] = [start, start + len(content)]
    else:
        stored_fields["text"] = content
    index_id = None
    if isinstance(node, IndexNode) and not isinstance(node.obj, BaseNode):
        index_id = node.index_id
    lookup = lookup_fields(mode.value, node.ref_doc_id, index_id)
    written, dates = _write_dates(node.metadata, node.node_id)
    if dates is not None:
        stored_fields[DATES] = dates
    payload = _write_payload(stored_fields)
    return Stored(node.node_id, text, {**written, NODE_KEY: lookup}, payload)


def _write_payload(stored_fields: dict[str, Any]) -> bytes:
    return json.dumps({MARK: stored_fields}, separators=(",", ":")).encode("ascii")


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


def with_new_metadata(document: Stored, metadata: Any) -> Any:
    """Return new metadata for a stored node, in the form in which ``to_document`` returns them."""
    stored_fields = parse_payload(document)
    given = {} if metadata is None else metadata
    if stored_fields is None or not isinstance(given, Mapping):  # the core refuses the latter
        return given
    written, dates = _write_dates(given, document.id)
    # Also without dates, or those in the payload would come back.
    return {**written, NODE_KEY: {**lookup_fields_in(stored_fields), DATES: dates or "{}"}}


def _content(node: BaseNode) -> str | None:
    if isinstance(node, TextNode):
        return node.text
    if isinstance(node, Node) and node.text_resource is not None:
        return node.text_resource.text
    return None


def _fields(node: BaseNode) -> dict[str, Any]:
    """Return the fields that differ from their defaults, except those the core stores itself."""
    try:
        if isinstance(node, IndexNode) and node.obj is not None:
            fields = _fields(node.model_copy(update={"obj": None}))
            if isinstance(node.obj, BaseNode):
                written = doc_to_json(node.obj)
                fields["obj"] = to_jsonable_python(written, fallback=partial(_plain, node.node_id))
            return fields
        try:
            fields = _dump(node)
        except PydanticSerializationError:  # the metadata of related nodes
            node = _with_plain_relations(node)
            fields = _dump(node)
    except PydanticSerializationError as error:
        raise MetadataError(node.node_id, "", f"the node cannot be stored: {error}") from error
    del fields["class_name"]
    if isinstance(node, Node):
        _complete_resources(node, fields)
    return fields


def _dump(node: BaseNode) -> dict[str, Any]:
    left_out = {"id_", "metadata", "embedding"}
    if isinstance(node, (TextNode, Node)):
        left_out.add("text")
    return node.model_dump(mode="json", exclude=left_out, exclude_defaults=True)


def _plain(id: str, value: object) -> Any:
    return decode_metadata(encode_metadata({"obj": value}, id))["obj"]


def _with_plain_relations(node: BaseNode) -> BaseNode:
    """Return a copy whose related nodes have metadata in the form that the core stores."""

    def plain(kind: NodeRelationship, related: RelatedNodeInfo) -> RelatedNodeInfo:
        try:
            metadata = decode_metadata(encode_metadata(related.metadata, node.node_id))
        except MetadataError as error:
            key = f"relationships.{kind.name}.metadata.{error.key}"
            raise MetadataError(node.node_id, key, error.problem) from None
        return related.model_copy(update={"metadata": metadata})

    relations = {
        kind: [plain(kind, one) for one in related]
        if isinstance(related, list)
        else plain(kind, related)
        for kind, related in node.relationships.items()
    }
    return node.model_copy(update={"relationships": relations})


def _complete_resources(node: Node, fields: dict[str, Any]) -> None:
    """Drop the text, which the core stores, and add the bytes, which a dump omits."""
    for name in _RESOURCES:
        resource = getattr(node, name)
        if resource is not None and resource.data is not None:
            fields[name]["data"] = resource.data.decode("ascii")  # base64
    if node.text_resource is not None:
        fields["text_resource"].pop("text", None)


def _write_dates(metadata: Mapping[str, Any], id: str) -> tuple[Mapping[str, Any], str | None]:
    """Return metadata with dates as strings, and the entries with dates, encoded by the core.

    LlamaIndex's stores write dates as strings, and its filters compare those strings.
    """
    if NODE_KEY in metadata:
        raise MetadataError(id, NODE_KEY, "the key is reserved")
    composed = {key: value for key, value in metadata.items() if type(value) not in _PLAIN}
    encoded = encode_metadata(composed, id)
    if b'{"$date' not in encoded:
        return metadata, None
    returned = decode_metadata(encoded)
    strings = {key: to_jsonable_python(value) for key, value in returned.items()}
    dated = {key: value for key, value in returned.items() if strings[key] != value}
    dates = encode_metadata(dated, id).decode("utf-8", "surrogatepass")
    return {**metadata, **{key: strings[key] for key in dated}}, dates


# --- reading ----------------------------------------------------------------------

_OF_BARE = {MODE, "node", "at"}
# Payloads of text nodes with nothing but their metadata and the text that is indexed, parsed.
_EACH_BARE: list[dict[str, Any]] = [{MODE: mode.value, "node": {}} for mode in MetadataMode]
_BARE = {_write_payload(fields): fields for fields in _EACH_BARE}


def to_nodes(documents: Sequence[Hit | Stored]) -> list[BaseNode]:
    """Return new nodes of their original classes; what was not stored as a node is a text node."""
    ids, indexed, metadata, payloads = columns(documents, "id", "text", "metadata", "payload")
    lookups = [own.pop(NODE_KEY, None) for own in metadata]
    stored = [_BARE.get(one) or _parse(id, one) for id, one in zip(ids, payloads, strict=True)]
    texts = [*map(_text_of_bare, indexed, lookups, stored)]
    if None not in texts:  # as of many indexes
        return make_models(_BLANK, {"id_": ids, "metadata": metadata, "text": texts})
    return [*map(_to_node, ids, indexed, metadata, lookups, stored)]


def _text_of_bare(indexed: str | None, lookup: Any, stored: Any) -> str | None:
    """Return the text of a text node without anything else that is left to check, or ``None``."""
    if stored is None or stored["node"] or indexed is None or type(lookup) is not dict:
        return None
    if DATES in lookup or not stored.keys() <= _OF_BARE:
        return None
    if "at" not in stored:
        return indexed
    try:
        return indexed[slice(*stored["at"])]
    except (TypeError, ValueError):  # of which ``_to_node`` tells
        return None


def _to_node(
    id: str, indexed: str | None, metadata: dict[str, Any], lookup: Any, stored: Any
) -> BaseNode:
    if stored is None:
        return TextNode(id_=id, text=indexed or "", metadata=metadata)
    # In the metadata if those were written after the node.
    dates = (lookup.get(DATES) if isinstance(lookup, dict) else None) or stored.get(DATES)
    if isinstance(dates, str):
        _revive(metadata, dates)
    try:
        return _make_node(id, indexed or "", metadata, stored)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptIndexError(f"payload of node {id!r} is not a node: {error}") from error


def with_spans(node: BaseNode, hit: Hit | None, key: str) -> BaseNode:
    """Return a copy of a node, with the words that match under a key that no model gets to see.

    The words are those that were asked for when the hit was found, of this node or another one;
    without a hit there are none.
    """
    spans: list[dict[str, Any]] = []
    if hit is not None:
        asked = copy(hit)
        asked.text = node.get_content(MetadataMode.NONE)
        spans = spans_of(asked)
    return node.model_copy(
        update={
            "metadata": {**node.metadata, key: spans},
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, key],
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, key],
        }
    )


def with_scores(nodes: Sequence[BaseNode], scores: Sequence[float]) -> list[NodeWithScore]:
    """Return nodes with their scores."""
    return make_models(_SCORED, {"node": nodes, "score": scores})


def _make_node(id: str, indexed: str, metadata: dict[str, Any], stored: Any) -> BaseNode:
    fields: dict[str, Any] = {**stored["node"], "id_": id, "metadata": metadata}
    text = indexed[slice(*stored["at"])] if "at" in stored else stored.get("text", indexed)
    name = stored.get("class")
    kind = TextNode if name is None else _find_class(name, id)
    if kind is TextNode:
        fields["text"] = text or ""
        # As TextNode(**fields), in 1.7 instead of 4.1 microseconds: the fields came from a node.
        node: BaseNode = _TEXT_NODE.validate_python(
            fields, self_instance=TextNode.__new__(TextNode)
        )
        return node
    if issubclass(kind, TextNode):
        fields["text"] = text
    elif "text_resource" in fields and issubclass(kind, Node):
        fields["text_resource"]["text"] = text
    return kind.from_dict(fields)


def _revive(metadata: dict[str, Any], encoded: str) -> None:
    """Replace strings by the dates they were written for, where they have not changed."""
    for key, value in decode_metadata(encoded.encode("utf-8", "surrogatepass")).items():
        if key in metadata and metadata[key] == to_jsonable_python(value):
            metadata[key] = value


def is_same(left: Stored, right: Stored) -> bool:
    """Whether two documents are the same node in everything that is stored of it."""
    return (
        left.payload == right.payload
        and (left.text or "") == (right.text or "")
        and encode_metadata(left.metadata, left.id) == encode_metadata(right.metadata, right.id)
    )


# --- classes ----------------------------------------------------------------------


def class_name(kind: type[BaseNode]) -> str:
    """Return the name under which a class is stored."""
    return f"{kind.__module__}.{kind.__qualname__}"


_LLAMA_INDEX = {
    class_name(kind): kind
    for kind in (Node, Document, ImageDocument, ImageNode, IndexNode, TextNode)
}


def _find_class(name: str, id: str) -> type[BaseNode]:
    """Return the node class of a name if it is imported, or warn; this imports nothing."""
    if name in _LLAMA_INDEX:
        return _LLAMA_INDEX[name]
    waiting = list(BaseNode.__subclasses__())
    while waiting:
        kind = waiting.pop()  # the latest first: a notebook may define a class several times
        if class_name(kind) == name:
            return kind
        waiting += kind.__subclasses__()
    warnings.warn(
        f"node {id!r} was stored as {name}, which is not imported, so it is returned as a "
        "TextNode; import the class before retrieving",
        UserWarning,
        stacklevel=2,
    )
    return TextNode


# --- looking up ------------------------------------------------------------------


def parse_payload(document: Hit | Stored) -> Any:
    """Return the fields in the payload of a document, ``None`` if it was not stored as a node."""
    return _parse(document.id, document.payload)


def _parse(id: str, payload: bytes | None) -> Any:
    if payload is None or not payload.startswith(_START):
        return None
    try:
        try:
            # 0.5 microseconds, twice that if values are cached, and 2.5 by json.loads.
            stored_fields = from_json(payload, cache_strings="keys")[MARK]
        except ValueError:  # it refuses lone surrogates, which a node may contain
            stored_fields = json.loads(payload)[MARK]
    except (ValueError, RecursionError) as error:
        raise CorruptIndexError(f"payload of node {id!r}: {error}") from None
    if not isinstance(stored_fields, dict) or not isinstance(stored_fields.get("node"), dict):
        raise CorruptIndexError(f"payload of node {id!r}: it has no node fields")
    return stored_fields


def read_documents(index: BM25Index, ids: Sequence[str]) -> Iterator[Stored]:
    """Yield documents by id, read in batches; those deleted meanwhile are skipped."""
    for first in range(0, len(ids), _AT_ONCE):
        yield from index.get(ids[first : first + _AT_ONCE])


def nodes_without_key(index: BM25Index) -> Iterator[tuple[Stored, Any]]:
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
    by_source: dict[str, set[str]] = {}
    for document, stored_fields in nodes_without_key(index):
        source = source_of(stored_fields)
        if source is not None:
            by_source.setdefault(source, set()).add(document.id)
    return by_source


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
