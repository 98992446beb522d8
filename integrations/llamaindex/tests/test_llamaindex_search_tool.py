"""The search tool, called by a scripted model through LlamaIndex's own machinery."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.retrievers.bm25rag import BM25Retriever, agent_tools, search_tool
from llama_index.vector_stores.bm25rag import BM25VectorStore

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


def test_what_it_could_not_search_or_would_get_around_is_refused() -> None:
    """It asks the index itself, so a tenant's filters in a subclass would not hold."""

    class Scoped(BM25Retriever):
        def _retrieve(self, query_bundle: Any) -> Any:
            return [one for one in super()._retrieve(query_bundle) if one.metadata["year"] == 2003]

    class Named(BM25Retriever):
        def clear(self) -> Any:
            raise NotImplementedError

    bm25 = retriever().bm25
    for wrong in (BM25VectorStore(bm25), bm25, None):
        with pytest.raises(TypeError, match=r"must be a BM25Retriever, .* give BM25Retriever\("):
            search_tool(wrong, "notes", "Notes")
    with pytest.raises(TypeError, match="Scoped overrides _retrieve"):
        agent_tools(Scoped(existing_bm25=bm25), "notes", "Notes")
    tool = search_tool(Named(existing_bm25=bm25), "notes", "Notes")
    assert "cat sleeps" in tool.call(query="cats").content


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


class ScriptedLLM(FunctionCallingLLM):
    """A model that takes the steps of the script."""

    model: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_kwargs: Any
    ) -> dict[str, Any]:
        assert {tool.metadata.name for tool in tools} == {
            "search_notes",
            "grep_notes",
            "read_notes",
        }
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def chat(self, messages: Sequence[ChatMessage], **_kwargs: Any) -> ChatResponse:
        step = self.model.next(str(messages[-1].content))
        calls = [] if isinstance(step, str) else [step]
        message = ChatMessage(
            role="assistant",
            content=step if isinstance(step, str) else "",
            additional_kwargs={"calls": calls},
        )
        return ChatResponse(message=message)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages, **kwargs)

    def get_tool_calls_from_response(
        self, response: ChatResponse, *_: Any, **_kwargs: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id="1", tool_name=name, tool_kwargs=arguments)
            for name, arguments in response.message.additional_kwargs["calls"]
        ]

    def complete(self, *_: Any, **_kwargs: Any) -> Any:
        raise NotImplementedError

    acomplete = stream_complete = astream_complete = stream_chat = astream_chat = complete


# The framework's agent looks at all of its own attributes, and pydantic warns of some.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
def test_an_agent_finds_pages_quotes_and_its_quotation_holds() -> None:
    notes = retriever()
    agent = FunctionAgent(
        tools=agent_tools(notes, "notes", scripted.ABOUT),
        llm=ScriptedLLM(model=scripted.Model()),
        streaming=False,
    )

    async def run() -> Any:
        return await agent.run("How long do cats sleep?", max_iterations=100)

    answer = str(asyncio.run(run()))
    scripted.check_quotation(answer, lambda id: notes.bm25.get([id])[0].text or "")
