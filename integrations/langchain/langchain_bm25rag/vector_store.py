"""BM25VectorStore, for all that LangChain builds on a vector store."""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, Iterable, Sequence
from os import PathLike
from typing import Any, NoReturn, Self, Unpack

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from bm25rag import BM25Index, Query
from bm25rag import Document as StoredDocument
from bm25rag.adapters import (
    Asking,
    Call,
    Fusing,
    OnDuplicate,
    Options,
    Plan,
    Question,
    check_count,
    check_real,
    is_blank,
    planned,
    work,
)
from bm25rag.fusion import FusionMethod, check_fusion
from bm25rag.vectors import Vector
from langchain_bm25rag.awaiting import awaited, awaits, building, reading, streams, writing
from langchain_bm25rag.documents import (
    Ids,
    Metadatas,
    NewIds,
    read_texts,
    to_documents,
)
from langchain_bm25rag.filters import Filter, delete, narrow, search
from langchain_bm25rag.sparse import (
    RetrievalMode,
    SparseEmbeddings,
    embed_query,
    read_embedding,
    read_mode,
    with_vectors,
)
from langchain_bm25rag.storing import Making, Opening, Stored, check_call, refuse

# What calls take, as ``check_call`` says it.
_TAKES = (
    "k, filter, min_score, retrieval_mode, correct, expand, offset, parse_query, group, per_group "
    "and decay for each call, got {}: "
    "method, weights, rank_constant and fetch_k belong to the store's constructor"
)
_FUSION = ("fetch_k", "method", "weights", "rank_constant")


class _Fields(Fusing, total=False):
    """Arguments of the constructor except the index."""

    sparse_embedding: SparseEmbeddings | None
    retrieval_mode: RetrievalMode | None


class _MakingFields(Making, _Fields):
    pass


class _OpeningFields(Opening, _Fields):
    pass


class _Options(Options, total=False):
    """What a search takes beside the query and k."""

    filter: Filter | None
    retrieval_mode: RetrievalMode | None


class BM25VectorStore(Stored, VectorStore):
    """LangChain's ``VectorStore`` over a ``BM25Index``, without dense vectors.

    It finds the documents that contain a word of the query. It may share the index of a
    ``BM25Retriever``: ``BM25VectorStore(retriever.index)``.

    With ``sparse_embedding``, it stores a learned sparse vector beside each text that it adds,
    and also finds the documents whose vectors have a term of the query's.

    Parameters
    ----------
    index
        The index, shared; ``None`` for an empty one with the default analyzer.
    sparse_embedding
        What makes sparse vectors, such as ``FastEmbedSparse`` of langchain-qdrant; it is not saved.
    retrieval_mode
        What to search by: ``"bm25"``, ``"sparse"`` or ``"hybrid"``, which is both, fused; ``None``
        for ``"hybrid"`` with a ``sparse_embedding``, and ``"bm25"`` without.
    fetch_k, method, weights, rank_constant
        How ``"hybrid"`` fuses, as in ``BM25HybridRetriever``; the first weight is that of BM25.

    Examples
    --------
    >>> store = BM25VectorStore.from_texts(["A cat sat.", "Dogs run."], ids=["a", "b"])
    >>> [document.id for document in store.similarity_search("cats")]
    ['a']
    """

    def __init__(
        self,
        index: BM25Index | None = None,
        *,
        sparse_embedding: SparseEmbeddings | None = None,
        retrieval_mode: RetrievalMode | None = None,
        fetch_k: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
    ) -> None:
        if index is not None and not isinstance(index, BM25Index):
            raise TypeError(f"index must be a BM25Index, got {type(index).__name__}")
        check_fusion(method, weights, rank_constant)
        self.index: BM25Index = BM25Index() if index is None else index
        self.sparse_embedding: SparseEmbeddings | None = read_embedding(sparse_embedding)
        if retrieval_mode is None:
            retrieval_mode = "bm25" if sparse_embedding is None else "hybrid"
        self.retrieval_mode = read_mode(retrieval_mode, sparse_embedding)
        self.fetch_k: int = check_count("fetch_k", fetch_k)
        self.method, self.rank_constant = method, rank_constant
        self.weights: Sequence[float] | None = weights

    def __repr__(self) -> str:
        shown = [f"index={self.index!r}", f"retrieval_mode={self.retrieval_mode!r}"]
        if self.sparse_embedding is not None:
            shown.append(f"sparse_embedding={type(self.sparse_embedding).__name__}")
        return f"{type(self).__name__}({', '.join(shown)})"

    # --- making ------------------------------------------------------------------

    @classmethod
    def from_texts(  # type: ignore[override]
        cls,
        texts: Iterable[str],
        embedding: Embeddings | None = None,
        metadatas: Metadatas | None = None,
        *,
        ids: NewIds | None = None,
        **options: Unpack[_MakingFields],
    ) -> Self:
        """Index texts.

        Parameters
        ----------
        texts, metadatas, ids, analyzer, preprocess_func, bm25_params, bm25_variant
            As in ``BM25Retriever.from_texts``, which also lists the exceptions.
        embedding
            Not used: there are no dense vectors. Other stores need one in this place, where a
            retriever takes metadata, so anything else is refused.
        sparse_embedding, retrieval_mode, fetch_k, method, weights, rank_constant
            As in the constructor. If the encoder fails, it is a ``RuntimeError``.
        """
        if embedding is not None and not isinstance(embedding, Embeddings):
            got = type(embedding).__name__
            raise TypeError(
                f"embedding must be an Embeddings or None, got {got}; metadatas come after it, and "
                "what makes sparse vectors is sparse_embedding"
            )
        given: Any = {} if ids is None else {"ids": ids}  # which an override may do without
        store = cls._made(**options)
        store.add_texts(texts, metadatas, **given)
        return store

    @classmethod
    def from_documents(  # type: ignore[override]
        cls,
        documents: Iterable[Document],
        embedding: Embeddings | None = None,
        *,
        ids: NewIds | None = None,
        **options: Unpack[_MakingFields],
    ) -> Self:
        """Index documents; ``ids`` stand for their own.

        The other arguments are those of ``from_texts``.
        """
        store = cls.from_texts([], embedding, **options)
        given: Any = {} if ids is None else {"ids": ids}
        store.add_documents(documents, **given)
        return store

    @classmethod
    def open(  # type: ignore[override]
        cls, path: str | PathLike[str], **options: Unpack[_OpeningFields]
    ) -> Self:
        """Open what ``save`` wrote, or any saved ``BM25Index``.

        Parameters
        ----------
        path
            The folder, or its URL for ``mode="r"``.
        mode
            ``"r"`` to search; ``refresh`` then loads later commits. ``"w"`` or ``"a"`` to write
            too: the folder is locked until ``close``, and made if it is missing; ``commit`` makes
            the changes durable, and ``with`` commits and closes.
        mmap, verify, untrusted, timeout
            As in ``BM25Index.open``.
        tokenizer
            The ``preprocess_func`` that the index was made with, if any.
        analyzer, bm25_params
            As in ``BM25Retriever.from_texts``: the settings of a new index. An existing one must
            have the same.
        sparse_embedding, retrieval_mode, fetch_k, method, weights, rank_constant
            Other arguments of the constructor, which are not saved.

        Raises
        ------
        StorageError
            If the folder holds no index, a damaged one, or one that ``untrusted`` refuses, or if
            another writer still has it open.
        TokenizerRequiredError, ValueError
            If the index was made with a callable and ``tokenizer`` is missing; if it was made with
            a different ``analyzer`` or ``bm25_params``.
        """
        return super().open(path, **options)

    # --- writing -----------------------------------------------------------------

    @planned
    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Metadatas | None = None,
        *,
        ids: NewIds | None = None,
        on_duplicate: OnDuplicate = "replace",
        **kwargs: Any,
    ) -> Plan[list[str]]:
        """Add all texts, or none on error; if ``sparse_embedding`` fails, it is a ``RuntimeError``.

        ``texts``, ``metadatas`` and ``ids`` are as in ``BM25Retriever.from_texts``, which also
        lists the exceptions, ``on_duplicate`` and the result as in its ``add_documents``. Other
        keywords are refused.
        """
        refuse("add_texts", kwargs)
        given = read_texts(texts, metadatas, ids)
        return (yield from self._adding(given, "metadatas", on_duplicate))

    def _adding(
        self, documents: Iterable[StoredDocument], source: str, on_duplicate: OnDuplicate
    ) -> Plan[list[str]]:
        if self.sparse_embedding is not None:
            documents = yield from with_vectors(self.sparse_embedding, documents)
        return (yield from super()._adding(documents, source, on_duplicate))

    @streams(add_texts, writing)
    async def aadd_texts(  # type: ignore[empty-body]
        self,
        texts: Iterable[str] | AsyncIterable[str],
        metadatas: Metadatas | None = None,
        *,
        ids: NewIds | None = None,
        on_duplicate: OnDuplicate = "replace",
        **kwargs: Any,
    ) -> list[str]:
        """Do what ``add_texts`` does; ``texts`` may be an async iterable.

        ``aembed_documents`` of the ``sparse_embedding`` is awaited, if it has that.
        """

    @classmethod
    @streams(from_texts, building, add_texts)
    async def afrom_texts(  # type: ignore[empty-body]
        cls, texts: Iterable[str] | AsyncIterable[str], *args: Any, **kwargs: Any
    ) -> Self:
        """Do what ``from_texts`` does; ``texts`` may be an async iterable."""

    @classmethod
    @streams(from_documents, building, Stored.add_documents)
    async def afrom_documents(  # type: ignore[empty-body]
        cls, documents: Iterable[Document] | AsyncIterable[Document], *args: Any, **kwargs: Any
    ) -> Self:
        """Do what ``from_documents`` does; ``documents`` may be an async iterable."""

    def delete(
        self, ids: Ids | None = None, *, filter: Filter | None = None, **kwargs: Any
    ) -> bool:
        """Delete documents as ``BM25Retriever.delete`` does, and return True.

        Other keywords are refused.
        """
        refuse("delete", kwargs)
        delete(self.index, ids, filter)
        return True

    @awaits(delete, writing)
    def adelete(self) -> None:
        """Do what ``delete`` does while the event loop goes on."""

    # --- searching ---------------------------------------------------------------

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return LangChain's retriever over this store, which passes ``search_kwargs`` to searches.

        It would ignore other keywords, and find what a ``filter`` among them excludes: they are a
        ``TypeError``.
        """
        if unknown := [name for name in kwargs if name not in VectorStoreRetriever.model_fields]:
            raise TypeError(
                f"as_retriever does not take {', '.join(unknown)}: "
                "give what a search takes in search_kwargs, as in search_kwargs={'k': 5}"
            )
        return super().as_retriever(**kwargs)

    @planned
    def similarity_search(  # type: ignore[override]
        self, query: Question, k: int = 4, **options: Unpack[_Options]
    ) -> Plan[list[Document]]:
        """Find the best k documents that contain a word of the query, or a term of its vector.

        A subclass that overrides ``similarity_search_with_score`` changes all searches: this one,
        those with relevance scores, and their asynchronous twins.

        Parameters
        ----------
        query
            A text; or terms and their weights, in ``"bm25"`` mode; or a ``bm25rag.Query``, in
            ``"hybrid"`` mode too. A blank text and a filter ask for all documents that pass, in
            document order.
        k, filter, offset, parse_query
            As the fields of ``BM25Retriever``.
        min_score
            As there; in ``"hybrid"`` mode, the lowest of the fused scores.
        retrieval_mode
            As in the constructor; ``None`` for the mode given there.
        correct, expand
            As the fields of ``BM25Retriever``, in ``"bm25"`` mode.
        group, per_group, decay
            As there; a filter alone lists documents as they are.

        Raises
        ------
        TypeError, ValueError, FilterError
            If an argument has the wrong type, is out of range or malformed, or if the mode needs a
            ``sparse_embedding`` and there is none, or does without what is asked for.
        RuntimeError
            If ``sparse_embedding`` fails.
        """
        pairs = yield Call(self, "similarity_search_with_score", (query, k), {**options})
        return [document for document, _ in pairs]

    @awaits(similarity_search, reading)
    def asimilarity_search(self) -> None:  # type: ignore[override]
        """Do what ``similarity_search`` does; an ``aembed_query`` is awaited."""

    @planned
    def similarity_search_with_score(
        self, query: Question, k: int = 4, **options: Unpack[_Options]
    ) -> Plan[list[tuple[Document, float]]]:
        """Find the same with their scores, of which the highest is the best."""
        unknown = [name for name in options if name not in _Options.__annotations__]
        check_call(type(self).__name__, query, unknown, _TAKES)
        asking = Asking.taken_from({**options})
        if asking.parse_query is not False:  # not on the event loop: a restricted view may filter
            query = yield work(asking.read, query, self.index)
        mode = self._read_mode(query, options.get("retrieval_mode"), asking)
        embedding = None if mode == "bm25" else self.sparse_embedding
        vector = None
        if embedding is not None:
            text = query.as_text() if isinstance(query, Query) else str(query)
            vector = yield from embed_query(embedding, text)
        pairs: list[tuple[Document, float]]
        pairs = yield work(self._search, query, vector, k, options.get("filter"), mode, asking)
        return pairs

    @awaits(similarity_search_with_score, reading)
    def asimilarity_search_with_score(self) -> None:
        """Do what ``similarity_search_with_score`` does; an ``aembed_query`` is awaited."""

    def _read_mode(
        self, query: Question, mode: RetrievalMode | None, asking: Asking
    ) -> RetrievalMode:
        mode = self.retrieval_mode if mode is None else mode
        asked = [name for name in ("correct", "expand") if getattr(asking, name)]
        if not isinstance(query, str) and (mode == "sparse" or not isinstance(query, Query)):
            asked.append("a query of weights or parts")
        if read_mode(mode, self.sparse_embedding) != "bm25" and asked:
            raise ValueError(f"{' and '.join(asked)} needs retrieval_mode='bm25', got {mode!r}")
        return mode

    def _search(
        self,
        query: Question,
        vector: Vector | None,
        k: int,
        filter: Filter | None,
        mode: RetrievalMode,
        asking: Asking,
    ) -> list[tuple[Document, float]]:
        index, parsed = (self.index, None) if vector is None else narrow(self.index, filter)
        if vector is None or (parsed is not None and is_blank(query)):
            hits = search(self.index, query, k, filter, asking)
        elif mode == "sparse":
            hits = index.vectors.search(vector, k, parsed, **asking.page)
        else:
            page, fusion = asking.page, {name: getattr(self, name) for name in _FUSION}
            least = page.pop("min_score")
            floor = check_real(
                "min_score", -math.inf if least is None else least, -math.inf, math.inf
            )
            hits = index.search_hybrid(query, vector, k, parsed, **page, **fusion)
            hits = [hit for hit in hits if hit.score >= floor]
        return [*zip(to_documents(hits), [hit.score for hit in hits], strict=True)]

    # --- what needs dense vectors, or a scale ------------------------------------

    asearch = awaited(VectorStore.search, reading, native=VectorStore.asearch)
    asimilarity_search_with_relevance_scores = awaited(
        VectorStore.similarity_search_with_relevance_scores,
        reading,
        native=VectorStore.asimilarity_search_with_relevance_scores,
    )

    @planned
    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> Plan[list[tuple[Document, float]]]:
        largest = self._largest_score(kwargs.get("retrieval_mode"))
        pairs = yield Call(self, "similarity_search_with_score", (query, k), kwargs)
        return [(document, score / largest) for document, score in pairs]

    @awaits(_similarity_search_with_relevance_scores, reading)
    def _asimilarity_search_with_relevance_scores(self) -> None:
        """Do the same while the event loop goes on."""

    def _largest_score(self, mode: RetrievalMode | None) -> float:
        """Return the score of a document that is the best of both rankings; the lowest is 0."""
        if (mode or self.retrieval_mode) == "hybrid" and self.method == "minmax":
            by_words, by_vectors = (1.0, 1.0) if self.weights is None else self.weights
            return float(by_words + by_vectors)
        raise NotImplementedError(
            "there is a relevance between 0 and 1 only in retrieval_mode 'hybrid' with method "
            "'minmax': scores of BM25 and of sparse vectors have no upper bound, and mean "
            "something within one query only. Use min_score, or similarity_search_with_score"
        )

    def max_marginal_relevance_search(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Raise ``NotImplementedError``: there are no dense vectors."""
        raise NotImplementedError(
            "this method needs dense vectors, and a BM25VectorStore has none: use "
            "similarity_search, or the method of a vector store beside it"
        )

    similarity_search_by_vector = max_marginal_relevance_search
    max_marginal_relevance_search_by_vector = max_marginal_relevance_search
