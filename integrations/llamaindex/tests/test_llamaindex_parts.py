"""Questions with parts: ``bm25rag.Query``, and texts that are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.vector_stores.bm25rag import BM25VectorStore

from bm25rag import Query

TEXTS = {"york": "York is old.", "new": "New York is new.", "old": "A new and old york."}
QUERY = Query("old", phrases=["new york"])


def nodes() -> list[TextNode]:
    return [TextNode(id_=id, text=text, embedding=[1.0]) for id, text in TEXTS.items()]


def ids(scored: list[NodeWithScore]) -> list[str]:
    return [one.node.node_id for one in scored]


def test_retrievers_take_queries_and_parse_texts_if_told_to(tmp_path: Path) -> None:
    retriever = BM25Retriever(nodes(), similarity_top_k=3)
    assert ids(retriever.search(QUERY)) == ["new"]
    assert len(retriever.retrieve('"new york" old')) == 3
    assert ids(retriever.search('"new york" old', parse_query=True)) == ["new"]
    parsing = BM25Retriever(nodes(), parse_query=True)
    parsing.persist(tmp_path)
    for each in (parsing, BM25Retriever.from_persist_dir(tmp_path)):
        assert ids(each.retrieve("york -new")) == ["york"]
    with pytest.raises(TypeError, match="parse_query must be True or False"):
        BM25Retriever(nodes(), parse_query="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('-"new york" +york', {"york", "old"}),
        ("york -new", {"york"}),
        ('"is new" yrok', {"new"}),
        ("+yrok -old", {"new"}),
    ],
)
@pytest.mark.parametrize("mode", ["text_search", "hybrid", "default", "sparse"])
@pytest.mark.parametrize("keeps_text", [True, False])
def test_all_that_a_store_finds_passes_the_parts(
    mode: str, keeps_text: bool, text: str, expected: set[str]
) -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> Any:
        asked.extend(texts)
        return [[1]] * len(texts), [[1.0]] * len(texts)

    options: dict[str, Any] = {"sparse_doc_fn": encode, "sparse_query_fn": encode}
    if keeps_text:
        options = {"dense": SimpleVectorStore(stores_text=True)}
    store = BM25VectorStore(**options)
    store.add(nodes())
    asked.clear()
    corrects = mode in ("text_search", "hybrid")
    if "yrok" in text and not corrects:
        text = text.replace("yrok", "york")
    if not keeps_text and mode == "default":
        mode = "text_search"
    query = VectorStoreQuery([1.0], 3, query_str=text, mode=VectorStoreQueryMode(mode))
    result = store.query(query, parse_query=True, correct=corrects)
    assert set(result.ids or ()) == expected
    assert all("-" not in one and '"' not in one for one in asked)
