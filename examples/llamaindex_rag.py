"""Ask a folder of text files with LlamaIndex: BM25 and vectors, fused, re-ranked and read.

    pip install . ./integrations/llamaindex
    python examples/llamaindex_rag.py FOLDER "How are dates compared in a filter?" [INDEX]

INDEX is the folder of both stores. Run it again, and only files that have changed are indexed.
OPENAI_MODEL and OPENAI_EMBEDDING_MODEL name models of any OpenAI-compatible endpoint
(OPENAI_BASE_URL, OPENAI_API_KEY; for which you need llama-index-llms-openai-like and
llama-index-embeddings-openai-like), RERANKER a cross-encoder (for which you need
sentence-transformers). In place of a model that is not named, there is an offline stand-in.
"""

import os
import sys
from pathlib import Path

from llama_index.core import PromptTemplate, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.vector_stores.bm25rag import BM25VectorStore
from offline import STAND_IN
from offline.llamaindex import OfflineEmbedding, OfflineLLM, OfflineRerank

PROMPT = "Answer briefly and from the context alone.\n\n{context_str}\n\nQuestion: {query_str}"

folder, question = Path(sys.argv[1]).resolve(strict=True), sys.argv[2]
place = Path(*sys.argv[3:] or [f"{folder.name}.llamaindex"])
embedding, reranker, llm = OfflineEmbedding(), OfflineRerank(top_n=4), OfflineLLM()
endpoint = {
    "api_base": os.environ.get("OPENAI_BASE_URL"),
    "api_key": os.environ.get("OPENAI_API_KEY", "none"),
}
if embedding_name := os.environ.get("OPENAI_EMBEDDING_MODEL"):
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding

    embedding = OpenAILikeEmbedding(model_name=embedding_name, **endpoint)
if reranker_name := os.environ.get("RERANKER"):
    from llama_index.core.postprocessor import SentenceTransformerRerank

    reranker = SentenceTransformerRerank(model=reranker_name, top_n=4)
if model_name := os.environ.get("OPENAI_MODEL"):
    from llama_index.llms.openai_like import OpenAILike

    llm = OpenAILike(model=model_name, is_chat_model=True, **endpoint)
names = [embedding_name or STAND_IN, reranker_name or STAND_IN, model_name or STAND_IN]

saved = place / "".join(filter(str.isalnum, names[0]))
pipeline = IngestionPipeline(
    transformations=[SentenceSplitter(chunk_size=256, chunk_overlap=32), embedding],
    docstore=SimpleDocumentStore(),
    docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
    vector_store=BM25VectorStore(dense=SimpleVectorStore()),
    disable_cache=True,
)
path = str(saved / "bm25")
if saved.exists():
    pipeline.load(str(saved))
    dense = SimpleVectorStore.from_persist_path(f"{path}.dense")
    pipeline.vector_store = BM25VectorStore.from_persist_path(path, dense=dense)
reader = SimpleDirectoryReader(
    folder, recursive=True, required_exts=[".md", ".rst", ".txt"], filename_as_id=True
)
nodes = pipeline.run(documents=reader.load_data())
print(f"{len(nodes)} nodes of new and changed files")
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
print(f"\n{question}\n{response}\n")
for node in response.source_nodes:
    print(f"  {node.metadata['file_name']}: {' '.join(node.text.split())[:60]}")
print("\nembeddings: {}; re-ranker: {}; reader: {}".format(*names))
