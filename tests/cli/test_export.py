"""``export``: what was indexed comes out again."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from bm25rag import BM25Index, Document
from support.commands import CORPUS, fails, ok, rows, save_corpus


def test_documents_come_in_their_order_and_can_be_indexed_again() -> None:
    saved = save_corpus()
    with BM25Index.open(saved, mode="w") as index:
        index.delete(["car"])
    documents = [Document(**row) for row in rows(ok("export", saved).stdout)]
    assert [document.id for document in documents] == ["boat", "sea", "bird"]
    assert documents == BM25Index.open(saved).get(document.id for document in documents)


def test_the_command_line_indexes_again_what_it_exported() -> None:
    saved = save_corpus()
    ok("index", "-", "--output", "again", input=ok("export", saved).stdout)
    assert BM25Index.open("again").get(["sea"]) == BM25Index.open(saved).get(["sea"])
    found = rows(
        ok("search", "again", "red", "--filter", '{"year": 2021}', "--format", "jsonl").stdout
    )
    assert [row["id"] for row in found] == ["car"]


def test_a_filter_chooses_documents() -> None:
    saved = save_corpus()
    chosen = rows(ok("export", saved, "--filter", '{"year": {"$gte": 2022}}').stdout)
    assert [row["id"] for row in chosen] == ["sea", "bird"]
    fails(2, "$near", "export", saved, "--filter", '{"year": {"$near": 1}}')


def test_what_json_lacks_is_written_as_the_help_says() -> None:
    index = BM25Index()
    nested = [float("inf"), {"c": 1.5}]
    metadata = {"day": dt.date(2024, 2, 29), "price": float("nan"), "odd": "\x1b[31m", "b": nested}
    index.add(["text"], ["a"], [metadata], payloads=[b"payload"], store_text=False)
    index.save("saved")
    out = ok("export", "saved").stdout
    assert "\x1b" not in out
    assert json.loads(out) == {
        "id": "a",
        "text": None,
        "metadata": {
            "day": "2024-02-29",
            "price": None,
            "odd": "\x1b[31m",
            "b": [None, {"c": 1.5}],
        },
    }


def test_batches_leave_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.cli.export._BATCH", 3)
    saved = save_corpus()
    assert [row["id"] for row in rows(ok("export", saved).stdout)] == [row["_id"] for row in CORPUS]
