"""The command line: what each command writes, where it writes it, and how it fails."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bm25rag import Analyzer, BM25Index
from bm25rag.cli.app import commands
from bm25rag.errors import AnalyzerChangedWarning

CORPUS = [
    {"_id": "boat", "title": "Boats", "text": "A red boat sails on the sea.", "year": 2020},
    {"_id": "car", "title": "Cars", "text": "A red car drives on the road.", "year": 2021},
    {"_id": "sea", "title": "", "text": "The sea is deep, the sea is blue.", "year": 2022},
    {"_id": "bird", "title": "Birds", "text": "A bird flies in the sky.", "year": 2023},
]


def run(*arguments: object, input: str | None = None) -> Result:
    """Run a command as a user would, but let bugs of ours come through."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(commands, words, input=input, catch_exceptions=False)


def ok(*arguments: object, input: str | None = None) -> Result:
    result = run(*arguments, input=input)
    assert result.exit_code == 0, result.output
    return result


def fails(code: int, complaint: str, *arguments: object, input: str | None = None) -> None:
    """Check that the command fails with one message and no traceback."""
    result = run(*arguments, input=input)
    assert result.exit_code == code, result.output
    assert complaint in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def corpus() -> Path:
    return write_jsonl(Path("corpus.jsonl"), CORPUS)


@pytest.fixture
def saved(corpus: Path) -> Path:
    ok("index", corpus, "--output", "saved")
    return Path("saved")


# --- help -----------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = ok(name, "--help")
    assert "Usage: commands" in result.stdout
    if name != "demo":
        assert f"Examples:\n    bm25rag {name}" in result.stdout


def test_the_group_tells_the_exit_codes() -> None:
    assert "Exit codes:\n    0  " in ok("--help").stdout


# --- index ----------------------------------------------------------------------


def test_a_file_of_json_lines_is_indexed_as_the_library_would(saved: Path) -> None:
    index = BM25Index.open(saved)
    assert index.ids() == ["boat", "car", "sea", "bird"]
    texts = [f"{record['title']} {record['text']}".strip() for record in CORPUS]
    mine = BM25Index.from_texts(texts, ids=[str(record["_id"]) for record in CORPUS])
    assert [hit.score for hit in index.search("red sea")] == [
        hit.score for hit in mine.search("red sea")
    ]
    assert index.get(["boat"])[0].metadata == {"year": 2020}
    assert (index.analyzer, index.variant) == (Analyzer(), "lucene")


def test_index_says_what_it_did_on_the_standard_error(corpus: Path) -> None:
    result = ok("index", corpus, "-o", "saved")
    assert result.stdout == ""
    assert result.stderr.startswith("Indexed 4 documents in ")
    assert result.stderr.endswith(": saved\n")


def test_a_beir_folder_is_its_corpus() -> None:
    write_jsonl(Path("beir/corpus.jsonl"), CORPUS)
    write_jsonl(Path("beir/queries.jsonl"), [{"_id": "q", "text": "not a document"}])
    ok("index", "beir", "-o", "saved")
    assert len(BM25Index.open("saved")) == len(CORPUS)


def test_gzipped_json_lines_from_the_standard_input_and_several_sources(corpus: Path) -> None:
    Path("more.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1, "text": "more"}'))
    ok("index", corpus, "more.jsonl.gz", "-", "-o", "saved", input='{"id": "in", "text": "x"}')
    assert BM25Index.open("saved").ids() == ["boat", "car", "sea", "bird", "1", "in"]


def test_a_folder_of_markdown_is_cut_into_passages() -> None:
    Path("docs").mkdir()
    Path("docs/a.md").write_text("# One\nfirst\n\n## Two\n" + "word " * 30, encoding="utf-8")
    Path("docs/b.txt").write_text("plain", encoding="utf-8")
    ok("index", "docs", "-o", "saved", "--passage-size", 100)
    index = BM25Index.open("saved")
    assert index.ids() == ["docs/a.md#1", "docs/a.md#2", "docs/a.md#3", "docs/b.txt#1"]
    assert index.get(["docs/a.md#2"])[0].metadata == {"source": "docs/a.md", "heading": "One > Two"}


@pytest.mark.parametrize(
    ("format_", "ids"),
    [("auto", ["a.txt"]), ("text", ["a.txt"]), ("lines", ["a.txt#1", "a.txt#2"])],
)
def test_a_text_file_is_one_document_or_one_a_line(format_: str, ids: list[str]) -> None:
    Path("a.txt").write_text("one\ntwo\n", encoding="utf-8")
    ok("index", "a.txt", "-o", "saved", "--format", format_)
    assert BM25Index.open("saved").ids() == ids


def test_fields_are_named_by_options() -> None:
    write_jsonl(Path("c.jsonl"), [{"url": 7, "head": "red", "body": "boat", "lang": "en", "x": 1}])
    fields = ["--id-field", "url", "--text-field", "body", "--text-field", "head"]
    ok("index", "c.jsonl", "-o", "saved", *fields, "--metadata-field", "lang")
    (document,) = BM25Index.open("saved").get(["7"])
    assert (document.text, document.metadata) == ("boat red", {"lang": "en"})


def test_analyzer_and_scoring_are_chosen_by_options(corpus: Path) -> None:
    analysis = ["--language", "german", "--stopwords", "english", "--stemmer", "none"]
    scoring = ["--variant", "bm25+", "--k1", 0.9, "--b", 0.4, "--delta", 0.5]
    ok("index", corpus, "-o", "saved", *analysis, *scoring, "--delta-on", "matched")
    index = BM25Index.open("saved")
    assert index.analyzer == Analyzer(language="german", stopwords="english", stemmer=None)
    assert (index.variant, index.k1, index.b, index.delta) == ("bm25+", 0.9, 0.4, 0.5)
    assert index.delta_on == "matched"


@pytest.mark.parametrize(("policy", "text"), [("skip", "one"), ("replace", "two")])
def test_on_duplicate_says_which_of_two_stays(policy: str, text: str) -> None:
    write_jsonl(Path("c.jsonl"), [{"id": 1, "text": "one"}, {"id": 1, "text": "two"}])
    ok("index", "c.jsonl", "-o", "saved", "--on-duplicate", policy)
    assert [document.text for document in BM25Index.open("saved").get(["1"])] == [text]


def test_a_duplicate_id_is_an_error_and_nothing_is_saved() -> None:
    write_jsonl(Path("c.jsonl"), [{"id": "twin", "text": "one"}, {"id": "twin", "text": "two"}])
    fails(3, "'twin'", "index", "c.jsonl", "-o", "saved")
    assert not Path("saved").exists()


def test_an_index_is_replaced_only_by_force(saved: Path, corpus: Path) -> None:
    fails(3, "saved: is an index already; --force", "index", corpus, "-o", saved)
    Path("one.txt").write_text("one", encoding="utf-8")
    ok("index", "one.txt", "-o", saved, "--force")
    assert BM25Index.open(saved).ids() == ["one.txt"]


def test_a_damaged_index_is_not_replaced_by_force_either(saved: Path, corpus: Path) -> None:
    """What is left of it may be worth saving; a person decides."""
    (saved / "manifest.json").write_bytes(b"\0" * 10)
    fails(3, "manifest.json", "index", corpus, "-o", saved, "--force")
    assert (saved / "manifest.json").read_bytes() == b"\0" * 10


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_is_no_index_is_never_overwritten(corpus: Path, force: list[str]) -> None:
    Path("home").mkdir()
    Path("home/letter.txt").write_text("dear", encoding="utf-8")
    fails(3, "home", "index", corpus, "-o", "home", *force)
    fails(3, "home/letter.txt", "index", corpus, "-o", "home/letter.txt", *force)
    assert list(Path("home").iterdir()) == [Path("home/letter.txt")]
    assert Path("home/letter.txt").read_text(encoding="utf-8") == "dear"


def test_a_source_that_is_missing_is_named_before_any_work(corpus: Path) -> None:
    fails(3, "gone.jsonl: No such file", "index", corpus, "gone.jsonl", "-o", "saved")
    Path("empty").mkdir()
    fails(3, "empty: no BEIR folder", "index", "empty", "--format", "beir", "-o", "saved")
    fails(3, "empty: no Markdown or text files", "index", "empty", "-o", "saved")


def test_a_bad_line_is_named_by_file_and_number(corpus: Path) -> None:
    with corpus.open("a", encoding="utf-8") as file:
        file.write('{"_id": "late"\n')
    fails(3, "corpus.jsonl:5: invalid JSON", "index", corpus, "-o", "saved")
    assert not Path("saved").exists()


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--language", "klingon", "klingon"),
        ("--stopwords", "klingon", "klingon"),
        ("--stemmer", "klingon", "klingon"),
        ("--b", "2", "b must"),
        ("--k1", "nan", "k1 must"),
        ("--delta", "1", "delta"),
        ("--variant", "bm42", "bm42"),
        ("--passage-size", "0", "0 is not in the range"),
    ],
)
def test_wrong_values_are_the_command_lines_fault(
    corpus: Path, option: str, value: str, complaint: str
) -> None:
    fails(2, complaint, "index", corpus, "-o", "saved", option, value)


def test_a_terminal_is_shown_the_progress(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "4 docs" not in ok("index", corpus, "-o", "quiet").output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "4 docs" in ok("index", corpus, "-o", "saved").stderr


# --- add, delete, compact -------------------------------------------------------


def test_add_adds_and_delete_deletes(saved: Path) -> None:
    result = ok("add", saved, "-", input='{"id": "fish", "text": "A fish in the sea."}')
    assert result.stderr.startswith("Added 1 documents")
    assert "fish" in [hit.id for hit in BM25Index.open(saved).search("sea")]
    assert "Deleted 1 of 2" in ok("delete", saved, "fish", "unknown").stderr
    assert BM25Index.open(saved).ids() == ["boat", "car", "sea", "bird"]


def test_compact_leaves_nothing_of_deleted_documents(saved: Path) -> None:
    ok("delete", saved, "boat")
    assert b"red boat sails" in files_of(saved)
    assert ok("compact", saved).stderr.startswith("Compacted 3 documents")
    assert b"red boat sails" not in files_of(saved)
    assert BM25Index.open(saved, verify=True).ids() == ["car", "sea", "bird"]


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_an_add_that_fails_adds_nothing(saved: Path) -> None:
    lines = '{"id": "fish", "text": "A fish."}\n{"id": "boat", "text": "twice"}'
    fails(3, "'boat'", "add", saved, "-", input=lines)
    fails(3, "<stdin>:2: invalid JSON", "add", saved, "-", input=lines[:-1])
    assert BM25Index.open(saved).ids() == ["boat", "car", "sea", "bird"]


# --- search ---------------------------------------------------------------------


def test_a_query_is_answered_in_a_table(saved: Path) -> None:
    lines = ok("search", saved, "red boats").stdout.splitlines()
    assert lines[0] == "1: red boats"
    assert lines[1].split() == ["#", "score", "id", "text"]
    hit = BM25Index.open(saved).search("red boats")[0]
    assert lines[2].split()[:3] == ["1", f"{hit.score:.4f}", "boat"]
    assert "A red boat sails" in lines[2]


def test_json_lines_hold_the_hits_of_the_library(saved: Path) -> None:
    found = rows(ok("search", saved, "red sea", "--format", "jsonl").stdout)
    hits = BM25Index.open(saved).search("red sea")
    assert [row["id"] for row in found] == [hit.id for hit in hits]
    assert [row["score"] for row in found] == [hit.score for hit in hits]
    assert [row["text"] for row in found] == [hit.text for hit in hits]
    assert [row["metadata"] for row in found] == [hit.metadata for hit in hits]
    assert [(row["query_id"], row["rank"]) for row in found] == [("1", 1), ("1", 2), ("1", 3)]


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
    monkeypatch.setattr("bm25rag.cli.query._BATCH", 2)
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
    assert ok("search", saved, "zebra", "--format", "jsonl").stdout == ""
    assert ok("search", saved, "", "--format", "trec").stdout == ""
    assert ok("search", saved, "red", "-k", 0, "--format", "trec").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "give either a QUERY or --queries FILE"),
        (["red", "--queries", "-"], "give either a QUERY or --queries FILE"),
        (["red", "-k", "-1"], "-1 is not in the range"),
        (["red", "--threads", "0"], "0 is not in the range"),
        (["red", "--filter", "{"], "--filter"),
        (["red", "--filter", "[1]"], "expected a JSON object, got [1]"),
        (["red", "--filter", '{"year": NaN}'], "NaN is not JSON"),
        (["red", "--filter", '{"year": {"$foo": 1}}'], "$foo"),
        (["red", "--min-score", "nan"], "min_score"),
        (["red", "--b", "7"], "b must"),
        (["red", "--delta", "1"], "delta"),
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
    fails(3, "query id ''", "search", "spaced", "--queries", "-", "--format", "trec", input="\tred")


def test_markup_and_control_characters_in_documents_do_nothing() -> None:
    text = "red [bold]boat[/bold] \x1b[31m :smile: \ud800 end"
    record = {"id": "[red]\x1b]0;x\x07", "text": text, "when": "\udfff"}
    write_jsonl(Path("c.jsonl"), [record])
    ok("index", "c.jsonl", "-o", "odd")
    table = ok("search", "odd", "boat").stdout
    assert "\x1b" not in table
    assert "[bold]boat[/bold] \ufffd[31m :smile: \ufffd end" in " ".join(table.split())
    assert "[red]\ufffd]0;x\ufffd" in table
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


# --- explain, info, verify ------------------------------------------------------


def test_explain_prints_the_explanation(saved: Path) -> None:
    explanation = BM25Index.open(saved).explain("red sea", "boat")
    assert ok("explain", saved, "red sea", "boat").stdout == f"{explanation}\n"
    tuned = BM25Index.open(saved).tune(k1=0.1).explain("red sea", "boat")
    assert ok("explain", saved, "red sea", "boat", "--k1", 0.1).stdout == f"{tuned}\n"
    fails(3, "'plane'", "explain", saved, "red sea", "plane")
    filter_ = '{"year": 1999}'
    fails(3, "'boat'", "explain", saved, "red sea", "boat", "--filter", filter_)


def test_info_tells_counts_parameters_and_analyzer(saved: Path) -> None:
    facts = json.loads(ok("info", saved, "--json").stdout)
    index = BM25Index.open(saved)
    assert {name: facts[name] for name in index.stats()} == index.stats()
    assert facts["analyzer"] == index.analyzer.to_dict()
    assert (facts["variant"], facts["k1"], facts["b"], facts["delta"]) == (
        "lucene",
        1.2,
        0.75,
        None,
    )
    table = ok("info", saved).stdout
    assert ["documents", "4"] in [line.split() for line in table.splitlines()]
    assert "language='english'" in table


def test_verify_names_a_damaged_file_and_exits_with_3(saved: Path) -> None:
    assert ok("verify", saved).stdout == "saved: no damage found\n"
    largest = max(saved.iterdir(), key=lambda path: path.stat().st_size)
    raw = bytearray(largest.read_bytes())
    raw[len(raw) // 2] ^= 1
    largest.write_bytes(raw)
    fails(3, largest.name, "verify", saved)


@pytest.mark.parametrize("words", [["search", "{}", "x"], ["info", "{}"], ["verify", "{}"]])
def test_a_folder_without_an_index_is_named(words: list[str]) -> None:
    Path("empty").mkdir()
    for folder in ("empty", "gone"):
        fails(3, folder, *[word.format(folder) for word in words])
    for command in ("add", "delete"):
        fails(3, "gone", command, "gone", Path(__file__))
    fails(3, "gone", "compact", "gone")


def test_an_index_made_with_a_callable_says_that_it_needs_python() -> None:
    index = BM25Index(Analyzer(tokenizer=str.split))
    index.add(["red boat"])
    index.save("called")
    fails(3, "from Python", "search", "called", "red")


@pytest.mark.filterwarnings("always")
def test_a_warning_is_one_line_on_the_standard_error(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = BM25Index.open(saved)

    def open_with_a_warning(path: Path) -> BM25Index:
        warnings.warn("the stems differ", AnalyzerChangedWarning, stacklevel=2)
        return index

    monkeypatch.setattr(BM25Index, "open", open_with_a_warning)
    result = ok("search", saved, "red", "--format", "trec")
    assert result.stderr == "Warning: the stems differ\n"
    assert len(result.stdout.splitlines()) == 2


def test_debug_shows_the_traceback_of_an_error() -> None:
    with pytest.raises(OSError, match="gone"):
        run("--debug", "info", "gone")


# --- as a process ---------------------------------------------------------------


_HEARING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start commands whose pipes the test holds."""
    started: list[subprocess.Popen[bytes]] = []

    def start_command(*arguments: object) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "bm25rag", *map(str, arguments)]
        if os.name != "nt":  # what nohup or a shell's & has begun does not hear SIGINT otherwise
            words = [sys.executable, "-c", _HEARING, *words]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe))
        return started[-1]

    yield start_command
    for process in started:
        process.kill()
        process.communicate()


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_module_is_the_command(saved: Path, start: Callable[..., Any]) -> None:
    out, err = start("search", saved, "sea", "--format", "trec", "-k", 1).communicate(timeout=60)
    assert out.startswith(b"1 Q0 sea 1 ")
    assert err == b""


def test_a_reader_that_goes_away_is_no_complaint(saved: Path, start: Callable[..., Any]) -> None:
    queries = "".join(f"{n}\tred sea bird\n" for n in range(20_000))
    Path("queries.tsv").write_text(queries, encoding="utf-8")
    for format_ in ("trec", "table"):
        process = start("search", saved, "--queries", "queries.tsv", "--format", format_)
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)
        assert (err, process.returncode) == (b"", 141)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")
def test_ctrl_c_is_quiet(saved: Path, start: Callable[..., Any]) -> None:
    process = start("search", saved, "--queries", "-")
    # More than a pipe holds: once it is written, the command is up and reading.
    process.stdin.write(b"".join(b"%d\tred\n" % n for n in range(50_000)))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (err, process.returncode) == (b"", 130)


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_the_message_has_the_pip_line(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from bm25rag.cli import main; main([])"
    result = run_python(code)
    assert result.returncode == 3
    assert result.stderr == (
        f"bm25rag: the command line needs {missing}: pip install 'bm25rag[cli]'\n"
    )


def test_the_command_line_itself_is_imported_without_the_extra() -> None:
    code = "import sys, bm25rag.cli; print({'click', 'rich', 'tqdm'} & set(sys.modules))"
    assert run_python(code).stdout == "set()\n"
