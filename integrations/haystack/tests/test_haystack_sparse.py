"""Sparse embeddings: stored as vectors, searched alone and fused with BM25, in one store."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haystack import Document, Pipeline, component
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.bm25rag import (
    BM25SparseEmbeddingRetriever,
    BM25SparseHybridRetriever,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag.fusion import fuse

ENGLISH = {"field": "meta.lang", "operator": "==", "value": "en"}
GERMAN = {**ENGLISH, "value": "de"}
RECENT = {"field": "meta.year", "operator": ">=", "value": 2000}


def encode(text: str) -> SparseEmbedding:
    """Weigh groups of three letters, so that "chasers" is near "chase"."""
    weights: dict[int, float] = {}
    for start in range(len(text) - 2):
        index = zlib.crc32(text[start : start + 3].lower().encode()) % 30_522
        weights[index] = weights.get(index, 0.0) + 0.1 * (start % 7 + 1)
    return SparseEmbedding(list(weights), list(weights.values()))


@component
class SparseTextEmbedder:
    """Stands for an embedder of queries."""

    @component.output_types(sparse_embedding=SparseEmbedding)
    def run(self, text: str) -> dict[str, SparseEmbedding]:
        return {"sparse_embedding": encode(text)}


@component
class SparseDocumentEmbedder:
    """Stands for an embedder of documents."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        return {"documents": encoded(documents)}


def encoded(documents: list[Document]) -> list[Document]:
    return [replace(one, sparse_embedding=encode(one.content or "")) for one in documents]


@pytest.fixture
def filled(store: BM25DocumentStore, documents: list[Document]) -> BM25DocumentStore:
    store.write_documents(encoded(documents))
    return store


def ask(retriever: Any, *args: Any, **kwargs: Any) -> list[Document]:
    """Ask in the sync and the async way; the answers must be equal."""
    documents: list[Document] = retriever.run(*args, **kwargs)["documents"]
    assert asyncio.run(retriever.run_async(*args, **kwargs))["documents"] == documents
    return documents


def search(store: BM25DocumentStore, text: str, **options: Any) -> list[Document]:
    return ask(BM25SparseEmbeddingRetriever(store), encode(text), **options)


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


def naive_ranking(query: SparseEmbedding, documents: list[Document]) -> list[tuple[str, float]]:
    """Rank by dot products: float32 weights of documents, float64 products and sums, in order."""
    ranking = []
    for document in documents:
        sparse = document.sparse_embedding or SparseEmbedding([], [])
        weights = dict(zip(sparse.indices, sparse.values, strict=True))
        asked = zip(query.indices, query.values, strict=True)
        parts = [
            value * np.float32(weights[index]).item()
            for index, value in asked
            if weights.get(index)
        ]
        score = 0.0
        for part in parts:
            score += part
        if parts:
            ranking.append((document.id, score))
    return sorted(ranking, key=lambda pair: -pair[1])


# --- what is found ------------------------------------------------------------------


def test_scores_are_dot_products(filled: BM25DocumentStore, documents: list[Document]) -> None:
    for text in ("chasers", "a cat and a dog", "swimming fishes", "zzz"):
        results = search(filled, text)
        assert [(one.id, one.score) for one in results] == naive_ranking(
            encode(text), encoded(documents)
        )
        stored = {one.id: one for one in filled.filter_documents()}
        assert [replace(one, score=None) for one in results] == [stored[one.id] for one in results]
    assert search(filled, "") == []
    rng = np.random.default_rng(5)
    many = [
        Document(
            id=str(n),
            sparse_embedding=SparseEmbedding(
                rng.choice(40, 8, replace=False).tolist(), rng.normal(size=8).tolist()
            ),
        )
        for n in range(200)
    ]
    filled.write_documents(many)
    query = SparseEmbedding(list(range(12)), rng.normal(size=12).tolist())
    results = ask(BM25SparseEmbeddingRetriever(filled, top_k=300), query)
    assert [(one.id, one.score) for one in results if one.id.isdigit()] == naive_ranking(
        query, many
    )


def test_the_call_overrides_the_constructor(filled: BM25DocumentStore) -> None:
    retriever = BM25SparseEmbeddingRetriever(filled, ENGLISH, 2, scale_score=True, min_score=0.5)
    query = encode("the cat")
    results = ask(retriever, query)
    assert len(results) == 2
    assert all(0.5 < (one.score or 0) < 1 for one in results)
    raw = ask(retriever, query, top_k=9, filters=GERMAN, scale_score=False, min_score=0.0)
    assert ids(raw) == ["hund"]
    least = ask(retriever, query, scale_score=False, top_k=1)[0].score
    assert len(ask(retriever, query, scale_score=False, min_score=least)) == 1
    assert ask(retriever, query, top_k=0) == []


@pytest.mark.parametrize(("policy", "expected"), [("replace", ["cat"]), ("merge", [])])
def test_filters_combine_as_the_policy_says(
    filled: BM25DocumentStore, policy: str, expected: list[str]
) -> None:
    settings: dict[str, Any] = {"filters": GERMAN, "filter_policy": policy}
    alone = BM25SparseEmbeddingRetriever(filled, **settings)
    hybrid = BM25SparseHybridRetriever(filled, **settings)
    for retriever, asked in ((alone, [encode("cat")]), (hybrid, ["cat", encode("cat")])):
        assert ids(ask(retriever, *asked)) == ["hund"]
        assert ids(ask(retriever, *asked, RECENT)) == expected


@pytest.mark.parametrize("method", ["minmax", "zscore", "rrf"])
@pytest.mark.parametrize("filters", [None, ENGLISH, {"operator": "NOT", "conditions": [ENGLISH]}])
def test_hybrid_results_are_the_fusion_of_both_under_the_filters(
    filled: BM25DocumentStore, method: Any, filters: Any
) -> None:
    retriever = BM25SparseHybridRetriever(filled, method=method, weights=[0.7, 0.3])
    query = "cat chasers"
    by_words = filled.bm25_retrieval(query, filters, 50)
    rankings = [
        [(one.id, one.score or 0.0) for one in ranked]
        for ranked in (by_words, search(filled, query, filters=filters, top_k=100))
    ]
    results = ask(retriever, query, encode(query), filters, 9)
    assert [(one.id, one.score) for one in results] == fuse(rankings, method, [0.7, 0.3])
    assert ids(ask(retriever, query, encode(query), filters, 1)) == ids(results)[:1]
    stored = {one.id: one for one in filled.filter_documents()}
    assert [replace(one, score=None) for one in results] == [stored[one.id] for one in results]


def test_hybrid_finds_what_either_misses(filled: BM25DocumentStore) -> None:
    filled.write_documents([Document(id="plain", content="zebra")])  # no sparse embedding
    retriever = BM25SparseHybridRetriever(filled, top_k=2)
    assert filled.bm25_retrieval("chasers") == []
    assert ids(ask(retriever, "chasers", encode("chasers"))) == ["dog"]
    assert ids(ask(retriever, "zebra", SparseEmbedding([], []))) == ["plain"]
    of_one = BM25SparseHybridRetriever(filled, top_k=1, top_k_per_retriever=1, weights=[1, 0])
    assert ids(ask(of_one, "mat", encode("swim"))) == ["cat"]


# --- what is stored -----------------------------------------------------------------


@pytest.mark.parametrize(
    "sparse",
    [
        SparseEmbedding([7, 1], [1 / 3, 0.1]),  # in another order, and beyond float32
        SparseEmbedding([1, 7], [0.0, -0.0]),
        SparseEmbedding([2**40], [-2.5]),
        SparseEmbedding([], []),
        None,
    ],
)
def test_a_sparse_embedding_comes_back_as_it_was_written(
    store: BM25DocumentStore, sparse: SparseEmbedding | None
) -> None:
    document = Document(id="1", content="cat", sparse_embedding=sparse)
    store.write_documents([document, Document(id="2", content="dog")])
    assert store.filter_documents()[0] == document
    assert store.bm25_retrieval("cat")[0].sparse_embedding == sparse
    asked = sparse or SparseEmbedding([1], [1.0])
    results = ask(BM25SparseEmbeddingRetriever(store), asked)
    weighty = sparse is not None and any(sparse.values)
    assert [one.sparse_embedding for one in results] == ([sparse] if weighty else [])


def test_numbers_of_numpy_are_stored_and_asked_for(store: BM25DocumentStore) -> None:
    indices: Any = np.array([3, 5])
    values: Any = np.array([0.5, 2.0], np.float32)
    sparse = SparseEmbedding(indices, values)
    store.write_documents([Document(id="1", content="cat", sparse_embedding=sparse)])
    (document,) = ask(BM25SparseEmbeddingRetriever(store), sparse)
    assert document.score == 4.25
    assert document.sparse_embedding == SparseEmbedding([3, 5], [0.5, 2.0])


def test_duplicates_are_found_as_the_policy_says(store: BM25DocumentStore) -> None:
    old, new = (Document(id="1", content="x", sparse_embedding=encode(t)) for t in ("old", "new"))
    store.write_documents([old])
    with pytest.raises(DuplicateDocumentError):
        store.write_documents([new])
    assert store.write_documents([new], DuplicatePolicy.SKIP) == 0
    assert (ids(search(store, "old")), search(store, "new")) == (["1"], [])
    assert store.write_documents([old, new], DuplicatePolicy.OVERWRITE) == 2
    assert (search(store, "old"), ids(search(store, "new"))) == ([], ["1"])
    store.write_documents([replace(new, sparse_embedding=None)], DuplicatePolicy.OVERWRITE)
    assert search(store, "new") == []


def test_deletions_and_updates_of_meta_reach_the_search(filled: BM25DocumentStore) -> None:
    before = search(filled, "the cat")
    filled.delete_documents(["dog"])
    after = search(filled, "the cat")
    assert after == [one for one in before if one.id != "dog"]
    assert filled.update_by_filter(GERMAN, {"lang": "en"}) == 1
    assert sorted(ids(search(filled, "the cat", filters=ENGLISH))) == ["cat", "hund"]
    assert filled.delete_by_filter(ENGLISH) == 2
    assert ids(search(filled, "the cat swims")) == ["fish"]
    filled.delete_all_documents()
    assert search(filled, "fish") == []


def test_a_folder_keeps_them(tmp_path: Path, documents: list[Document]) -> None:
    store = BM25DocumentStore(tmp_path)
    store.write_documents(encoded(documents))
    again = BM25DocumentStore(tmp_path, return_embedding=False)
    assert search(again, "chasers") == search(store, "chasers") != []
    assert again.filter_documents() == encoded(documents)


# --- in pipelines -------------------------------------------------------------------


def test_pipelines_embed_write_and_ask(store: BM25DocumentStore, documents: list[Document]) -> None:
    indexing = Pipeline()
    indexing.add_component("embedder", SparseDocumentEmbedder())
    indexing.add_component("writer", DocumentWriter(store))
    indexing.connect("embedder", "writer")
    indexing.run({"embedder": {"documents": documents}})

    asking = Pipeline()
    asking.add_component("embedder", SparseTextEmbedder())
    asking.add_component("alone", BM25SparseEmbeddingRetriever(store, top_k=1))
    asking.add_component("hybrid", BM25SparseHybridRetriever(store, top_k=2))
    asking.connect("embedder.sparse_embedding", "alone.query_sparse_embedding")
    asking.connect("embedder.sparse_embedding", "hybrid.query_sparse_embedding")
    hybrid = {"query": "on a mat", "filters": ENGLISH}
    output = asking.run({"embedder": {"text": "chasers"}, "hybrid": hybrid})
    assert ids(output["alone"]["documents"]) == ["dog"]
    assert ids(output["hybrid"]["documents"]) == ["cat", "dog"]


def test_retrievers_are_made_again_from_a_dump(tmp_path: Path, documents: list[Document]) -> None:
    store = BM25DocumentStore(tmp_path)
    store.write_documents(encoded(documents))
    shared: dict[str, Any] = {"top_k": 2, "filter_policy": "merge"}
    fusion = {"top_k_per_retriever": 7, "method": "rrf", "weights": [0.2, 0.8], "rank_constant": 10}
    fusion |= {"correct": True, "expand": False, "parse_query": True}
    settings = {
        "alone": {**shared, "filters": ENGLISH, "scale_score": True, "min_score": 0.5},
        "hybrid": {**shared, "filters": RECENT, **fusion},
    }
    pipeline = Pipeline()
    pipeline.add_component("alone", BM25SparseEmbeddingRetriever(store, **settings["alone"]))
    pipeline.add_component("hybrid", BM25SparseHybridRetriever(store, **settings["hybrid"]))
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    asked: dict[str, Any] = {"query_sparse_embedding": encode("the cat")}
    both = {"alone": asked, "hybrid": asked | {"query": "the cat"}}
    assert again.run(both) == pipeline.run(both)
    for name, expected in settings.items():
        retriever: Any = again.get_component(name)
        parameters = retriever.to_dict()["init_parameters"]
        shaping = {"group": None, "per_group": 1, "decay": None}
        assert parameters == shaping | expected | {"document_store": store.to_dict()}
        asyncio.run(retriever.close_async())
        retriever.close()
        assert ask(retriever, **both[name]), "a store that was closed can still be used"


# --- bad input ----------------------------------------------------------------------


def wrong(indices: Any, values: Any) -> SparseEmbedding:
    """Make one whose constructor checks nothing, as it may be after an edit."""
    sparse = SparseEmbedding([], [])
    sparse.__dict__.update(indices=indices, values=values)
    return sparse


RAGGED = wrong([1], [1.0, 2.0])


@pytest.mark.parametrize(
    ("sparse", "message"),
    [
        ([0.1, 0.2], r"document '1' at 'sparse_embedding': expected a SparseEmbedding, got \[0.1"),
        (wrong(["a"], [1.0]), r"'1' at 'sparse_embedding.indices': .* integers, got"),
        (wrong([1.5], [1.0]), "'1' at 'sparse_embedding.indices': .* integers, got"),
        (wrong([[1], [2, 3]], [1.0, 2.0]), "at 'sparse_embedding.indices': .* integers"),
        (wrong([1], [[1.0]]), "at 'sparse_embedding.values': .* list of numbers"),
        (RAGGED, ".sparse_embedding has 1 indices and 2 values"),
        (SparseEmbedding([1], [float("nan")]), r".sparse_embedding\['1'\] must be .* nan"),
    ],
)
def test_a_sparse_embedding_that_cannot_be_searched_is_not_written(
    store: BM25DocumentStore, sparse: Any, message: str
) -> None:
    document = Document(id="1", content="cat", sparse_embedding=sparse)
    with pytest.raises(ValueError, match=rf"documents\[1\].*{message}"):
        store.write_documents([Document(content="fine"), document])
    assert store.count_documents() == 0


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ([0.1, 0.2], TypeError, r"query_sparse_embedding must be a SparseEmbedding, got \[0.1"),
        (None, TypeError, "query_sparse_embedding must be a SparseEmbedding, got None"),
        (RAGGED, ValueError, "query_sparse_embedding has 1 indices and 2 values"),
        (
            SparseEmbedding([1], [float("inf")]),
            ValueError,
            r"query_sparse_embedding\['1'\] must be .* inf",
        ),
    ],
)
def test_a_wrong_query_is_refused(
    filled: BM25DocumentStore, query: Any, error: type[Exception], message: str
) -> None:
    alone, hybrid = BM25SparseEmbeddingRetriever(filled), BM25SparseHybridRetriever(filled)
    for retriever, asked in ((alone, [query]), (hybrid, ["cat", query])):
        with pytest.raises(error, match=message):
            retriever.run(*asked)
        with pytest.raises(error, match=message):
            asyncio.run(retriever.run_async(*asked))


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"query": ""}, ValueError, "query must not be empty"),
        ({"query": {"cat"}}, TypeError, "query must be a str, got set"),
        ({"top_k": -1}, ValueError, "top_k must be an integer >= 0, got -1"),
        ({"top_k": True}, TypeError, "top_k must be an integer >= 0, got True"),
        ({"filters": {"field": "meta.a"}}, FilterError, "operator"),
    ],
)
def test_other_wrong_arguments_name_themselves(
    filled: BM25DocumentStore, asked: dict[str, Any], error: type[Exception], message: str
) -> None:
    right: dict[str, Any] = {"query": "cat", "query_sparse_embedding": encode("cat")}
    with pytest.raises(error, match=message):
        BM25SparseHybridRetriever(filled).run(**(right | asked))
    if "query" not in asked:
        with pytest.raises(error, match=message):
            BM25SparseEmbeddingRetriever(filled).run(encode("cat"), **asked)


@pytest.mark.parametrize(
    ("retriever", "arguments", "error", "message"),
    [
        (0, {"document_store": InMemoryDocumentStore()}, TypeError, "must be a BM25DocumentStore"),
        (0, {"scale_score": "no"}, TypeError, "scale_score must be True or False"),
        (0, {"min_score": float("nan")}, ValueError, "min_score must be a number, got nan"),
        (0, {"top_k": 0}, ValueError, "top_k must be"),
        (1, {"document_store": InMemoryDocumentStore()}, TypeError, "must be a BM25DocumentStore"),
        (1, {"top_k": 0}, ValueError, "top_k must be"),
        (1, {"top_k_per_retriever": -1}, ValueError, "top_k_per_retriever must be"),
        (1, {"filters": {"field": "meta.a"}}, FilterError, "operator"),
        (1, {"filter_policy": "join"}, ValueError, "join"),
        (1, {"method": "sum"}, ValueError, "method must be"),
        (1, {"weights": [1]}, ValueError, "weights must have one for each of 2"),
        (1, {"rank_constant": -1}, ValueError, "rank_constant must be"),
    ],
)
def test_wrong_settings_are_refused(
    retriever: int, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    made: Any = (BM25SparseEmbeddingRetriever, BM25SparseHybridRetriever)[retriever]
    with pytest.raises(error, match=message):
        made(**({"document_store": BM25DocumentStore()} | arguments))
