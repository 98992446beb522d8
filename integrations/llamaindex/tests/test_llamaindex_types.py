"""What annotations say, as ``make types-llamaindex`` checks it here."""

from __future__ import annotations

import asyncio
from typing import assert_type

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.retrievers.bm25rag import BM25Retriever

from bm25rag import Query


def test_a_question_may_be_terms_weights_or_parts() -> None:
    nodes: list[TextNode] = [TextNode(text="A cat.")]
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=5)
    found = retriever.search(Query("cats"), similarity_top_k=1)
    assert_type(found, list[NodeWithScore])
    assert found == retriever.search(["cat"]) == retriever.search({"cat": 1.0})
    assert found == asyncio.run(retriever.asearch(Query("cats")))
