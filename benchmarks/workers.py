"""A process for each engine: they take turns, and share neither memory nor imports."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import random
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from statistics import median
from types import TracebackType
from typing import Any, NamedTuple, Self

from benchmarks.corpora import WORK


class Figure(NamedTuple):
    """What was measured: the median, and all rounds."""

    median: float
    rounds: list[float]


class NotInstalledError(Exception):
    """The package of a peer is missing."""


class Worker:
    """An object in a process of its own; its methods are called over a pipe.

    Parameters
    ----------
    kind
        Module and class, ``"benchmarks.engines.ours:Ours"``.
    *arguments
        What the class is made with.

    Raises
    ------
    NotInstalledError
        If making the object fails with an ImportError.
    """

    def __init__(self, kind: str, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, kind, arguments), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self.answer()
        except BaseException:
            self.close()
            raise

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method and wait for what it returns."""
        self.ask(method, *arguments)
        return self.answer()

    def ask(self, method: str, *arguments: Any) -> None:
        """Call a method, without waiting."""
        self._pipe.send((method, arguments))

    def answer(self) -> Any:
        """Wait for what the last call returns."""
        kind, value = self._pipe.recv()
        if kind == "missing":
            raise NotInstalledError(value)
        if kind == "error":
            raise RuntimeError(value)
        return value

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(20)
        if self._process.is_alive():
            self._process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _serve(pipe: Connection, kind: str, arguments: Sequence[Any]) -> None:
    """Run in the process: make the object, then do as it is told until the pipe ends."""
    WORK.mkdir(exist_ok=True)
    log = os.open(WORK / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)  # some print their progress
    os.dup2(log, 2)
    module, name = kind.split(":")
    try:
        target = getattr(importlib.import_module(module), name)(*arguments)
        pipe.send(("value", None))
    except ImportError as error:
        pipe.send(("missing", str(error)))
        return
    except Exception:
        pipe.send(("error", traceback.format_exc()))
        return
    while True:
        try:
            method, given = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(("value", getattr(target, method)(*given)))
        except Exception:
            pipe.send(("error", traceback.format_exc()))


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


def pin() -> None:
    """Keep this process on one CPU, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class quiet:  # noqa: N801 - used like a function
    """No garbage collection within the block, as in timeit."""

    def __enter__(self) -> None:
        gc.collect()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.enable()
