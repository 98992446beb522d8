"""What the core can do with a question, in all retrievers: weights, spelling, RM3, pages."""

from __future__ import annotations

from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import SparseEmbedding
from haystack_integrations.components.retrievers.bm25rag import (
    BM25HybridRetriever,
    BM25Retriever,
    BM25SparseEmbeddingRetriever,
    BM25SparseHybridRetriever,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Query

EVEN = {"field": "meta.even", "operator": "==", "value": True}
SPARSE = SparseEmbedding([0], [1.0])
TEXTS = ["storm storm harbour", "storm", "harbour lights", "lights", "quiet sea", "storm sea"]


@component
class Backwards:
    """Stands for the embedding retriever of another store: finds all, the last first."""

    def __init__(self, document_store: BM25DocumentStore) -> None:
        self.document_store = document_store

    @component.output_types(documents=list[Document])
    def run(
        self, query_embedding: list[float], filters: Any = None, top_k: int = 10
    ) -> dict[str, list[Document]]:
        documents = [
            Document(id=one.id, content=one.content, score=float(one.id))
            for one in reversed(self.document_store.filter_documents(filters))
        ]
        return {"documents": documents[:top_k]}


@pytest.fixture
def storms(store: BM25DocumentStore) -> BM25DocumentStore:
    store.write_documents(
        [
            Document(
                id=str(number),
                content=text,
                meta={"even": number % 2 == 0},
                sparse_embedding=SparseEmbedding([0], [number + 1.0]),
            )
            for number, text in enumerate(TEXTS)
        ]
    )
    return store


def found(result: dict[str, list[Document]]) -> list[str]:
    return [document.id for document in result["documents"]]


def retrievers(store: BM25DocumentStore, **settings: Any) -> list[tuple[Any, dict[str, Any]]]:
    return [
        (BM25Retriever(store, **settings), {}),
        (BM25SparseHybridRetriever(store, **settings), {"query_sparse_embedding": SPARSE}),
        (BM25HybridRetriever(store, Backwards(store), **settings), {"query_embedding": [1.0]}),
    ]


def test_terms_and_weighted_terms_are_questions_too(storms: BM25DocumentStore) -> None:
    retriever = BM25Retriever(storms)
    terms = storms._shared.current.analyzer.query_terms("harbour")
    assert found(retriever.run(terms)) == found(retriever.run("harbour")) == ["2", "0"]
    weighted = found(retriever.run({"storm": 0.1, "sea": 5.0}))
    assert weighted[:2] == ["4", "5"] or weighted[:2] == ["5", "4"]
    batch = retriever.run_batch(["harbour", terms, {"storm": 1.0}])["documents"]
    assert [[one.id for one in each] for each in batch[:2]] == [["2", "0"]] * 2


@pytest.mark.asyncio
async def test_a_question_is_corrected_on_demand(storms: BM25DocumentStore) -> None:
    for retriever, more in retrievers(storms):
        typed = retriever.run(query="storn", correct=True, **more)
        assert typed == retriever.run(query="storm", **more)
        assert typed == await retriever.run_async(query="storn", correct=True, **more)
    assert found(BM25Retriever(storms).run("storn")) == []
    always = BM25Retriever(storms, correct=True)
    assert found(always.run("storn")) == found(always.run("storm", correct=False))
    assert found(always.run("storn", correct=False)) == []
    assert BM25Retriever.from_dict(always.to_dict()).correct is True


@pytest.mark.asyncio
async def test_a_question_is_expanded_on_demand(storms: BM25DocumentStore) -> None:
    index = storms._shared.current
    expanded = BM25Retriever(storms, expand=True)
    expected = [hit.id for hit in index.search(index.expand("harbour"))]
    assert len(expected) > 2
    assert found(expanded.run("harbour")) == expected
    assert found(await expanded.run_async("harbour")) == expected
    assert found(expanded.run("harbour", expand=False)) == ["2", "0"]
    batch = expanded.run_batch(["harbour", "sea"])["documents"]
    assert [one.id for one in batch[0]] == expected
    for retriever, more in retrievers(storms, expand=True)[1:]:
        settings = retriever.to_dict()["init_parameters"]
        assert (settings["expand"], settings["correct"]) == (True, False)
        plain = retriever.run(query="harbour", expand=False, **more)
        assert retriever.run(query="harbour", **more) != plain


@pytest.mark.asyncio
async def test_pages_are_parts_of_one_ranking(storms: BM25DocumentStore) -> None:
    sparse = (BM25SparseEmbeddingRetriever(storms), {"query_sparse_embedding": SPARSE})
    words = [(one, {"query": "storm sea", **more}) for one, more in retrievers(storms)]
    for retriever, asked in [sparse, *words]:
        whole = retriever.run(**asked, top_k=6)["documents"]
        pages = [retriever.run(**asked, top_k=2, offset=first)["documents"] for first in (0, 2, 4)]
        assert [one for page in pages for one in page] == whole
        later = await retriever.run_async(**asked, top_k=2, offset=2)
        assert later["documents"] == whole[2:4]
        with pytest.raises(ValueError, match="offset must be an integer >= 0, got -1"):
            retriever.run(**asked, offset=-1)


@pytest.mark.asyncio
@pytest.mark.parametrize("query", ["", " \n", [], {}, Query()])
async def test_a_blank_question_with_filters_lists_what_passes(
    storms: BM25DocumentStore, query: Any
) -> None:
    for retriever, more in retrievers(storms):
        listed = retriever.run(query=query, filters=EVEN, **more)
        assert found(listed) == ["0", "2", "4"]
        assert listed["documents"] == storms.filter_documents(EVEN)
        page = await retriever.run_async(query=query, filters=EVEN, top_k=1, offset=1, **more)
        assert found(page) == ["2"]
    own = BM25Retriever(storms, filters=EVEN, top_k=2)
    assert found(own.run(query)) == ["0", "2"]
    batch = own.run_batch([query, "lights", query])["documents"]
    assert [[one.id for one in each] for each in batch] == [["0", "2"], ["2"], ["0", "2"]]


def test_a_blank_question_without_filters_finds_nothing(storms: BM25DocumentStore) -> None:
    assert found(BM25Retriever(storms).run(" ")) == []
    with pytest.raises(ValueError, match="query must not be empty"):
        BM25Retriever(storms).run("")


def test_components_that_give_a_text_still_connect(storms: BM25DocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", PromptBuilder("{{ question }}", required_variables="*"))
    pipeline.add_component("retriever", BM25Retriever(storms))
    pipeline.connect("prompt.prompt", "retriever.query")
    result = pipeline.run({"prompt": {"question": "harbour"}})
    assert found(result["retriever"]) == ["2", "0"]


def test_the_one_reply_of_a_generator_is_a_text_and_no_list_of_terms(
    storms: BM25DocumentStore,
) -> None:
    """Haystack unwraps it, as for its own retrievers, and refuses to drop what is beside it."""

    @component
    class Replies:
        @component.output_types(replies=list[str])
        def run(self, replies: list[str]) -> dict[str, list[str]]:
            return {"replies": replies}

    for retriever, more in retrievers(storms):
        pipeline = Pipeline()
        pipeline.add_component("generator", Replies())
        pipeline.add_component("retriever", retriever)
        pipeline.connect("generator.replies", "retriever.query")
        asked = {"generator": {"replies": ["Which harbour?"]}, "retriever": more}
        expected = retriever.run("Which harbour?", **more)
        assert pipeline.run(asked)["retriever"] == expected
        with pytest.raises(PipelineRuntimeError, match="Cannot unwrap a list of 2 items"):
            pipeline.run({**asked, "generator": {"replies": ["harbour", "storm"]}})


def test_an_option_that_no_search_takes_is_named_with_those_there_are(
    storms: BM25DocumentStore,
) -> None:
    message = r"^a search takes filters, top_k, .*decay, got k$"
    for search in (storms.bm25_retrieval, BM25Retriever(storms).run_batch):
        with pytest.raises(TypeError, match=message):
            search(["storm"], k=3)


@pytest.mark.asyncio
async def test_the_meta_of_documents_is_replaced(storms: BM25DocumentStore) -> None:
    before = storms.filter_documents()
    assert storms.update_metadata(["1", "unknown", "3"], [{"a": 1}, {"b": 1}, {}]) == 2
    assert await storms.update_metadata_async(["0"], [{"a": 2}]) == 1
    after = storms.filter_documents()
    assert [one.meta for one in after[:4]] == [{"a": 2}, {"a": 1}, {"even": True}, {}]
    assert [one.content for one in after] == [one.content for one in before]
    assert storms.count_documents_by_filter(EVEN) == 2
    with pytest.raises(TypeError, match="document_ids must be an iterable of str"):
        storms.update_metadata("1", [{}])  # type: ignore[arg-type]
