"""``--restrict``: commands, and a language model, see some of the documents as if they were all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from support.commands import fails, ok, rows

RECENT = '{"year": {"$gte": 2022}}'


def test_commands_see_nothing_else(saved: Path) -> None:
    only = ("--restrict", RECENT)
    found = rows(ok("search", saved, "red blue sea", "--format", "jsonl", *only).stdout)
    assert {row["id"] for row in found} <= {"sea", "bird"}
    wider = ("--filter", '{"year": {"$exists": true}}')
    assert (
        rows(ok("search", saved, "red blue sea", "--format", "jsonl", *only, *wider).stdout)
        == found
    )
    assert [row["id"] for row in rows(ok("export", saved, *only).stdout)] == ["sea", "bird"]
    assert json.loads(ok("stats", saved, "--json", *only).stdout)["documents"] == 2
    fails(3, "no document with the id 'car'", "explain", saved, "red", "car", *only)
    fails(2, "$near", "search", saved, "red", "--restrict", '{"year": {"$near": 1}}')
    fails(2, "rejects something", "search", saved, "red", "--restrict", "{}")


def test_a_language_model_hears_of_nothing_else(saved: Path) -> None:
    tools = IndexTools([Served(saved, restrict=json.loads(RECENT))])
    assert len(tools) == 2
    assert "2 documents" in tools.describe()
    for filter in (None, {"year": {"$exists": True}}, {"$id": "car"}):
        content, _ = tools.call("search", {"query": "red car boat sea", "filter": filter})
        assert "car" not in str(content).replace("'query': 'red car boat sea'", "")
        content, _ = tools.call("grep", {"pattern": "car", "filter": filter})
        assert "road" not in str(content)
    with pytest.raises((LookupError, ValueError)):
        tools.call("read", {"id": "car"})
    assert tools.call("count", {"filter": {"$id": "car"}})[0] == {"count": 0}
    with pytest.raises(LookupError, match="there is no document with the id 'car'"):
        tools.call("explain", {"query": "red", "id": "car"})
    fails(2, "either --write or --restrict", "mcp", saved, "--write", "--restrict", RECENT)


def test_groups_and_decay_are_options(saved: Path) -> None:
    whole = rows(ok("search", saved, "red blue sea", "--format", "jsonl").stdout)
    grouped = rows(
        ok("search", saved, "red blue sea", "--format", "jsonl", "--group", "none").stdout
    )
    assert grouped == [row | {"group_size": 1} for row in whole]
    (answer,) = rows(ok("search", saved, "red blue sea", "--json", "--group", "none").stdout)
    assert answer["groups"] == len(whole)
    assert " group " in ok("search", saved, "red", "--group", "none").stdout
    decay = '{"path": "year", "full": 10000, "floor": 0.001}'
    lowered = rows(ok("search", saved, "red", "--format", "jsonl", "--decay", decay).stdout)
    assert max(row["score"] for row in lowered) < 0.3 * max(row["score"] for row in whole)
    assert "decay" in ok("explain", saved, "red", "car", "--decay", decay).stdout
    fails(2, "path is missing", "search", saved, "red", "--decay", '{"half_life": "1d"}')
    tools = IndexTools([Served(saved)])
    content, _ = tools.call(
        "search", {"query": "red", "decay": json.loads(decay), "group": "$text"}
    )
    assert all(row["id"] in str(content) for row in lowered)
    assert content["total"] == len(lowered)
    assert {hit["group_size"] for hit in content["hits"]} == {1}
