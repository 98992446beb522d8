"""``search``: what it prints, and how it fails."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from bm25rag import BM25Index, Query
from support.commands import fails, ok, rows, write_jsonl

# --- search ---------------------------------------------------------------------


def test_a_query_is_answered_in_a_table(saved: Path) -> None:
    lines = ok("search", saved, "red boats").stdout.splitlines()
    assert lines[0].split() == ["#", "score", "id", "text"]
    hit = BM25Index.open(saved).search("red boats")[0]
    assert lines[1].split()[:3] == ["1", f"{hit.score:.4f}", "boat"]
    assert "A red boat sails" in lines[1]


def test_json_lines_hold_the_hits_of_the_library(saved: Path) -> None:
    found = rows(ok("search", saved, "red sea", "--format", "jsonl").stdout)
    hits = BM25Index.open(saved).search("red sea")
    assert [row["id"] for row in found] == [hit.id for hit in hits]
    assert [row["score"] for row in found] == [hit.score for hit in hits]
    assert [row["text"] for row in found] == [hit.text for hit in hits]
    assert [row["metadata"] for row in found] == [hit.metadata for hit in hits]
    assert [(row["query_id"], row["rank"]) for row in found] == [("1", 1), ("1", 2), ("1", 3)]


def test_signs_are_read_if_that_is_asked_for(saved: Path) -> None:
    asked = 'red -"the sea"'
    index = BM25Index.open(saved)
    assert len(rows(ok("search", saved, asked, "--format", "jsonl").stdout)) == 3
    found = rows(ok("search", saved, asked, "--syntax", "--format", "jsonl").stdout)
    assert [row["id"] for row in found] == [hit.id for hit in index.search(Query.parse(asked))]
    why = ok("explain", saved, asked, "boat", "--syntax").stdout
    assert "not_phrases 'the sea': failed, the document has it" in why
    assert "(no match)" in why


@pytest.mark.filterwarnings("always")
def test_a_time_for_phrases_that_is_over_is_warned_of(saved: Path) -> None:
    asked = ("search", saved, '"the sea"', "--syntax")
    cut, whole = ok(*asked, "--timeout", "1e-9"), ok(*asked, "--timeout", "60")
    assert "matches may be missing" in cut.stderr
    assert whole.stderr == ""
    assert whole.stdout == ok(*asked).stdout
    fails(2, "--timeout is for phrases", "search", saved, "sea", "--timeout", "1")
    fails(2, "timeout must be more than 0", *asked, "--timeout", "0")


def test_other_wordings_are_added_by_score_or_by_rank(saved: Path) -> None:
    index = BM25Index.open(saved)
    asked = (
        "search",
        saved,
        "red",
        "--also",
        "the sea^0.5",
        "--also",
        "boats",
        "--format",
        "jsonl",
    )
    hits = index.search(Query("red", also={"the sea": 0.5, "boats": 1.0}))
    found = rows(ok(*asked).stdout)
    assert [(row["id"], row["score"]) for row in found] == [(hit.id, hit.score) for hit in hits]
    hits = index.search_fused(["red", "the sea", "boats"], weights=[1.0, 0.5, 1.0])
    found = rows(ok(*asked, "--by-rank").stdout)
    assert [(row["id"], row["score"]) for row in found] == [(hit.id, hit.score) for hit in hits]
    why = ok("explain", saved, "red", "boat", "--also", "sea^0.25").stdout
    assert "sea    0.25" in why
    for wrong, said in (
        (("--also", "sea^1e400"), "must be"),
        (("--also", ""), "must not be empty"),
        (("--by-rank", "--also", "sea^-1"), "weights[1]"),
        (("--by-rank", "--min-score", "1"), "--min-score is for one ranking"),
        (("--by-rank", "--vector", "{}"), "--by-rank or --vector"),
    ):
        fails(2, said, "search", saved, "red", *wrong)
    Path("queries").write_text("red", encoding="utf-8")
    need = "--also and --by-rank need a QUERY"
    fails(2, need, "search", saved, "--queries", "queries", "--also", "sea")


@pytest.mark.parametrize(
    "queries", ['{"_id": "q1", "text": "red"}\n{"_id": "q2", "text": "sea"}', "q1\tred\nq2\tsea\n"]
)
@pytest.mark.parametrize("from_stdin", [True, False])
def test_a_file_of_queries_becomes_a_trec_run(saved: Path, queries: str, from_stdin: bool) -> None:
    Path("queries").write_text(queries, encoding="utf-8")
    where, input = ("-", queries) if from_stdin else ("queries", None)
    result = ok("search", saved, "--queries", where, "--format", "trec", "-k", 2, input=input)
    index = BM25Index.open(saved)
    expected = [
        f"{id} Q0 {hit.id} {rank} {hit.score!r} bm25rag"
        for id, query in (("q1", "red"), ("q2", "sea"))
        for rank, hit in enumerate(index.search(query, k=2), start=1)
    ]
    assert result.stdout.splitlines() == expected


def test_results_go_to_a_file(saved: Path) -> None:
    result = ok("search", saved, "red", "--format", "trec", "--output", "run.trec")
    assert result.stdout == ""
    assert len(Path("run.trec").read_text(encoding="utf-8").splitlines()) == 2
    ok("search", saved, "zebra", "--format", "trec", "--output", "run.trec")
    assert Path("run.trec").read_text(encoding="utf-8") == ""


def test_a_file_of_results_stays_where_there_are_none_for_it(saved: Path) -> None:
    Path("run").write_text("earlier", encoding="utf-8")
    fails(3, "gone: No such file", "search", saved, "--queries", "gone", "--output", "run")
    fails(2, "$foo", "search", saved, "red", "--filter", '{"a": {"$foo": 1}}', "--output", "run")
    queries = "q\tred\nno tab"
    fails(3, "<stdin>:2", "search", saved, "--queries", "-", "--output", "run", input=queries)
    fails(3, "saved", "search", saved, "red", "--output", saved)
    assert Path("run").read_text(encoding="utf-8") == "earlier"


def test_more_queries_than_fit_in_one_block_keep_their_order(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.cli.search._BATCH", 2)
    queries = "".join(f"q{n}\tred\n" for n in range(5))
    result = ok("search", saved, "--queries", "-", "-k", 1, "--format", "jsonl", input=queries)
    assert [row["query_id"] for row in rows(result.stdout)] == ["q0", "q1", "q2", "q3", "q4"]


def test_filter_minimum_and_threads_reach_the_search(saved: Path) -> None:
    filter_ = '{"year": {"$gte": 2021}}'
    found = rows(ok("search", saved, "red sea", "--filter", filter_, "--format", "jsonl").stdout)
    assert {row["id"] for row in found} == {"car", "sea"}
    best = max(row["score"] for row in found)
    rest = ["--filter", filter_, "--min-score", repr(best), "--threads", 2]
    result = ok("search", saved, "red sea", *rest, "--format", "jsonl")
    assert [row["score"] for row in rows(result.stdout)] == [best]


def test_scoring_options_tune_the_view_and_leave_the_index(saved: Path) -> None:
    tuned = ok("search", saved, "sea", "--variant", "bm25+", "--k1", 0.5, "--format", "jsonl")
    index = BM25Index.open(saved)
    hits = index.tune(variant="bm25+", k1=0.5).search("sea")
    assert [row["score"] for row in rows(tuned.stdout)] == [hit.score for hit in hits]
    assert index.variant == "lucene"


def test_nothing_found_is_no_error(saved: Path) -> None:
    assert "No document matches." in ok("search", saved, "zebra").stdout
    assert "No document was asked for: -k is 0." in ok("search", saved, "zebra", "-k", 0).stdout
    assert "No more documents match." in ok("search", saved, "boat", "--offset", "9").stdout
    assert ok("search", saved, "zebra", "--format", "jsonl").stdout == ""
    assert ok("search", saved, "", "--format", "trec").stdout == ""
    assert ok("search", saved, "red", "-k", 0, "--format", "trec").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "give either a QUERY or --queries FILE"),
        (["red", "--queries", "-"], "give either a QUERY or --queries FILE"),
        (["-"], "QUERY is a text: --queries - reads queries from standard input"),
        (["red", "-k", "-1"], "-1 is not in the range"),
        (["red", "--threads", "0"], "0 is not in the range"),
        (["red", "--filter", "{"], "--filter"),
        (["red", "--filter", "[1]"], "expected a JSON object, got [1]"),
        (["red", "--filter", '{"year": NaN}'], "NaN is not JSON"),
        (["red", "--delta", "1"], "Error: --variant 'lucene' has no delta, got --delta 1.0"),
        (["red", "--format", "xml"], "xml"),
    ],
)
def test_a_wrong_command_line_exits_with_2(
    saved: Path, arguments: list[str], complaint: str
) -> None:
    fails(2, complaint, "search", saved, *arguments)


def test_ids_that_a_trec_run_cannot_hold_are_refused() -> None:
    write_jsonl(Path("c.jsonl"), [{"id": "a b", "text": "red"}])
    ok("index", "c.jsonl", "-o", "spaced")
    fails(
        3, "document id 'a b' is empty or has white", "search", "spaced", "red", "--format", "trec"
    )
    trec = ("search", "spaced", "--queries", "-", "--format", "trec")
    fails(3, "query id ''", *trec, input="\tred")


def test_markup_and_control_characters_in_documents_do_nothing() -> None:
    text = "red [bold]boat[/bold] \x1b[31m :smile: \ud800 end"
    record = {"id": "[red]\x1b]0;x\x07", "text": text, "when": "\udfff"}
    write_jsonl(Path("c.jsonl"), [record])
    ok("index", "c.jsonl", "-o", "odd")
    table = ok("search", "odd", "boat").stdout
    assert "\x1b" not in table
    assert "[bold]boat[/bold] \ufffd[31m :smile: \ufffd end" in " ".join(table.split())
    assert r"[red]\x1b]0;x\x07" in table
    (row,) = rows(ok("search", "odd", "boat", "--format", "jsonl").stdout)
    assert (row["id"], row["text"], row["metadata"]) == (record["id"], text, {"when": "\udfff"})


def test_dates_in_metadata_are_iso_strings_and_missing_texts_null() -> None:
    utc = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    index = BM25Index()
    index.add(["red"], metadata=[{"day": dt.date(2024, 5, 1), "at": utc}], store_text=False)
    index.save("dated")
    (row,) = rows(ok("search", "dated", "red", "--format", "jsonl").stdout)
    assert row["metadata"] == {"day": "2024-05-01", "at": "2024-05-01T12:00:00+00:00"}
    assert row["text"] is None
    assert "(text not stored)" in ok("search", "dated", "red").stdout


# --- as one object a query ------------------------------------------------------


@pytest.mark.parametrize("words", ["--json", "--format json", "--json --format json"])
def test_json_is_one_object_with_the_hits_of_the_library(saved: Path, words: str) -> None:
    answer = json.loads(ok("search", saved, "red sea", *words.split()).stdout)
    hits = BM25Index.open(saved).search("red sea")
    assert answer == {
        "query_id": "1",
        "query": "red sea",
        "hits": [
            {
                "rank": rank,
                "id": hit.id,
                "score": hit.score,
                "text": hit.text,
                "metadata": hit.metadata,
            }
            for rank, hit in enumerate(hits, start=1)
        ],
    }


def test_json_of_a_file_of_queries_is_one_object_a_line_also_where_nothing_is_found(
    saved: Path,
) -> None:
    result = ok("search", saved, "--queries", "-", "--json", input="a\tred\nb\tzebra\n")
    answers = rows(result.stdout)
    assert [(one["query_id"], one["query"]) for one in answers] == [("a", "red"), ("b", "zebra")]
    assert [hit["id"] for hit in answers[0]["hits"]] == ["boat", "car"]
    assert answers[1]["hits"] == []


def test_json_and_another_format_contradict_each_other(saved: Path) -> None:
    fails(
        2, "give either --json or --format trec", "search", saved, "x", "--json", "--format", "trec"
    )


# --- the question above its hits ------------------------------------------------


def test_one_question_is_not_repeated_and_those_of_a_file_are(saved: Path) -> None:
    assert "1: " not in ok("search", saved, "red boats").stdout
    shown = ok("search", saved, "--queries", "-", input="q7\tred boats\n").stdout
    assert shown.splitlines()[0] == "q7: red boats"


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "trec"])
def test_an_offset_shows_the_next_page_with_its_ranks(saved: Path, format_: str) -> None:
    def shown(*options: object) -> str:
        return ok("search", saved, "red sea", "--format", format_, *options).stdout

    first, second = shown("-k", 1), shown("-k", 2, "--offset", 1)
    ids = [hit.id for hit in BM25Index.open(saved).search("red sea")]
    assert ids[0] in first
    assert ids[1] in second
    if format_ == "table":
        assert [line.split()[0] for line in second.splitlines()] == ["#", "2", "3"]
    elif format_ == "trec":
        assert [line.split()[3] for line in second.splitlines()] == ["2", "3"]
    else:
        answers = rows(second)
        hits = answers if format_ == "jsonl" else answers[0]["hits"]
        assert [(hit["id"], hit["rank"]) for hit in hits] == [(ids[1], 2), (ids[2], 3)]


def test_an_offset_holds_for_vectors_and_both(saved: Path) -> None:
    index = BM25Index.from_texts(["red", "red sea"], vectors=[{"red": 1.0}, {"red": 2.0}])
    index.save("vectors.bm25")
    vector = ("--vector", '{"red": 1.0}', "--format", "jsonl")
    for query in ([], ["red"]):
        whole = rows(ok("search", "vectors.bm25", *query, *vector).stdout)
        page = rows(ok("search", "vectors.bm25", *query, *vector, "--offset", 1).stdout)
        assert page == whole[1:]


def test_a_table_marks_nothing_where_there_is_no_terminal_and_bold_where_there_is() -> None:
    text = "filler " * 100 + "cats sleep"
    write_jsonl(Path("c.jsonl"), [{"id": "a", "text": text}])
    ok("index", "c.jsonl", "-o", "saved")
    table = ok("search", "saved", "cat").stdout
    assert "cats sleep" in " ".join(table.split())
    assert "\x1b" not in table


def test_json_says_where_the_words_are_if_asked(saved: Path) -> None:
    (row, *_) = rows(ok("search", saved, "boats", "--format", "jsonl", "--spans").stdout)
    assert [row["text"][start:end] for start, end, _ in row["spans"]] == ["Boats", "boat"]
    answer = json.loads(ok("search", saved, "boats", "--json", "--spans").stdout)
    assert answer["hits"][0]["spans"] == row["spans"]
    assert "spans" not in ok("search", saved, "boats", "--json").stdout
