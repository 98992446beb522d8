"""Load, split, index, and ask in several wordings: LangChain's MultiQueryRetriever over BM25.

    pip install . "./integrations/langchain[examples]"
    python examples/langchain_multi_query.py "How do I undo changes that are not saved?"

A chat model behind any OpenAI-compatible endpoint rewords the question if OPENAI_BASE_URL or
OPENAI_API_KEY is set (OPENAI_MODEL names the model). Without one a stand-in takes the question
apart: no model, no network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from langchain_bm25rag import BM25Retriever
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_text_splitters import RecursiveCharacterTextSplitter

ROOT = Path(__file__).parents[1]


class PageLoader(BaseLoader):
    """Loads this repository's pages."""

    def lazy_load(self) -> Iterator[Document]:
        """Yield a document for each page."""
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            yield Document(path.read_text("utf-8"), metadata={"source": path.relative_to(ROOT)})


def make_model(question: str) -> tuple[str, BaseChatModel]:
    """Choose who rewords the question, and say who it is."""
    if not {"OPENAI_BASE_URL", "OPENAI_API_KEY"} & os.environ.keys():
        words = question.rstrip("?").split()
        half = len(words) // 2
        parts = [" ".join(part) for part in (words[:half], words[half:], words[half // 2 :])]
        return "no language model: parts of the question", FakeListChatModel(
            responses=["\n".join(parts)]
        )
    from langchain_openai import ChatOpenAI

    name = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    os.environ.setdefault("OPENAI_API_KEY", "a local endpoint needs none")
    return name, ChatOpenAI(model=name)


if __name__ == "__main__":
    question = " ".join(sys.argv[1:]) or "How do I undo changes that are not saved?"
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=800, chunk_overlap=100, add_start_index=True
    )
    passages = splitter.split_documents(PageLoader().load())
    retriever = BM25Retriever.from_documents(passages, k=3)
    name, model = make_model(question)
    several = MultiQueryRetriever.from_llm(retriever, model, include_original=True)
    print(f"{question}\n({name})")
    for title, asked in [("one question", retriever), ("several", several)]:
        print(f"\n{title}")
        for document in asked.invoke(question):
            print("  {source} from {start_index}".format(**document.metadata))
