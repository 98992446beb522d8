"""HTTP whose clients have a time limit for each request, and for taking the answer.

What serves it refuses connections above a number. Without a limit, as many clients that send a
byte a minute, or ask and never read, would stop the service; uvicorn limits only how long a
connection may be idle.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bm25rag.common.listening import App

# Connections at once, and seconds for answers when it ends.
_CONNECTIONS, _PATIENCE = 100, 2
# For its headers and its body, of which the largest is 16 MiB; and for what is sent back.
SECONDS = 30.0


class TimedHTTP(H11Protocol):
    """A connection that is ended if a request is not complete in time, or an answer not taken.

    h11 limits how long an address and headers may be.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait_in_time()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._wait_in_time()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered before its end."""
        super().on_response_complete()
        self._wait_in_time()

    def pause_writing(self) -> None:
        """Wait until some of what was sent is taken."""
        super().pause_writing()
        self._wait_in_time()

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._wait_in_time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        self._end_limit()

    def _wait_in_time(self) -> None:
        """Set the limit where the client is to send or to take something; no byte sets it anew."""
        if self.transport.is_closing():
            waits = self.transport.get_write_buffer_size() > 0
        else:
            waits = self.flow.write_paused or self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if not waits:
            self._end_limit()
        elif self._limit is None:
            self._limit = self.loop.call_later(SECONDS, self.transport.abort)

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def make_server(app: App, **options: Any) -> uvicorn.Server:
    """Return what answers on a socket; options are those of ``uvicorn.Config``."""
    config = uvicorn.Config(
        app,
        http=TimedHTTP,
        ws="none",
        log_level="critical",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_PATIENCE,
        server_header=False,
        **options,
    )
    return uvicorn.Server(config)
