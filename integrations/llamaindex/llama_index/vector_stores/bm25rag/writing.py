"""Writes to a store: to BM25 first what is added, from the dense store first what is deleted.

So whatever fails, no node is lost, and no deleted node is found; the same call completes the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag.changes import ids_to_delete
from llama_index.retrievers.bm25rag.checks import check_nodes, check_ref_doc_id
from llama_index.retrievers.bm25rag.lookup import REF_DOC_ID
from llama_index.vector_stores.bm25rag.calls import Call, Calls, DenseStoreError
from llama_index.vector_stores.bm25rag.legs import Legs
from llama_index.vector_stores.bm25rag.vectors import Vectors, check_options

from bm25rag.adapters import OnDuplicate


class Writing:
    """Adds and deletes; the methods of ``BM25VectorStore`` say how, and list the exceptions.

    Parameters
    ----------
    nodes
        The nodes of the store.
    vectors
        The dense store, if there is one.
    """

    def __init__(self, nodes: Legs, vectors: Vectors | None) -> None:
        self._nodes, self._vectors = nodes, vectors

    def add(self, nodes: Sequence[BaseNode], options: dict[str, Any]) -> Calls[list[str]]:
        """Add nodes; return the id of each."""
        others = dict(options)
        on_duplicate: OnDuplicate = others.pop("on_duplicate", "replace")
        check_options("add", others, self._vectors)
        given = check_nodes(nodes)
        ids = [node.node_id for node in given]
        if self._vectors is None:
            self._nodes.add_nodes(given, on_duplicate)
            return ids
        store = self._vectors.store
        dimension = self._vectors.check_nodes(given)
        before = self._nodes.snapshot()
        added = set(self._nodes.add_nodes(given, on_duplicate))
        first = on_duplicate == "skip"
        wanted = {
            node.node_id: node
            for node in (reversed(given) if first else given)
            if node.node_id in added
        }
        again = "BM25 finds the nodes; add them again, to replace them, for the dense store"
        yield from _delete_by_id([id for id in wanted if id in before], again)
        if wanted:
            new = yield Call("add", {"nodes": list(wanted.values()), **others}, again)
            self._vectors.dimension = dimension
            if not store.stores_text and list(new) != list(wanted):
                raise DenseStoreError(
                    f"the dense store ({type(store).__name__}) keeps no nodes, and gives "
                    "them ids of its own, so its results are unknown: give one that keeps theirs, "
                    "such as FaissMapVectorStore in place of FaissVectorStore"
                )
        return ids

    def delete(self, ref_doc_id: str, options: dict[str, Any]) -> Calls[None]:
        """Delete the nodes of a source document, or the document."""
        check_options("delete", options, self._vectors)
        check_ref_doc_id(ref_doc_id)
        of_source = MetadataFilters(filters=[MetadataFilter(key=REF_DOC_ID, value=ref_doc_id)])
        ids = ids_to_delete(self._nodes.snapshot(), None, of_source)
        # A pipeline without a splitter adds documents as they are, and deletes them like this.
        itself = self._nodes.get_nodes([ref_doc_id])
        whole = [node.node_id for node in itself if node.ref_doc_id is None]
        yield from self._delete_vectors("delete", {"ref_doc_id": ref_doc_id}, options)
        if self._vectors is not None:  # FaissMapVectorStore deletes by the ids of nodes alone
            after = "the BM25 index has not changed; call delete again"
            yield from _delete_by_id([*ids, *whole], after)
        self._nodes.delete_ref_doc(ref_doc_id)
        self._nodes.delete_nodes(whole)

    def delete_nodes(
        self,
        node_ids: list[str] | None,
        filters: MetadataFilters | None,
        options: dict[str, Any],
    ) -> Calls[None]:
        """Delete nodes by id, by filters, or both."""
        check_options("delete_nodes", options, self._vectors)
        ids = ids_to_delete(self._nodes.snapshot(), node_ids, filters)
        if ids:  # without any, some stores delete everything
            yield from self._delete_vectors("delete_nodes", {"node_ids": list(ids)}, options)
            self._nodes.delete_nodes(ids, filters)

    def clear(self) -> Calls[None]:
        """Delete all nodes."""
        yield from self._delete_vectors("clear", {}, {})
        self._nodes.clear()
        if self._vectors is not None:
            self._vectors.dimension = 0

    def _delete_vectors(
        self, method: str, arguments: dict[str, Any], options: dict[str, Any]
    ) -> Calls[None]:
        self._nodes.check_writable()
        if self._vectors is not None:
            after = f"the BM25 index has not changed, and {method} can be called again"
            yield Call(method, {**arguments, **options}, after)


def _delete_by_id(ids: Sequence[str], after: str) -> Calls[None]:
    """Delete vectors, if the dense store can: others replace, and delete by source."""
    if ids:  # without any, some stores delete everything
        try:
            yield Call("delete_nodes", {"node_ids": list(ids)}, after)
        except DenseStoreError as error:
            if not isinstance(error.__cause__, NotImplementedError):
                raise
