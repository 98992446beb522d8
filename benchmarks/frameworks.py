"""Each framework in a process of its own: our adapter, theirs, and one that does nothing.

Frameworks are imported where they are used, so that one that is missing costs its own rows only.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.corpora import SCIFACT
from benchmarks.workers import Figure
from bm25rag import BM25Index
from bm25rag.evaluation.timing import one_by_one

K = 10
_SLOW = 10  # queries that the frameworks' own retrievers get, at milliseconds each
Call = Callable[[str], object]


class Framework(ABC):
    """SciFact in the retrievers of a framework."""

    def __init__(self) -> None:
        texts = SCIFACT.texts()
        self._questions = SCIFACT.questions()[:100]
        index = BM25Index.from_texts(texts)
        self._calls: dict[str, Call] = {"core alone": lambda query: index.search(query, K)}
        warnings.simplefilter("ignore")
        self._calls.update(self.calls(texts))

    @abstractmethod
    def calls(self, texts: list[str]) -> dict[str, Call]:
        """Return what takes a question: "nothing", "ours", and "theirs" where it is installed."""

    def measure(self, rounds: int) -> dict[str, Figure]:
        """Time all by turns: the median over the questions of a round, in microseconds."""
        found: dict[str, list[float]] = {name: [] for name in self._calls}
        for turn in range(-1, rounds):
            for name, call in self._calls.items():
                asked = self._questions[: _SLOW if name == "theirs" else None]
                if turn >= 0:
                    found[name].append(_typical(call, asked))
                else:
                    _typical(call, asked)
        return {name: Figure(median(own), own) for name, own in found.items()}


def _typical(call: Call, questions: list[str]) -> float:
    return median(one_by_one(call, questions, 0)) * 1e6


class LangChain(Framework):
    """``invoke``."""

    def calls(self, texts: list[str]) -> dict[str, Call]:
        from langchain_bm25rag import BM25Retriever
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever

        class Nothing(BaseRetriever):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                return [Document(page_content=text, metadata={}) for text in texts[:K]]

        found = {
            "nothing": Nothing().invoke,
            "ours": BM25Retriever.from_index(BM25Index.from_texts(texts), k=K).invoke,
        }
        try:
            import rank_bm25  # noqa: F401 - what theirs needs
            from langchain_community.retrievers import BM25Retriever as Theirs
        except ImportError:
            return found
        return {**found, "theirs": Theirs.from_texts(texts, k=K).invoke}


class LlamaIndex(Framework):
    """``retrieve``."""

    def calls(self, texts: list[str]) -> dict[str, Call]:
        from llama_index.core.base.base_retriever import BaseRetriever
        from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
        from llama_index.retrievers.bm25rag import BM25Retriever

        class Nothing(BaseRetriever):
            def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
                return [NodeWithScore(node=TextNode(text=text), score=1.0) for text in texts[:K]]

        nodes = [TextNode(text=text) for text in texts]
        found = {
            "nothing": Nothing().retrieve,
            "ours": BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=K).retrieve,
        }
        try:
            from llama_index.retrievers.bm25 import BM25Retriever as Theirs
        except ImportError:
            return found
        return {**found, "theirs": Theirs.from_defaults(nodes=nodes, similarity_top_k=K).retrieve}


class Haystack(Framework):
    """``run``."""

    def calls(self, texts: list[str]) -> dict[str, Call]:
        os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported
        from haystack import Document, component
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
        from haystack.document_stores.in_memory import InMemoryDocumentStore
        from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
        from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

        documents = [Document(content=text) for text in texts]
        names = [one.id for one in documents[:K]]

        @component
        class Nothing:
            @component.output_types(documents=list[Document])
            def run(self, query: str) -> dict[str, list[Document]]:
                pairs = zip(names, texts[:K], strict=True)
                return {"documents": [Document(id=id, content=text) for id, text in pairs]}

        ours, theirs = BM25DocumentStore(), InMemoryDocumentStore()
        ours.write_documents(documents)
        theirs.write_documents(documents)
        return {
            "nothing": Nothing().run,
            "ours": BM25Retriever(ours, top_k=K).run,
            "theirs": InMemoryBM25Retriever(theirs, top_k=K).run,
        }
