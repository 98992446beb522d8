"""One question through each framework: LangChain, LlamaIndex and Haystack, on the same passages.

    make demo  # or pip install . ./integrations/langchain ./integrations/llamaindex \
               # ./integrations/haystack
    python examples/frameworks.py "How are dates compared in a filter?"

The passages are this repository's own pages, split at their headings. Nothing is downloaded.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from bm25rag import Document
from bm25rag.readers import read_passages

ROOT = Path(__file__).parents[1]
Found = list[tuple[str, float]]
"""Ids and scores, best first."""


def read_pages() -> list[Document]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        replace(passage, id=f"{page.name}#{number}")
        for page in pages
        for number, passage in enumerate(read_passages(page), start=1)
    ]


def langchain(passages: list[Document], question: str) -> Found:
    from langchain_bm25rag import BM25Retriever

    texts, ids = [passage.text or "" for passage in passages], [passage.id for passage in passages]
    found = BM25Retriever.from_texts(texts, ids=ids, k=3, score_key="score").invoke(question)
    return [(document.id or "", document.metadata["score"]) for document in found]


def llamaindex(passages: list[Document], question: str) -> Found:
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25rag import BM25Retriever

    nodes = [TextNode(id_=passage.id, text=passage.text or "") for passage in passages]
    found = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3).retrieve(question)
    return [(each.node.node_id, each.score or 0.0) for each in found]


def haystack(passages: list[Document], question: str, own: bool = False) -> Found:
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
    from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

    store = InMemoryDocumentStore() if own else BM25DocumentStore()
    store.write_documents([Document(id=passage.id, content=passage.text) for passage in passages])
    retriever = (InMemoryBM25Retriever if own else BM25Retriever)(store, top_k=3)
    return [(found.id, found.score or 0.0) for found in retriever.run(question)["documents"]]


question = " ".join(sys.argv[1:]) or "How are dates compared in a filter?"
passages = read_pages()
headings = {passage.id: passage.metadata["heading"] for passage in passages}
answers = {ask.__name__: ask(passages, question) for ask in (langchain, llamaindex, haystack)}
if any(answer != answers["haystack"] for answer in answers.values()):
    sys.exit(f"the three differ, and must not: {answers}")
answers["Haystack's own InMemoryBM25Retriever"] = haystack(passages, question, own=True)
print(f"{question}\n({len(passages)} passages of this project's own pages)")
for name, answer in answers.items():
    print(f"\n{name}")
    for id, score in answer:
        print(f"  {score:7.3f}  {id:<26}{headings[id]}")
    if name == "haystack":
        print("\nThe same core answers in all three: ids and scores are equal, to the last bit.")
