"""The stand-ins as Haystack's embedders, ranker and generator."""

from dataclasses import replace

from haystack import Document, component
from haystack.dataclasses import ChatMessage

from offline import answer, embed, score


@component
class TextEmbedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        return {"embedding": embed(text)}


@component
class DocumentEmbedder:
    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        return {"documents": [replace(each, embedding=embed(each.content)) for each in documents]}


@component
class Ranker:
    def __init__(self, top_k: int) -> None:
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        ranked = [replace(each, score=score(query, each.content)) for each in documents]
        ranked.sort(key=lambda document: -document.score)
        return {"documents": ranked[: self.top_k]}


@component
class Generator:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        return {"replies": [ChatMessage.from_assistant(answer(messages[-1].text))]}
