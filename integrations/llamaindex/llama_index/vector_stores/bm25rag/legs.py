"""The legs of a search: what BM25 finds, what sparse vectors find, and what a dense store finds.

All return only nodes that pass the filters, node ids and document ids of a query. The dense store
is asked with them, and what it returns is checked by the filters of bm25rag. If it takes them for
an error, or leaves fewer nodes than pass, it is asked again without, for more and more nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index.retrievers.bm25rag.changes import NodeStore
from llama_index.retrievers.bm25rag.checks import check_node_ids
from llama_index.retrievers.bm25rag.filters import check_filters, translate
from llama_index.retrievers.bm25rag.lookup import REF_DOC_ID
from llama_index.retrievers.bm25rag.questions import Options, search
from llama_index.vector_stores.bm25rag.calls import Call, Calls, DenseStoreError
from llama_index.vector_stores.bm25rag.encoding import Encoder, SparseEncoderCallable
from llama_index.vector_stores.bm25rag.folders import Folder

from bm25rag import BM25Index, Document, Hit
from bm25rag.filters import FilterSpec


class Scope(NamedTuple):
    """A state of the index, and which of its nodes a query may return.

    Parameters
    ----------
    snapshot
        Of the index.
    filter
        What nodes pass; ``None`` if all do.
    """

    snapshot: BM25Index
    filter: FilterSpec | None

    @classmethod
    def of(cls, query: VectorStoreQuery, snapshot: BM25Index) -> Scope:
        """Translate what a query demands; empty lists of ids demand nothing, as in LlamaIndex.

        Raises
        ------
        TypeError, ValueError
            If filters or ids are wrong.
        """
        parts = [translate(check_filters(query.filters), snapshot)]
        if query.node_ids:
            parts.append(set(check_node_ids(query.node_ids)))
        if query.doc_ids:
            sources = check_node_ids(query.doc_ids, "doc_ids")
            of_these = MetadataFilter(key=REF_DOC_ID, value=sources, operator=FilterOperator.IN)
            parts.append(translate(MetadataFilters(filters=[of_these]), snapshot))
        given = [part for part in parts if part is not None]
        return cls(snapshot, {"$and": given} if given else None)


class Answer(NamedTuple):
    """A node of a dense store's answer; ``node`` is ``None`` if it keeps none."""

    id: str
    similarity: float | None
    node: BaseNode | None


class Legs(NodeStore):
    """The nodes of a ``BM25VectorStore``, and how they are found.

    Parameters
    ----------
    bm25
        The index that holds them; or the folder.
    metadata_mode, sparse_doc_fn, sparse_query_fn
        As in ``BM25VectorStore``.

    Raises
    ------
    TypeError, ValueError
        If one of them is wrong.
    """

    def __init__(
        self,
        bm25: BM25Index | Folder,
        metadata_mode: MetadataMode | None,
        sparse_doc_fn: SparseEncoderCallable | None,
        sparse_query_fn: SparseEncoderCallable | None,
    ) -> None:
        self.folder = bm25 if isinstance(bm25, Folder) else None
        index = bm25.reader if isinstance(bm25, Folder) else bm25
        super().__init__(index, metadata_mode, {}, verbose=False)
        self._of_documents = Encoder.of("sparse_doc_fn", sparse_doc_fn)
        self._of_queries = Encoder.of("sparse_query_fn", sparse_query_fn)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | ({} if self.folder is None else {"bm25": None})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.folder is not None:
            self.bm25 = self.folder.reader

    def current(self) -> BM25Index:
        """Return the index; that of a folder as any process has committed it."""
        if self.folder is not None:
            self.bm25.refresh()
        return self.bm25

    def snapshot(self) -> BM25Index:
        """Return the index as it is now, whatever is written later."""
        return self.current().snapshot()

    _snapshot = snapshot

    @contextmanager
    def _writing(self) -> Iterator[BM25Index]:
        """Give the index to write to; that of a folder is locked, and committed at the end."""
        if self.folder is None:
            yield self.bm25
        else:
            with self.folder.writing() as index:
                yield index

    def check_writable(self) -> None:
        """Raise what a write would raise if the index cannot be written to."""
        if self.folder is None:
            self.bm25.delete([])

    @property
    def encodes_queries(self) -> bool:
        """Whether there is a ``sparse_query_fn``."""
        return self._of_queries is not None

    @property
    def metadata_mode(self) -> MetadataMode:
        """Which text is indexed."""
        return self._metadata_mode

    def find_words(
        self, query: VectorStoreQuery, scope: Scope, k: int, options: Options
    ) -> list[Hit]:
        """Find the k best nodes that contain a word of the query.

        Raises
        ------
        ValueError
            If the query has no ``query_str``.
        """
        return search(scope.snapshot, _text_of(query), k, scope.filter, options)

    def find_sparse(
        self, query: VectorStoreQuery, scope: Scope, k: int, options: Options
    ) -> list[Hit]:
        """Find the k best nodes by their sparse vectors, or by BM25 if there are none.

        Raises
        ------
        ValueError
            If the query has no ``query_str``, or nodes have vectors, but ``sparse_query_fn`` is
            missing.
        SparseEncoderError
            If ``sparse_query_fn`` fails.
        """
        if self._of_queries is not None:
            text = _text_of(query)
            if not isinstance(text, str):
                kind = type(text).__name__
                raise TypeError(f"query_str must be a text for sparse_query_fn, got {kind}")
            (vector,) = self._of_queries.encode([text])
            vectors, floor = scope.snapshot.vectors, options.min_score
            return vectors.search(vector, k, scope.filter, min_score=floor, offset=options.offset)
        if scope.snapshot.vectors:
            raise ValueError(
                f"query mode {query.mode.value!r} needs a vector of the query, as the nodes have "
                "sparse vectors: give BM25VectorStore(sparse_query_fn=...), or use 'text_search'"
            )
        return self.find_words(query, scope, k, options)

    def find(
        self, query: VectorStoreQuery, scope: Scope, k: int, options: Options
    ) -> list[NodeWithScore]:
        """Return the nodes that ``find_words`` finds; without a word, the first that pass."""
        return self._find(scope.snapshot, query.query_str or "", k, scope.filter, options)

    def with_scores(self, hits: Sequence[Hit]) -> list[NodeWithScore]:
        """Return the nodes of all hits of a search."""
        return self._with_scores(hits)

    def read(self, ids: Sequence[str], scope: Scope) -> dict[str, BaseNode]:
        """Return by id those of some nodes that the index holds and that pass."""
        found = scope.snapshot.get(ids, scope.filter)
        return {document.id: self._to_node(document) for document in found}

    def find_vectors(
        self, query: VectorStoreQuery, scope: Scope, k: int, options: dict[str, Any]
    ) -> Calls[list[NodeWithScore]]:
        """Return the k best nodes that the dense store finds.

        Parameters
        ----------
        query
            What the dense store is asked.
        scope
            Which nodes may be returned.
        k
            How many at most; in place of that in the query.
        options
            Other arguments of the store's ``query``.

        Raises
        ------
        DenseStoreError
            If the dense store fails without filters and ids, or cannot be reached.
        """
        plain = replace(query, filters=None, node_ids=None, doc_ids=None)
        if scope.filter is None:
            query = plain  # not with empty lists: to some stores they mean that nothing passes
        try:
            found = _read((yield _ask(query, k, options)))
        except DenseStoreError as error:
            # An empty store may have no collection yet. OSError: also timeouts.
            expected = scope.filter is not None or len(scope.snapshot) == 0
            if not expected or isinstance(error.__cause__, OSError):
                raise
            found = []
        kept = self._passing(found, query, scope)
        if scope.filter is None and len(kept) == len(found):
            return kept[:k]
        wanted, asked = min(k, scope.snapshot.count(scope.filter)), k
        while len(kept) < wanted:
            asked *= 4
            found = _read((yield _ask(plain, asked, options)))
            kept = self._passing(found, query, scope)
            if len(found) < asked:  # the dense store has no more
                break
        return kept[:k]

    def _to_documents(self, nodes: Sequence[BaseNode]) -> list[Document]:
        """Return nodes as they are stored, with sparse vectors of the texts that are indexed."""
        documents = super()._to_documents(nodes)
        if self._of_documents is not None:
            texts = [document.text or "" for document in documents]
            vectors = self._of_documents.encode(texts) if texts else []
            for document, vector in zip(documents, vectors, strict=True):
                document.vector = vector
        elif documents and (self._of_queries is not None or self.bm25.vectors):
            raise ValueError(
                "BM25VectorStore(sparse_doc_fn=...) is needed to add nodes if others have sparse "
                "vectors, by which these would not be found"
            )
        return documents

    def _passing(
        self, found: Sequence[Answer], query: VectorStoreQuery, scope: Scope
    ) -> list[NodeWithScore]:
        """Return those that pass, each once, as the index holds them, or else the dense store."""
        best = {answer.id: answer for answer in reversed(found)}
        nodes = self.read(list(best), scope)
        nodes |= self._strange_passing(
            [answer for id, answer in best.items() if id not in scope.snapshot], query
        )
        return [
            NodeWithScore(node=nodes[id], score=best[id].similarity)
            for id in dict.fromkeys(answer.id for answer in found)
            if id in nodes
        ]

    def _strange_passing(
        self, strange: Sequence[Answer], query: VectorStoreQuery
    ) -> dict[str, BaseNode]:
        """Return the nodes that pass, of those that the dense store alone holds."""
        nodes = {answer.id: answer.node for answer in strange if answer.node is not None}
        for answer in strange:
            if answer.node is None and answer.id not in self.bm25:  # nor was added meanwhile
                raise DenseStoreError(
                    f"the dense store returned {answer.id!r}, which the BM25 index does not hold, "
                    "and keeps no nodes: both must hold the same ids. Delete it from the dense "
                    "store, or add the node again"
                )
        if not nodes:
            return nodes
        alone = NodeStore(BM25Index(), MetadataMode.NONE, {}, verbose=False)
        alone.add_nodes(nodes.values())
        scope = Scope.of(query, alone.bm25.snapshot())
        return {id: nodes[id] for id in alone.bm25.ids(scope.filter)}


def _text_of(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise ValueError(f"query mode {query.mode.value!r} needs query_str, the text of the query")
    return query.query_str


def _ask(query: VectorStoreQuery, k: int, options: dict[str, Any]) -> Call:
    asked = replace(query, similarity_top_k=k)
    return Call("query", {"query": asked, **options}, "query mode 'text_search' does not ask it")


def _read(answer: VectorStoreQueryResult) -> list[Answer]:
    ids = [node.node_id for node in answer.nodes] if answer.nodes else answer.ids or []
    nodes: Sequence[BaseNode | None] = answer.nodes or [None] * len(ids)
    similarities: Sequence[float | None] | None = answer.similarities
    if similarities is None:
        similarities = [None] * len(ids)
    if len(similarities) != len(ids):
        raise DenseStoreError(
            f"the dense store returned {len(ids)} nodes and {len(similarities)} similarities"
        )
    return [
        Answer(id, None if similarity is None else float(similarity), node)
        for id, similarity, node in zip(ids, similarities, nodes, strict=True)
    ]
