"""The search tool, called by a scripted model through LangChain's own machinery."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_bm25rag import (
    BM25HybridRetriever,
    BM25Retriever,
    BM25VectorStore,
    agent_tools,
    search_tool,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore

sys.path.append(str(Path(__file__).parents[3] / "tests"))
scripted = pytest.importorskip(
    "support.scripted", reason="what adapters' tests share is in the repository alone"
)


def retriever(**fields: object) -> BM25Retriever:
    ids = [f"n{year}" for year in scripted.YEARS]
    metadata = [{"year": year} for year in scripted.YEARS]
    return BM25Retriever.from_texts(scripted.TEXTS, metadata, ids=ids, **fields)


async def test_a_scripted_model_finds_pages_and_mends_its_mistakes() -> None:
    tool = search_tool(retriever(), "notes", scripted.ABOUT)
    shown = convert_to_openai_tool(tool)["function"]
    scripted.check_schema(shown["name"], shown["description"], shown["parameters"])
    for awaited in (False, True):
        heard: list[str] = []
        for arguments in scripted.calls(heard):
            call = {"type": "tool_call", "id": "1", "name": "notes", "args": arguments}
            message = await tool.ainvoke(call) if awaited else tool.invoke(call)
            assert isinstance(message, ToolMessage)
            heard.append(str(message.content))


def test_the_retrievers_own_filter_holds_whatever_the_model_asks_for() -> None:
    for own in ({"year": 2003}, lambda document: document.metadata["year"] == 2003):
        tool = search_tool(retriever(filter=own), "notes", scripted.ABOUT)
        for asked in (None, {"year": {"$gte": 2000}}, {"$or": [{"year": 2004}, {"year": 2003}]}):
            answer = tool.invoke({"query": "cats", "filter": asked})
            assert "cat sleeps 3 hours" in answer
            assert "2. " not in answer
        assert "No document" in tool.invoke({"query": "cats", "filter": {"year": 2004}})


def test_what_it_could_not_search_or_would_get_around_is_refused() -> None:
    """It asks the index itself, so a tenant's filter in a subclass would not hold."""

    class Scoped(BM25Retriever):
        def _get_relevant_documents(self, query: Any, **given: Any) -> list[Document]:
            return super()._get_relevant_documents(query, **given | {"filter": {"year": 2003}})

    class Asked(BM25Retriever):
        def invoke(self, *arguments: Any, **given: Any) -> list[Document]:
            return super().invoke(*arguments, **given | {"filter": {"year": 2003}})

    class Named(BM25Retriever):
        def save(self, path: Any) -> None:
            raise NotImplementedError

    index = retriever().index
    for wrong in (BM25VectorStore(index), BM25VectorStore(index).as_retriever(), index, None):
        with pytest.raises(TypeError, match=r"retriever must be .*give BM25Retriever\(index="):
            search_tool(wrong, "notes", "Notes")
    with pytest.raises(TypeError, match="Scoped overrides _get_relevant_documents"):
        agent_tools(Scoped(index=index), "notes", "Notes")
    with pytest.raises(TypeError, match="Asked overrides invoke"):
        search_tool(Asked(index=index), "notes", "Notes")
    assert "cat sleeps" in search_tool(Named(index=index), "n", "Notes").invoke({"query": "cats"})


class Embedding(Embeddings):
    """Embeds a text as how often it has each of some letters."""

    def embed_query(self, text: str) -> list[float]:
        return [text.count(letter) + 0.1 for letter in "acdgnotz"]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


@pytest.mark.parametrize("method", ["minmax", "rrf"])
def test_the_tool_of_a_hybrid_retriever_pages_through_what_both_find(method: Any) -> None:
    texts = [f"cat {'z' * n}" for n in range(12)] + ["dog", "a hound"]
    documents = [Document(text, id=str(n), metadata={"n": n}) for n, text in enumerate(texts)]
    hybrid = BM25HybridRetriever.from_documents(
        documents, InMemoryVectorStore(Embedding()), k=14, method=method, filter={"n": {"$lt": 13}}
    )
    expected = [document.id for document in hybrid.invoke("dog")]
    assert len(expected) == 13  # BM25 alone finds one
    tool = search_tool(hybrid, "notes", scripted.ABOUT)
    asked: dict[str, Any] = {"query": "dog", "k": 4}
    pages = [tool.invoke(asked)]
    while (cursor := re.search(r'cursor="([^"]+)"', pages[-1])) is not None:
        pages.append(tool.invoke({**asked, "cursor": cursor[1]}))
    shown = re.findall(r"^\d+\. (\d+)", "\n".join(pages), re.MULTILINE)
    assert (shown, len(pages)) == (expected, 4)
    hybrid.min_score = 0.9  # of fused scores
    best = search_tool(hybrid, "notes", scripted.ABOUT).invoke(
        {"query": "dog", "filter": {"n": 12}}
    )
    assert method == "rrf" or best.startswith("1. 12 ")
    assert "Error: " in tool.invoke({"query": "dog", "filter": {"n": {"$near": 1}}})


def test_three_tools_find_quote_and_keep_to_the_retrievers_filter() -> None:
    made = [agent_tools(retriever(filter=own), "notes", "Notes") for own in (None, {"year": 2003})]
    scripted.check_quoting(
        *(
            {tool.name: lambda tool=tool, **given: tool.invoke(given) for tool in own}
            for own in made
        )
    )
    assert all(tool.description.startswith("Notes. ") for tool in made[0])


class ScriptedChat(BaseChatModel):
    """A model that takes the steps of the script."""

    model: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_kwargs: Any) -> Any:
        assert {tool.name for tool in tools} == {"search_notes", "grep_notes", "read_notes"}
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **_kwargs: Any) -> ChatResult:
        step = self.model.next(str(messages[-1].content))
        if isinstance(step, str):
            message = AIMessage(step)
        else:
            name, arguments = step
            call = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("awaited", [False, True])
async def test_an_agent_finds_pages_quotes_and_its_quotation_holds(awaited: bool) -> None:
    agents = pytest.importorskip("langchain.agents", reason="langchain is not installed")
    notes = retriever()
    tools = agent_tools(notes, "notes", scripted.ABOUT)
    agent = agents.create_agent(ScriptedChat(model=scripted.Model()), tools)
    asked = {"messages": [HumanMessage("How long do cats sleep?")]}
    options = {"recursion_limit": 100}
    answer = await agent.ainvoke(asked, options) if awaited else agent.invoke(asked, options)
    scripted.check_quotation(
        answer["messages"][-1].content, lambda id: notes.index.get([id])[0].text or ""
    )
