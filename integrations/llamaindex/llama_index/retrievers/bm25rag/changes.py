"""Nodes come and go: what a BM25Retriever has beside retrieving."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, IndexNode, MetadataMode
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.retrievers.bm25rag.nodes import (
    OWN_KEY,
    REF_DOC_ID,
    class_name,
    hash_of,
    live_object,
    to_stored,
)

from bm25rag import BM25Index


class SyncResult(NamedTuple):
    """The ids of the nodes that ``sync`` has added, updated and deleted."""

    added: list[str]
    updated: list[str]
    deleted: list[str]


class NodeStore:
    """Adds, deletes and compares nodes; ``BM25Retriever`` inherits it."""

    bm25: BM25Index
    metadata_mode: MetadataMode
    object_map: dict[str, Any]
    _classes: dict[str, type[BaseNode]]
    _verbose: bool

    def add_nodes(self, nodes: Iterable[BaseNode]) -> list[str]:
        """Add nodes, all of them or, if anything is wrong, none; return their ids.

        A node takes the place of one with the same id. The objects of index nodes, such as
        retrievers, go into ``object_map``.

        Raises
        ------
        TypeError
            If something is no node.
        MetadataError
            If the metadata of a node cannot be stored; the message names node and key.
        """
        given = [_check_node(number, node) for number, node in enumerate(nodes)]
        stored = [to_stored(node, self.metadata_mode) for node in given]
        ids = self.bm25.add(
            [each.text for each in stored],
            [node.node_id for node in given],
            [each.metadata for each in stored],
            [each.payload for each in stored],
            on_duplicate="replace",
            progress=self._verbose,
        )
        for node in given:
            self._classes[class_name(type(node))] = type(node)
            live = live_object(node)
            if live is not None and isinstance(node, IndexNode):
                self.object_map[node.index_id] = live
        return ids

    def delete_nodes(self, node_ids: Iterable[str]) -> int:
        """Delete nodes by id; return how many there were.

        Raises
        ------
        TypeError
            If ``node_ids`` is a bare string or holds anything but strings.
        """
        if isinstance(node_ids, str):
            raise TypeError("node_ids must be an iterable of ids, got a str")
        return self.bm25.delete(node_ids)

    def delete_ref_doc(self, ref_doc_id: str) -> int:
        """Delete the nodes of a source document; return how many there were."""
        if not isinstance(ref_doc_id, str):
            raise TypeError(f"ref_doc_id must be a str, got {type(ref_doc_id).__name__}")
        return self.bm25.delete(self.bm25.ids({f"{OWN_KEY}.{REF_DOC_ID}": ref_doc_id}))

    def sync(self, docstore: BaseDocumentStore) -> SyncResult:
        """Hold what a document store holds: add, update and delete nodes, by id and hash.

        Parameters
        ----------
        docstore
            The document store.

        Returns
        -------
        result
            The ids of the nodes added, updated and deleted.
        """
        nodes = docstore.docs
        new, updated = [], []
        for id, node in nodes.items():
            found = self.bm25.get([id])
            if not found:
                new.append(id)
            elif hash_of(found[0], self._classes) != node.hash:
                updated.append(id)
        gone = [id for id in self.bm25.ids() if id not in nodes]
        self.add_nodes([nodes[id] for id in (*updated, *new)])
        self.delete_nodes(gone)
        return SyncResult(new, updated, gone)


def _check_node(number: int, node: object) -> BaseNode:
    if not isinstance(node, BaseNode):
        raise TypeError(f"nodes[{number}] must be a BaseNode, got {type(node).__name__}")
    return node
