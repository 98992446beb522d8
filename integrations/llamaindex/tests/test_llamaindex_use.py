"""What users do besides retrieving: evaluate, inspect, clear, copy, read the settings."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import Stemmer
from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import (
    Document,
    ImageDocument,
    MediaResource,
    MetadataMode,
    Node,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.retrievers.bm25rag.base import Options
from llamaindex_nodes import node

from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation import run_of

PETS = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value="pets")])


def ids(nodes: list[Any]) -> list[str]:
    return [each.node_id for each in nodes]


# --- the text of what is found ------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        Document(id_="a", text="one cat", metadata={"k": "v"}),
        Node(id_="a", text_resource=MediaResource(text="one cat")),
        ImageDocument(id_="a", text="one cat", image=b"hello"),
        TextNode(id_="a", text="one cat"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_found_has_a_text(given: Any) -> None:
    retriever = BM25Retriever([given])
    for scored in (retriever.retrieve("cat")[0], asyncio.run(retriever.aretrieve("cat"))[0]):
        assert (scored.text, scored.get_text(), scored.get_content()) == ("one cat",) * 3
        assert type(scored.node) is type(given)
        assert scored.node == given
    fused = QueryFusionRetriever([retriever], num_queries=1, llm=MockLLM()).retrieve("cat")
    assert [each.text for each in fused] == ["one cat"]


def test_a_retriever_of_documents_can_be_evaluated() -> None:
    documents = [Document(id_="cat", text="one cat"), Document(id_="dog", text="one dog")]
    evaluator = RetrieverEvaluator.from_metric_names(
        ["mrr", "hit_rate", "precision"], retriever=BM25Retriever(documents)
    )
    result = evaluator.evaluate("a cat?", expected_ids=["cat"])
    assert result.retrieved_texts == ["one cat"]
    assert result.metric_vals_dict == {"mrr": 1.0, "hit_rate": 1.0, "precision": 1.0}


# --- the metadata mode ----------------------------------------------------------------------


def test_the_metadata_mode_is_that_of_the_index() -> None:
    first = BM25Retriever([node("a", "cat", x="hidden")], metadata_mode=MetadataMode.NONE)
    second = BM25Retriever(existing_bm25=first.bm25)
    assert second.metadata_mode == MetadataMode.NONE
    second.add_nodes([node("b", "dog", x="hidden")])
    assert second.retrieve("hidden") == []


def test_the_metadata_mode_is_saved_with_the_index(tmp_path: Path) -> None:
    first = BM25Retriever([node("a", "cat", x="hidden")], metadata_mode=MetadataMode.NONE)
    first.bm25.save(tmp_path)  # not by persist
    with BM25Index.open(tmp_path, mode="w") as writer:
        BM25Retriever(existing_bm25=writer).add_nodes([node("b", "dog", x="hidden")])
    again = BM25Retriever(existing_bm25=BM25Index.open(tmp_path))
    assert again.metadata_mode == MetadataMode.NONE
    assert again.retrieve("hidden") == []


def test_another_metadata_mode_than_that_of_the_nodes_is_refused() -> None:
    retriever = BM25Retriever([node("a", "cat")])
    message = "metadata_mode must be 'embed', by which the nodes of the index were indexed"
    with pytest.raises(ValueError, match=message):
        BM25Retriever(existing_bm25=retriever.bm25, metadata_mode=MetadataMode.LLM)
    with pytest.raises(ValueError, match=message):
        retriever.metadata_mode = MetadataMode.NONE
    retriever.clear()
    retriever.metadata_mode = MetadataMode.NONE
    assert retriever.metadata_mode is MetadataMode.NONE


def test_the_metadata_mode_is_known_after_metadata_were_written_through_the_core() -> None:
    first = BM25Retriever([node("a", "cat", x="hidden")], metadata_mode=MetadataMode.NONE)
    first.bm25.update_metadata(["a"], [{"x": "hidden"}])
    with pytest.raises(ValueError, match="metadata_mode must be 'none'"):
        first.metadata_mode = MetadataMode.ALL
    for index in (first.bm25, first.bm25.snapshot()):
        with pytest.raises(ValueError, match="metadata_mode must be 'none'"):
            BM25Retriever(existing_bm25=index, metadata_mode=MetadataMode.EMBED)
        assert BM25Retriever(existing_bm25=index).metadata_mode is MetadataMode.NONE
    second = BM25Retriever(existing_bm25=first.bm25)
    second.add_nodes([node("b", "dog", x="hidden")])
    assert second.retrieve("hidden") == []


def test_the_metadata_mode_of_a_saved_retriever_is_that_of_its_index(tmp_path: Path) -> None:
    plain = BM25Index.from_texts(["cat"])
    BM25Retriever(existing_bm25=plain, metadata_mode=MetadataMode.LLM).persist(tmp_path)
    saved = BM25Index.open(tmp_path)
    assert BM25Retriever(existing_bm25=saved).metadata_mode is MetadataMode.LLM
    with pytest.raises(ValueError, match="metadata_mode must be 'llm'"):
        BM25Retriever(existing_bm25=saved, metadata_mode=MetadataMode.NONE)
    emptied = copy.copy(saved)
    emptied.delete(emptied.ids())
    assert BM25Retriever(existing_bm25=emptied).metadata_mode is MetadataMode.LLM
    chosen = BM25Retriever(existing_bm25=emptied, metadata_mode=MetadataMode.NONE)
    assert chosen.metadata_mode is MetadataMode.NONE, "there is nothing indexed by another"


@pytest.mark.parametrize(("wrong", "error"), [("text", ValueError), (1, TypeError)])
def test_what_is_no_metadata_mode_is_named(wrong: Any, error: type[Exception]) -> None:
    message = r"metadata_mode must be a MetadataMode \(all, embed, llm, none\) or None, got"
    retriever = BM25Retriever([])
    for attempt in (
        lambda: BM25Retriever([], metadata_mode=wrong),
        lambda: BM25Retriever.from_defaults(nodes=[], metadata_mode=wrong),
        lambda: setattr(retriever, "metadata_mode", wrong),
    ):
        with pytest.raises(error, match=message):
            attempt()


# --- metadata written through the core -------------------------------------------------------


@pytest.fixture
def written(nodes: list[TextNode]) -> BM25Retriever:
    """Return a retriever, the metadata of whose nodes were written through the core."""
    retriever = BM25Retriever(nodes, similarity_top_k=10)
    assert len(retriever.bm25.update_metadata(["cat", "hen"], [{"year": 1}, None])) == 2
    return retriever


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("ref_doc_id", "==", "pets", ["cat", "dog"]),
        ("doc_id", "!=", "pets", ["cow", "hen"]),
        ("document_id", "in", ["farm", "zoo"], ["cow", "hen"]),
        ("ref_doc_id", "nin", ["farm", "zoo"], ["cat", "dog"]),
        ("ref_doc_id", "text_match", "et", ["cat", "dog"]),
        ("ref_doc_id", ">", "g", ["cat", "dog"]),
        ("ref_doc_id", "is_empty", None, []),
        ("year", "==", 1, ["cat"]),
    ],
)
def test_the_source_is_known_after_metadata_were_written_through_the_core(
    written: BM25Retriever, key: str, operator: Any, value: Any, expected: list[str]
) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])
    assert sorted(ids(written.get_nodes(filters=filters))) == sorted(expected)
    query = "cat cow hen dog"
    assert sorted(ids(written.search(query, filters=filters))) == sorted(expected)


def test_nodes_of_a_source_are_deleted_after_metadata_were_written_through_the_core(
    written: BM25Retriever,
) -> None:
    assert written.get_nodes(["cat"])[0].metadata == {"year": 1}
    assert written.get_nodes(["cat"])[0].ref_doc_id == "pets"
    assert sorted(written.delete_ref_doc("pets")) == ["cat", "dog"]
    assert ids(written.get_nodes()) == ["cow", "hen"]


# --- copies ---------------------------------------------------------------------------------


def three_letters(word: str) -> str:
    return word[:3]


class Shortening:
    """A stemmer like PyStemmer's, and like none of its algorithms."""

    def stemWords(self, words: list[str]) -> list[str]:
        return [word[:3] for word in words]


@pytest.mark.parametrize("stemmer", [three_letters, Shortening(), Stemmer.Stemmer("german")])
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_retriever_with_any_stemmer_can_be_copied_and_pickled(stemmer: Any, how: Any) -> None:
    retriever = BM25Retriever([node("a", "The Katzen ran")], stemmer=stemmer)
    other = how(retriever)
    assert ids(other.retrieve("Katze")) == ["a"]
    assert other.retrieve("Katze") == retriever.retrieve("Katze")


# --- parameters and settings --------------------------------------------------------------------


@pytest.mark.parametrize("make", [BM25Retriever, BM25Retriever.from_defaults])
def test_the_parameters_of_bm25_are_arguments(make: Any, nodes: list[TextNode]) -> None:
    retriever = make(nodes=nodes, k1=0.9, b=0.4, variant="bm25+")
    assert (retriever.bm25.k1, retriever.bm25.b, retriever.bm25.variant) == (0.9, 0.4, "bm25+")
    expected = BM25Index.from_texts(
        [each.get_content("embed") for each in nodes], k1=0.9, b=0.4, variant="bm25+"
    ).search("cats")
    assert [each.score for each in retriever.retrieve("cats")] == [hit.score for hit in expected]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"k1": -1}, "k1"), ({"b": 2}, "b must"), ({"variant": "okapi"}, "variant")],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BM25Retriever.from_defaults(nodes=[], **wrong)


def test_an_existing_index_brings_its_own_parameters() -> None:
    with pytest.raises(ValueError, match="existing_bm25 has parameters; leave k1, b out"):
        BM25Retriever.from_defaults(existing_bm25=BM25Index(), k1=1.0, b=0.5)


def test_from_defaults_takes_an_existing_index(nodes: list[TextNode]) -> None:
    index = BM25Index(k1=0.9)
    assert len(BM25Retriever.from_defaults(existing_bm25=index)) == 0
    retriever = BM25Retriever.from_defaults(nodes=nodes, existing_bm25=index)
    assert retriever.bm25 is index
    assert len(retriever) == 4
    with pytest.raises(ValueError, match="exactly one of"):
        BM25Retriever.from_defaults(
            nodes=nodes, docstore=SimpleDocumentStore(), existing_bm25=index
        )


def test_from_defaults_takes_all_that_the_constructor_takes() -> None:
    assert set(inspect.signature(BM25Retriever).parameters) == {"nodes", *Options.__annotations__}


@pytest.mark.parametrize(
    ("given", "language", "stemmer", "pattern"),
    [
        ({}, "english", "english", "auto"),
        ({"language": "de"}, "german", "german", "auto"),
        ({"stemmer": Stemmer.Stemmer("french")}, "english", "french", "auto"),
        ({"skip_stemming": True}, "english", None, "auto"),
        ({"token_pattern": r"\w+", "language": None}, None, None, r"\w+"),
        ({"stemmer": three_letters, "language": "de"}, "german", three_letters, "auto"),
        ({"tokenizer": str.split}, None, None, "auto"),
        ({"existing_bm25": BM25Index(Analyzer("fr"))}, "french", "french", "auto"),
    ],
    ids=str,
)
def test_the_analysis_can_be_read(
    given: dict[str, Any], language: Any, stemmer: Any, pattern: str
) -> None:
    retriever = BM25Retriever([], **given)
    assert (retriever.language, retriever.stemmer, retriever.token_pattern) == (
        language,
        stemmer,
        pattern,
    )
    assert retriever.skip_stemming is (stemmer is None)


def test_what_belongs_to_the_index_cannot_be_set() -> None:
    for name in ("language", "stemmer", "skip_stemming", "token_pattern"):
        with pytest.raises(AttributeError):
            setattr(BM25Retriever([]), name, None)


# --- nodes ------------------------------------------------------------------------------------


def test_nodes_can_be_counted_and_cleared(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes)
    assert len(retriever) == 4
    assert len(retriever.clear()) == 4
    assert len(retriever) == 0
    assert bool(retriever), "LlamaIndex asks whether there is a retriever"
    assert retriever.retrieve("cats") == []


def test_nodes_are_returned_by_id_by_filters_or_all(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes)
    assert retriever.get_nodes() == nodes
    assert retriever.get_nodes(["hen", "nobody", "cat"]) == [nodes[3], nodes[0]]
    assert retriever.get_nodes(filters=PETS) == nodes[:2]
    assert retriever.get_nodes(["hen", "dog"], PETS) == [nodes[1]]
    assert retriever.get_nodes([]) == []
    retriever.get_nodes(["cat"])[0].metadata["tags"].append("changed")
    assert retriever.get_nodes() == nodes


def test_nodes_are_deleted_by_filters(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes)
    assert retriever.delete_nodes(["hen", "dog"], PETS) == ["dog"]
    assert retriever.delete_nodes(filters=PETS) == ["cat"]
    assert ids(retriever.get_nodes()) == ["cow", "hen"]


@pytest.mark.parametrize("given", [{}, {"filters": MetadataFilters(filters=[])}])
def test_deleting_without_saying_what_is_refused(
    nodes: list[TextNode], given: dict[str, Any]
) -> None:
    retriever = BM25Retriever(nodes)
    with pytest.raises(ValueError, match=r"clear\(\) deletes all"):
        retriever.delete_nodes(**given)
    assert len(retriever) == 4


# --- asynchronous twins ---------------------------------------------------------------------------


def test_the_asynchronous_twins_do_the_same(nodes: list[TextNode], tmp_path: Path) -> None:
    async def use() -> None:
        retriever = BM25Retriever([])
        assert await retriever.aadd_nodes(nodes) == ["cat", "dog", "cow", "hen"]
        assert await retriever.aget_nodes(filters=PETS) == nodes[:2]
        await retriever.apersist(tmp_path)
        assert await retriever.adelete_nodes(["hen"]) == ["hen"]
        assert await retriever.adelete_nodes(filters=PETS) == ["cat", "dog"]
        assert await retriever.adelete_ref_doc("farm") == ["cow"]
        await retriever.aadd_nodes(nodes)
        assert len(await retriever.aclear()) == 4

    asyncio.run(use())
    assert BM25Retriever.from_persist_dir(tmp_path).get_nodes() == nodes


def test_waiting_writes_keep_neither_searches_nor_others_waiting(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes)
    held, release = threading.Event(), threading.Event()
    delete = retriever.bm25.delete

    def slow(*which: Any) -> Any:
        held.set()
        assert release.wait(120)
        return delete(*which)

    retriever.bm25.delete = slow  # type: ignore[method-assign]  # stands for a long write

    async def use() -> list[Any]:
        writes = [asyncio.create_task(retriever.adelete_nodes(["hen"])) for _ in range(100)]
        await asyncio.to_thread(held.wait, 60)
        results = await asyncio.wait_for(retriever.aretrieve("cats"), 60)
        release.set()
        assert sum(map(len, await asyncio.gather(*writes))) == 1
        return results

    assert ids(asyncio.run(use())) == ["dog", "cat"]


def test_it_is_evaluated_as_any_retriever_of_llama_index(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes)
    assert [*run_of(retriever, {"1": "cats"}, k=1)["1"]] == ids(retriever.retrieve("cats"))[:1]
