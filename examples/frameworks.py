"""One question through each framework: LangChain, LlamaIndex and Haystack, on the same passages.

    make demo  # or pip install . ./integrations/langchain ./integrations/llamaindex ...
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


def haystack(passages: list[Document], question: str) -> Found:
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
    from haystack import Document
    from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
    from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

    store = BM25DocumentStore()
    store.write_documents([Document(id=passage.id, content=passage.text) for passage in passages])
    found = BM25Retriever(store, top_k=3).run(question)["documents"]
    return [(document.id, document.score or 0.0) for document in found]


def main() -> None:
    question = " ".join(sys.argv[1:]) or "How are dates compared in a filter?"
    passages = read_pages()
    headings = {passage.id: passage.metadata["heading"] for passage in passages}
    print(f"{question}\n({len(passages)} passages of this project's own pages)")
    answers = []
    for name, ask in (("LangChain", langchain), ("LlamaIndex", llamaindex), ("Haystack", haystack)):
        answers.append(ask(passages, question))
        print(f"\n{name}")
        for id, score in answers[-1]:
            print(f"  {score:7.3f}  {id:<24}{headings[id]}")
    if any(answer != answers[0] for answer in answers):
        sys.exit("the three differ, and must not")
    print("\nThe same core answers in all three: ids and scores are equal, to the last bit.")


if __name__ == "__main__":
    main()
