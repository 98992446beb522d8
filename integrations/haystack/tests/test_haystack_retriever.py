"""The retriever: settings of the constructor and of the call, in and out of pipelines."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers import InMemoryBM25Retriever, MultiQueryTextRetriever
from haystack.components.retrievers.types import TextRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag.evaluation import run_of


def equals(field: str, value: object) -> dict[str, Any]:
    return {"field": f"meta.{field}", "operator": "==", "value": value}


def both(operator: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {"operator": operator, "conditions": list(conditions)}


def found(result: dict[str, Any]) -> list[str]:
    return [document.id for document in result["documents"]]


def test_it_takes_what_haystacks_own_takes_and_a_least_score_after_that() -> None:
    for name in ("__init__", "run", "run_async"):
        own = inspect.signature(getattr(BM25Retriever, name)).parameters
        theirs = inspect.signature(getattr(InMemoryBM25Retriever, name)).parameters
        more = ["min_score", "correct", "expand", "offset", "group", "per_group", "decay"]
        if name == "__init__":
            more.remove("offset")
            more.append("parse_query")
        assert list(own) == [*theirs, *more]
        defaults = [parameter.default for parameter in own.values()]
        assert defaults[: len(theirs)] == [parameter.default for parameter in theirs.values()]
        assert set(defaults[len(theirs) :]) <= {None, False, 1}


def test_it_is_a_text_retriever(filled: BM25DocumentStore) -> None:
    retriever: TextRetriever = BM25Retriever(filled)
    assert found(retriever.run(query="mat", filters=None, top_k=1)) == ["cat"]
    several = MultiQueryTextRetriever(retriever=retriever)
    several.warm_up()
    assert sorted(found(several.run(queries=["mat", "swim"]))) == ["cat", "fish"]


def test_the_call_overrides_the_constructor(filled: BM25DocumentStore) -> None:
    retriever = BM25Retriever(filled, top_k=1, scale_score=True)
    assert len(found(retriever.run("cat"))) == 1
    assert len(found(retriever.run("cat", top_k=2))) == 2
    assert found(retriever.run("cat", top_k=0)) == []
    (scaled,) = retriever.run("cat")["documents"]
    (plain,) = retriever.run("cat", scale_score=False)["documents"]
    assert scaled.score > 0.5 > plain.score


def test_replace_takes_the_filters_of_the_call_or_else_its_own(filled: BM25DocumentStore) -> None:
    retriever = BM25Retriever(filled, filters=equals("lang", "en"))
    assert found(retriever.run("cat")) == ["cat", "dog"]
    assert found(retriever.run("cat", filters={})) == ["cat", "dog"]
    assert found(retriever.run("cat", filters=equals("lang", "de"))) == ["hund"]


@pytest.mark.parametrize(
    ("own", "call", "expected"),
    [
        (equals("lang", "en"), equals("year", 2021), ["cat"]),
        (equals("lang", "en"), equals("lang", "de"), []),
        (both("OR", equals("lang", "en")), both("AND", equals("year", 2021)), ["cat"]),
        (both("OR", equals("year", 2021)), both("OR", equals("lang", "de")), []),
        (both("NOT", equals("lang", "de")), both("NOT", equals("year", 1999)), ["cat"]),
        (both("OR", equals("lang", "en")), equals("year", 1999), ["dog"]),
        (equals("lang", "en"), both("NOT", equals("year", 1999)), ["cat"]),
        (equals("lang", "en"), None, ["cat", "dog"]),
        (None, equals("lang", "de"), ["hund"]),
        ({}, {}, ["cat", "dog", "hund"]),
    ],
)
def test_merge_lets_pass_what_passes_both(
    filled: BM25DocumentStore, own: Any, call: Any, expected: list[str]
) -> None:
    retriever = BM25Retriever(filled, filters=own, filter_policy=FilterPolicy.MERGE)
    for _ in range(2):  # what is merged once must not stay
        assert sorted(found(retriever.run("cat", filters=call))) == sorted(expected)
    assert retriever.filters == own


def test_an_empty_query_is_an_error_and_a_blank_one_finds_nothing(
    filled: BM25DocumentStore,
) -> None:
    retriever = BM25Retriever(filled)
    with pytest.raises(ValueError, match="query must not be empty"):
        retriever.run("")
    assert found(retriever.run("  ")) == found(retriever.run("the and of")) == []


def test_arguments_of_the_wrong_kind_name_themselves(filled: BM25DocumentStore) -> None:
    with pytest.raises(TypeError, match="document_store must be a BM25DocumentStore, got InMem"):
        BM25Retriever(InMemoryDocumentStore())
    with pytest.raises(ValueError, match="top_k must be an integer >= 1, got 0"):
        BM25Retriever(filled, top_k=0)
    with pytest.raises(TypeError, match=r"top_k must be an integer >= 1, got 2\.5"):
        BM25Retriever(filled, top_k=2.5)
    with pytest.raises(ValueError, match="Unknown FilterPolicy type 'mix'"):
        BM25Retriever(filled, filter_policy="mix")
    with pytest.raises(TypeError, match="filter_policy must be a FilterPolicy, got 3"):
        BM25Retriever(filled, filter_policy=3)
    retriever = BM25Retriever(filled)
    with pytest.raises(ValueError, match="top_k must be an integer >= 0, got -1"):
        retriever.run("cat", top_k=-1)
    with pytest.raises(TypeError, match="filters must be a dict or None, got str"):
        retriever.run("cat", filters="lang")
    with pytest.raises(TypeError, match="filters must be a dict or None, got list"):
        BM25Retriever(filled, filters=equals("lang", "en")).run("cat", filters=[])


@pytest.mark.parametrize("ok", [None, {}, equals("lang", "en"), both("NOT", equals("year", 1))])
def test_a_filter_is_checked_when_the_retriever_is_made(
    filled: BM25DocumentStore, ok: dict[str, Any] | None
) -> None:
    for bad, error, message in [
        ("lang", TypeError, "filters must be a dict or None, got str"),
        ({"foo": 1}, FilterError, r"filters has no 'operator': {'foo': 1}"),
        (both("AND", {"field": "meta.a", "operator": "=", "value": 1}), FilterError, "conditions"),
    ]:
        with pytest.raises(error, match=message):
            BM25Retriever(filled, filters=bad)
    assert BM25Retriever(filled, filters=ok).filters is ok


def test_settings_survive_to_dict_and_from_dict(filled: BM25DocumentStore) -> None:
    retriever = BM25Retriever(filled, equals("lang", "en"), 3, True, "merge")
    data = retriever.to_dict()
    again = BM25Retriever.from_dict(data)
    assert again.to_dict() == data == retriever.to_dict()
    assert again.filter_policy is FilterPolicy.MERGE
    assert again.run("cat") == retriever.run("cat")


def test_a_pipeline_of_writer_and_retriever_survives_dumps_and_loads(
    filled: BM25DocumentStore,
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("writer", DocumentWriter(filled, policy=DuplicatePolicy.OVERWRITE))
    pipeline.add_component("retriever", BM25Retriever(filled, top_k=1))
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    assert (
        again.run({"retriever": {"query": "mat"}, "writer": {"documents": []}})["retriever"]
        == (pipeline.run({"retriever": {"query": "mat"}, "writer": {"documents": []}})["retriever"])
    )
    wrote = {"writer": {"documents": [Document(id="new", content="zebra")]}}
    again.run({**wrote, "retriever": {"query": "mat"}})
    result = pipeline.run({"writer": {"documents": []}, "retriever": {"query": "zebras"}})
    assert found(result["retriever"]) == ["new"]


def test_a_pipeline_loaded_in_another_life_finds_the_folders_documents(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path)
    store.write_documents([Document(id="1", content="cat")])
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store))
    dumped = pipeline.dumps()
    del store, pipeline
    assert found(Pipeline.loads(dumped).run({"query": "cats"})["retriever"]) == ["1"]


def test_results_join_with_those_of_another_retriever_by_id(documents: list[Document]) -> None:
    ours, theirs = BM25DocumentStore(), InMemoryDocumentStore()
    for each in (ours, theirs):
        each.write_documents(documents)
    pipeline = Pipeline()
    pipeline.add_component("ours", BM25Retriever(ours))
    pipeline.add_component("theirs", InMemoryBM25Retriever(theirs))
    pipeline.add_component("join", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("ours", "join.documents")
    pipeline.connect("theirs", "join.documents")
    result = pipeline.run({"ours": {"query": "cat"}, "theirs": {"query": "cat"}})
    assert len(found(result["join"])) == len(set(found(result["join"])))
    assert sorted(found(result["join"])[:3]) == ["cat", "dog", "hund"]


def test_run_async_does_as_run_and_leaves_the_event_loop_free(
    filled: BM25DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = BM25Retriever(filled)
    expected = retriever.run("cat", filters=equals("lang", "en"), top_k=1, scale_score=True)
    assert expected == asyncio.run(
        retriever.run_async("cat", filters=equals("lang", "en"), top_k=1, scale_score=True)
    )

    going = threading.Event()
    search = filled.bm25_retrieval

    def wait(*args: Any, **options: Any) -> list[Document]:
        assert going.wait(timeout=30), "the loop never came to set it"
        return search(*args, **options)

    async def ask() -> dict[str, Any]:
        answer = asyncio.create_task(retriever.run_async("cat"))
        await asyncio.sleep(0.01)
        going.set()
        return await answer

    monkeypatch.setattr(filled, "bm25_retrieval", wait)
    assert len(found(asyncio.run(ask()))) == 3


def test_it_runs_in_an_asynchronous_pipeline(filled: BM25DocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(filled))
    result = asyncio.run(pipeline.run_async({"retriever": {"query": "mat"}}))
    assert found(result["retriever"]) == ["cat"]


def test_an_asynchronous_empty_query_is_an_error(filled: BM25DocumentStore) -> None:
    with pytest.raises(ValueError, match="query must not be empty"):
        asyncio.run(BM25Retriever(filled).run_async(""))


def test_it_is_evaluated_as_any_retriever_of_haystack(filled: BM25DocumentStore) -> None:
    documents = BM25Retriever(filled).run("cat")["documents"]
    assert [*run_of(BM25Retriever(filled), {"1": "cat"}, k=2)["1"]] == [
        one.id for one in documents
    ][:2]
