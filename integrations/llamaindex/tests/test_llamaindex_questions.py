"""What the core can: corrected, expanded and weighted questions, pages, filters alone, updates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import IndexNode, MetadataMode, QueryBundle, TextNode
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.types import VectorStoreQueryMode as Mode
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.vector_stores.bm25rag import BM25VectorStore, NoEmbedding
from llamaindex_dense import embed
from llamaindex_nodes import node

from bm25rag import Query
from bm25rag.errors import DuplicateIdError, MetadataError

Found = list[tuple[str, float | None]]
Ask = Callable[..., Found]


def where(key: str, value: Any, operator: str = "==") -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


PETS = where("ref_doc_id", "pets")


@pytest.fixture
def many() -> list[TextNode]:
    return [
        node(str(n), f"cat {'mouse ' * (n % 7)} word{n} {'feline' * (n % 2)}", year=n, odd=n % 2)
        for n in range(40)
    ]


def by_retriever(given: list[TextNode]) -> Ask:
    retriever = BM25Retriever(given)

    def ask(question: Any, k: int = 10, **options: Any) -> Found:
        nodes = retriever.search(question, similarity_top_k=k, **options)
        awaited = asyncio.run(retriever.asearch(question, similarity_top_k=k, **options))
        assert awaited == nodes
        return [(each.node_id, each.score) for each in nodes]

    return ask


def by_store(given: list[TextNode], mode: str = "text_search") -> Ask:
    store = BM25VectorStore()
    store.add(given)

    def ask(question: Any, k: int = 10, filters: Any = None, **options: Any) -> Found:
        query = VectorStoreQuery(
            query_str=question, similarity_top_k=k, filters=filters, mode=Mode(mode)
        )
        result = store.query(query, **options)
        assert asyncio.run(store.aquery(query, **options)) == result
        return list(zip(result.ids or [], result.similarities or [], strict=True))

    return ask


WAYS: dict[str, Callable[[list[TextNode]], Ask]] = {
    "retriever": by_retriever,
    "store": by_store,
    "store, default": lambda given: by_store(given, "default"),
    "store, sparse": lambda given: by_store(given, "sparse"),
}


@pytest.fixture(params=WAYS)
def ask(request: pytest.FixtureRequest, many: list[TextNode]) -> Ask:
    return WAYS[request.param](many)


# --- questions -----------------------------------------------------------------------


def core(many: list[TextNode], *args: Any, **options: Any) -> Found:
    index = BM25Retriever(many).bm25
    return [(hit.id, hit.score) for hit in index.search(*args, **options)]


def test_a_question_may_be_terms_or_weights(ask: Ask, many: list[TextNode]) -> None:
    for question in ({"mous": 2.0, "word3": 0.5}, ["mous", "mous", "word3"], "mouse word3"):
        assert ask(question) == core(many, question) != []


def test_a_question_is_corrected(ask: Ask, many: list[TextNode]) -> None:
    assert ask("mouze") == []
    assert ask("mouze", correct=True) == core(many, "mouse") != []


def test_a_question_is_expanded(ask: Ask, many: list[TextNode]) -> None:
    index = BM25Retriever(many).bm25
    assert ask("mouse", expand=True) == core(many, index.expand("mouse"))
    given = {"fb_docs": 2, "fb_terms": 3, "original_query_weight": 0.4}
    assert ask("mouse", expand=given) == core(many, index.expand("mouse", **given))
    corrected = index.expand(index.correct("mouze").terms)
    assert ask("mouze", expand=True, correct=True) == core(many, corrected)
    odd = {"odd": 1}
    filtered = core(many, index.expand("mouse", filter=odd), filter=odd)
    assert ask("mouse", expand=True, filters=where("odd", 1)) == filtered


def test_pages_are_parts_of_the_whole(ask: Ask) -> None:
    whole = ask("mouse cat", 100)
    assert len(whole) == 40
    pages = [ask("mouse cat", 7, offset=offset) for offset in range(0, 49, 7)]
    assert [each for page in pages for each in page] == whole
    assert (
        ask("mouse cat", 5, filters=where("odd", 1), offset=3)
        == (ask("mouse cat", 100, filters=where("odd", 1))[3:8])
    )


def test_the_least_score_is_the_only_cut(ask: Ask) -> None:
    whole = ask("mouse cat", 100)
    floor = whole[9][1]
    assert ask("mouse cat", 100, min_score=floor) == [each for each in whole if each[1] >= floor]


def test_filters_alone_find_the_first_that_pass(ask: Ask) -> None:
    odd = [(str(n), 0.0) for n in range(1, 40, 2)]
    for blank in ("", "  ", [], {}, Query(), Query(timeout=1.0)):
        assert ask(blank, 100, filters=where("odd", 1)) == odd
        assert ask(blank, 4, filters=where("odd", 1), offset=6) == odd[6:10]
        assert ask(blank, 100) == ask(blank, 100, filters=MetadataFilters(filters=[])) == []
    assert ask("the", 100, filters=where("odd", 1)) == [], "words that find nothing are a question"


def test_a_retriever_of_the_framework_finds_by_filters_alone(many: list[TextNode]) -> None:
    retriever = BM25Retriever(many, filters=where("odd", 1), similarity_top_k=3)
    assert [each.node_id for each in retriever.retrieve("")] == ["1", "3", "5"]
    assert [each.node_id for each in retriever.retrieve(QueryBundle(" "))] == ["1", "3", "5"]
    question: Any = QueryBundle(query_str={"mous": 1.0})  # type: ignore[arg-type]
    assert retriever.retrieve(question) == retriever.search({"mous": 1.0}) != []

    for dense in (None, SimpleVectorStore()):
        store = BM25VectorStore(dense=dense)
        store.add([each.model_copy(update={"embedding": embed(each.text)}) for each in many])
        index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
        for mode in ("default", "text_search", *(["hybrid"] if dense else [])):
            options = {"vector_store_query_mode": mode, "similarity_top_k": 3, "filters": PETS}
            options["filters"] = where("odd", 1)
            nodes = index.as_retriever(**options).retrieve("")
            assert [(each.node_id, each.score) for each in nodes] == [
                ("1", 0.0),
                ("3", 0.0),
                ("5", 0.0),
            ]
        by_ids = VectorStoreQuery(node_ids=["7", "2"], similarity_top_k=9)
        assert store.query(by_ids).ids == ["2", "7"]


def test_the_retriever_of_an_index_passes_options_on(many: list[TextNode]) -> None:
    store = BM25VectorStore()
    store.add(many)
    index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
    options = {"correct": True, "offset": 2, "min_score": 0.01, "expand": {"fb_terms": 2}}
    retriever = index.as_retriever(
        vector_store_query_mode="text_search", similarity_top_k=4, vector_store_kwargs=options
    )
    expected = BM25Retriever(many).search("mouze", similarity_top_k=4, **options)
    assert retriever.retrieve("mouze") == expected != []
    assert asyncio.run(retriever.aretrieve("mouze")) == expected


# --- with vectors ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "default"])
def test_pages_of_fused_and_dense_results(mode: str, many: list[TextNode]) -> None:
    store = BM25VectorStore(dense=SimpleVectorStore(), fetch_k=40)
    for number, each in enumerate(many):
        each.embedding = [1.0, number / 40]
    store.add(many)

    def ask(k: int, **options: Any) -> Found:
        query = VectorStoreQuery(
            query_str="mouse word3", query_embedding=[1.0, 0.3], similarity_top_k=k, mode=Mode(mode)
        )
        result = store.query(query, **options)
        assert asyncio.run(store.aquery(query, **options)) == result
        return list(zip(result.ids or [], result.similarities or [], strict=True))

    whole = ask(40)
    assert len(whole) == 40
    assert ask(7, offset=5) == whole[5:12]
    floor = whole[9][1]
    assert ask(40, min_score=floor) == [each for each in whole if (each[1] or 0) >= (floor or 0)]
    for name in ("correct", "expand"):
        if mode == "default":
            with pytest.raises(ValueError, match=f"{name} changes words, .* 'default' does not"):
                ask(3, **{name: True})
        else:
            assert len(ask(3, **{name: True})) == 3


# --- writes --------------------------------------------------------------------------


def test_metadata_change_in_place(nodes: list[TextNode], tmp_path: Path) -> None:
    retriever = BM25Retriever(nodes, similarity_top_k=5)
    before = retriever.retrieve("cats")
    new = {"year": 1999, "day": date(2024, 5, 1)}
    assert retriever.update_metadata(["cat", "unknown", "hen"], [new, {}, None]) == ["cat", "hen"]
    assert retriever.search("cats", filters=where("year", 1999))[0].metadata == new
    assert retriever.get_nodes(["hen"])[0].metadata == {}
    assert [each.node_id for each in retriever.get_nodes()] == ["cat", "dog", "cow", "hen"]
    assert [(each.node_id, each.score) for each in retriever.retrieve("cats")] == [
        (each.node_id, each.score) for each in before
    ]
    assert retriever.search("", similarity_top_k=9, filters=where("day", "2024-05", ">")) != []
    assert {each.ref_doc_id for each in retriever.get_nodes(filters=PETS)} == {"pets"}
    # A date that is a string afterwards is one.
    retriever.update_metadata(["cat"], [{"day": "2024-05-01"}])
    assert retriever.get_nodes(["cat"])[0].metadata == {"day": "2024-05-01"}
    retriever.persist(tmp_path)
    again = BM25Retriever.from_persist_dir(tmp_path)
    assert again.get_nodes() == retriever.get_nodes()
    assert asyncio.run(again.aupdate_metadata(["cat"], [{"a": 1}])) == ["cat"]
    assert again.delete_ref_doc("pets") == ["cat", "dog"]


def test_a_date_that_was_added_becomes_what_it_is_updated_to() -> None:
    dicts = ({"d": "2024-05-01"}, {"d": date(2024, 5, 1)}, {"d": date(2025, 1, 1)}, {})
    for new in (*dicts, *map(MappingProxyType, dicts)):
        retriever = BM25Retriever([node("a", "a cat", d=date(2024, 5, 1))])
        retriever.update_metadata(["a"], [new])
        assert retriever.get_nodes()[0].metadata == new
        assert [type(value) for value in retriever.get_nodes()[0].metadata.values()] == [
            type(value) for value in new.values()
        ]


@pytest.mark.parametrize(
    ("ids", "metadata", "error", "message"),
    [
        ("cat", [{}], TypeError, "node_ids must be an iterable"),
        (["cat"], {}, TypeError, "metadata must be an iterable of dicts"),
        (["cat"], [], ValueError, "one dict for each of 1 node_ids, got 0"),
        (["cat"], [{"a": object()}], MetadataError, "metadata of node 'cat'"),
        (["cat"], [{"__node__": 1}], MetadataError, "metadata of node 'cat'.*reserved"),
        (["cat"], [3], TypeError, "metadata"),
        (["cat"], [0], TypeError, "metadata of document 'cat' must be a dict or None, got 0"),
        (["cat"], [""], TypeError, "metadata of document 'cat' must be a dict or None, got ''"),
    ],
)
def test_metadata_that_cannot_be_stored_change_nothing(
    ids: Any, metadata: Any, error: type[Exception], message: str, nodes: list[TextNode]
) -> None:
    for one in (BM25Retriever(nodes), BM25VectorStore()):
        if isinstance(one, BM25VectorStore):
            one.add(nodes)
        with pytest.raises(error, match=message):
            one.update_metadata(ids, metadata)
        assert one.get_nodes() == nodes


def test_nodes_that_are_there_are_replaced_kept_or_refused(nodes: list[TextNode]) -> None:
    new = [node("cat", "A tiger"), node("owl", "An owl"), node("owl", "A bat")]
    for add_to in ("retriever", "store", "hybrid"):
        results = {}
        for on_duplicate in ("replace", "skip", "error"):
            retriever = BM25Retriever([]) if add_to == "retriever" else None
            dense = SimpleVectorStore() if add_to == "hybrid" else None
            one: Any = retriever or BM25VectorStore(dense=dense)
            add = retriever.add_nodes if retriever else one.add
            given, more = (
                [each.model_copy(update={"embedding": embed(each.text)}) for each in some]
                for some in (nodes, new)
            )
            add(given)
            if on_duplicate == "error":
                with pytest.raises(DuplicateIdError, match="cat"):
                    add(more, on_duplicate=on_duplicate)
            else:
                add(more, on_duplicate=on_duplicate)
            results[on_duplicate] = {each.node_id: each.text for each in one.get_nodes()}
            if dense is not None:
                vectors = dense.data.embedding_dict
                assert vectors == {id: embed(text) for id, text in results[on_duplicate].items()}
        assert results["error"] == {each.node_id: each.text for each in nodes}
        assert results["replace"]["cat"] == "A tiger"
        assert results["replace"]["owl"] == "A bat"
        assert results["skip"] == {each.node_id: each.text for each in nodes} | {"owl": "An owl"}


def test_the_objects_of_nodes_that_were_skipped_are_not_followed() -> None:
    first, second = (BM25Retriever([node(name, "about cats")]) for name in ("one", "two"))
    retriever = BM25Retriever([IndexNode(id_="i", index_id="x", text="cats", obj=first)])
    other = IndexNode(id_="i", index_id="x", text="cats", obj=second)
    assert retriever.add_nodes([other], on_duplicate="skip") == []
    assert [each.node_id for each in retriever.retrieve("cats")] == ["one"]
    retriever.add_nodes([other])
    assert [each.node_id for each in retriever.retrieve("cats")] == ["two"]


# --- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"correct": 1}, TypeError, "correct must be True or False, got 1"),
        ({"expand": "yes"}, TypeError, "expand must be True or False, got 'yes'"),
        ({"expand": {"docs": 3}}, ValueError, "expand must be .* some of fb_docs,.* got 'docs'"),
        ({"expand": {"fb_docs": -3}}, ValueError, "fb_docs"),
        ({"min_score": float("nan")}, ValueError, "min_score"),
        ({"min_score": "x"}, TypeError, "min_score"),
        ({"offset": -1}, ValueError, "offset"),
        ({"offset": 1.5}, TypeError, "offset"),
    ],
)
def test_wrong_options_are_named(
    options: dict[str, Any], error: type[Exception], message: str, nodes: list[TextNode]
) -> None:
    for way in WAYS.values():
        with pytest.raises(error, match=message):
            way(nodes)("cats", **options)
    if "offset" not in options:
        with pytest.raises(error, match=message):
            BM25Retriever(nodes, **options)


def test_words_that_match_stand_in_the_metadata_where_a_key_is_named(tmp_path: Path) -> None:
    """In the content of the node, whatever was indexed with it; no model gets to see them."""
    nodes = [
        TextNode(text="A cat sat.\nCats!", metadata={"title": "all cats"}, id_="a"),
        TextNode(text="Dogs run.", metadata={"title": "no cat"}, id_="b"),
    ]
    retriever = BM25Retriever.from_defaults(nodes=nodes, spans_key="spans")
    spans = {one.node_id: one.metadata["spans"] for one in retriever.retrieve("cats")}
    expected = [{"start": 2, "end": 5, "term": "cat"}, {"start": 11, "end": 15, "term": "cat"}]
    assert spans == {"a": expected, "b": []}
    (scored, _) = retriever.retrieve("cats")
    assert scored.node.get_content(MetadataMode.LLM) == nodes[0].get_content(MetadataMode.LLM)
    assert scored.node.get_content(MetadataMode.EMBED) == nodes[0].get_content(MetadataMode.EMBED)
    retriever.persist(tmp_path)
    again = BM25Retriever.from_persist_dir(tmp_path)
    assert {one.node_id: one.metadata["spans"] for one in again.retrieve("cats")} == spans
    store = BM25VectorStore(again.bm25)
    query = VectorStoreQuery(query_str="cats", similarity_top_k=2, mode=Mode.TEXT_SEARCH)
    answer = store.query(query, spans_key="spans")
    assert {node.node_id: node.metadata["spans"] for node in answer.nodes or ()} == spans
    both = BM25VectorStore(dense=SimpleVectorStore(stores_text=False))
    for each in nodes:
        each.embedding = embed(each.text)
    both.add(nodes)
    query = VectorStoreQuery(
        query_str="cats", query_embedding=embed("dogs"), similarity_top_k=2, mode=Mode.HYBRID
    )
    answer = both.query(query, spans_key="spans")
    assert {node.node_id: node.metadata["spans"] for node in answer.nodes or ()} == spans
    assert all("spans" not in node.metadata for node in both.get_nodes(["a", "b"]))
    query.query_str = "unheard"
    answer = both.query(query, spans_key="spans")
    assert [node.metadata["spans"] for node in answer.nodes or ()] == [[], []]
    with pytest.raises(TypeError, match="spans_key must be a str or None, got 7"):
        BM25Retriever.from_defaults(nodes=nodes, spans_key=7)  # type: ignore[arg-type]
