"""Long loops let other threads run in between, and change nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bm25rag import turns
from bm25rag.turns import blocks, give_way, in_turns


@pytest.fixture
def company() -> Iterator[threading.Event]:
    """Have another thread, until the event is set."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield over
    over.set()
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


def test_who_is_alone_does_not_pause(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns.threading, "active_count", lambda: 1)
    items = [1, 2, 3]
    assert in_turns(items) is items
    give_way()
    assert pauses == []


def test_the_helpers_of_a_build_are_no_company(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = [threading.Thread(name="MainThread"), threading.Thread(name=f"{turns.HELPER}_0")]
    monkeypatch.setattr(turns.threading, "active_count", lambda: len(there))
    monkeypatch.setattr(turns.threading, "enumerate", lambda: there)
    items = [1, 2, 3]
    assert in_turns(items) is items
    give_way()
    assert pauses == []
    there.append(threading.Thread())
    give_way()
    assert len(pauses) == 1
