"""The retriever in LlamaIndex's own components."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from llama_index.core import StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    get_leaf_nodes,
)
from llama_index.core.postprocessor import (
    MetadataReplacementPostProcessor,
    PrevNextNodePostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
)
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever
from llamaindex_nodes import node

from bm25rag import Query


@pytest.fixture
def retriever(nodes: list[TextNode]) -> BM25Retriever:
    return BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3)


@pytest.mark.parametrize("use_async", [False, True])
@pytest.mark.parametrize("mode", list(FUSION_MODES))
def test_fusion_in_every_mode(
    retriever: BM25Retriever, nodes: list[TextNode], mode: FUSION_MODES, use_async: bool
) -> None:
    dense = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=3)).as_retriever(
        similarity_top_k=4
    )
    fusion = QueryFusionRetriever(
        [retriever, dense],
        mode=mode,
        num_queries=1,
        similarity_top_k=10,
        llm=MockLLM(),
        use_async=use_async,
    )
    fused = fusion.retrieve("cats")
    # A node of both is one node: the hash is the same.
    assert sorted(each.node_id for each in fused) == ["cat", "cow", "dog", "hen"]
    assert asyncio.run(fusion.aretrieve("cats")) == fused
    assert [each.node_id for each in retriever.retrieve("cats")] == ["dog", "cat"]


@pytest.mark.parametrize("mode", list(FUSION_MODES))
def test_fusion_of_nothing(retriever: BM25Retriever, mode: FUSION_MODES) -> None:
    fusion = QueryFusionRetriever([retriever], mode=mode, num_queries=1, llm=MockLLM())
    assert fusion.retrieve("zebra") == []


def test_fusion_of_generated_queries(retriever: BM25Retriever) -> None:
    class Writer(MockLLM):
        """Thinks of another query."""

        def _generate_text(self, length: int) -> str:
            return "grass"

    fusion = QueryFusionRetriever(
        [retriever], llm=Writer(max_tokens=1), num_queries=2, similarity_top_k=10, use_async=False
    )
    assert {each.node_id for each in fusion.retrieve("cats")} == {"cat", "dog", "cow"}
    # In one search, whose scores are the sums.
    fused = retriever.search(Query("cats", also=["grass"]))
    assert {each.node_id for each in fused} == {"cat", "dog", "cow"}
    scores = [retriever.bm25.scores(question) for question in ("cats", "grass")]
    best = sorted(sum(scores).tolist(), reverse=True)
    assert [each.score for each in fused] == pytest.approx(best[:3])


def test_a_query_engine_answers_with_sources(retriever: BM25Retriever) -> None:
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    response = engine.query("grass")
    assert [each.node_id for each in response.source_nodes] == ["cow"]
    assert "A cow eats grass" in str(response)
    assert str(asyncio.run(engine.aquery("grass"))) == str(response)
    assert str(engine.query("zebra")) == "Empty Response"


def test_the_model_does_not_see_the_metadata_excluded_for_it() -> None:
    secret = node("a", "A cow", shown="yes", hidden="secret")
    secret.excluded_llm_metadata_keys = ["hidden"]
    engine = RetrieverQueryEngine.from_args(BM25Retriever([secret]), llm=MockLLM())
    answer = str(engine.query("cow"))
    assert "shown: yes" in answer
    assert "secret" not in answer


def test_as_a_tool(retriever: BM25Retriever) -> None:
    tool = RetrieverTool.from_defaults(retriever, name="animals", description="About animals.")
    for output in (tool.call("grass"), asyncio.run(tool.acall("grass"))):
        assert "A cow eats grass" in output.content
        assert [each.node_id for each in output.raw_output] == ["cow"]
    assert tool.call("zebra").content == ""


def test_in_a_router(retriever: BM25Retriever) -> None:
    class Chooser(MockLLM):
        """Takes the first choice."""

        def _generate_text(self, length: int) -> str:
            return '[{"choice": 1, "reason": "the only one"}]'

    router = RouterRetriever.from_defaults(
        [RetrieverTool.from_defaults(retriever)],
        selector=LLMSingleSelector.from_defaults(llm=Chooser(max_tokens=1)),
        llm=MockLLM(),
    )
    assert [each.node_id for each in router.retrieve("grass")] == ["cow"]


def test_under_a_query_transform(retriever: BM25Retriever) -> None:
    transform = HyDEQueryTransform(llm=MockLLM())
    assert TransformRetriever(retriever, transform).retrieve("grass")
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert TransformQueryEngine(engine, transform).query("grass").source_nodes


def test_relationships_lead_to_neighbours(nodes: list[TextNode]) -> None:
    for before, after in pairwise(nodes):
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    results = BM25Retriever.from_defaults(docstore=docstore).retrieve("grass")
    wider = PrevNextNodePostprocessor(docstore=docstore, num_nodes=1, mode="both")
    assert [each.node_id for each in wider.postprocess_nodes(results)] == ["dog", "cow", "hen"]


def test_parents_are_merged() -> None:
    document = Document(text=" ".join(f"Sentence {n} is about cats." for n in range(60)))
    parts = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 64]).get_nodes_from_documents(
        [document]
    )
    context = StorageContext.from_defaults()
    context.docstore.add_documents(parts)
    leaves = BM25Retriever.from_defaults(nodes=get_leaf_nodes(parts), similarity_top_k=100)
    merged = AutoMergingRetriever(leaves, context).retrieve("cats")
    assert 0 < len(merged) < len(leaves.retrieve("cats"))


def test_its_results_can_be_written_as_json(retriever: BM25Retriever) -> None:
    for each in retriever.retrieve("cats"):
        assert json.loads(each.to_json())["score"] == each.score


# --- node parsers -------------------------------------------------------------------------


@pytest.fixture
def pages() -> list[Document]:
    return [
        Document(
            id_=name,
            text=f"# {name}\n\nA {name} sleeps. It runs far.\n\n## Food\n\nA {name} eats {food}.",
            metadata={"file": f"{name}.md"},
        )
        for name, food in [("cat", "fish"), ("dog", "meat")]
    ]


def test_small_parts_lead_to_large_ones(pages: list[Document]) -> None:
    large = SentenceSplitter(chunk_size=64, chunk_overlap=16).get_nodes_from_documents(pages)
    small: list[BaseNode] = []
    for each in large:
        parts = SentenceSplitter(chunk_size=16, chunk_overlap=4).get_nodes_from_documents([each])
        small += [IndexNode.from_text_node(part, each.node_id) for part in parts]
    assert len(small) > len(large)
    lexical = BM25Retriever.from_defaults(nodes=small)
    recursive = RecursiveRetriever(
        "lexical",
        retriever_dict={"lexical": lexical},
        node_dict={each.node_id: each for each in large},
    )
    (scored,) = recursive.retrieve("fish")
    assert scored.node == large[0]
    # The same with no other retriever.
    direct = BM25Retriever(small, object_map={each.node_id: each for each in large})
    assert [each.node for each in direct.retrieve("fish")] == [large[0]]


def test_a_sentence_brings_its_window(pages: list[Document]) -> None:
    parts = SentenceWindowNodeParser.from_defaults(window_size=1).get_nodes_from_documents(pages)
    retriever = BM25Retriever.from_defaults(nodes=parts)
    (scored,) = retriever.retrieve("fish")
    assert "runs" not in scored.text
    assert retriever.retrieve("window") == [], "the window is not indexed"
    replaced = MetadataReplacementPostProcessor(target_metadata_key="window")
    assert "runs" in replaced.postprocess_nodes([scored])[0].text
    assert retriever.retrieve("fish") == [
        scored.model_copy(update={"node": parts_of(scored, parts)})
    ]


def parts_of(scored: NodeWithScore, parts: list[BaseNode]) -> BaseNode:
    return next(part for part in parts if part.node_id == scored.node_id)


def test_headings_can_be_filtered_by(pages: list[Document]) -> None:
    parts = MarkdownNodeParser().get_nodes_from_documents(pages)
    below_dog = MetadataFilter(key="header_path", value="/dog/", operator="text_match")
    retriever = BM25Retriever(parts, filters=MetadataFilters(filters=[below_dog]))
    (scored,) = retriever.retrieve("who eats fish or meat")
    assert "meat" in scored.text
    assert scored.metadata == {"file": "dog.md", "header_path": "/dog/"}


def test_whole_documents_answer_in_engines(pages: list[Document]) -> None:
    retriever = BM25Retriever(pages)
    cited = CitationQueryEngine.from_args(
        VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=3)),
        llm=MockLLM(),
        retriever=retriever,
    )
    assert "A cat eats fish" in str(cited.query("fish"))
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert [each.text for each in engine.query("fish").source_nodes] == [pages[0].text]


def test_recursive_retrievers_of_llama_index_take_no_whole_documents(pages: list[Document]) -> None:
    """Whichever retriever finds them; the page on migration says so."""
    for whole in (BM25Retriever(pages), SummaryIndex(pages).as_retriever()):
        with pytest.raises(AssertionError):
            RecursiveRetriever("whole", retriever_dict={"whole": whole}).retrieve("fish")


def test_the_merged_parents_are_those_of_an_index_that_was_synced(pages: list[Document]) -> None:
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[128, 24], chunk_overlap=0)
    parts = parser.get_nodes_from_documents(pages)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(parts)
    leaves = BM25Retriever.from_defaults(nodes=get_leaf_nodes(parts), similarity_top_k=100)
    before = AutoMergingRetriever(leaves, context).retrieve("cat sleeps eats runs")
    assert leaves.sync(context.docstore) == ([], [], [])
    assert AutoMergingRetriever(leaves, context).retrieve("cat sleeps eats runs") == before
    assert any(each.node.child_nodes for each in before), "nothing was merged"
