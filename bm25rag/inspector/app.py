"""The web application: addresses, pages, JSON, and the two things that a button can change."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from bm25rag.common import timed_http
from bm25rag.common.json_values import finite, iso_date
from bm25rag.errors import BM25Error, CommitNotFoundError
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.guard import guarded
from bm25rag.inspector.rendering import Pages
from bm25rag.inspector.views import VIEWS

if TYPE_CHECKING:
    import uvicorn

_log = logging.getLogger(__name__)
_STATIC = {
    "inspector.css": "text/css",
    "inspector.js": "text/javascript",
    "logo.svg": "image/svg+xml",
}
# Bytes of what a button sends; it sends less than twenty.
_LARGEST = 1_000
_BUG = "This is a bug in bm25rag: please report it, with the traceback that the terminal shows."


def make_server(desk: Desk, host: str = "127.0.0.1") -> uvicorn.Server:
    """Return what answers at a host."""
    inspector = _Inspector(desk)
    show, show_json = inspector.in_turn(inspector.show), inspector.in_turn(inspector.show_json)
    judge, keep = inspector.in_turn(inspector.judge), inspector.in_turn(inspector.keep_baseline)
    routes = [
        Route("/", show),
        Route("/static/{name}", inspector.static),
        Route("/judge", judge, methods=["POST"]),
        Route("/baseline", keep, methods=["POST"]),
        Route("/{view}.json", show_json),
        Route("/{view}", show),
    ]
    app = guarded(Starlette(routes=routes), host)
    return timed_http.make_server(app, lifespan="off")


class _Inspector:
    """Answers requests, one at a time: then their times and warnings are their own."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._pages = desk, Pages()
        self._turn = CapacityLimiter(1)
        folder = files("bm25rag.inspector") / "static"
        self._static = {name: (folder / name).read_bytes() for name in _STATIC}

    async def static(self, request: Request) -> Response:
        """Return the style, the script or the picture."""
        name = request.path_params["name"]
        if name not in self._static:
            return Response("not found\n", 404, media_type="text/plain")
        return Response(self._static[name], media_type=_STATIC[name])

    def in_turn(
        self, work: Callable[[Request, bytes], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers by a method, or with a page that says what is wrong."""

        async def answer(request: Request) -> Response:
            body = await _read(request)

            def call() -> Response:
                try:
                    return work(request, body)
                except Exception as error:
                    status, message = _failure(error)
                    data = {"error": message}
                    html = self._pages.render("error", "search", Asked({}), data, self._desk, [])
                    return Response(html, status, media_type="text/html")

            return await to_thread.run_sync(call, limiter=self._turn)

        return answer

    def show(self, request: Request, _body: bytes) -> Response:
        """Return a page."""
        view = request.path_params.get("view", "search")
        status, asked, data, notes = self._found(view, request)
        page = "error" if "error" in data else view
        html = self._pages.render(page, view, asked, data, self._desk, notes)
        return Response(html, status, media_type="text/html")

    def show_json(self, request: Request, _body: bytes) -> Response:
        """Return what a page shows, as JSON that all readers take: ``null`` for NaN."""
        view = request.path_params["view"]
        status, _, data, notes = self._found(view, request)
        shown = finite({"view": view, **data, "notes": notes})
        text = json.dumps(shown, default=iso_date, indent=1)
        return Response(text, status, media_type="application/json")

    def judge(self, request: Request, body: bytes) -> Response:
        """Write a judgement, and go back to the page."""
        asked = Asked.read(request.scope["query_string"])
        if self._desk.judgements is None:
            raise ValueError("start the inspector with --qrels FILE.tsv to judge documents")
        if asked.id is None:
            raise ValueError("no document is named")
        self._desk.judgements.judge(asked.question, asked.id, _grade(body))
        back = asked.given.get("back", "search")
        view = back if back in VIEWS else "search"
        own = {} if view == "document" else {"id": None}
        return RedirectResponse(asked.address(view, back=None, **own), 303)

    def keep_baseline(self, request: Request, _body: bytes) -> Response:
        """Keep the index of this moment and its settings, and compare with them."""
        asked = Asked.read(request.scope["query_string"])
        self._desk.keep_baseline(asked.settings)
        changed = {**asked.as_other(), "commit": "baseline"}
        return RedirectResponse(asked.address("compare", **changed), 303)

    def _found(self, view: str, request: Request) -> tuple[int, Asked, dict[str, Any], list[str]]:
        """Return the status, what was asked for, what a view shows, and what was warned of."""
        asked = Asked({})
        if view not in VIEWS:
            return 404, asked, {"error": f"There is no view {view!r}; there are {[*VIEWS]}."}, []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                asked = Asked.read(request.scope["query_string"])
                status, data = 200, VIEWS[view](self._desk, asked)
            except Exception as error:
                status, message = _failure(error)
                data = {"error": message}
        notes = list(dict.fromkeys(str(one.message) for one in caught))
        if self._desk.opened.trouble:
            notes.append(self._desk.opened.trouble)
        return status, asked, data, notes


def _failure(error: Exception) -> tuple[int, str]:
    """Return the status and the message of an error; those that are not ours are logged."""
    if isinstance(error, CommitNotFoundError):
        return 404, str(error)
    if isinstance(error, (ValueError, BM25Error)):
        return 400, str(error)
    if isinstance(error, OSError):
        return 500, str(error)
    _log.error("the inspector failed", exc_info=error)
    return 500, f"{type(error).__name__}: {error}. {_BUG}"


async def _read(request: Request) -> bytes:
    """Return what a form sends, if that is as little as ours do."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            return b""
    return body


def _grade(body: bytes) -> int | None:
    """Return the grade that a form sends; ``None`` to remove one."""
    given = parse_qs(body.decode("latin-1")).get("grade", [""])[0]
    if given == "none":
        return None
    if not (given.isascii() and given.isdecimal() and len(given) == 1):
        raise ValueError(f"a grade is from 0 to 9, or 'none', got {given!r:.20}")
    return int(given)
