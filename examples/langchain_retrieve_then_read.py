"""Retrieve, then read: ask this repository's own documentation, with LangChain.

    pip install . "./integrations/langchain[examples]"
    python examples/langchain_retrieve_then_read.py "How are dates compared in a filter?"

A chat model behind any OpenAI-compatible endpoint answers if OPENAI_BASE_URL or OPENAI_API_KEY
is set (OPENAI_MODEL names the model). Without one an extractive reader quotes the sentences that
match the question best: no model, no network.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from langchain_bm25rag import BM25Retriever
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_text_splitters import MarkdownTextSplitter

ROOT = Path(__file__).parents[1]
PROMPT = ChatPromptTemplate.from_template(
    "Answer briefly and from the context alone.\n\nContext:\n{context}\n\nQuestion: {question}"
)


def load() -> list[Document]:
    """Read this repository's pages and split them into passages with ids."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    splitter = MarkdownTextSplitter(chunk_size=800, chunk_overlap=0, add_start_index=True)
    passages = splitter.create_documents(
        [path.read_text("utf-8") for path in paths], [{"source": path.name} for path in paths]
    )
    for passage in passages:
        passage.id = "{source}#{start_index}".format(**passage.metadata)
    return passages


def join(found: dict[str, Any]) -> str:
    """Join the documents that were found."""
    return "\n\n".join(document.page_content for document in found["documents"])


def quote(found: dict[str, Any]) -> str:
    """Answer with the two sentences that match the question best."""
    text = re.sub(r"(?m)^#.*$", "", join(found))  # headings answer nothing
    sentences = re.split(r"(?<=[.!?])\s+|\n\s*\n", text)
    best = BM25Retriever.from_texts(sentences, k=2).invoke(found["question"])
    return "\n".join(sentence.page_content for sentence in best) or "Nothing found."


def make_reader() -> tuple[str, Runnable[dict[str, Any], str]]:
    """Choose who answers, and say who it is."""
    if not {"OPENAI_BASE_URL", "OPENAI_API_KEY"} & os.environ.keys():
        return "extractive reader, no language model: quoted sentences", RunnableLambda(quote)
    from langchain_openai import ChatOpenAI

    name = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    os.environ.setdefault("OPENAI_API_KEY", "a local endpoint needs none")
    model = ChatOpenAI(model=name)
    return name, RunnablePassthrough.assign(context=join) | PROMPT | model | StrOutputParser()


if __name__ == "__main__":
    question = " ".join(sys.argv[1:]) or "How are dates compared in a filter?"
    retriever = BM25Retriever.from_documents(load(), k=4, score_key="score")
    name, reader = make_reader()
    search = RunnableParallel(documents=retriever, question=RunnablePassthrough())
    result = (search | RunnablePassthrough.assign(answer=reader)).invoke(question)
    print(f"{question}\n\n{result['answer']}\n\n({name})\nSources:")
    for document in result["documents"]:
        print(f"  {document.metadata['score']:6.3f}  {document.id}")
