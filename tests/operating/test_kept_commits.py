"""Earlier commits stay for as long as was asked for, and open by their ids as they were."""

from __future__ import annotations

import json
import pickle
import shutil
import time
from datetime import timedelta
from errno import ENOSPC
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import CommitNotFoundError, CorruptIndexError, FormatVersionError
from support.commands import fails, ok
from support.folders import no_leftovers
from support.killing import killed_at

TEXTS = [f"boat {number % 3} word{number}" for number in range(8)]
KINDS: dict[str, dict[str, Any]] = {"plain": {}, "sharded": {"shards": 2}}
kinds = pytest.mark.parametrize("kind", KINDS)
KEEP = 10_000  # milliseconds


def write(writer: BM25Index, step: int) -> None:
    writer.add([f"boat step{step}"], ids=[f"step{step}"])
    writer.delete([f"step{step - 2}"])
    if step % 3 == 0:
        writer.compact()


def state(index: BM25Index) -> Any:
    return index.get(index.ids()), index.scores("boat word3").tolist()


def commits(folder: Path) -> list[str]:
    return [one.id for one in BM25Index.commits(folder)]


@kinds
@settings(max_examples=settings().max_examples // 3)
@given(pauses=st.lists(st.integers(0, 2 * KEEP), min_size=1, max_size=6), data=st.data())
def test_a_commit_is_kept_until_so_long_after_it_was_replaced(
    tmp_path_factory: pytest.TempPathFactory, kind: str, pauses: list[int], data: st.DataObject
) -> None:
    folder, clock = tmp_path_factory.mktemp("kept") / "it", [1_000_000]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: clock[0] * 1_000_000)
        index = BM25Index.build(TEXTS, folder, **KINDS[kind])
        made = [(index.commit_id, clock[0], state(index))]
        for step, pause in enumerate(pauses):
            clock[0] += pause
            kept: Any = {"keep": timedelta(milliseconds=KEEP)} if step == 0 else {}
            with BM25Index.open(folder, mode="w", **kept) as writer:
                write(writer, step)
            made.append((writer.commit_id, clock[0], state(writer)))
            replaced = [at for _, at, _ in made[1:]]
            expected = [
                one for one, at in zip(made, replaced, strict=False) if at + KEEP >= clock[0]
            ] + made[-1:]
            assert commits(folder) == [id for id, *_ in expected]
            for id, _, was in expected:
                old = BM25Index.open(folder, commit=id, verify=True)
                assert (old.commit_id, state(old)) == (id, was)
                assert not old.refresh()
            for id, *_ in made[: len(made) - len(expected)]:
                with pytest.raises(CommitNotFoundError, match=id):
                    BM25Index.open(folder, commit=id)
        with BM25Index.open(folder, mode="w", keep="0") as writer:
            write(writer, 99)
        assert commits(folder) == [writer.commit_id]
        assert no_leftovers(folder)
        BM25Index.verify(folder)


@kinds
def test_what_is_opened_by_its_id_stays_there(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "it"
    first = BM25Index.build(TEXTS, folder, **KINDS[kind])
    with BM25Index.open(folder, mode="w", keep="1h") as writer:
        write(writer, 1)
    old = BM25Index.open(folder, commit=first.commit_id)
    with BM25Index.open(folder, mode="w") as writer:
        write(writer, 2)
    assert not old.refresh()
    again = pickle.loads(pickle.dumps(old))
    assert state(old) == state(first) == state(again)
    assert again.commit_id == first.commit_id
    BM25Index.open(folder, commit=first.commit_id).save(tmp_path / "other")
    assert BM25Index.open(tmp_path / "other").ids() == first.ids()
    if kind == "plain":  # back to it, in place
        before = commits(folder)
        old.save(folder)
        assert BM25Index.open(folder).ids() == first.ids()
        assert commits(folder)[:-1] == before
    BM25Index.backup(folder, tmp_path / "backup")
    assert len(commits(tmp_path / "backup")) == 1
    BM25Index.restore(tmp_path / "backup", folder, overwrite=True)
    assert commits(folder) == commits(tmp_path / "backup")


@kinds
def test_wherever_a_commit_ends_all_kept_ones_open(tmp_path: Path, kind: str) -> None:
    BM25Index.build(TEXTS, tmp_path / "first", **KINDS[kind])
    made: dict[str, Any] = {}
    for step in (1, 2):
        with BM25Index.open(tmp_path / "first", mode="w", keep="1h") as writer:
            made[writer.commit_id] = state(writer)
            write(writer, step)
    made[writer.commit_id] = state(writer)

    def commit(folder: Path) -> None:
        writer = BM25Index.open(folder, mode="w")
        try:
            write(writer, 3)
            writer.commit()
        finally:
            writer._live.abandon()

    for number in count():
        folder = tmp_path / f"killed{number}"
        shutil.copytree(tmp_path / "first", folder)
        killed = killed_at(number, lambda folder=folder: commit(folder))  # type: ignore[misc]
        if killed:
            assert set(made) <= set(commits(folder))
            with BM25Index.open(folder, mode="w") as writer:
                write(writer, 4)
        for id, was in made.items():
            assert state(BM25Index.open(folder, commit=id, verify=True)) == was
        if not killed:
            break
    assert number > 5


@kinds
def test_a_commit_that_cannot_keep_the_last_one_leaves_no_files(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.build(TEXTS, tmp_path / "it", **KINDS[kind])
    with BM25Index.open(tmp_path / "it", mode="w", keep="1h") as writer:
        write(writer, 1)
        before = {*(tmp_path / "it").rglob("*")}

        def full(*_: object) -> None:
            raise OSError(ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("bm25rag.storage.folder_writer.keep_manifest", full)
            with pytest.raises(OSError, match="No space"):
                writer.commit()
        assert {*(tmp_path / "it").rglob("*")} == before
    assert len(commits(tmp_path / "it")) == 2


@pytest.mark.parametrize(
    "damage", [("english", "french"), ('"version": 1', '"version": 3')], ids=["seal", "version"]
)
def test_a_damaged_one_hurts_no_other(tmp_path: Path, damage: tuple[str, str]) -> None:
    """Of its version, too: each write was visible, and then raised, so that it was repeated."""
    folder = tmp_path / "it"
    first = BM25Index.build(TEXTS, folder)
    with BM25Index.open(folder, mode="w", keep="1h") as writer:
        write(writer, 1)
    (kept,) = folder.glob("commit-*.json")
    assert damage[0] in kept.read_text()
    kept.write_text(kept.read_text().replace(*damage))
    with pytest.raises((CorruptIndexError, FormatVersionError), match=kept.name):
        BM25Index.open(folder, commit=first.commit_id)
    assert len(commits(folder)) == 1
    with BM25Index.open(folder, mode="w") as writer:
        write(writer, 2)
    assert len(commits(folder)) == 2


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    index = BM25Index.build(TEXTS, folder)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"commit": 3}, TypeError, "commit must be the id of a commit, a string, got int"),
        ({"commit": "3"}, ValueError, "commit must be the id of a commit, such as"),
        ({"commit": "../../x-9c110871ccf2b11b"}, ValueError, "commit must be the id of a commit"),
        ({"commit": "1-9c110871ccf2b11b"}, CommitNotFoundError, "does not hold the commit 1-9c"),
        ({"commit": index.commit_id, "mode": "w"}, ValueError, "commit needs mode='r'"),
        ({"keep": "7d"}, ValueError, "keep is for writers"),
        ({"keep": "long", "mode": "w"}, ValueError, "keep must be a timedelta > 0, or a number"),
        ({"keep": 7, "mode": "w"}, TypeError, "keep must be a timedelta > 0"),
        ({"keep": "-1d", "mode": "w"}, ValueError, "keep must be"),
    ]
    for given_, error, message in wrong:
        with pytest.raises(error, match=message.replace("(", r"\(")):
            BM25Index.open(folder, **given_)
    BM25Index.open(folder, mode="w").close()  # and nobody holds the lock


def test_the_command_line_keeps_lists_and_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = BM25Index.build(["red boat"], "it")
    (line,) = ok("commits", "it").stdout.splitlines()
    assert line.startswith(first.commit_id)
    ok("commits", "it", "--keep", "7d")
    ok("delete", "it", "0")
    listed = json.loads(ok("commits", "it", "--json").stdout)
    assert [one["id"] for one in listed] == commits(Path("it"))
    assert len(listed) == 3
    assert "red" in ok("search", "it", "boat", "--commit", first.commit_id).stdout
    assert "No document matches" in ok("search", "it", "boat").stdout
    fails(3, "does not hold the commit", "search", "it", "boat", "--commit", "9-9c110871ccf2b11b")
    fails(2, "--keep must be", "commits", "it", "--keep", "x")
    assert Path("it/commit-1.json").exists()
