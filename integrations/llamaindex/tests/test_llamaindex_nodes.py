"""Every node is returned as it was given."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    MetadataMode,
    NodeWithScore,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever
from llamaindex_nodes import NODES, node, related

from bm25rag.errors import MetadataError


@pytest.mark.parametrize("mode", list(MetadataMode))
@pytest.mark.parametrize("given", NODES.values(), ids=NODES)
def test_a_node_comes_back_as_it_was(given: BaseNode, mode: MetadataMode) -> None:
    expected = given.model_copy(deep=True)
    retriever = BM25Retriever.from_defaults(nodes=[given], metadata_mode=mode, language=None)
    if "find" not in given.get_content(metadata_mode=mode):
        pytest.skip("there is nothing to find in this mode")
    ((returned, _),) = ((each.node, each.score) for each in retriever.retrieve("find"))
    assert type(returned) is type(given)
    assert returned == expected
    assert returned.hash == expected.hash
    assert given == expected, "the node that was given has changed"
    for other in MetadataMode:
        assert returned.get_content(metadata_mode=other) == expected.get_content(
            metadata_mode=other
        )


@pytest.mark.parametrize("metadata", [{}, {"n": 1}])
def test_found_nodes_are_like_those_that_llamaindex_makes(metadata: dict[str, Any]) -> None:
    """In every respect: what is set, pickles, copies and dumps; and they share nothing."""
    nodes = [TextNode(text=f"find {number}", metadata=metadata) for number in range(2)]
    first, second = BM25Retriever.from_defaults(nodes=nodes).retrieve("find")
    for scored in (first, second):
        node = scored.node
        bare = TextNode(id_=node.node_id, text=node.get_content(), metadata=node.metadata)
        made = NodeWithScore(node=bare, score=scored.score)
        for ours, theirs in ((scored, made), (node, bare)):
            assert ours == theirs
            assert repr(ours) == repr(theirs)
            assert ours.__getstate__().keys() == theirs.__getstate__().keys()
            assert ours.model_fields_set == theirs.model_fields_set
            assert [*vars(ours)] == [*vars(theirs)]
            assert ours.model_dump() == theirs.model_dump()
            assert pickle.loads(pickle.dumps(ours)) == ours.model_copy(deep=True) == theirs
    other = vars(second.node)
    shared = [name for name, value in vars(first.node).items() if value is other[name]]
    assert all(not isinstance(other[name], dict | list) for name in shared), shared


def test_nodes_of_several_kinds_come_back_again_and_again() -> None:
    nodes = {
        each.node_id: each
        for each in (
            TextNode(text="find nothing else"),
            TextNode(text="find it", metadata={"a": 1}),
            Document(text="find a document"),
            TextNode(text="find dates", metadata={"on": date(2024, 5, 1)}),
        )
    }
    retriever = BM25Retriever.from_defaults(nodes=[*nodes.values()], similarity_top_k=9)
    for _ in range(2):
        returned = [each.node for each in retriever.retrieve("find")]
        assert len(returned) == len(nodes)
        for one in returned:
            assert one == nodes[one.node_id]
            one.metadata["changed"] = True


def test_the_parts_of_a_splitter_come_back() -> None:
    text = " ".join(f"Cat and dog {number}." for number in range(80))
    document = Document(text=text, metadata={"file": "a.txt"})
    parts = SentenceSplitter(chunk_size=64, chunk_overlap=8).get_nodes_from_documents([document])
    retriever = BM25Retriever.from_defaults(nodes=parts, similarity_top_k=100)
    returned = {each.node.node_id: each.node for each in retriever.retrieve("cat dog")}
    assert returned == {part.node_id: part for part in parts}
    first = returned[parts[0].node_id]
    assert first.ref_doc_id == document.doc_id
    assert first.next_node is not None
    assert first.next_node.node_id == parts[1].node_id


def test_the_embedding_is_left_out() -> None:
    # As LlamaIndex's own stores do.
    retriever = BM25Retriever([TextNode(text="find", embedding=[0.5, 0.25])])
    assert retriever.retrieve("find")[0].node.embedding is None


def test_a_node_as_object_is_kept() -> None:
    target = node("target", "reached", year=2020)
    retriever = BM25Retriever([IndexNode(text="find", index_id="i", obj=target)])
    assert [each.node for each in retriever.retrieve("find")] == [target]
    assert retriever.object_map == {}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({1, 2}, "k"),
        (object(), "k"),
        (timedelta(1), "k"),
        ([1, {"x": b"bytes"}], "k.1.x"),
        ({1: 2}, "k"),
    ],
)
def test_metadata_that_cannot_be_stored_name_row_node_and_key(value: Any, place: str) -> None:
    good = node("good", "find")
    bad = TextNode(id_="bad one", text="x")
    bad.metadata["k"] = value
    retriever = BM25Retriever([])
    with pytest.raises(
        MetadataError, match=rf"^nodes\[1\]: metadata of node 'bad one' at '{place}'"
    ):
        retriever.add_nodes([good, bad])
    assert retriever.retrieve("find") == [], "all or none"


class Colour(Enum):
    """A member is stored as its value."""

    RED = "red"


@pytest.mark.parametrize(
    ("given", "returned", "matching"),
    [
        (("a", 2), ["a", 2], MetadataFilter(key="k", value="a", operator="contains")),
        (np.int64(3), 3, MetadataFilter(key="k", value=3)),
        (np.array([1.5, 2.5]), [1.5, 2.5], MetadataFilter(key="k", value=2.5, operator="contains")),
        (OrderedDict(a=1), {"a": 1}, MetadataFilter(key="k", value="a", operator="contains")),
        (Colour.RED, "red", MetadataFilter(key="k", value="red")),
        (UUID(int=1), str(UUID(int=1)), MetadataFilter(key="k", value=str(UUID(int=1)))),
        (PurePosixPath("a/b"), "a/b", MetadataFilter(key="k", value="a/b")),
        (
            np.datetime64("2024-05-01"),
            date(2024, 5, 1),
            MetadataFilter(key="k", value="2024-05-01"),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_metadata_of_loaders_are_stored_and_filtered(
    given: Any, returned: Any, matching: MetadataFilter
) -> None:
    document = Document(text="find this", metadata={"k": given})
    nodes = SentenceSplitter().get_nodes_from_documents([document])  # copies them to relationships
    retriever = BM25Retriever(nodes, filters=MetadataFilters(filters=[matching]))
    (scored,) = retriever.retrieve("find")
    assert scored.metadata == {"k": returned}
    assert type(scored.metadata["k"]) is type(returned)


def test_the_metadata_of_data_frames_are_stored_and_filtered() -> None:
    pandas = pytest.importorskip("pandas")
    metadata = {"at": pandas.Timestamp("2024-05-01T10:00:00Z"), "none": pandas.NaT, "x": np.nan}
    nodes = SentenceSplitter().get_nodes_from_documents([Document(text="find", metadata=metadata)])
    on_that_day = MetadataFilter(key="at", value="2024-05-01T10", operator="text_match")
    empty = MetadataFilter(key="none", value=None, operator="is_empty")
    retriever = BM25Retriever(nodes, filters=MetadataFilters(filters=[on_that_day, empty]))
    (returned,) = retriever.retrieve("find")
    assert returned.metadata["at"] == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert type(returned.metadata["at"]) is datetime
    assert returned.metadata["none"] is None
    assert returned.metadata["x"] != returned.metadata["x"]


def test_what_else_cannot_be_stored_names_row_node_and_place() -> None:
    bad = TextNode(id_="bad one", text="x", relationships=related())
    assert bad.source_node is not None
    bad.source_node.metadata["k"] = object()
    with pytest.raises(
        MetadataError, match=r"^nodes\[0\]: .*'bad one' at 'relationships.SOURCE.metadata.k'"
    ):
        BM25Retriever([bad])


@pytest.mark.parametrize("known", [False, True])
def test_what_a_document_store_holds_and_cannot_be_stored_is_named_as_a_node(known: bool) -> None:
    retriever = BM25Retriever([node("bad one", "x")] if known else [])
    docstore = SimpleDocumentStore()
    docstore.add_documents([node("bad one", "x", __node__=1)])
    with pytest.raises(MetadataError, match="metadata of node 'bad one' at '__node__'") as raised:
        retriever.sync(docstore)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_reserved_key_is_refused() -> None:
    with pytest.raises(MetadataError, match="'n' at '__node__': the key is reserved"):
        BM25Retriever([node("n", "x", __node__=1)])


def test_a_lone_surrogate_comes_back() -> None:
    """In text that is indexed, and in text that only the payload has."""
    for template in ("{metadata_str} {content}", "{metadata_str}"):
        given = TextNode(text="a \ud800 b", metadata={"x": "find"}, text_template=template)
        (returned,) = BM25Retriever([given]).retrieve("find")
        assert returned.node == given
