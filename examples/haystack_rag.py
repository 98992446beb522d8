"""Ask a folder of text files with Haystack: BM25 and vectors, fused, re-ranked and read.

    pip install . ./integrations/haystack
    python examples/haystack_rag.py FOLDER "How are dates compared in a filter?" [INDEX]

INDEX is the folder of both stores. Run it again, and only files that have changed are indexed.
OPENAI_MODEL and OPENAI_EMBEDDING_MODEL name models of any OpenAI-compatible endpoint
(OPENAI_BASE_URL, OPENAI_API_KEY), RERANKER a cross-encoder (for which you need
sentence-transformers-haystack). In place of a model that is not named, there is an offline stand-in.
"""

import hashlib
import os
import sys
from pathlib import Path

from haystack import Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.converters import TextFileToDocument
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.preprocessors import RecursiveDocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.bm25rag import BM25HybridRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from offline import STAND_IN
from offline.haystack import (
    OfflineDocumentEmbedder,
    OfflineGenerator,
    OfflineRanker,
    OfflineTextEmbedder,
)

PROMPT = """Answer briefly and from the documents alone.

{% for document in documents %}{{ document.content }}

{% endfor %}Question: {{ query }}"""

folder, question = Path(sys.argv[1]).resolve(strict=True), sys.argv[2]
place = Path(*sys.argv[3:] or [f"{folder.name}.haystack"])
text_embedder, document_embedder = OfflineTextEmbedder(), OfflineDocumentEmbedder()
ranker, reader = OfflineRanker(top_k=4), OfflineGenerator()
os.environ.setdefault("OPENAI_API_KEY", "none")
url = os.environ.get("OPENAI_BASE_URL")
if embedding_name := os.environ.get("OPENAI_EMBEDDING_MODEL"):
    text_embedder = OpenAITextEmbedder(model=embedding_name, api_base_url=url)
    document_embedder = OpenAIDocumentEmbedder(model=embedding_name, api_base_url=url)
if ranker_name := os.environ.get("RERANKER"):
    from haystack_integrations.components.rankers.sentence_transformers import (
        SentenceTransformersSimilarityRanker,
    )

    ranker = SentenceTransformersSimilarityRanker(model=ranker_name, top_k=4)
if model_name := os.environ.get("OPENAI_MODEL"):
    reader = OpenAIChatGenerator(model=model_name, api_base_url=url)

saved = place / f"vectors-{''.join(filter(str.isalnum, names[0]))}.json"
