"""The lines of a client: messages that the protocol's library reads; the others are answered here.

The library drops what it cannot read, so that a client would wait for ever: JSON that is nested
more than 200 deep, lone surrogates, numbers of thousands of digits.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import mcp_types as types

__all__ = ["LONGEST_LINE", "readable_lines"]

# Bytes: what lists of documents to add may well have.
LONGEST_LINE = 16 << 20
# Lines that are read before they can be answered: short ones, and others; together some 100 MB.
_SHORT, _MOST_SHORT, _MOST_LONG = 1 << 12, 20_000, 8
# Seconds: for what was asked when the stream ends, and between two looks.
_GRACE, _TICK = 2.0, 0.02
# JSON-RPC's codes.
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600

_STRING = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)'
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_VALUE = re.compile(rf"\s*:\s*(?:({_STRING})|(-?[0-9]{{1,18}})(?=\s*[,}}]))", re.DOTALL)


class _Line(NamedTuple):
    content: bytes
    is_whole: bool


async def readable_lines(
    stream: IO[bytes],
    answer: Callable[[types.JSONRPCError], Awaitable[None]],
    is_busy: Callable[[], bool],
) -> AsyncIterator[str]:
    """Yield the lines that are messages; give ``answer`` an error for each of the others.

    When the stream has ended, there are two seconds for what it asked, as long as ``is_busy``: what
    then is not done nobody waits for.
    """
    import mcp_types as types

    lines: asyncio.Queue[_Line | None] = asyncio.Queue()
    reader = _Reader(stream, lines)
    reader.start()
    while (line := await lines.get()) is not None and not reader.is_late():
        text = line.content.decode("utf-8", "replace")
        if not text.strip():
            continue
        code, problem = _problem(text, line.is_whole)
        if problem is None:
            yield text
            continue
        error = types.ErrorData(code=code, message=problem)
        await answer(types.JSONRPCError(jsonrpc="2.0", id=_id_in(text), error=error))
    await asyncio.sleep(_TICK)
    while is_busy() and not reader.is_late():
        await asyncio.sleep(_TICK)


class _Reader(threading.Thread):
    """Reads ahead: the end of the stream is seen while calls keep the event loop waiting."""

    def __init__(self, stream: IO[bytes], lines: asyncio.Queue[_Line | None]) -> None:
        super().__init__(name="bm25rag-mcp-reader", daemon=True)
        self._stream, self._lines = stream, lines
        self._loop = asyncio.get_running_loop()
        self._ended: float | None = None

    def is_late(self) -> bool:
        """Tell whether the stream ended so long ago that nobody waits for answers."""
        return self._ended is not None and monotonic() > self._ended + _GRACE

    def run(self) -> None:
        """Read to the end."""
        with suppress(RuntimeError):  # the server has ended before the stream
            while (line := _read_line(self._stream)).content:
                most = _MOST_SHORT if len(line.content) <= _SHORT else _MOST_LONG
                while self._lines.qsize() >= most:
                    sleep(_TICK)
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._ended = monotonic()
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


def _read_line(stream: IO[bytes]) -> _Line:
    """Return a line, or the beginning of one that is too long; the rest of that is dropped."""
    line = more = stream.readline(LONGEST_LINE)
    is_whole = len(line) < LONGEST_LINE or line.endswith(b"\n")
    while not is_whole and more and not more.endswith(b"\n"):
        more = stream.readline(1 << 20)
    return _Line(line, is_whole)


def _problem(text: str, is_whole: bool) -> tuple[int, str | None]:
    """Return what is wrong with a line, None if nothing is, and JSON-RPC's code for it."""
    import mcp_types as types
    from pydantic import ValidationError

    if not is_whole:
        return _INVALID_REQUEST, f"a message has more than {LONGEST_LINE:,} bytes"
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            return _PARSE_ERROR, f"{first['msg']:.200}"
        return _INVALID_REQUEST, "not a request, a notification or a response of JSON-RPC 2.0"
    except ValueError as error:
        return _PARSE_ERROR, f"{error!s:.200}"
    if isinstance(message, types.JSONRPCNotification) and _has_id(text):
        return _INVALID_REQUEST, "the id of a request must be a string or an integer"
    return 0, None


def _has_id(text: str) -> bool:
    return '"id"' in text and "id" in json.loads(text)


def _id_in(text: str) -> str | int | None:
    """Return the id of a request that cannot be read; None if it cannot be known, or said.

    One pass over the line, which may be nested as deep as it likes, or end anywhere.
    """
    depth, found = 0, None
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif depth == 1 and token[0] == '"id"' and (value := _VALUE.match(text, token.end())):
            found = value
    if found is None:
        return None
    if found[2] is not None:
        return int(found[2])
    try:
        id_: str = json.loads(found[1])
        id_.encode()
    except ValueError:  # it is not closed, or has a lone surrogate
        return None
    return id_
