"""The retriever as a tool of an agent, as Haystack's documentation makes one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import ComponentTool
from haystack.tools.errors import ToolInvocationError
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"
IN_2021 = {"field": "meta.year", "operator": "==", "value": 2021}


def join(documents: list[Document]) -> str:
    return "; ".join(document.content or "" for document in documents)


@pytest.fixture
def tool() -> ComponentTool:
    store = BM25DocumentStore()
    store.write_documents(
        [
            Document(id="cat", content="A cat sleeps.", meta={"year": 2021}),
            Document(id="dogs", content="Dogs chase cats.", meta={"year": 2024}),
        ]
    )
    return ComponentTool(
        BM25Retriever(store),
        name="animals",
        description="About animals.",
        outputs_to_string={"source": "documents", "handler": join},
    )


@component
class Model:
    """A model that asks the tool once, and answers with what it was told."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        result = messages[-1].tool_call_result
        if result is not None:
            return {"replies": [ChatMessage.from_assistant(str(result.result))]}
        call = ToolCall(tool_name="animals", arguments=self.arguments)
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


def answer(tool: ComponentTool, **arguments: Any) -> str | None:
    agent = Agent(chat_generator=Model(arguments), tools=[tool])
    agent.warm_up()
    messages: list[ChatMessage] = agent.run(messages=[ChatMessage.from_user("?")])["messages"]
    return messages[-1].text


def test_the_page_on_agents_shows_what_the_tool_does(capsys: pytest.CaptureFixture[str]) -> None:
    if not PAGE.is_file():
        pytest.skip(f"{PAGE.name} is in the repository, not in the distribution")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (block,) = (one for one in blocks if "haystack" in one)
    names: dict[str, Any] = {}
    exec(block, names)
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", block, re.MULTILINE)
    handler = names["search"].outputs_to_string["handler"]
    assert handler([]) == "Nothing found."


def test_a_model_sees_every_argument_of_the_retriever(tool: ComponentTool) -> None:
    shown = tool.tool_spec["parameters"]
    assert shown["required"] == ["query"]
    assert {"query", "filters", "top_k", "min_score"} <= set(shown["properties"])
    assert all(argument["description"] for argument in shown["properties"].values())


def test_an_agent_gets_the_text_of_what_it_asked_for(tool: ComponentTool) -> None:
    assert answer(tool, query="cats") == "A cat sleeps.; Dogs chase cats."
    assert answer(tool, query="cats", top_k=1, filters=IN_2021) == "A cat sleeps."
    assert answer(tool, query="zebra") == ""


def test_an_agent_is_told_what_was_wrong_with_its_call(tool: ComponentTool) -> None:
    assert "top_k must be an integer >= 0, got -1" in str(answer(tool, query="cats", top_k=-1))
    with pytest.raises(ToolInvocationError, match="has no 'operator'"):
        tool.invoke(query="cats", filters={"field": "meta.year"})


def test_it_is_saved_with_its_retriever() -> None:
    store = BM25DocumentStore()
    store.write_documents([Document(id="dogs", content="Dogs bark.")])
    made = ComponentTool(BM25Retriever(store), name="animals", description="About animals.")
    loaded = ComponentTool.from_dict(made.to_dict())
    assert loaded.invoke(query="dogs")["documents"][0].id == "dogs"
