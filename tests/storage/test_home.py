"""``~`` in front of a path is the user's home, wherever a path is given."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bm25rag import BM25Index
from bm25rag.evaluation import load_beir, read_qrels, write_qrels
from bm25rag.following import follow
from bm25rag.readers import find_sources
from bm25rag.storage.remote import cache_root
from tests.support.commands import ok


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home, and the current folder beside it, which must stay empty."""
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home, here):
        folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.chdir(here)
    return home


@pytest.mark.parametrize("path", ["~/notes.bm25", Path("~/notes.bm25"), Path("~", "notes.bm25")])
def test_a_tilde_before_a_slash_is_the_home(home: Path, path: str | Path) -> None:
    BM25Index.from_texts(["tea"]).save(path)
    with BM25Index.open(path, mode="w") as writer:
        writer.add(["coffee"])
    assert len(BM25Index.open(home / "notes.bm25")) == 2
    assert follow(path) is follow(home / "notes.bm25")
    BM25Index.build(["milk"], "~/built.bm25", shards=2)
    BM25Index.backup(path, "~/backup.bm25")
    BM25Index.verify("~/backup.bm25")
    assert {one.name for one in home.iterdir()} == {"notes.bm25", "built.bm25", "backup.bm25"}
    assert not list(Path.cwd().iterdir())


def test_caches_and_files_are_found_from_the_home_too(home: Path) -> None:
    assert cache_root("~/cache") == str((home / "cache").resolve())
    write_qrels("~/judged.tsv", {"q": {"d": 1}})
    assert read_qrels("~/judged.tsv") == {"q": {"d": 1}}
    (home / "corpus.jsonl").write_text('{"_id": "d", "text": "tea"}\n', encoding="utf-8")
    (home / "queries.jsonl").write_text('{"_id": "q", "text": "tea"}\n', encoding="utf-8")
    (home / "qrels").mkdir()
    write_qrels("~/qrels/test.tsv", {"q": {"d": 1}})
    assert load_beir("~").qrels == {"q": {"d": 1}}
    (found,) = find_sources(["~/*.jsonl"])
    assert found.path == home


def test_commands_know_the_home_where_no_shell_has_put_it(home: Path) -> None:
    (home / "notes.txt").write_text("Tea is served at five.", encoding="utf-8")
    ok("index", "~/notes.txt", "--output=~/notes.bm25")
    assert len(BM25Index.open(home / "notes.bm25")) == 1
    ok("search", "~/notes.bm25", "tea", "--output=~/found.txt")
    assert "Tea" in (home / "found.txt").read_text(encoding="utf-8")
    assert not list(Path.cwd().iterdir())


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", ["~notes", "a~", "~$notes.docx", "./~", "a/~/b"])
def test_other_tildes_are_names(name: str) -> None:
    BM25Index.from_texts(["tea"]).save(name)
    assert len(BM25Index.open(Path.cwd() / name)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the home is known to Windows")
def test_without_a_known_home_no_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'~/notes' is in the user's home, which is not known"):
        BM25Index().save("~/notes")
    assert not list(tmp_path.iterdir())
