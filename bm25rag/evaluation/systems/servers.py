"""Elasticsearch and OpenSearch, where the environment names a server."""

from __future__ import annotations

import importlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bm25rag.documents import Document
from bm25rag.evaluation.systems.base import CannotRunError, Found, System

_BULK = 1000  # documents of a request
_SETTINGS: dict[str, Any] = {
    "settings": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "index": {"similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}}},
    },
    "mappings": {"properties": {"text": {"type": "text", "analyzer": "english"}}},
}


class Server(System):
    """A server with the requests that Elasticsearch and OpenSearch have in common.

    One shard, the analyzer ``english``; an index of its own, which is removed at the end.
    ``NAME_URL`` in the environment is the address, with user and password if the server asks for
    them: ``http://user:password@localhost:9200``.
    """

    remote = True

    def __init__(self, name: str) -> None:
        variable = f"{name.upper()}_URL"
        address = os.environ.get(variable)
        if not address:
            raise CannotRunError(f"no server: set {variable}, such as http://localhost:9200")
        urllib3 = importlib.import_module("urllib3")
        parts = urllib3.util.parse_url(address)
        headers = urllib3.util.make_headers(keep_alive=True, basic_auth=parts.auth)
        self._base = parts._replace(auth=None).url.rstrip("/")
        self._pool = urllib3.PoolManager(headers=headers)
        self._name = f"bm25rag-bench-{uuid.uuid4().hex}"

    def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return a server's answer; ``body`` is JSON, or lines of JSON."""
        lines = isinstance(body, list)
        parts = map(json.dumps, body if lines else [] if body is None else [body])
        kind = "application/x-ndjson" if lines else "application/json"
        got = self._pool.request(
            method,
            f"{self._base}{path}",
            body="".join(f"{part}\n" for part in parts).encode() or None,
            headers={**self._pool.headers, "content-type": kind},
        )
        if got.status >= 300:
            text = got.data.decode("utf-8", "replace")[:200]
            raise RuntimeError(f"{method} {path}: the server answered {got.status}: {text}")
        answer: dict[str, Any] = got.json()
        return answer

    def version(self) -> str | None:
        return str(self._ask("GET", "/")["version"]["number"])

    def build(self, documents: Sequence[Document]) -> None:
        self._ask("PUT", f"/{self._name}", _SETTINGS)
        rest = iter(documents)
        while some := list(islice(rest, _BULK)):
            answer = self._ask("POST", f"/{self._name}/_bulk", list(_bulk(some)))
            if answer["errors"]:
                failed = next(one["index"] for one in answer["items"] if "error" in one["index"])
                raise RuntimeError(
                    f"the server did not index document {failed['_id']!r}: {_reason(failed)}"
                )
        self._ask("POST", f"/{self._name}/_forcemerge?max_num_segments=1")
        self._ask("POST", f"/{self._name}/_refresh")

    def search(self, query: str, k: int) -> Found:
        return _found(self._ask("POST", f"/{self._name}/_search", _question(query, k)))

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        lines: list[Mapping[str, Any]] = []
        for query in queries:
            lines += [{}, _question(query, k)]
        path = f"/{self._name}/_msearch?max_concurrent_searches={threads}"
        for answer in self._ask("POST", path, lines)["responses"]:
            _found(answer)

    def close(self) -> None:
        self._ask("DELETE", f"/{self._name}")


def _bulk(documents: Iterable[Document]) -> Iterator[Mapping[str, Any]]:
    for one in documents:
        yield {"index": {"_id": one.id}}
        yield {"text": one.text or ""}


def _question(query: str, k: int) -> dict[str, Any]:
    return {"query": {"match": {"text": query}}, "size": k, "_source": False}


def _found(answer: Mapping[str, Any]) -> Found:
    """Return the hits of an answer, which must be whole: a server may answer in part."""
    if "error" in answer:
        raise RuntimeError(f"the server did not answer a query: {_reason(answer)}")
    if answer["timed_out"] or answer["_shards"]["failed"]:
        raise RuntimeError("the server answered a query from a part of the documents")
    return [(hit["_id"], hit["_score"]) for hit in answer["hits"]["hits"]]


def _reason(answer: Mapping[str, Any]) -> str:
    """Return what a server says of an error, which is an object of type and reason."""
    return f"{answer['error']['type']}: {answer['error']['reason']}"
