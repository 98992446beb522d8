"""What every answer passes: who may ask, and what a browser may do with the answer.

The inspector has no password: it listens on this machine. A page elsewhere must still not reach
it: not by a name that leads here (the ``Host`` is checked), not by a form or a script (the
``Origin`` is, or what a browser says of it), and nothing that a document holds may run (the policy
allows no script but ours).
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from bm25rag.common.listening import App, Message, Receive, Send, header_of, refuse

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With "no-referrer" a browser would send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_WRONG_HOST = (
    "The inspector does not answer by this name. Open the address that it printed when it started."
)
_WRONG_ORIGIN = "Only a page of the inspector itself may do this."


def guarded(app: App, host: str) -> App:
    """Return an application for HTTP alone that refuses what comes from elsewhere.

    ``host`` is where it listens; a name of this machine by which it may be asked, too.
    """
    headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        given = header_of(scope, b"host")
        if given is None or not is_ours(given, host):
            await refuse(send_with_headers, 421, _WRONG_HOST)
        elif _is_from_elsewhere(scope, given):
            await refuse(send_with_headers, 403, _WRONG_ORIGIN)
        else:
            await app(scope, receive, send_with_headers)

    return answer


def is_ours(given: str, host: str) -> bool:
    """Whether a ``Host`` is a number or a name of ours, and not a stranger's that leads here."""
    try:
        name = urlsplit(f"//{given}").hostname or ""
        return name in ("localhost", host.lower()) or ip_address(name) is not None
    except ValueError:
        return False


def _is_from_elsewhere(scope: Message, host: str) -> bool:
    """Whether a page of another origin asks; it may lead here by a link, and no more.

    Such a page could not read an answer, but measure how long it took, which tells of documents.
    """
    if scope["method"] not in ("GET", "HEAD"):
        return (header_of(scope, b"origin") or "").lower() != f"http://{host.lower()}"
    site, mode = header_of(scope, b"sec-fetch-site"), header_of(scope, b"sec-fetch-mode")
    return site in ("cross-site", "same-site") and mode != "navigate"
