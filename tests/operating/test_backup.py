"""Backups are of one commit, whole or not there, whatever happens meanwhile."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, LockedError, NotAnIndexError
from bm25rag.storage.local_store import LocalStore
from support.cases import first
from support.commands import fails, ok
from support.folders import no_leftovers
from support.killing import killed_at

TEXTS = [f"boat {number % 3} word{number}" for number in range(12)]
KINDS: dict[str, dict[str, Any]] = {"plain": {}, "sharded": {"shards": 3}}
URL = "memory://backups/it"


@pytest.fixture(params=first(1, KINDS))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    BM25Index.build(TEXTS, tmp_path / "it", **KINDS[request.param])
    change(tmp_path / "it", 0)
    return tmp_path / "it"


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)  # so that there are several segments
    MemoryFileSystem().store.clear()
    MemoryFileSystem().pseudo_dirs[:] = [""]


def change(folder: Path, step: int) -> None:
    """Commit documents of one step, and take away those of the one before."""
    with BM25Index.open(folder, mode="w") as writer:
        writer.add([f"boat step{step}"] * 5, ids=[f"{step}-{number}" for number in range(5)])
        writer.delete([f"{step - 1}-{number}" for number in range(5)])
        if step % 2:
            writer.compact()


def state(folder: Path) -> Any:
    """Return all that an index holds, after every byte of it was verified."""
    BM25Index.verify(folder)
    index = BM25Index.open(folder)
    return index.commit_id, index.get(index.ids()), index.scores("boat word3").tolist()


@pytest.mark.parametrize("link", [False, True])
def test_a_backup_is_the_last_commit_and_later_ones_copy_what_is_new(
    folder: Path, tmp_path: Path, link: bool
) -> None:
    target = tmp_path / "backups" / "it"
    with BM25Index.open(folder, mode="w") as writer:  # who holds the lock, and has not committed
        writer.add(["never committed"])
        BM25Index.backup(folder, target, link=link)
        assert state(target) == state(folder)
        writer.rollback()
    BM25Index.backup(folder, target, link=link, overwrite=True)
    first = {path.name: path.stat() for path in target.rglob("segment-*")}
    own = {path.name: path.stat().st_ino for path in folder.rglob("segment-*")}
    assert {name: one.st_ino == own[name] for name, one in first.items()} == dict.fromkeys(
        own, link
    )
    with pytest.raises(FileExistsError, match="overwrite=True"):
        BM25Index.backup(folder, target)
    change(folder, 2)
    BM25Index.backup(folder, target, link=link, overwrite=True)
    assert state(target) == state(folder)
    again = {path.name: path.stat() for path in target.rglob("segment-*")}
    kept = first.keys() & again.keys()
    assert kept
    assert all(first[name].st_ino == again[name].st_ino for name in kept)
    assert no_leftovers(target)
    shutil.rmtree(folder)
    BM25Index.restore(target, folder)
    assert state(target) == state(folder)
    change(folder, 3)  # which leaves the backup as it was
    assert state(target)[0] != state(folder)[0]


def test_a_url_takes_a_backup_and_gives_it_back(folder: Path, tmp_path: Path) -> None:
    BM25Index.backup(folder, URL)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        BM25Index.backup(folder, URL)
    expected = state(folder)
    assert BM25Index.open(URL, cache=tmp_path / "cache").commit_id == expected[0]
    BM25Index.restore(URL, tmp_path / "restored")
    assert state(tmp_path / "restored") == expected
    change(folder, 2)
    BM25Index.backup(folder, URL, overwrite=True)
    BM25Index.restore(URL, tmp_path / "restored", overwrite=True)
    assert state(tmp_path / "restored") == state(folder) != expected


def test_what_is_damaged_is_restored_and_readers_go_there(folder: Path, tmp_path: Path) -> None:
    BM25Index.backup(folder, tmp_path / "backup")
    expected = state(folder)
    change(folder, 1)
    reader = BM25Index.open(folder)
    for path in folder.rglob("*.json"):
        path.write_bytes(b"damaged")
    with pytest.raises(CorruptIndexError):
        reader.refresh()
    with pytest.raises(FileExistsError, match="holds an index"):
        BM25Index.restore(tmp_path / "backup", folder)
    BM25Index.restore(tmp_path / "backup", folder, overwrite=True)
    assert state(folder) == expected
    assert reader.refresh()
    assert reader.commit_id == expected[0]


def flip_a_bit(folder: Path) -> None:
    """Damage each file of arrays, without a change of its size, header or block sums."""
    for path in folder.rglob("*.bin"):
        data = bytearray(path.read_bytes())
        data[16 + int.from_bytes(data[8:16], "little")] ^= 1
        path.write_bytes(data)


def test_files_that_are_there_and_damaged_are_copied_again(folder: Path, tmp_path: Path) -> None:
    """They were taken for whole by their sizes: ``restore`` left an index as damaged as it was."""
    backup, expected = tmp_path / "backup", state(folder)
    BM25Index.backup(folder, backup)
    flip_a_bit(folder)
    with pytest.raises(CorruptIndexError):
        BM25Index.verify(folder)
    BM25Index.restore(backup, folder, overwrite=True)
    assert state(folder) == expected
    flip_a_bit(backup)
    BM25Index.backup(folder, backup, overwrite=True)
    assert state(backup) == expected
    flip_a_bit(folder)
    flip_a_bit(backup)
    with pytest.raises(CorruptIndexError, match=re.escape(str(folder))):
        BM25Index.backup(folder, backup, overwrite=True)


def test_readers_that_met_damage_read_what_was_restored(folder: Path, tmp_path: Path) -> None:
    """They had the damaged files open, and stayed there: the commit was the same."""
    BM25Index.backup(folder, tmp_path / "backup")
    expected = state(folder)
    flip_a_bit(folder)
    reader = BM25Index.open(folder)
    for _ in range(2):
        with pytest.raises(CorruptIndexError):
            reader.scores("boat word3")
        assert reader.refresh()
    with pytest.raises(CorruptIndexError):
        reader.scores("boat word3")
    BM25Index.restore(tmp_path / "backup", folder, overwrite=True)
    assert reader.refresh()
    assert (reader.commit_id, reader.get(reader.ids()), reader.scores("boat word3").tolist()) == (
        expected
    )
    assert not reader.refresh()


def test_a_backup_over_that_of_another_index_in_shards(tmp_path: Path) -> None:
    for word in ("boat", "ship"):
        texts = [f"{word} word{number}" for number in range(12)]
        BM25Index.build(texts, tmp_path / word, shards=2)
        BM25Index.backup(tmp_path / word, URL, overwrite=True)
    BM25Index.restore(URL, tmp_path / "restored")
    assert state(tmp_path / "restored") == state(tmp_path / "ship")
    flip_a_bit(tmp_path / "boat")
    with pytest.raises(CorruptIndexError, match=r"segment-.* does not have"):
        BM25Index.backup(tmp_path / "boat", URL, overwrite=True)
    BM25Index.restore(URL, tmp_path / "again")
    assert state(tmp_path / "again") == state(tmp_path / "ship")


def test_half_a_manifest_behind_a_url_is_replaced(folder: Path, tmp_path: Path) -> None:
    """As in a folder: a store without atomic writes keeps it if the writer dies."""
    BM25Index.backup(folder, URL)
    for path, file in MemoryFileSystem().store.items():
        if path.endswith("/it/manifest.json"):
            MemoryFileSystem().pipe_file(path, file.getvalue()[:100])
            break
    with pytest.raises(CorruptIndexError):
        BM25Index.restore(URL, tmp_path / "restored")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        BM25Index.backup(folder, URL)
    BM25Index.backup(folder, URL, overwrite=True)
    BM25Index.restore(URL, tmp_path / "restored")
    assert state(tmp_path / "restored") == state(folder)


def test_nothing_is_saved_behind_a_sharded_index(tmp_path: Path) -> None:
    for kind, chosen in KINDS.items():
        BM25Index.build(TEXTS, tmp_path / kind, **chosen)
    BM25Index.backup(tmp_path / "sharded", URL)
    with pytest.raises(NotAnIndexError, match="holds a sharded index"):
        BM25Index.open(tmp_path / "plain").save(URL, overwrite=True)
    with pytest.raises(NotAnIndexError, match="sharded"):
        BM25Index.open(tmp_path / "plain").save(tmp_path / "sharded", overwrite=True)


def test_an_index_of_another_kind_is_replaced(tmp_path: Path) -> None:
    for kind, chosen in KINDS.items():
        BM25Index.build(TEXTS, tmp_path / kind, **chosen)
    for one, other in [("plain", "sharded"), ("sharded", "plain")]:
        target = tmp_path / f"{one}-{other}"
        (tmp_path / one).rename(tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", tmp_path / one)
        BM25Index.backup(tmp_path / one, target)
        (target / "mine.txt").write_text("stays")
        BM25Index.backup(tmp_path / other, target, overwrite=True)
        assert state(target) == state(tmp_path / other)
        assert (target / "mine.txt").exists()
        shutil.rmtree(tmp_path / "moved")


def test_damage_is_not_backed_up_and_the_earlier_backup_stays(folder: Path, tmp_path: Path) -> None:
    BM25Index.backup(folder, tmp_path / "backup")
    BM25Index.backup(folder, URL)
    expected = state(tmp_path / "backup")
    change(folder, 1)
    *_, path = sorted(folder.rglob("segment-*.bin"), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)
    for target in (tmp_path / "backup", URL):
        with pytest.raises(CorruptIndexError, match=path.name):
            BM25Index.backup(folder, target, overwrite=True)
    assert state(tmp_path / "backup") == expected
    assert BM25Index.open(URL, cache=tmp_path / "cache").commit_id == expected[0]
    path.unlink()
    with pytest.raises(CorruptIndexError, match=path.name):
        BM25Index.backup(folder, tmp_path / "backup", overwrite=True)


def test_what_is_wrong_with_the_folders_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for target in ("other", "file"):
        with pytest.raises(NotAnIndexError, match="choose a"):
            BM25Index.backup(folder, tmp_path / target, overwrite=True)
    with pytest.raises(NotAnIndexError, match="no bm25rag index"):
        BM25Index.backup(tmp_path / "other", tmp_path / "new")
    with pytest.raises(NotAnIndexError):
        BM25Index.restore(tmp_path / "missing", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match="both the source and the target"):
        BM25Index.backup(folder, folder, overwrite=True)
    with pytest.raises(ValueError, match="folder of this machine"):
        BM25Index.backup(URL, tmp_path / "new")
    BM25Index.backup(folder, tmp_path / "backup")
    with BM25Index.open(folder, mode="w"), pytest.raises(LockedError):
        BM25Index.restore(tmp_path / "backup", folder, overwrite=True)
    MemoryFileSystem().pipe_file("/backups/it/mine.txt", b"mine")
    with pytest.raises(NotAnIndexError, match="choose another URL"):
        BM25Index.backup(folder, URL, overwrite=True)


@pytest.mark.parametrize("where", ["manifest", "file"])
def test_a_folder_in_place_of_a_file_is_named(where: str, folder: Path, tmp_path: Path) -> None:
    BM25Index.backup(folder, tmp_path / "backup")
    path = folder / "manifest.json" if where == "manifest" else next(folder.glob("segment-*"))
    path.unlink()
    path.mkdir()
    for work in (BM25Index.restore, BM25Index.backup):
        with pytest.raises(CorruptIndexError, match=f"{re.escape(str(path))}: is a folder"):
            work(tmp_path / "backup", folder, overwrite=True)
    path.rmdir()
    BM25Index.restore(tmp_path / "backup", folder, overwrite=True)
    assert state(folder) == state(tmp_path / "backup")


def test_a_full_disk_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("shutil.copyfileobj", fill)
    with pytest.raises(OSError, match="no space left") as caught:
        BM25Index.backup(folder, tmp_path / "backup")
    assert str(tmp_path / "backup") in str(caught.value.filename)


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder whose lock is held")
@pytest.mark.parametrize("link", [False, True])
def test_a_target_that_is_removed_meanwhile_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    """And the source, which is whole, is not called damaged."""
    download = LocalStore.download

    def remove_target(*arguments: Any) -> None:
        shutil.rmtree(tmp_path / "backup")
        download(*arguments)

    monkeypatch.setattr(LocalStore, "download", remove_target)
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "backup"))):
        BM25Index.backup(folder, tmp_path / "backup", link=link)
    assert not (tmp_path / "backup").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.parametrize("kind", KINDS)
def test_folders_without_permission_are_named(kind: str) -> None:
    with a_users_folder() as mine:
        BM25Index.build(TEXTS, mine / "it", **KINDS[kind])
        (mine / "sealed").mkdir(mode=0o500)
        with pytest.raises(PermissionError, match="sealed"):
            BM25Index.backup(mine / "it", mine / "sealed" / "backup")
        BM25Index.backup(mine / "it", mine / "backup")
        (path, *_) = (mine / "it").rglob("segment-*.bin")
        path.chmod(0)
        with pytest.raises(PermissionError, match=path.name):
            BM25Index.backup(mine / "it", mine / "another")
        (mine / "backup").chmod(0)
        with pytest.raises(PermissionError, match="backup"):
            BM25Index.restore(mine / "backup", mine / "restored")
        (mine / "backup").chmod(0o500)
        BM25Index.restore(mine / "backup", mine / "restored")
        assert state(mine / "restored") == state(mine / "backup")
        with BM25Index.open(mine / "restored", mode="w") as writer:
            writer.delete(["0"])
        with pytest.raises(PermissionError, match="backup"):
            BM25Index.restore(mine / "restored", mine / "backup", overwrite=True)
        (mine / "backup").chmod(0o700)


@contextmanager
def a_users_folder() -> Iterator[Path]:
    """Give a folder, and no more rights than a user has, whom permissions are for."""
    with TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)


@pytest.mark.untraced
def test_wherever_a_copy_ends_there_is_the_old_index_or_the_new_one(
    folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "backup"
    BM25Index.backup(folder, target)
    shutil.copytree(target, tmp_path / "old")
    old = state(target)
    change(folder, 1)
    new, seen = state(folder), set()
    for number in count():
        shutil.rmtree(target)
        shutil.copytree(tmp_path / "old", target)
        if not killed_at(number, lambda: BM25Index.backup(folder, target, overwrite=True)):
            break
        found = state(target)
        assert found in (old, new)
        seen.add(found == new)
        BM25Index.restore(folder, target, overwrite=True)  # as which it goes on
        assert state(target) == new
    assert seen == {False, True}
    assert state(target) == new
    for number in count():
        shutil.rmtree(target, ignore_errors=True)
        if not killed_at(number, lambda: BM25Index.backup(folder, target)):
            break
        if target.exists():
            BM25Index.backup(folder, target, overwrite=True)
            assert state(target) == new


@pytest.mark.untraced
def test_wherever_a_copy_ends_the_kept_commits_that_are_there_are_whole(
    folder: Path, tmp_path: Path
) -> None:
    with BM25Index.open(folder, mode="w", keep="1h") as writer:
        writer.add(["boat"])
    change(folder, 1)
    change(folder, 2)
    BM25Index.backup(folder, tmp_path / "backup")
    shutil.copytree(folder, tmp_path / "old")
    for number in count():
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "old", folder)
        if not killed_at(
            number, lambda: BM25Index.restore(tmp_path / "backup", folder, overwrite=True)
        ):
            break
        for commit in BM25Index.commits(folder):
            BM25Index.open(folder, commit=commit.id, verify=True)
    assert len(BM25Index.commits(folder)) == 1 < len(BM25Index.commits(tmp_path / "old"))


@pytest.mark.untraced
def test_a_copy_over_another_index_leaves_one_of_both_wherever_it_ends(
    folder: Path, tmp_path: Path
) -> None:
    """Both have a commit of the same number."""
    target, other = tmp_path / "backup", tmp_path / "other"
    shards = BM25Index.open(folder).stats()["shards"] or None
    BM25Index.build([f"ship {number}" for number in range(30)], other, shards=shards)
    change(other, 0)
    old, new, seen = state(other)[1:], state(folder)[1:], set()
    assert BM25Index.open(other).commit_id[:2] == BM25Index.open(folder).commit_id[:2]
    for number in count():
        shutil.copytree(other, target)
        killed = killed_at(number, lambda: BM25Index.backup(folder, target, overwrite=True))
        found = state(target)[1:]
        assert found in (old, new)
        seen.add(found == new)
        BM25Index.backup(folder, target, overwrite=True)
        assert state(target) == state(folder)
        assert no_leftovers(target)
        shutil.rmtree(target)
        if not killed:
            break
    assert seen == {False, True}


def test_a_folder_that_is_compacted_all_the_time_is_backed_up_at_one_commit(
    folder: Path, tmp_path: Path
) -> None:
    stop = threading.Event()

    def work() -> None:
        for step in count(1):
            change(folder, step)
            if stop.is_set():
                return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for number in range(6):
            target = tmp_path / f"backup{number}"
            BM25Index.backup(folder, target, link=number % 2 == 1)
            _, documents, _ = state(target)
            later = {one.id.partition("-")[0] for one in documents if "-" in one.id}
            assert len(later) == 1  # of one step
            assert len(documents) == len(TEXTS) + 5
    finally:
        stop.set()
        worker.join()


def copy_for_ever(source: Path, target: Path) -> None:
    while True:
        BM25Index.backup(source, target, overwrite=True)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_a_backup_that_is_killed_leaves_one_commit(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    BM25Index.backup(folder, target)
    context = multiprocessing.get_context("forkserver")
    for step in range(1, 8):
        change(folder, step)
        child = context.Process(target=copy_for_ever, args=(folder, target))
        child.start()
        time.sleep(0.3 + step / 20)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        found = {one.id.partition("-")[0] for one in state(target)[1] if "-" in one.id}
        assert len(found) == 1


def test_the_command_line_backs_up_and_restores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    BM25Index.from_texts(TEXTS).save("it")
    assert "Backed up it to backup." in ok("backup", "it", "backup").stderr
    fails(3, "--force replaces it", "backup", "it", "backup")
    change(Path("it"), 0)
    ok("backup", "it", "backup", "--force", "--link")
    assert "Restored it from backup." in ok("restore", "backup", "it", "--force").stderr
    assert state(Path("it")) == state(Path("backup"))
