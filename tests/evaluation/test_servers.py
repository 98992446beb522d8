"""Elasticsearch and OpenSearch as systems, on a stand-in that knows the requests they are sent.

No real server is asked here: what is tested is our side of the requests that both document.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.evaluation.bench import benchmark
from bm25rag.evaluation.systems import CannotRunError, make_system
from support.evaluation import write_tiny_collection

pytest.importorskip("urllib3")

DOCUMENTS = [Document("a", "red apple"), Document("b", "red boat"), Document("c", "boat boat")]


class StandIn(ThreadingHTTPServer):
    """Indexes by name, and what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.indexes: dict[str, BM25Index] = {}
        self.asked: list[str] = []
        self.users: set[str] = set()
        self.refuses = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        path = self.path.partition("?")[0]
        self.server.asked.append(f"{self.command} {'/'.join(path.split('/')[2:])}")
        if secret := self.headers.get("authorization"):
            self.server.users.add(b64decode(secret.removeprefix("Basic ")).decode())
        status, said = (503, {"error": "busy"}) if self.server.refuses else self._do(path, body)
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _do(self, path: str, body: str) -> tuple[int, Any]:
        if path == "/":
            return 200, {"version": {"number": "9.9.9"}}
        _, name, *rest = path.split("/")
        indexes = self.server.indexes
        if self.command == "PUT":
            settings = json.loads(body)
            assert settings["settings"]["number_of_shards"] == 1
            assert settings["mappings"]["properties"]["text"]["analyzer"] == "english"
            indexes[name] = BM25Index()
            return 200, {"acknowledged": True}
        if self.command == "DELETE":
            return (200, {}) if indexes.pop(name, None) else (404, {"error": "no such index"})
        lines = [json.loads(line) for line in body.splitlines()]
        if rest == ["_bulk"]:
            assert self.headers["content-type"] == "application/x-ndjson"
            pairs = zip(lines[::2], lines[1::2], strict=True)
            documents = [Document(head["index"]["_id"], one["text"]) for head, one in pairs]
            indexes[name].add_documents(documents)
            return 200, {"errors": False}
        if rest == ["_search"]:
            return 200, _search(indexes[name], lines[0])
        if rest == ["_msearch"]:
            return 200, {"responses": [_search(indexes[name], one) for one in lines[1::2]]}
        return 200, {}


def _search(index: BM25Index, asked: dict[str, Any]) -> dict[str, Any]:
    assert asked["_source"] is False
    found = index.search(asked["query"]["match"]["text"], k=asked["size"])
    return {"hits": {"hits": [{"_id": hit.id, "_score": hit.score} for hit in found]}}


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["Elasticsearch", "OpenSearch"])
def test_a_server_is_a_system(name: str, server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{name.upper()}_URL", server.address)
    system = make_system(name)
    system.build(DOCUMENTS)
    assert [id for id, _ in system.search("boat", 2)] == ["c", "b"]
    assert system.search("zebra", 2) == []
    system.search_batch(["boat", "apple"], 2, 2)
    assert system.version() == "9.9.9"
    system.close()
    assert server.indexes == {}
    assert server.asked == [
        *("PUT ", "POST _bulk", "POST _forcemerge", "POST _refresh"),
        *("POST _search", "POST _search", "POST _msearch", "GET ", "DELETE "),
    ]
    system._pool.clear()  # type: ignore[attr-defined]


def test_user_and_password_of_the_address_are_sent_and_not_told(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = server.address.replace("//", "//ada:secret@")
    monkeypatch.setenv("OPENSEARCH_URL", address)
    system = make_system("OpenSearch")
    system.build(DOCUMENTS)
    assert server.users == {"ada:secret"}
    server.refuses = True
    with pytest.raises(RuntimeError, match=r"_search: the server answered 503") as caught:
        system.search("boat", 1)
    assert "secret" not in str(caught.value)
    system._pool.clear()  # type: ignore[attr-defined]


def test_without_an_address_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELASTICSEARCH_URL", raising=False)
    with pytest.raises(CannotRunError, match="no server: set ELASTICSEARCH_URL"):
        make_system("Elasticsearch")


def test_the_memory_of_a_server_is_not_guessed_from_that_of_its_client(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELASTICSEARCH_URL", server.address)
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    settings: dict[str, Any] = {"trials": 1, "warmup": 1, "measures": ["RR@10"]}
    names = ["Elasticsearch", "OpenSearch"]
    row, missing = benchmark(write_tiny_collection(), "measured", names, **settings)["rows"]
    assert row["measures"]["RR@10"] > 0.8
    assert row["version"] == "9.9.9"
    assert row["peak"] is row["resident"] is row["cost"] is row["cold_start"] is None
    assert missing["error"] == "no server: set OPENSEARCH_URL, such as http://localhost:9200"
