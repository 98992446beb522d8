"""Hybrid retrieval: BM25 and embeddings, fused by BM25HybridRetriever.

    pip install . "./integrations/langchain[examples]"
    python examples/langchain_hybrid.py "Which filter finds a missing field?"

EMBEDDINGS names any model that LangChain can make, such as "openai:text-embedding-3-small".
Without it the vectors are latent semantic analysis of the passages themselves: TF-IDF and a
truncated SVD from scikit-learn, no download.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from langchain_bm25rag import BM25HybridRetriever, BM25Retriever
from langchain_classic.embeddings import init_embeddings
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import MarkdownTextSplitter
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

ROOT = Path(__file__).parents[1]


class LatentSemanticAnalysis(Embeddings):
    """Embeddings learned from the passages alone."""

    def __init__(self, passages: list[Document]) -> None:
        texts = [passage.page_content for passage in passages]
        tfidf = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        size = min(100, len(texts) - 1)
        self.model = make_pipeline(tfidf, TruncatedSVD(size, random_state=0)).fit(texts)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages."""
        return self.model.transform(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self.embed_documents([text])[0]


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


if __name__ == "__main__":
    question = " ".join(sys.argv[1:]) or "Which filter finds a missing field?"
    passages = load()
    name = os.environ.get("EMBEDDINGS")
    embeddings = init_embeddings(name) if name else LatentSemanticAnalysis(passages)
    print(f"{question}\n(embeddings: {name or 'latent semantic analysis, no download'})")

    store = InMemoryVectorStore(embeddings)  # or any other vector store
    hybrid = BM25HybridRetriever.from_documents(passages, store, weights=[0.7, 0.3], k=5)
    lexical = BM25Retriever(index=hybrid.index, k=5)
    dense = store.as_retriever(search_kwargs={"k": 5})
    for title, retriever in [("BM25", lexical), ("dense", dense), ("hybrid", hybrid)]:
        print(f"\n{title}")
        for document in retriever.invoke(question):
            print(f"  {document.id}")

    print("\nhybrid, of one page")  # the filter holds for what both find
    for document in hybrid.invoke(question, filter={"source": "filters.md"}):
        print(f"  {document.id}")
