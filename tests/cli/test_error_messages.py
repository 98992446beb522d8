"""Command-line errors name its own options and say what to do next."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.cli.wording import describe
from bm25rag.errors import AnalyzerChangedWarning
from support.commands import fails, ok, run, write, write_jsonl

# What Python calls the things that are options here.
PYTHON = re.compile(
    r"\bBM25Index\b|\b(on_duplicate|min_score|delta_on|mode|untrusted|tokenizer|threads|k1|b)="
)


# --- values ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--k1 nan", "--k1 must be a number from 0 to 1e+30, got nan"),
        ("--b 2", "--b must be a number from 0 to 1, got 2.0"),
        ("--delta 1", "--variant 'lucene' has no delta, got --delta 1.0; leave it out"),
        ("--variant tfldp --delta 0.1", "--delta of 'tfldp' must be greater than"),
        ("--variant bm42", "'bm42' is not one of"),
        ("--delta-on both", "'both' is not one of"),
        ("--language klingon", "--language: expected a name or an ISO 639 code of"),
        ("--stopwords klingon", "--stopwords: expected the name of a list"),
        ("--stemmer klingon", "--stemmer must be one of"),
        ("--on-duplicate x", "'x' is not one of"),
        ("--on-error x", "'x' is not one of"),
        ("--passage-size 0", "0 is not in the range"),
    ],
)
def test_a_wrong_value_is_named_by_its_option(saved: Path, words: str, complaint: str) -> None:
    fails(
        2,
        f"Error: {complaint}" if complaint[:2] == "--" else complaint,
        *("index", "corpus.jsonl", "-o", "other", *words.split()),
    )
    assert not Path("other").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--min-score", "nan"], "--min-score must be a number, got nan"),
        (["--filter", '{"year": {"$foo": 1}}'], "--filter at year.$foo: unknown operator"),
        (["--filter", '{"$or": 1}'], "--filter at $or: expected a non-empty list"),
        (["--b", "7"], "--b must be a number from 0 to 1, got 7.0"),
        (["--commit", "x"], "--commit must be the id of a commit, such as '3-9c110871ccf2b11b'"),
        (["--restrict", "{}"], "--restrict needs a filter that rejects something, got {}"),
    ],
)
def test_a_wrong_option_of_a_search_is_named(saved: Path, words: list[str], complaint: str) -> None:
    fails(2, f"Error: {complaint}", "search", saved, "red", *words)


# --- ways out -------------------------------------------------------------------


def test_an_id_that_comes_again_names_the_option(saved: Path) -> None:
    again = '{"id": "boat", "text": "again; really"}'
    fails(3, "'boat' is in the index already; --on-duplicate skip", "add", saved, "-", input=again)
    write_jsonl(Path("c.jsonl"), [{"id": "a; b", "text": "x"}, {"id": "a; b", "text": "y"}])
    complaint = "the id 'a; b' occurs twice in what was read; --on-duplicate skip keeps the first"
    fails(3, complaint, "index", "c.jsonl", "-o", "other")
    assert not Path("other").exists()


def test_an_index_that_is_locked_says_when_to_try_again(saved: Path) -> None:
    with BM25Index.open(saved, mode="w"):
        for words in ("delete saved x", "compact saved", "add saved corpus.jsonl", "sync . saved"):
            fails(3, "saved open; try again when it is done", *words.split())


def test_what_is_no_index_says_how_to_make_one(saved: Path) -> None:
    write("folder/letter.txt", "dear")
    complaint = "there is no manifest.json; 'bm25rag index' makes one"
    for words in ("search {} x", "stats {}", "verify {}", "compact {}", "delete {} x"):
        for folder in ("folder", "gone"):
            fails(3, complaint, *words.format(folder).split())
    for words in ("add gone corpus.jsonl", "sync folder gone"):
        fails(3, complaint, *words.split())


def test_metadata_that_cannot_be_stored_name_document_and_key(saved: Path) -> None:
    deep = '{"id": "x", "text": "y", "deep": ' + '{"a": ' * 200 + "1" + "}" * 200 + "}"
    result = run("add", saved, "-", input=deep)
    assert result.exit_code == 3
    assert result.stderr.startswith("Error: <stdin>: metadata of document 'x' at 'deep")


def test_a_tokenizer_of_ones_own_needs_python() -> None:
    index = BM25Index(Analyzer(tokenizer=str.split))
    index.add(["red boat"])
    index.save("called")
    fails(3, "open it from Python, since the command line imports no code", "search", "called", "x")


def test_names_of_python_are_in_no_message_of_those_above(saved: Path) -> None:
    index = BM25Index(Analyzer(tokenizer=str.split))
    index.save("called")
    own = BM25Index(Analyzer(token_pattern="x+"))
    own.save("own")
    for words in (
        ["search", "called", "x"],
        ["search", "own", "x", "--untrusted"],
        ["add", saved, "corpus.jsonl"],
        ["search", saved, "x", "--delta", "1"],
        ["search", saved, "x", "--min-score", "nan"],
        ["search", saved, "x", "--commit", "x"],
        ["search", saved, "x", "--commit", "9-9c110871ccf2b11b"],
        ["index", "corpus.jsonl", "-o", saved],
        ["index", "corpus.jsonl", "-o", "folder"],
    ):
        result = run(*words)
        write("folder/letter.txt", "dear")
        assert not PYTHON.search(result.stderr), result.stderr


def test_ids_in_a_message_are_not_taken_for_arguments() -> None:
    assert describe(ValueError("the id 'min_score' is empty")) == "the id 'min_score' is empty"
    assert describe(ValueError("k1 must be less")) == "--k1 must be less"
    assert describe(ValueError("bread must rise")) == "bread must rise"


@pytest.mark.filterwarnings("always")
def test_a_changed_stemmer_tells_what_needs_python(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Analyzer, "stems", lambda self, words: [word + "x" for word in words])
    result = ok("stats", saved)
    assert result.stderr.startswith("Warning: the stemmer has changed")
    assert "from Python, index.reanalyze()" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert AnalyzerChangedWarning.__name__ not in result.stderr


# --- indexes of strangers -------------------------------------------------------

COMMANDS = {
    "add": ["add", "{}", "a.txt"],
    "sync": ["sync", "d", "{}"],
    "delete": ["delete", "{}", "x"],
    "compact": ["compact", "{}"],
    "search": ["search", "{}", "red"],
    "grep": ["grep", "{}", "red"],
    "explain": ["explain", "{}", "red", "a"],
    "export": ["export", "{}"],
    "stats": ["stats", "{}"],
    "verify": ["verify", "{}"],
    "evaluate": ["evaluate", "{}", "--queries", "q.tsv", "--qrels", "qrels.txt"],
    "tune": ["tune", "{}", "--queries", "q.tsv", "--qrels", "qrels.txt", "--folds", "2"],
    "make-queries": ["make-queries", "{}", "-o", "made"],
    "mcp": ["mcp", "{}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_opens_an_index_takes_untrusted(name: str) -> None:
    if name == "mcp":
        pytest.importorskip("mcp", reason="the extra mcp is not installed")
    write("a.txt", "red")
    write("d/a.txt", "red")
    write("q.tsv", "1\tred\n2\tred boat\n")
    write("qrels.txt", "1 0 a 1\n2 0 a 1\n")
    for path, analyzer in (("plain", Analyzer()), ("hostile", Analyzer(token_pattern="(?:a+)+$"))):
        index = BM25Index(analyzer)
        index.add(["A red boat sails. Red seas."], ids=["a"])
        index.save(path)
    ok(*[word.format("plain") for word in COMMANDS[name]], "--untrusted")
    hostile = [word.format("hostile") for word in COMMANDS[name]]
    before = BM25Index.open("hostile").get(["a"])
    fails(3, "'(?:a+)+$', which --untrusted refuses", *hostile, "--untrusted")
    fails(3, "without --untrusted if you trust where it comes from", *hostile, "--untrusted")
    assert BM25Index.open("hostile").get(["a"]) == before
    ok(*hostile)


def test_all_commands_that_open_an_index_are_tried_above() -> None:
    from bm25rag.cli.app import commands

    opening = {name for name, command in commands.commands.items() if _takes_index(command)}
    # That one serves until it is interrupted: tests/inspector tries it.
    assert opening - {"inspect"} == set(COMMANDS)


def _takes_index(command: object) -> bool:
    return any(
        parameter.name in ("index_path", "index_paths")
        for parameter in getattr(command, "params", [])
    )
