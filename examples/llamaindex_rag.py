"""Ask a folder of text files with LlamaIndex: BM25 and vectors, fused, re-ranked and read.

    pip install . "./integrations/llamaindex[examples]"
    python examples/llamaindex_rag.py FOLDER QUESTION [INDEX]

INDEX, FOLDER.llamaindex by default, holds both stores. Run it again, and only changes are indexed.
OPENAI_MODEL and OPENAI_EMBEDDING_MODEL name models of any OpenAI-compatible endpoint
(OPENAI_BASE_URL, OPENAI_API_KEY), RERANKER a cross-encoder (for which you need
sentence-transformers). An offline stand-in takes the place of each that is not named.
"""

import os

from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.bm25rag import BM25VectorStore
from offline import STAND_IN
from offline import llamaindex as offline
from texts import read_arguments, read_texts

PROMPT = "Answer briefly and from the context alone.\n\n{context_str}\n\nQuestion: {query_str}"

folder, question, place = read_arguments("llamaindex")
embedding, reranker, llm = offline.Embedding(), offline.Rerank(top_n=4), offline.LLM()
key = os.environ.get("OPENAI_API_KEY", "none")  # a local endpoint needs none
endpoint = {"api_base": os.environ.get("OPENAI_BASE_URL"), "api_key": key}
if (embedding_model := os.environ.get("OPENAI_EMBEDDING_MODEL", STAND_IN)) != STAND_IN:
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    embedding = OpenAILikeEmbedding(model_name=embedding_model, **endpoint)
if (cross_encoder := os.environ.get("RERANKER", STAND_IN)) != STAND_IN:
    from llama_index.core.postprocessor import SentenceTransformerRerank

    reranker = SentenceTransformerRerank(model=cross_encoder, top_n=4)
if (model := os.environ.get("OPENAI_MODEL", STAND_IN)) != STAND_IN:
    from llama_index.llms.openai_like import OpenAILike

    llm = OpenAILike(model=model, is_chat_model=True, **endpoint)

saved = place / "".join(filter(str.isalnum, embedding_model))
path = str(saved / "bm25")
pipeline = IngestionPipeline(
    transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=32), embedding],
    docstore=SimpleDocumentStore(),
    docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
    vector_store=BM25VectorStore(dense=SimpleVectorStore()),
    disable_cache=True,
)
if (saved / "docstore.json").exists():
    pipeline.load(str(saved))
    dense = SimpleVectorStore.from_persist_path(f"{path}.dense")
    pipeline.vector_store = BM25VectorStore.from_persist_path(path, dense=dense)
documents = [
    Document(id_=str(path), text=text, metadata={"file_name": path.name})
    for path, text in read_texts(folder)
]
nodes = pipeline.run(documents=documents)
pipeline.vector_store.persist(path)
pipeline.persist(str(saved))

index = VectorStoreIndex.from_vector_store(pipeline.vector_store, embed_model=embedding)
engine = index.as_query_engine(
    llm=llm,
    vector_store_query_mode="hybrid",
    similarity_top_k=50,
    node_postprocessors=[reranker],
    text_qa_template=PromptTemplate(PROMPT),
)
response = engine.query(question)
print(f"{len(nodes)} nodes of new or changed files\n\n{question}\n{response}\n")
for node in response.source_nodes:
    print(f"  {node.metadata['file_name']}: {' '.join(node.text.split())[:70]}")
print(f"\nembeddings: {embedding_model}; re-ranker: {cross_encoder}; reader: {model}")
