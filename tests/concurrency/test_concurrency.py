"""Threads, forked and spawned processes, and copies: each sees a consistent index."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bm25rag import BM25Index
from support.reference import Reference
from support.threads import together

pytestmark = pytest.mark.usefixtures("backend")

QUERY = "red boat"
LIMIT = 60  # seconds that a child process may take


def small_index() -> BM25Index:
    texts = [("red " * (number % 4) + "boat sea " * (number % 3)).strip() for number in range(30)]
    return BM25Index.from_texts(texts, metadata=[{"n": number} for number in range(30)])


def answers(index: BM25Index) -> list[tuple[str, str]]:
    """Return ids and exact scores; a batch on two threads must agree with a single search."""
    found = [(hit.id, hit.score.hex()) for hit in index.search(QUERY, k=100)]
    batch = index.search_batch([QUERY] * 20, k=100, threads=2)
    assert all([(h.id, h.score.hex()) for h in hits] == found for hits in batch.hits())
    return found


def expected_scores(sizes: range) -> dict[int, str]:
    """Return the score of a one-word document in a corpus of such documents, by corpus size."""
    result = {}
    for size in sizes:
        reference = Reference()
        reference.add([["red"]] * size)
        result[size] = reference.scores(["red"])[0].hex()
    return result


@pytest.mark.untraced
def test_readers_see_whole_states_while_one_thread_writes() -> None:
    """All documents are alike, so the scores of an answer tell which state it came from."""
    index = BM25Index.from_texts([["red"]] * 10)
    expected = expected_scores(range(10, 32))
    done, started = threading.Event(), threading.Barrier(4)
    seen: set[int] = set()

    def write() -> None:
        started.wait(60)
        try:
            for _ in range(12):
                written = [index.add([["red"]] * 2)[0] for _ in range(10)]
                assert len(index.update_metadata(written, [{"x": 1}] * 10)) == 10
                index.delete(index.ids()[10:])
        finally:
            done.set()

    def read() -> None:
        started.wait(60)
        while not done.is_set():
            hits = index.search(["red"], k=100)
            assert {hit.score.hex() for hit in hits} == {expected[len(hits)]}
            seen.add(len(hits))
            batch = index.search_batch([["red"]] * 8, k=100, threads=2)
            sizes = set(batch.counts.tolist())
            assert len(sizes) == 1
            assert {s.hex() for s in batch.scores[:, : sizes.pop()].ravel().tolist()} == {
                expected[int(batch.counts[0])]
            }
            assert len({len(row) for row in batch.ids()}) == 1
            assert len(index.search(["red"], k=100, filter={"x": {"$exists": False}})) >= 10

    together([write, read, read, read])
    assert len(index) == 10
    assert seen


def test_threads_that_read_everything_else_while_one_writes() -> None:
    index = small_index()
    done = threading.Event()

    def write() -> None:
        try:
            for number in range(60):
                index.add([f"red boat {number}"], ids=[f"new{number % 7}"], on_duplicate="replace")
                index.delete([f"new{(number + 3) % 7}"])
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            assert len(index.get(index.ids()[:30])) >= 23
            assert index.explain(QUERY, "1").id == "1"
            assert len(index.tune(k1=0.5).search(QUERY, k=1)) == 1
            matrix = index.to_scipy()
            assert matrix.nnz
            assert index.stats()["documents"] >= 30
            assert index.count({"n": {"$lt": 5}}) == 5
            assert len(index.scores(QUERY)) >= 30

    together([write, read, read])


def test_many_writers_do_not_lose_each_others_documents() -> None:
    index = BM25Index()
    given: list[str] = []

    def write() -> None:
        for _ in range(20):
            given.extend(index.add(["red"]))

    together([write] * 4)
    assert len(set(given)) == len(given) == len(index) == 80
    assert sorted(index.ids(), key=int) == [str(number) for number in range(80)]


def test_many_threads_search_at_once_and_agree() -> None:
    index = small_index()
    expected = answers(index)

    def read() -> None:
        for _ in range(10):
            assert answers(index) == expected

    together([read] * 6)


# -- processes ---------------------------------------------------------------------------------


def answer_in_child(
    index: BM25Index, pipe: multiprocessing.connection.Connection, write: bool
) -> None:
    if write:
        index.add(["red boat " * 9])
    pipe.send((answers(index), len(index)))
    pipe.close()


def ask_child(method: str, index: BM25Index, write: bool) -> tuple[list[tuple[str, str]], int]:
    context = multiprocessing.get_context(method)
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=answer_in_child, args=(index, there, write))
    child.start()
    there.close()
    try:
        assert here.poll(LIMIT), "the child process did not answer"
        result = here.recv()
    finally:
        child.join(LIMIT)
        if child.is_alive():
            child.kill()
            child.join()
    assert child.exitcode == 0
    return result


# Python 3.12 and newer warn of any fork in a process with threads, which is the case in question.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("write", [False, True])
def test_an_index_works_in_a_child_process(method: str, write: bool) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    index = small_index()
    before = answers(index)  # batch threads have run here before the fork
    found, size = ask_child(method, index, write)
    assert size == 30 + write
    assert (found == before) is not write
    assert answers(index) == before
    assert len(index) == 30


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_opened_index_works_in_a_child_process(method: str, tmp_path: Path) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    small_index().save(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index")
    before = answers(opened)
    assert ask_child(method, opened, write=False) == (before, 30)
    assert answers(opened) == before


# -- copies ------------------------------------------------------------------------------------


def deep_copied(index: BM25Index) -> BM25Index:
    return copy.deepcopy(index)


def pickled(index: BM25Index) -> BM25Index:
    return pickle.loads(pickle.dumps(index))


@pytest.mark.parametrize("duplicate", [deep_copied, pickled])
def test_a_copy_and_its_original_go_separate_ways(
    duplicate: Callable[[BM25Index], BM25Index],
) -> None:
    index = small_index()
    before, metadata = answers(index), index.get(["1"])[0].metadata
    copied = duplicate(index)
    assert answers(copied) == before
    copied.add(["red boat"])
    copied.delete(["2"])
    copied.update_metadata(["1"], [{"changed": True}])
    assert answers(index) == before
    assert index.get(["1"])[0].metadata == metadata
    assert copied.add(["next"]) == ["31"]
    assert index.add(["next"]) == ["30"]


@pytest.mark.parametrize("duplicate", [deep_copied, pickled])
def test_a_copy_of_an_opened_index_outlives_its_folder(
    duplicate: Callable[[BM25Index], BM25Index], tmp_path: Path
) -> None:
    small_index().save(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index")
    before, documents = answers(opened), opened.get(opened.ids())
    copied = duplicate(opened)
    del opened
    for file in (tmp_path / "index").rglob("*"):
        if file.is_file():
            file.unlink()
    assert answers(copied) == before
    assert copied.get(copied.ids()) == documents


@pytest.mark.parametrize("duplicate", [deep_copied, pickled])
def test_a_copy_of_a_view_is_an_index_of_its_own_with_the_views_parameters(
    duplicate: Callable[[BM25Index], BM25Index],
) -> None:
    index = small_index()
    view = index.tune(variant="bm25+", b=0.2)
    copied = duplicate(view)
    assert (copied.variant, copied.b) == ("bm25+", 0.2)
    assert answers(copied) == answers(view)
    copied.add(["red"])
    assert len(index) == len(view) == 30


def test_a_copy_during_writes_is_a_whole_state() -> None:
    index = BM25Index.from_texts([["red"]] * 10)
    expected = expected_scores(range(10, 51))
    done = threading.Event()

    def write() -> None:
        try:
            for _ in range(40):
                index.add([["red"]])
        finally:
            done.set()

    def duplicate() -> None:
        while not done.is_set():
            hits = copy.deepcopy(index).search(["red"], k=100)
            assert {hit.score.hex() for hit in hits} == {expected[len(hits)]}

    together([write, duplicate])
