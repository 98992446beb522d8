"""A build reads any iterable once, refuses what is wrong, and goes on where it was killed."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.errors import (
    DuplicateIdError,
    LockedError,
    MetadataError,
    NotAnIndexError,
    StorageError,
    TokenizerRequiredError,
)
from bm25rag.live.index import LiveIndex
from bm25rag.sharded.manifest import read_sharded
from bm25rag.shards import open_shard
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.state import State
from support.killing import Killed, killed_at

COUNT = 40


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few documents make a part."""
    monkeypatch.setattr("bm25rag.additions.CHUNK", 60)
    monkeypatch.setattr("bm25rag.building.gathering.part_room", lambda *_: 1)
    monkeypatch.setattr("bm25rag.building.final_merge.merge_room", lambda memory: 3000)


def documents(count: int = COUNT) -> Iterator[Document]:
    """Yield documents one by one."""
    for number in range(count):
        text = f"boat {number % 3} {'sea ' * (number % 4)} word{number}"
        yield Document(f"d{number}", text, {"n": number}, bytes([number % 256]))


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file with its bytes; random names are replaced by the order of files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".bin":
            name = "statistics" if path.name == "statistics.bin" else "segment"
            found[f"{path.parent.relative_to(folder)}/{name}"] = path.read_bytes()
    return found


def test_shards_hold_consecutive_documents_as_many_each_or_one_more(tmp_path: Path) -> None:
    index = BM25Index.build(documents(), tmp_path / "it", shards=7)
    assert [shard.documents for shard in read_sharded(str(tmp_path / "it")).shards] == [
        5, 6, 6, 5, 6, 6, 6,
    ]  # fmt: skip
    assert index.ids() == [f"d{number}" for number in range(COUNT)]
    shards = [open_shard(tmp_path / "it", number) for number in range(7)]
    assert [shard.first_row for shard in shards] == [0, 5, 11, 17, 22, 28, 34]
    assert [id for shard in shards for id in shard.searcher.ids()] == index.ids()
    assert sorted(path.name for path in (tmp_path / "it").iterdir()) == [
        "commit-1", "lock", "sharded.json",
    ]  # fmt: skip


def test_a_shard_is_an_ordinary_index_folder(tmp_path: Path) -> None:
    BM25Index.build(documents(), tmp_path / "it", shards=2)
    shard = BM25Index.open(tmp_path / "it" / "commit-1" / "shard-0001", verify=True)
    assert type(shard) is BM25Index
    assert shard.ids() == [f"d{number}" for number in range(COUNT // 2, COUNT)]


def test_texts_get_decimal_ids_and_terms_are_taken_as_they_are(tmp_path: Path) -> None:
    index = BM25Index.build(iter(["a boat", ["The", "sea"], "the sea"]), tmp_path / "it", shards=2)
    assert index.ids() == ["0", "1", "2"]
    assert [hit.id for hit in index.search(["The"])] == ["1"]
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        assert writer.add(["more"]) == ["3"]


def test_settings_and_extra_are_kept(tmp_path: Path) -> None:
    index = BM25Index.build(
        documents(),
        tmp_path / "it",
        shards=3,
        variant="bm25+",
        k1=0.9,
        analyzer=Analyzer("german"),
        extra={"of": "mine"},
        store_text=False,
    )
    assert (index.variant, index.k1, index.analyzer.language) == ("bm25+", 0.9, "german")
    assert index.extra == {"of": "mine"}
    assert index.search("boat")[0].text is None
    assert index.search("boat")[0].metadata == {"n": 0}
    assert index.search("boat")[0].payload == b"\0"


def test_documents_are_read_one_part_ahead_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a corpus larger than memory can be indexed."""
    read = committed = 0
    commit = FolderWriter.commit

    def watched(self: FolderWriter, state: State, *args: Any) -> None:
        nonlocal committed
        commit(self, state, *args)
        committed = state.extra.get("read", committed)

    def watching() -> Iterator[Document]:
        nonlocal read
        for document in documents():
            read += 1
            assert read - committed <= 10
            yield document

    monkeypatch.setattr(FolderWriter, "commit", watched)
    BM25Index.build(watching(), tmp_path / "it", shards=3)
    assert read == committed == COUNT


def test_a_tokenizer_must_be_given_again(tmp_path: Path) -> None:
    analyzer = Analyzer(tokenizer=str.split)
    assert len(BM25Index.build(documents(), tmp_path / "it", shards=2, analyzer=analyzer)) == COUNT
    with pytest.raises(TokenizerRequiredError):
        BM25Index.open(tmp_path / "it")
    BM25Index.verify(tmp_path / "it")
    opened = open_shard(tmp_path / "it", 1, tokenizer=str.split)
    assert opened.searcher.search("word39")[0].id == "d39"


@pytest.mark.parametrize("on_duplicate", ["skip", "replace"])
def test_ids_that_occur_again_are_treated_as_in_a_plain_index(
    tmp_path: Path, on_duplicate: Any
) -> None:
    twice = [*documents(), Document("d3", "another"), *documents(9), Document("d3", "last")]
    plain = BM25Index()
    plain.add_documents(twice, on_duplicate=on_duplicate)
    index = BM25Index.build(iter(twice), tmp_path / "it", shards=4, on_duplicate=on_duplicate)
    assert index.get(index.ids()) == plain.get(plain.ids())


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shards": 0}, ValueError, "shards must be an integer >= 1, got 0"),
        ({"shards": -3}, ValueError, "shards must be an integer >= 1, got -3"),
        ({"shards": 2.0}, TypeError, "shards must be an integer >= 1, got 2.0"),
        ({"shards": True}, TypeError, "shards must be an integer >= 1, got True"),
        ({"documents": "text"}, TypeError, "documents must be an iterable"),
        ({"documents": 3}, TypeError, "documents must be an iterable"),
        ({"on_duplicate": "drop"}, ValueError, "on_duplicate must be one of"),
        ({"threads": 0}, ValueError, "threads must be an integer >= 1"),
        ({"store_text": 1}, TypeError, "store_text must be True or False"),
        ({"extra": {1: object()}}, ValueError, "extra must be a dict of JSON values"),
        ({"variant": "bm26"}, ValueError, "variant must be one of"),
        ({"k2": 1}, TypeError, "k2"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"documents": documents(), "folder": tmp_path / "it", "shards": 2} | change
    with pytest.raises(error, match=message):
        BM25Index.build(**given)
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("text", TypeError, r"documents\[40\] must be a bm25rag.Document, got 'text'"),
        (Document("x", None), ValueError, r"documents\[40\] \('x'\) has no text"),
        (Document("d3", "again"), DuplicateIdError, "the id 'd3' is in the index already"),
        (Document("x", "t", {"a": object()}), MetadataError, r"documents\[40\]: metadata of"),
    ],
)
def test_a_wrong_document_is_named_by_its_row(
    tmp_path: Path, wrong: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BM25Index.build([*documents(), wrong], tmp_path / "it", shards=2)
    with pytest.raises(NotAnIndexError, match="has not ended"):
        BM25Index.open(tmp_path / "it")
    BM25Index.build([*documents(), Document("right", "text")], tmp_path / "it", shards=2)


def test_there_may_be_more_shards_than_documents(tmp_path: Path) -> None:
    for count in (0, 1, 3):
        index = BM25Index.build(documents(count), tmp_path / str(count), shards=16)
        assert index.ids() == [f"d{number}" for number in range(count)]
        assert len(index.search("boat")) == count
        BM25Index.verify(tmp_path / str(count))


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    BM25Index.build(documents(), tmp_path / "sharded", shards=2)
    BM25Index.from_texts(["a"]).save(tmp_path / "plain")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    (tmp_path / "mine" / "commit-1").mkdir(parents=True)
    (tmp_path / "mine" / "commit-1" / "thesis.tex").touch()
    for name, error, message in (
        ("sharded", FileExistsError, "holds an index: add to it with"),
        ("plain", FileExistsError, "holds an index: add to it with"),
        ("other", NotAnIndexError, "is not empty and holds no index"),
        ("other/file", NotAnIndexError, "is no folder"),
        ("mine", NotAnIndexError, "is not empty and holds no index"),
    ):
        before = sorted((tmp_path / name).rglob("*"))
        with pytest.raises(error, match=message):
            BM25Index.build(documents(), tmp_path / name, shards=2)
        assert sorted((tmp_path / name).rglob("*")) == before


def test_two_builds_in_one_folder_are_refused(tmp_path: Path) -> None:
    def building() -> Iterator[Document]:
        for number, document in enumerate(documents()):
            if number == 20:
                with pytest.raises(LockedError, match="another writer"):
                    BM25Index.build(documents(), tmp_path / "it", shards=2)
            yield document

    assert len(BM25Index.build(building(), tmp_path / "it", shards=2)) == COUNT


# -- interrupted builds ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_build_that_was_killed_at_any_step_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    BM25Index.build(documents(), tmp_path / "expected", shards=3)
    expected = contents(tmp_path / "expected")
    assert len(expected) == 4
    number, alive = 0, True
    while alive:
        folder = tmp_path / str(number)
        alive = killed_at(
            number, lambda folder=folder: BM25Index.build(documents(), folder, shards=3)
        )
        try:
            index = BM25Index.open(folder)
        except NotAnIndexError:
            index = BM25Index.build(documents(), folder, shards=3)
        assert contents(folder / "commit-1") == contents(tmp_path / "expected" / "commit-1")
        assert index.ids() == [f"d{row}" for row in range(COUNT)]
        shutil.rmtree(folder)
        number += 1 + number // 4  # all the first ones, and some of the others
    assert number > 60


def test_a_build_does_not_do_again_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed = []
    analyse = LiveIndex.add

    def counting(self: LiveIndex, *args: Any) -> list[str]:
        ids = analyse(self, *args)
        analysed.extend(ids)
        return ids

    monkeypatch.setattr(LiveIndex, "add", counting)

    def failing() -> Iterator[Document]:
        yield from documents(25)
        raise Killed

    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it", shards=3)
    first = len(analysed)
    assert 0 < first <= 25
    BM25Index.build(documents(), tmp_path / "it", shards=3)
    assert analysed == [f"d{number}" for number in range(COUNT)]


def test_what_a_kill_left_in_a_shard_that_was_written_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("bm25rag.sharded.building.replace_sharded", killed)
        with pytest.raises(Killed):
            BM25Index.build(documents(), tmp_path / "it", shards=3)
    shard = tmp_path / "it" / "commit-1" / "shard-0001"
    (shard / "manifest-0123456789abcdef.tmp").write_bytes(b"half")
    BM25Index.build(documents(), tmp_path / "it", shards=3)
    assert not list(shard.glob("*.tmp"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": documents(10)}, "documents are not those"),
        ({"documents": reversed(list(documents()))}, "documents are not those"),
        ({"documents": (one.text for one in documents())}, "documents are not those"),
        ({"k1": 2.0}, "settings are not those"),
        ({"analyzer": Analyzer("german")}, "settings are not those"),
        ({"shards": 4}, "settings are not those"),
        ({"store_text": False}, "settings are not those"),
        ({"on_duplicate": "skip"}, "settings are not those"),
    ],
)
def test_another_build_does_not_go_on_with_an_interrupted_one(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    def failing() -> Iterator[Document]:
        yield from documents(35)
        raise Killed

    with pytest.raises(Killed):
        BM25Index.build(failing(), tmp_path / "it", shards=3)
    given = {"documents": documents(), "folder": tmp_path / "it", "shards": 3} | change
    with pytest.raises(ValueError, match=message) as raised:
        BM25Index.build(**given)
    assert f"remove {tmp_path / 'it' / 'building'} to begin anew" in str(raised.value)
    shutil.rmtree(tmp_path / "it" / "building")
    BM25Index.build(documents(5), tmp_path / "it", shards=2)


def test_shards_of_a_build_that_was_given_up_are_not_taken_for_those_of_another(
    tmp_path: Path,
) -> None:
    """Their documents are as many, and have the same ids and texts."""

    def killed(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.sharded.building.publish", killed)
        with pytest.raises(Killed):
            BM25Index.build(documents(), tmp_path / "it", shards=3)
    shutil.rmtree(tmp_path / "it" / "building")
    others = [Document(one.id, one.text, {"other": True}) for one in documents()]
    index = BM25Index.build(others, tmp_path / "it", shards=3)
    assert index.count({"other": True}) == COUNT


def _build(folder: Path, count: int) -> None:
    BM25Index.build(documents(count), folder, shards=5)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_a_build_whose_process_is_killed_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    count, context = 60, multiprocessing.get_context("fork")
    _build(tmp_path / "expected", count)
    kills = 0
    for delay in np.linspace(0.02, 0.3, 5):
        folder = tmp_path / f"{delay}"
        while not (folder / "sharded.json").exists():
            child = context.Process(target=_build, args=(folder, count))
            child.start()
            time.sleep(delay)
            if child.is_alive():
                os.kill(child.pid or 0, signal.SIGKILL)
                kills += 1
            child.join(60)
            delay *= 1.5
        BM25Index.verify(folder)
        assert contents(folder / "commit-1") == contents(tmp_path / "expected" / "commit-1")
    assert kills


def test_a_missing_folder_and_a_plain_index_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match=r"there is no sharded\.json"):
        read_sharded(str(tmp_path / "nothing"))
    BM25Index.from_texts(["a"]).save(tmp_path / "plain")
    with pytest.raises(NotAnIndexError, match=r"is not sharded: use BM25Index\.open"):
        open_shard(tmp_path / "plain", 0)
    with pytest.raises(StorageError):
        BM25Index.from_texts(["a"]).save(
            BM25Index.build(["a"], tmp_path / "it", shards=1)._live.attachment._folder
        )
