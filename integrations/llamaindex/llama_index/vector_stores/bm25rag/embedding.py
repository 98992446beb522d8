"""What stands where LlamaIndex demands an embedding model, and none is needed."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding


class NoEmbedding(BaseEmbedding):
    """An embedding model that computes nothing: every embedding is the empty list.

    ``IngestionPipeline`` passes only nodes with an embedding to its vector store, and
    ``VectorStoreIndex`` asks for a model. Among the transformations of a pipeline, or as
    ``embed_model`` of an index, this one is enough for a ``BM25VectorStore`` without a dense store;
    one with a dense store refuses the empty embeddings.
    """

    model_name: str = "none"

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class, under which LlamaIndex serializes it."""
        return "NoEmbedding"

    def _get_text_embedding(self, text: str) -> list[float]:
        return []

    def _get_query_embedding(self, query: str) -> list[float]:
        return []

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return []
