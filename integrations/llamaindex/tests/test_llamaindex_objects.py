"""Index nodes lead to objects while the index holds them; classes are found, or done without."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import Document, IndexNode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.retrievers.bm25rag import BM25Retriever
from llamaindex_nodes import Paragraph, node

from bm25rag import BM25Index


def reaching(name: str) -> BM25Retriever:
    return BM25Retriever([node(name, "animals and plants")])


def about(index_id: str = "animals", id: str = "i", obj: object = None) -> IndexNode:
    return IndexNode(id_=id, index_id=index_id, text="about animals", obj=obj)


def ids(retriever: BM25Retriever) -> list[str]:
    node_ids = [each.node_id for each in retriever.retrieve("animals")]
    assert [each.node_id for each in asyncio.run(retriever.aretrieve("animals"))] == node_ids
    return node_ids


def reloaded(retriever: BM25Retriever, folder: Path) -> BM25Retriever:
    retriever.persist(folder)
    return BM25Retriever.from_persist_dir(folder)


# --- the objects of index nodes ---------------------------------------------------------


def test_a_replaced_index_node_answers_no_more(tmp_path: Path) -> None:
    retriever = BM25Retriever([about(obj=reaching("old"))])
    assert ids(retriever) == ["old"]
    retriever.add_nodes([about("plants", obj=reaching("new"))])
    assert ids(retriever) == ["new"]
    assert list(retriever.object_map) == ["plants"]
    retriever.add_nodes([about("animals")])
    assert ids(retriever) == ["i"], "the object of the node that was replaced answers"
    assert retriever.object_map == {}
    assert ids(reloaded(retriever, tmp_path)) == ["i"]


@pytest.mark.parametrize("way", ["nodes", "filters", "ref_doc", "clear", "sync", "core"])
def test_a_deleted_index_node_does_not_prevent_loading(way: str, tmp_path: Path) -> None:
    gone = about(obj=reaching("x")).model_copy(update={"metadata": {"kind": "index"}})
    retriever = BM25Retriever([gone, node("animal", "animals", "source")])
    match way:
        case "nodes":
            retriever.delete_nodes(["i"])
        case "filters":
            from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

            index_nodes = MetadataFilter(key="kind", value="index")
            retriever.delete_nodes(filters=MetadataFilters(filters=[index_nodes]))
        case "ref_doc":
            retriever.add_nodes([node("i", "animals", "source")])
            retriever.delete_ref_doc("source")
        case "clear":
            retriever.clear()
        case "sync":
            retriever.sync(SimpleDocumentStore())
        case "core":
            retriever.bm25.delete(["i"])
    assert retriever.object_map == {}
    assert "i" not in ids(reloaded(retriever, tmp_path))


@pytest.mark.parametrize("way", ["retriever", "core"])
def test_an_index_node_that_others_replaced_answers_no_more(way: str, tmp_path: Path) -> None:
    retriever = BM25Retriever([about(obj=reaching("old"))])
    plain = IndexNode(id_="i", index_id="animals", text="more about animals")
    if way == "retriever":
        BM25Retriever(existing_bm25=retriever.bm25).add_nodes([plain])
    else:
        retriever.bm25.delete(["i"])
        BM25Retriever(existing_bm25=retriever.bm25).add_nodes([about(id="other")])
    replaced = "i" if way == "retriever" else "other"
    assert ids(retriever) == [replaced]
    (returned,) = retriever.get_nodes()
    assert isinstance(returned, IndexNode)
    assert returned.obj is None
    assert retriever.object_map == {}
    assert ids(reloaded(retriever, tmp_path)) == [replaced]


def test_an_object_that_others_replaced_gives_way_to_what_was_given() -> None:
    given = {"animals": reaching("given")}
    retriever = BM25Retriever([about(obj=reaching("own"))], object_map=given)
    plain = IndexNode(id_="i", index_id="animals", text="more about animals")
    BM25Retriever(existing_bm25=retriever.bm25).add_nodes([plain])
    assert ids(retriever) == ["given"]


def test_an_object_stays_while_another_node_leads_to_it(tmp_path: Path) -> None:
    target = reaching("target")
    retriever = BM25Retriever([about(id="one", obj=target), about(id="two", obj=target)])
    retriever.delete_nodes(["one"])
    assert ids(retriever) == ["target"]
    with pytest.raises(ValueError, match=r"index nodes \['animals'\] were not saved"):
        reloaded(retriever, tmp_path)


def test_the_object_of_the_node_that_is_left_answers() -> None:
    one, two = about(id="one", obj=reaching("first")), about(id="two", obj=reaching("second"))
    retriever = BM25Retriever([one, two])
    retriever.delete_nodes(["two"])
    assert ids(retriever) == ["first"]


def test_what_was_given_by_index_id_stays_when_a_node_with_an_object_goes() -> None:
    given = {"animals": reaching("given")}
    retriever = BM25Retriever([about(obj=reaching("own"))], object_map=given)
    assert ids(retriever) == ["own"]
    retriever.add_nodes([about()])
    assert ids(retriever) == ["given"]


def test_objects_that_no_node_leads_to_are_not_asked_for(tmp_path: Path) -> None:
    retriever = BM25Retriever(
        [about(), node("n", "animals")], object_map={"animals": reaching("a"), "other": 1}
    )
    with pytest.raises(ValueError, match=r"index nodes \['animals'\] were not saved"):
        reloaded(retriever, tmp_path)
    writer = BM25Index.open(tmp_path, mode="w")
    writer.delete(["i"])
    writer.commit()
    writer.close()
    assert ids(BM25Retriever.from_persist_dir(tmp_path)) == ["n"]


def test_objects_are_asked_for_even_if_metadata_were_written_through_the_core(
    tmp_path: Path,
) -> None:
    retriever = BM25Retriever([about(obj=reaching("a"))])
    retriever.bm25.update_metadata(["i"], [{"year": 2024}])
    assert ids(retriever) == ["a"]
    with pytest.raises(ValueError, match=r"index nodes \['animals'\] were not saved"):
        reloaded(retriever, tmp_path)


def test_the_objects_of_an_index_are_those_of_its_retriever() -> None:
    target = node("target", "reached")
    index = VectorStoreIndex(objects=[about(obj=target)], embed_model=MockEmbedding(embed_dim=3))
    dense = index.as_retriever()
    assert [each.node_id for each in dense.retrieve("animals")] == ["target"]
    assert ids(BM25Retriever.from_defaults(index=index)) == ["target"]
    other = {"animals": node("other", "x")}
    assert ids(BM25Retriever.from_defaults(index=index, object_map=other)) == ["other"]


def test_objects_and_a_map_of_them_are_both_taken() -> None:
    nodes = [about("animals", "a"), about("plants", "p")]
    given = about("plants", obj=node("plant", "a plant"))
    retriever = BM25Retriever.from_defaults(
        nodes=nodes, objects=[given], object_map={"animals": node("animal", "an animal")}
    )
    assert sorted(ids(retriever)) == ["animal", "plant"]


def test_an_empty_retriever_is_an_object_too() -> None:
    """What has no nodes is false in Python, and LlamaIndex asks ``node.obj or ...``."""
    inner = BM25Retriever([])
    outer = BM25Retriever([about(obj=inner)])
    assert ids(outer) == []
    inner.add_nodes([node("later", "animals")])
    assert ids(outer) == ["later"]


def test_nodes_that_are_returned_have_their_objects() -> None:
    target = reaching("target")
    retriever = BM25Retriever([about(obj=target)])
    (returned,) = retriever.get_nodes()
    assert isinstance(returned, IndexNode)
    assert returned.obj is target


def test_an_engine_may_be_the_object() -> None:
    engine = RetrieverQueryEngine.from_args(reaching("deep"), llm=MockLLM())
    (scored,) = BM25Retriever([about(obj=engine)]).retrieve("animals")
    assert "animals and plants" in scored.text


def test_a_document_as_object_has_a_text() -> None:
    target = Document(id_="target", text="reached")
    (scored,) = BM25Retriever([about(obj=target)]).retrieve("animals")
    assert (scored.node_id, scored.text) == ("target", "reached")


# --- classes ------------------------------------------------------------------------------


def forget_class(folder: Path, name: str) -> None:
    index = BM25Index.open(folder, mode="w")
    documents = index.get(index.ids())
    for document in documents:
        assert document.payload is not None
        document.payload = document.payload.replace(b"llamaindex_nodes.Paragraph", name.encode())
    index.add_documents(documents, on_duplicate="replace")
    index.commit()
    index.close()


def test_a_class_that_is_not_imported_becomes_a_text_node_with_a_warning(tmp_path: Path) -> None:
    given = Paragraph(id_="p", text="one animal", number=3, metadata={"year": 2024})
    BM25Retriever([given]).persist(tmp_path)
    forget_class(tmp_path, "their.module.Chapter")
    retriever = BM25Retriever.from_persist_dir(tmp_path)
    with pytest.warns(UserWarning, match=r"node 'p' was stored as their\.module\.Chapter"):
        (scored,) = retriever.retrieve("animal")
    assert scored.node == TextNode(id_="p", text="one animal", metadata={"year": 2024})

    class Chapter(Paragraph):
        """Imported at last."""

    Chapter.__module__, Chapter.__qualname__ = "their.module", "Chapter"
    (scored,) = retriever.retrieve("animal")
    assert scored.node == Chapter(**given.model_dump())


def test_the_class_of_a_deleted_node_prevents_neither_loading_nor_pickling(tmp_path: Path) -> None:
    class Local(TextNode):
        """A class that no other module can import."""

    retriever = BM25Retriever([Local(id_="gone", text="animal"), node("n", "animals")])
    assert type(retriever.get_nodes(["gone"])[0]) is Local
    retriever.delete_nodes(["gone"])
    del Local
    assert ids(reloaded(retriever, tmp_path)) == ["n"]
    assert ids(pickle.loads(pickle.dumps(retriever))) == ["n"]
