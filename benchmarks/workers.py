"""Engines that take turns, each in a process of its own (``bm25rag.evaluation.processes``)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from benchmarks.corpora import WORK
from bm25rag.evaluation.processes import MissingError, Process


class Figure(NamedTuple):
    """What was measured: the median, and all rounds."""

    median: float
    rounds: list[float]


class Worker(Process):
    """An object in a process of its own; what it prints is added to the log."""

    def __init__(self, kind: str, *arguments: Any) -> None:
        WORK.mkdir(exist_ok=True)
        super().__init__(kind, *arguments, log=WORK / "log.txt")


def start(kind: str, *arguments: Any) -> Worker | str:
    """Return a worker, or why there is none."""
    try:
        return Worker(kind, *arguments)
    except MissingError as error:
        return str(error)


def race(
    workers: Mapping[str, Worker], rounds: int, method: str, *arguments: Any
) -> dict[str, Figure]:
    """Let workers take turns, in another order each round; a last argument says which round.

    What they return is seconds, or whatever is measured. There is a warm-up, numbered -1.
    """
    measured: dict[str, list[float]] = {name: [] for name in workers}
    for turn in range(-1, rounds):
        names = list(workers)
        random.Random(turn).shuffle(names)
        for name in names:
            value = workers[name].call(method, *arguments, turn)
            if turn >= 0:
                measured[name].append(value)
    return {name: Figure(median(own), own) for name, own in measured.items()}


# --- programs of a few lines -------------------------------------------------------------

# Without what it imports where that is installed, and does not need: its fastest start.
BM25S_ALONE = """
import sys
sys.modules.update(dict.fromkeys(("jax", "numba")))
import bm25s, Stemmer
stemmer = Stemmer.Stemmer("english")
"""


def run_code(code: str) -> str:
    """Run code in a new process, with byte code cached as in any installation."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(WORK / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return run.stdout
