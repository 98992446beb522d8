"""Keep an index in step with documents that change: LlamaIndex's IngestionPipeline and sync.

    pip install . "./integrations/llamaindex[examples]"
    python examples/llamaindex_ingestion.py "How are dates compared?"

The pipeline's document store holds the documents and tells which have changed. Another one holds
their nodes, and the retriever follows that one. Nothing is downloaded.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from llama_index.core import SimpleDirectoryReader
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.retrievers.bm25rag import BM25Retriever

ROOT = Path(__file__).parents[1]


def ingest(
    documents: list[Document],
    pipeline: IngestionPipeline,
    node_store: SimpleDocumentStore,
    retriever: BM25Retriever,
) -> None:
    nodes = pipeline.run(documents=documents)  # of what is new or has changed
    for document_id in {node.ref_doc_id for node in nodes if node.ref_doc_id}:
        node_store.delete_ref_doc(document_id, raise_error=False)
    node_store.add_documents(nodes)
    added, updated, deleted = retriever.sync(node_store)
    print(f"{len(added)} nodes added, {len(updated)} updated, {len(deleted)} deleted")


def main() -> None:
    question = " ".join(sys.argv[1:]) or "How are dates compared?"
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    documents = SimpleDirectoryReader(input_files=files, filename_as_id=True).load_data()
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=32)],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
        # Upserts ask for one; an embedding model among the transformations would fill it.
        vector_store=SimpleVectorStore(),
    )
    node_store = SimpleDocumentStore()
    retriever = BM25Retriever.from_defaults(docstore=node_store, similarity_top_k=3)

    ingest(documents, pipeline, node_store, retriever)
    ingest(documents, pipeline, node_store, retriever)  # nothing has changed

    first = documents[0].model_copy(deep=True)
    first.set_content(first.text + "\n\nThe zebra of the library sleeps at noon.")
    ingest([first, *documents[1:]], pipeline, node_store, retriever)

    with tempfile.TemporaryDirectory() as folder:
        retriever.persist(folder)
        again = BM25Retriever.from_persist_dir(folder)
        for asked in (question, "Where is the zebra?"):
            print(f"Question: {asked}")
            for found in again.retrieve(asked):
                start = " ".join(found.text.split())[:60]
                print(f"{found.score:7.4f}  {found.metadata['file_name']}: {start}")


if __name__ == "__main__":
    main()
