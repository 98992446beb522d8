"""Retrieve, then read: ask this repository's own documentation, with Haystack.

    pip install . "./integrations/haystack[examples]"
    python examples/haystack_retrieve_then_read.py "How are dates compared in a filter?"

A chat model behind any OpenAI-compatible endpoint answers if OPENAI_BASE_URL or OPENAI_API_KEY
is set (OPENAI_MODEL names the model). Without one an extractive reader quotes the sentences that
match the question best: no model, no network.
"""

import os
import re
import sys
from pathlib import Path

from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.converters import TextFileToDocument
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ChatMessage
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

ROOT = Path(__file__).parents[1]
PROMPT = """Answer briefly and from the documents alone.
{% for document in documents %}
{{ document.content }}
{% endfor %}
Question: {{ query }}"""


@component
class Quoter:
    """Answers with the two sentences that match the question best."""

    @component.output_types(replies=list[str])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[str]]:
        """Quote."""
        text = "\n\n".join(document.content or "" for document in documents)
        store = BM25DocumentStore()
        sentences = dict.fromkeys(re.split(r"(?<=[.!?])\s+|\n\s*\n", text))
        store.write_documents([Document(content=sentence) for sentence in sentences])
        best = [document.content or "" for document in store.bm25_retrieval(query, top_k=2)]
        return {"replies": ["\n".join(best) or "Nothing found."]}


store = BM25DocumentStore()
indexing = Pipeline()
indexing.add_component("converter", TextFileToDocument())
indexing.add_component("splitter", DocumentSplitter(split_by="passage", split_length=4))
indexing.add_component("writer", DocumentWriter(store))
indexing.connect("converter", "splitter")
indexing.connect("splitter", "writer")
indexing.run({"sources": [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]})

asking = Pipeline()
asking.add_component("retriever", BM25Retriever(store, top_k=4))
if {"OPENAI_BASE_URL", "OPENAI_API_KEY"} & os.environ.keys():
    os.environ.setdefault("OPENAI_API_KEY", "a local endpoint needs none")
    name, url = os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), os.environ.get("OPENAI_BASE_URL")
    asking.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(PROMPT)], "*"))
    asking.add_component("reader", OpenAIChatGenerator(model=name, api_base_url=url))
    asking.connect("retriever", "prompt.documents")
    asking.connect("prompt", "reader")
else:
    name = "extractive reader, no language model: quoted sentences"
    asking.add_component("reader", Quoter())
    asking.connect("retriever", "reader.documents")
asking.add_component("answers", AnswerBuilder())
asking.connect("reader.replies", "answers.replies")
asking.connect("retriever", "answers.documents")

question = " ".join(sys.argv[1:]) or "How are dates compared in a filter?"
(answer,) = asking.run({"query": question})["answers"]["answers"]
print(f"{question}\n\n{answer.data}\n\n({name})\nSources:")
for document in answer.documents:
    print(f"  {document.score:6.3f}  {document.meta['file_path']} {document.meta['split_id']}")
