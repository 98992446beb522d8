"""BM25HybridRetriever, which fuses BM25 with any vector store of LangChain."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Required, Self, Unpack

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.indexing import RecordManager
from langchain_core.vectorstores import VectorStore
from pydantic import Field, PrivateAttr, SkipValidation, model_validator

from bm25rag import BM25Index, Query
from bm25rag import Document as StoredDocument
from bm25rag.adapters import (
    Both,
    Call,
    Fusing,
    OnDuplicate,
    Plan,
    check_count,
    is_blank,
    naming,
    planned,
    run,
    work,
)
from bm25rag.errors import ReadOnlyError, UncommittedWarning
from bm25rag.fusion import FusionMethod, Ranking, check_fusion
from bm25rag.hybrid import HybridSearch, OnUnknown
from langchain_bm25rag.aligning import (
    Aligned,
    align_documents,
    align_records,
    delete_vectors,
    find_all,
    replace_vectors,
)
from langchain_bm25rag.awaiting import awaits, building, streams, traced, writing
from langchain_bm25rag.document_index import BM25DocumentIndex
from langchain_bm25rag.documents import (
    Ids,
    Metadatas,
    read_ids,
    replace_metadata,
    to_documents,
)
from langchain_bm25rag.filters import Filter, choose, filter_of
from langchain_bm25rag.retriever import Fields
from langchain_bm25rag.storing import Making, Opening

_Found = list[tuple[Document, float]]
# The fields that the core's hybrid search takes as they are.
FUSING = ("fetch_k", "method", "weights", "rank_constant", "on_unknown")


class HybridFields(Fields, Fusing, total=False):
    """The fields except the index and the vector store."""

    store_id_key: str | None
    search_kwargs: dict[str, Any]
    translate_filter: Callable[[dict[str, Any]], dict[str, Any]] | None
    on_unknown: OnUnknown
    reranker: BaseDocumentCompressor | None


class _MakingFields(Making, HybridFields):
    pass


class _OpeningFields(Opening, HybridFields):
    vector_store: Required[VectorStore]


class BM25HybridRetriever(BM25DocumentIndex):
    """BM25 and a vector store of the same documents, fused into one ranking.

    Every result passes the filter, whether the vector store knows filters or not: what it finds
    is looked up in the index by id. So both must hold the same documents under the same ids, as
    ``from_documents``, ``add_documents`` and ``delete`` see to, and ``rollback``, ``close`` and
    ``with``, which take back in the vector store what the index loses. After a crash, ``align``
    makes the vector store hold what the index holds.

    If the vector store fails, it is a ``RuntimeError``. After ``add_documents``, the index then has
    the documents: BM25 finds them, and ``align`` completes the vector store. So does adding them
    again under the same ids; documents without ids would be there twice. After ``delete``, the
    index has not changed.

    Calls may override fields as in ``BM25Retriever``. The vector store gets the question as it is
    asked; ``correct`` and ``expand`` change it for BM25. Of a ``bm25rag.Query``, or a question that
    is parsed, it gets the words that documents may or must have, and every result passes its parts.
    Scores are the fused ones.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> documents = [Document("A cat sat.", id="a"), Document("Dogs run.", id="b")]
    >>> retriever = BM25HybridRetriever.from_documents(documents, store, k=1, weights=[1, 0])
    >>> [document.id for document in retriever.invoke("cats")]
    ['a']
    """

    vector_store: VectorStore
    """Any vector store that returns the ids of its documents."""

    store_id_key: str | None = None
    """The metadata key for the ids, if the vector store returns them there: ``"_id"`` for Qdrant's;
    ``None`` if they are the ids of the documents, as in most stores."""

    fetch_k: SkipValidation[int] = 100
    """How many documents of each of both are fused, and re-ranked; at least ``k`` are."""

    method: FusionMethod = "minmax"
    """``"minmax"``, ``"zscore"`` or ``"rrf"``, as in ``bm25rag.fusion.fuse``."""

    weights: Sequence[float] | None = None
    """The weights of BM25 and the vector store; ``None`` for equal ones."""

    rank_constant: int = 60
    """The constant of ``"rrf"``."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Other arguments of the vector store's search; not for filters."""

    translate_filter: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Makes of a filter that is a dict the arguments of the vector store's search that mean the
    same, such as ``lambda filter: {"filter": filter}`` for a store that takes the same dicts.
    Otherwise, the store is searched without a filter, and asked for more where too few of what it
    finds pass: up to all documents."""

    on_unknown: OnUnknown = "error"
    """What to do if the vector store finds a document that the index does not hold: ``"error"``,
    or ``"skip"`` if this process reads an index that others write, and may lag behind."""

    reranker: BaseDocumentCompressor | None = None
    """Ranks the fused documents anew, such as LangChain's ``CrossEncoderReranker``."""

    # The ids that were written since the last commit: what to look at in the vector store where
    # the index goes back to it.
    _touched: set[str] = PrivateAttr(default_factory=set)

    @model_validator(mode="after")
    def _check_fusion(self) -> Self:
        check_count("fetch_k", self.fetch_k)
        check_fusion(self.method, self.weights, self.rank_constant)
        return self

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        vector_store: VectorStore,
        **options: Unpack[_MakingFields],
    ) -> Self:
        """Index documents, and add them to a vector store, empty, under the same ids.

        The keywords are those of ``BM25Retriever.from_documents`` and the fields.
        """
        retriever = cls._made(vector_store=vector_store, **options)
        retriever.add_documents(documents)
        return retriever

    @classmethod
    def open(  # type: ignore[override]
        cls, path: str | PathLike[str], **options: Unpack[_OpeningFields]
    ) -> Self:
        """Open a saved index beside its vector store; after a crash of a writer, call ``align``.

        The keywords are those of ``BM25VectorStore.open``, and the fields, which are not saved.
        """
        return super().open(path, **options)  # type: ignore[misc]

    # --- writing ------------------------------------------------------------------

    def _adding(
        self, documents: Iterable[StoredDocument], source: str, on_duplicate: OnDuplicate
    ) -> Plan[list[str]]:
        given, before = list(documents), self.index.snapshot()
        written = yield from super()._adding(given, source, on_duplicate)
        self._touched.update(written)
        replaced = [id for id in dict.fromkeys(written) if id in before]
        try:
            yield from self._replacing(written, replaced)
        except RuntimeError as error:
            message = (
                f"{error}; the index has the documents, unless it is rolled back: once the vector "
                "store works, align() gives them to it; added again without ids, they would be "
                "there twice"
            )
            raise RuntimeError(message) from error.__cause__
        return written

    @classmethod
    @streams(from_documents, building, BM25DocumentIndex.add_documents)
    async def afrom_documents(  # type: ignore[empty-body]
        cls,
        documents: Iterable[Document] | AsyncIterable[Document],
        vector_store: VectorStore,
        **options: Unpack[_MakingFields],
    ) -> Self:
        """Do what ``from_documents`` does; ``documents`` may be an async iterable."""

    def _replacing(self, ids: Iterable[str], replaced: list[str]) -> Plan[None]:
        with naming("the vector store", self.vector_store):
            yield from replace_vectors(self.index, self.vector_store, ids, replaced)

    def _deleting(self, ids: Ids | None, filter: Filter | None) -> Plan[list[str]]:
        self.index.delete([])  # raises if the index cannot be written to
        chosen = choose(self.index, ids, filter)
        self._touched.update(chosen)
        # From the vector store first: what it finds must be in the index at any time.
        with naming("the vector store", self.vector_store):
            yield from delete_vectors(self.vector_store, chosen)
        return self.index.delete(chosen)

    @planned
    def update_metadata(self, ids: Ids, metadatas: Metadatas) -> Plan[list[str]]:
        """Replace the metadata of documents in both; the vector store embeds them again.

        If it fails, the index has the new metadata.
        """
        given = read_ids(ids)
        changed = replace_metadata(self.index, given, metadatas)
        self._touched.update(given)
        yield from self._replacing(given, [id for id in dict.fromkeys(given) if id in self.index])
        return changed

    # --- keeping both in step -----------------------------------------------------

    def commit(self) -> None:
        """Make the changes of the index since the last commit durable, in one atomic step.

        The vector store got them when they were made.
        """
        super().commit()
        self._touched.clear()

    @planned
    def rollback(self) -> Plan[None]:
        """Go back to the last commit, and take the changes since back in the vector store.

        If that fails, the index has gone back, and ``align`` does the rest.
        """
        yield from self._rolling_back()

    def _rolling_back(self) -> Plan[Aligned]:
        self.index.rollback()
        touched = set(self._touched)
        aligned = yield from self._aligning(touched)
        self._touched -= touched
        return aligned

    @planned
    def close(self) -> Plan[None]:
        """Release the writer's lock without a commit; do nothing if there is no lock.

        Changes since the last commit are lost, in the vector store too; it warns of that. If the
        vector store fails, ``align`` does the rest once it works.
        """
        undone = Aligned([], [])
        try:
            if self._touched:
                undone = yield from self._rolling_back()
        except ReadOnlyError:
            pass  # an index in memory, or of another writer, has nothing to go back to
        finally:
            self.index.close()
        if undone.added or undone.deleted:
            message = (
                "closed without the changes since the last commit(), which were taken back in the "
                "vector store, too: call commit() before close(), or rollback() to drop them"
            )
            warnings.warn(message, UncommittedWarning, stacklevel=4)

    @planned
    def align(self, records: RecordManager | None = None) -> Plan[Aligned]:
        """Make the vector store hold what the index holds; after a crash they can differ.

        What the vector store holds beyond that is found by asking it for all of its documents.
        One that answers with an approximation may keep some of them. The result are the ids of
        documents that the vector store was given, and of those taken from it.

        With ``records``, the record manager of ``index()``, the retriever and the record manager
        first forget what only one of the two knows, as in ``BM25DocumentIndex.align``.
        """
        if records is not None:
            yield from align_records(self, records)
        with naming("the vector store", self.vector_store):
            held = yield from find_all(self.vector_store, self.index, self._id_of)
        return (yield from self._aligning([*self.index.ids(), *held]))

    @awaits(align, writing)
    def aalign(self) -> None:
        """Do what ``align`` does while the event loop goes on."""

    def _aligning(self, ids: Iterable[str]) -> Plan[Aligned]:
        try:
            with naming("the vector store", self.vector_store):
                store = self.vector_store
                return (yield from align_documents(self.index, store, ids, self._id_of))
        except RuntimeError as error:
            message = f"{error}; once it works, align() makes it hold what the index holds"
            raise RuntimeError(message) from error.__cause__

    # --- searching ----------------------------------------------------------------

    @planned
    def _get_relevant_documents(
        self, query: Any, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> Plan[list[Document]]:
        k, own_filter, asking = self._asked(query, given)
        if not isinstance(query, (str, Query)):
            raise TypeError(
                "query must be a str, got weights of terms: the vector store needs a text; "
                "BM25Retriever takes weights"
            )
        k, offset = check_count("k", k), check_count("offset", asking.offset)
        keywords = self._keywords(own_filter)
        # A restricted view evaluates its filter anew after a write, which takes time.
        snapshot: BM25Index = yield work(self.index.snapshot)
        filter = filter_of(snapshot, own_filter)
        if filter is not None and is_blank(query):
            return self._documents((yield work(asking.find, snapshot, query, k, filter)))
        question = asking.read(query, snapshot)
        query = question.as_text() if isinstance(question, Query) else query
        options = asking._asdict() | {name: getattr(self, name) for name in FUSING}
        options |= {"filter": filter, "known": self.index.__contains__}
        del options["parse_query"]
        if self.reranker is None:
            search = HybridSearch(snapshot, question, k, **options)
            return (yield from self._fused(run_manager, query, snapshot, search, keywords))
        options["offset"] = 0
        search = HybridSearch(snapshot, question, max(offset + k, self.fetch_k), **options)
        documents = yield from self._fused(run_manager, query, snapshot, search, keywords)
        reranking = (documents, query, run_manager.get_child())
        documents = yield Call(self.reranker, "compress_documents", reranking)
        return [*documents][offset : offset + k]

    def _fused(
        self,
        parent: Any,
        query: str,
        snapshot: BM25Index,
        search: HybridSearch,
        keywords: Mapping[str, Any],
    ) -> Plan[list[Document]]:
        def ask_index() -> Plan[Ranking]:
            ranking: Ranking = yield Call(search, "search_index")
            return ranking

        def found_by_index(ranking: Ranking) -> list[Document]:
            return to_documents(snapshot.get([id for id, _ in ranking]))

        asking_index = traced(parent, "BM25", query, ask_index(), found_by_index)
        asking_store = self._ask_store(parent, query, search.wanted, keywords)
        _, answer = yield Both(asking_index, asking_store)
        while not (yield work(self._take, search, answer)):
            answer = yield from self._ask_store(parent, query, search.wanted, keywords)
        documents: list[Document] = yield work(lambda: self._documents(search.hits()))
        return documents

    def _keywords(self, filter: Filter | None) -> dict[str, Any]:
        """Return the keywords of the vector store's search."""
        if not filter or not isinstance(filter, Mapping) or self.translate_filter is None:
            return self.search_kwargs
        return self.search_kwargs | self.translate_filter(filter)

    def _ask_store(
        self, parent: Any, query: str, k: int, keywords: Mapping[str, Any]
    ) -> Plan[_Found]:
        asking, name = self._asking(query, k, keywords), type(self.vector_store).__name__
        return traced(parent, name, query, asking, lambda pairs: [one for one, _ in pairs])

    def _asking(self, query: str, k: int, keywords: Mapping[str, Any]) -> Plan[_Found]:
        # "rrf" needs no scores, and not every store has them.
        scored = "" if self.method == "rrf" else "_with_score"
        method, options = f"similarity_search{scored}", {"k": k, **keywords}
        with naming("the vector store", self.vector_store):
            answer = yield Call(self.vector_store, method, (query,), options)
        return answer if scored else [(document, 0.0) for document in answer]

    def _find_beside(self, query: str, k: int) -> Ranking:
        """Ask the vector store alone, for a tool."""
        return self._ranking(run(self._asking(query, k, self.search_kwargs)))

    def _ranking(self, answer: _Found) -> Ranking:
        with naming("the vector store", self.vector_store):
            return [(self._id_of(document), score) for document, score in answer]

    def _take(self, search: HybridSearch, answer: _Found) -> bool:
        ranking = self._ranking(answer)
        try:
            return search.take(ranking)
        except ValueError as error:
            message = f"{error}. align() of this retriever makes the vector store hold the same"
            raise ValueError(message) from None

    def _id_of(self, document: Document) -> str:
        key = self.store_id_key
        id = document.id if key is None else document.metadata.get(key)
        if id is None:
            where = "id" if key is None else f"{key!r} in its metadata"
            raise ValueError(
                f"it returned a document without {where}: add documents with add_documents of this "
                "retriever, and if the store returns their ids as metadata, name the key as "
                f"store_id_key; this one has {list(document.metadata)!r:.100}"
            )
        return str(id)
