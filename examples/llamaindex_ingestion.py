"""Keep an index in step with documents that change: LlamaIndex's IngestionPipeline.

    pip install . "./integrations/llamaindex[examples]"
    python examples/llamaindex_ingestion.py "How are dates compared?"

The pipeline's document store tells which documents have changed; their old nodes are deleted from
the BM25 store, and the new ones added. Nothing is embedded, and nothing is downloaded.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.bm25rag import BM25VectorStore, NoEmbedding

ROOT = Path(__file__).parents[1]


def ingest(documents: list[Document], pipeline: IngestionPipeline, store: BM25VectorStore) -> None:
    before = len(store.bm25)
    added = len(pipeline.run(documents=documents))  # of what is new or has changed
    print(f"{added} nodes added, {before + added - len(store.bm25)} deleted")


def main() -> None:
    question = " ".join(sys.argv[1:]) or "How are dates compared?"
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    documents = SimpleDirectoryReader(input_files=files, filename_as_id=True).load_data()
    store = BM25VectorStore()
    pipeline = IngestionPipeline(
        # A pipeline gives its vector store only nodes with an embedding: this one is empty.
        transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=32), NoEmbedding()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        vector_store=store,
    )

    ingest(documents, pipeline, store)
    ingest(documents, pipeline, store)  # nothing has changed

    first = documents[0].model_copy(deep=True)
    first.set_content(first.text + "\n\nThe zebra of the library sleeps at noon.")
    ingest([first, *documents[1:]], pipeline, store)

    with tempfile.TemporaryDirectory() as folder:
        store.persist(folder)
        again = BM25VectorStore.from_persist_path(folder)
        index = VectorStoreIndex.from_vector_store(again, embed_model=NoEmbedding())
        retriever = index.as_retriever(vector_store_query_mode="text_search", similarity_top_k=3)
        for asked in (question, "Where is the zebra?"):
            print(f"Question: {asked}")
            for found in retriever.retrieve(asked):
                start = " ".join(found.text.split())[:60]
                print(f"{found.score:7.4f}  {found.metadata['file_name']}: {start}")


if __name__ == "__main__":
    main()
