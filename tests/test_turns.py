"""Long loops let other threads run in between, and change nothing else."""

from __future__ import annotations

import threading
import time

import pytest

from bm25rag import BM25Index, turns
from bm25rag.turns import blocks, give_way, in_turns, searching
from bm25rag.turns import company as company_now


@pytest.fixture
def company() -> None:
    """Let another thread have searched just now."""
    thread = threading.Thread(target=searching)
    thread.start()
    thread.join()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note the pauses, which take no time."""
    noted: list[float] = []
    monkeypatch.setattr(turns.time, "sleep", noted.append)
    return noted


@pytest.mark.usefixtures("company")
def test_a_loop_pauses_after_every_turn(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))  # every look takes a second
    monkeypatch.setattr(turns.time, "perf_counter", lambda: next(clock))
    assert list(in_turns("abc")) == ["a", "b", "c"]
    give_way()
    assert len(pauses) == 4
    assert all(pause > 0 for pause in pauses)


@pytest.mark.usefixtures("company")
def test_blocks_hold_everything_in_order_and_pause_in_between(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(turns.time, "perf_counter", lambda: next(clock))
    assert list(blocks("abcde", 2)) == ["ab", "cd", "e"]
    assert len(pauses) == 3


@pytest.mark.usefixtures("company")
def test_a_short_loop_does_not_pause(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns.time, "perf_counter", lambda: 0.0)
    assert list(in_turns(iter(range(10)))) == list(range(10))
    assert pauses == []


def test_nobody_pauses_for_threads_that_do_not_search(pauses: list[float]) -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    searching()  # this thread itself
    items = [1, 2, 3]
    assert in_turns(items) is items
    give_way()
    assert pauses == []
    over.set()
    other.join()


@pytest.mark.usefixtures("company")
def test_nobody_pauses_long_after_a_search(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert company_now()
    now = time.perf_counter()
    monkeypatch.setattr(turns.time, "perf_counter", lambda: now + 2)
    assert not company_now()
    give_way()
    assert pauses == []


def test_a_search_is_company_for_other_threads() -> None:
    index = BM25Index()
    index.add(["one two", "two three"])
    thread = threading.Thread(target=index.search, args=["two"])
    thread.start()
    thread.join()
    assert company_now()
    index.search("two")
    assert not company_now()
