"""The command, and the protocol: its requests become calls of the tools."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

import click

from bm25rag import __version__
from bm25rag.cli.mcp.answers import plain
from bm25rag.cli.mcp.tools import IndexTools
from bm25rag.cli.mcp.wire import Requests, readable_lines
from bm25rag.cli.options import examples, reading_argument, usage_errors
from bm25rag.cli.terminal import counted, one_line, write_message
from bm25rag.common.optional import load
from bm25rag.errors import BM25Error

if TYPE_CHECKING:
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared._stream_protocols import WriteStream
    from mcp.shared.message import SessionMessage

# Calls at once; the others wait.
_MOST_RUNNING = 4
# As of every command.
_INTERRUPTED = 130


@click.command(
    "mcp",
    epilog=examples(
        "bm25rag mcp docs.bm25",
        "bm25rag mcp docs.bm25 --about 'Our handbook for new colleagues'",
    ),
)
@reading_argument
@click.option("--about", metavar="TEXT", help="What INDEX holds, for the language model.")
@click.option("--write", is_flag=True, help="Also offer tools that add and delete documents.")
def mcp_command(
    index_path: Path | str,
    untrusted: bool,
    restrict: dict[str, Any] | None,
    about: str | None,
    write: bool,
) -> None:
    """Serve INDEX to agents by the Model Context Protocol.

    The client starts this command, and talks to it by standard input and output. Its
    tools are search, get, explain and count. They see what other processes commit.
    """
    if sys.stdin is None:
        message = "standard input is closed; an MCP client starts this command and writes to it"
        raise OSError(message)
    with usage_errors():
        tools = IndexTools(index_path, untrusted, write, about, restrict)
    running = _limiter()
    server = _server(tools, running)
    write_message(f"Serving {counted(len(tools), 'document')} of {one_line(index_path)} (MCP)")
    _serve(server, running)


def _limiter() -> anyio.CapacityLimiter:
    """Return what limits the calls that run at once."""
    load("mcp", "bm25rag mcp needs mcp", "mcp")
    import anyio

    return anyio.CapacityLimiter(_MOST_RUNNING)


def _server(tools: IndexTools, running: anyio.CapacityLimiter | None = None) -> Server[Any]:
    import anyio.to_thread
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(context: object, request: object) -> types.ListToolsResult:
        offered = await anyio.to_thread.run_sync(tools.tools, limiter=running)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema={
                        "type": "object",
                        "properties": tool.properties,
                        "required": tool.required,
                        "additionalProperties": False,
                    },
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
        except (BM25Error, OSError, TypeError, ValueError) as error:
            # It may repeat what was wrong, however long that is.
            failure = types.TextContent(text=plain(f"{error!s:.1000}"))
            return types.CallToolResult(content=[failure], is_error=True)
        text = types.TextContent(text=answer.text)
        return types.CallToolResult(content=[text], structured_content=answer.content)

    return Server(
        "bm25rag",
        version=__version__,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _serve(server: Server[Any], running: anyio.CapacityLimiter) -> None:
    """Answer until standard input ends."""
    import anyio
    from mcp.server.stdio import stdio_server
    from mcp.shared.message import SessionMessage

    async def run() -> None:
        connected = anyio.Event()

        async def answer(error: types.JSONRPCError) -> None:
            await connected.wait()
            await write.send(SessionMessage(error))

        def is_busy() -> bool:
            return running.borrowed_tokens > 0

        lines = readable_lines(_input(), answer, requests, is_busy)
        # Of a file, it takes the lines alone.
        async with stdio_server(cast("anyio.AsyncFile[str]", lines)) as (read, write):
            connected.set()
            answers = _Answers(write, requests)
            await server.run(read, answers, server.create_initialization_options())

    # It warns of requests that it cannot read. The process is ours.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    requests, gone = Requests(), False
    with _ended_by_ctrl_c():
        try:
            anyio.run(run)
        except* BrokenPipeError:
            gone = True
    if gone:
        raise BrokenPipeError
    if requests:
        write_message(f"Not answered: {counted(len(requests), 'request')}")


class _Answers:
    """The stream of answers, which notes each."""

    def __init__(self, stream: WriteStream[SessionMessage], requests: Requests) -> None:
        self._stream, self._requests = stream, requests

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        self._requests.answer(getattr(item.message, "id", None))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _input() -> IO[bytes]:
    """Return a buffer of our own: a thread may still wait for it when Python closes sys.stdin."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:  # there is no file behind it
        return sys.stdin.buffer


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """End the process at once on Ctrl-C: Python would wait for the thread that reads the input.

    Nothing is lost, since a commit is one atomic step.
    """
    before = signal.signal(signal.SIGINT, lambda number, frame: os._exit(_INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
