"""A web application on a port of this machine, until it is interrupted."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uvicorn

# What ASGI calls so.
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def serve(server: uvicorn.Server, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Answer until the process is interrupted; port 0 is any that is free.

    ``tell`` is called with the address when it can be opened. An ``OSError`` says that the port is
    in use, or that nothing can listen there.
    """
    with _listening(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        tell(f"http://{shown}:{listening.getsockname()[1]}/")
        server.run(sockets=[listening])


def header_of(scope: Message, wanted: bytes) -> str | None:
    """Return the value of a header; ``None`` if there is none, or more than one."""
    values = [value for name, value in scope.get("headers", ()) if name == wanted]
    return values[0].decode("latin-1") if len(values) == 1 else None


async def refuse(send: Send, status: int, message: str, *more: tuple[bytes, bytes]) -> None:
    """Answer with a status, a line that says why, and ``more`` headers."""
    body = f"{message}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = (
                f"port {port} of {host} is in use: stop what listens there, or choose another "
                "with --port; --port 0 takes any that is free"
            )
        elif error.errno in (errno.EACCES, errno.EADDRNOTAVAIL) or isinstance(
            error, socket.gaierror
        ):
            message = f"cannot listen at {host}, port {port}: {error.strerror or error}"
        else:
            raise
        raise OSError(message) from error
    # Connections have it, too: asyncio does not set it for them, and without it each answer on a
    # connection that stays open, whose headers are sent first, waits 40 ms for the client.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
