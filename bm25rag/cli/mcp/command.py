"""The command, and standard input and output as a transport."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Self, cast

import click

from bm25rag.cli.mcp.http import serve_http
from bm25rag.cli.mcp.protocol import make_server
from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from bm25rag.cli.mcp.wire import Requests, readable_lines
from bm25rag.cli.options import (
    INDEX_PATH,
    examples,
    restrict_option,
    untrusted_option,
    usage_errors,
)
from bm25rag.cli.terminal import counted, write_message
from bm25rag.common.optional import load
from bm25rag.common.visible import one_line

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
        "bm25rag mcp docs.bm25 code.bm25 --about 'The manual' --about 'Its source code'",
        "BM25RAG_MCP_TOKEN=... bm25rag mcp docs.bm25 --http --port 8765",
    ),
)
@click.argument("index_paths", metavar="INDEX...", type=INDEX_PATH, nargs=-1, required=True)
@untrusted_option
@restrict_option("part")
@click.option(
    "--about", metavar="TEXT", multiple=True, help="What INDEX holds, for the model; one for each."
)
@click.option("--write", is_flag=True, help="Also offer tools that add and delete documents.")
@click.option(
    "--http", is_flag=True, help="Serve by HTTP, to those who know the token in BM25RAG_MCP_TOKEN."
)
@click.option("--host", default="127.0.0.1", help="Where to listen, with --http.")
@click.option("--port", default=8765, type=click.IntRange(0, 65535))
def mcp_command(
    index_paths: tuple[Path | str, ...],
    untrusted: bool,
    restrict: dict[str, Any] | None,
    statistics: Literal["whole", "part"],
    about: tuple[str, ...],
    write: bool,
    http: bool,
    host: str,
    port: int,
) -> None:
    """Serve indexes to agents by the Model Context Protocol.

    The client starts this command, and talks to it by standard input and output. Its
    tools are search, grep, read, explain and count. They see what other processes commit.
    """
    if about and len(about) != len(index_paths):
        message = f"give --about once for each INDEX: {len(index_paths)} times, or not at all"
        raise click.UsageError(message)
    if write and restrict is not None:
        message = "give either --write or --restrict: what is restricted can only be read"
        raise click.UsageError(message)
    if sys.stdin is None and not http:
        message = "standard input is closed; an MCP client starts this command and writes to it"
        raise OSError(message)
    each = zip(index_paths, about or [None] * len(index_paths), strict=True)
    with usage_errors():
        given: Any = {"restrict": restrict, "statistics": statistics}
        served = [Served(path, untrusted, text, **given) for path, text in each]
    tools = IndexTools(served, write)
    load("mcp", "bm25rag mcp needs mcp", "mcp")
    import anyio

    running = anyio.CapacityLimiter(_MOST_RUNNING)
    server = make_server(tools, running)
    what = f"{counted(len(tools), 'document')} of {', '.join(map(one_line, map(str, index_paths)))}"
    if http:
        serve_http(server, host, port, f"Serving {what} (MCP) at")
    else:
        write_message(f"Serving {what} (MCP)")
        _serve(server, running)


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
