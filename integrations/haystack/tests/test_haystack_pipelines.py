"""Haystack's own components around the store: splitters, retrievers, joiners, rankers, agents."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from haystack import Document, Pipeline, SuperComponent, component
from haystack.components.agents import Agent
from haystack.components.builders import PromptBuilder
from haystack.components.caching import CacheChecker
from haystack.components.evaluators import DocumentMRREvaluator
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import (
    DocumentCleaner,
    DocumentSplitter,
    HierarchicalDocumentSplitter,
    RecursiveDocumentSplitter,
)
from haystack.components.rankers import MetaFieldRanker
from haystack.components.retrievers import (
    AutoMergingRetriever,
    FilterRetriever,
    MultiQueryTextRetriever,
    SentenceWindowRetriever,
)
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.tools import ComponentTool
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Query

TEXT = " ".join(f"Sentence {n} speaks of topic{n % 7} and of word{n}." for n in range(60))
SPLITTERS = {
    "words": lambda: DocumentSplitter(split_by="word", split_length=20, split_overlap=5),
    "periods": lambda: DocumentSplitter(split_by="period", split_length=3, split_overlap=1),
    "recursive": lambda: RecursiveDocumentSplitter(
        split_length=30, split_overlap=5, split_unit="word", separators=["\n\n", ".", " "]
    ),
}
HIERARCHY = HierarchicalDocumentSplitter({60, 20, 10}, split_overlap=2, split_by="word")


def found(result: dict[str, Any]) -> list[str]:
    return [document.id for document in result["documents"]]


def as_stored(meta: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(meta))
    return plain


# --- splitters with overlap ---------------------------------------------------------------


@pytest.mark.parametrize("name", SPLITTERS)
def test_an_indexing_pipeline_with_overlap_writes_what_a_sentence_window_needs(
    name: str, store: BM25DocumentStore
) -> None:
    indexing = Pipeline()
    indexing.add_component("cleaner", DocumentCleaner())
    indexing.add_component("splitter", SPLITTERS[name]())
    indexing.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.FAIL))
    indexing.connect("cleaner", "splitter")
    indexing.connect("splitter", "writer")
    given = {"cleaner": {"documents": [Document(content=TEXT, meta={"name": "a"})]}}
    result = indexing.run(given, include_outputs_from={"splitter"})
    passages = result["splitter"]["documents"]
    assert result["writer"]["documents_written"] == len(passages) > 3

    stored = store.filter_documents()
    assert [one.meta for one in stored] == [as_stored(one.meta) for one in passages]
    ranges = [each["range"] for one in stored for each in one.meta["_split_overlap"]]
    assert all(type(each) is list for each in ranges)
    assert ranges
    assert [(one.id, one.content) for one in stored] == [(one.id, one.content) for one in passages]

    options = {"window_size": 1, "source_id_meta_field": "source_id"}
    asking = Pipeline()
    asking.add_component("retriever", BM25Retriever(store, top_k=1))
    asking.add_component("window", SentenceWindowRetriever(store, **options))
    asking.connect("retriever", "window")
    question = {"retriever": {"query": "word30"}}
    windows = asking.run(question, include_outputs_from={"retriever"})
    assert Pipeline.loads(asking.dumps()).run(question)["window"] == windows["window"]
    theirs = InMemoryDocumentStore()
    theirs.write_documents(passages)
    hits = windows["retriever"]["documents"]
    expected = SentenceWindowRetriever(theirs, **options).run(hits)
    assert windows["window"]["context_windows"] == expected["context_windows"]
    assert "word29" in windows["window"]["context_windows"][0]


def test_leaves_of_a_hierarchy_merge_into_their_parents(store: BM25DocumentStore) -> None:
    nodes = HIERARCHY.run([Document(content=TEXT, meta={"name": "a"})])["documents"]
    assert store.write_documents(nodes) == len(nodes)
    leaves = {"field": "meta.__children_ids", "operator": "==", "value": []}
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store, filters=leaves, top_k=6))
    pipeline.add_component("merger", AutoMergingRetriever(store, threshold=0.3))
    pipeline.connect("retriever", "merger")
    question = {"retriever": {"query": "word30 word31 topic3"}}
    result = pipeline.run(question, include_outputs_from={"retriever"})
    hits, merged = result["retriever"]["documents"], result["merger"]["documents"]
    assert not any(one.meta["__children_ids"] for one in hits)
    assert any(one.meta["__children_ids"] for one in merged)
    assert Pipeline.loads(pipeline.dumps()).run(question)["merger"]["documents"] == merged
    theirs = InMemoryDocumentStore()
    theirs.write_documents(nodes)
    expected = AutoMergingRetriever(theirs, threshold=0.3).run(hits)["documents"]
    assert [one.id for one in merged] == [one.id for one in expected]


def test_windows_and_parents_are_fetched_asynchronously(store: BM25DocumentStore) -> None:
    nodes = HIERARCHY.run([Document(content=TEXT)])["documents"]
    store.write_documents(nodes)
    leaves = {"field": "meta.__children_ids", "operator": "==", "value": []}
    hits = BM25Retriever(store, filters=leaves).run("word30 topic3")["documents"]
    merger, window = AutoMergingRetriever(store, threshold=0.3), SentenceWindowRetriever(store)
    assert asyncio.run(merger.run_async(hits)) == merger.run(hits)
    assert asyncio.run(window.run_async(hits)) == window.run(hits)


# --- other retrievers, rankers and joiners --------------------------------------------------


def test_a_cache_is_checked_by_the_values_that_were_written(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id="1", content="a", meta={"url": "e/1", "span": (0, 5)})])
    checker = CacheChecker(store, cache_field="url")
    result = checker.run(items=["e/1", "e/2"])
    assert [one.id for one in result["hits"]] == ["1"]
    assert result["misses"] == ["e/2"]
    spans = CacheChecker(store, cache_field="meta.span").run(items=[(0, 5), [0, 5], (5, 0)])
    assert [one.id for one in spans["hits"]] == ["1", "1"]
    assert spans["misses"] == [(5, 0)]


def test_documents_are_retrieved_by_a_filter_alone(filled: BM25DocumentStore) -> None:
    recent = {"field": "meta.year", "operator": ">", "value": 2000}
    retriever = FilterRetriever(filled, filters=recent)
    assert found(retriever.run()) == ["cat"]
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    assert found(Pipeline.loads(pipeline.dumps()).run({})["retriever"]) == ["cat"]


def test_scaled_scores_are_ranked_together_with_meta(filled: BM25DocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(filled, scale_score=True))
    ranker = MetaFieldRanker("year", weight=0.5, ranking_mode="linear_score")
    pipeline.add_component("ranker", ranker)
    pipeline.connect("retriever", "ranker")
    ranked = pipeline.run({"retriever": {"query": "cat"}})["ranker"]["documents"]
    assert ranked[0].id == "cat"
    assert all(0 <= one.score <= 1 for one in ranked)


@pytest.mark.parametrize(
    "mode", ["concatenate", "merge", "reciprocal_rank_fusion", "distribution_based_rank_fusion"]
)
def test_results_of_two_queries_join_in_every_way(mode: str, filled: BM25DocumentStore) -> None:
    pipeline = Pipeline()
    for name in ("one", "other"):
        pipeline.add_component(name, BM25Retriever(filled))
    pipeline.add_component("join", DocumentJoiner(mode))
    pipeline.connect("one", "join")
    pipeline.connect("other", "join")
    asked = {"one": {"query": "cat"}, "other": {"query": "swim mat"}}
    result = asyncio.run(pipeline.run_async(asked))["join"]
    assert sorted(found(result)) == ["cat", "dog", "fish", "hund"]


def test_many_queries_find_one_list_without_duplicates(filled: BM25DocumentStore) -> None:
    retriever = MultiQueryTextRetriever(retriever=BM25Retriever(filled))
    options = {"top_k": 2, "min_score": 0.01}
    result = retriever.run(queries=["cats", "mat", "swim"], retriever_kwargs=options)
    assert sorted(found(result)) == ["cat", "dog", "fish"]
    together = BM25Retriever(filled).run(query=Query("cats", also=["mat", "swim"]))
    assert set(found(together)) >= {"cat", "dog", "fish"}


def test_a_batch_is_what_the_evaluators_take(filled: BM25DocumentStore) -> None:
    retriever = BM25Retriever(filled, top_k=2)
    truth = {one.id: one for one in filled.filter_documents()}
    batch = retriever.run_batch(["the mat", "swimming", "unheard of"])["documents"]
    assert [[one.id for one in each] for each in batch] == [["cat"], ["fish"], []]
    assert asyncio.run(retriever.run_batch_async(["the mat"]))["documents"] == batch[:1]
    score = DocumentMRREvaluator().run(
        ground_truth_documents=[[truth["cat"]], [truth["fish"]], [truth["dog"]]],
        retrieved_documents=batch,
    )
    assert score["individual_scores"] == [1.0, 1.0, 0.0]


def test_a_batch_takes_the_settings_of_the_retriever_and_of_the_call(
    filled: BM25DocumentStore,
) -> None:
    english = {"field": "meta.lang", "operator": "==", "value": "en"}
    old = {"field": "meta.year", "operator": "<", "value": 2000}
    retriever = BM25Retriever(filled, english, 5, True, "merge", min_score=0.4)
    for options in ({}, {"filters": old}, {"top_k": 1, "min_score": 0.51}, {"scale_score": False}):
        one_by_one = [retriever.run(query, **options)["documents"] for query in ("cat", "mat")]
        assert retriever.run_batch(["cat", "mat"], **options)["documents"] == one_by_one
    assert found(retriever.run("cat mat", filters=old)) == ["dog"]


def test_a_least_score_of_the_call_takes_the_place_of_the_constructors(
    filled: BM25DocumentStore,
) -> None:
    retriever = BM25Retriever(filled, min_score=99)
    assert found(retriever.run("cat")) == []
    assert len(found(retriever.run("cat", min_score=0))) == 3
    assert len(found(asyncio.run(retriever.run_async("cat", min_score=0)))) == 3
    again = BM25Retriever.from_dict(retriever.to_dict())
    assert again.min_score == 99
    with pytest.raises(TypeError, match="min_score must be a number, got 'high'"):
        BM25Retriever(filled, min_score="high")
    with pytest.raises(TypeError, match="scale_score must be True or False, got 'no'"):
        BM25Retriever(filled, scale_score="no")
    with pytest.raises(TypeError, match="scale_score must be True or False, got 'no'"):
        retriever.run("cat", scale_score="no")


# --- pipelines within components, and agents -------------------------------------------------


def test_a_pipeline_may_be_one_component_of_another(store: BM25DocumentStore) -> None:
    store.write_documents([Document(content="Cats purr.")])
    inner = Pipeline()
    inner.add_component("retriever", BM25Retriever(store))
    template = "{% for one in documents %}{{ one.content }}{% endfor %} {{ query }}"
    inner.add_component("prompt", PromptBuilder(template, required_variables="*"))
    inner.connect("retriever", "prompt.documents")
    whole = SuperComponent(
        inner,
        input_mapping={"query": ["retriever.query", "prompt.query"]},
        output_mapping={"prompt.prompt": "prompt"},
    )
    outer = Pipeline()
    outer.add_component("whole", whole)
    again = Pipeline.loads(outer.dumps())
    assert again.run({"whole": {"query": "cat?"}})["whole"]["prompt"] == "Cats purr. cat?"


def test_a_closed_pipeline_can_be_run_again(filled: BM25DocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(filled))
    pipeline.add_component("writer", DocumentWriter(filled))
    asked = {"retriever": {"query": "mat"}, "writer": {"documents": []}}
    for close in (pipeline.close, lambda: asyncio.run(pipeline.close_async())):
        assert found(asyncio.run(pipeline.run_async(asked))["retriever"]) == ["cat"]
        close()
    assert found(pipeline.run(asked)["retriever"]) == ["cat"]


@component
class Model:
    """Searches once, and then says what it was told."""

    @component.output_types(replies=list[ChatMessage])
    def run(
        self, messages: list[ChatMessage], tools: Any = None, **rest: Any
    ) -> dict[str, list[ChatMessage]]:
        if results := messages[-1].tool_call_results:
            return {"replies": [ChatMessage.from_assistant(str(results[0].result))]}
        recent = {"field": "meta.year", "operator": ">=", "value": 2000}
        call = ToolCall("search", {"query": "cats", "filters": recent, "top_k": 2})
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


def test_an_agent_searches_and_is_not_told_embeddings() -> None:
    store = BM25DocumentStore(return_embedding=False)
    documents = [
        Document(content="Cats purr.", meta={"year": 2020}, embedding=[0.123456789] * 1024),
        Document(content="Cats hiss.", meta={"year": 1990}, embedding=[0.987654321] * 1024),
    ]
    store.write_documents(documents)
    tool = ComponentTool(
        BM25Retriever(store),
        name="search",
        description="Finds documents.",
        outputs_to_string={"source": "documents"},
    )
    again = ComponentTool.from_dict(json.loads(json.dumps(tool.to_dict())))
    agent = Agent(chat_generator=Model(), tools=[again])
    agent.warm_up()
    told = agent.run(messages=[ChatMessage.from_user("What do cats do?")])["messages"][-1].text
    assert "Cats purr." in told
    assert "Cats hiss." not in told
    assert len(told) < 1000


def test_a_model_is_told_what_the_arguments_of_a_search_are(filled: BM25DocumentStore) -> None:
    tool = ComponentTool(BM25Retriever(filled), name="search", description="Finds documents.")
    described = tool.parameters["properties"]
    named = ["query", "filters", "top_k", "scale_score", "min_score", "correct", "expand", "offset"]
    assert list(described) == [*named, "group", "per_group", "decay"]
    assert "operator" in described["filters"]["description"]
    assert not any("constructor" in one["description"] for one in described.values())
