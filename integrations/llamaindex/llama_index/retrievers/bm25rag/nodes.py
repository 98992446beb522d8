"""Nodes to documents of the core and back.

A document's text is the text that is indexed. Its metadata are what LlamaIndex's filters see of
the node's, dates as ISO strings, and under one key what else is looked up (``own.py``). Its payload
is JSON of what else there is to the node. The text of a node is almost always a part of
the text that is indexed, so the payload says where.
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
from llama_index.retrievers.bm25rag.own import (
    DATES,
    MARK,
    MODE,
    OWN_KEY,
    describe,
    index_id_of,
    mode_in,
    parse_payload,
    source_of,
    without_key,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from bm25rag import BM25Index, Hit
from bm25rag import Document as Stored
from bm25rag.adapters import decode_metadata, encode_metadata
from bm25rag.errors import CorruptIndexError, MetadataError

_PLAIN = frozenset({str, int, float, bool, type(None)})
_RESOURCES = ("text_resource", "image_resource", "audio_resource", "video_resource")
_TEXT_NODE = TextNode.__pydantic_validator__


# --- writing ----------------------------------------------------------------------


def to_document(node: BaseNode, mode: MetadataMode) -> Stored:
    """Return what the core shall keep of a node; all of it but the embedding.

    Raises
    ------
    MetadataError
        If the metadata cannot be stored; the message names node and key.
    """
    text = node.get_content(metadata_mode=mode)
    kept: dict[str, Any] = {MODE: mode.value, "node": _fields(node)}
    if type(node) is not TextNode:
        kept["class"] = class_name(type(node))
    content = _content(node)
    if content is not None and content in text:
        start = text.index(content)
        kept["at"] = [start, start + len(content)]
    else:
        kept["text"] = content
    own = describe(mode, node.ref_doc_id, _index_id(node))
    written, dates = _write_dates(node.metadata, node.node_id)
    if dates is not None:
        kept[DATES] = dates
    payload = json.dumps({MARK: kept}, separators=(",", ":")).encode("ascii")
    return Stored(node.node_id, text, {**written, OWN_KEY: own}, payload)


def _index_id(node: BaseNode) -> str | None:
    """Return the index id of an index node whose object is not stored with it."""
    if isinstance(node, IndexNode) and not isinstance(node.obj, BaseNode):
        return node.index_id
    return None


def adopt(index: BM25Index, mode: MetadataMode) -> None:
    """Write what is kept beside the metadata again where it is missing.

    Nodes that version 0.1.0 stored have less of it, and dates as dates. Those whose metadata were
    written through the core since have none.
    """
    changed: dict[str, dict[str, Any]] = {}
    for found, kept in without_key(index):
        found.metadata.pop(OWN_KEY, None)
        written, dates = _write_dates(found.metadata, found.id)
        own = describe(mode_in(kept) or mode, source_of(kept), index_id_of(kept))
        if dates is not None:
            own[DATES] = dates
        changed[found.id] = {**written, OWN_KEY: own}
    if changed:
        index.update_metadata(list(changed), list(changed.values()))


def live_object(node: BaseNode) -> object | None:
    """Return an index node's object if it cannot be stored: a retriever, a query engine."""
    if not isinstance(node, IndexNode) or isinstance(node.obj, BaseNode):
        return None
    return node.obj  # type: ignore[no-any-return]  # declared as Any


def _content(node: BaseNode) -> str | None:
    if isinstance(node, TextNode):
        return node.text
    if isinstance(node, Node) and node.text_resource is not None:
        return node.text_resource.text
    return None


def _fields(node: BaseNode) -> dict[str, Any]:
    """Return the fields that differ from their defaults, but those the core has beside them."""
    left_out = {"id_", "metadata", "embedding"}
    if isinstance(node, (TextNode, Node)):
        left_out.add("text")
    try:
        if isinstance(node, IndexNode) and node.obj is not None:
            fields = _fields(node.model_copy(update={"obj": None}))
            if isinstance(node.obj, BaseNode):
                written = doc_to_json(node.obj)
                fields["obj"] = to_jsonable_python(written, fallback=partial(_plain, node.node_id))
            return fields
        try:
            fields = node.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
        except PydanticSerializationError:  # related nodes bring their metadata along
            node = _with_plain_relations(node)
            fields = node.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
    except PydanticSerializationError as error:
        raise MetadataError(node.node_id, "", f"the node cannot be stored: {error}") from error
    del fields["class_name"]
    if isinstance(node, Node):
        _complete_resources(node, fields)
    return fields


def _plain(id: str, value: object) -> Any:
    return decode_metadata(encode_metadata({"obj": value}, id))["obj"]


def _with_plain_relations(node: BaseNode) -> BaseNode:
    """Return a copy whose related nodes have metadata as the core stores them."""
    relations: dict[NodeRelationship, Any] = {}
    for kind, related in node.relationships.items():
        several = related if isinstance(related, list) else [related]
        plain = [_with_plain_metadata(node.node_id, kind, one) for one in several]
        relations[kind] = plain if isinstance(related, list) else plain[0]
    return node.model_copy(update={"relationships": relations})


def _with_plain_metadata(
    id: str, kind: NodeRelationship, related: RelatedNodeInfo
) -> RelatedNodeInfo:
    try:
        plain = decode_metadata(encode_metadata(related.metadata, id))
    except MetadataError as error:
        key = f"relationships.{kind.name}.metadata.{error.key}"
        raise MetadataError(id, key, error.problem) from None
    return related.model_copy(update={"metadata": plain})


def _complete_resources(node: Node, fields: dict[str, Any]) -> None:
    """Leave the text out, which the core has, and put the bytes in, which a dump leaves out."""
    for name in _RESOURCES:
        resource = getattr(node, name)
        if resource is not None and resource.data is not None:
            fields[name]["data"] = resource.data.decode("ascii")  # base64
    if node.text_resource is not None:
        fields["text_resource"].pop("text", None)


def _write_dates(metadata: dict[str, Any], id: str) -> tuple[dict[str, Any], str | None]:
    """Return metadata with dates as strings, and what had dates, as the core writes it.

    LlamaIndex's stores write dates as strings, and its filters compare these.
    """
    if OWN_KEY in metadata:
        raise MetadataError(id, OWN_KEY, "the key is reserved")
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
    """Return a fresh node of the class it had; a text node of what was not stored as a node.

    Parameters
    ----------
    found
        What the core has found.

    Warns
    -----
    UserWarning
        If its class is not imported; it is a text node then.

    Raises
    ------
    CorruptIndexError
        If the payload is damaged.
    """
    own = found.metadata.pop(OWN_KEY, None)
    kept = parse_payload(found)
    if kept is None:
        return TextNode(id_=found.id, text=found.text or "", metadata=found.metadata)
    dates = kept.get(DATES) or (own.get(DATES) if isinstance(own, dict) else None)
    if isinstance(dates, str):
        _revive(found.metadata, dates)
    try:
        return _make_node(found, kept)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptIndexError(f"payload of node {found.id!r} makes no node: {error}") from error


def _make_node(found: Hit | Stored, kept: dict[str, Any]) -> BaseNode:
    indexed = found.text or ""
    fields: dict[str, Any] = kept["node"]
    fields["id_"] = found.id
    fields["metadata"] = found.metadata
    text = indexed[slice(*kept["at"])] if "at" in kept else kept["text"]
    name = kept.get("class")
    kind = TextNode if name is None else _find_or_warn(name, found.id)
    if kind is TextNode:
        fields["text"] = text or ""
        # What TextNode(**fields) does, in 1.7 and not 4.1 microseconds: the fields were a node's.
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
    """Put dates in the place of the strings written for them, where those are still there."""
    for key, value in decode_metadata(encoded.encode("utf-8", "surrogatepass")).items():
        if key in metadata and metadata[key] == to_jsonable_python(value):
            metadata[key] = value


def is_same(one: Stored, other: Stored) -> bool:
    """Whether two documents are the same node, in all that is kept of it."""
    return (
        one.payload == other.payload
        and (one.text or "") == (other.text or "")
        and encode_metadata(one.metadata, one.id) == encode_metadata(other.metadata, other.id)
    )


# --- classes ----------------------------------------------------------------------


def class_name(kind: type[BaseNode]) -> str:
    """Return the name under which a class is stored."""
    return f"{kind.__module__}.{kind.__qualname__}"


_LLAMA_INDEX = {
    class_name(kind): kind
    for kind in (Node, Document, ImageDocument, ImageNode, IndexNode, TextNode)
}


def find_class(name: str) -> type[BaseNode] | None:
    """Return the node class of a name, if it is imported; nothing is imported for a name."""
    known = _LLAMA_INDEX.get(name)
    if known is not None:
        return known
    waiting = list(BaseNode.__subclasses__())
    while waiting:
        kind = waiting.pop()  # the latest first: a notebook defines a class again and again
        if class_name(kind) == name:
            return kind
        waiting += kind.__subclasses__()
    return None


def _find_or_warn(name: str, id: str) -> type[BaseNode]:
    kind = find_class(name)
    if kind is not None:
        return kind
    warnings.warn(
        f"node {id!r} was stored as a {name}, which is not imported: it comes back as a TextNode; "
        "import the class before retrieving",
        UserWarning,
        stacklevel=2,
    )
    return TextNode
