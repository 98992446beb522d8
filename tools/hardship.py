"""Interrupt and starve writes and searches at random: ``hardship.py KIND --cases N --seconds S``.

Each case is a process of its own, forked from one that has everything imported. It changes or
searches an index, and is interrupted at a random moment (``interrupts``) or has little memory
(``memory``). Whatever happens, the index must be as it was or as it should become, and everything
that is done next must be right to the bit, also while the exception is still held. A process that
dies of a signal, hangs or finds anything wrong is a failure.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from bm25rag import BM25Index

LIMIT = 120.0  # seconds after which a process hangs
# So that a process takes what it needs from the system, not from what others left in its heap.
MALLOC = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "0"}
STACK = 1 << 20  # of a thread: less than what the jobs need
MANY = 1_000  # hits, which need more memory than a heap has left
QUERIES = [f"w{number} w{7 * number} w{number * number % 9000}" for number in range(200)]
WRONG = 3

_random = Random(0)
OLD = [" ".join(f"w{_random.randrange(3_000)}" for _ in range(20)) for _ in range(20_000)]
NEW = [" ".join(f"w{_random.randrange(60_000)}" for _ in range(40)) for _ in range(3_000)]
NEW += [
    " ".join(f"v{number}" for number in range(50_000)),
    "w1 caf\u00e9 \u65e5\u672c\u8a9e " * 2_000,
]
IDS = [f"new{number}" for number in range(len(NEW))]


class Job(NamedTuple):
    """What is done to an index, any number of times, what comes of it, and what it takes."""

    work: Callable[[BM25Index], object]
    after: BM25Index
    seconds: float = 0.0
    memory: int = 0

    def measured(self, folder: Path) -> Job:
        """Return the job with what it takes in a process that is forked from this one."""
        here, there = os.pipe()
        child = os.fork()
        if not child:
            try:
                index = BM25Index.open(folder, mode="w")
                shown(index)
                before, started = memory("VmSize"), time.perf_counter()
                self.work(index)
                seconds = time.perf_counter() - started
                os.write(there, f"{seconds} {memory('VmPeak') - before}".encode())
            finally:
                os._exit(0)
        os.close(there)
        said = os.read(here, 100).split()
        os.close(here)
        os.waitpid(child, 0)
        return self._replace(seconds=float(said[0]), memory=int(said[1]))


def memory(name: str) -> int:
    """Return the address space of this process in bytes: as it is, or was at most."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) << 10


def jobs() -> dict[str, Job]:
    """Return what may be interrupted, by name."""
    old = BM25Index.from_texts(OLD)
    grown = BM25Index.from_texts([*OLD, *NEW], [*map(str, range(len(OLD))), *IDS])
    less = BM25Index.from_texts(OLD[::2], [str(number) for number in range(0, len(OLD), 2)])
    odd = [str(number) for number in range(1, len(OLD), 2)]

    def compact(index: BM25Index) -> None:
        index.delete(odd)
        index.compact()

    def commit(index: BM25Index) -> None:
        index.add(NEW, IDS, threads=1)
        index.commit()

    return {
        "add": Job(lambda index: index.add(NEW, IDS, threads=1), grown),
        "add, threads": Job(lambda index: index.add(NEW, IDS, threads=3), grown),
        "search": Job(lambda index: index.search_batch(QUERIES, MANY, threads=1), old),
        "search, threads": Job(lambda index: index.search_batch(QUERIES, MANY, threads=3), old),
        "delete": Job(lambda index: index.delete(odd), less),
        "compact": Job(compact, less),
        "commit": Job(commit, grown),
    }


def shown(index: BM25Index) -> list[object]:
    """Return what an index says, to the bit."""
    found = index.search_batch(QUERIES[:50], k=5)
    return [index.ids(), index.scores(QUERIES[1]).tobytes(), found.ids(), found.scores.tobytes()]


def check(index: BM25Index, before: list[object], job: Job, folder: Path) -> None:
    """Raise unless everything is right after an exception, which the caller still holds."""
    after = shown(job.after)
    if shown(index) not in (before, after):
        raise AssertionError("the index is neither as it was nor as it should become")
    index.delete(IDS)
    job.work(index)
    if shown(index) != after:
        raise AssertionError("what is done next is wrong")
    index.commit()
    index.close()
    BM25Index.verify(folder)
    if shown(BM25Index.open(folder)) != after:
        raise AssertionError("what was written is wrong")


def suffer(kind: str, job: Job, folder: Path, spare: int, pipe: int) -> str:
    """Do a job in this process, until it ends or is made to; return what came of it."""
    index = BM25Index.open(folder, mode="w")
    before = shown(index)
    held: BaseException | None = None
    limits = resource.getrlimit(resource.RLIMIT_AS)
    try:
        try:
            if kind == "memory":
                resource.setrlimit(resource.RLIMIT_AS, (memory("VmSize") + spare, limits[1]))
            else:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            os.write(pipe, b".")
            job.work(index)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except (KeyboardInterrupt, MemoryError) as error:
        held = error
    resource.setrlimit(resource.RLIMIT_AS, limits)
    end = time.monotonic() + 60
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)  # what an interrupt at a bad moment did not wait for
    if threading.active_count() > 1:
        raise AssertionError("threads are left")
    check(index, before, job, folder)
    return "done" if held is None else type(held).__name__.strip("_")


def run_case(kind: str, job: Job, folder: Path, random: Random) -> str:
    """Run a job in a process of its own; return what came of it."""
    spare, delay = int(random.random() * 1.3 * job.memory), random.random() * job.seconds
    report = folder / "report"
    here, there = os.pipe()
    child = os.fork()
    if not child:
        code = WRONG
        try:
            report.write_text(suffer(kind, job, folder / "index", spare, there))
            code = 0
        except BaseException:
            report.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    os.close(there)
    os.read(here, 1)
    os.close(here)
    end = time.monotonic() + LIMIT
    if kind == "interrupts":
        time.sleep(delay)
        os.kill(child, signal.SIGINT)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(ended[1])
    if code < 0:
        return f"died of {signal.Signals(-code).name}"
    return report.read_text() if code == 0 else f"wrong\n{report.read_text()}"


def main() -> None:
    """Run the cases, and print how many had which outcome."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=["interrupts", "memory"])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not os.environ.keys() >= MALLOC.keys():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | MALLOC)
    threading.stack_size(STACK)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a child that has not begun
    os.fsync = lambda fd: None  # nobody cuts the power here
    random, outcomes = Random(given.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        kept, folder = Path(name) / "kept", Path(name) / "case"
        BM25Index.from_texts(OLD).save(kept)
        every = {}
        for one, job in jobs().items():
            shutil.copytree(kept, folder)
            every[one] = job.measured(folder)
            shutil.rmtree(folder)
        end = time.monotonic() + given.seconds
        for case in range(given.cases):
            if time.monotonic() > end:
                break
            which = random.choice(list(every))
            shutil.copytree(kept, folder / "index")
            outcome = run_case(given.kind, every[which], folder, random)
            shutil.rmtree(folder)
            outcomes[f"{which}: {outcome.partition(chr(10))[0]}"] += 1
            if outcome not in ("done", "KeyboardInterrupt", "MemoryError", "ArrayMemoryError"):
                print(f"case {case} of seed {given.seed}, {which}: {outcome}", flush=True)
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:6} {outcome}")
    fine = ("done", "KeyboardInterrupt", "MemoryError", "ArrayMemoryError")
    if any(not outcome.endswith(fine) for outcome in outcomes):
        sys.exit(f"of {outcomes.total()} cases, some crashed, hung or were wrong")


if __name__ == "__main__":
    main()
