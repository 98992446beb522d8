"""The command line: indexing, adding, deleting, and what looks at a whole index."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.kernels import backend
from support.commands import CORPUS, commands, fails, ok, run, write_jsonl


@pytest.fixture
def corpus() -> Path:
    return write_jsonl(Path("corpus.jsonl"), CORPUS)


# --- help -----------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = ok(name, "--help")
    assert "Usage: commands" in result.stdout
    if name != "demo":
        assert f"Examples:\n    bm25rag {name}" in result.stdout


def test_the_default_of_an_option_is_shown_unless_it_means_nothing() -> None:
    for command, default in (("search", "[default: 10; x>=0]"), ("index", "[default: auto]")):
        assert default in " ".join(ok(command, "--help").stdout.split())
    assert "[default: bm25rag]" in ok("ray", "serve", "--help").stdout
    assert "[default: 0" not in ok("search", "--help").stdout


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
    assert index.ids() == ["a.md#1", "a.md#2", "a.md#3", "b.txt#1"]
    assert index.get(["a.md#2"])[0].metadata["heading"] == "One > Two"


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


def test_an_index_is_replaced_only_by_force(saved: Path, corpus: Path) -> None:
    fails(3, "saved: is an index already; --force", "index", corpus, "-o", saved)
    Path("one.txt").write_text("one", encoding="utf-8")
    ok("index", "one.txt", "-o", saved, "--force")
    assert BM25Index.open(saved).ids() == ["one.txt"]


def test_a_build_in_little_memory_makes_the_same_index(corpus: Path) -> None:
    ok("index", corpus, "-o", "built", "--memory", "256MiB", "--k1", "0.9")
    ok("index", corpus, "-o", "plain", "--k1", "0.9")
    built, plain = (next(Path(name).glob("segment-*.bin")) for name in ("built", "plain"))
    assert built.read_bytes() == plain.read_bytes()
    fails(2, "leave out --force", "index", corpus, "-o", "built", "--memory", "1GB", "--force")
    fails(3, "holds an index: add to it", "index", corpus, "-o", "built", "--memory", "1GB")
    fails(2, "--memory must be 256MiB or more", "index", corpus, "-o", "new", "--memory", "1MiB")
    fails(2, "--memory must be a size", "index", corpus, "-o", "new", "--memory", "much")
    ok("index", corpus, "-o", "shards", "--memory", "1GB", "--shards", "2")


def test_shards_make_an_index_that_every_command_takes(corpus: Path) -> None:
    ok("index", corpus, "-o", "sharded", "--shards", "3", "--k1", "0.9")
    ok("index", corpus, "-o", "plain", "--k1", "0.9")
    assert BM25Index.open("sharded").stats()["shards"]
    for words in (["search", "INDEX", "red sea", "--json"], ["explain", "INDEX", "sea", "boat"]):
        found = [
            ok(*(name if word == "INDEX" else word for word in words)).stdout
            for name in ("sharded", "plain")
        ]
        assert found[0] == found[1]
    write_jsonl(Path("more.jsonl"), [{"_id": "new", "text": "A zebra."}])
    ok("add", "sharded", "more.jsonl")
    ok("delete", "sharded", "car")
    ok("compact", "sharded")
    ok("verify", "sharded")
    assert BM25Index.open("sharded").ids() == ["boat", "sea", "bird", "new"]
    fails(2, "leave out --force", "index", corpus, "-o", "sharded", "--shards", "3", "--force")
    fails(3, "holds an index: add to it", "index", corpus, "-o", "sharded", "--shards", "3")
    fails(2, "--shards", "index", corpus, "-o", "other", "--shards", "0")


def test_a_damaged_index_is_not_replaced_by_force_either(saved: Path, corpus: Path) -> None:
    """What is left of the index may be worth saving: the user decides."""
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
    fails(3, "empty: not a BEIR folder", "index", "empty", "--format", "beir", "-o", "saved")
    fails(3, "empty: no file is of a kind that is read (.md", "index", "empty", "-o", "saved")


@pytest.mark.parametrize(
    "words",
    [
        ("index", "", "-o", "new"),
        ("index", "corpus.jsonl", "-o", ""),
        ("add", "saved", ""),
        ("sync", "", "saved"),
        ("sync", ".", ""),
        ("search", "saved", "--queries", ""),
        ("search", "saved", "sea", "-o", ""),
        ("backup", "saved", ""),
        ("stats", ""),
        ("delete", "saved", "--source", ""),
    ],
)
def test_an_empty_path_is_not_the_current_folder(saved: Path, words: tuple[str, ...]) -> None:
    before = sorted(Path().rglob("*"))
    fails(2, "must not be empty", *words)
    assert sorted(Path().rglob("*")) == before
    assert len(BM25Index.open(saved)) == 4


def test_a_terminal_is_shown_the_progress(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "4 docs" not in ok("index", corpus, "-o", "quiet").output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "4 docs" in ok("index", corpus, "-o", "saved").stderr


# --- add, delete, compact -------------------------------------------------------


def test_add_adds_and_delete_deletes(saved: Path) -> None:
    result = ok("add", saved, "-", input='{"id": "fish", "text": "A fish in the sea."}')
    assert result.stderr.startswith("Added 1 document in ")
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
    fails(3, "<stdin>:2: invalid JSON", "add", saved, "-", "--on-error", "stop", input=lines[:-1])
    assert BM25Index.open(saved).ids() == ["boat", "car", "sea", "bird"]


# --- explain, stats, verify ------------------------------------------------------


def test_stats_tell_counts_parameters_and_analyzer(saved: Path) -> None:
    facts = json.loads(ok("stats", saved, "--json").stdout)
    index = BM25Index.open(saved)
    assert {name: facts[name] for name in index.stats()} == index.stats()
    assert facts["analyzer"] == index.analyzer.to_dict()
    assert (facts["variant"], facts["k1"], facts["b"], facts["delta"]) == (
        "lucene",
        1.2,
        0.75,
        None,
    )
    table = ok("stats", saved).stdout
    assert "0 seconds ago" in table or "1 seconds ago" in table
    assert ["documents", "4"] in [line.split() for line in table.splitlines()]
    assert "language='english'" in table


def test_verify_names_a_damaged_file_and_exits_with_3(saved: Path) -> None:
    assert ok("verify", saved).stdout == "saved: no damage found\n"
    largest = max(saved.iterdir(), key=lambda path: path.stat().st_size)
    raw = bytearray(largest.read_bytes())
    raw[len(raw) // 2] ^= 1
    largest.write_bytes(raw)
    fails(3, largest.name, "verify", saved)


def test_doctor_tells_whether_compiled_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BM25RAG_KERNELS", raising=False)
    monkeypatch.setattr(backend, "why_not_compiled", lambda: None)
    lines = ok("doctor").stdout.splitlines()
    assert ["hot", "loops", "compiled"] in [line.split() for line in lines]
    assert ["numpy", np.__version__] in [line.split() for line in lines]
    monkeypatch.setattr(backend, "why_not_compiled", lambda: "searching.so is missing")
    assert "numpy: searching.so is missing" in ok("doctor").stdout
    monkeypatch.setenv("BM25RAG_KERNELS", "numpy")
    monkeypatch.setattr(backend, "why_not_compiled", lambda: None)
    assert "numpy, as BM25RAG_KERNELS asks" in ok("doctor").stdout


def test_debug_shows_the_traceback_of_an_error_too() -> None:
    result = run("--debug", "stats", "gone")
    assert result.exit_code == 3
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith("Error: " + run("stats", "gone").stderr.partition("Error: ")[2])


# --- URLs -------------------------------------------------------------------------


@pytest.mark.usefixtures("corpus")
def test_commands_take_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BM25RAG_CACHE", "cache")
    url = "memory://commands/corpus.bm25"
    assert url in ok("index", "corpus.jsonl", "-o", url).stderr
    assert "boat" in ok("search", url, "boats").stdout
    assert "4" in ok("stats", url).stdout
    assert f"{url}: no damage found" in ok("verify", url).stdout
    fails(3, f"{url}: is an index already; --force", "index", "corpus.jsonl", "-o", url)
    ok("index", "corpus.jsonl", "-o", url, "--force")
    fails(3, "folder of this machine", "add", url, "corpus.jsonl")
    fails(3, "memory://commands/nothing holds no", "search", "memory://commands/nothing", "x")
    fails(3, "folder of this machine", "index", "corpus.jsonl", "-o", url + "2", "--shards", "2")


@pytest.mark.usefixtures("corpus")
def test_commands_take_file_urls() -> None:
    url = Path("corpus.bm25").absolute().as_uri()
    ok("index", "corpus.jsonl", "-o", url)
    ok("delete", url, "boat")
    assert len(BM25Index.open("corpus.bm25")) == len(CORPUS) - 1
