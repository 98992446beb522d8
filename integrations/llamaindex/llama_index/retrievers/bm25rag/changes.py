"""Adding, deleting, returning, comparing and finding nodes in an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag.filters import check_filters, translate
from llama_index.retrievers.bm25rag.nodes import (
    REF_DOC_ID,
    mode_of,
    read_documents,
    to_document,
    to_nodes,
    with_new_metadata,
    with_scores,
    with_spans,
)
from llama_index.retrievers.bm25rag.persistence import saved_settings
from llama_index.retrievers.bm25rag.syncing import SyncResult, compare
from llama_index.retrievers.bm25rag.twins import in_thread

from bm25rag import BM25Index, Document, Hit
from bm25rag.adapters import OnDuplicate, check_sequence, check_strings, with_fields
from bm25rag.errors import MetadataError
from bm25rag.filters import FilterSpec

_T = TypeVar("_T")


class NodeMetadataError(MetadataError):
    """The metadata of a node cannot be stored."""

    def __str__(self) -> str:
        return super().__str__().replace("metadata of document", "metadata of node", 1)


class Live(NamedTuple):
    """An index node's index id, its object, which cannot be stored, and the stored document."""

    index_id: str
    obj: object
    stored: Document


class NodeStore:
    """Adds, deletes, returns, compares and finds nodes; ``BM25Retriever`` inherits it.

    ``objects`` are those of index nodes that the user gave, by index id; they stay when nodes go.
    """

    def __init__(
        self,
        bm25: BM25Index,
        metadata_mode: MetadataMode | None,
        objects: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.bm25 = bm25
        self._metadata_mode = choose_mode(bm25, metadata_mode)
        self._given_objects = objects or {}
        # The index nodes that were added with an object, by node id.
        self._live: dict[str, Live] = {}
        self._verbose = verbose

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return len(self.bm25)

    def __bool__(self) -> bool:
        """Return True even without nodes: LlamaIndex asks whether there is a retriever."""
        return True

    @property
    def metadata_mode(self) -> MetadataMode:
        """Which text is indexed: the content, with which of the metadata."""
        return self._metadata_mode

    @metadata_mode.setter
    def metadata_mode(self, value: MetadataMode) -> None:
        self._metadata_mode = choose_mode(self.bm25, value)

    @property
    def object_map(self) -> dict[str, Any]:
        """Objects for recursive retrieval by index id: those given, and those of nodes held."""
        if not self._live:
            return self._given_objects
        held = filter(self._live_of, self.bm25.get(list(self._live)))
        self._forget_objects(self._live.keys() - {document.id for document in held})
        return self._given_objects | {each.index_id: each.obj for each in [*self._live.values()]}

    @object_map.setter
    def object_map(self, value: dict[str, Any]) -> None:
        self._given_objects = value

    # --- writing ------------------------------------------------------------------

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
        TypeError, DuplicateIdError, MetadataError
            If an element is not a node, an id is there already and ``on_duplicate`` is ``"error"``,
            or the metadata of a node cannot be stored; the message names node and key.
        """
        given = check_nodes(nodes)
        documents = self._to_documents(given)
        try:
            with self._writing() as index:
                given_fields = with_fields(index, documents)
                ids = index.add_documents(
                    given_fields, on_duplicate=on_duplicate, progress=bool(self._verbose)
                )
        except MetadataError as error:
            raise _of_node(error, error.row.replace("documents", "nodes")) from None
        pairs = [(stored.id, (node, stored)) for node, stored in zip(given, documents, strict=True)]
        for id, (node, stored) in pick_added(pairs, ids, on_duplicate).items():
            self._live.pop(id, None)
            # An object that is a node is stored with it.
            if isinstance(node, IndexNode) and not isinstance(node.obj, BaseNode | None):
                self._live[id] = Live(node.index_id, node.obj, stored)
        return ids

    def update_metadata(
        self, node_ids: Iterable[str], metadata: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Replace the whole metadata of nodes, and return the ids of those there are.

        Nodes keep their places, and filters see the new metadata. The indexed text stays as it is,
        also where metadata are a part of it: ``add_nodes`` indexes a changed node again.

        Raises
        ------
        TypeError, ValueError, MetadataError
            If an argument or an element has the wrong type, the two differ in length, or metadata
            cannot be stored; the message names node and key.
        """
        ids = check_strings("node_ids", node_ids)
        given = list(check_sequence("metadata", metadata, "dicts"))
        if len(given) != len(ids):
            raise ValueError(
                f"metadata must be one dict for each of {len(ids)} node_ids, got {len(given)}"
            )
        wanted = dict(zip(ids, given, strict=True))
        with self._writing() as index:
            try:
                new = {
                    document.id: with_new_metadata(document, wanted[document.id])
                    for document in read_documents(index, list(wanted))
                }
                return index.update_metadata(list(new), list(new.values()))
            except MetadataError as error:
                raise _of_node(error, "metadata") from None

    def delete_nodes(
        self, node_ids: Iterable[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[str]:
        """Delete nodes by id, by filters, or those of the ids that pass them; return their ids.

        Unknown ids are ignored.

        Raises
        ------
        TypeError, ValueError
            If ``node_ids`` is a bare string or holds anything but strings, ``filters`` is wrong,
            or there are no ids and ``filters`` is missing or empty.
        """
        index = self._snapshot()
        ids = ids_to_delete(index, node_ids, filters)
        # Others may write meanwhile: a node must still pass the filters when it is deleted.
        return self._delete(ids, translate(filters, index, lasting=True))

    def delete_ref_doc(self, ref_doc_id: str) -> list[str]:
        """Delete the nodes of a source document; return their ids."""
        return self.delete_nodes(filters=of_source(ref_doc_id))

    def clear(self) -> list[str]:
        """Delete all nodes; return their ids."""
        return self._delete(self._snapshot().ids())

    def sync(self, docstore: BaseDocumentStore, *, inner_nodes: bool | None = None) -> SyncResult:
        """Add, update and delete nodes until the index holds what a document store holds.

        It returns their ids. A node is updated if anything that is stored of it differs: text,
        metadata, relationships, excluded keys, templates.

        Parameters
        ----------
        docstore
            A document store of the nodes, not of the documents that they were split from.
        inner_nodes
            Whether to hold nodes that others in the store were split from, as
            ``HierarchicalNodeParser`` makes them. ``None`` to do as the index does now; an empty
            index takes them.

        Raises
        ------
        ValueError, MetadataError
            If the document store holds whole documents, and the index nodes split from them; or if
            the metadata of a node cannot be stored: the message names node and key.
        """
        try:
            new, updated, gone = compare(self.bm25, docstore, self._metadata_mode, inner_nodes)
        except MetadataError as error:
            raise _of_node(error, "docstore") from None
        self.add_nodes([*updated.values(), *new.values()])
        deleted = self._delete(gone)
        return SyncResult(list(new), list(updated), deleted)

    # --- reading ------------------------------------------------------------------

    def get_nodes(
        self, node_ids: Iterable[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes by id, in the given order, or all in that of the index.

        They are fresh copies without their embeddings, of nodes that pass the filters. Unknown ids
        are skipped. A bare string, anything but strings, and wrong filters are a ``TypeError``.
        """
        index = self._snapshot()
        documents = read_documents(index, _ids_of(index, node_ids, check_filters(filters)))
        return self._to_nodes([*documents])

    aadd_nodes = in_thread(add_nodes)
    aupdate_metadata = in_thread(update_metadata)
    adelete_nodes = in_thread(delete_nodes)
    adelete_ref_doc = in_thread(delete_ref_doc)
    aclear = in_thread(clear)
    async_sync = in_thread(sync)
    aget_nodes = in_thread(get_nodes)

    # --- internals ----------------------------------------------------------------------

    def _snapshot(self) -> BM25Index:
        """Return the index as it is now, whatever is written later."""
        return self.bm25.snapshot()

    @contextmanager
    def _writing(self) -> Iterator[BM25Index]:
        """Give the index to write to."""
        yield self.bm25

    def _with_scores(self, hits: Sequence[Hit], spans_key: str | None) -> list[NodeWithScore]:
        """Return the nodes of hits."""
        nodes = self._to_nodes(hits)
        if spans_key is not None:
            pairs = zip(nodes, hits, strict=True)
            nodes = [with_spans(node, hit, spans_key) for node, hit in pairs]
        return with_scores(nodes, [hit.score for hit in hits])

    def _to_documents(self, nodes: Sequence[BaseNode]) -> list[Document]:
        documents = []
        for number, node in enumerate(nodes):
            try:
                documents.append(to_document(node, self._metadata_mode))
            except MetadataError as error:
                raise _of_node(error, f"nodes[{number}]") from None
        return documents

    def _delete(self, ids: Sequence[str], filter: FilterSpec | None = None) -> list[str]:
        with self._writing() as index:
            deleted = index.delete(ids, filter)
        self._forget_objects(deleted)
        return deleted

    def _forget_objects(self, ids: Iterable[str]) -> None:
        """Remove the objects of deleted index nodes from ``object_map``."""
        if self._live:
            for id in ids:
                self._live.pop(id, None)

    def _live_of(self, document: Document | Hit) -> Live | None:
        """Return what is known of a node that the index still holds; its metadata may differ."""
        live = self._live.get(document.id)
        if live is None or document.text != live.stored.text:
            return None
        return live if document.payload == live.stored.payload else None

    def _to_nodes(self, documents: Sequence[Document | Hit]) -> list[BaseNode]:
        lives = [self._live_of(one) for one in documents] if self._live else ()
        nodes = to_nodes(documents)
        for node, live in zip(nodes, lives, strict=False):
            if live is not None and isinstance(node, IndexNode):
                node.obj = live.obj
        return nodes


def pick_added(
    given: Sequence[tuple[str, _T]], ids: Iterable[str], on_duplicate: OnDuplicate
) -> dict[str, _T]:
    """Return by id what was added, of what was given by id."""
    # Of those with the same id, the last of a dict stays.
    by_id = dict(reversed(given) if on_duplicate == "skip" else given)
    return {id: by_id[id] for id in ids}


# --- choosing nodes ------------------------------------------------------------------------


def of_source(ref_doc_id: object) -> MetadataFilters:
    """Return the filters that the nodes of a source document pass."""
    if not isinstance(ref_doc_id, str):
        raise TypeError(f"ref_doc_id must be a str, got {type(ref_doc_id).__name__}")
    return MetadataFilters(filters=[MetadataFilter(key=REF_DOC_ID, value=ref_doc_id)])


def ids_to_delete(
    index: BM25Index, node_ids: Iterable[str] | None, filters: MetadataFilters | None
) -> Sequence[str]:
    """Return the ids that ``delete_nodes`` deletes; without filters, those given, known or not."""
    checked = check_filters(filters)
    if node_ids is None and (checked is None or not checked.filters):
        raise ValueError("node_ids or filters must be given; clear() deletes all nodes")
    return _ids_of(index, node_ids, checked)


def _ids_of(
    index: BM25Index, node_ids: Iterable[str] | None, filters: MetadataFilters | None
) -> Sequence[str]:
    wanted = None if node_ids is None else check_strings("node_ids", node_ids)
    if filters is None or not filters.filters:
        return index.ids() if wanted is None else wanted
    passing = index.ids(translate(filters, index))
    if wanted is None:
        return passing
    among = set(passing)
    return [id for id in wanted if id in among]


# --- checks --------------------------------------------------------------------------------


def choose_mode(index: BM25Index, given: object) -> MetadataMode:
    """Return the given metadata mode, which must be that of the index, or its own, or the default.

    The default is ``EMBED``; of an index with fields ``NONE``, or their words would count twice.
    """
    wanted = None
    if given is not None:
        modes = [mode.value for mode in MetadataMode]
        if not isinstance(given, str) or given not in modes:
            kind = ValueError if isinstance(given, str) else TypeError
            expected = f"metadata_mode must be a MetadataMode ({', '.join(modes)}) or None"
            raise kind(f"{expected}, got {given!r:.100}")
        wanted = MetadataMode(given)
    settings = saved_settings(index)
    saved = None if settings is None else settings.metadata_mode
    held = mode_of(index) or (saved if len(index) else None)
    if wanted is not None and held is not None and wanted is not held:
        raise ValueError(
            f"metadata_mode must be {held.value!r}, by which the nodes of the index were indexed, "
            f"got {wanted.value!r}; a new BM25Retriever(nodes, metadata_mode=...) can use another"
        )
    usual = MetadataMode.EMBED if index.fields is None else MetadataMode.NONE
    return wanted or held or saved or usual


def check_nodes(nodes: object) -> list[BaseNode]:
    """Return nodes as a list; refuse a single node, a mapping and anything but nodes."""
    if isinstance(nodes, (BaseNode, str, Mapping)) or not isinstance(nodes, Iterable):
        hint = "; put it into a list" if isinstance(nodes, BaseNode) else ""
        hint = "; give its values()" if isinstance(nodes, Mapping) else hint
        raise TypeError(f"nodes must be an iterable of nodes, got {type(nodes).__name__}{hint}")
    given = list(nodes)
    for number, node in enumerate(given):
        if not isinstance(node, BaseNode):
            hint = "; give its .node" if isinstance(node, NodeWithScore) else ""
            if isinstance(node, str):
                hint = "; give TextNode(text=...) or what a node parser makes of it"
            got = type(node).__name__
            raise TypeError(f"nodes[{number}] must be a BaseNode, got {got}{hint}")
    return given


def _of_node(error: MetadataError, row: str) -> MetadataError:
    """Reword an error about metadata for nodes, which have no payload."""
    problem = error.problem.replace("as the payload", "in a MediaResource of the node")
    return NodeMetadataError(error.document, error.key, problem, row)
