"""Retrieving: what is found, in which order, and what is refused."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import Stemmer
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.retrievers.bm25rag import BM25Retriever
from llamaindex_nodes import node

from bm25rag import Analyzer, BM25Index

OLD = MetadataFilters(filters=[MetadataFilter(key="year", value=2020, operator="<")])
EVERYTHING = MetadataFilters(filters=[])


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [each.node.node_id for each in nodes]


def test_it_is_a_retriever_of_llama_index() -> None:
    assert issubclass(BM25Retriever, BaseRetriever)


# --- what is found -----------------------------------------------------------------


def test_finds_nodes_best_first(nodes: list[TextNode]) -> None:
    results = BM25Retriever.from_defaults(nodes=nodes).retrieve("cats")
    assert ids(results) == ["dog", "cat"]
    assert results[0].score > results[1].score > 0
    assert all(type(each.score) is float for each in results)


def test_scores_are_those_of_the_core(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes=nodes, existing_bm25=BM25Index(variant="bm25+", k1=0.9))
    expected = BM25Index.from_texts(
        [each.get_content("embed") for each in nodes], variant="bm25+", k1=0.9
    ).search("cats year")
    results = retriever.search("cats year", similarity_top_k=10)
    assert [each.score for each in results] == [hit.score for hit in expected]


@pytest.mark.parametrize("query", ["zebra", "", "   ", "the of and", "?!"])
def test_nothing_that_does_not_match_is_returned(nodes: list[TextNode], query: str) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=10)
    assert retriever.retrieve(query) == []


def test_nodes_that_do_not_match_do_not_fill_the_top_k(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=4)
    assert ids(retriever.retrieve("grass")) == ["cow"]


@pytest.mark.parametrize("top_k", [1, 2, 1000])
def test_top_k_may_exceed_the_number_of_nodes(top_k: int) -> None:
    retriever = BM25Retriever.from_defaults(nodes=[node("a", "one cat")], similarity_top_k=top_k)
    assert ids(retriever.retrieve("cat")) == ["a"]
    assert retriever.similarity_top_k == top_k


def test_top_k_of_zero_finds_nothing(nodes: list[TextNode]) -> None:
    assert BM25Retriever(nodes, similarity_top_k=0).retrieve("cats") == []


def test_an_empty_corpus_finds_nothing_and_can_grow() -> None:
    retriever = BM25Retriever.from_defaults(nodes=[])
    assert retriever.retrieve("cat") == []
    retriever.add_nodes([node("a", "one cat")])
    assert ids(retriever.retrieve("cat")) == ["a"]


@pytest.mark.parametrize("texts", [["", ""], ["the of", "and"], ["?", "!"]])
def test_nodes_without_a_term_are_never_found(texts: list[str]) -> None:
    retriever = BM25Retriever([node(str(n), text) for n, text in enumerate(texts)])
    assert retriever.retrieve("the cat?") == []


def test_capitals_are_stemmed_in_nodes_and_queries_alike() -> None:
    # run-llama/llama_index#14960
    retriever = BM25Retriever([node(text, text) for text in ("Hullport", "Italy", "Tanzania")])
    assert ids(retriever.retrieve("Italy")) == ["Italy"]


def test_the_excluded_metadata_are_not_indexed() -> None:
    # run-llama/llama_index#13361
    seen = TextNode(id_="seen", text="x", metadata={"topic": "physics", "path": "physics.txt"})
    seen.excluded_embed_metadata_keys = ["path"]
    hidden = TextNode(id_="hidden", text="x", metadata={"topic": "physics"})
    hidden.excluded_embed_metadata_keys = ["topic"]
    retriever = BM25Retriever.from_defaults(nodes=[seen, hidden])
    assert ids(retriever.retrieve("physics")) == ["seen"]
    assert retriever.retrieve("txt") == []


@pytest.mark.parametrize(
    ("mode", "keys"), [("none", ""), ("embed", "e"), ("llm", "l"), ("all", "el")]
)
def test_the_metadata_mode_says_which_text_is_indexed(mode: Any, keys: str) -> None:
    both = TextNode(id_="n", text="content", metadata={"e": "embedded", "l": "shown"})
    both.excluded_embed_metadata_keys, both.excluded_llm_metadata_keys = ["l"], ["e"]
    retriever = BM25Retriever.from_defaults(nodes=[both], metadata_mode=mode)
    assert ids(retriever.retrieve("content")) == ["n"]
    for key, query in (("e", "embedded"), ("l", "shown")):
        assert bool(retriever.retrieve(query)) == (key in keys)


def test_a_result_is_a_copy(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    for _ in range(2):
        first = retriever.retrieve("mat")[0]
        assert first.node == nodes[0]
        first.node.text = "changed"
        first.node.metadata["tags"].append("changed")
        first.node.relationships.clear()
    nodes[0].metadata["tags"].append("changed later")
    assert retriever.retrieve("mat")[0].node.metadata["tags"] == ["a", "b"]


# --- analysis ----------------------------------------------------------------------


def test_the_language_chooses_stemmer_and_stop_words() -> None:
    texts = [node("a", "Die Katzen schlafen"), node("b", "Ein Hund bellt")]
    retriever = BM25Retriever.from_defaults(nodes=texts, language="de")
    assert ids(retriever.retrieve("Katze")) == ["a"]
    assert retriever.retrieve("die ein") == []


@pytest.mark.parametrize("algorithm", Stemmer.algorithms())
def test_a_stemmer_is_matched_to_its_algorithm(algorithm: str) -> None:
    retriever = BM25Retriever([], stemmer=Stemmer.Stemmer(algorithm))
    assert retriever.bm25.analyzer.stemmer == algorithm


def test_stemmer_and_stop_words_may_be_of_different_languages() -> None:
    retriever = BM25Retriever([], stemmer=Stemmer.Stemmer("german"), language="english")
    assert retriever.bm25.analyzer == Analyzer("english", stemmer="german")


def test_a_stemmer_of_the_users_stems_nodes_and_queries() -> None:
    retriever = BM25Retriever([node("a", "The Mice ran")], stemmer=lambda word: word[:3])
    assert ids(retriever.retrieve("MICROBE")) == ["a"]
    assert retriever.retrieve("the") == []


def test_a_slow_stemmer_is_asked_for_few_words_to_be_told_from_algorithms() -> None:
    asked: list[str] = []
    BM25Retriever([], stemmer=lambda word: asked.append(word) or word[:3])
    assert 0 < len(asked) < 100


def test_stemming_can_be_skipped() -> None:
    retriever = BM25Retriever([node("a", "cats")], skip_stemming=True)
    assert ids(retriever.retrieve("cats")) == ["a"]
    assert retriever.retrieve("cat") == []


def test_a_token_pattern_is_used_as_it_is() -> None:
    letters = BM25Retriever([node("a", "x 東京都")], token_pattern=r"\w", language=None)
    assert letters.bm25.analyzer.terms("ab 東京") == ["a", "b", "東", "京"]


@pytest.mark.parametrize("query", ["东京", "北京大学", "北京"])
def test_chinese_works_without_settings(query: str) -> None:
    # run-llama/llama_index#13866
    texts = [node("a", "他去了北京大学"), node("b", "她住在东京")]
    retriever = BM25Retriever.from_defaults(nodes=texts, similarity_top_k=1)
    assert ids(retriever.retrieve(query)) == ["b" if query == "东京" else "a"]


def test_a_tokenizer_replaces_the_analysis() -> None:
    retriever = BM25Retriever.from_defaults(nodes=[node("a", "x-y z")], tokenizer=str.split)
    assert ids(retriever.retrieve("x-y")) == ["a"]
    assert retriever.retrieve("x") == []


# --- settings ------------------------------------------------------------------------


def test_top_k_and_filters_can_be_set(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    retriever.similarity_top_k = 1
    assert ids(retriever.retrieve("cats")) == ["dog"]
    retriever.filters = OLD
    assert ids(retriever.retrieve("cats")) == ["cat"]
    retriever.filters = None
    assert ids(retriever.retrieve("cats")) == ["dog"]


def test_a_change_within_the_filters_counts_at_once(nodes: list[TextNode]) -> None:
    filters = MetadataFilters(filters=[])
    retriever = BM25Retriever.from_defaults(nodes=nodes, filters=filters)
    assert len(retriever.retrieve("cats")) == 2
    filters.filters.append(MetadataFilter(key="year", value=2019))
    assert ids(retriever.retrieve("cats")) == ["cat"]


def test_search_takes_settings_for_one_query(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=1, filters=OLD)
    assert ids(retriever.search("cats", filters=EVERYTHING, similarity_top_k=5)) == ["dog", "cat"]
    assert ids(retriever.search(QueryBundle("cats"), similarity_top_k=2)) == ["cat"]
    assert retriever.search("cats", similarity_top_k=0) == []
    assert (retriever.similarity_top_k, retriever.filters) == (1, OLD)
    assert retriever.search("cats") == retriever.retrieve("cats")


def test_asearch_does_the_same(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    results = asyncio.run(retriever.asearch("cats", similarity_top_k=5, filters=OLD))
    assert results == retriever.search("cats", similarity_top_k=5, filters=OLD)
    assert ids(results) == ["cat"]


@pytest.mark.parametrize("value", [True, 2.0, "2", [2]])
def test_a_top_k_of_the_wrong_type_is_named(nodes: list[TextNode], value: Any) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    for attempt in (
        lambda: BM25Retriever(nodes, similarity_top_k=value),
        lambda: retriever.search("cats", similarity_top_k=value),
        lambda: setattr(retriever, "similarity_top_k", value),
    ):
        with pytest.raises(TypeError, match="similarity_top_k must be an integer"):
            attempt()


def test_a_negative_top_k_is_named(nodes: list[TextNode]) -> None:
    with pytest.raises(ValueError, match=r"similarity_top_k must be .* >= 0, got -1"):
        BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=-1)


@pytest.mark.parametrize("value", [{"year": 2019}, [], "year", MetadataFilter(key="a", value=1)])
def test_filters_of_the_wrong_type_are_named(nodes: list[TextNode], value: Any) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    for attempt in (
        lambda: BM25Retriever(nodes, filters=value),
        lambda: retriever.search("cats", filters=value),
        lambda: setattr(retriever, "filters", value),
    ):
        with pytest.raises(TypeError, match="filters must be MetadataFilters"):
            attempt()


# --- arguments -------------------------------------------------------------------------


def test_exactly_one_source_is_wanted(nodes: list[TextNode]) -> None:
    for sources in ({}, {"nodes": nodes, "docstore": SimpleDocumentStore()}):
        with pytest.raises(ValueError, match="exactly one of index, nodes and docstore"):
            BM25Retriever.from_defaults(**sources)
    with pytest.raises(ValueError, match="nodes or existing_bm25"):
        BM25Retriever()


def test_a_docstore_and_an_index_give_their_nodes(nodes: list[TextNode]) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    assert ids(BM25Retriever.from_defaults(docstore=docstore).retrieve("grass")) == ["cow"]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=3))
    assert ids(BM25Retriever.from_defaults(index=index).retrieve("grass")) == ["cow"]


def test_an_empty_docstore_is_a_source() -> None:
    retriever = BM25Retriever.from_defaults(docstore=SimpleDocumentStore())
    assert retriever.retrieve("cat") == []


class TextStore(SimpleVectorStore):
    """A vector store that keeps the texts, as most but the simple one do."""

    stores_text: bool = True


def test_an_index_that_keeps_its_nodes_elsewhere_is_refused() -> None:
    # run-llama/llama_index#10344, #12732, #14574, #20601
    index = VectorStoreIndex.from_vector_store(TextStore(), embed_model=MockEmbedding(embed_dim=3))
    with pytest.raises(ValueError, match=r"docstore is empty: give nodes="):
        BM25Retriever.from_defaults(index=index)


@pytest.mark.parametrize("wrong", ["text", NodeWithScore(node=TextNode(text="x")), None])
def test_what_is_no_node_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"nodes\[1\] must be a BaseNode"):
        BM25Retriever([TextNode(text="x"), wrong])


def test_what_is_no_stemmer_is_named() -> None:
    with pytest.raises(TypeError, match="stemmer must be"):
        BM25Retriever([], stemmer=3)  # type: ignore[arg-type]  # the point of the test


def test_unknown_languages_are_named() -> None:
    with pytest.raises(ValueError, match="language: expected"):
        BM25Retriever([], language="klingon")


@pytest.mark.parametrize(
    "more",
    [{"language": "de"}, {"skip_stemming": True}, {"tokenizer": str.split}, {"stemmer": "german"}],
)
def test_an_index_brings_its_own_analysis(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="existing_bm25 has an analyzer"):
        BM25Retriever(existing_bm25=BM25Index(), **more)
    with pytest.raises(TypeError, match="existing_bm25 must be"):
        BM25Retriever(existing_bm25="index")  # type: ignore[arg-type]  # the point of the test


def test_a_tokenizer_does_not_go_with_what_it_replaces() -> None:
    with pytest.raises(ValueError, match="tokenizer replaces"):
        BM25Retriever([], tokenizer=str.split, skip_stemming=True)


def test_documents_of_a_core_index_become_text_nodes() -> None:
    index = BM25Index()
    index.add(["one cat", "two"], ids=["a", "b"], metadata=[{"x": 1}, {}], payloads=[b"?", None])
    nodes = BM25Retriever(existing_bm25=index).retrieve("cat")
    assert [each.node for each in nodes] == [TextNode(id_="a", text="one cat", metadata={"x": 1})]


# --- events and the event loop ---------------------------------------------------------


def test_aretrieve_leaves_the_event_loop_free(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    released = threading.Event()
    search = retriever.bm25.search

    def slow(*arguments: Any, **more: Any) -> Any:
        assert released.wait(60), "the event loop was blocked"
        return search(*arguments, **more)

    retriever.bm25.search = slow  # type: ignore[method-assign]  # stands for a long search

    async def both() -> list[NodeWithScore]:
        task = asyncio.create_task(retriever.aretrieve("cats"))
        await asyncio.sleep(0.01)
        released.set()
        return await task

    assert ids(asyncio.run(both())) == ["dog", "cat"]


class Listener(BaseEventHandler):
    """Remembers the events."""

    events: list[Any] = []  # noqa: RUF012 - pydantic copies it

    @classmethod
    def class_name(cls) -> str:
        return "Listener"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.events.append(event)


@pytest.mark.parametrize("way", ["retrieve", "aretrieve", "search", "asearch"])
def test_events_fire(nodes: list[TextNode], way: str) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    retriever = BM25Retriever.from_defaults(nodes=nodes, callback_manager=CallbackManager([debug]))
    listener = Listener()
    root = get_dispatcher()
    root.add_event_handler(listener)
    try:
        result = getattr(retriever, way)("cats")
        results = asyncio.run(result) if way.startswith("a") else result
    finally:
        root.event_handlers.remove(listener)
    start, end = listener.events
    assert isinstance(start, RetrievalStartEvent)
    assert start.str_or_query_bundle == "cats"
    assert isinstance(end, RetrievalEndEvent)
    assert end.nodes == results
    (pair,) = debug.get_event_pairs(CBEventType.RETRIEVE)
    assert pair[1].payload is not None
    assert ids(pair[1].payload["nodes"]) == ["dog", "cat"]


# --- objects ---------------------------------------------------------------------------


def test_retrieval_goes_on_to_the_object_of_an_index_node(nodes: list[TextNode]) -> None:
    inner = BM25Retriever.from_defaults(nodes=nodes)
    about = IndexNode(id_="i", index_id="animals", text="about animals", obj=inner)
    outer = BM25Retriever.from_defaults(nodes=[about])
    assert outer.retrieve("cats") == []
    inner.add_nodes([node("all", "animals")])
    assert ids(outer.retrieve("animals")) == ["all"]
    assert about.obj is inner


def test_objects_are_looked_up_by_index_id(nodes: list[TextNode]) -> None:
    about = IndexNode(id_="i", index_id="animals", text="about animals")
    target = node("target", "reached")
    with_object = about.model_copy(update={"obj": target})
    for more in ({"objects": [with_object]}, {"object_map": {"animals": target}}):
        assert ids(BM25Retriever([about], **more).retrieve("animals")) == ["target"]


def test_a_subclass_may_name_the_question_as_it_likes() -> None:
    class Renamed(BM25Retriever):
        def _retrieve(self, asked: QueryBundle) -> list[NodeWithScore]:
            return super()._retrieve(asked)

    retriever = Renamed.from_defaults(nodes=[TextNode(text="cats")])
    assert retriever.retrieve("cats") == asyncio.run(retriever.aretrieve("cats"))
