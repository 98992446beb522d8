"""Locks: writes during other writes, forks, closes and their own callbacks."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.errors import LockedError, ReadOnlyError
from bm25rag.storage.folder_writer import FolderWriter
from support.threads import together

# Python 3.12 and newer warn of any fork in a process with threads, which is the case in question.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

LIMIT = 60  # seconds after which a thread or process counts as stuck


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Index.from_texts(["red boat", "green tea", "blue sea"]).save(tmp_path / "index")
    return tmp_path / "index"


def in_a_fork(work: Callable[[], Any]) -> Any:
    """Do something in a forked child, and return what it returned."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this platform has no fork")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(work()))
    child.start()
    there.close()
    try:
        assert here.poll(LIMIT), "the child hangs"
        return here.recv()
    finally:
        child.join(LIMIT)
        if child.is_alive():
            child.kill()
            child.join()


class SlowTexts:
    """Texts of which the last is held back until it is released."""

    def __init__(self) -> None:
        self.begun, self.allowed = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[str]:
        yield "first"
        self.begun.set()
        assert self.allowed.wait(LIMIT)
        yield "last"


@pytest.fixture
def impatient() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# -- first uses of a mapped index --------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
def test_threads_may_be_the_first_to_use_any_part_of_an_opened_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "bm25rag.storage.checksummed_file.BLOCK", 256
    )  # so that checking takes a while
    index = BM25Index.from_texts(
        [f"red word{number % 97} word{number % 89}" for number in range(300)],
        metadata=[{"n": number} for number in range(300)],
    )
    index.delete(["7"])
    index.save(tmp_path / "index")
    index = BM25Index.open(tmp_path / "index")
    hits, words = index.search("red word5", k=20), index.vocabulary()
    uses: list[Callable[[BM25Index], bool]] = [
        lambda index: index.search("red word5", k=20) == hits,
        lambda index: index.search("red word5", k=20, filter={"n": {"$gte": 0}}) == hits,
        lambda index: index.vocabulary() == words,
        lambda index: index.stats()["documents"] == 299,
        lambda index: index.to_scipy().shape == (299, len(words)),
        lambda index: pickle.loads(pickle.dumps(index)).search("red word5", k=20) == hits,
        lambda index: len(index.get(index.ids())) == 299,
    ]
    for _ in range(12):
        at_once(uses, BM25Index.open(tmp_path / "index"))


def at_once(uses: list[Callable[[BM25Index], bool]], index: BM25Index) -> None:
    start = threading.Barrier(len(uses))

    def run(use: Callable[[BM25Index], bool]) -> None:
        start.wait()
        assert use(index)

    together([partial(run, use) for use in uses])


# -- forks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["drop", "close", "leave", "exit"])
def test_a_forked_child_does_not_give_up_its_parents_lock(folder: Path, how: str) -> None:
    held = [BM25Index.open(folder, mode="w")]
    held[0].add(["new"])

    def part() -> bool:
        if how == "drop":
            held.clear()
            gc.collect()
        elif how == "close":
            held[0].close()
        elif how == "leave":
            with pytest.raises(ReadOnlyError), held[0]:
                pass
        return True

    assert in_a_fork(part)
    with pytest.raises(LockedError):
        BM25Index.open(folder, mode="w")
    with pytest.raises(LockedError):
        BM25Index.from_texts(["other"]).save(folder)
    held[0].commit()
    held[0].close()
    assert BM25Index.open(folder).ids() == ["0", "1", "2", "3"]
    BM25Index.open(folder, mode="w").close()


def test_a_forked_child_cannot_commit_for_its_parent(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["new"])

        def commit() -> str:
            with pytest.raises(ReadOnlyError) as caught:
                writer.commit()
            return str(caught.value)

        assert "another process" in in_a_fork(commit)
        assert BM25Index.open(folder).ids() == ["0", "1", "2"]
    assert BM25Index.open(folder).ids() == ["0", "1", "2", "3"]


IN_A_CHILD: dict[str, Callable[[BM25Index], object]] = {
    "close": lambda index: index.close(),
    "add": lambda index: index.add(["of the child"]),
    "delete": lambda index: index.delete(["0"]),
    "rollback": lambda index: index.rollback(),
    "copy": lambda index: len(pickle.loads(pickle.dumps(index))),
}


@pytest.mark.parametrize("first", IN_A_CHILD.values(), ids=IN_A_CHILD)
def test_a_child_forked_during_a_write_does_not_wait_for_it(
    folder: Path, first: Callable[[BM25Index], object]
) -> None:
    """The thread that holds the lock does not exist in the child, where nobody would release it."""
    writer = BM25Index.open(folder, mode="w")
    texts = SlowTexts()
    adding = threading.Thread(target=writer.add, args=(texts,))
    adding.start()
    assert texts.begun.wait(LIMIT)

    def act_and_close() -> bool:
        first(writer)
        writer.close()
        return writer.read_only

    try:
        assert in_a_fork(act_and_close)
    finally:
        texts.allowed.set()
        adding.join(LIMIT)
    assert writer.ids() == ["0", "1", "2", "3", "4"]
    writer.commit()
    writer.close()
    assert BM25Index.open(folder).ids() == ["0", "1", "2", "3", "4"]


@pytest.mark.usefixtures("impatient")
def test_threads_of_a_forked_child_that_write_first_lose_nothing() -> None:
    index = BM25Index.from_texts(["red"])
    writers, times = 8, 5

    def write() -> tuple[int, int]:
        start = threading.Barrier(writers)
        given: list[str] = []

        def add() -> None:
            start.wait()
            for _ in range(times):
                given.extend(index.add(["red"]))

        together([add] * writers)
        return len(index), len(set(given))

    for _ in range(5):
        assert in_a_fork(write) == (1 + writers * times, writers * times)
    assert len(index) == 1


# -- writes within writes ----------------------------------------------------------------------

REENTRANT: dict[str, Callable[[BM25Index], object]] = {
    "add": lambda index: index.add(["inner"]),
    "delete": lambda index: index.delete(["0"]),
    "update_metadata": lambda index: index.update_metadata(["0"], [{"n": 1}]),
    "commit": lambda index: index.commit(),
    "rollback": lambda index: index.rollback(),
    "close": lambda index: index.close(),
    "save": lambda index: index.save("never-made"),
}


@pytest.mark.parametrize("write", REENTRANT.values(), ids=REENTRANT)
@pytest.mark.parametrize("where", ["texts", "ids", "metadata", "payloads"])
def test_what_add_takes_its_input_from_cannot_change_the_index(
    folder: Path, where: str, write: Callable[[BM25Index], object]
) -> None:
    index = BM25Index.open(folder, mode="w")
    before = pickle.dumps(index)
    values = {"texts": "new", "ids": "x", "metadata": {}, "payloads": b""}

    def interfering() -> Iterator[Any]:
        write(index)
        yield values[where]

    given = {name: [value] for name, value in values.items()} | {where: interfering()}
    with pytest.raises(RuntimeError, match="within add"):
        index.add(**given)
    assert pickle.dumps(index) == before
    assert not Path("never-made").exists()
    assert index.add(["new"]) == ["3"]
    index.commit()
    index.close()
    assert BM25Index.open(folder).ids() == ["0", "1", "2", "3"]


def test_what_add_takes_its_texts_from_may_read_the_index() -> None:
    index = BM25Index.from_texts(["red boat", "blue boat"])
    assert index.add(hit.text or "" for hit in index.search("boat")) == ["2", "3"]
    assert index.add(str(len(index)) * 2 for _ in range(2)) == ["4", "5"]
    assert [document.text for document in index.get(["4", "5"])] == ["44", "44"]


def test_deleting_what_a_generator_finds_in_the_index_works() -> None:
    index = BM25Index.from_texts(["red boat", "blue boat", "sea"])
    assert len(index.delete(hit.id for hit in index.search("boat"))) == 2
    assert index.ids() == ["2"]


def test_another_thread_waits_where_the_same_thread_is_refused() -> None:
    index, texts = BM25Index(), SlowTexts()
    first = threading.Thread(target=index.add, args=(texts,))
    first.start()
    assert texts.begun.wait(LIMIT)
    second = threading.Thread(target=index.add, args=(["from elsewhere"],))
    second.start()
    second.join(0.05)
    assert second.is_alive()
    assert len(index) == 0
    texts.allowed.set()
    first.join(LIMIT)
    second.join(LIMIT)
    assert [document.text for document in index.get(index.ids())] == [
        "first", "last", "from elsewhere",
    ]  # fmt: skip


# -- closing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "delete", "update_metadata", "commit", "rollback"])
def test_a_write_that_waited_for_a_closing_is_refused(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = BM25Index.open(folder, mode="w")
    caught: list[BaseException] = []

    def write() -> None:
        try:
            REENTRANT[name](index)
        except BaseException as error:
            caught.append(error)

    late = threading.Thread(target=write)
    close = FolderWriter.close

    def slowly(store: FolderWriter) -> None:
        late.start()
        late.join(0.05)
        assert late.is_alive()
        close(store)

    monkeypatch.setattr(FolderWriter, "close", slowly)
    index.close()
    late.join(LIMIT)
    assert [type(error) for error in caught] == [ReadOnlyError]
    assert index.ids() == BM25Index.open(folder).ids() == ["0", "1", "2"]


def test_a_block_left_by_an_exception_takes_memory_back_too(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")

    def fail() -> None:
        with writer:
            writer.delete(["0"])
            writer.update_metadata(["1"], [{"n": 1}])
            writer.add(["new"])
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fail()
    assert writer.ids() == ["0", "1", "2"]
    assert writer.get(["1"])[0].metadata == {}
    assert writer.search("new") == []
    with pytest.raises(ReadOnlyError):
        writer.add(["new"])


def test_a_commit_that_fails_at_the_end_of_a_block_gives_up_the_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        message = "no space left on device"
        raise OSError(28, message)

    def write() -> None:
        with BM25Index.open(folder, mode="w") as writer:
            writer.add(["new"])

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space left"):
            write()
    write()
    assert BM25Index.open(folder).ids() == ["0", "1", "2", "3"]
