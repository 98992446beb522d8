"""Fixtures that more than one test file needs."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import none

from bm25rag.kernels import backend as backends
from support.environment import INTERPRETED

# Started by nohup or a shell's &, it ignores Ctrl-C, and so would the processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Times on shared machines vary tenfold, so neither deadlines nor slow generation count as failures.
EVERY = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# A check is the same each time; new examples are looked for at length.
settings.register_profile("bm25rag", EVERY, derandomize=True, max_examples=15)
# `make test` and the modes that repeat the tests (interpreted, NumPy, lowest versions) ask for it.
settings.register_profile("quick", settings.get_profile("bm25rag"), max_examples=5)
# `make soak` and `make test-long` ask for these.
settings.register_profile("soak", EVERY, max_examples=300)
settings.register_profile("long", EVERY, max_examples=2000)
settings.load_profile("bm25rag")


def pytest_configure() -> None:
    """Say at once what would fail thousands of tests: a machine without Python's headers."""
    unasked = backends.chosen() == "numpy" != os.environ.get("BM25RAG_KERNELS")
    if unasked and sys.platform != "emscripten":  # which has nothing else
        raise pytest.UsageError(f"nothing is compiled: {backends.why_not_compiled()}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a mode does not change: a test that forces a backend ignores the default.

    An id that holds an address would be another one in each worker, which then run nothing.
    """
    given(none())(lambda _: None)()  # or Hypothesis looks in vain for who refers to its own
    gc.freeze()  # what is there stays: gc.collect() in a test took a quarter of a second
    for item in items:
        assert " at 0x" not in item.nodeid, f"give the parameters of {item.nodeid} other ids"
        if _backend_of(item) == "numpy":
            if item.path.parent.name not in {"kernels", "scoring"}:
                item.add_marker("twin")
            if item.get_closest_marker("slow"):
                item.add_marker("long")
    if os.environ.get("BM25RAG_KERNELS") == "numpy":
        forced = [item for item in items if "backend" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=forced)
        items[:] = [item for item in items if item not in set(forced)]


def _backend_of(item: pytest.Item) -> object:
    """Return the one of several backends that the fixture ``backend`` forces for a test."""
    parameters = getattr(item, "callspec", None)
    several = parameters and len(backends.available()) > 1
    return parameters.params.get("backend") if several else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure coverage where it is cheap: tracing takes three times as long as the test.

    The lines that slow tests, further cases and the many examples of properties reach are reached
    by others, too; but for those of the kernels, which are measured interpreted. pytest-cov's own
    ``no_cover`` stops one of the two measurements that it starts in a worker of pytest-xdist.
    """
    if _is_traced(item):
        return (yield)
    tracers = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracers[0])
        threading.settrace(tracers[1])


def _is_traced(item: pytest.Item) -> bool:
    marks = {marker.name for marker in item.iter_markers()}
    if "untraced" in marks:
        return False
    if INTERPRETED:  # few tests reach a line of the kernels that these do not
        return item.path.name == "test_small_constants.py" or (
            item.path.parent.name in {"analysis", "concurrency", "index", "kernels", "storage"}
            or (item.path.parent.name == "search" and "hypothesis" not in marks)
        )
    if not marks.isdisjoint({"slow", "further", "hypothesis"}):
        return False
    # Beside the twin in NumPy, a test reaches the same lines of Python on each backend.
    return _backend_of(item) != "compiled"


# Module-scoped, since Hypothesis rejects function-scoped fixtures that many examples share.
@pytest.fixture(scope="module", params=backends.available()[: 1 if INTERPRETED else None])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with backends.use(request.param):
        yield request.param


@pytest.fixture(scope="session", autouse=True)
def _without_flushes() -> Iterator[None]:
    """Write thousands of small indexes without waiting for the disk: nobody cuts the power here.

    Tests of crashes put a disk of their own in its place, which records what is flushed.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few documents make a part of a build, and a few terms a step of its merge."""
    monkeypatch.setattr("bm25rag.additions.CHUNK", 60)
    monkeypatch.setattr("bm25rag.building.gathering.part_room", lambda *_: 1)
    monkeypatch.setattr("bm25rag.building.build.merge_room", lambda _: 3000)


@pytest.fixture
def one_part(small_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a build hold all documents in memory, and merge them there; after ``small_parts``."""
    monkeypatch.setattr("bm25rag.building.gathering.part_room", lambda *_: 1 << 30)
    monkeypatch.setattr("bm25rag.building.gathering.merge_room", lambda _: 1 << 30)
