"""BM25HybridRetriever: top_k, filters and ids hold for both stores, and faults are named."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.rankers import MetaFieldRanker
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.bm25rag import BM25HybridRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag.fusion import fuse

ENGLISH = {"field": "meta.lang", "operator": "==", "value": "en"}
RECENT = {"field": "meta.year", "operator": ">=", "value": 2000}


@component
class Letters:
    """Embeds a text by its groups of three letters, so that "chasers" is near "chase"."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        vector = [0.001] * 64
        for start in range(len(text) - 2):
            vector[zlib.crc32(text[start : start + 3].lower().encode()) % 64] += 1
        return {"embedding": vector}


def embedded(documents: list[Document]) -> list[Document]:
    return [replace(one, embedding=Letters().run(one.content)["embedding"]) for one in documents]


@pytest.fixture
def vectors(documents: list[Document]) -> Iterator[InMemoryDocumentStore]:
    store = InMemoryDocumentStore()
    store.write_documents(embedded(documents))
    yield store
    # Else a garbage collection ends its thread. Where ``threading`` holds its lock of locks, that
    # waits for ever: until Python 3.12, to await the end of a thread takes the same lock.
    store.shutdown()


@pytest.fixture
def retriever(filled: BM25DocumentStore, vectors: InMemoryDocumentStore) -> BM25HybridRetriever:
    return BM25HybridRetriever(filled, InMemoryEmbeddingRetriever(vectors), Letters())


def ask(retriever: BM25HybridRetriever, query: str, *args: Any, **kwargs: Any) -> list[Document]:
    """Ask in the sync and the async way; the answers must be equal."""
    documents: list[Document] = retriever.run(query, *args, **kwargs)["documents"]
    assert asyncio.run(retriever.run_async(query, *args, **kwargs))["documents"] == documents
    return documents


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


# --- what is found ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["minmax", "zscore", "rrf"])
@pytest.mark.parametrize("filters", [None, ENGLISH, {"operator": "NOT", "conditions": [ENGLISH]}])
def test_results_are_the_fusion_of_both_under_the_filters(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore, method: Any, filters: Any
) -> None:
    dense = InMemoryEmbeddingRetriever(vectors)
    retriever = BM25HybridRetriever(filled, dense, Letters(), method=method, weights=[0.7, 0.3])
    by_words = filled.bm25_retrieval("cat chasers", filters, 50)
    asked = Letters().run("cat chasers")["embedding"]
    by_vectors = dense.run(asked, filters, 50)["documents"]
    rankings = [[(one.id, one.score or 0.0) for one in part] for part in (by_words, by_vectors)]
    expected = fuse(rankings, method, [0.7, 0.3])
    results = ask(retriever, "cat chasers", filters, 9)
    assert [(one.id, one.score) for one in results] == expected
    assert ids(ask(retriever, "cat chasers", filters, 1)) == ids(results)[:1]
    stored = {one.id: one for one in filled.filter_documents()}
    assert [replace(one, score=None) for one in results] == [stored[one.id] for one in results]


def test_what_one_store_misses_is_found(retriever: BM25HybridRetriever) -> None:
    assert retriever.document_store.bm25_retrieval("chasers of doggies", None) == []
    assert ids(ask(retriever, "chasers of doggies", top_k=1)) == ["dog"]
    assert ask(retriever, "fish", top_k=0) == []


def test_filters_combine_as_the_policy_says(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore
) -> None:
    dense = InMemoryEmbeddingRetriever(vectors)
    for policy, expected in (("replace", ["cat"]), ("merge", [])):
        other = {**ENGLISH, "value": "de"}
        retriever = BM25HybridRetriever(
            filled, dense, Letters(), filters=other, filter_policy=policy
        )
        assert ids(ask(retriever, "cat")) == ["hund"]
        assert ids(ask(retriever, "cat", RECENT)) == expected


@component
class Unfiltered:
    """An embedding retriever that ignores filters, and returns at most ``limit``."""

    def __init__(self, answer: Any = None, limit: int = 99) -> None:
        self.answer, self.limit, self.asked = answer, limit, []

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], filters: Any = None, top_k: int = 10
    ) -> dict[str, Any]:
        if isinstance(self.answer, Exception):
            raise self.answer
        self.asked.append(top_k)
        return {"documents": self.answer[: min(top_k, self.limit)]}


def test_filters_hold_even_if_the_other_store_ignores_them() -> None:
    documents = [Document(id=str(n), content="cat", meta={"year": n + 1920}) for n in range(90)]
    store = BM25DocumentStore()
    store.write_documents(documents)
    ranking = [Document(id=str(n), content="", score=-float(n)) for n in range(90)]
    other = Unfiltered(ranking)
    retriever = BM25HybridRetriever(
        store, other, Letters(), top_k=2, top_k_per_retriever=2, weights=[0, 1]
    )
    assert ids(retriever.run("dogs", RECENT)["documents"]) == ["80", "81"]
    assert other.asked == [2, 8, 32, 90]


# --- in pipelines -------------------------------------------------------------------


def test_a_pipeline_embeds_and_ranks(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("embedder", Letters())
    hybrid = BM25HybridRetriever(filled, InMemoryEmbeddingRetriever(vectors), top_k=3)
    pipeline.add_component("hybrid", hybrid)
    pipeline.add_component("ranker", MetaFieldRanker("year", weight=1, top_k=2))
    pipeline.connect("embedder.embedding", "hybrid.query_embedding")
    pipeline.connect("hybrid", "ranker")
    asked = {"embedder": {"text": "cat"}, "hybrid": {"query": "cat", "filters": ENGLISH}}
    assert ids(pipeline.run(asked)["ranker"]["documents"]) == ["cat", "dog"]


def test_it_is_made_again_from_a_dict(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore
) -> None:
    settings: dict[str, Any] = {
        "filters": ENGLISH,
        "top_k": 2,
        "filter_policy": "merge",
        "top_k_per_retriever": 7,
        "method": "rrf",
        "weights": [0.2, 0.8],
        "rank_constant": 10,
        "on_unknown": "skip",
    }
    dense = InMemoryEmbeddingRetriever(vectors)
    retriever = BM25HybridRetriever(filled, dense, **settings)
    data = retriever.to_dict()
    for name, value in settings.items():
        assert data["init_parameters"][name] == value
    assert BM25HybridRetriever.from_dict(retriever.to_dict()).to_dict() == data

    pipeline = Pipeline()
    pipeline.add_component("hybrid", retriever)
    again = Pipeline.loads(pipeline.dumps())
    asked = {"query": "cat", "query_embedding": Letters().run("cat")["embedding"]}
    results = again.run({"hybrid": asked})["hybrid"]["documents"]
    assert results == ask(retriever, **asked)


@component
class Counting:
    """An embedder that counts how often it was warmed up and closed."""

    def __init__(self) -> None:
        self.warm, self.closed = 0, 0

    def warm_up(self) -> None:
        self.warm += 1

    async def close_async(self) -> None:
        self.closed += 1

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        assert self.warm
        return Letters().run(text)


def test_its_parts_are_warmed_up_and_closed(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore
) -> None:
    embedder = Counting()
    retriever = BM25HybridRetriever(filled, InMemoryEmbeddingRetriever(vectors), embedder)
    assert ask(retriever, "cat")
    asyncio.run(retriever.close_async())
    retriever.close()
    assert embedder.closed == 1
    assert ask(retriever, "cat"), "a store that was closed can still be used"


# --- faults -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (TimeoutError("5 s"), RuntimeError, "embedding_retriever, Unfiltered, failed: TimeoutErr"),
        ([Document(id="x", score=1.0)], ValueError, "'x', which is not in the BM25 index"),
        ([Document(id="cat", score=None)], TypeError, "score of 'cat'"),
        ([Document(id="cat", score=float("nan"))], ValueError, "score of 'cat' .* nan"),
    ],
)
def test_a_fault_of_the_other_store_is_named(
    filled: BM25DocumentStore, answer: Any, error: type[Exception], message: str
) -> None:
    retriever = BM25HybridRetriever(filled, Unfiltered(answer), Letters())
    with pytest.raises(error, match=message):
        retriever.run("cat")
    with pytest.raises(error, match=message):
        asyncio.run(retriever.run_async("cat"))


def test_a_fault_of_the_embedder_is_named(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore
) -> None:
    retriever = BM25HybridRetriever(filled, InMemoryEmbeddingRetriever(vectors), Counting())
    retriever.warm_up = lambda: None  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="the text_embedder, Counting, failed: AssertionError"):
        retriever.run("cat")
    without = BM25HybridRetriever(filled, InMemoryEmbeddingRetriever(vectors))
    with pytest.raises(ValueError, match="query_embedding is missing: connect an embedder"):
        without.run("cat")
    with pytest.raises(RuntimeError, match="embedding_retriever, InMemoryEmbeddingRetriever, fail"):
        without.run("cat", query_embedding=[1.0])  # of another length than the documents'


def test_what_was_written_to_the_other_store_first_may_be_skipped(
    filled: BM25DocumentStore, vectors: InMemoryDocumentStore
) -> None:
    vectors.write_documents(embedded([Document(id="new", content="chasers")]))
    dense = InMemoryEmbeddingRetriever(vectors)
    with pytest.raises(ValueError, match="'new', which is not in the BM25 index"):
        BM25HybridRetriever(filled, dense, Letters()).run("chasers")
    behind = BM25HybridRetriever(filled, dense, Letters(), on_unknown="skip")
    assert ids(ask(behind, "chasers of dogs", top_k=1)) == ["dog"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"document_store": InMemoryDocumentStore()}, TypeError, "must be a BM25DocumentStore"),
        ({"embedding_retriever": Letters()}, TypeError, "run takes query_embedding, got Letters"),
        ({"text_embedder": Unfiltered()}, TypeError, "run takes text, got Unfiltered"),
        ({"top_k": 0}, ValueError, "top_k must be"),
        ({"top_k_per_retriever": -1}, ValueError, "top_k_per_retriever must be"),
        ({"filters": {"field": "meta.a"}}, FilterError, "operator"),
        ({"filter_policy": "join"}, ValueError, "join"),
        ({"method": "sum"}, ValueError, "method must be"),
        ({"weights": [1]}, ValueError, "weights must have one for each of 2"),
    ],
)
def test_wrong_settings_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    right = {"document_store": BM25DocumentStore(), "embedding_retriever": Unfiltered()}
    with pytest.raises(error, match=message):
        BM25HybridRetriever(**(right | arguments))
