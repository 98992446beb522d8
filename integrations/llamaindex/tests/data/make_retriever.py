"""Make a folder of a retriever for the tests of later versions.

With llama-index-retrievers-bm25rag of the version in question, from the folder above:

    python data/make_retriever.py data/retriever-VERSION
"""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from llama_index.core.schema import Document, IndexNode, MetadataMode, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever
from llamaindex_nodes import Paragraph, node

NODES = [
    node("cat", "A cat sat on the mat", "pets", year=2019, tags=["a", "b"]),
    node("dog", "Dogs chase cats", "pets", year=2021, seen=date(2024, 5, 1)),
    node("cow", "A cow eats grass", year=2024, seen=datetime(2024, 5, 1, 12, tzinfo=UTC)),
    Document(id_="farm", text="A farm has cows and cats", metadata={"year": 2020}),
    Paragraph(id_="hen", text="A hen lays eggs", number=3),
    IndexNode(
        id_="about",
        index_id="animals",
        text="About animals",
        obj=TextNode(id_="lion", text="Lions"),
    ),
    IndexNode(
        id_="live",
        index_id="retriever",
        text="About plants",
        obj=BM25Retriever([node("oak", "Plants such as oaks")]),
    ),
    IndexNode(id_="gone", index_id="deleted", text="About nothing", obj=BM25Retriever([])),
]

retriever = BM25Retriever(
    NODES,
    similarity_top_k=5,
    metadata_mode=MetadataMode.NONE,
    filters=MetadataFilters(filters=[MetadataFilter(key="year", value=1999, operator="!=")]),
)
retriever.delete_nodes(["gone"])
retriever.persist(sys.argv[1])
