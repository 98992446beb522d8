"""Streamable HTTP as a transport, for those who know a token."""

from __future__ import annotations

import os
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from bm25rag.cli.terminal import write_message
from bm25rag.common import listening
from bm25rag.common.listening import App, Message, Receive, Send

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

TOKEN = "BM25RAG_MCP_TOKEN"
_SHORTEST_TOKEN = 16
_LARGEST = 16 << 20  # bytes of a request


def serve_http(server: Server[Any], host: str, port: int, message: str) -> None:
    """Answer until the process is interrupted."""
    from bm25rag.common import timed_http  # most serve no HTTP

    token = os.environ.get(TOKEN, "")
    if len(token) < _SHORTEST_TOKEN or not token.isascii():
        raise ValueError(
            f"--http needs a token of at least {_SHORTEST_TOKEN} ASCII characters in {TOKEN}: who "
            "has it may use the index; python -c 'import secrets; print(secrets.token_urlsafe())' "
            "makes one"
        )
    # Without sessions, nothing is kept for a client that has gone.
    app = server.streamable_http_app(
        host=host, stateless_http=True, json_response=True, max_request_body_size=_LARGEST
    )
    answering = timed_http.make_server(_behind(token, _while_asked(app)))
    listening.serve(answering, host, port, lambda address: write_message(f"{message} {address}mcp"))


def _behind(token: str, app: App) -> App:
    """Return an application that refuses requests without the token."""

    async def guarded(scope: Message, receive: Receive, send: Send) -> None:
        scheme, _, own = (listening.header_of(scope, b"authorization") or "").partition(" ")
        given = own.encode("latin-1") if scheme.lower() == "bearer" else b""
        if scope["type"] == "lifespan" or compare_digest(given, token.encode()):
            await app(scope, receive, send)
        else:
            await listening.refuse(
                send, 401, "the token is missing, or wrong", (b"www-authenticate", b"Bearer")
            )

    return guarded


def _while_asked(app: App) -> App:
    """Return an application that ends the work on a request when its client has gone.

    Otherwise calls that nobody waits for would keep others waiting.
    """
    import anyio

    async def watched(scope: Message, receive: Receive, send: Send) -> None:
        whole, gone = anyio.Event(), anyio.Event()

        async def received() -> Message:
            if whole.is_set():
                await gone.wait()
                return {"type": "http.disconnect"}
            message = await receive()
            if not message.get("more_body"):
                whole.set()
            return message

        async def watch() -> None:
            await whole.wait()
            await receive()  # which returns when the client has gone, or has been answered
            gone.set()
            group.cancel_scope.cancel()

        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await app(scope, received, send)
            group.cancel_scope.cancel()

    return watched
