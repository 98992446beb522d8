"""The example of a service answers right under load, whatever happens to its writer."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index
from support.environment import INTERPRETED, ROOT
from support.waiting import wait_until

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

AT_ONCE = 200
PATIENCE = 90  # seconds until a process counts as stuck
# Commits step after step, each in place of the one before, and says so.
WRITER = """
import sys
from bm25rag import BM25Index

while True:
    with BM25Index.open(sys.argv[1], mode="w", timeout=60) as writer:
        step = max(document.metadata["step"] for document in writer.get(writer.ids())) + 1
        writer.add([f"red boat of step {step}"] * 5, [f"{step}-{n}" for n in range(5)],
                   [{"step": step}] * 5)
        writer.delete([f"{step - 1}-{n}" for n in range(5)])
    print(step, flush=True)
"""


@contextmanager
def service(index: Path) -> Iterator[tuple[str, int]]:
    """Run the example with two workers; give its address, and the process that has started them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--app-dir", "examples"]
    command += ["--workers", "2", "--port", str(port), "--log-level", "warning"]
    environment = os.environ | {"BM25RAG_INDEX": str(index)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as running:
        try:
            address = f"http://127.0.0.1:{port}"

            def answers() -> bool:
                assert running.poll() is None
                with suppress(OSError):
                    ask(f"{address}/health")
                    return True
                return False

            wait_until(answers, PATIENCE)
            yield address, running.pid
        finally:
            os.killpg(running.pid, signal.SIGTERM)
            running.wait(PATIENCE)


@contextmanager
def writing(index: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the writer, and kill it."""
    command = [sys.executable, "-c", WRITER, str(index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)


def ask_again(url: str) -> Any:
    """Ask as a proxy before the service does: once more if the worker has gone meanwhile."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return ask(url)
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException):
            assert time.monotonic() < until
            time.sleep(0.05)


def workers_of(supervisor: int) -> set[int]:
    """Return the processes of workers."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            command = (path / "cmdline").read_bytes()
            if parent == supervisor and b"--multiprocessing-fork" in command:
                found.add(int(path.name))
    return found


def save_step(folder: Path, step: int) -> None:
    """Save an index of one step, with other settings than the first has."""
    texts, ids = [f"red boat of step {step}"] * 5, [f"{step}-{number}" for number in range(5)]
    index = BM25Index(Analyzer(language=None), k1=0.9)
    index.add([*texts, "blue sea"], [*ids, "sea"], [{"step": step}] * 6)
    index.save(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
@pytest.mark.skipif(INTERPRETED, reason="it takes minutes with interpreted kernels")
def test_200_requests_at_once_are_answered_right_whatever_is_killed_or_replaced_meanwhile(
    tmp_path: Path,
) -> None:
    index = tmp_path / "it"
    texts, ids = ["red boat of step 0"] * 5, [f"0-{number}" for number in range(5)]
    BM25Index.from_texts([*texts, "blue sea"], [*ids, "sea"], [{"step": 0}] * 6).save(index)
    of_commit: dict[str, list[str]] = {}
    steps = set()

    def check(address: str, committed: int, ask: Callable[[str], Any] = ask) -> None:
        for query in ("red+boat", "sea"):
            found = ask(f"{address}/search?q={query}&k=50")
            got = [hit["id"] for hit in found["hits"]]
            if query == "sea":
                assert got == ["sea"]
                continue
            step = int(got[0].partition("-")[0])
            assert got == [f"{step}-{number}" for number in range(5)]  # all of one commit
            assert {hit["text"] for hit in found["hits"]} == {f"red boat of step {step}"}
            assert step >= committed  # what was committed before the question counts
            assert of_commit.setdefault(found["commit"], got) == got
            steps.add(step)

    with service(index) as (address, supervisor), ThreadPoolExecutor(AT_ONCE) as clients:
        for _ in range(4):
            with writing(index) as writer:
                assert writer.stdout is not None
                committed = int(writer.stdout.readline())
                asked = [clients.submit(check, address, committed) for _ in range(AT_ONCE)]
                for one in asked:
                    one.result()
            BM25Index.verify(index)  # it was killed within a commit, as likely as not
            for one in [clients.submit(check, address, committed) for _ in range(AT_ONCE)]:
                one.result()
        with pytest.raises(urllib.error.HTTPError, match="422") as refused:
            ask(f"{address}/search?q=boat&k=-1")
        refused.value.close()
        # Another index in place of this one, of other settings, while all are asking.
        for step in (10_000, 20_000):
            asked = [clients.submit(check, address, committed) for _ in range(AT_ONCE)]
            save_step(tmp_path / f"{step}", step)
            if step == 10_000:
                BM25Index.open(tmp_path / f"{step}").save(index)
            else:
                BM25Index.restore(tmp_path / f"{step}", index, overwrite=True)
            committed = step
            asked += [clients.submit(check, address, committed) for _ in range(AT_ONCE)]
            for one in asked:
                one.result()
        if sys.platform == "linux":  # a worker is killed and replaced, while a writer works
            workers = workers_of(supervisor)
            assert len(workers) == 2
            with writing(index) as writer:
                assert writer.stdout is not None
                committed = int(writer.stdout.readline())
                asked = [
                    clients.submit(check, address, committed, ask_again) for _ in range(AT_ONCE)
                ]
                os.kill(min(workers), signal.SIGKILL)
                asked += [
                    clients.submit(check, address, committed, ask_again) for _ in range(AT_ONCE)
                ]
                for one in asked:
                    one.result()
                wait_until(lambda: len(workers_of(supervisor) - {min(workers)}) == 2, PATIENCE)
                for one in [clients.submit(check, address, committed) for _ in range(AT_ONCE)]:
                    one.result()
    with service(index) as (address, _):  # restarted itself
        check(address, committed)
    assert len(steps) > 4
