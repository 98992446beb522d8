"""Objects in processes of their own: what is measured shares neither memory nor imports.

Both sides write pickles: requests to the process's standard input, answers to its standard output;
what else it prints goes to standard error.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self


class MissingError(Exception):
    """What an object needs is not installed, or not given; the message says what."""


class FailedError(Exception):
    """A call raised (the message is its traceback), or the process ended; the message says how."""

    @property
    def line(self) -> str:
        """The message, or the last line of the traceback, for a table."""
        *before, last = str(self).strip().splitlines()
        return f"failed: {last[:300]}" if before else last[:300]


class Process:
    """An object in a process of its own; its methods are called over a pipe.

    ``kind`` is its module and class, ``"bm25rag.evaluation.worker:Measurement"``, which is called
    with the ``arguments``. What the process prints is added to the file ``log``; without one it is
    kept for messages. ``environment`` has variables beside those of this process, ``timeout`` the
    seconds for making the object and for each call. If making it fails with an ImportError, or a
    ``CannotRunError``, that is a ``MissingError``; any other error is a ``FailedError``.
    """

    def __init__(
        self,
        kind: str,
        *arguments: Any,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._timeout, self._late = timeout, False
        self._printed: IO[bytes] = (
            tempfile.TemporaryFile() if log is None else log.open("ab")  # noqa: SIM115
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            # The package is found, wherever this process found it.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        )
        try:
            self.ask(kind, *arguments)
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
        assert self._process.stdin is not None
        try:
            pickle.dump((method, arguments), self._process.stdin)
            self._process.stdin.flush()
        except OSError as cause:
            raise FailedError(self._end()) from cause

    def answer(self) -> Any:
        """Wait for what the last call returns."""
        assert self._process.stdout is not None
        timer = None
        if self._timeout is not None:
            timer = threading.Timer(self._timeout, self._kill)
            timer.start()
        try:
            kind, value = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError) as cause:
            raise FailedError(self._end()) from cause
        finally:
            if timer is not None:
                timer.cancel()
        if kind == "missing":
            raise MissingError(value)
        if kind == "error":
            raise FailedError(value)
        return value

    def _kill(self) -> None:
        self._late = True
        self._process.kill()

    def _end(self) -> str:
        """Say how the process ended."""
        code = self._process.wait()
        if self._late:
            return f"not done after {self._timeout:g} s"
        if code < 0:
            return f"ended by signal {-code}"
        return f"ended with exit code {code}: {self._last_line()}"

    def _last_line(self) -> str:
        if not self._printed.readable():
            return f"see {self._printed.name}"
        self._printed.seek(0)
        lines = self._printed.read().decode("utf-8", "replace").split("\n")
        return next((line[:300] for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # it has ended, with a request that it never read
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve() -> None:
    """Run in the process: make the object, then do as it is told until the requests end."""
    from bm25rag.evaluation.systems.base import CannotRunError

    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # some print their progress
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    target: Any = None
    while True:
        try:
            method, given = pickle.load(requests)
        except EOFError:
            return
        try:
            if target is None:
                module, _, name = method.partition(":")
                target, value = getattr(importlib.import_module(module), name)(*given), None
            else:
                value = getattr(target, method)(*given)
            answer = ("value", value)
        except (ImportError, CannotRunError) as error:
            # Only of what is missing from the start is it said that it is missing.
            made = isinstance(error, CannotRunError) or target is None
            why = f"not installed: {error}" if isinstance(error, ImportError) else str(error)
            answer = ("missing", why) if made else ("error", traceback.format_exc())
        except Exception:
            answer = ("error", traceback.format_exc())
        answers.write(pickle.dumps(answer))
        answers.flush()
