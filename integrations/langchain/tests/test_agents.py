"""A retriever as a tool of an agent, as LangChain's documentation makes one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import ROOT
from langchain_bm25rag import BM25Retriever
from langchain_core.messages import ToolMessage
from langchain_core.tools import create_retriever_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError


def call(**arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": "1", "name": "animals", "args": arguments}


def test_the_page_on_agents_shows_what_tools_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines of code print what the comments behind them say."""
    text = (ROOT / "docs/agents.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    source = "".join(block for block in blocks if "from langchain" in block)
    exec(source, {})
    printed = [line.rstrip() for line in re.findall(r"^#(?: (.*))?$", source, re.MULTILINE)]
    assert capsys.readouterr().out.splitlines() == printed


def test_a_model_sees_a_query_and_gets_texts(retriever: BM25Retriever) -> None:
    """The documents themselves are the artifact, if asked for."""
    tool = create_retriever_tool(
        retriever, "animals", "About animals.", response_format="content_and_artifact"
    )
    shown = convert_to_openai_tool(tool)["function"]
    assert (shown["name"], shown["description"]) == ("animals", "About animals.")
    assert shown["parameters"]["required"] == ["query"]
    message = tool.invoke(call(query="bird"))
    assert isinstance(message, ToolMessage)
    assert message.content == "A bird sings in the tree."
    assert message.artifact == retriever.invoke("bird")


async def test_it_can_be_awaited_and_nothing_found_is_no_error(retriever: BM25Retriever) -> None:
    tool = create_retriever_tool(retriever, "animals", "About animals.")
    assert await tool.ainvoke({"query": "bird"}) == "A bird sings in the tree."
    assert await tool.ainvoke({"query": "zebra"}) == ""


@pytest.mark.parametrize("arguments", [{}, {"query": 3}, {"query": None}, {"q": "bird"}])
def test_wrong_arguments_are_refused_by_the_schema(
    retriever: BM25Retriever, arguments: dict[str, Any]
) -> None:
    tool = create_retriever_tool(retriever, "animals", "About animals.")
    with pytest.raises(ValidationError, match="query"):
        tool.invoke(arguments)


def test_as_tool_calls_the_retriever_too(retriever: BM25Retriever) -> None:
    with pytest.warns(match="beta"):
        tool = retriever.as_tool(name="animals", description="About animals.")
    parameters = convert_to_openai_tool(tool)["function"]["parameters"]
    (name,) = parameters["properties"]
    message = tool.invoke(call(**{name: "bird"}))
    assert "page_content='A bird sings in the tree.'" in message.content
