"""The stand-ins as LangChain's embeddings, cross-encoder and model."""

from __future__ import annotations

from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core import embeddings
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableLambda

from offline import answer, embed, score


class Embeddings(embeddings.Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class CrossEncoder(BaseCrossEncoder):
    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [score(question, passage) for question, passage in text_pairs]


def _read(prompt: PromptValue) -> str:
    return answer(prompt.to_string())


model = RunnableLambda(_read)
