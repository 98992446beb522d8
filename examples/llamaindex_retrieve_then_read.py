"""Retrieve, then read: ask the documentation of this project, with LlamaIndex.

    pip install . "./integrations/llamaindex[examples]"
    python examples/llamaindex_retrieve_then_read.py "Which documents does an empty set pass?"

OPENAI_BASE_URL names any OpenAI-compatible endpoint, OPENAI_MODEL its model and OPENAI_API_KEY
the key if it needs one (pip install llama-index-llms-openai-like). Without an endpoint an
extractive reader quotes the sentence nearest to the question: no model, no network.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from llama_index.core import PromptTemplate, SimpleDirectoryReader
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.llm import LLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.retrievers.bm25rag import BM25Retriever

ROOT = Path(__file__).parents[1]
PROMPT = PromptTemplate(
    "Answer from the context alone.\n---\n{context_str}\n---\nQuestion: {query_str}\nAnswer: "
)


class ExtractiveReader(CustomLLM):
    """Quotes the sentence of the context that shares most words with the question."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="extractive reader: no model, no network")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        _, context, rest = re.split(r"^---$", prompt, flags=re.MULTILINE, maxsplit=2)
        asked = set(re.findall(r"\w{3,}", rest.lower())) - {"question", "answer", "the", "what"}
        sentences = re.split(r"(?<=[.?!])\s+|\n", context)
        shared = [len(asked & set(re.findall(r"\w{3,}", each.lower()))) for each in sentences]
        return CompletionResponse(text=sentences[shared.index(max(shared))].strip())

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield self.complete(prompt)


def choose_llm() -> LLM:
    if not {"OPENAI_BASE_URL", "OPENAI_API_KEY"} & os.environ.keys():
        return ExtractiveReader()
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        api_base=os.environ.get("OPENAI_BASE_URL"),
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
        is_chat_model=True,
    )


def main() -> None:
    question = " ".join(sys.argv[1:]) or "Which documents does an empty set of ids pass?"
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    documents = SimpleDirectoryReader(input_files=files).load_data()
    nodes = SentenceSplitter(chunk_size=256, chunk_overlap=32).get_nodes_from_documents(documents)
    retriever = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3)
    llm = choose_llm()
    engine = RetrieverQueryEngine.from_args(retriever, llm=llm, text_qa_template=PROMPT)
    response = engine.query(question)
    print(f"Question: {question}\nReader:   {llm.metadata.model_name}\nAnswer:   {response}")
    for found in response.source_nodes:
        print(f"Source:   {found.node.metadata['file_name']} ({found.score:.3f})")


if __name__ == "__main__":
    main()
