"""The lines of a client: messages that the protocol's library reads; the others are answered here.

The library drops what it cannot read, so that a client would wait for ever: JSON that is nested
more than 200 deep, lone surrogates, numbers of thousands of digits.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import mcp_types as types

# Bytes: what lists of documents to add may well have.
LONGEST_LINE = 16 << 20
# Lines that are read before they can be answered: short ones, and others; together some 100 MB.
_SHORT, _MOST_SHORT, _MOST_LONG = 1 << 12, 20_000, 8
# Seconds: without any answer or work, after which none is expected, and between two looks.
_GRACE, _TICK = 2.0, 0.02
# JSON-RPC's codes.
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
# A request that was cancelled is not answered any more.
_CANCELLED = "notifications/cancelled"

_STRING = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)'
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_VALUE = re.compile(rf"\s*:\s*(?:({_STRING})|(-?[0-9]{{1,18}})(?=\s*[,}}]))", re.DOTALL)


class _Line(NamedTuple):
    content: bytes
    is_whole: bool


class Requests:
    """The requests that were read, and how many of each id are not answered yet."""

    def __init__(self) -> None:
        self._open: Counter[str | int] = Counter()

    def __len__(self) -> int:
        return (+self._open).total()

    def add(self, message: types.JSONRPCMessage) -> None:
        """Note a message of the client."""
        import mcp_types as types

        if isinstance(message, types.JSONRPCRequest):
            self._open[message.id] += 1
        elif isinstance(message, types.JSONRPCNotification) and message.method == _CANCELLED:
            id = (message.params or {}).get("requestId")
            if isinstance(id, (str, int)):  # it may be a list, which would be no key
                self._open.pop(id, 0)

    def answer(self, id: str | int | None) -> None:
        """Note an answer."""
        if id is not None:
            self._open[id] -= 1


async def readable_lines(
    stream: IO[bytes],
    answer: Callable[[types.JSONRPCError], Awaitable[None]],
    requests: Requests,
    is_busy: Callable[[], bool],
) -> AsyncIterator[str]:
    """Yield the lines that are messages; give ``answer`` an error for each of the others.

    The stream of lines ends when all ``requests`` are answered, or nothing is left that could
    answer them.
    """
    import mcp_types as types

    lines: asyncio.Queue[_Line | None] = asyncio.Queue()
    _Reader(stream, lines).start()
    while (line := await lines.get()) is not None:
        text = line.content.decode("utf-8", "replace")
        if not text.strip():
            continue
        message = _parse(text, line.is_whole)
        if not isinstance(message, types.ErrorData):
            requests.add(message)
            yield text
            continue
        await answer(types.JSONRPCError(jsonrpc="2.0", id=_id_in(text), error=message))
    left, since = len(requests), monotonic()
    while left and monotonic() < since + _GRACE:
        await asyncio.sleep(_TICK)
        if len(requests) != left or is_busy():
            left, since = len(requests), monotonic()


class _Reader(threading.Thread):
    """Reads ahead: the end of the stream is seen while calls keep the event loop waiting."""

    def __init__(self, stream: IO[bytes], lines: asyncio.Queue[_Line | None]) -> None:
        super().__init__(name="bm25rag-mcp-reader", daemon=True)
        self._stream, self._lines = stream, lines
        self._loop = asyncio.get_running_loop()

    def run(self) -> None:
        """Read to the end."""
        with suppress(RuntimeError):  # the server has ended before the stream
            while (line := _read_line(self._stream)).content:
                limit = _MOST_SHORT if len(line.content) <= _SHORT else _MOST_LONG
                while self._lines.qsize() >= limit:
                    sleep(_TICK)
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


def _read_line(stream: IO[bytes]) -> _Line:
    """Return a line, or the beginning of one that is too long; the rest of that is dropped."""
    line = more = stream.readline(LONGEST_LINE)
    is_whole = len(line) < LONGEST_LINE or line.endswith(b"\n")
    while not is_whole and more and not more.endswith(b"\n"):
        more = stream.readline(1 << 20)
    return _Line(line, is_whole)


def _parse(text: str, is_whole: bool) -> types.JSONRPCMessage | types.ErrorData:
    """Return the message of a line, or what is wrong with it."""
    import mcp_types as types
    from pydantic import ValidationError

    if not is_whole:
        problem = f"a message has more than {LONGEST_LINE:,} bytes"
        return types.ErrorData(code=_INVALID_REQUEST, message=problem)
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            return types.ErrorData(code=_PARSE_ERROR, message=f"{first['msg']:.200}")
        problem = "not a request, a notification or a response of JSON-RPC 2.0"
        return types.ErrorData(code=_INVALID_REQUEST, message=problem)
    except ValueError as error:
        return types.ErrorData(code=_PARSE_ERROR, message=f"{error!s:.200}")
    is_notification = isinstance(message, types.JSONRPCNotification)
    if is_notification and '"id"' in text and "id" in json.loads(text):
        problem = "the id of a request must be a string or an integer"
        return types.ErrorData(code=_INVALID_REQUEST, message=problem)
    return message


def _id_in(text: str) -> str | int | None:
    """Return the id of a request that cannot be read; None if it cannot be known, or said.

    One pass over the line, which may be nested as deep as it likes, or end anywhere.
    """
    depth, id_match = 0, None
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif depth == 1 and token[0] == '"id"' and (value := _VALUE.match(text, token.end())):
            id_match = value
    if id_match is None:
        return None
    if id_match[2] is not None:
        return int(id_match[2])
    try:
        id_: str = json.loads(id_match[1])
        id_.encode()
    except ValueError:  # it is not closed, or has a lone surrogate
        return None
    return id_
