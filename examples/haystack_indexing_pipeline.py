"""Index files and ask them, with Haystack's own converter, cleaner, splitter and prompt builder.

    pip install . "./integrations/haystack[examples]"
    python examples/haystack_indexing_pipeline.py "How are dates compared in a filter?" [FOLDER]

The documents are kept in FOLDER (a temporary one by default), so a second run indexes nothing
again. The asking pipeline is dumped to YAML and loaded again. The output is the prompt for a
generator.
"""

import sys
import tempfile
from pathlib import Path

from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.converters import TextFileToDocument
from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter
from haystack.components.retrievers import SentenceWindowRetriever
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

ROOT = Path(__file__).parents[1]
TEMPLATE = """Answer from these passages alone.
{% for passage in passages %}
---
{{ passage }}
{% endfor %}
---
Question: {{ question }}
"""


def indexing_pipeline(store: BM25DocumentStore) -> Pipeline:
    """Make a pipeline that splits files into passages and writes them, replacing old ones."""
    pipeline = Pipeline()
    pipeline.add_component("converter", TextFileToDocument())
    pipeline.add_component("cleaner", DocumentCleaner())
    splitter = DocumentSplitter(split_by="word", split_length=120, split_overlap=20)
    pipeline.add_component("splitter", splitter)
    pipeline.add_component("writer", DocumentWriter(store, policy=DuplicatePolicy.OVERWRITE))
    pipeline.connect("converter", "cleaner")
    pipeline.connect("cleaner", "splitter")
    pipeline.connect("splitter", "writer")
    return pipeline


def asking_pipeline(store: BM25DocumentStore) -> Pipeline:
    """Make a pipeline from a question to a prompt with the best passages and neighbours."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store, top_k=2))
    pipeline.add_component("window", SentenceWindowRetriever(store, window_size=1))
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables="*"))
    pipeline.connect("retriever", "window")
    pipeline.connect("window.context_windows", "prompt.passages")
    return pipeline


def main() -> None:
    question = sys.argv[1] if len(sys.argv) > 1 else "How are dates compared in a filter?"
    folder = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()
    store = BM25DocumentStore(folder)
    if not store.count_documents():
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        written = indexing_pipeline(store).run({"converter": {"sources": pages}})["writer"]
        print(f"{written['documents_written']} passages of {len(pages)} pages indexed")

    asked = {"retriever": {"query": question}, "prompt": {"question": question}}
    pipeline = asking_pipeline(store)
    result = pipeline.run(asked, include_outputs_from={"retriever"})
    saved = pipeline.dumps()
    again = Pipeline.loads(saved)  # it opens the folder that the dump names
    assert again.run(asked)["prompt"] == result["prompt"]
    print(f"the same prompt comes from the pipeline's YAML, {len(saved.splitlines())} lines\n")
    for document in result["retriever"]["documents"]:
        print(f"  {document.score:6.3f}  {document.meta['file_path']} {document.meta['split_id']}")
    print("\n" + result["prompt"]["prompt"])


if __name__ == "__main__":
    main()
