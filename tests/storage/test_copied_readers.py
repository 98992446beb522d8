"""A deep copy or a pickle of a reader is a small reader of the same folder."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import NotAnIndexError, ReadOnlyError, UntrustedIndexError

pytest.importorskip("fsspec")


def split(text: str) -> list[str]:
    return text.split()


def pickled(index: BM25Index) -> BM25Index:
    return pickle.loads(pickle.dumps(index))


COPIES = {"deepcopy": copy.deepcopy, "pickle": pickled}
copied = pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = [f"red boat {number}" for number in range(1000)]
    BM25Index.from_texts(texts, k1=0.9).save(tmp_path / "index", extra={"mine": 1})
    return tmp_path / "index"


@copied
def test_it_stays_a_reader_of_its_folder(
    folder: Path, duplicate: Callable[[BM25Index], BM25Index]
) -> None:
    reader = BM25Index.open(folder)
    other = duplicate(reader)
    assert other.read_only
    assert (other.k1, other.extra) == (0.9, {"mine": 1})
    assert other.search("boat") == reader.search("boat")
    with pytest.raises(ReadOnlyError, match="open it with mode='w'"):
        other.add(["blue"])
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["blue"])
    assert (len(reader), len(other)) == (1000, 1000)
    assert other.refresh()
    assert (len(reader), len(other)) == (1000, 1001)
    assert len(duplicate(other)) == 1001


def test_a_deep_copy_shows_the_commit_of_its_original_and_a_pickle_the_last(folder: Path) -> None:
    reader = BM25Index.open(folder)
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["0"])
    assert len(copy.deepcopy(reader)) == 1000
    assert len(pickled(reader)) == 999


def test_the_pickle_is_small_and_another_process_can_load_it(folder: Path) -> None:
    data = pickle.dumps(BM25Index.open(folder))
    assert len(data) < 600
    code = (
        "import pickle, sys; index = pickle.load(sys.stdin.buffer);"
        "sys.exit(not (index.read_only and len(index) == 1000))"
    )
    assert subprocess.run([sys.executable, "-c", code], input=data, check=False).returncode == 0


def test_a_relative_path_is_kept_as_the_folder_that_it_was(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    data = pickle.dumps(BM25Index.open("index"))
    monkeypatch.chdir("/")
    assert len(pickle.loads(data)) == 1000


@copied
def test_options_of_open_are_kept(
    tmp_path: Path, duplicate: Callable[[BM25Index], BM25Index]
) -> None:
    BM25Index(Analyzer(tokenizer=split)).save(tmp_path / "split")
    reader = BM25Index.open(tmp_path / "split", tokenizer=split)
    assert duplicate(reader).analyzer == Analyzer(tokenizer=split)
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    reader = duplicate(BM25Index.open(tmp_path / "index", untrusted=True, mmap=False))
    BM25Index(Analyzer(token_pattern="(a+)+")).save(tmp_path / "index")
    with pytest.raises(UntrustedIndexError):
        reader.refresh()


@copied
@pytest.mark.parametrize("offline", [False, True])
def test_a_reader_of_a_url_stays_one(
    tmp_path: Path, duplicate: Callable[[BM25Index], BM25Index], offline: bool
) -> None:
    url, cache = f"memory://{tmp_path.name}", tmp_path / "cache"
    BM25Index.from_texts(["red"]).save(url)
    BM25Index.open(url, cache=cache)
    other = duplicate(BM25Index.open(url, cache=cache, offline=offline))
    BM25Index.from_texts(["red", "blue"]).save(url)
    assert other.refresh() is not offline
    assert len(other) == (1 if offline else 2)


def test_a_pickle_of_a_folder_that_is_gone_says_so(folder: Path) -> None:
    data = pickle.dumps(BM25Index.open(folder))
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(NotAnIndexError, match="holds no bm25rag index"):
        pickle.loads(data)


@copied
@pytest.mark.parametrize("mode", ["reader", "writer"])
def test_views_and_writers_are_copied_by_content_as_they_were_changed(
    folder: Path, duplicate: Callable[[BM25Index], BM25Index], mode: str
) -> None:
    if mode == "reader":
        view = BM25Index.open(folder).tune(k1=2.0)
        with BM25Index.open(folder, mode="w") as writer:
            writer.delete(["0"])
        assert (len(duplicate(view)), duplicate(view).k1) == (1000, 2.0)
        return
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["blue"])
        other = duplicate(writer)
        assert len(other) == 1001
        other.add(["green"])  # in memory
        assert len(writer) == 1001


def test_a_shallow_copy_of_a_reader_can_be_changed_in_memory(folder: Path) -> None:
    changed = copy.copy(BM25Index.open(folder))
    changed.add(["blue"])
    assert (len(changed), len(BM25Index.open(folder))) == (1001, 1000)
