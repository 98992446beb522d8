"""Every node comes back as it was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    MetadataMode,
    TextNode,
)
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
    ((found, _),) = ((each.node, each.score) for each in retriever.retrieve("find"))
    assert type(found) is type(given)
    assert found == expected
    assert found.hash == expected.hash
    assert given == expected, "the node that was given has changed"
    for other in MetadataMode:
        assert found.get_content(metadata_mode=other) == expected.get_content(metadata_mode=other)


def test_the_parts_of_a_splitter_come_back() -> None:
    text = " ".join(f"Cat and dog {number}." for number in range(80))
    document = Document(text=text, metadata={"file": "a.txt"})
    parts = SentenceSplitter(chunk_size=64, chunk_overlap=8).get_nodes_from_documents([document])
    retriever = BM25Retriever.from_defaults(nodes=parts, similarity_top_k=100)
    found = {each.node.node_id: each.node for each in retriever.retrieve("cat dog")}
    assert found == {part.node_id: part for part in parts}
    first = found[parts[0].node_id]
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
        ((1, 2), "k"),
        (np.float32(1), "k"),
        (np.zeros(2), "k"),
        (float("nan"), "k"),
        (object(), "k"),
        ([1, {"x": b"bytes"}], "k.1.x"),
        ({1: 2}, "k"),
    ],
)
def test_metadata_that_cannot_be_stored_name_node_and_key(value: Any, place: str) -> None:
    good = node("good", "find")
    bad = TextNode(id_="bad one", text="x")
    bad.metadata["k"] = value
    retriever = BM25Retriever([])
    with pytest.raises(MetadataError, match=f"'bad one' at '{place}'"):
        retriever.add_nodes([good, bad])
    assert retriever.retrieve("find") == [], "all or none"


def test_what_else_cannot_be_stored_names_the_node() -> None:
    bad = TextNode(id_="bad one", text="x", relationships=related())
    assert bad.source_node is not None
    bad.source_node.metadata["k"] = object()
    with pytest.raises(MetadataError, match="node 'bad one' cannot be stored"):
        BM25Retriever([bad])


def test_a_reserved_key_is_refused() -> None:
    with pytest.raises(MetadataError, match="'n' at '__node__': the key is reserved"):
        BM25Retriever([node("n", "x", __node__=1)])


def test_a_lone_surrogate_comes_back() -> None:
    """In text that is indexed, and in text that only the payload has."""
    for template in ("{metadata_str} {content}", "{metadata_str}"):
        given = TextNode(text="a \ud800 b", metadata={"x": "find"}, text_template=template)
        (found,) = BM25Retriever([given]).retrieve("find")
        assert found.node == given
