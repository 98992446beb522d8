"""The protocol: its requests become calls of the tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from bm25rag import __version__
from bm25rag.agents.answers import LARGEST_BUDGET, plain
from bm25rag.agents.schemas import object_schema
from bm25rag.cli.mcp.tools import IndexTools
from bm25rag.errors import BM25Error

if TYPE_CHECKING:
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server

_ERRORS = (BM25Error, OSError, TypeError, ValueError)
_RESOURCE = "bm25rag://{index}/{id}"
_ADDRESS = re.compile(r"bm25rag://([^/]+)/(.+)", re.DOTALL)
_PROMPT = """Answer this question from the documents of the index alone: {question}

Search for words that the answer would contain, and for synonyms; grep for exact names and codes. \
Go on with the cursor, or ask again in other words, until you know enough. Read the lines before \
you quote them. Quote word for word, each time with id and lines. If the documents do not tell, \
say so."""


def make_server(tools: IndexTools, running: anyio.CapacityLimiter | None = None) -> Server[Any]:
    """Return the server of some tools, whose calls ``running`` limits."""
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError

    async def list_tools(context: object, request: object) -> types.ListToolsResult:
        offered = await anyio.to_thread.run_sync(tools.tools, limiter=running)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=object_schema(tool.properties, tool.required),
                    output_schema=tool.returns,
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.reads, open_world_hint=False
                    ),
                )
                for tool in offered
            ]
        )

    async def call_tool(
        context: object, request: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name, arguments = request.name, request.arguments or {}
        try:
            answer = await anyio.to_thread.run_sync(tools.call, name, arguments, limiter=running)
        except _ERRORS as error:
            failure = types.TextContent(text=_message(error))
            return types.CallToolResult(content=[failure], is_error=True)
        text = types.TextContent(text=answer.text)
        return types.CallToolResult(content=[text], structured_content=answer.content)

    async def list_resources(context: object, request: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])  # there may be millions

    async def list_templates(context: object, request: object) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=_RESOURCE,
            name="document",
            description=f"A document by its id. Indexes: {', '.join(tools.names)}.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        context: object, request: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            match = _ADDRESS.fullmatch(str(request.uri))
            if match is None:
                raise ValueError(f"a resource is {_RESOURCE}, got {request.uri!s:.200}")
            index, id = unquote(match[1]), unquote(match[2])
            text = await anyio.to_thread.run_sync(_read, tools, index, id, limiter=running)
        except _ERRORS as error:
            raise MCPError(types.INVALID_PARAMS, _message(error)) from error
        content = types.TextResourceContents(uri=request.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(context: object, request: object) -> types.ListPromptsResult:
        question = types.PromptArgument(name="question", required=True)
        description = f"Answer a question with quotations. Documents: {tools.describe()}"
        prompt = types.Prompt(name="answer", description=description, arguments=[question])
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(
        context: object, request: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        question = (request.arguments or {}).get("question")
        if request.name != "answer" or not question:
            message = "there is one prompt, answer, with the argument question"
            raise MCPError(types.INVALID_PARAMS, message)
        text = types.TextContent(text=_PROMPT.format(question=question))
        asked = types.PromptMessage(role="user", content=text)
        return types.GetPromptResult(messages=[asked])

    return Server(
        "bm25rag",
        version=__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _read(tools: IndexTools, index: str, id: str) -> str:
    if index not in tools.names:  # an address of another server's would be answered by this one
        raise ValueError(f"index must be one of {', '.join(tools.names)}, got {index!r:.100}")
    which = {"index": index} if len(tools.names) > 1 else {}
    return tools.call("read", {**which, "id": id, "budget": LARGEST_BUDGET}).text


def _message(error: Exception) -> str:
    """Return what is wrong; it may repeat what was passed, however long that is."""
    text: str = plain(f"{error!s:.1000}")
    return text
