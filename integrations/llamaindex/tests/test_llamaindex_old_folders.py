"""What version 0.1.0 persisted still loads and works.

``data/retriever-0.1.0`` was written by that version; ``data/make_retriever.py`` is how.
"""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import Document, IndexNode, MetadataMode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever, SyncResult
from llamaindex_nodes import Paragraph, node

from bm25rag import BM25Index

OLD = Path(__file__).parent / "data" / "retriever-0.1.0"
PLANTS = {"retriever": node("oak", "Plants such as oaks")}

CAT = node("cat", "A cat sat on the mat", "pets", year=2019, tags=["a", "b"])
DOG = node("dog", "Dogs chase cats", "pets", year=2021, seen=date(2024, 5, 1))
COW = node("cow", "A cow eats grass", year=2024, seen=datetime(2024, 5, 1, 12, tzinfo=UTC))


@pytest.fixture
def retriever(tmp_path: Path) -> BM25Retriever:
    folder = tmp_path / "old"
    shutil.copytree(OLD, folder)
    return BM25Retriever.from_persist_dir(folder, object_map=PLANTS)


def found(retriever: BM25Retriever, query: str, *filters: MetadataFilter) -> list[str]:
    wanted = MetadataFilters(filters=list(filters))
    return [each.node_id for each in retriever.search(query, filters=wanted)]


def test_its_nodes_come_back(retriever: BM25Retriever) -> None:
    assert retriever.get_nodes(["cat", "dog", "cow"]) == [CAT, DOG, COW]
    farm, hen = retriever.get_nodes(["farm", "hen"])
    assert farm == Document(id_="farm", text="A farm has cows and cats", metadata={"year": 2020})
    assert hen == Paragraph(id_="hen", text="A hen lays eggs", number=3)
    assert retriever.metadata_mode == MetadataMode.NONE
    assert retriever.similarity_top_k == 5
    assert retriever.filters is not None


def test_its_scores_are_the_same(retriever: BM25Retriever) -> None:
    texts = [each.text or "" for each in BM25Index.open(OLD).get(BM25Index.open(OLD).ids())]
    expected = BM25Index.from_texts(texts).search("cats cows")
    assert [one.score for one in retriever.retrieve("cats cows")] == [hit.score for hit in expected]


def test_objects_of_nodes_that_were_deleted_are_not_asked_for(retriever: BM25Retriever) -> None:
    assert found(retriever, "plants") == ["oak"]
    assert found(retriever, "animals") == ["lion"]
    with pytest.raises(ValueError, match=r"index nodes \['retriever'\] were not saved"):
        BM25Retriever.from_persist_dir(OLD)


@pytest.mark.parametrize(
    ("key", "operator", "value", "expected"),
    [
        ("seen", "==", "2024-05-01", {"dog"}),
        ("seen", "!=", "2024-05-01", {"cat", "cow", "farm"}),
        ("seen", ">", "2024-05", {"dog", "cow"}),
        ("seen", "text_match", "T12", {"cow"}),
        ("tags", "contains", "a", {"cat"}),
        ("ref_doc_id", "==", "pets", {"cat", "dog"}),
        ("doc_id", "!=", "pets", {"cow", "farm"}),
    ],
)
def test_filters_mean_the_same(
    retriever: BM25Retriever, key: str, operator: Any, value: str, expected: set[str]
) -> None:
    filter = MetadataFilter(key=key, operator=operator, value=value)
    assert set(found(retriever, "cats dogs cows", filter)) == expected


def test_it_can_be_changed_and_saved(retriever: BM25Retriever, tmp_path: Path) -> None:
    assert len(retriever.delete_ref_doc("pets")) == 2
    retriever.add_nodes([node("ox", "an ox and a cow", "farm", seen=date(2025, 1, 1))])
    retriever.persist(tmp_path / "new")
    again = BM25Retriever.from_persist_dir(tmp_path / "new", object_map=PLANTS)
    assert set(found(again, "cats cows")) == {"cow", "farm", "ox"}
    later = MetadataFilter(key="seen", operator=">", value="2024-06")
    assert found(again, "cow", later) == ["ox"]


def test_it_is_in_step_with_a_document_store_of_its_nodes(retriever: BM25Retriever) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents(
        [
            CAT,
            DOG,
            COW,
            Document(id_="farm", text="A farm has cows and cats", metadata={"year": 2020}),
            Paragraph(id_="hen", text="A hen lays eggs", number=3),
            IndexNode(
                id_="about",
                index_id="animals",
                text="About animals",
                obj=TextNode(id_="lion", text="Lions"),
            ),
            IndexNode(id_="live", index_id="retriever", text="About plants"),
        ]
    )
    assert retriever.sync(docstore) == SyncResult([], [], [])


def test_its_index_works_as_an_existing_one_if_it_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(OLD, folder)
    with pytest.raises(ValueError, match="from_persist_dir"):
        BM25Retriever(existing_bm25=BM25Index.open(folder))
    with BM25Index.open(folder, mode="w") as writer:
        retriever = BM25Retriever(existing_bm25=writer)
        assert retriever.metadata_mode == MetadataMode.NONE
        assert retriever.get_nodes(["dog"]) == [DOG]
        day = MetadataFilter(key="seen", operator="==", value="2024-05-01")
        assert found(retriever, "cats", day) == ["dog"]
    reader = BM25Retriever(existing_bm25=BM25Index.open(folder))
    assert found(reader, "cats", day) == ["dog"]
