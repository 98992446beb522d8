"""The nodes of a store, and how they are found: by BM25, sparse vectors, a dense store, or several.

All legs return only nodes that pass the filters, node ids and document ids of a query. The dense
store is asked with them, and what it returns is checked by the filters of bm25rag. If it takes them
for an error, or leaves fewer nodes than pass, it is asked again without, for more and more nodes.
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
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.retrievers.bm25rag.changes import NodeStore
from llama_index.retrievers.bm25rag.filters import check_asking, check_filters, path_of, translate
from llama_index.retrievers.bm25rag.nodes import REF_DOC_ID, with_spans
from llama_index.retrievers.bm25rag.persistence import Settings
from llama_index.vector_stores.bm25rag.dense import DenseStoreError, Vectors, check_options
from llama_index.vector_stores.bm25rag.encoding import Encoder, SparseEncoderCallable
from llama_index.vector_stores.bm25rag.folders import Folder

from bm25rag import BM25Index, Document, Hit, Query
from bm25rag.adapters import Asking, Plan, check_count, check_real, check_strings, is_blank
from bm25rag.filters import And, Filter, parse_filter
from bm25rag.fusion import Ranking, fuse
from bm25rag.hybrid import with_parts

_Mode = VectorStoreQueryMode


class Scope(NamedTuple):
    """A snapshot of the index, and the filter of what a query may return; ``None`` for all."""

    snapshot: BM25Index
    filter: Filter | None

    @classmethod
    def of(cls, query: VectorStoreQuery, snapshot: BM25Index) -> Scope:
        """Translate what a query demands.

        Empty ``node_ids`` demand nothing: LlamaIndex's retriever gives them to any store of nodes.
        """
        parts = [translate(check_filters(query.filters), snapshot)]
        if query.node_ids:
            parts.append(parse_filter(set(check_strings("node_ids", query.node_ids))))
        if query.doc_ids is not None:
            sources = check_strings("doc_ids", query.doc_ids)
            of_these = MetadataFilter(key=REF_DOC_ID, value=sources, operator=FilterOperator.IN)
            parts.append(translate(MetadataFilters(filters=[of_these]), snapshot))
        given = tuple(part for part in parts if part is not None)
        return cls(snapshot, And(given) if given else None)


class Answer(NamedTuple):
    """A node of a dense store's answer; ``node`` is ``None`` if it keeps none."""

    id: str
    similarity: float | None
    node: BaseNode | None


class Retrieval(NodeStore):
    """The nodes of a ``BM25VectorStore``, in an index or a folder, and how they are found."""

    # Set by the store: how results are fused, and whether ``hybrid`` may leave sparse vectors out.
    settings: Settings
    ignores_vectors: bool

    def __init__(
        self,
        bm25: BM25Index | Folder,
        metadata_mode: MetadataMode | None,
        vectors: Vectors | None,
        sparse_doc_fn: SparseEncoderCallable | None,
        sparse_query_fn: SparseEncoderCallable | None,
    ) -> None:
        self.folder = bm25 if isinstance(bm25, Folder) else None
        index = bm25.reader if isinstance(bm25, Folder) else bm25
        super().__init__(index, metadata_mode)
        self.vectors = vectors
        self._of_documents = Encoder.of("sparse_doc_fn", sparse_doc_fn)
        self._of_queries = Encoder.of("sparse_query_fn", sparse_query_fn)

    def current(self) -> BM25Index:
        """Return the index; that of a folder as any process has committed it."""
        if self.folder is not None:
            self.bm25.refresh()
        return self.bm25

    def _snapshot(self) -> BM25Index:
        return self.current().snapshot()

    @contextmanager
    def _writing(self) -> Iterator[BM25Index]:
        # That of a folder is locked, and committed at the end.
        if self.folder is None:
            yield self.bm25
        else:
            with self.folder.writing() as index:
                yield index

    def check_writable(self) -> None:
        """Raise what a write would raise if the index cannot be written to."""
        if self.folder is None:
            self.bm25.delete([])

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

    # --- queries --------------------------------------------------------------------

    def query(self, query: VectorStoreQuery, given: dict[str, Any]) -> Plan[VectorStoreQueryResult]:
        """Answer a query; ``BM25VectorStore.query`` says how, and lists the exceptions."""
        others = dict(given)
        spans_key = others.pop("spans_key", None)
        asking = check_asking(Asking.taken_from(others), spans_key).with_paths(path_of)
        check_options("query", others, self.vectors)
        mode = _Mode(query.mode)
        scope = Scope.of(query, self._snapshot())
        query, scope, asking = _read_parts(query, mode, scope, asking)
        by_words = mode in (_Mode.TEXT_SEARCH, _Mode.SPARSE)
        k = check_count("similarity_top_k", query.similarity_top_k)
        if mode is _Mode.HYBRID:
            k = _count("hybrid_top_k", query.hybrid_top_k, k)
        elif by_words:
            k = _count("sparse_top_k", query.sparse_top_k, k)
        embedding = query.query_embedding
        # Who asks with an embedding alone wants the nearest nodes, and not the first that pass.
        unused = self.vectors is None and query.query_str is not None
        no_vector = by_words or unused or embedding is None or not len(embedding)
        if scope.filter is not None and is_blank(query.query_str) and no_vector:
            passing = asking.find(scope.snapshot, query.query_str or "", k, scope.filter)
            nodes = self._with_scores(passing, spans_key)
        elif mode is _Mode.SPARSE:
            if self._of_queries is not None:
                _refuse_rewriting(asking, mode)
            nodes = self._with_scores(self._find_sparse(query, scope, k, asking), spans_key)
        elif by_words or (mode is _Mode.DEFAULT and self.vectors is None):
            nodes = self._with_scores(_find_words(query, scope, k, asking), spans_key)
        elif mode is _Mode.HYBRID and (self.vectors or self._of_queries):
            _refuse_shaping(asking, mode)
            nodes = yield from self._fused(query, scope, k, asking, spans_key, others)
        elif self.vectors is not None:
            _refuse_rewriting(asking, mode)
            _refuse_shaping(asking, mode)
            last = k and k + asking.offset
            ranked = yield from self._find_vectors(query, scope, last, self.vectors, others)
            nodes = _page(ranked, asking)
        else:
            other = " or (sparse_query_fn=...)" * (mode is _Mode.HYBRID)
            raise ValueError(
                f"query mode {mode.value!r} needs vectors: give BM25VectorStore(dense=...){other}, "
                "or use 'text_search'"
            )
        return _result(nodes)

    def _fused(
        self,
        query: VectorStoreQuery,
        scope: Scope,
        k: int,
        asking: Asking,
        spans_key: str | None,
        others: dict[str, Any],
    ) -> Plan[list[NodeWithScore]]:
        alpha = self.settings.alpha if query.alpha is None else query.alpha
        of_words, of_sparse, of_dense = weights = self._weights(check_real("alpha", alpha, 0, 1))
        depth = max(k, query.similarity_top_k, self.settings.fetch_k)
        width = _count("sparse_top_k", query.sparse_top_k, depth)
        if not (self._of_queries or self.ignores_vectors) and scope.snapshot.vectors:
            raise ValueError(
                "query mode 'hybrid' would leave the sparse vectors of the nodes out: give "
                "BM25VectorStore(sparse_query_fn=...), or sparse_query_fn=None to ask BM25 and the "
                "dense store alone"
            )
        # All of each leg is fused: the page and the least score are those of the result.
        whole = asking._replace(min_score=None, offset=0)
        words = _find_words(query, scope, width, whole) if of_words else []
        sparse = self._find_sparse(query, scope, width, Asking()) if of_sparse else []
        dense: list[NodeWithScore] = []
        if of_dense and self.vectors is not None:
            asked = replace(query, mode=_Mode.DEFAULT)
            dense = yield from self._find_vectors(asked, scope, depth, self.vectors, others)
        fused = self._fuse(words, sparse, dense, weights, k + asking.offset)
        nodes = {each.node.node_id: each.node for each in dense}
        nodes |= self._read([id for id, _ in fused if id not in nodes], scope)
        if spans_key is not None:
            hit = words[0] if words else None
            nodes = {id: with_spans(nodes[id], hit, spans_key) for id, _ in fused}
        return _page([NodeWithScore(node=nodes[id], score=score) for id, score in fused], asking)

    def _weights(self, alpha: float) -> tuple[float, float, float]:
        """Return the weights of BM25, of sparse vectors and of the dense store."""
        if self.vectors is None:
            return 1 - alpha, alpha, 0.0
        if self._of_queries is None:
            return 1 - alpha, 0.0, alpha
        return (1 - alpha) / 2, (1 - alpha) / 2, alpha

    def _fuse(
        self,
        words: Sequence[Hit],
        sparse: Sequence[Hit],
        dense: Sequence[NodeWithScore],
        weights: Sequence[float],
        k: int,
    ) -> Ranking:
        method = self.settings.method
        if method != "rrf" and None in [scored.score for scored in dense]:
            raise DenseStoreError(
                "the dense store returned no similarities; method='rrf' needs none"
            )
        rankings = [[(hit.id, hit.score) for hit in leg] for leg in (words, sparse)]
        rankings.append([(scored.node.node_id, scored.score or 0.0) for scored in dense])
        try:
            return fuse(rankings, method, weights, k=k, rank_constant=self.settings.rank_constant)
        except ValueError as error:  # all else has been checked
            raise DenseStoreError(f"the dense store's answer cannot be fused: {error}") from None

    # --- legs -------------------------------------------------------------------------

    def _find_sparse(
        self, query: VectorStoreQuery, scope: Scope, k: int, asking: Asking
    ) -> list[Hit]:
        """Find the k best nodes by their sparse vectors, or by BM25 if there are none."""
        if self._of_queries is not None:
            text = _plain(_text_of(query))
            if not isinstance(text, str):
                kind = type(text).__name__
                raise TypeError(f"query_str must be a text for sparse_query_fn, got {kind}")
            (vector,) = self._of_queries.encode([text])
            return scope.snapshot.vectors.search(vector, k, scope.filter, **asking.page)
        if scope.snapshot.vectors:
            raise ValueError(
                f"query mode {query.mode.value!r} needs a vector of the query, as the nodes have "
                "sparse vectors: give BM25VectorStore(sparse_query_fn=...), or use 'text_search'"
            )
        return _find_words(query, scope, k, asking)

    def _find_vectors(
        self,
        query: VectorStoreQuery,
        scope: Scope,
        k: int,
        vectors: Vectors,
        options: dict[str, Any],
    ) -> Plan[list[NodeWithScore]]:
        """Return the k best nodes that the dense store finds, whatever its query says."""
        vectors.check_query(query.query_embedding)
        if not k:
            return []
        plain = replace(query, filters=None, node_ids=None, doc_ids=None)
        if scope.filter is None:
            query = plain  # not with empty lists: to some stores they mean that nothing passes
        try:
            answers = yield from _ask(vectors, query, k, options)
        except DenseStoreError as error:
            # An empty store may have no collection yet. OSError: also timeouts.
            expected = scope.filter is not None or len(scope.snapshot) == 0
            if not expected or isinstance(error.__cause__, OSError):
                raise
            answers = []
        kept = self._passing(answers, query, scope)
        if scope.filter is None and len(kept) == len(answers):
            return kept[:k]
        wanted, asked = k, k
        if scope.filter is None or not scope.filter.per_document:
            wanted = min(k, scope.snapshot.count(scope.filter))
        while len(kept) < wanted:
            asked *= 4
            answers = yield from _ask(vectors, plain, asked, options)
            kept = self._passing(answers, query, scope)
            if len(answers) < asked:  # the dense store has no more
                break
        return kept[:k]

    def _passing(
        self, answers: Sequence[Answer], query: VectorStoreQuery, scope: Scope
    ) -> list[NodeWithScore]:
        """Return those that pass, each once, as the index holds them, or else the dense store."""
        best = {answer.id: answer for answer in reversed(answers)}
        nodes = self._read(list(best), scope)
        strange = [answer for id, answer in best.items() if id not in scope.snapshot]
        nodes |= self._strange_passing(strange, query)
        return [
            NodeWithScore(node=nodes[id], score=best[id].similarity)
            for id in dict.fromkeys(answer.id for answer in answers)
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
        alone = NodeStore(BM25Index(self.bm25.analyzer), self._metadata_mode)
        alone.add_nodes(nodes.values())
        scope = Scope.of(query, alone.bm25.snapshot())
        passing = with_parts(scope.snapshot, query.query_str or "", scope.filter)
        return {id: nodes[id] for id in alone.bm25.ids(passing)}

    def _read(self, ids: Sequence[str], scope: Scope) -> dict[str, BaseNode]:
        """Return by id those of some nodes that the index holds and that pass."""
        documents = scope.snapshot.get(ids, scope.filter)
        return {node.node_id: node for node in self._to_nodes(documents)}


def _count(name: str, value: int | None, default: int) -> int:
    return default if value is None else check_count(name, value)


def _text_of(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise ValueError(f"query mode {query.mode.value!r} needs query_str, the text of the query")
    return query.query_str


def _plain(question: Any) -> Any:
    """Return the text of a question with parts; any other question unchanged."""
    return question.as_text() if isinstance(question, Query) else question


def _read_parts(
    query: VectorStoreQuery, mode: _Mode, scope: Scope, asking: Asking
) -> tuple[VectorStoreQuery, Scope, Asking]:
    """Return a query, parsed if that is asked for; its parts hold for all legs."""
    question: Any = query.query_str
    if is_blank(question):
        return query, scope, asking
    question = asking.read(question, scope.snapshot)
    if not isinstance(question, Query):
        return query, scope, asking
    if asking.correct and mode is _Mode.HYBRID:
        question = scope.snapshot.correct(question, scope.filter).terms
        asking = asking._replace(correct=False)
    if mode is not _Mode.TEXT_SEARCH:
        scope = scope._replace(filter=with_parts(scope.snapshot, question, scope.filter))
    return replace(query, query_str=question), scope, asking


def _find_words(query: VectorStoreQuery, scope: Scope, k: int, asking: Asking) -> list[Hit]:
    """Find the k best nodes that contain a word of the query."""
    return asking.find(scope.snapshot, _text_of(query), k, scope.filter)


def _refuse_rewriting(asking: Asking, mode: _Mode) -> None:
    """Refuse what changes the words of a question where none are searched for."""
    for name in ("correct", "expand"):
        if getattr(asking, name):
            raise ValueError(
                f"{name} changes words, for which query mode {mode.value!r} does not search: "
                "use 'text_search' or 'hybrid'"
            )


def _refuse_shaping(asking: Asking, mode: _Mode) -> None:
    """Refuse what shapes the ranking of the index where others are asked."""
    for name in ("group", "decay"):
        if getattr(asking, name) is not None:
            raise ValueError(
                f"{name} is for query modes 'text_search' and 'sparse', got {mode.value!r}: what a "
                "dense store finds is not grouped or lowered"
            )


def _ask(
    vectors: Vectors, query: VectorStoreQuery, k: int, options: dict[str, Any]
) -> Plan[list[Answer]]:
    asked = replace(query, similarity_top_k=k, query_str=_plain(query.query_str))
    after = "query mode 'text_search' does not ask it"
    answer: VectorStoreQueryResult
    answer = yield from vectors.ask("query", after, query=asked, **options)
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


def _page(ranked: Sequence[NodeWithScore], asking: Asking) -> list[NodeWithScore]:
    """Return the nodes behind the offset whose score is at least ``min_score``."""
    floor = asking.min_score
    return [
        each
        for each in ranked[asking.offset :]
        if floor is None or (each.score is not None and each.score >= floor)
    ]


def _result(nodes: Sequence[NodeWithScore]) -> VectorStoreQueryResult:
    scores = [each.score for each in nodes if each.score is not None]
    return VectorStoreQueryResult(
        nodes=[each.node for each in nodes],
        similarities=scores if len(scores) == len(nodes) else None,
        ids=[each.node.node_id for each in nodes],
    )
