"""Every test of the command line runs in a folder of its own; some start a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.commands import save_corpus


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def saved() -> Path:
    return save_corpus()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start_command(*arguments: object) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "bm25rag", *map(str, arguments)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe))
        return started[-1]

    yield start_command
    for process in started:
        process.kill()
        process.communicate()
