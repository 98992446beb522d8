"""``sync --watch``: an index that follows a folder, and what must not harm it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bm25rag import BM25Index
from bm25rag.cli import sources, watching
from support.commands import fails, ok, write
from support.waiting import wait_until

watchfiles = pytest.importorskip("watchfiles", reason="the extra watch is not installed")

PATIENCE = 300.0  # seconds until something counts as stuck, on a machine that does much else
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(autouse=True)
def _docs() -> None:
    write("docs/a.md", "first")
    write("docs/sub/b.md", "second")
    ok("index", "docs", "-o", "saved")


@pytest.fixture
def watch(start: Start) -> Iterator[Start]:
    """Start ``sync --watch``, and kill it when patience ends, so that no test waits for ever."""
    timers: list[threading.Timer] = []

    def start_watching(*words: str) -> subprocess.Popen[bytes]:
        process = start("sync", "docs", "saved", "--watch", *words)
        timers.append(threading.Timer(PATIENCE, process.kill))
        timers[-1].start()
        return process

    yield start_watching
    for timer in timers:
        timer.cancel()


def read_until(process: subprocess.Popen[bytes], words: bytes) -> list[bytes]:
    """Return the messages up to one that begins with these words."""
    lines: list[bytes] = []
    while not (lines and lines[-1].startswith(words)):
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    return lines


def holds(*ids: str, found_by: str | None = None) -> None:
    """Wait until the index has these documents, or a query finds them."""
    index = BM25Index.open("saved")

    def present() -> list[str]:
        index.refresh()
        return index.ids() if found_by is None else [hit.id for hit in index.search(found_by)]

    wait_until(lambda: sorted(present()) == sorted(ids), PATIENCE)


def save_as_editors_do(name: str, content: str | bytes) -> None:
    """Write to another file, and rename it, so that nobody reads half of it."""
    write(f"{name}.tmp", content).replace(name)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err.decode()


# --- following -----------------------------------------------------------------------


def test_an_index_follows_its_folder(watch: Start) -> None:
    write("docs/c.md", "new before the start")
    process = watch()
    *_, line = read_until(process, b"Synced")
    assert line.endswith(b"1 added, 0 replaced, 2 unchanged, 0 deleted, 0 files skipped\n")
    holds("a.md#1", "sub/b.md#1", "c.md#1")

    write("docs/new/folder/d.md", "in a new folder")
    holds("a.md#1", "sub/b.md#1", "c.md#1", "new/folder/d.md#1")
    write("docs/new/folder/e.md", "in the same folder later")
    holds("a.md#1", "sub/b.md#1", "c.md#1", "new/folder/d.md#1", "new/folder/e.md#1")
    shutil.rmtree("docs/new")
    holds("a.md#1", "sub/b.md#1", "c.md#1")
    Path("docs/c.md").rename("docs/sub/c.md")
    holds("a.md#1", "sub/b.md#1", "sub/c.md#1")

    write("docs/.a.md.swp", "hidden")
    write("docs/a.md~", "a copy")
    save_as_editors_do("docs/a.md", "zebra")
    holds("a.md#1", found_by="zebra")
    holds("a.md#1", "sub/b.md#1", "sub/c.md#1")

    for number in range(200):
        write(f"docs/many/{number}.md", f"number {number}")
    many = [f"many/{number}.md#1" for number in range(200)]
    holds("a.md#1", "sub/b.md#1", "sub/c.md#1", *many)


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named_once_and_its_documents_stay(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    save_as_editors_do("docs/a.md", b"a\0b")
    assert b"docs/a.md:1: not a text" in read_until(process, b"Skipped")[-1]
    save_as_editors_do("docs/d.md", "fourth")
    line = process.stderr.readline()
    assert line.startswith(b"Synced saved in")
    assert line.endswith(b"1 added, 0 replaced, 1 unchanged, 0 deleted, 1 file skipped\n")
    holds("a.md#1", "sub/b.md#1", "d.md#1")


@pytest.mark.slow
def test_the_index_may_lie_in_its_folder_and_be_polled(watch: Start) -> None:
    Path("saved").rename("docs/saved")
    Path("saved").symlink_to("docs/saved")
    process = watch("--poll")
    read_until(process, b"Synced")
    time.sleep(1.1)  # a file system may not tell times of one second apart
    write("docs/d.md", "fourth")
    holds("a.md#1", "sub/b.md#1", "d.md#1")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")
def test_ctrl_c_ends_it_quietly(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    process.send_signal(signal.SIGINT)
    assert ended(process) == (130, "")


def test_ctrl_c_that_python_drops_ends_it_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one is that comes while an object is cleaned up."""

    class Cleaned:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    handler = signal.getsignal(signal.SIGINT)
    steps = watching.watch_folder(Path("docs"), Path("saved"), poll=False)
    assert next(steps) is False
    Cleaned()
    with pytest.raises(KeyboardInterrupt):
        list(islice(steps, 50))
    assert not told
    assert signal.getsignal(signal.SIGINT) is handler
    assert sys.unraisablehook == told.append


# --- what must not harm the index ----------------------------------------------------


@pytest.mark.slow
def test_a_folder_that_goes_leaves_the_index_as_it_was(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    Path("docs").rename("elsewhere")
    code, err = ended(process)
    assert code == 3
    assert err == (
        "Error: docs: the folder has gone, or another has taken its place; "
        "the index stays as it was\n"
    )
    holds("a.md#1", "sub/b.md#1")


@pytest.mark.slow
def test_an_unmounted_disk_leaves_the_index_as_it_was(watch: Start) -> None:
    """Below a mount there is another folder, which may have files of its own."""
    process = watch("--poll")
    read_until(process, b"Synced")
    write("below/stray.md", "not of this disk")
    Path("docs").rename("disk")
    Path("below").rename("docs")
    code, err = ended(process)
    assert (code, "another has taken its place" in err) == (3, True)
    holds("a.md#1", "sub/b.md#1")


def test_a_folder_that_goes_while_it_is_read_leaves_the_index_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_file = sources.read_file

    def read_and_go(*arguments: Any) -> Any:
        documents = list(read_file(*arguments))
        if Path("docs/a.md").exists():
            Path("docs").rename("disk")
            Path("docs").mkdir()
        return documents

    write("docs/a.md", "first and changed")
    monkeypatch.setattr(sources, "read_file", read_and_go)
    fails(3, "docs: the folder has gone, or another", "sync", "docs", "saved")
    assert BM25Index.open("saved").get(["a.md#1", "sub/b.md#1"])[0].text == "first"


def test_without_any_file_it_waits_for_one(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    for name in ("a.md", "sub/b.md"):
        Path("docs", name).unlink()
    assert b"docs: no file" in read_until(process, b"Error")[-1]
    assert process.poll() is None
    write("docs/c.md", "third")
    holds("c.md#1")


@pytest.mark.slow
def test_another_writer_is_waited_for(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    with BM25Index.open("saved", mode="w"):
        write("docs/c.md", "third")
        (line,) = read_until(process, b"Error")
        assert line.endswith(b"try again when it is done\n")
        time.sleep(0.5)
    (line,) = read_until(process, b"Synced")  # it was said once
    holds("a.md#1", "sub/b.md#1", "c.md#1")


@pytest.mark.slow
def test_an_index_that_goes_ends_it(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    Path("saved").rename("elsewhere")
    write("docs/c.md", "third")
    code, err = ended(process)
    assert (code, "saved holds no bm25rag index" in err) == (3, True)


def test_what_the_system_refuses_is_said_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: Any, **options: Any) -> NoReturn:
        raise OSError("OS file watch limit reached. about ['docs']")

    monkeypatch.setattr(watchfiles, "watch", refuse)
    fails(
        3,
        "docs: cannot be watched: OS file watch limit reached. about ['docs']; --poll needs no",
        *("sync", "docs", "saved", "--watch"),
    )


def test_without_the_extra_the_message_has_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    complaint = "bm25rag sync --watch needs watchfiles: pip install 'bm25rag[watch]'"
    fails(3, complaint, "sync", "docs", "saved", "--watch")


def test_options_that_exclude_one_another_are_refused() -> None:
    fails(2, "give either --watch or --dry-run", "sync", "docs", "saved", "--watch", "--dry-run")
    fails(2, "--poll needs --watch", "sync", "docs", "saved", "--poll")
    fails(3, "gone: No such file", "sync", "gone", "saved", "--watch")


@pytest.mark.slow
def test_a_gitignore_file_that_changes_is_followed(watch: Start) -> None:
    process = watch()
    read_until(process, b"Synced")
    save_as_editors_do("docs/.gitignore", "sub/\n")
    holds("a.md#1")
