"""Fields on the command line: weights by ``--field``, texts from metadata."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bm25rag import BM25Index
from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from support.commands import fails, ok, rows, write_jsonl

RECORDS = [
    {"id": "a", "title": "Cats", "text": "They sleep.", "year": 2020},
    {"id": "b", "title": "Dogs", "text": "They chase cats, and cats run."},
    {"id": "c", "metadata": {"title": "Cats at sea"}, "text": ""},
    {"id": "d", "title": None, "text": "A cat."},
]
FIELDS = {"title": 3.0, "text": 1.0}


def index(*words: object) -> BM25Index:
    ok("index", write_jsonl(Path("c.jsonl"), RECORDS), "-o", "saved", "--field", "title=3", *words)
    return BM25Index.open("saved")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--shards", 2],
        ["--memory", "256MiB"],
        ["--text-field", "title", "--text-field", "text"],
        ["--metadata-field", "year"],
    ],
)
def test_titles_are_a_field_and_stay_metadata(words: list[object]) -> None:
    one = index(*words)
    assert one.fields == FIELDS
    (document,) = one.get(["a"])
    assert document.fields == {"title": "Cats", "text": "They sleep."}
    assert document.metadata == {"title": "Cats", "year": 2020}
    expected = BM25Index.from_texts(
        [
            {"title": "Cats", "text": "They sleep."},
            {"title": "Dogs", "text": RECORDS[1]["text"]},
            {"title": "Cats at sea" if "--metadata-field" not in words else "", "text": ""},
            "A cat.",
        ],
        fields=FIELDS,
    )
    found = rows(ok("search", "saved", "cats", "--format", "jsonl").stdout)
    assert [row["score"] for row in found] == [hit.score for hit in expected.search("cats")]


def test_other_commands_take_the_fields_of_the_index(tmp_path: Path) -> None:
    index()
    ok("add", "saved", "-", input=json.dumps({"id": "e", "title": "Fish", "text": "x"}))
    assert [
        row["id"] for row in rows(ok("search", "saved", "fish", "--format", "jsonl").stdout)
    ] == ["e"]
    assert ok("search", "saved", "fish", "--format", "jsonl", "--field", "title=0").stdout == ""
    assert "title=3, text=1" in ok("stats", "saved").stdout
    assert "title: 1" in ok("explain", "saved", "cats", "a").stdout
    exported = ok("export", "saved").stdout
    ok("index", "-", "-o", "again", "--field", "title=3", input=exported)
    again = BM25Index.open("again")
    assert again.get(again.ids()) == BM25Index.open("saved").get(again.ids())


def test_a_folder_is_synchronised_with_its_fields() -> None:
    Path("folder").mkdir()
    write_jsonl(Path("folder/c.jsonl"), RECORDS)
    ok("index", "folder", "-o", "saved", "--field", "title=3")
    assert "0 added, 0 replaced, 4 unchanged" in ok("sync", "folder", "saved").stderr
    write_jsonl(Path("folder/c.jsonl"), [{**RECORDS[0], "title": "Mice"}, *RECORDS[1:]])
    assert "0 added, 1 replaced, 3 unchanged" in ok("sync", "folder", "saved").stderr
    assert BM25Index.open("saved").get(["c.jsonl#a"])[0].fields == {
        "title": "Mice",
        "text": "They sleep.",
    }


def test_export_and_search_show_fields_that_no_metadata_have() -> None:
    one = BM25Index(fields={"title": 2.0})
    one.add([{"title": "Cats", "text": "x"}, {"title": "Sea cats"}], metadata=[{"n": 1}, None])
    one.save("saved")
    assert [row["metadata"] for row in rows(ok("export", "saved").stdout)] == [
        {"n": 1, "title": "Cats"},
        {"title": "Sea cats"},
    ]
    found = rows(ok("search", "saved", "cats", "--format", "jsonl").stdout)
    assert found[0]["fields"] == {"title": "Cats"}
    tools = IndexTools([Served(Path("saved"))], write=True)
    answer = tools.call("search", {"query": "cats"})
    assert "Sea cats" in answer.text
    tools.call("add", {"documents": [{"id": "z", "text": "y", "metadata": {"title": "Whales"}}]})
    assert BM25Index.open("saved").get(["z"])[0].fields == {"title": "Whales", "text": "y"}


def test_what_is_wrong_is_said() -> None:
    path = write_jsonl(Path("c.jsonl"), [*RECORDS, {"id": "x", "title": 5, "text": "x"}])
    build = ("index", path, "-o", "saved", "--on-error", "stop", "--field")
    fails(3, "c.jsonl:5: field 'title': expected a string, got int", *build, "title=3")
    for wrong in ("title=x", "=3", ""):
        fails(2, f"expected NAME=WEIGHT, such as title=3, got {wrong!r}", *build, wrong)
    index()
    fails(2, "there is no field 'body', but title, text", "search", "saved", "x", "--field", "body")
    BM25Index.from_texts(["x"]).save("plain")
    complaint = "the documents of this index have no fields"
    fails(2, complaint, "search", "plain", "x", "--field", "title=2")
