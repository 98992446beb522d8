"""Ask a folder of text files with LangChain: BM25 and vectors, fused, re-ranked and read.

    pip install . "./integrations/langchain[examples]"
    python examples/langchain_rag.py FOLDER "How are dates compared in a filter?" [INDEX]

INDEX is the folder of both stores. Run it again, and only passages that have changed are indexed.
OPENAI_MODEL and OPENAI_EMBEDDING_MODEL name models of any OpenAI-compatible endpoint
(OPENAI_BASE_URL, OPENAI_API_KEY), RERANKER a cross-encoder (for which you need langchain-community
and sentence-transformers). In place of a model that is not named, there is an offline stand-in.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from langchain_bm25rag import BM25HybridRetriever, BM25VectorStore
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from offline import STAND_IN
from offline.langchain import OfflineCrossEncoder, OfflineEmbeddings, offline_model

PROMPT = "Answer briefly and from the context alone.\n\n{context}\n\nQuestion: {question}"


def load(folder: Path) -> list[Document]:
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in {".md", ".rst", ".txt"}]
    sources = [{"source": path.relative_to(folder).as_posix()} for path in paths]
    splitter = RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=100)
    return splitter.create_documents([path.read_text("utf-8") for path in paths], sources)


def update(store: VectorStore, held: Iterable[str], passages: list[Document]) -> None:
    """Index what the store does not hold, and delete what is gone; ids are hashes of passages."""
    records = InMemoryRecordManager("passages")
    records.update([*held])
    counts = index(passages, records, store, cleanup="full", key_encoder="sha256")
    print(f"{type(store).__name__}: {counts['num_added']} added, {counts['num_deleted']} deleted")


folder, question = Path(sys.argv[1]).resolve(strict=True), sys.argv[2]
place = Path(*sys.argv[3:] or [f"{folder.name}.langchain"])
embeddings, cross_encoder, model = OfflineEmbeddings(), OfflineCrossEncoder(), offline_model
if embedding_name := os.environ.get("OPENAI_EMBEDDING_MODEL"):
    from langchain_openai import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(model=embedding_name, check_embedding_ctx_length=False)
if reranker_name := os.environ.get("RERANKER"):
    from langchain_community.cross_encoders import HuggingFaceCrossEncoder

    cross_encoder = HuggingFaceCrossEncoder(model_name=reranker_name)
if model_name := os.environ.get("OPENAI_MODEL"):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=model_name)
names = [embedding_name or STAND_IN, reranker_name or STAND_IN, model_name or STAND_IN]

saved = place / f"vectors-{''.join(filter(str.isalnum, names[0]))}.json"
new = InMemoryVectorStore(embeddings)
vectors = InMemoryVectorStore.load(str(saved), embeddings) if saved.exists() else new
with BM25VectorStore.open(place / "bm25", mode="w") as words:  # commits at the end
    passages = load(folder)
    update(words, words.index.ids(), passages)
    update(vectors, vectors.store, passages)
    vectors.dump(str(saved))
reranker = CrossEncoderReranker(model=cross_encoder, top_n=4)
retriever = BM25HybridRetriever.open(place / "bm25", vector_store=vectors, reranker=reranker)
found = retriever.invoke(question)
chain = ChatPromptTemplate.from_template(PROMPT) | model | StrOutputParser()
context = "\n\n".join(document.page_content for document in found)
print(f"\n{question}\n{chain.invoke({'context': context, 'question': question})}\n")
for document in found:
    print(f"  {document.metadata['source']}: {' '.join(document.page_content.split())[:60]}")
print("\nembeddings: {}; re-ranker: {}; reader: {}".format(*names))
