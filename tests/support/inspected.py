"""The inspector on a port of its own, and what talks to it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest

from bm25rag import Analyzer, BM25Index, Document

pytest.importorskip("jinja2", reason="the extra inspect is not installed")
pytest.importorskip("starlette", reason="the extra inspect is not installed")
pytest.importorskip("uvicorn", reason="the extra inspect is not installed")
from bm25rag.inspector.app import make_server
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.judgements import Judgements
from bm25rag.inspector.opened import OpenedIndex

VIEWS = [
    *("search", "document", "analysis", "compare", "terms", "term", "judged", "cost", "health")
]


def asking_for(text: str) -> dict[str, Any]:
    """Return the arguments of any view that hold a text wherever one may be."""
    return {
        "q": f"evil {text}",
        "id": text,
        "t": text,
        "text": text,
        "prefix": text[:1],
        "size": 50,
    }


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Inspected:
    """An inspector that runs, its desk, and what holds its connections."""

    def __init__(self, desk: Desk, port: int, server: Any) -> None:
        self.desk, self.port, self.server = desk, port, server
        self.host = f"127.0.0.1:{port}"
        self.base = f"http://{self.host}"

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def page(self, view: str, status: int = 200, **given: object) -> str:
        answer = self.ask(address(view, **given))
        assert answer.status == status, answer.text
        return answer.text

    def json(self, view: str, status: int = 200, **given: object) -> dict[str, Any]:
        answer = self.ask(address(f"{view}.json", **given))
        assert answer.status == status, answer.text
        found: dict[str, Any] = json.loads(answer.body)
        return found

    def post(self, view: str, body: str = "", **given: object) -> Answer:
        return self.ask(address(view, **given), "POST", body, Origin=self.base)

    def judge(self, grade: object, **given: object) -> Answer:
        return self.post("judge", f"grade={grade}", **given)


def address(view: str, **given: object) -> str:
    """Return an address; ``w_title`` is the name ``w.title``."""
    named = {
        name.replace("w_", "w.", 1) if name.startswith("w_") else name: str(value)
        for name, value in given.items()
    }
    return f"/{view}?{urlencode(named, errors='surrogatepass', quote_via=quote)}"


@contextmanager
def inspecting(
    folder: Path, qrels: Path | None = None, queries: dict[str, str] | None = None, **options: Any
) -> Iterator[Inspected]:
    """Serve an index in a thread."""
    judgements = None if qrels is None else Judgements(qrels, queries)
    desk = Desk(OpenedIndex(folder, **options), judgements)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = make_server(desk)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Inspected(desk, listening.getsockname()[1], server)
        finally:
            server.should_exit = True
            thread.join()


TEXTS = {
    "boat": "A red boat sails on the sea.",
    "car": "A red car drives on the road, a red road.",
    "sea": "The sea is deep, the sea is blue, and red at night.",
    "bird": "A bird flies in the sky.",
    "filter": "Filters choose by metadata.",
}
METADATA: list[dict[str, Any]] = [
    {"kind": "vehicle", "year": 2020, "tags": ["water", "red"]},
    {"kind": "vehicle", "year": 2021, "tags": ["road"]},
    {"kind": "place", "year": 2020},
    {"kind": "animal", "a.b": {"$c": True}},
    {},
]


def small(**settings: Any) -> BM25Index:
    return BM25Index.from_texts(TEXTS.values(), [*TEXTS], METADATA, **settings)


def save_kind(kind: str, folder: Path) -> None:
    """Save an index of a kind that a view must not break on."""
    if kind == "fields":
        texts = [{"title": id, "text": text} for id, text in TEXTS.items()]
        weights = {"title": 2.0, "text": 1.0}
        BM25Index.from_texts(texts, [*TEXTS], METADATA, fields=weights).save(folder)
    elif kind == "analyses":
        letters = Analyzer(language=None, ngrams=3)
        small(analyzer=Analyzer(also=[(letters, 0.3)])).save(folder)
    elif kind == "vectors":
        vectors = [{"red": 1.0, "blue": 0.5}, None, {"sea": 2.0}, None, None]
        small(vectors=vectors).save(folder)
    elif kind == "sharded":
        rows = zip(TEXTS.items(), METADATA, strict=True)
        documents = [Document(*pair, metadata) for pair, metadata in rows]
        BM25Index.build(documents, folder, shards=3)
    elif kind == "empty":
        BM25Index().save(folder)
    elif kind == "textless":
        small(store_text=False).save(folder)
    elif kind == "bm25+":
        small(variant="bm25+").save(folder)
    elif kind == "changed":
        small().save(folder)
        with BM25Index.open(folder, mode="w") as index:
            index.delete(["car"])
            index.update_metadata(["sea"], [{"kind": "water"}])
            index.add(["A new red text."], ids=["new"])
    else:
        small().save(folder)


KINDS = [
    *("plain", "fields", "analyses", "vectors", "sharded", "empty", "textless", "bm25+", "changed")
]


SCRIPT = "<script>document.title='owned'</script>"
IMAGE = "\"'><img src=x onerror=\"document.title='owned'\">"
HOSTILE = [
    SCRIPT,
    IMAGE,
    "line\nbreak\ttab",
    "nul\0 and escape\x1b[31m",
    "lone \ud800 surrogate",
    "\u202egnp.exe",
    "a/b?c#d%e&f=g+h",
    "{{ 7919 * 7907 }}{% raw %}",
    "</textarea></title></style>",
    " ",
]


def save_hostile(folder: Path) -> list[str]:
    """Save an index whose ids, texts, metadata and terms are hostile; return the ids."""
    index = BM25Index()
    texts = [f"evil {one} document" for one in HOSTILE]
    metadata = [{one: one, "nested": {one: [one, 1, None]}, "evil": True} for one in HOSTILE]
    index.add(texts, ids=HOSTILE, metadata=metadata)
    index.add([["evil", *HOSTILE]], ids=["terms"])
    index.save(folder)
    return [*HOSTILE, "terms"]


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attributes}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        return [
            attributes
            for name, attributes in self.found
            if name == tag and all(attributes.get(key) == one for key, one in wanted.items())
        ]
