"""Ask a folder of text files with LangChain: BM25 and vectors, fused, re-ranked and read.

    pip install . "./integrations/langchain[examples]"
    python examples/langchain_rag.py FOLDER QUESTION [INDEX]

INDEX, FOLDER.langchain by default, holds both stores. Run it again, and only changes are indexed.
OPENAI_MODEL and OPENAI_EMBEDDING_MODEL name models of any OpenAI-compatible endpoint
(OPENAI_BASE_URL, OPENAI_API_KEY), RERANKER a cross-encoder for langchain-community.
An offline stand-in takes the place of each that is not named.
"""

import os
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
from offline import langchain as offline
from texts import read_arguments, read_texts

PROMPT = "Answer briefly and from the context alone.\n\n{context}\n\nQuestion: {question}"


def load(folder: Path) -> list[Document]:
    documents = [
        Document(text, metadata={"source": path.relative_to(folder).as_posix()})
        for path, text in read_texts(folder)
    ]
    splitter = RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=100)
    return splitter.split_documents(documents)


def update(store: VectorStore, held: Iterable[str], passages: list[Document]) -> None:
    """Index what the store does not hold, and delete what is gone; ids are hashes of passages."""
    records = InMemoryRecordManager("passages")
    records.update([*held])
    counts = index(passages, records, store, cleanup="full", key_encoder="sha256")
    print(f"{type(store).__name__}: {counts['num_added']} added, {counts['num_deleted']} deleted")


folder, question, place = read_arguments("langchain")
embeddings, encoder, reader = offline.Embeddings(), offline.CrossEncoder(), offline.model
os.environ.setdefault("OPENAI_API_KEY", "none")  # a local endpoint needs none
if (embedding_model := os.environ.get("OPENAI_EMBEDDING_MODEL", STAND_IN)) != STAND_IN:
    from langchain_openai import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(model=embedding_model, check_embedding_ctx_length=False)
if (cross_encoder := os.environ.get("RERANKER", STAND_IN)) != STAND_IN:
    from langchain_community.cross_encoders import HuggingFaceCrossEncoder

    encoder = HuggingFaceCrossEncoder(model_name=cross_encoder)
if (model := os.environ.get("OPENAI_MODEL", STAND_IN)) != STAND_IN:
    from langchain_openai import ChatOpenAI

    reader = ChatOpenAI(model=model)

passages, vectors = load(folder), InMemoryVectorStore(embeddings)
if (saved := place / f"{''.join(filter(str.isalnum, embedding_model))}.json").exists():
    vectors = InMemoryVectorStore.load(str(saved), embeddings)
with BM25VectorStore.open(place / "bm25", mode="w") as words:  # commits at the end
    update(words, words.index.ids(), passages)
    update(vectors, vectors.store, passages)
    vectors.dump(str(saved))
reranker = CrossEncoderReranker(model=encoder, top_n=4)
retriever = BM25HybridRetriever.open(place / "bm25", vector_store=vectors, reranker=reranker)
found = retriever.invoke(question)
chain = ChatPromptTemplate.from_template(PROMPT) | reader | StrOutputParser()
context = "\n\n".join(document.page_content for document in found)
print(f"\n{question}\n{chain.invoke({'context': context, 'question': question})}\n")
for document in found:
    print(f"  {document.metadata['source']}: {' '.join(document.page_content.split())[:70]}")
print(f"\nembeddings: {embedding_model}; re-ranker: {cross_encoder}; reader: {model}")
