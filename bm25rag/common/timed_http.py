"""HTTP whose clients have a time limit for each request.

What serves it refuses connections above a number. Without a limit, as many clients that send a
byte a minute would stop the service; uvicorn limits only how long a connection may be idle.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# For its headers and its body, of which the largest is 16 MiB.
SECONDS = 30.0


class TimedHTTP(H11Protocol):
    """A connection that is ended if a request is not complete in time.

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

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        super().connection_lost(exc)
        self._end_limit()

    def _wait_in_time(self) -> None:
        """Set the limit where the client is to send something; it is not set anew by each byte."""
        if self.transport.is_closing() or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end_limit()
        elif self._limit is None:
            self._limit = self.loop.call_later(SECONDS, self.transport.abort)

    def _end_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
