"""Long loops let other threads run now and then, and change nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from bm25rag import BM25Index
from bm25rag.common import gil
from bm25rag.common.gil import in_blocks, note_read, release_gil, releasing_gil
from bm25rag.kernels import backend
from support.threads import let_helpers_begin


@pytest.fixture
def others_read() -> None:
    thread = threading.Thread(target=note_read)
    thread.start()
    thread.join()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    noted: list[float] = []
    monkeypatch.setattr(gil.time, "sleep", noted.append)
    return noted


@pytest.mark.usefixtures("others_read")
def test_a_loop_pauses_after_every_turn(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))  # every look takes a second
    monkeypatch.setattr(gil.time, "perf_counter", lambda: next(clock))
    assert list(releasing_gil("abc")) == ["a", "b", "c"]
    release_gil()
    assert len(pauses) == 4
    assert all(pause > 0 for pause in pauses)


@pytest.mark.usefixtures("others_read")
def test_blocks_hold_everything_in_order_and_pause_in_between(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(gil.time, "perf_counter", lambda: next(clock))
    assert list(in_blocks("abcde", 2)) == ["ab", "cd", "e"]
    assert len(pauses) == 3


@pytest.mark.usefixtures("others_read")
def test_a_short_loop_does_not_pause(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gil.time, "perf_counter", lambda: 0.0)
    assert list(releasing_gil(iter(range(10)))) == list(range(10))
    assert pauses == []


def test_nobody_pauses_for_threads_that_do_not_read(pauses: list[float]) -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    note_read()  # this thread itself
    items = [1, 2, 3]
    assert releasing_gil(items) is items
    release_gil()
    assert pauses == []
    over.set()
    other.join()


@pytest.mark.usefixtures("others_read")
def test_nobody_pauses_long_after_a_read(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gil.others_read()
    now = time.perf_counter()
    monkeypatch.setattr(gil.time, "perf_counter", lambda: now + 60)
    assert not gil.others_read()
    release_gil()
    assert pauses == []


@pytest.mark.parametrize(
    "read",
    [
        lambda index: index.search("two"),
        lambda index: index.search_batch(["two"]),
        lambda index: index.get(["0"]),
        lambda index: index.explain("two", "0"),
        lambda index: index.count({"a": 1}),
        lambda index: index.scores("two"),
        lambda index: "0" in index,
    ],
)
def test_who_reads_is_company_for_other_threads(read: Callable[[BM25Index], object]) -> None:
    index = BM25Index.from_texts(["one two", "two three"])
    note_read()
    thread = threading.Thread(target=read, args=[index])
    thread.start()
    thread.join()
    assert gil.others_read()
    read(index)
    assert not gil.others_read()


@pytest.mark.skipif("compiled" not in backend.available(), reason="nothing was compiled")
def test_a_builds_helpers_do_not_pause_for_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.common.threads._WORTH_A_THREAD", 0)
    let_helpers_begin(monkeypatch)
    seen: list[tuple[bool, bool]] = []
    caller = threading.get_ident()

    def note() -> None:
        seen.append((threading.get_ident() != caller, gil.others_read()))

    monkeypatch.setattr("bm25rag.analysis.text_scanner.release_gil", note)
    with backend.use("compiled"):
        note_read()
        BM25Index.from_texts(["one two", "two three"] * 50, threads=2)
    assert (True, False) in seen
    assert not any(others_read for _, others_read in seen)
