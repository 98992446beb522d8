"""Objects in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bm25rag.evaluation.processes import FailedError, MissingError, Process

MODULE = """
import os
import sys
import time

class Thing:
    def __init__(self, number):
        print("made")
        self.number = number

    def add(self, other):
        print("adding", flush=True)
        self.number += other
        return self.number

    def fail(self):
        raise ValueError("no luck")

    def need(self):
        import a_package_that_nobody_has

    def leave(self):
        print("good bye", file=sys.stderr)
        sys.exit(3)

    def die(self):
        os.abort()

    def hang(self):
        time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "things.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def test_calls_and_answers_are_not_disturbed_by_what_is_printed(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with Process("things:Thing", 40, log=log) as process:
        assert process.call("add", 1) == 41
        process.ask("add", 1)
        assert process.answer() == 42
    assert log.read_text("utf-8").split() == ["made", "adding", "adding"]


def test_an_exception_is_told_and_the_object_lives_on() -> None:
    with Process("things:Thing", 1) as process:
        with pytest.raises(FailedError, match="ValueError: no luck") as caught:
            process.call("fail")
        assert caught.value.line == "failed: ValueError: no luck"
        with pytest.raises(FailedError, match="a_package_that_nobody_has"):
            process.call("need")
        assert process.call("add", 1) == 2


def test_what_is_missing_from_the_start_is_told_apart() -> None:
    with pytest.raises(MissingError, match="not installed: No module named 'nothing'"):
        Process("nothing:Here")
    with pytest.raises(FailedError, match="TypeError"):
        Process("things:Thing")


def test_an_end_is_told_with_its_reason(tmp_path: Path) -> None:
    with (
        Process("things:Thing", 1) as process,
        pytest.raises(FailedError, match=r"^ended with exit code 3: good bye$"),
    ):
        process.call("leave")
    with (
        Process("things:Thing", 1, log=tmp_path / "log.txt") as process,
        pytest.raises(FailedError, match=r"^ended with exit code 3: see .*log.txt$"),
    ):
        process.call("leave")
    with Process("things:Thing", 1) as process:
        with pytest.raises(FailedError, match="ended"):
            process.call("leave")
        with pytest.raises(FailedError, match="ended with exit code 3"):
            process.call("add", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_signal_is_told() -> None:
    with (
        Process("things:Thing", 1) as process,
        pytest.raises(FailedError, match=r"^ended by signal 6$"),
    ):
        process.call("die")


@pytest.mark.slow
def test_what_hangs_is_ended() -> None:
    with (
        pytest.raises(FailedError, match=r"^not done after 2 s$"),
        Process("things:Thing", 1, timeout=2) as process,
    ):
        process.call("hang")
