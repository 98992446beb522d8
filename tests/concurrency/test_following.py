"""One index for the readers and writers of a process, which follows the commits of a folder."""

from __future__ import annotations

import gc
import logging
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import LockedError, NotAnIndexError, TokenizerRequiredError
from bm25rag.following import FollowedFolder, SharedIndex, follow, share
from support.threads import together
from support.waiting import wait_until


@pytest.fixture(params=["memory", "folder"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> SharedIndex | FollowedFolder:
    if request.param == "memory":
        return share(str(tmp_path), BM25Index())
    return follow(tmp_path / "index")


def test_a_write_is_shown_at_its_end_and_a_snapshot_stays(
    shared: SharedIndex | FollowedFolder,
) -> None:
    with shared.writing() as index:
        index.add(["red boat"], ids=["a"])
        assert shared.current.ids() == []
        index.update_metadata(["a"], [{"n": 1}])
    before = shared.current
    with shared.writing() as index:
        index.delete(["a"])
    assert before.get(["a"])[0].metadata == {"n": 1}
    assert shared.current.ids() == []


@pytest.mark.parametrize("delay", [None, 0.0, 3600.0])
def test_an_error_leaves_the_index_as_it_was(tmp_path: Path, delay: float | None) -> None:
    shared = share(str(tmp_path), BM25Index()) if delay is None else follow(tmp_path)
    waits: dict[str, float] = {} if delay is None else {"delay": delay}
    with shared.writing(**waits) as index:
        index.add(["red boat"])

    def fail() -> None:
        with shared.writing(**waits) as index:
            index.add(["green tea"])
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert shared.current.ids() == ["0"]
    with shared.writing(**waits) as index:
        assert index.add(["blue sea"]) == ["1"]
    shared.commit()
    assert shared.current.ids() == ["0", "1"]


def test_a_write_that_cannot_be_undone_gives_up_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: BM25Index) -> None:
        raise MemoryError

    folder = follow(tmp_path)
    monkeypatch.setattr(BM25Index, "rollback", fail)
    with pytest.raises(MemoryError), folder.writing() as index:
        index.add([1])  # type: ignore[list-item]
    assert len(folder.current) == 0
    with BM25Index.open(tmp_path, mode="w") as writer:
        writer.add(["kept"])
    with folder.writing() as index:
        assert len(index) == 1


def test_writers_take_turns_and_readers_see_whole_writes(
    shared: SharedIndex | FollowedFolder,
) -> None:
    def write() -> None:
        for _ in range(10):
            with shared.writing() as index:
                index.add(["red"])
                index.add(["red"])

    def read() -> None:
        for _ in range(200):
            assert len(shared.current.search("red", k=1000)) % 2 == 0

    together([write, write, read, read])
    assert len(shared.current) == 40


def test_a_thread_that_writes_cannot_begin_another_write(
    shared: SharedIndex | FollowedFolder,
) -> None:
    with shared.writing(), pytest.raises(RuntimeError, match="cannot be changed"):
        shared.commit() if isinstance(shared, FollowedFolder) else shared.writing().__enter__()


def test_all_who_ask_get_the_same_index_while_one_has_it(tmp_path: Path) -> None:
    one = follow(tmp_path / "index", k1=2.0)
    assert follow(f"{tmp_path}/./index") is one
    with pytest.raises(ValueError, match=r"k1 is 1\.2, but the index in .* was made with 2\.0"):
        follow(tmp_path / "index", k1=1.2)
    named = share("name", BM25Index(b=0.5))
    assert share("name", BM25Index(), b=0.5) is named
    with pytest.raises(ValueError, match=r"b is 0\.1, but the index in 'name' was made with 0\.5"):
        share("name", BM25Index(), b=0.1)
    with pytest.raises(ValueError, match=r"analyzer is Analyzer.*'german'"):
        share("name", BM25Index(), analyzer=Analyzer("german"))
    with named.writing() as index:
        index.add(["red"])
    del one, named
    gc.collect()
    assert len(share("name", BM25Index()).current) == 0


def test_wrong_settings_make_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="k1"):
        follow(tmp_path / "index", k1=-1.0)
    with pytest.raises(ValueError, match="timeout must be a number >= 0"):
        follow(tmp_path / "index", timeout=-1.0)
    assert not (tmp_path / "index").exists()
    with pytest.raises(ValueError, match="delay must be"), follow(tmp_path).writing(delay=-1.0):
        pass


def test_commits_of_other_writers_are_followed(tmp_path: Path) -> None:
    folder = follow(tmp_path)
    for number in range(3):
        with BM25Index.open(tmp_path, mode="w") as other:
            other.add(["red"])
        assert len(folder.current) == 2 * number + 1
        with folder.writing() as index:
            index.add(["red"])
    assert folder.current.ids() == BM25Index.open(tmp_path).ids()


def test_the_folder_is_locked_from_a_write_to_its_commit(tmp_path: Path) -> None:
    folder = follow(tmp_path)
    with BM25Index.open(tmp_path, mode="w"), pytest.raises(LockedError, match=r"after 0\.1 sec"):
        folder.writing(timeout=0.1).__enter__()
    with folder.writing(delay=3600.0) as index:
        index.add(["red"])
    with pytest.raises(LockedError):
        BM25Index.open(tmp_path, mode="w")
    assert len(BM25Index.open(tmp_path)) == 0
    assert len(follow(tmp_path).current) == 1
    folder.commit()
    with BM25Index.open(tmp_path, mode="w") as other:
        assert len(other) == 1


def test_a_write_without_delay_commits_those_that_were_put_off(tmp_path: Path) -> None:
    with follow(tmp_path).writing(delay=math.inf) as index:
        index.add(["red"])
    del index
    gc.collect()
    with follow(tmp_path).writing() as index:
        index.add(["blue"])
    assert BM25Index.open(tmp_path).ids() == ["0", "1"]


def test_a_delayed_commit_comes_in_time_and_one_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder, commit, tried = follow(tmp_path), BM25Index.commit, threading.Event()

    def fail(index: BM25Index) -> None:
        tried.set()
        raise OSError("disk full")

    monkeypatch.setattr(BM25Index, "commit", fail)
    with caplog.at_level(logging.ERROR), folder.writing(delay=0.01) as index:
        index.add(["red"])
    assert tried.wait(60)
    wait_until(lambda: "not committed yet" in caplog.text)
    assert len(folder.current) == 1
    monkeypatch.setattr(BM25Index, "commit", commit)
    with folder.writing(delay=0.01) as index:
        index.add(["red"])
    wait_until(lambda: len(BM25Index.open(tmp_path)) == 2)


def test_a_folder_that_is_gone_stays_readable_and_is_made_anew(tmp_path: Path) -> None:
    folder = follow(tmp_path / "index")
    with folder.writing() as index:
        index.add(["red"])
    shutil.rmtree(tmp_path / "index")
    assert len(folder.current) == 1
    assert follow(tmp_path / "index") is folder
    assert len(folder.current) == 0
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(NotAnIndexError):
        follow(tmp_path)


@pytest.mark.parametrize("shards", [None, 2])
def test_an_index_of_the_other_kind_that_took_a_folders_place_is_followed(
    tmp_path: Path, shards: int | None
) -> None:
    path = tmp_path / "index"
    BM25Index.build(["red"], path, shards=None if shards else 2)
    folder = follow(path)
    shutil.rmtree(path)
    assert len(folder.current) == 1
    BM25Index.build(["red boat", "blue boat"], path, shards=shards)
    assert folder.current.ids() == ["0", "1"]
    with follow(path).writing() as index:
        index.add(["red"])
    assert len(folder.current) == len(BM25Index.open(path)) == 3


def test_the_first_tokenizer_is_that_of_all_who_share(tmp_path: Path) -> None:
    folder = follow(tmp_path, analyzer=Analyzer(tokenizer=str.split))
    with follow(tmp_path).writing() as index:
        index.add(["C++ is_it"])
    assert len(folder.current.search("C++")) == 1
    with pytest.raises(ValueError, match=r"analyzer is Analyzer"):
        follow(tmp_path, analyzer=Analyzer(tokenizer=str.splitlines))
    del folder
    gc.collect()
    with pytest.raises(TokenizerRequiredError):
        follow(tmp_path)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs signals")
def test_a_signal_handler_that_interrupts_a_write_is_told_to_end_the_program(
    tmp_path: Path,
) -> None:
    folder = follow(tmp_path)
    before = signal.signal(signal.SIGUSR1, lambda *_: folder.commit())
    try:
        told = pytest.raises(RuntimeError, match=r"writing .* already.*signal handler.*sys\.exit")
        with told, folder.writing(delay=3600.0):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(folder.current) == 0


END = """
import os, sys
from bm25rag.following import follow

folder = follow(sys.argv[1])
with folder.writing(delay=3600.0) as index:
    index.add(["red"])
if sys.argv[2] == "killed":
    os._exit(0)
if sys.argv[2] == "dropped":
    del folder, index
"""


@pytest.mark.parametrize(("end", "kept"), [("exit", 1), ("dropped", 1), ("killed", 0)])
def test_the_end_of_the_process_commits_unless_it_is_killed(
    tmp_path: Path, end: str, kept: int
) -> None:
    command = [sys.executable, "-W", "error", "-c", END, str(tmp_path), end]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert len(BM25Index.open(tmp_path)) == kept


def put_off(path: Path) -> None:
    global _held  # until the end
    _held = follow(path)
    with _held.writing(delay=3600.0) as index:
        index.add(["red"])


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_so_does_the_end_of_a_child_of_multiprocessing(tmp_path: Path, method: str) -> None:
    child: Any = multiprocessing.get_context(method)
    process = child.Process(target=put_off, args=(tmp_path,))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert len(BM25Index.open(tmp_path)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_reads_what_is_put_off_though_others_wrote_while_it_waited_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, open_folder = follow(tmp_path), BM25Index.open

    def open_late(path: str, **given: Any) -> BM25Index:
        with open_folder(path, mode="w") as other:
            other.add(["red"])
        return open_folder(path, **given)

    monkeypatch.setattr(BM25Index, "open", open_late)
    with folder.writing(delay=3600) as index:
        index.add(["red"])
    child = os.fork()
    if not child:
        os._exit(len(folder.current))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(folder.current) == 2
    folder.commit()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_leaves_the_commit_to_its_parent(tmp_path: Path) -> None:
    folder = follow(tmp_path)
    with folder.writing(delay=3600.0) as index:
        index.add(["red"])
    child = os.fork()
    if not child:
        folder.commit()
        gc.collect()
        os._exit(len(folder.current))  # as it was shown at the fork
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    with pytest.raises(LockedError):
        BM25Index.open(tmp_path, mode="w")
    folder.commit()
    assert len(BM25Index.open(tmp_path)) == 1
