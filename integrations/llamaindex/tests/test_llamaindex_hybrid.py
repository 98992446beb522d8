"""BM25VectorStore in front of a dense store: both legs, filters on both, and faults of one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, MetadataMode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.types import VectorStoreQueryMode, VectorStoreQueryResult
from llama_index.vector_stores.bm25rag import BM25VectorStore, DenseStoreError, NoEmbedding
from llamaindex_dense import (
    DIMENSION,
    Dense,
    IgnoringFilters,
    KeepingNodes,
    WithoutFilters,
    WordEmbedding,
    embed,
)
from llamaindex_nodes import node
from test_llamaindex_filters import metadata, nested

from bm25rag import BM25Index
from bm25rag.errors import ReadOnlyError
from bm25rag.fusion import fuse

KINDS = [Dense, WithoutFilters, IgnoringFilters, KeepingNodes]


def embedded(nodes: list[TextNode]) -> list[TextNode]:
    return [each.model_copy(update={"embedding": embed(each.text)}) for each in nodes]


def hybrid_of(nodes: list[TextNode], kind: type[Dense] = Dense, **more: Any) -> BM25VectorStore:
    store = BM25VectorStore(dense=kind(), **more)
    store.add(embedded(nodes))
    return store


def question(text: str, mode: str = "hybrid", **more: Any) -> VectorStoreQuery:
    given = {"similarity_top_k": 10, "query_embedding": embed(text), **more}
    return VectorStoreQuery(query_str=text, mode=VectorStoreQueryMode(mode), **given)


def ask(store: BM25VectorStore, text: str, mode: str = "hybrid", **more: Any) -> list[str]:
    result = store.query(question(text, mode, **more))
    assert result.nodes is not None
    assert [each.node_id for each in result.nodes] == result.ids
    assert asyncio.run(store.aquery(question(text, mode, **more))) == result
    return result.ids


def where(key: str, value: Any, operator: str = "==") -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def dense_of(store: BM25VectorStore) -> Dense:
    assert isinstance(store.dense, Dense)
    return store.dense


def held(store: BM25VectorStore) -> tuple[list[str], list[str]]:
    return store.bm25.ids(), list(dense_of(store).data.embedding_dict)


# --- fusing -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["minmax", "zscore", "rrf"])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.3, 1.0])
def test_both_legs_are_fused(method: Any, alpha: float | None, nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes, method=method, alpha=0.7)
    legs = [store.query(question("cats mat", mode)) for mode in ("text_search", "default")]
    rankings = [list(zip(leg.ids or [], leg.similarities or [], strict=True)) for leg in legs]
    assert [len(ranking) for ranking in rankings] == [2, 4]
    weight = 0.7 if alpha is None else alpha
    asked = [
        ranking if w else [] for ranking, w in zip(rankings, (1 - weight, weight), strict=True)
    ]
    expected = fuse(asked, method, [1 - weight, weight])
    result = store.query(question("cats mat", alpha=alpha))
    assert list(zip(result.ids or [], result.similarities or [], strict=True)) == expected


def test_what_one_leg_misses_is_not_lost(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    dense_of(store).data.embedding_dict.pop("cat")
    assert set(ask(store, "cats")) == {"cat", "dog", "cow", "hen"}
    assert ask(store, "cats", alpha=0) == ["dog", "cat"]
    assert "cat" not in ask(store, "cats", alpha=1)


def test_the_numbers_of_nodes(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes, fetch_k=3)
    assert len(ask(store, "cats", similarity_top_k=1)) == 1
    assert [query.similarity_top_k for query in dense_of(store)._asked] == [3, 3]
    assert len(ask(store, "cats", similarity_top_k=1, hybrid_top_k=4)) == 4
    assert dense_of(store)._asked[-1].similarity_top_k == 4
    assert ask(store, "cats", alpha=0, sparse_top_k=1) == ["dog"]
    assert ask(store, "cats", hybrid_top_k=0) == []
    assert ask(store, "cats", "default", similarity_top_k=0) == []


def test_nodes_come_back_as_they_were_added(nodes: list[TextNode]) -> None:
    for kind in KINDS:
        returned = hybrid_of(nodes, kind).query(question("cats")).nodes
        assert sorted(returned or [], key=lambda each: nodes.index(each)) == nodes


def test_words_alone_need_no_vector(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    for mode, alpha in (("text_search", None), ("sparse", None), ("hybrid", 0)):
        assert ask(store, "cats", mode, alpha=alpha, query_embedding=None) == ["dog", "cat"]
    assert dense_of(store)._asked == []


def test_other_modes_are_the_dense_stores(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    assert ask(store, "cats mat", "default", similarity_top_k=1) == ["cat"]
    result = store.query(question("cats", "mmr"), mmr_threshold=0.1)
    assert len(result.ids or []) == 4
    assert dense_of(store)._asked[-1].mode is VectorStoreQueryMode.MMR


def test_the_retriever_of_an_index_uses_every_mode(nodes: list[TextNode]) -> None:
    store = BM25VectorStore(dense=SimpleVectorStore())
    index = VectorStoreIndex.from_vector_store(store, embed_model=WordEmbedding())
    index.insert_nodes(nodes)
    for mode in ("hybrid", "default", "text_search"):
        retriever = index.as_retriever(vector_store_query_mode=mode, similarity_top_k=1, alpha=0.5)
        (scored,) = retriever.retrieve("The cats sat.")
        assert scored.node == nodes[0]
        assert asyncio.run(retriever.aretrieve("The cats sat."))[0].node == nodes[0]


# --- filters ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_filters_and_ids_hold_for_every_result(kind: type[Dense], nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes, kind)
    more = [node(f"cat {number}", "A cat", "others", year=1900) for number in range(200)]
    store.add(embedded(more))
    for mode in ("hybrid", "default"):
        assert set(ask(store, "cat", mode, filters=where("year", 2000, ">"))) == {
            "cat",
            "dog",
            "cow",
        }
        assert set(ask(store, "cat", mode, filters=where("year", None, "is_empty"))) == {"hen"}
        assert set(ask(store, "cat", mode, doc_ids=["farm"])) == {"cow", "hen"}
        assert ask(store, "cat", mode, doc_ids=[]) == []
        assert set(ask(store, "cat", mode, node_ids=["cow", "cat", "?"])) == {"cow", "cat"}
        assert ask(store, "cat", mode, filters=where("year", 3000)) == []
        best = ask(store, "cat", mode, filters=where("year", 1900), similarity_top_k=7)
        assert len(best) == 7
        nest = MetadataFilters(filters=[where("year", 2021), where("year", 2024)], condition="or")
        assert set(ask(store, "cat", mode, filters=nest)) == {"dog", "cow"}


def test_filters_and_ids_reach_the_dense_store(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    filters = where("year", 2021)
    store.query(question("cat", filters=filters, node_ids=["dog"], doc_ids=["pets"]))
    (asked,) = dense_of(store)._asked
    assert (asked.filters, asked.node_ids, asked.doc_ids) == (filters, ["dog"], ["pets"])
    store.query(question("cat", filters=MetadataFilters(filters=[]), node_ids=[]))
    asked = dense_of(store)._asked[-1]
    assert (asked.filters, asked.node_ids, asked.doc_ids) == (None, None, None)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(metadata, min_size=1, max_size=5), nested, st.sampled_from(KINDS))
def test_whatever_the_dense_store_makes_of_filters_the_results_are_those_that_pass(
    metadatas: list[dict[str, Any]], filters: MetadataFilters, kind: type[Dense]
) -> None:
    nodes = [node(str(number), "word", **{}) for number in range(len(metadatas))]
    for each, values in zip(nodes, metadatas, strict=True):
        each.metadata = values
    store = hybrid_of(nodes, kind, metadata_mode=MetadataMode.NONE)
    try:
        expected = store.query(question("word", "text_search", filters=filters)).ids
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            store.query(question("word", filters=filters))
        return
    for mode in ("hybrid", "default"):
        assert set(store.query(question("word", mode, filters=filters)).ids or []) == set(
            expected or []
        )


# --- both hold the same -------------------------------------------------------------


@pytest.mark.parametrize("awaited", [False, True])
def test_writes_reach_both(awaited: bool, nodes: list[TextNode]) -> None:
    store = BM25VectorStore(dense=Dense())

    def call(method: str, asynchronous: str, *args: Any) -> None:
        if awaited:
            asyncio.run(getattr(store, asynchronous)(*args))
        else:
            getattr(store, method)(*args)

    call("add", "async_add", embedded(nodes))
    assert held(store) == (["cat", "dog", "cow", "hen"],) * 2
    call("delete", "adelete", "farm")
    assert held(store) == (["cat", "dog"],) * 2
    call("delete_nodes", "adelete_nodes", None, where("year", 2019))
    assert held(store) == (["dog"],) * 2
    call("delete_nodes", "adelete_nodes", ["dog"])
    assert held(store) == ([], [])
    call("add", "async_add", embedded(nodes))
    call("clear", "aclear")
    assert held(store) == ([], [])
    assert set(dense_of(store)._awaited) == (
        {"add", "delete", "delete_nodes", "clear"} if awaited else set()
    )


def test_a_node_replaces_one_with_its_id_in_both() -> None:
    store = hybrid_of([node("a", "A cat"), node("a", "A cow")])
    store.add(embedded([node("a", "A zebra")]))
    assert dense_of(store).get("a") == embed("A zebra")
    assert ask(store, "zebra") == ["a"]


def test_a_pipeline_upserts_and_deletes_in_both() -> None:
    store = BM25VectorStore(dense=Dense())
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=32, chunk_overlap=8), WordEmbedding()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        vector_store=store,
    )
    pipeline.run(documents=[Document(id_="a", text="A cat. " * 30), Document(id_="b", text="Cow")])
    words, vectors = held(store)
    assert len(words) > 2
    assert words == vectors
    pipeline.run(documents=[Document(id_="a", text="A dog.")])
    words, vectors = held(store)
    assert len(words) == 1
    assert words == vectors
    assert store.query(question("cat")).nodes == store.get_nodes(words)


def test_both_are_saved_and_loaded(nodes: list[TextNode], tmp_path: Path) -> None:
    store = hybrid_of(nodes)
    StorageContext.from_defaults(vector_store=store).persist(str(tmp_path))
    path = tmp_path / "default__vector_store.json.dense"
    again = BM25VectorStore.from_persist_dir(
        str(tmp_path), dense=SimpleVectorStore.from_persist_path(str(path))
    )
    assert again.query(question("cats")) == store.query(question("cats"))
    with pytest.raises(ValueError, match=f"must have {DIMENSION} numbers.*got 2"):
        again.query(question("cats", query_embedding=[1.0, 2.0]))
    with pytest.raises(ValueError, match=f"must have an embedding of {DIMENSION} numbers.*got 2"):
        again.add([TextNode(text="a", embedding=[1.0, 2.0])])


# --- ids that one leg does not know -----------------------------------------------


def test_nodes_that_only_the_dense_store_holds_are_found_and_filtered(
    nodes: list[TextNode],
) -> None:
    store = hybrid_of(nodes[1:], KeepingNodes)
    dense_of(store).add(embedded(nodes[:1]))
    assert "cat" in ask(store, "cats")
    assert set(ask(store, "cats", filters=where("year", 2020, "<"))) == {"cat"}
    assert "cat" not in ask(store, "cats", filters=where("year", 2020, ">"))


@pytest.mark.parametrize("filters", [None, where("year", 2000, ">")])
def test_ids_without_nodes_are_refused(filters: MetadataFilters, nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes, IgnoringFilters)
    SimpleVectorStore.add(dense_of(store), embedded([node("strange", "cats")]))
    for mode in ("hybrid", "default"):
        with pytest.raises(DenseStoreError, match="returned 'strange', which the BM25 index does"):
            ask(store, "cats", mode, filters=filters)
    with pytest.raises(DenseStoreError, match="which the BM25 index does not hold"):
        ask(BM25VectorStore(dense=store.dense), "cats")


def test_a_node_that_is_added_during_a_query_is_left_out(nodes: list[TextNode]) -> None:
    class Adding(Dense):
        def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
            store.add(embedded([node("new", "cats")]))
            return super().query(query, **kwargs)

    store = hybrid_of(nodes, Adding)
    ids = store.query(question("cats")).ids or []
    assert set(ids) == {"cat", "dog", "cow", "hen"}
    assert "new" in (store.query(question("cats")).ids or [])


# --- faults -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [OSError("gone"), TimeoutError(), ValueError("no"), KeyError("x")]
)
def test_a_dense_leg_that_fails_is_named(fault: Exception, nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    dense_of(store)._fails["query"] = fault
    message = f"the dense store .Dense. failed at query: {type(fault).__name__}"
    for filters in (None, where("year", 2021)):
        with pytest.raises(DenseStoreError, match=message) as caught:
            store.query(question("cats", filters=filters))
        assert caught.value.__cause__ is fault
        with pytest.raises(DenseStoreError, match=message):
            asyncio.run(store.aquery(question("cats", filters=filters)))
    assert ask(store, "cats", "text_search") == ["dog", "cat"]


def test_a_document_that_is_inserted_again_after_a_fault_is_deleted_first() -> None:
    """The index cuts it anew, so that its nodes do not replace those that BM25 has already."""
    store = BM25VectorStore(dense=Dense())
    index = VectorStoreIndex.from_vector_store(store, embed_model=WordEmbedding())
    document = Document(id_="owl", text="An owl.")
    dense_of(store)._fails["add"] = TimeoutError()
    with pytest.raises(DenseStoreError, match=r"cut anew.* there twice: delete it first"):
        index.insert(document)
    dense_of(store)._fails.clear()
    index.delete_ref_doc("owl")
    index.insert(document)
    assert len(store.get_nodes()) == len(ask(store, "owl")) == 1


def test_an_empty_store_needs_no_dense_store_that_is_ready() -> None:
    store = BM25VectorStore(dense=Dense())
    dense_of(store)._fails["query"] = ValueError("Collection not found")
    assert ask(store, "cats") == []
    dense_of(store)._fails["query"] = TimeoutError()
    with pytest.raises(DenseStoreError):
        ask(store, "cats")


def test_a_timeout_is_not_waited_for_twice(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    dense_of(store)._fails["query"] = TimeoutError()
    with pytest.raises(DenseStoreError):
        store.query(question("cats", filters=where("year", 2021)))
    assert len(dense_of(store)._asked) == 1


@pytest.mark.parametrize("awaited", [False, True])
def test_nodes_are_not_lost_when_the_dense_store_fails(
    awaited: bool, nodes: list[TextNode]
) -> None:
    store = hybrid_of(nodes)
    cow = embedded([node("cow", "A zebra", "zoo"), node("new", "A tiger", "zoo")])

    def fails(method: str, use: Callable[[], Any], asynchronous: Callable[[], Any]) -> None:
        dense_of(store)._fails[method] = OSError("gone")
        with pytest.raises(DenseStoreError, match=rf"failed at {method}: OSError: gone; .*again"):
            asyncio.run(asynchronous()) if awaited else use()
        dense_of(store)._fails.clear()

    fails("delete", lambda: store.delete("farm"), lambda: store.adelete("farm"))
    fails("clear", store.clear, store.aclear)
    one = (["cat"],)
    fails("delete_nodes", lambda: store.delete_nodes(*one), lambda: store.adelete_nodes(*one))
    assert store.get_nodes() == nodes
    assert held(store)[1] == ["cat", "dog", "cow", "hen"]

    fails("add", lambda: store.add(cow), lambda: store.async_add(cow))
    assert ask(store, "zebra tiger", "text_search") == ["cow", "new"]
    assert "new" in ask(store, "tiger")
    store.add(cow)
    assert set(held(store)[0]) == set(held(store)[1])


def test_nothing_is_deleted_if_the_index_cannot_be_written_to(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    store = hybrid_of(nodes)
    store.bm25.save(tmp_path)
    reading = BM25VectorStore(BM25Index.open(tmp_path), dense=store.dense)
    for write in (
        reading.clear,
        lambda: reading.delete("farm"),
        lambda: reading.add(embedded(nodes)),
    ):
        with pytest.raises(ReadOnlyError):
            write()
    assert held(store)[1] == ["cat", "dog", "cow", "hen"]


def test_a_deletion_of_no_nodes_does_not_reach_the_dense_store(nodes: list[TextNode]) -> None:
    """Some stores take an empty list for no list, and delete everything."""
    store = hybrid_of(nodes)
    dense_of(store)._fails["delete_nodes"] = AssertionError()
    store.delete_nodes([])
    store.delete_nodes(filters=where("year", 3000))
    assert store.get_nodes() == nodes


class WithoutDeletion(Dense):
    """Deletes by source alone, as some do."""

    def delete_nodes(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("delete_nodes not implemented")


class WithoutSources(Dense):
    """Takes an id of a node for that of a source, as FaissMapVectorStore does."""

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        self.delete_nodes([ref_doc_id])


@pytest.mark.parametrize("kind", [WithoutSources, WithoutDeletion])
def test_the_nodes_of_a_source_are_deleted_by_the_source_and_by_their_ids(
    kind: type[Dense], nodes: list[TextNode]
) -> None:
    store = hybrid_of(nodes, kind)
    store.delete("farm")
    assert held(store) == (["cat", "dog"],) * 2


def test_a_store_that_cannot_delete_nodes_says_so(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes, WithoutDeletion)
    with pytest.raises(DenseStoreError, match="delete_nodes not implemented"):
        store.delete_nodes(["cat"])
    assert store.get_nodes() == nodes
    store.add(embedded(nodes))  # replaced by adding


class Numbering(Dense):
    """Gives nodes numbers, as Faiss does."""

    def add(self, nodes: Any, **add_kwargs: Any) -> list[str]:
        return [str(number) for number, _ in enumerate(super().add(nodes, **add_kwargs))]


def test_a_store_with_ids_of_its_own_is_refused(nodes: list[TextNode]) -> None:
    with pytest.raises(DenseStoreError, match=r"Numbering.*gives them ids of its own"):
        hybrid_of(nodes, Numbering)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([None], r"nodes\[0\], 'cat', has no embedding"),
        ([[]], "has no embedding"),
        ([[1.0, 2.0], [1.0]], r"nodes\[1\], 'dog', must have an embedding of 2 numbers.*got 1"),
        ([[1.0, math.nan]], r"nodes\[0\], 'cat', must have an embedding of finite numbers"),
    ],
)
def test_wrong_embeddings_change_nothing(
    vectors: list[Any], message: str, nodes: list[TextNode]
) -> None:
    store = BM25VectorStore(dense=Dense())
    given = [
        each.model_copy(update={"embedding": vector})
        for each, vector in zip(nodes, vectors, strict=False)
    ]
    with pytest.raises(ValueError, match=message):
        store.add(given)
    assert held(store) == ([], [])


def test_a_query_without_its_vector_is_named(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes)
    for vector in (None, []):
        with pytest.raises(ValueError, match="query_embedding must be given to ask the dense"):
            store.query(question("cats", query_embedding=vector))
    with pytest.raises(ValueError, match="query_embedding must have finite numbers"):
        store.query(question("cats", query_embedding=[math.nan] * DIMENSION))
    with pytest.raises(ValueError, match="'hybrid' needs query_str"):
        store.query(VectorStoreQuery(query_embedding=embed("a"), mode=VectorStoreQueryMode.HYBRID))
    with pytest.raises(ValueError, match="alpha must be a number"):
        store.query(question("cats", alpha=1.5))
    index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
    with pytest.raises(ValueError, match="has no embedding for the dense store"):
        index.insert_nodes([node("new", "A cat")])
    other = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=3))
    with pytest.raises(ValueError, match=f"must have {DIMENSION} numbers"):
        other.as_retriever(vector_store_query_mode="hybrid").retrieve("cats")


class Answering(Dense):
    """Gives one answer to all queries."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        self._asked.append(query)
        return kwargs["answer"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (VectorStoreQueryResult(ids=["cat"]), "returned no similarities; method='rrf' needs none"),
        (VectorStoreQueryResult(ids=["cat"], similarities=[0.5, 0.5]), "1 nodes and 2 similar"),
        (
            VectorStoreQueryResult(ids=["cat"], similarities=[float("nan")]),
            "cannot be fused: .*'cat'",
        ),
        (
            VectorStoreQueryResult(ids=["cat", "cow", "dog"], similarities=[0.1, 0.5, 0.3]),
            "cannot be fused: .*must fall or rise",
        ),
    ],
)
def test_answers_that_cannot_be_fused_are_named(
    answer: VectorStoreQueryResult, message: str, nodes: list[TextNode]
) -> None:
    store = hybrid_of(nodes, Answering)
    with pytest.raises(DenseStoreError, match=message):
        store.query(question("cats"), answer=answer)


def test_ranks_need_no_similarities_and_distances_rise(nodes: list[TextNode]) -> None:
    store = hybrid_of(nodes, Answering, method="rrf")
    answer = VectorStoreQueryResult(ids=["cow", "dog", "dog"])
    assert (store.query(question("cats"), answer=answer).ids or [])[0] == "dog"
    store = BM25VectorStore(store.bm25, dense=store.dense)
    distances = VectorStoreQueryResult(ids=["cow", "hen"], similarities=[0.1, 7.0])
    result = store.query(question("cats", alpha=1), answer=distances)
    assert (result.ids, result.similarities) == (["cow", "hen"], [1.0, 0.0])
