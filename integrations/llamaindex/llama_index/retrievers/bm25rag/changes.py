"""Adding, deleting, returning, comparing and finding nodes in an index."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag.checks import check_node_ids, check_nodes, check_ref_doc_id
from llama_index.retrievers.bm25rag.filters import check_filters, translate
from llama_index.retrievers.bm25rag.lookup import REF_DOC_ID, read_documents
from llama_index.retrievers.bm25rag.modes import choose_mode
from llama_index.retrievers.bm25rag.nodes import (
    live_object,
    to_document,
    to_node,
    with_new_metadata,
)
from llama_index.retrievers.bm25rag.questions import Options, Question, is_blank, search
from llama_index.retrievers.bm25rag.syncing import SyncResult, compare

from bm25rag import BM25Index, Document, Hit
from bm25rag.adapters import OnDuplicate, check_sequence, in_write_thread, read_hits
from bm25rag.errors import MetadataError
from bm25rag.filters import FilterSpec


class NodeMetadataError(MetadataError):
    """The metadata of a node cannot be stored."""

    def __str__(self) -> str:
        return super().__str__().replace("metadata of document", "metadata of node", 1)


class Live(NamedTuple):
    """An index node's index id, its object, which cannot be stored, and the stored document."""

    index_id: str
    obj: object
    stored: Document

    def is_of(self, found: Document | Hit) -> bool:
        """Whether the index still holds this node; its metadata may have changed."""
        return (found.text, found.payload) == (self.stored.text, self.stored.payload)


class NodeStore:
    """Adds, deletes, returns, compares and finds nodes; ``BM25Retriever`` inherits it.

    Parameters
    ----------
    bm25
        The index that holds them.
    metadata_mode
        Which text is indexed; ``None`` for the mode of the nodes in the index, or ``EMBED``.
    objects
        The objects of index nodes that the user gave, by index id; they stay when nodes go.
    verbose
        Whether to show progress.
    """

    def __init__(
        self,
        bm25: BM25Index,
        metadata_mode: MetadataMode | None,
        objects: dict[str, Any],
        verbose: bool,
    ) -> None:
        self.bm25 = bm25
        self._metadata_mode = choose_mode(bm25, metadata_mode)
        self._objects, self._given_objects = dict(objects), objects
        # The index nodes that were added with an object, by node id.
        self._live: dict[str, Live] = {}
        self._verbose = verbose

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self.bm25)

    @property
    def object_map(self) -> dict[str, Any]:
        """Objects for recursive retrieval by index id: those given, and those of nodes held."""
        if self._live:
            stored = self.bm25.get(list(self._live))
            held = {document.id for document in stored if self._live_of(document)}
            self._forget_objects([id for id in list(self._live) if id not in held])
        return self._objects

    @object_map.setter
    def object_map(self, value: dict[str, Any]) -> None:
        self._objects = value

    def __bool__(self) -> bool:
        """Return True even without nodes: LlamaIndex asks whether there is a retriever."""
        return True

    def add_nodes(
        self, nodes: Iterable[BaseNode], on_duplicate: OnDuplicate = "replace"
    ) -> list[str]:
        """Add all nodes, or none if anything is wrong; return the ids of those added.

        The objects of index nodes, such as retrievers, go into ``object_map``, and leave it with
        the node.

        Parameters
        ----------
        nodes
            The nodes.
        on_duplicate
            What to do if an id exists already, or occurs twice in the call: ``"replace"`` keeps the
            last node, ``"skip"`` the first, and ``"error"`` adds nothing.

        Raises
        ------
        TypeError
            If an element is not a node.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        MetadataError
            If the metadata of a node cannot be stored; the message names node and key.
        """
        given = check_nodes(nodes)
        documents = self._to_documents(given)
        try:
            with self._writing() as index:
                ids = index.add_documents(
                    documents, on_duplicate=on_duplicate, progress=self._verbose
                )
        except MetadataError as error:
            raise _of_node(error, error.row.replace("documents", "nodes")) from None
        for node, stored in _added(given, documents, ids, on_duplicate).values():
            self._forget_objects([node.node_id])
            live = live_object(node)
            if live is not None and isinstance(node, IndexNode):
                self._live[node.node_id] = Live(node.index_id, live, stored)
                self._objects[node.index_id] = live
        return ids

    def update_metadata(
        self, node_ids: Iterable[str], metadata: Iterable[dict[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of nodes, which keep their places; unknown ids are ignored.

        Filters see the new metadata. The indexed text stays as it is, also where metadata are a
        part of it: ``add_nodes`` indexes a changed node again.

        Parameters
        ----------
        node_ids
            The nodes.
        metadata
            The whole new metadata of each.

        Returns
        -------
        node_ids
            The ids of the nodes that were changed.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type.
        ValueError
            If the two differ in length.
        MetadataError
            If metadata cannot be stored; the message names node and key.
        """
        ids = check_node_ids(node_ids)
        given = list(check_sequence("metadata", metadata, "dicts"))
        if len(given) != len(ids):
            raise ValueError(
                f"metadata must be one dict for each of {len(ids)} node_ids, got {len(given)}"
            )
        with self._writing() as index:
            held = {document.id: document for document in read_documents(index, ids)}
            try:
                new = {
                    id: with_new_metadata(held[id], one)
                    for id, one in zip(ids, given, strict=True)
                    if id in held
                }
                return index.update_metadata(list(new), list(new.values()))
            except MetadataError as error:
                raise _of_node(error, "metadata") from None

    def delete_nodes(
        self, node_ids: Iterable[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[str]:
        """Delete nodes by id, by filters, or those of the ids that pass the filters.

        Parameters
        ----------
        node_ids
            The ids; unknown ids are ignored.
        filters
            The filters that the nodes pass.

        Returns
        -------
        node_ids
            The ids of the deleted nodes.

        Raises
        ------
        TypeError
            If ``node_ids`` is a bare string or holds anything but strings, or ``filters`` is
            wrong.
        ValueError
            If neither is given, or ``filters`` is empty.
        """
        index = self._snapshot()
        ids = ids_to_delete(index, node_ids, filters)
        # Others may write meanwhile: a node must still pass the filters when it is deleted.
        return self._delete(ids, translate(filters, index, lasting=True))

    def delete_ref_doc(self, ref_doc_id: str) -> list[str]:
        """Delete the nodes of a source document; return their ids."""
        source = MetadataFilter(key=REF_DOC_ID, value=check_ref_doc_id(ref_doc_id))
        return self.delete_nodes(filters=MetadataFilters(filters=[source]))

    def clear(self) -> list[str]:
        """Delete all nodes; return their ids."""
        return self._delete(self._snapshot().ids())

    def get_nodes(
        self, node_ids: Iterable[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes by id, in the given order, or those that pass filters, or all.

        Parameters
        ----------
        node_ids
            The ids; unknown ids are skipped. ``None`` for all, in the order of the index.
        filters
            The filters that the nodes pass; ``None`` for any.

        Returns
        -------
        nodes
            Fresh copies, without their embeddings.

        Raises
        ------
        TypeError
            If ``node_ids`` is a bare string or holds anything but strings, or ``filters`` is
            wrong.
        """
        index = self._snapshot()
        found = read_documents(index, _ids_of(index, node_ids, check_filters(filters)))
        return [self._to_node(document) for document in found]

    def sync(self, docstore: BaseDocumentStore, *, inner_nodes: bool | None = None) -> SyncResult:
        """Add, update and delete nodes until the index holds what a document store holds.

        A node is updated if anything that is stored of it differs: text, metadata,
        relationships, excluded keys, templates.

        Parameters
        ----------
        docstore
            A document store of the nodes, not of the documents that they were split from.
        inner_nodes
            Whether to hold nodes that others in the store were split from, as
            ``HierarchicalNodeParser`` makes them. ``None`` to do as the index does now; an empty
            index takes them.

        Returns
        -------
        result
            The ids of the added, updated and deleted nodes.

        Raises
        ------
        ValueError
            If the document store holds whole documents, and the index nodes split from them.
        MetadataError
            If the metadata of a node cannot be stored; the message names node and key.
        """
        try:
            new, updated, gone = compare(self.bm25, docstore, self._metadata_mode, inner_nodes)
        except MetadataError as error:
            raise _of_node(error, "docstore") from None
        self.add_nodes([*updated.values(), *new.values()])
        deleted = self._delete(gone)
        return SyncResult(list(new), list(updated), deleted)

    # --- asynchronous twins ---------------------------------------------------------

    async def aadd_nodes(
        self, nodes: Iterable[BaseNode], on_duplicate: OnDuplicate = "replace"
    ) -> list[str]:
        """Run ``add_nodes`` in a thread."""
        return await in_write_thread(self.bm25, self.add_nodes, nodes, on_duplicate)

    async def aupdate_metadata(
        self, node_ids: Iterable[str], metadata: Iterable[dict[str, Any] | None]
    ) -> list[str]:
        """Run ``update_metadata`` in a thread."""
        return await in_write_thread(self.bm25, self.update_metadata, node_ids, metadata)

    async def adelete_nodes(
        self, node_ids: Iterable[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[str]:
        """Run ``delete_nodes`` in a thread."""
        return await in_write_thread(self.bm25, self.delete_nodes, node_ids, filters)

    async def adelete_ref_doc(self, ref_doc_id: str) -> list[str]:
        """Run ``delete_ref_doc`` in a thread."""
        return await in_write_thread(self.bm25, self.delete_ref_doc, ref_doc_id)

    async def aclear(self) -> list[str]:
        """Run ``clear`` in a thread."""
        return await in_write_thread(self.bm25, self.clear)

    async def aget_nodes(
        self, node_ids: Iterable[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Run ``get_nodes`` in a thread."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def async_sync(
        self, docstore: BaseDocumentStore, *, inner_nodes: bool | None = None
    ) -> SyncResult:
        """Run ``sync`` in a thread.

        Parameters
        ----------
        docstore, inner_nodes
            As in ``sync``.
        """
        return await in_write_thread(
            self.bm25, partial(self.sync, docstore, inner_nodes=inner_nodes)
        )

    # --- internals ----------------------------------------------------------------------

    def _snapshot(self) -> BM25Index:
        """Return the index as it is now, whatever is written later."""
        return self.bm25.snapshot()

    @contextmanager
    def _writing(self) -> Iterator[BM25Index]:
        """Give the index to write to."""
        yield self.bm25

    def _find(
        self,
        index: BM25Index,
        question: Question,
        k: int,
        filter: FilterSpec | None,
        options: Options,
    ) -> list[NodeWithScore]:
        """Return the k best nodes; if only a filter says which, the first, with score 0."""
        if filter is None or not is_blank(question):
            return self._with_scores(search(index, question, k, filter, options))
        passing = index.get(index.ids(filter, k=k, offset=options.offset))
        return [NodeWithScore(node=self._to_node(document), score=0.0) for document in passing]

    def _with_scores(self, hits: Sequence[Hit]) -> list[NodeWithScore]:
        """Return the nodes of all hits of a search."""
        read_hits(hits, "text", "metadata", "payload")
        return [NodeWithScore(node=self._to_node(hit), score=hit.score) for hit in hits]

    def _to_documents(self, nodes: Sequence[BaseNode]) -> list[Document]:
        return [self._to_document(number, node) for number, node in enumerate(nodes)]

    def _to_document(self, number: int, node: BaseNode) -> Document:
        try:
            return to_document(node, self._metadata_mode)
        except MetadataError as error:
            raise _of_node(error, f"nodes[{number}]") from None

    def _delete(self, ids: Sequence[str], filter: FilterSpec | None = None) -> list[str]:
        with self._writing() as index:
            deleted = index.delete(ids, filter)
        self._forget_objects(deleted)
        return deleted

    def _forget_objects(self, ids: Iterable[str]) -> None:
        """Remove the objects of deleted index nodes from ``object_map``."""
        if not self._live:
            return
        for index_id, *_ in filter(None, [self._live.pop(id, None) for id in ids]):
            left = [live.obj for live in list(self._live.values()) if live.index_id == index_id]
            if left:
                self._objects[index_id] = left[-1]
            elif index_id in self._given_objects:
                self._objects[index_id] = self._given_objects[index_id]
            else:
                self._objects.pop(index_id, None)

    def _live_of(self, found: Document | Hit) -> Live | None:
        live = self._live.get(found.id)
        return live if live is not None and live.is_of(found) else None

    def _to_node(self, found: Document | Hit) -> BaseNode:
        live = self._live_of(found)
        node = to_node(found)
        if live is not None and isinstance(node, IndexNode):
            node.obj = live.obj
        return node


def _added(
    nodes: Sequence[BaseNode],
    documents: Sequence[Document],
    ids: Iterable[str],
    on_duplicate: OnDuplicate,
) -> dict[str, tuple[BaseNode, Document]]:
    """Return by id the nodes that were added, and as what."""
    pairs = list(zip(nodes, documents, strict=True))
    if on_duplicate == "skip":
        pairs.reverse()  # so that the first of an id is the last
    by_id = {node.node_id: (node, stored) for node, stored in pairs}
    return {id: by_id[id] for id in ids}


def ids_to_delete(
    index: BM25Index, node_ids: Iterable[str] | None, filters: MetadataFilters | None
) -> Sequence[str]:
    """Return the ids that ``delete_nodes`` deletes; without filters, those given, known or not.

    Parameters
    ----------
    index
        A snapshot of the index.
    node_ids, filters
        As in ``NodeStore.delete_nodes``, which also lists the exceptions.
    """
    checked = check_filters(filters)
    if node_ids is None and (checked is None or not checked.filters):
        raise ValueError("node_ids or filters must be given; clear() deletes all nodes")
    return _ids_of(index, node_ids, checked)


def _ids_of(
    index: BM25Index, node_ids: Iterable[str] | None, filters: MetadataFilters | None
) -> Sequence[str]:
    wanted = None if node_ids is None else check_node_ids(node_ids)
    if filters is None or not filters.filters:
        return index.ids() if wanted is None else wanted
    passing = index.ids(translate(filters, index))
    if wanted is None:
        return passing
    among = set(passing)
    return [id for id in wanted if id in among]


def _of_node(error: MetadataError, row: str) -> MetadataError:
    """Reword an error about metadata for nodes, which have no payload."""
    problem = error.problem.replace("as the payload", "in a MediaResource of the node")
    return NodeMetadataError(error.document, error.key, problem, row)
