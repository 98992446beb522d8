"""Hybrid retrieval: BM25 and embeddings, fused by BM25HybridRetriever.

    pip install . "./integrations/haystack[examples]"
    python examples/haystack_hybrid.py "Which filter finds a missing field?"

EMBEDDINGS names a model of any OpenAI-compatible endpoint (OPENAI_BASE_URL, OPENAI_API_KEY).
Without it the vectors are latent semantic analysis of the passages themselves: TF-IDF and a
truncated SVD from scikit-learn, no download.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from haystack import Document, Pipeline, component
from haystack.components.converters import TextFileToDocument
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.bm25rag import BM25HybridRetriever, BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

ROOT = Path(__file__).parents[1]


@component
class LatentSemanticAnalysis:
    """Embeddings learned from the passages alone."""

    def __init__(self, passages: list[Document]) -> None:
        texts = [passage.content for passage in passages]
        tfidf = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        size = min(100, len(texts) - 1)
        self.model = make_pipeline(tfidf, TruncatedSVD(size, random_state=0)).fit(texts)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Embed a text."""
        return {"embedding": self.model.transform([text])[0].tolist()}


pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
splitter = DocumentSplitter(split_by="passage", split_length=4)
passages = splitter.run(TextFileToDocument().run(pages)["documents"])["documents"]
if name := os.environ.get("EMBEDDINGS"):
    where = {"model": name, "api_base_url": os.environ.get("OPENAI_BASE_URL")}
    embedder = OpenAITextEmbedder(**where)
    embedded = OpenAIDocumentEmbedder(**where).run(passages)["documents"]
else:
    embedder = LatentSemanticAnalysis(passages)
    embedded = [replace(passage, **embedder.run(passage.content)) for passage in passages]

words, vectors = BM25DocumentStore(), InMemoryDocumentStore()
words.write_documents(passages)
vectors.write_documents(embedded)
dense = InMemoryEmbeddingRetriever(vectors, top_k=5)  # or that of any other store
pipeline = Pipeline()
pipeline.add_component("BM25", BM25Retriever(words, top_k=5))
pipeline.add_component("embedder", embedder)
pipeline.add_component("dense", dense)
pipeline.add_component("hybrid", BM25HybridRetriever(words, dense, weights=[0.7, 0.3], top_k=5))
pipeline.connect("embedder.embedding", "dense.query_embedding")
pipeline.connect("embedder.embedding", "hybrid.query_embedding")

question = " ".join(sys.argv[1:]) or "Which filter finds a missing field?"
result = pipeline.run({"query": question, "text": question})
print(f"{question}\n(embeddings: {name or 'latent semantic analysis, no download'})")
for title in ("BM25", "dense", "hybrid"):
    print(f"\n{title}")
    for document in result[title]["documents"]:
        print(f"  {document.meta['file_path']} {document.meta['split_id']}  {document.id[:8]}")
