"""Nodes to documents of the core and back.

A document's text is the text that is indexed, its metadata are the node's, and its payload
is JSON of what else there is to the node. The text of a node is almost always a part of
the text that is indexed, so the payload says where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, Node, TextNode
from llama_index.core.storage.docstore.utils import doc_to_json
from pydantic_core import PydanticSerializationError, from_json, to_jsonable_python

from bm25rag import Document, Hit
from bm25rag.documents import encode_metadata
from bm25rag.errors import CorruptIndexError, MetadataError

OWN_KEY = "__node__"
REF_DOC_ID = "ref_doc_id"

_MARK = b'{"llama_index":'
_PLAIN = (str, int, float, bool, type(None))
_RESOURCES = ("text_resource", "image_resource", "audio_resource", "video_resource")
_TEXT_NODE = TextNode.__pydantic_validator__


class Stored(NamedTuple):
    """What the core is given of a node."""

    text: str
    metadata: dict[str, Any]
    payload: bytes


# --- writing ----------------------------------------------------------------------


def to_stored(node: BaseNode, mode: MetadataMode) -> Stored:
    """Return what the core shall keep of a node; all of it but the embedding.

    Raises
    ------
    MetadataError
        If the metadata cannot be stored; the message names node and key.
    """
    text = node.get_content(metadata_mode=mode)
    kept: dict[str, Any] = {"hash": node.hash, "node": _fields(node)}
    if type(node) is not TextNode:
        kept["class"] = class_name(type(node))
    content = _content(node)
    if content is not None and content in text:
        start = text.index(content)
        kept["at"] = [start, start + len(content)]
    else:
        kept["text"] = content
    payload = json.dumps({"llama_index": kept}, separators=(",", ":")).encode("ascii")
    return Stored(text, _metadata(node), payload)


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
                fields["obj"] = to_jsonable_python(doc_to_json(node.obj))
            return fields
        fields = node.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
    except PydanticSerializationError as error:
        encode_metadata(node.metadata, node.node_id)  # says it better, if it is the metadata
        raise MetadataError(f"node {node.node_id!r} cannot be stored: {error}") from error
    del fields["class_name"]
    if isinstance(node, Node):
        _complete_resources(node, fields)
    return fields


def _complete_resources(node: Node, fields: dict[str, Any]) -> None:
    """Leave the text out, which the core has, and put the bytes in, which a dump leaves out."""
    for name in _RESOURCES:
        resource = getattr(node, name)
        if resource is not None and resource.data is not None:
            fields[name]["data"] = resource.data.decode("ascii")  # base64
    if node.text_resource is not None:
        fields["text_resource"].pop("text", None)


def _metadata(node: BaseNode) -> dict[str, Any]:
    if OWN_KEY in node.metadata:
        raise MetadataError(
            f"metadata of document {node.node_id!r} at {OWN_KEY!r}: the key is reserved"
        )
    own: dict[str, Any] = {}
    if node.ref_doc_id is not None:
        own[REF_DOC_ID] = node.ref_doc_id
    if dates := dict(_dates(node)):
        own["dates"] = dates
    return {**node.metadata, OWN_KEY: own} if own else {**node.metadata}


def _dates(node: BaseNode) -> Iterator[tuple[str, Any]]:
    """Yield what holds dates as LlamaIndex's filters see it: with ISO strings in their place."""
    composed = {key: value for key, value in node.metadata.items() if type(value) not in _PLAIN}
    encode_metadata(composed, node.node_id)  # refuses what could not be compared either
    for key, value in composed.items():
        written = to_jsonable_python(value)
        if written != value:
            yield key, written


# --- reading ----------------------------------------------------------------------


def to_node(found: Hit | Document, classes: dict[str, type[BaseNode]]) -> BaseNode:
    """Return a fresh node of the class it had; a text node of what was not stored as a node.

    Parameters
    ----------
    found
        What the core has found.
    classes
        Classes by name; those that are met for the first time are added.
    """
    metadata = found.metadata
    metadata.pop(OWN_KEY, None)
    indexed = found.text or ""
    kept = _kept(found)
    if kept is None:
        return TextNode(id_=found.id, text=indexed, metadata=metadata)
    fields: dict[str, Any] = kept["node"]
    fields["id_"] = found.id
    fields["metadata"] = metadata
    text = indexed[slice(*kept["at"])] if "at" in kept else kept["text"]
    name = kept.get("class")
    if name is None:
        fields["text"] = text
        # What TextNode(**fields) does, in 1.7 and not 4.1 microseconds: the fields were a node's.
        node: BaseNode = _TEXT_NODE.validate_python(
            fields, self_instance=TextNode.__new__(TextNode)
        )
        return node
    kind = classes.get(name)
    if kind is None:
        kind = classes[name] = find_class(name)
    if issubclass(kind, TextNode):
        fields["text"] = text
    elif "text_resource" in fields and issubclass(kind, Node):
        fields["text_resource"]["text"] = text
    return kind.from_dict(fields)


def hash_of(found: Document, classes: dict[str, type[BaseNode]]) -> str:
    """Return the hash that the node had when it was stored."""
    kept = _kept(found)
    return to_node(found, classes).hash if kept is None else kept["hash"]


def _kept(found: Hit | Document) -> Any:
    if found.payload is None or not found.payload.startswith(_MARK):
        return None
    try:
        return _parse(found.payload)["llama_index"]
    except ValueError as error:
        raise CorruptIndexError(f"payload of document {found.id!r}: {error}") from None


def _parse(payload: bytes) -> Any:
    try:
        return from_json(payload)  # 0.5 microseconds, and 2.5 by json.loads
    except ValueError:  # it refuses lone surrogates, which a node may have
        return json.loads(payload)


# --- classes ----------------------------------------------------------------------


def class_name(kind: type[BaseNode]) -> str:
    """Return the name under which a class is stored."""
    return f"{kind.__module__}.{kind.__qualname__}"


def find_class(name: str) -> type[BaseNode]:
    """Return the node class of a name, which has to be imported already.

    Raises
    ------
    ValueError
        If it is not.
    """
    waiting = list(BaseNode.__subclasses__())
    while waiting:
        kind = waiting.pop()  # the latest first: a notebook defines a class again and again
        if class_name(kind) == name:
            return kind
        waiting += kind.__subclasses__()
    raise ValueError(
        f"a node is of the class {name}, which is not there: import it before nodes are read"
    )
