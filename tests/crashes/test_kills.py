"""A writer killed at any moment leaves what it committed, and the next one can start."""

from __future__ import annotations

import copy
import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from bm25rag import BM25Index
from bm25rag.merging import policy
from support.folders import no_leftovers
from support.holding import shown, shown_by
from support.reference import Reference

if os.name == "nt":
    pytest.skip("there is no SIGKILL on Windows", allow_module_level=True)

LIMIT = 300  # seconds that a child may take to answer, on a machine that does much else
LIVING = 12


def take_step(side: Any, step: int) -> None:
    """Apply the change with this number to an index or its reference."""
    side.add([["a"] * (step % 5) + ["b", f"t{step}"]], [str(step)], [{"step": step}])
    side.delete([str(step - LIVING)])
    if step % 3 == 0:
        side.update_metadata([str(step - 5)], [{"changed": step}])


def work(folder: Path, pipe: Connection) -> None:
    """Commit step after step, and say after each that it is done, until killed."""
    policy.LEAST = 0  # so that there are several segments
    writer = BM25Index.open(folder, mode="w", verify=True)
    step = last_step(writer)
    pipe.send(step)
    while True:
        step += 1
        take_step(writer, step)
        if step % 7 == 0:
            writer.compact() if step % 2 else writer.maintain()
        writer.commit()
        pipe.send(step)


def last_step(index: BM25Index) -> int:
    return max(map(int, index.ids()), default=0)


def kill(folder: Path, delay: float, context: Any) -> list[int]:
    """Kill a writer some seconds after it started; return the steps it confirmed."""
    own, its = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(folder, its))
    child.start()
    its.close()
    assert own.poll(LIMIT)
    confirmed = [own.recv()]
    time.sleep(delay)
    child.kill()
    child.join(LIMIT)
    try:
        while own.poll(0):
            confirmed.append(own.recv())
    except EOFError:
        pass
    own.close()
    return confirmed


def test_nothing_confirmed_is_lost_and_nothing_is_half_done(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bm25rag"])
    folder, random, reference = tmp_path / "index", Random(0), Reference()
    BM25Index().save(folder)
    reader, done, longest = BM25Index.open(folder), 0, 0.08
    for _ in range(max(6, settings().max_examples // 2)):
        confirmed = kill(folder, random.uniform(0, longest), context)
        assert confirmed == list(range(done, done + len(confirmed)))
        BM25Index.verify(folder)
        index = BM25Index.open(folder)
        found = last_step(index)
        assert found - confirmed[-1] in (0, 1)
        for step in range(done + 1, found + 1):
            take_step(reference, step)
        done = found
        if not done:  # on a machine that does much else
            longest *= 2
        assert shown(index) == shown_by(reference)
        assert reader.refresh() == (len(confirmed) > 1 or found > confirmed[-1])
        assert shown(reader) == shown_by(reference)
    assert done > 0
    with BM25Index.open(folder, mode="w") as writer:
        take_step(writer, done + 1)
    assert no_leftovers(folder)
    last = copy.deepcopy(reference)
    take_step(last, done + 1)
    assert shown(BM25Index.open(folder, verify=True)) == shown_by(last)
