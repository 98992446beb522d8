"""The search tool, called by a scripted model through LlamaIndex's own machinery."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever, agent_tools, search_tool

sys.path.append(str(Path(__file__).parents[3] / "tests"))
scripted = pytest.importorskip(
    "support.scripted", reason="what adapters' tests share is in the repository alone"
)


def retriever(**options: object) -> BM25Retriever:
    pairs = zip(scripted.TEXTS, scripted.YEARS, strict=True)
    nodes = [TextNode(id_=f"n{year}", text=text, metadata={"year": year}) for text, year in pairs]
    return BM25Retriever.from_defaults(nodes=nodes, **options)


@pytest.mark.parametrize("mode", [MetadataMode.EMBED, MetadataMode.NONE])
def test_a_scripted_model_finds_pages_and_mends_its_mistakes(mode: MetadataMode) -> None:
    tool = search_tool(retriever(metadata_mode=mode), "notes", scripted.ABOUT)
    shown = tool.metadata.to_openai_tool()["function"]
    scripted.check_schema(shown["name"], shown["description"], shown["parameters"])
    for awaited in (False, True):
        heard: list[str] = []
        for arguments in scripted.calls(heard):
            output = asyncio.run(tool.acall(**arguments)) if awaited else tool.call(**arguments)
            heard.append(output.content)


def test_the_retrievers_own_filters_hold_whatever_the_model_asks_for() -> None:
    own = MetadataFilters(filters=[MetadataFilter(key="year", value=2003)])
    tool = search_tool(retriever(filters=own), "notes", scripted.ABOUT)
    answer = tool.call(query="cats", filter={"year": {"$gte": 2000}}).content
    assert "cat sleeps 3 hours" in answer
    assert "2. " not in answer


def test_three_tools_find_quote_and_keep_to_the_retrievers_filters() -> None:
    own = MetadataFilters(filters=[MetadataFilter(key="year", value=2003)])
    made = [agent_tools(one, "notes", "Notes") for one in (retriever(), retriever(filters=own))]
    scripted.check_quoting(
        *(
            {
                str(tool.metadata.name): lambda tool=tool, **given: tool.call(**given).content
                for tool in each
            }
            for each in made
        )
    )
    assert all(tool.metadata.description.startswith("Notes. ") for tool in made[0])
