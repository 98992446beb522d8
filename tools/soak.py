"""Writers, readers and kills on one folder for some minutes: nothing is lost, memory stays flat.

Documents come and go in batches, a batch in one commit, so that every reader can tell
whether it sees whole commits. A writer says what it is about to do and when it is done;
what has been confirmed must be there from then on, although writers are killed all the time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import shutil
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, cast

from bm25rag import BM25Index
from bm25rag.errors import LockedError

# Documents that the index is kept at, and those of the largest batch.
DOCUMENTS, LARGEST = 20_000, 300
WORDS = [f"word{number}" for number in range(5_000)]
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def texts(batch: str, size: int) -> list[str]:
    """Return the texts of a batch, always the same."""
    random = Random(batch)
    return [
        f"every {batch} " + " ".join(WORDS[int(5_000 * random.random() ** 3)] for _ in range(20))
        for _ in range(size)
    ]


def ids(batch: str, size: int) -> list[str]:
    """Return the ids of a batch."""
    return [f"{batch}-{size}-{number}" for number in range(size)]


def batches(index: BM25Index) -> dict[str, int]:
    """Return the batches of an index, the oldest first, with their sizes; each must be whole."""
    found: Counter[tuple[str, int]] = Counter()
    for id in index.ids():
        name, of, _ = id.split("-")
        found[name, int(of)] += 1
    for (batch, size), count in found.items():
        if count != size:
            raise AssertionError(f"{count} of {size} documents of batch {batch}")
    return dict(found.keys())


def memory() -> float:
    """Return the megabytes that this process holds alone; 0 where that is not known."""
    path = Path("/proc/self/statm")
    if not path.exists():
        return 0.0
    _, resident, shared, *_ = map(int, path.read_text().split())
    return (resident - shared) * _PAGE / 1e6


# -- processes ---------------------------------------------------------------------------------


def write(folder: Path, name: str, pipe: Connection) -> None:
    """Add, delete and change batches until killed."""
    random, made = Random(name), 0
    with ThreadPoolExecutor(1) as executor:
        while True:
            try:
                index = BM25Index.open(folder, mode="w")
            except LockedError:
                time.sleep(0.05)
                continue
            beside = executor.submit(index.compact if random.random() < 0.2 else index.maintain)
            for _ in range(random.randrange(5, 100)):
                made += 1
                change(index, f"{name}x{made}", random, pipe)
            beside.result()
            pipe.send(("memory", memory()))
            index.close()


def change(index: BM25Index, batch: str, random: Random, pipe: Connection) -> None:
    """Make one commit."""
    size = random.choice([1, 1, 1, 10, LARGEST])
    there, gone = batches(index), {}
    while there and sum(there.values()) > DOCUMENTS:
        old = next(iter(there))
        gone[old] = there.pop(old)
    index.add(texts(batch, size), ids(batch, size), [{"label": 0}] * size)
    for old, count in gone.items():
        index.delete(ids(old, count))
    if there and random.random() < 0.3:
        changed = random.choice(list(there))
        index.update_metadata(ids(changed, there[changed]), [{"label": batch}] * there[changed])
    if random.random() < 0.1:
        index.rollback()
        return
    pipe.send(("intend", {batch: size}, gone))
    started = time.perf_counter()
    index.commit()
    pipe.send(("done", time.perf_counter() - started))


def read(folder: Path, name: str, pipe: Connection) -> None:
    """Refresh and search, on two threads, until told to end."""
    random, index = Random(name), BM25Index.open(folder)
    figures: dict[str, list[float]] = {"search": [], "refresh": []}
    over = threading.Event()

    def search() -> None:
        while not over.is_set():
            view = index.snapshot()
            words = random.sample(WORDS[:500], 3)
            started = time.perf_counter()
            view.search(" ".join(words))
            figures["search"].append(time.perf_counter() - started)
            check_batch(view, random)
            time.sleep(0.002)

    with ThreadPoolExecutor(2) as executor:
        threads = [executor.submit(search) for _ in range(2)]
        reported = 0.0
        while not any(thread.done() for thread in threads):
            started = time.perf_counter()
            if index.refresh():
                figures["refresh"].append(time.perf_counter() - started)
                batches(index)
            if time.monotonic() - reported > 5:
                reported = time.monotonic()
                pipe.send(("memory", memory()))
            if pipe.poll(0.02):
                break
        over.set()
    for thread in threads:
        thread.result()
    pipe.send(("figures", figures))


def check_batch(view: BM25Index, random: Random) -> None:
    """Find all of a batch by its own word, with one label."""
    names = view.ids()
    if not names:
        return
    batch, size, _ = random.choice(names).split("-")
    hits = view.search(batch, k=LARGEST + 1)
    if sorted(hit.id for hit in hits) != sorted(ids(batch, int(size))):
        raise AssertionError(f"{len(hits)} hits for the batch {batch} of {size}")
    if len({hit.metadata["label"] for hit in hits}) != 1:
        raise AssertionError(f"batch {batch} has several labels")


# -- the one who knows -------------------------------------------------------------------------


@dataclass
class Ledger:
    """What the writers have said: which batches must be there, and which may be."""

    present: dict[str, int] = field(default_factory=dict)
    unsure: dict[str, int] = field(default_factory=dict)
    intended: dict[str, tuple[dict[str, int], dict[str, int]]] = field(default_factory=dict)
    deletions: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def intend(self, writer: str, new: dict[str, int], gone: dict[str, int]) -> None:
        """Note that a commit has begun."""
        self.intended[writer] = new, gone
        self.unsure |= new | gone
        self.deletions.update(gone)
        for batch in gone:
            self.present.pop(batch, None)

    def done(self, writer: str) -> None:
        """Note that it is over."""
        new, gone = self.intended.pop(writer)
        for batch in new | gone:
            self.unsure.pop(batch, None)
        self.present |= new
        self.counts.update(commits=1, added=sum(new.values()), deleted=sum(gone.values()))

    def settle(self, writer: str, found: dict[str, int]) -> None:
        """Note what a killed writer has brought about: its last commit, whole, or nothing."""
        new, gone = self.intended.pop(writer, ({}, {}))
        own = [batch for batch in gone if self.deletions[batch] == 1]
        if len({batch in found for batch in new} | {batch not in found for batch in own}) > 1:
            raise AssertionError(f"half of a commit of {writer}: {new}, {gone}")
        for batch, size in (new | gone).items():
            self.unsure.pop(batch, None)
            if batch in found:
                self.present[batch] = size


class Soak:
    """All processes and their figures.

    Parameters
    ----------
    folder
        The folder that all share.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.ledger, self.random = folder, Ledger(), Random(0)
        BM25Index().save(folder)
        self.checker = BM25Index.open(folder)
        self.context = multiprocessing.get_context("spawn")
        self.processes: dict[Any, tuple[str, Any]] = {}
        self.memory: dict[str, list[float]] = {}
        self.figures: dict[str, list[float]] = {"commit": [], "refresh": [], "search": []}
        self.largest = 0

    def run(self, seconds: float) -> None:
        """Begin, check all the time, end; raise ``AssertionError`` if anything is wrong."""
        self.start(write, "writer")
        self.start(read, "reader 1")
        self.start(read, "reader 2")
        now = time.monotonic()
        end, next_check, next_kill = now + seconds, now, now
        while (now := time.monotonic()) < end:
            self.listen(0.2)
            if now > next_check:
                self.check()
                next_check = now + 2
            if now > next_kill:
                self.kill("mortal")
                self.start(write, f"mortal{self.ledger.counts['kills']}")
                next_kill = now + self.random.uniform(1, 6)
        self.finish()

    def start(self, target: Any, name: str) -> None:
        """Start a process."""
        here, there = self.context.Pipe()
        process = self.context.Process(target=target, args=(self.folder, name, there), daemon=True)
        process.start()
        there.close()
        self.processes[here] = name, process

    def kill(self, kind: str) -> None:
        """Kill writers, and see what they have left."""
        for pipe, (name, process) in list(self.processes.items()):
            if name.startswith(kind):
                process.kill()
                process.join()
                self.hear_out(pipe)
                self.checker.refresh()
                found = batches(self.checker)
                self.listen()
                self.ledger.settle(name, found)
                self.ledger.counts["kills"] += 1

    def hear_out(self, pipe: Any) -> None:
        """Take all that an ended process has said."""
        name, _ = self.processes.pop(pipe)
        while True:
            try:
                self.take(name, pipe.recv())
            except (EOFError, OSError, pickle.UnpicklingError):
                return

    def listen(self, patience: float = 0) -> None:
        """Take what has been said."""
        while ready := wait(list(self.processes), patience):
            patience = 0
            for pipe in cast(list[Any], ready):
                name, _ = self.processes[pipe]
                try:
                    self.take(name, pipe.recv())
                except EOFError:
                    raise AssertionError(f"{name} has ended, see above") from None

    def take(self, name: str, message: Any) -> None:
        """Note what a process has said."""
        match message:
            case ("intend", new, gone):
                self.ledger.intend(name, new, gone)
            case ("done", seconds):
                self.ledger.done(name)
                self.figures["commit"].append(seconds)
            case ("memory", megabytes) if not name.startswith("mortal"):
                self.memory.setdefault(name, []).append(megabytes)
            case ("figures", figures):
                for kind, values in figures.items():
                    self.figures[kind] += values

    def check(self) -> None:
        """Hold the folder against what has been said."""
        self.listen()
        must, known = dict(self.ledger.present), self.ledger.present | self.ledger.unsure
        self.checker.refresh()
        found = batches(self.checker)
        self.listen()
        # What has been deleted since, or is about to be, need not be there.
        lost = [batch for batch in must if batch in self.ledger.present and batch not in found]
        back = found.keys() - known.keys() - self.ledger.present.keys() - self.ledger.unsure.keys()
        if lost or back:
            raise AssertionError(f"lost: {lost}; there again: {sorted(back)}")
        self.memory.setdefault("checker", []).append(memory())
        self.largest = max(self.largest, sum(size_of(path) for path in self.folder.iterdir()))
        self.ledger.counts["checks"] += 1

    def finish(self) -> None:
        """End all, and hold the index against one that is built afresh."""
        self.kill("mortal")
        self.kill("writer")
        for pipe in self.processes:
            pipe.send("end")
        for pipe, (name, process) in list(self.processes.items()):
            self.hear_out(pipe)
            process.join()
            if process.exitcode:
                raise AssertionError(f"{name} has failed, see above")
        self.check()
        BM25Index.verify(self.folder)
        compare_with_fresh(self.checker)

    def report(self) -> list[str]:
        """Return the counts and figures; raise ``AssertionError`` if memory grew."""
        counts = [f"{count:,} {what}" for what, count in self.ledger.counts.items()]
        lines = [f"{', '.join(counts)}; {len(self.checker):,} documents in the end, exact"]
        for kind, values in self.figures.items():
            ordered = sorted(values) or [0.0]
            shown = [1000 * ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.99, 1)]
            times = "median {:.2f}, p99 {:.2f}, max {:.1f} ms".format(*shown)
            lines.append(f"{len(values):,} times {kind}: {times}")
        lines.append(f"folder: {self.largest / 1e6:.0f} MB at most")
        for name, values in self.memory.items():
            early, late = sorted(values[len(values) // 4 :]), sorted(values[-len(values) // 4 :])
            before, after = early[len(early) // 4], late[len(late) // 2]
            lines.append(f"memory of {name}: {before:.0f} MB, {after:.0f} MB in the end")
            if after > 1.3 * before + 40:
                raise AssertionError(lines[-1])
        return lines


def size_of(path: Path) -> int:
    """Return the size of a file that may be gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def compare_with_fresh(index: BM25Index) -> None:
    """Hold all scores, to the bit, against an index built from what this one returns."""
    documents = index.get(index.ids())
    fresh = BM25Index.from_texts(
        [document.text or "" for document in documents], [document.id for document in documents]
    )
    for query in ("every", " ".join(WORDS[:3]), " ".join(WORDS[100:109]), WORDS[2000]):
        if index.scores(query).tobytes() != fresh.scores(query).tobytes():
            raise AssertionError(f"other scores than those of an index built afresh: {query}")


def main() -> None:
    """Run it for some time, and print what has happened."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    seconds = parser.parse_args().seconds
    folder = Path(tempfile.mkdtemp())
    try:
        soak = Soak(folder / "index")
        soak.run(seconds)
        print("\n".join(soak.report()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
