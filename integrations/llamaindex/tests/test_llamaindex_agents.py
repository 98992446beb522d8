"""A retriever as a tool of an agent, as LlamaIndex's documentation makes one."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.tools import RetrieverTool
from llama_index.retrievers.bm25rag import BM25Retriever

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"


@pytest.fixture
def tool() -> RetrieverTool:
    nodes = [
        TextNode(text="A cat sleeps.", id_="cat", metadata={"year": 2021}),
        TextNode(text="Dogs bark.", id_="dogs"),
    ]
    retriever = BM25Retriever.from_defaults(nodes=nodes)
    return RetrieverTool.from_defaults(retriever, name="animals", description="About animals.")


def test_the_page_on_agents_shows_what_the_tool_does(capsys: pytest.CaptureFixture[str]) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is in the repository alone")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (one for one in blocks if "llama_index" in one)
    exec(block, {})
    printed = re.findall(r"^#(?: (.*))?$", block, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == printed


def test_a_model_sees_one_input_and_gets_texts_with_metadata(tool: RetrieverTool) -> None:
    shown = tool.metadata.to_openai_tool()["function"]
    assert (shown["name"], shown["description"]) == ("animals", "About animals.")
    assert shown["parameters"]["required"] == ["input"]
    output = tool.call(input="cats")
    assert output.content.strip() == "year: 2021\n\nA cat sleeps."
    assert [scored.node.node_id for scored in output.raw_output] == ["cat"]


def test_it_can_be_awaited_and_nothing_found_is_no_error(tool: RetrieverTool) -> None:
    assert asyncio.run(tool.acall(input="dogs")).content.strip() == "Dogs bark."
    for nothing in ("zebra", ""):
        assert asyncio.run(tool.acall(input=nothing)).content == ""
