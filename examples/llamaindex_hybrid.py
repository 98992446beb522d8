"""Hybrid search with LlamaIndex: BM25 in front of a vector store, and both fused.

    pip install . "./integrations/llamaindex[examples]"
    python examples/llamaindex_hybrid.py "How are dates compared?"

EMBEDDINGS names a model of Hugging Face (and needs llama-index-embeddings-huggingface).
Without it the vectors are latent semantic analysis from scikit-learn, and nothing is downloaded.
"""

import os
import sys
from pathlib import Path
from typing import Any

from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding, resolve_embed_model
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.bm25rag import BM25VectorStore
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

ROOT = Path(__file__).parents[1]


class LatentSemanticEmbedding(BaseEmbedding):
    """Embeds by TF-IDF and a truncated SVD, both fitted on the texts themselves."""

    pipeline: Any

    def _get_text_embedding(self, text: str) -> list[float]:
        vector: list[float] = self.pipeline.transform([text])[0].tolist()
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def choose_embedding(nodes: list[BaseNode]) -> BaseEmbedding:
    if name := os.environ.get("EMBEDDINGS"):
        return resolve_embed_model(f"local:{name}")
    texts = [node.get_content(MetadataMode.EMBED) for node in nodes]
    svd = TruncatedSVD(min(64, len(texts) - 1), random_state=0)
    pipeline = make_pipeline(TfidfVectorizer(stop_words="english"), svd).fit(texts)
    return LatentSemanticEmbedding(model_name="latent semantic analysis", pipeline=pipeline)


def main() -> None:
    question = " ".join(sys.argv[1:]) or "How are dates compared?"
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    documents = SimpleDirectoryReader(input_files=files).load_data()
    nodes = SentenceSplitter(chunk_size=256, chunk_overlap=32).get_nodes_from_documents(documents)
    store = BM25VectorStore(dense=SimpleVectorStore())  # or any other vector store
    index = VectorStoreIndex.from_vector_store(store, embed_model=choose_embedding(nodes))
    index.insert_nodes(nodes)
    print(f"Question: {question}")
    for name, mode in (("BM25", "text_search"), ("dense", "default"), ("fused", "hybrid")):
        retriever = index.as_retriever(vector_store_query_mode=mode, similarity_top_k=5)
        for found in retriever.retrieve(question):
            start = " ".join(found.node.get_content().split())[:60]
            print(f"{name:5} {found.score:7.4f}  {found.node.metadata['file_name']}: {start}")


if __name__ == "__main__":
    main()
