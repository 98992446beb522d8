"""Converts nodes to documents of the core, and back.

A document's text is the text that is indexed. Its metadata are those of the node that LlamaIndex's
filters see, with dates as ISO strings, and one key for the fields of ``lookup.py``. Its payload is
JSON of everything else in the node. The node's own text is almost always a part of the indexed
text, so the payload stores its position.
"""

from __future__ import annotations

import json
import warnings
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
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore.utils import doc_to_json
from llama_index.retrievers.bm25rag.lookup import (
    DATES,
    MARK,
    MODE,
    NODE_KEY,
    lookup_fields,
    lookup_fields_in,
    parse_payload,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from bm25rag import Document as Stored
from bm25rag import Hit
from bm25rag.adapters import decode_metadata, encode_metadata
from bm25rag.errors import CorruptIndexError, MetadataError

_PLAIN = frozenset({str, int, float, bool, type(None)})
_RESOURCES = ("text_resource", "image_resource", "audio_resource", "video_resource")
_TEXT_NODE = TextNode.__pydantic_validator__


# --- writing ----------------------------------------------------------------------


def to_document(node: BaseNode, mode: MetadataMode) -> Stored:
    """Return the document that stores a node: everything but its embedding."""
    text = node.get_content(metadata_mode=mode)
    stored_fields: dict[str, Any] = {MODE: mode.value, "node": _fields(node)}
    if type(node) is not TextNode:
        stored_fields["class"] = class_name(type(node))
    content = _content(node)
    if content is not None and content in text:
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
    payload = json.dumps({MARK: stored_fields}, separators=(",", ":")).encode("ascii")
    return Stored(node.node_id, text, {**written, NODE_KEY: lookup}, payload)


def with_new_metadata(found: Stored, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Return what stands in place of a stored node's metadata: others, as ``to_document`` does."""
    stored_fields = parse_payload(found)
    if stored_fields is None or not isinstance(metadata or {}, dict):  # the core refuses the latter
        return metadata or {}
    written, dates = _write_dates(metadata or {}, found.id)
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


def _write_dates(metadata: dict[str, Any], id: str) -> tuple[dict[str, Any], str | None]:
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


def to_node(found: Hit | Stored) -> BaseNode:
    """Return a new node of its original class; a text node if it was not stored as a node."""
    lookup = found.metadata.pop(NODE_KEY, None)
    stored_fields = parse_payload(found)
    if stored_fields is None:
        return TextNode(id_=found.id, text=found.text or "", metadata=found.metadata)
    # In the metadata if those were written after the node.
    dates = (lookup.get(DATES) if isinstance(lookup, dict) else None) or stored_fields.get(DATES)
    if isinstance(dates, str):
        _revive(found.metadata, dates)
    try:
        return _make_node(found, stored_fields)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptIndexError(f"payload of node {found.id!r} is not a node: {error}") from error


def _make_node(found: Hit | Stored, stored_fields: dict[str, Any]) -> BaseNode:
    indexed = found.text or ""
    fields: dict[str, Any] = stored_fields["node"]
    fields["id_"] = found.id
    fields["metadata"] = found.metadata
    text = indexed[slice(*stored_fields["at"])] if "at" in stored_fields else stored_fields["text"]
    name = stored_fields.get("class")
    kind = TextNode if name is None else _find_class(name, found.id)
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
        f"node {id!r} was stored as a {name}, which is not imported, so it is returned as a "
        "TextNode; import the class before retrieving",
        UserWarning,
        stacklevel=2,
    )
    return TextNode
