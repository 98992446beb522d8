"""The difference between a document store and an index."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, Document, MetadataMode, NodeRelationship
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.retrievers.bm25rag.nodes import (
    SOURCE_PATH,
    is_same,
    parse_payload,
    read_documents,
    relations_of,
    sources_without_key,
    to_document,
    to_nodes,
)

from bm25rag import BM25Index
from bm25rag import Document as Stored


class SyncResult(NamedTuple):
    """The ids of the nodes that ``sync`` added, updated and deleted."""

    added: list[str]
    updated: list[str]
    deleted: list[str]


def compare(
    index: BM25Index, docstore: BaseDocumentStore, mode: MetadataMode, inner_nodes: bool | None
) -> tuple[dict[str, BaseNode], dict[str, BaseNode], list[str]]:
    """Return the nodes of a document store that are new or differ, and the ids that it lacks."""
    nodes = check_docstore(docstore).docs
    inner = _inner_ids(nodes.values()) & nodes.keys()
    _refuse_whole_documents(index, nodes, inner)
    if inner and not (_holds_inner(index, inner) if inner_nodes is None else inner_nodes):
        nodes = {id: node for id, node in nodes.items() if id not in inner}
    held = index.ids()
    new = nodes.keys() - set(held)
    updated = {
        document.id
        for document in read_documents(index, [id for id in held if id in nodes])
        if not _is_held(nodes[document.id], document, mode)
    }
    return (
        {id: node for id, node in nodes.items() if id in new},
        {id: node for id, node in nodes.items() if id in updated},
        [id for id in held if id not in nodes],
    )


def _is_held(node: BaseNode, document: Stored, mode: MetadataMode) -> bool:
    """Whether a stored document is a given node of a document store.

    A document store loses the class of a node unless it is one of LlamaIndex's own, so the stored
    node is compared in the form that a document store would return.
    """
    given = to_document(node, mode)
    if is_same(given, document):
        return True
    (stored,) = to_nodes([document])
    try:
        kept = json_to_doc(doc_to_json(stored))
    except ValueError:  # no document store can hold it
        return False
    return is_same(given, to_document(kept, mode))


def _inner_ids(nodes: Iterable[BaseNode]) -> set[str]:
    """Return the ids of nodes that others were split from, and of those that name children."""
    inner: set[str] = set()
    for node in nodes:
        parent = node.relationships.get(NodeRelationship.PARENT)
        above = [node.source_node, *(parent if isinstance(parent, list) else [parent])]
        inner |= {
            related.node_id
            for related in above
            if related is not None and related.node_id != node.node_id
        }
        if node.relationships.get(NodeRelationship.CHILD):
            inner.add(node.node_id)
    return inner


def _holds_inner(index: BM25Index, inner: set[str]) -> bool:
    """Whether the index holds inner nodes, or is empty."""
    if not len(index) or any(id in index for id in inner):
        return True
    payloads = map(parse_payload, read_documents(index, index.ids()))
    child = NodeRelationship.CHILD.value
    return any(fields is not None and child in relations_of(fields) for fields in payloads)


def _refuse_whole_documents(index: BM25Index, nodes: dict[str, BaseNode], inner: set[str]) -> None:
    """Refuse the document store of a pipeline: it holds what the nodes were split from."""
    strange = [id for id in nodes if id not in inner and id not in index]
    if not strange:
        return
    dropped = sources_without_key(index)
    whole = [id for id in strange if id in dropped]
    if not whole and (cut := index.ids({SOURCE_PATH: {"$in": strange}})):
        whole = [node.ref_doc_id or "" for node in to_nodes(index.get(cut[:1]))]
    if not whole and not any(id in index for id in nodes):
        cut_from_some = dropped or index.count({SOURCE_PATH: {"$exists": True}})
        whole = [id for id in strange if cut_from_some and isinstance(nodes[id], Document)]
    if whole:
        raise ValueError(
            f"docstore holds whole documents, such as {whole[0]!r}, and the index holds nodes "
            "split from them: the documents would replace the nodes. Give sync a document store of "
            "the nodes, filled by docstore.add_documents(nodes) with what the pipeline returns; or "
            "call delete_ref_doc(document id) and add_nodes(nodes) for each document that changed"
        )


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
