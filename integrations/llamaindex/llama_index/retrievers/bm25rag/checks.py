"""Checks of what users pass: an error names the argument and says what to pass instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore


def check_nodes(nodes: object) -> list[BaseNode]:
    """Return nodes as a list; refuse a single node, a mapping and anything but nodes."""
    if isinstance(nodes, (BaseNode, str, Mapping)) or not isinstance(nodes, Iterable):
        hint = "; put it into a list" if isinstance(nodes, BaseNode) else ""
        hint = "; give its values()" if isinstance(nodes, Mapping) else hint
        raise TypeError(f"nodes must be an iterable of nodes, got {type(nodes).__name__}{hint}")
    return [_check_node(number, node) for number, node in enumerate(nodes)]


def _check_node(number: int, node: object) -> BaseNode:
    if isinstance(node, BaseNode):
        return node
    hint = ""
    if isinstance(node, NodeWithScore):
        hint = "; give its .node"
    elif isinstance(node, str):
        hint = "; give TextNode(text=...) or what a node parser makes of it"
    raise TypeError(f"nodes[{number}] must be a BaseNode, got {type(node).__name__}{hint}")


def check_node_ids(node_ids: object, name: str = "node_ids") -> list[str]:
    """Return node ids as a list; refuse a bare string and anything but strings."""
    if isinstance(node_ids, (str, bytes, Mapping)) or not isinstance(node_ids, Iterable):
        raise TypeError(f"{name} must be an iterable of node ids, got {type(node_ids).__name__}")
    ids = list(node_ids)
    for number, id in enumerate(ids):
        if not isinstance(id, str):
            hint = "; give its .node_id" if isinstance(id, (BaseNode, NodeWithScore)) else ""
            raise TypeError(f"{name}[{number}] must be a str, got {type(id).__name__}{hint}")
    return ids


def check_ref_doc_id(ref_doc_id: object) -> str:
    """Return the id of a source document; refuse anything but a string."""
    if not isinstance(ref_doc_id, str):
        raise TypeError(f"ref_doc_id must be a str, got {type(ref_doc_id).__name__}")
    return ref_doc_id


def check_docstore(docstore: object) -> BaseDocumentStore:
    """Return a document store; refuse anything else. For an index, the error has a hint."""
    if isinstance(docstore, BaseDocumentStore):
        return docstore
    hint = "; give its .docstore" if hasattr(docstore, "docstore") else ""
    raise TypeError(
        f"docstore must be a document store of LlamaIndex, got {type(docstore).__name__}{hint}"
    )


def docstore_of(index: Any) -> BaseDocumentStore:
    """Return the document store of an index; it must hold the index's nodes."""
    docstore = getattr(index, "docstore", None)
    if not isinstance(docstore, BaseDocumentStore):
        raise TypeError(f"index must be an index of LlamaIndex, got {type(index).__name__}")
    store = getattr(index, "vector_store", None)
    if not docstore.docs and getattr(store, "stores_text", False):
        raise ValueError(
            "index keeps its nodes in its vector store and its docstore is empty: give nodes=, "
            "or build the index with store_nodes_override=True"
        )
    return docstore
