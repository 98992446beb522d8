"""BM25Retriever inside LangChain: ensembles, compression, tools, chains, configuration, tracing."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from conftest import ids
from langchain_bm25rag import BM25Retriever
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.load import dumpd
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langchain_core.vectorstores import InMemoryVectorStore


def in_both_ways(runnable: Any, *args: Any, **kwargs: Any) -> Any:
    """Invoke in the sync and the async way; the answers must be equal."""
    answer = runnable.invoke(*args, **kwargs)
    assert asyncio.run(runnable.ainvoke(*args, **kwargs)) == answer
    return answer


# --- EnsembleRetriever --------------------------------------------------------------


def make_ensemble(documents: list[Document], lexical: Any) -> EnsembleRetriever:
    """Fuse a retriever with a vector store of the same documents, ids shared."""
    with_id = [
        Document(one.page_content, id=one.id, metadata={**one.metadata, "id": one.id})
        for one in documents
    ]
    store = InMemoryVectorStore.from_documents(with_id, DeterministicFakeEmbedding(size=8))
    dense = store.as_retriever(search_kwargs={"k": 5})
    return EnsembleRetriever(retrievers=[lexical, dense], weights=[0.9, 0.1], id_key="id")


def test_an_ensemble_fuses_by_id(documents: list[Document]) -> None:
    """Ids are shared with the vector store, so that a document found twice is returned once."""
    lexical = BM25Retriever.from_documents(documents, id_key="id")
    fused = in_both_ways(make_ensemble(documents, lexical), "cats")
    assert sorted(map(str, ids(fused))) == sorted(str(one.id) for one in documents)
    assert ids(fused)[:3] == ids(lexical.invoke("cats"))


def test_an_ensemble_keeps_equal_texts_apart_by_id() -> None:
    retriever = BM25Retriever.from_texts(
        ["a cat", "a cat"], [{"n": 1}, {"n": 2}], ["1", "2"], id_key="bm25_id"
    )
    by_text = EnsembleRetriever(retrievers=[retriever])
    by_id = EnsembleRetriever(retrievers=[retriever], id_key="bm25_id")
    assert (len(by_text.invoke("cat")), len(by_id.invoke("cat"))) == (1, 2)


def test_an_ensemble_forwards_neither_k_nor_filter_but_configuration(
    documents: list[Document],
) -> None:
    lexical = BM25Retriever.from_documents(documents, id_key="id")
    plain = EnsembleRetriever(retrievers=[lexical], id_key="id")
    assert len(in_both_ways(plain, "cats", k=1, filter={"lang": "de"})) == 3
    fields = {"k": ConfigurableField(id="bm25_k"), "filter": ConfigurableField(id="bm25_filter")}
    ensemble = EnsembleRetriever(retrievers=[lexical.configurable_fields(**fields)], id_key="id")
    for settings, expected in [
        ({"bm25_k": 1}, ["cats"]),
        ({"bm25_filter": {"lang": "en"}}, ["dogs", "cat"]),
    ]:
        fused = in_both_ways(ensemble, "cats", config={"configurable": settings})
        assert ids(fused) == expected


@pytest.mark.parametrize("query", ["cats", "birds and cats", "owls", ""])
def test_a_filter_that_both_retrievers_have_lets_nothing_through(
    documents: list[Document], query: str
) -> None:
    """One callable serves both; with one of them alone, the other one leaks."""
    lexical = BM25Retriever.from_documents(documents, id_key="id").configurable_fields(
        filter=ConfigurableField(id="lexical")
    )
    ensemble = make_ensemble(documents, lexical)
    dense = ensemble.retrievers[1].configurable_fields(  # type: ignore[union-attr]
        search_kwargs=ConfigurableField(id="dense")
    )
    ensemble = EnsembleRetriever(retrievers=[lexical, dense], id_key="id")

    def german(document: Document) -> bool:
        return document.metadata.get("lang") == "de"

    one: dict[str, Any] = {"lexical": german}
    both = one | {"dense": {"k": 5, "filter": german}}
    assert ids(in_both_ways(ensemble, query, config={"configurable": both})) == ["cats"]
    assert len(in_both_ways(ensemble, query, config={"configurable": one})) > 1


@pytest.mark.parametrize("query", ["cats", "birds and cats"])
def test_a_bound_filter_of_none_keeps_the_constructors_and_a_configured_one_lifts_it(
    documents: list[Document], query: str
) -> None:
    """As the README says; the latter is how LangChain configures."""
    german = BM25Retriever.from_documents(documents, filter={"lang": "de"}, id_key="id")
    bound = EnsembleRetriever(retrievers=[german.bind(filter=None)], id_key="id")
    assert ids(in_both_ways(bound, query)) == ["cats"]
    configurable = german.configurable_fields(filter=ConfigurableField(id="filter"))
    lifted = EnsembleRetriever(retrievers=[configurable], id_key="id")
    assert len(in_both_ways(lifted, query, config={"configurable": {"filter": None}})) > 1


# --- ContextualCompressionRetriever, tools, chains ------------------------------------


class Shorten(BaseDocumentCompressor):
    """Keep the first word."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        for document in documents:
            document.page_content = document.page_content.split()[0]
        return documents


def test_compression_forwards_keywords_and_never_changes_the_store(
    retriever: BM25Retriever,
) -> None:
    """Twice, since the first run edits what it was given."""
    compression = ContextualCompressionRetriever(
        base_compressor=Shorten(), base_retriever=retriever
    )
    for _ in range(2):
        documents = in_both_ways(compression, "cats", k=2, filter={"lang": "en"})
        assert [one.page_content for one in documents] == ["Dogs", "The"]
    assert in_both_ways(compression, "zebra") == []


def test_as_a_tool(retriever: BM25Retriever) -> None:
    """An agent gets the texts, and the documents as artifact."""
    tool = create_retriever_tool(retriever.bind(k=1), "search", "Search.")  # type: ignore[arg-type]
    assert in_both_ways(tool, {"query": "cats"}) == "Cats sleep; a cat dreams of cats."
    both = create_retriever_tool(
        retriever, "search", "Search.", response_format="content_and_artifact"
    )
    call = {"name": "search", "args": {"query": "bird"}, "id": "1", "type": "tool_call"}
    assert ids(in_both_ways(both, call).artifact) == ["bird"]


def test_as_a_tool_of_any_runnable(retriever: BM25Retriever) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LangChain calls it beta
        tool = retriever.as_tool(name="search", description="Search.")
        few = retriever.bind(k=1).as_tool(name="few", description="Search.")
    assert ids(in_both_ways(tool, "cats")) == ["cats", "dogs", "cat"]
    assert ids(in_both_ways(few, "cats")) == ["cats"]
    assert tool.args == {"tool_input": {"type": "string"}}


def test_a_batch_can_return_its_errors(retriever: BM25Retriever) -> None:
    """One bad question does not spoil the others, and settings go to each."""
    good, bad, other = retriever.batch(
        ["cats", 3, "bird"],  # type: ignore[list-item]
        [{"tags": ["a"]}, {"tags": ["b"]}, {}],
        return_exceptions=True,
        k=1,
    )
    assert (ids(good), ids(other)) == (["cats"], ["bird"])
    assert isinstance(bad, TypeError)


def test_in_a_chain(retriever: BM25Retriever) -> None:
    join = RunnableLambda(lambda documents: " | ".join(one.page_content for one in documents))
    chain = {"context": retriever.bind(k=1) | join, "question": RunnablePassthrough()}
    answer = RunnablePassthrough() | chain
    assert in_both_ways(answer, "bird") == {
        "context": "A bird sings in the tree.",
        "question": "bird",
    }
    assert [len(documents) for documents in retriever.map().invoke(["cats", "bird"])] == [3, 1]
    broken = RunnableLambda(lambda _: 1 / 0).with_fallbacks([retriever])
    assert len(broken.invoke("bird")) == 1


# --- configuration ---------------------------------------------------------------------


def test_configured_retrievers_keep_the_index(retriever: BM25Retriever) -> None:
    """The index is a field, so that a copy made by LangChain has it."""
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"),
        filter=ConfigurableField(id="filter"),
        min_score=ConfigurableField(id="min_score"),
    )
    assert len(in_both_ways(configurable, "cats")) == 3
    one = configurable.with_config(configurable={"k": 1})
    assert ids(in_both_ways(one, "cats")) == ["cats"]
    some = {"configurable": {"filter": lambda document: document.id == "cat"}}
    assert ids(in_both_ways(configurable, "cats", config=some)) == ["cat"]
    with pytest.raises(TypeError, match="k must be an integer"):
        configurable.invoke("cats", {"configurable": {"k": "many"}})
    assert (
        "k"
        in configurable.config_schema().model_json_schema()["$defs"]["Configurable"]["properties"]
    )


@pytest.mark.filterwarnings("ignore::pydantic.json_schema.PydanticJsonSchemaWarning")
def test_a_configurable_index_has_a_schema(retriever: BM25Retriever) -> None:
    """Even though an index is not a JSON value; Pydantic omits its default with a warning."""
    names = ("index", "k", "filter", "min_score", "score_key", "id_key")
    fields = {name: ConfigurableField(id=name) for name in names}
    configurable = retriever.configurable_fields(**fields)
    for schema in (
        configurable.config_schema().model_json_schema()["$defs"]["Configurable"],
        configurable.get_config_jsonschema()["$defs"]["Configurable"],
        BM25Retriever.model_json_schema(),
    ):
        assert schema["properties"].keys() >= set(names)
        assert "default" not in schema["properties"]["index"]
    described = BM25Retriever.model_json_schema()
    assert described["$defs"]["Index"] == {"title": "BM25Index", "type": "object"}


def test_alternatives_and_indexes_can_be_chosen_by_configuration(retriever: BM25Retriever) -> None:
    other = BM25Retriever.from_texts(["another cat"], ids=["other"])
    chosen = retriever.configurable_fields(index=ConfigurableField(id="tenant"))
    documents = chosen.invoke("cats", {"configurable": {"tenant": other.index}})
    assert ids(documents) == ["other"]
    either = retriever.configurable_alternatives(ConfigurableField(id="which"), other=other)
    assert ids(either.with_config(configurable={"which": "other"}).invoke("cat")) == ["other"]


def test_with_config_and_copies_answer_alike(retriever: BM25Retriever) -> None:
    expected = retriever.invoke("cats")
    assert retriever.with_config(tags=["x"], run_name="mine").invoke("cats") == expected
    assert retriever.with_retry().invoke("cats") == expected
    assert retriever.model_copy(update={"k": 1}).invoke("cats") == expected[:1]


def test_what_is_bound_and_configured_can_be_pickled(retriever: BM25Retriever) -> None:
    retriever.filter = {"lang": "en"}
    expected = retriever.invoke("cats", k=1)
    for runnable in (
        retriever.bind(k=1),
        retriever.with_config(tags=["a"]).bind(k=1),
        retriever.configurable_fields(k=ConfigurableField(id="k")).with_config(
            configurable={"k": 1}
        ),
    ):
        assert pickle.loads(pickle.dumps(runnable)).invoke("cats") == expected


# --- tracing ------------------------------------------------------------------------------


class Tracer(BaseTracer):
    """Keeps the runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)


def test_runs_are_traced(retriever: BM25Retriever) -> None:
    """With the retriever's name, query and documents; errors too."""
    tracer = Tracer()
    documents = retriever.invoke("cats", {"callbacks": [tracer]})
    with pytest.raises(TypeError):
        retriever.invoke("cats", {"callbacks": [tracer]}, k="many")
    good, bad = tracer.runs
    assert (good.run_type, good.name, good.inputs) == (
        "retriever",
        "BM25Retriever",
        {"query": "cats"},
    )
    assert good.outputs == {"documents": documents}
    assert (good.extra or {})["metadata"]["ls_retriever_name"] == "bm25rag"
    assert bad.error is not None
    assert "k must be an integer" in bad.error


async def test_events_stream_the_question_and_the_documents(retriever: BM25Retriever) -> None:
    chain = RunnablePassthrough() | retriever.bind(k=1)
    events = [event async for event in chain.astream_events("cats", version="v2")]
    (start,) = (one for one in events if one["event"] == "on_retriever_start")
    (end,) = (one for one in events if one["event"] == "on_retriever_end")
    assert (start["name"], start["data"]["input"]) == ("BM25Retriever", {"query": "cats"})
    assert end["data"]["output"] == retriever.invoke("cats", k=1)


def test_tags_and_metadata_reach_the_callbacks(documents: list[Document]) -> None:
    seen: list[tuple[Any, Any]] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
            seen.append((kwargs["tags"], kwargs["metadata"]["team"]))

    retriever = BM25Retriever.from_documents(documents, tags=["lexical"], metadata={"team": "a"})
    in_both_ways(retriever, "cats", {"callbacks": [Handler()]})
    assert seen == [(["lexical"], "a")] * 2


def test_a_retriever_is_described_without_its_documents(retriever: BM25Retriever) -> None:
    assert len(str(dumpd(retriever))) < 1000
    assert retriever.get_name() == "BM25Retriever"
    assert retriever.input_schema.model_json_schema()["type"] == "string"
