"""The search tool, called by a scripted model in Haystack's own agent."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, component
from haystack.components.agents import Agent
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.retrievers.bm25rag import (
    BM25GrepTool,
    BM25HybridRetriever,
    BM25ReadTool,
    BM25Retriever,
    BM25SearchTool,
)
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

sys.path.append(str(Path(__file__).parents[3] / "tests"))
scripted = pytest.importorskip(
    "support.scripted", reason="what adapters' tests share is in the repository alone"
)


@component
class Model:
    """A model that asks what the script says."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.script = scripted.calls(self.heard)

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        result = messages[-1].tool_call_result
        if result is not None:
            self.heard.append(str(result.result))
        arguments = next(self.script, None)
        if arguments is None:
            return {"replies": [ChatMessage.from_assistant("done")]}
        call = ToolCall(tool_name="notes", arguments=arguments)
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


def store(path: Path | None = None) -> BM25DocumentStore:
    made = BM25DocumentStore() if path is None else BM25DocumentStore(path=str(path))
    pairs = zip(scripted.TEXTS, scripted.YEARS, strict=True)
    made.write_documents([Document(content=text, meta={"year": year}) for text, year in pairs])
    return made


def test_a_scripted_model_finds_pages_and_mends_its_mistakes() -> None:
    tool = BM25SearchTool(store(), "notes", scripted.ABOUT)
    scripted.check_schema(tool.name, tool.description, tool.parameters)
    agent = Agent(chat_generator=Model(), tools=[tool], max_agent_steps=50)
    answer = agent.run(messages=[ChatMessage.from_user("How long do cats sleep?")])
    assert answer["messages"][-1].text == "done"


def test_of_a_restricted_store_it_finds_no_other_documents(tmp_path: Path) -> None:
    store(tmp_path / "index")
    only = {"field": "meta.year", "operator": "==", "value": 2003}
    restricted = BM25DocumentStore(path=str(tmp_path / "index"), restrict=only)
    tool = BM25SearchTool(restricted, "notes", scripted.ABOUT)
    assert "cat sleeps 3 hours" in tool.invoke(query="cats")
    assert "2. " not in tool.invoke(query="cats", filter={"year": {"$gte": 2000}})


def test_what_it_could_not_search_or_would_get_around_is_refused() -> None:
    """It asks the index itself, so a tenant's filter in a subclass would not hold."""

    class Scoped(BM25DocumentStore):
        def bm25_retrieval(self, query: Any, *arguments: Any, **options: Any) -> list[Document]:
            return super().bm25_retrieval(query, *arguments, **options)[:1]

    class Awaited(BM25DocumentStore):
        async def bm25_retrieval_async(self, *arguments: Any, **options: Any) -> list[Document]:
            return (await super().bm25_retrieval_async(*arguments, **options))[:1]

    for wrong in (BM25Retriever(store()), InMemoryDocumentStore(), None):
        with pytest.raises(TypeError, match=r"must be .*: give a BM25DocumentStore, such"):
            BM25SearchTool(wrong, "notes", "Notes")
    with pytest.raises(TypeError, match="Scoped overrides bm25_retrieval"):
        BM25GrepTool(Scoped(), "notes", "Notes")
    with pytest.raises(TypeError, match="Awaited overrides bm25_retrieval_async"):
        BM25GrepTool(Awaited(), "notes", "Notes")


def test_its_own_filters_hold_and_it_can_be_saved(tmp_path: Path) -> None:
    own = {"field": "meta.year", "operator": "==", "value": 2003}
    tool = BM25SearchTool(store(tmp_path / "index"), "notes", scripted.ABOUT, own)
    for one in (tool, BM25SearchTool.from_dict(tool.to_dict())):
        answer = one.invoke(query="cats", filter={"year": {"$gte": 2000}})
        assert "cat sleeps 3 hours" in answer
        assert "2. " not in answer


def test_three_tools_find_quote_keep_to_their_filters_and_can_be_saved(tmp_path: Path) -> None:
    notes = store(tmp_path / "index")
    own = {"field": "meta.year", "operator": "==", "value": 2003}
    kinds = {"search_notes": BM25SearchTool, "grep_notes": BM25GrepTool, "read_notes": BM25ReadTool}

    def made(filters: dict[str, Any] | None) -> dict[str, Any]:
        tools = [kind(notes, name, "Notes", filters) for name, kind in kinds.items()]
        again = [type(tool).from_dict(tool.to_dict()) for tool in tools]
        return {tool.name: tool.invoke for tool in again}

    scripted.check_quoting(made(None), made(own))


@component
class QuotingModel:
    """A model that takes the steps of the script."""

    def __init__(self) -> None:
        self.model = scripted.Model()

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        result = messages[-1].tool_call_result
        step = self.model.next(None if result is None else str(result.result))
        if isinstance(step, str):
            return {"replies": [ChatMessage.from_assistant(step)]}
        call = ToolCall(tool_name=step[0], arguments=step[1])
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


def test_an_agent_finds_pages_quotes_and_its_quotation_holds() -> None:
    notes = store()
    kinds = {"search_notes": BM25SearchTool, "grep_notes": BM25GrepTool, "read_notes": BM25ReadTool}
    tools = [kind(notes, name, scripted.ABOUT) for name, kind in kinds.items()]
    agent = Agent(chat_generator=QuotingModel(), tools=tools, max_agent_steps=50)
    answer = agent.run(messages=[ChatMessage.from_user("How long do cats sleep?")])
    texts = {document.id: document.content or "" for document in notes.filter_documents()}
    scripted.check_quotation(str(answer["messages"][-1].text), texts.__getitem__)


@component
class Letters:
    """Embeds a text as how often it has each of some letters."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        return {"embedding": [text.count(letter) + 0.1 for letter in "acdgnotz"]}


@pytest.mark.parametrize("method", ["minmax", "rrf"])
def test_the_tool_of_a_hybrid_retriever_pages_through_what_both_find(
    method: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", __name__)
    texts = [f"cat {'z' * n}" for n in range(12)] + ["dog", "a hound"]
    documents = [Document(id=str(n), content=text, meta={"n": n}) for n, text in enumerate(texts)]
    vectors = InMemoryDocumentStore()
    vectors.write_documents(
        [replace(one, embedding=Letters().run(one.content)["embedding"]) for one in documents]
    )
    words = BM25DocumentStore(path=str(tmp_path / "index"))
    words.write_documents(documents)
    beside = InMemoryEmbeddingRetriever(vectors)
    own = {"field": "meta.n", "operator": "<", "value": 13}
    hybrid = BM25HybridRetriever(words, beside, Letters(), filters=own, top_k=14, method=method)
    expected = [document.id for document in hybrid.run("dog")["documents"]]
    assert len(expected) == 13  # BM25 alone finds one
    asked: dict[str, Any] = {"query": "dog", "k": 4}
    tool = BM25SearchTool(hybrid, "notes", scripted.ABOUT)
    pages = [tool.invoke(**asked)]
    while (cursor := re.search(r'cursor="([^"]+)"', pages[-1])) is not None:
        pages.append(tool.invoke(**asked, cursor=cursor[1]))
    shown = re.findall(r"^\d+\. (\d+)", "\n".join(pages), re.MULTILINE)
    assert (shown, len(pages)) == (expected, 4)
    narrow = {"field": "meta.n", "operator": ">", "value": 11}
    both = BM25SearchTool(hybrid, "notes", scripted.ABOUT, narrow)
    assert re.findall(r"^\d+\. (\d+)", both.invoke(query="dog"), re.MULTILINE) == ["12"]
    alone = BM25SearchTool(BM25HybridRetriever(words, beside), "notes", scripted.ABOUT)
    assert alone.invoke(query="dog").startswith("Error: the retriever needs a text_embedder")
    for kind in (BM25GrepTool, BM25ReadTool):
        told = kind.from_dict(kind(hybrid, "notes", scripted.ABOUT).to_dict())
        answer = told.invoke(**({"pattern": "o"} if kind is BM25GrepTool else {"id": "12"}))
        assert "dog" in answer
        assert "hound" not in answer
