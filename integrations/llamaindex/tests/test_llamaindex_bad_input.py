"""An error names what was given, what is expected and what to give, in LlamaIndex's words."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import SummaryIndex
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.retrievers.bm25rag import BM25Retriever

from bm25rag import BM25Index, Document
from bm25rag.errors import CorruptIndexError, MetadataError

TEXT = TextNode(id_="a", text="x")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (TEXT, "nodes must be an iterable of nodes, got TextNode; put it into a list"),
        ({"a": TEXT}, r"nodes must be an iterable of nodes, got dict; give its values\(\)"),
        ("text", "nodes must be an iterable of nodes, got str"),
        (["text"], r"nodes\[0\] must be a BaseNode, got str; give TextNode\(text="),
        ([NodeWithScore(node=TEXT)], r"nodes\[0\] must be .* NodeWithScore; give its \.node"),
    ],
)
def test_what_are_no_nodes_is_named_with_what_to_give(nodes: Any, message: str) -> None:
    retriever = BM25Retriever([])
    for attempt in (
        lambda: BM25Retriever(nodes),
        lambda: BM25Retriever.from_defaults(nodes=nodes),
        lambda: retriever.add_nodes(nodes),
    ):
        with pytest.raises(TypeError, match=message):
            attempt()


@pytest.mark.parametrize(
    ("docstore", "message"),
    [
        (SummaryIndex([TEXT]), r"got SummaryIndex; give its \.docstore"),
        ([TEXT], "docstore must be a document store of LlamaIndex, got list"),
    ],
)
def test_what_is_no_document_store_is_named_with_what_to_give(docstore: Any, message: str) -> None:
    for attempt in (BM25Retriever([]).sync, lambda x: BM25Retriever.from_defaults(docstore=x)):
        with pytest.raises(TypeError, match=message):
            attempt(docstore)


def test_what_is_no_index_is_named() -> None:
    with pytest.raises(TypeError, match="index must be an index of LlamaIndex, got BM25Index"):
        BM25Retriever.from_defaults(index=BM25Index())  # type: ignore[arg-type]  # the point


def test_node_ids_are_asked_for_by_name() -> None:
    with pytest.raises(TypeError, match=r"node_ids\[0\] must be a str, got TextNode"):
        BM25Retriever([TEXT]).delete_nodes([TEXT])  # type: ignore[list-item]  # the point


def test_stop_words_as_language_are_refused_with_the_way() -> None:
    with pytest.raises(TypeError, match=r"got list; .*Analyzer\(stopwords=words\)"):
        BM25Retriever([], language=["the"])  # type: ignore[arg-type]  # what bm25s takes


def test_bytes_in_metadata_have_a_place_in_a_node() -> None:
    with pytest.raises(MetadataError, match="decode it, or keep it in a MediaResource of the node"):
        BM25Retriever([TextNode(text="x", metadata={"k": b"bytes"})])


@pytest.mark.parametrize(
    "payload",
    [
        b'{"llama_index":',
        b'{"llama_index":[]}',
        b'{"llama_index":{}}',
        b'{"llama_index":{"node":1}}',
        b'{"llama_index":{"node":{},"at":["x"]}}',
        b'{"llama_index":{"node":{},"text":1}}',
        b'{"llama_index":{"node":{"relationships":[]},"text":"x"}}',
        b'{"llama_index":{"node":{},"text":"x","class":"llama_index.core.schema.IndexNode"}}',
        b'{"llama_index":{"node":{},"text":"x","dates":"["}}',
        b'{"llama_index":' + b"[" * 100_000,
    ],
)
def test_a_forged_payload_is_named(payload: bytes) -> None:
    index = BM25Index()
    index.add_documents([Document("bad", "find", {}, payload)])
    retriever = BM25Retriever(existing_bm25=index)
    with pytest.raises(CorruptIndexError, match=r"node 'bad'|stored metadata"):
        retriever.retrieve("find")


def test_a_repr_says_what_it_is() -> None:
    shown = repr(BM25Retriever([TEXT], similarity_top_k=3))
    assert shown.startswith("BM25Retriever(1 node, similarity_top_k=3, bm25=BM25Index(1 document")


def test_an_option_that_no_search_takes_is_named_with_those_there_are() -> None:
    retriever = BM25Retriever([TextNode(text="A cat.")])
    message = r"^a search takes similarity_top_k, filters, .*decay, got top_k$"
    with pytest.raises(TypeError, match=message):
        retriever.search("cats", top_k=3)  # type: ignore[call-arg]
