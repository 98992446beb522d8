"""sync: an index holds what a document store holds, node by node, in all that is kept of them."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.schema import BaseNode, Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.retrievers.bm25rag import BM25Retriever, SyncResult
from llamaindex_nodes import NODES, Paragraph, node

NOTHING = SyncResult([], [], [])


def store_of(*nodes: BaseNode) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    return docstore


def reread(docstore: SimpleDocumentStore, folder: Path) -> SimpleDocumentStore:
    docstore.persist(str(folder / "docstore.json"))
    return SimpleDocumentStore.from_persist_path(str(folder / "docstore.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"text": "other"},
        {"metadata": {"title": "other"}},
        {"metadata": {"n": 2, "title": "t"}},
        {"metadata": {"title": "t", "n": 1.0}},
        {"excluded_embed_metadata_keys": ["title"]},
        {"excluded_llm_metadata_keys": ["title"]},
        {"relationships": {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="other")}},
        {"relationships": {NodeRelationship.NEXT: RelatedNodeInfo(node_id="next")}},
        {"relationships": {}},
        {"metadata_template": "{key}={value}"},
        {"metadata_separator": ";"},
        {"text_template": "{content} {metadata_str}"},
        {"mimetype": "text/html"},
        {"start_char_idx": 3},
    ],
    ids=str,
)
def test_a_change_of_anything_that_is_kept_is_seen(change: dict[str, Any]) -> None:
    before = node("a", "find this", "source", title="t", n=1)
    other = node("b", "find that", "source")
    retriever = BM25Retriever([before, other], language=None)
    after = before.model_copy(update=change)
    if store_of(after).docs["a"] != after:
        pytest.skip("the document stores of this LlamaIndex lose it")
    assert retriever.sync(store_of(before, other)) == NOTHING
    assert retriever.sync(store_of(after, other)) == SyncResult([], ["a"], [])
    assert retriever.get_nodes(["a"]) == [after]
    assert retriever.sync(store_of(after, other)) == NOTHING


@pytest.mark.parametrize("kind", NODES)
def test_nothing_is_updated_if_nothing_has_changed(kind: str) -> None:
    given = NODES[kind]
    retriever = BM25Retriever([given])
    assert retriever.sync(store_of(given)) == NOTHING
    assert type(retriever.get_nodes()[0]) is type(given), "the class was lost"


def test_a_document_store_that_was_saved_differs_in_nothing(tmp_path: Path) -> None:
    document = Document(text="One cat. Two cats. " * 50, metadata={"span": (0, 3), "n": 1.5})
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=16).get_nodes_from_documents([document])
    retriever = BM25Retriever(nodes)
    assert retriever.sync(reread(store_of(*nodes), tmp_path)) == NOTHING


def test_a_date_that_changes_is_seen() -> None:
    retriever = BM25Retriever([node("a", "x", when=date(2024, 5, 1))])
    assert retriever.sync(store_of(node("a", "x", when=date(2024, 5, 1)))) == NOTHING
    assert retriever.sync(store_of(node("a", "x", when="2024-05-01"))).updated == ["a"]
    assert retriever.sync(store_of(node("a", "x", when=date(2024, 5, 2)))).updated == ["a"]


def test_what_was_changed_through_the_core_is_restored() -> None:
    given = node("a", "x", "source", year=2024)
    retriever = BM25Retriever([given])
    retriever.bm25.update_metadata(["a"], [{"year": 1999}])
    assert retriever.sync(store_of(given)).updated == ["a"]
    assert retriever.get_nodes() == [given]


def test_a_field_that_document_stores_forget_is_kept() -> None:
    given = Paragraph(id_="p", text="x", number=3)
    retriever = BM25Retriever([given])
    assert retriever.sync(store_of(given)) == NOTHING
    assert retriever.get_nodes() == [given]


def test_the_deleted_are_those_of_this_very_call() -> None:
    retriever = BM25Retriever([node(id, "x") for id in "abc"])
    assert retriever.sync(store_of(node("c", "x"))).deleted == ["a", "b"]


# --- document stores of whole documents -----------------------------------------------


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(id_=name, text=f"The {name} is here. It has {n} tails. " * 20)
        for n, name in enumerate(["cat", "dog"])
    ]


def pipeline_over(documents: list[Document]) -> tuple[IngestionPipeline, list[BaseNode]]:
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=16)],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
    )
    return pipeline, list(pipeline.run(documents=documents))


def test_the_document_store_of_a_pipeline_is_refused(documents: list[Document]) -> None:
    pipeline, nodes = pipeline_over(documents)
    retriever = BM25Retriever(nodes)
    with pytest.raises(ValueError, match=r"whole documents, such as 'cat'.*delete_ref_doc"):
        retriever.sync(pipeline.docstore)
    assert [each.node_id for each in retriever.get_nodes()] == [each.node_id for each in nodes]


def test_one_more_whole_document_is_refused_too(documents: list[Document]) -> None:
    _, nodes = pipeline_over(documents)
    retriever = BM25Retriever(nodes)
    with pytest.raises(ValueError, match="whole documents, such as 'owl'"):
        retriever.sync(store_of(Document(id_="owl", text="An owl.")))
    retriever.bm25.update_metadata(retriever.bm25.ids(), [{}] * len(nodes))  # drops the sources
    with pytest.raises(ValueError, match="whole documents"):
        retriever.sync(store_of(*documents))
    assert len(retriever) == len(nodes)


def test_the_way_out_works(documents: list[Document]) -> None:
    pipeline, nodes = pipeline_over(documents)
    chunks = store_of(*nodes)
    retriever = BM25Retriever(nodes)
    assert retriever.sync(chunks) == NOTHING

    changed = Document(id_="cat", text="The cat has left.")
    new = list(pipeline.run(documents=[changed]))
    chunks.delete_ref_doc("cat")
    chunks.add_documents(new)
    result = retriever.sync(chunks)
    assert result.added == [each.node_id for each in new]
    assert set(result.deleted) == {each.node_id for each in nodes if each.ref_doc_id == "cat"}
    assert {each.ref_doc_id for each in retriever.get_nodes()} == {"cat", "dog"}


def test_whole_documents_may_be_what_is_indexed(documents: list[Document]) -> None:
    retriever = BM25Retriever(documents)
    changed = Document(id_="cat", text="The cat has left.")
    docstore = store_of(changed, documents[1], Document(id_="owl", text="An owl."))
    assert retriever.sync(docstore) == SyncResult(["owl"], ["cat"], [])
    assert BM25Retriever([]).sync(store_of(*documents)).added == ["cat", "dog"]


# --- hierarchies --------------------------------------------------------------------------


@pytest.fixture
def tree(documents: list[Document]) -> list[BaseNode]:
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[128, 32], chunk_overlap=0)
    return parser.get_nodes_from_documents(documents)


def test_an_index_of_leaves_stays_one(tree: list[BaseNode]) -> None:
    leaves = get_leaf_nodes(tree)
    assert len(leaves) < len(tree)
    retriever = BM25Retriever(leaves)
    assert retriever.sync(store_of(*tree)) == NOTHING
    fewer = [each for each in tree if each.node_id != leaves[0].node_id]
    assert retriever.sync(store_of(*fewer)) == SyncResult([], [], [leaves[0].node_id])


def test_an_index_of_all_levels_stays_one(tree: list[BaseNode]) -> None:
    docstore = store_of(*tree)
    retriever = BM25Retriever.from_defaults(docstore=docstore)
    assert retriever.sync(docstore) == NOTHING
    assert len(retriever) == len(tree)


def test_a_parameter_says_whether_inner_nodes_are_held(tree: list[BaseNode]) -> None:
    docstore, leaves = store_of(*tree), get_leaf_nodes(tree)
    inner = {each.node_id for each in tree} - {each.node_id for each in leaves}
    retriever = BM25Retriever([])
    assert retriever.sync(docstore, inner_nodes=False).added == [one.node_id for one in leaves]
    assert set(retriever.sync(docstore, inner_nodes=True).added) == inner
    assert set(retriever.sync(docstore, inner_nodes=False).deleted) == inner


def test_documents_beside_their_own_nodes_are_inner_nodes(documents: list[Document]) -> None:
    """As in a storage context that a pipeline fills too."""
    _, nodes = pipeline_over(documents)
    retriever = BM25Retriever(nodes)
    assert retriever.sync(store_of(*documents, *nodes)) == NOTHING


def test_the_asynchronous_sync_does_the_same(nodes: list[TextNode]) -> None:
    retriever = BM25Retriever([])
    assert asyncio.run(retriever.async_sync(store_of(*nodes))).added == ["cat", "dog", "cow", "hen"]
    assert retriever.sync(store_of(*nodes)) == NOTHING
