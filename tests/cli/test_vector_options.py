"""Sparse vectors on the command line: from files into an index, searched by, and out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bm25rag import BM25Index
from support.commands import fails, ok, rows, run, write, write_jsonl

RECORDS = [
    {"id": "a", "text": "A dog barks.", "vector": {"dog": 1.5, "pet": 0.1}},
    {"id": "b", "text": "A cat sleeps.", "vector": {"indices": [7], "values": [2]}},
    {"id": "c", "text": "A dog sleeps.", "vector": None},
    {"id": "d", "text": "A fish swims.", "vector": {"pet": 3, "dog": 0.5}},
]
IDS = ["a", "b", "c", "d"]
QUERY = '{"dog": 1, "pet": 0.5}'


@pytest.fixture
def saved() -> Path:
    path = write_jsonl(Path("c.jsonl"), RECORDS)
    ok("index", path, "-o", "saved", "--vector-field", "vector")
    return Path("saved")


@pytest.mark.parametrize("words", [[], ["--shards", 2], ["--memory", "256MiB"]])
def test_vectors_go_into_the_index_and_come_out_again(
    words: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_jsonl(Path("c.jsonl"), RECORDS)
    ok("index", path, "-o", "saved", "--vector-field", "vector", *words)
    index = BM25Index.open("saved")
    vectors = index.vectors.get(IDS)
    assert vectors == [
        {"dog": 1.5, "pet": pytest.approx(0.1)},
        {"7": 2.0},
        {},
        {"dog": 0.5, "pet": 3.0},
    ]
    assert index.get(["a"])[0].metadata == {}
    monkeypatch.setattr("bm25rag.cli.export._BATCH_WITH_VECTORS", 3)
    exported = ok("export", "saved").stdout
    assert [row["vector"] for row in rows(exported)] == vectors
    fields = ["--vector-field", "vector", "--metadata-field", "none"]
    ok("index", "-", "-o", "again", *fields, input=exported)
    again = BM25Index.open("again")
    assert again.get(IDS) == index.get(IDS)
    assert again.vectors.get(IDS) == vectors


def test_a_search_by_a_vector_is_that_of_the_library(saved: Path) -> None:
    index = BM25Index.open(saved)
    found = rows(ok("search", saved, "--vector", QUERY, "--format", "jsonl").stdout)
    hits = index.vectors.search(json.loads(QUERY))
    assert [(row["id"], row["score"]) for row in found] == [(hit.id, hit.score) for hit in hits]
    assert [hit.id for hit in hits] == ["d", "a"]
    limits = ["-k", 3, "--min-score", hits[0].score, "--filter", '{"$not": {"x": 1}}']
    trec = ok("search", saved, "--vector", QUERY, *limits, "--format", "trec").stdout
    assert trec == f"1 Q0 d 1 {hits[0].score!r} bm25rag\n"
    listed = '{"indices": [7], "values": [1]}'
    assert ok("search", saved, "--vector", listed).stdout.split()[4:7] == ["1", "2.0000", "b"]


@pytest.mark.parametrize("words", ["--json", "--format trec", "--format table"])
def test_a_query_and_a_vector_are_fused(saved: Path, words: str) -> None:
    hits = BM25Index.open(saved).search_hybrid("dog", json.loads(QUERY), 2)
    shown = ok("search", saved, "dog", "--vector", QUERY, "-k", 2, *words.split()).stdout
    if words == "--json":
        answer = json.loads(shown)
        assert answer["query"] == "dog"
        found = [(hit["id"], hit["score"], hit["text"]) for hit in answer["hits"]]
        assert found == [(hit.id, hit.score, hit.text) for hit in hits]
    elif words == "--format trec":
        assert shown.split()[2::6] == [hit.id for hit in hits]
    else:
        assert [line.split()[2] for line in shown.splitlines()[1:]] == [hit.id for hit in hits]
    assert len(hits) == 2


def test_nothing_found_by_a_query_and_a_vector_is_no_error(saved: Path) -> None:
    words = ["search", saved, "zebra", "--vector", '{"x": 1}']
    assert "No document matches." in ok(*words).stdout
    assert ok(*words, "--format", "trec").stdout == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--vector", "{"], "--vector': not JSON"),
        (["--vector", "[1]"], "expected a JSON object, got [1]"),
        (["--vector", '{"dog": "x"}'], "the vector['dog'] must be a number"),
        (["--vector", '{"indices": [1], "values": []}'], "has 1 indices and 0 values"),
        (["--vector", "{}", "--queries", "-"], "give either --vector or --queries FILE"),
        (["dog", "--vector", "{}", "--min-score", "1"], "--min-score is for one ranking"),
        (["--vector", "{}", "--filter", '{"a": {"$foo": 1}}'], "$foo"),
    ],
)
def test_a_wrong_command_line_exits_with_2(saved: Path, words: list[str], complaint: str) -> None:
    fails(2, complaint, "search", saved, *words)


def test_a_bad_vector_is_named_by_file_and_line() -> None:
    path = write_jsonl(Path("c.jsonl"), [*RECORDS, {"id": "e", "text": "x", "vector": [1.0]}])
    words = ["index", path, "-o", "saved", "--vector-field", "vector", "--on-error", "stop"]
    fails(3, "c.jsonl:5: vector field", *words)
    assert not Path("saved").exists()


def test_stats_tell_of_vectors_if_there_are_some(saved: Path) -> None:
    facts = json.loads(ok("stats", saved, "--json").stdout)
    assert (facts["vector_terms"], facts["vector_postings"]) == (3, 5)
    ok("index", "c.jsonl", "-o", "without")
    assert "vector " not in ok("stats", "without").stdout


def test_sync_replaces_documents_whose_vectors_have_changed() -> None:
    def synced(*words: str) -> str:
        return ok("sync", "d", "saved", *words).stderr.rpartition(" s: ")[2]

    options = ("--vector-field", "vector")
    write_jsonl(Path("d/c.jsonl"), RECORDS)
    ok("index", "d", "-o", "saved", *options)
    assert synced(*options).startswith("0 added, 0 replaced, 4 unchanged")
    changed = [{**RECORDS[0], "vector": {"dog": 1}}, {**RECORDS[1], "vector": {}}, *RECORDS[2:]]
    write_jsonl(Path("d/c.jsonl"), [*changed, {"id": "e", "text": "x", "vector": {"new": 1}}])
    assert synced(*options).startswith("1 added, 2 replaced, 2 unchanged")
    ids = [f"c.jsonl#{id}" for id in "abcde"]
    vectors = BM25Index.open("saved").vectors.get(ids)
    assert vectors == [{"dog": 1.0}, {}, {}, {"pet": 3.0, "dog": 0.5}, {"new": 1.0}]
    write("d/other.jsonl", '{"text": "without"}')
    result = run("sync", "d", "saved", *options)
    assert result.exit_code == 4
    assert "other.jsonl:1: no vector field 'vector'" in result.stderr


def test_sync_of_vectors_into_an_index_without_any() -> None:
    write_jsonl(Path("d/c.jsonl"), [{**record, "vector": None} for record in RECORDS])
    ok("index", "d", "-o", "saved", "--vector-field", "vector")
    write_jsonl(Path("d/c.jsonl"), RECORDS)
    result = ok("sync", "d", "saved", "--vector-field", "vector")
    assert "0 added, 3 replaced, 1 unchanged" in result.stderr
