"""Elasticsearch and OpenSearch as systems, on a stand-in that knows the requests they are sent.

No real server is asked here: what is tested is our side of the requests that both document, and
that answers in the form that both document are understood. ``.github/workflows/servers.yml`` asks
real ones.
"""

from __future__ import annotations

import json
import re
import threading
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.evaluation.bench import benchmark
from bm25rag.evaluation.systems import SYSTEMS, CannotRunError, make_system
from support.environment import ROOT
from support.evaluation import write_tiny_collection

pytest.importorskip("urllib3")

DOCUMENTS = [Document("a", "red apple"), Document("b", "red boat"), Document("c", "boat boat")]


class StandIn(ThreadingHTTPServer):
    """Indexes by name, and what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.indexes: dict[str, BM25Index] = {}
        self.recorded: dict[str, Any] = {}
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
        asked = f"{self.command} {'/'.join(path.split('/')[2:])}"
        if asked in self.server.recorded:
            return 200, self.server.recorded[asked]
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
    return answered([(hit.id, hit.score) for hit in found])


def answered(hits: list[tuple[str, float]], **change: Any) -> dict[str, Any]:
    """Return a search's answer in the form that both servers document."""
    return {
        "took": 3,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {
            "total": {"value": len(hits), "relation": "eq"},
            "max_score": hits[0][1] if hits else None,
            "hits": [{"_index": "books", "_id": id, "_score": score} for id, score in hits],
        },
    } | change


# Answers as the servers' references print them, their values replaced by ours.
SHARDS = {"total": 2, "successful": 1, "failed": 0}
INDEXED = {"_index": "books", "_version": 1, "result": "created", "_shards": SHARDS}
INDEXED |= {"_seq_no": 0, "_primary_term": 1, "status": 201}
# elastic/elasticsearch, docs/reference/docs/bulk.asciidoc; OpenSearch documents the same form.
BULK = {
    "took": 30,
    "errors": False,
    "items": [{"index": INDEXED | {"_id": document.id}} for document in DOCUMENTS],
}
WHY = {"type": "mapper_parsing_exception", "reason": "failed to parse field [text]"}
BULK_FAILED = BULK | {
    "errors": True,
    "items": [{"index": INDEXED}, {"index": {"_id": "b", "status": 400, "error": WHY}}],
}
# docs/reference/rest-api/root.asciidoc; documentation-website/_api-reference/cluster-api/info.md
INFO = {
    "Elasticsearch": {
        "name": "instance-0000000000",
        "cluster_name": "my_test_cluster",
        "version": {"number": "8.12.1", "lucene_version": "9.9.2", "build_flavor": "default"},
        "tagline": "You Know, for Search",
    },
    "OpenSearch": {
        "name": "opensearch-node1",
        "cluster_name": "opensearch-cluster",
        "version": {"distribution": "opensearch", "number": "3.2.0", "lucene_version": "9.10.0"},
        "tagline": "The OpenSearch Project: https://opensearch.org/",
    },
}
FAILED = {"error": {"root_cause": [WHY], **WHY, "index": "books"}, "status": 400}


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


@pytest.fixture(params=["Elasticsearch", "OpenSearch"])
def recorded(
    request: pytest.FixtureRequest, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Return a system, and the answers that its server has been told to give."""
    name: str = request.param
    monkeypatch.setenv(f"{name.upper()}_URL", server.address)
    server.recorded |= {
        "GET ": INFO[name],
        "PUT ": {"acknowledged": True, "shards_acknowledged": True, "index": "books"},
        "POST _bulk": BULK,
        "POST _forcemerge": {"_shards": SHARDS},
        "POST _refresh": {"_shards": SHARDS},
        "POST _search": answered([("c", 0.87), ("b", 0.41)]),
        # documentation-website/_api-reference/search-apis/multi-search.md
        "POST _msearch": {
            "took": 2150,
            "responses": [answered([("c", 0.87)], status=200), answered([], status=200)],
        },
        "DELETE ": {"acknowledged": True},
    }
    system = make_system(name)
    yield system, server.recorded
    system._pool.clear()  # type: ignore[attr-defined]


def test_answers_in_the_form_that_the_servers_document_are_understood(
    recorded: tuple[Any, dict[str, Any]],
) -> None:
    system, answers = recorded
    system.build(DOCUMENTS)
    assert system.search("boat", 2) == [("c", 0.87), ("b", 0.41)]
    system.search_batch(["boat", "zebra"], 2, 1)
    answers["POST _search"] = answered([])
    assert system.search("zebra", 2) == []
    assert system.version() in ("8.12.1", "3.2.0")
    system.close()


@pytest.mark.parametrize(
    ("asked", "answer", "message"),
    [
        ("_bulk", BULK_FAILED, "did not index document 'b': mapper_parsing_exception: failed to"),
        ("_search", answered([("c", 1.0)], timed_out=True), "from a part of the documents"),
        ("_search", answered([], _shards=SHARDS | {"failed": 1}), "from a part of the documents"),
        (
            "_msearch",
            {"took": 1, "responses": [answered([], status=200), FAILED]},
            "did not answer a query: mapper_parsing_exception: failed to parse field",
        ),
    ],
)
def test_a_server_that_fails_in_part_is_not_measured(
    recorded: tuple[Any, dict[str, Any]], asked: str, answer: dict[str, Any], message: str
) -> None:
    system, answers = recorded
    answers[f"POST {asked}"] = answer

    def measure() -> None:
        system.build(DOCUMENTS)
        system.search("boat", 2)
        system.search_batch(["boat", "sea"], 2, 1)

    with pytest.raises(RuntimeError, match=message):
        measure()


def test_without_an_address_there_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ELASTICSEARCH_URL", raising=False)
    with pytest.raises(CannotRunError, match="no server: set ELASTICSEARCH_URL"):
        make_system("Elasticsearch")


@pytest.mark.slow
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


def test_the_workflow_measures_the_servers_that_are_known() -> None:
    workflow = (ROOT / ".github" / "workflows" / "servers.yml").read_text("utf-8")
    named = re.findall(r"- system: (\w+)", workflow)
    assert named == ["Elasticsearch", "OpenSearch"]
    assert set(named) <= SYSTEMS.keys()
    for name in named:
        assert f"{name.upper()}_URL: http://localhost:9200" in workflow
