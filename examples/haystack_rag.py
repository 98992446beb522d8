"""Ask a folder of text files with Haystack: BM25 and vectors, fused, re-ranked and read.

    pip install . ./integrations/haystack; python examples/haystack_rag.py FOLDER QUESTION [INDEX]

INDEX, FOLDER.haystack by default, holds both stores. Run it again, and only changes are indexed.
OPENAI_MODEL and OPENAI_EMBEDDING_MODEL name models of any OpenAI-compatible endpoint
(OPENAI_BASE_URL, OPENAI_API_KEY), RERANKER a cross-encoder for sentence-transformers-haystack.
An offline stand-in takes the place of each that is not named.
"""

import os

from haystack import Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.converters import TextFileToDocument
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.dataclasses import ByteStream, ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.bm25rag import BM25HybridRetriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from offline import STAND_IN
from offline import haystack as offline
from texts import read_arguments, read_texts

PROMPT = """Answer briefly and from the documents alone.

{% for document in documents %}{{ document.content }}\n\n{% endfor %}Question: {{ query }}"""

folder, question, place = read_arguments("haystack")
text_embedder, document_embedder = offline.TextEmbedder(), offline.DocumentEmbedder()
ranker, reader = offline.Ranker(top_k=4), offline.Generator()
os.environ.setdefault("OPENAI_API_KEY", "none")  # a local endpoint needs none
if (embedding_model := os.environ.get("OPENAI_EMBEDDING_MODEL", STAND_IN)) != STAND_IN:
    text_embedder = OpenAITextEmbedder(model=embedding_model)
    document_embedder = OpenAIDocumentEmbedder(model=embedding_model, raise_on_failure=True)
if (cross_encoder := os.environ.get("RERANKER", STAND_IN)) != STAND_IN:
    from haystack_integrations.components.rankers import sentence_transformers as rankers

    ranker = rankers.SentenceTransformersSimilarityRanker(model=cross_encoder, top_k=4)
if (model := os.environ.get("OPENAI_MODEL", STAND_IN)) != STAND_IN:
    reader = OpenAIChatGenerator(model=model)

words = BM25DocumentStore(place / "bm25")
vectors = InMemoryDocumentStore(embedding_similarity_function="cosine")
if (saved := place / f"{''.join(filter(str.isalnum, embedding_model))}.json").exists():
    vectors = InMemoryDocumentStore.load_from_disk(str(saved))
versions = {
    f"{path} {path.stat().st_mtime_ns}": ByteStream(text.encode(), {"file_path": path.name})
    for path, text in read_texts(folder)
}
new: dict[str, ByteStream] = {}
for store in (vectors, words):
    held = {document.id: document.meta["version"] for document in store.filter_documents()}
    store.delete_documents([id for id in held if held[id] not in versions])
    new |= {version: versions[version] for version in sorted(versions.keys() - held.values())}
pages = TextFileToDocument().run([*new.values()], [{"version": each} for each in new])["documents"]
passages = DocumentSplitter(split_length=150, split_overlap=20).run(pages)["documents"]
words.write_documents(passages, DuplicatePolicy.OVERWRITE)
vectors.write_documents(document_embedder.run(passages)["documents"], DuplicatePolicy.OVERWRITE)
vectors.save_to_disk(str(saved))
print(f"{len(passages)} passages of new or changed files")
dense = InMemoryEmbeddingRetriever(vectors)
pipeline = Pipeline()
pipeline.add_component("retriever", BM25HybridRetriever(words, dense, text_embedder, top_k=50))
pipeline.add_component("ranker", ranker)
pipeline.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(PROMPT)], "*"))
pipeline.add_component("reader", reader)
pipeline.connect("retriever", "ranker")
pipeline.connect("ranker", "prompt.documents")
pipeline.connect("prompt", "reader")
result = pipeline.run({"query": question}, include_outputs_from={"ranker"})
print(f"\n{question}\n{result['reader']['replies'][0].text}\n")
for document in result["ranker"]["documents"]:
    print(f"  {document.meta['file_path']}: {' '.join(document.content.split())[:70]}")
print(f"\nembeddings: {embedding_model}; re-ranker: {cross_encoder}; reader: {model}")
