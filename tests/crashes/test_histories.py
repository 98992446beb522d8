"""Any history of writes, commits, crashes and refreshes agrees with the reference."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bm25rag import BM25Index
from support.holding import (
    QUERY,
    apply,
    assert_same_scores,
    assert_same_statistics,
    bits,
    build,
    shown,
    shown_by,
    tuned,
)
from support.recording import Crash, Disk, abandon, crash, leftover
from support.strategies import (
    LABELS,
    Add,
    Delete,
    Relabel,
    additions,
    documents,
    parameters,
    queries,
)

POSIX = os.name != "nt"
PLACES = st.lists(st.integers(0, 99), min_size=1, max_size=3)


class Histories(RuleBasedStateMachine):
    """A writer and a reader on one folder, and what each of them must return.

    ``present`` is what the writer holds, ``committed`` what the folder does, and ``read``
    what the reader saw last.
    """

    @initialize(chosen=parameters(), texts=st.lists(documents, min_size=4, max_size=12))
    def begin(self, chosen: dict[str, Any], texts: list[list[str]]) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("bm25rag.merging.policy.LEAST", 0)  # so that there are several segments
        self.patch.setattr("bm25rag.storage.checksummed_file.BLOCK", 128)
        self.root = Path(tempfile.mkdtemp())
        self.folder = self.root / "index"
        index, self.present = build(texts, **chosen)
        index.save(self.folder)
        self.writer, self.reader = BM25Index.open(self.folder, "w"), BM25Index.open(self.folder)
        self.committed, self.read = copy.deepcopy(self.present), copy.deepcopy(self.present)

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            abandon(self.writer)
            self.patch.undo()
            shutil.rmtree(self.root, ignore_errors=True)

    # -- writing -------------------------------------------------------------------

    @rule(step=additions())
    def add(self, step: Add) -> None:
        apply(self.writer, self.present, step)

    @rule(step=additions(), places=PLACES)
    def replace(self, step: Add, places: list[int]) -> None:
        ids = list(dict.fromkeys(self.ids_at(places)))[: len(step.texts)]
        count = len(ids)
        apply(
            self.writer, self.present, Add(step.texts[:count], ids, step.labels[:count], "replace")
        )

    @rule(places=PLACES)
    def delete(self, places: list[int]) -> None:
        apply(self.writer, self.present, Delete([*self.ids_at(places), "unknown"]))

    @rule(places=PLACES, label=st.sampled_from(LABELS))
    def update_metadata(self, places: list[int], label: int) -> None:
        ids = list(dict.fromkeys(self.ids_at(places)))
        apply(self.writer, self.present, Relabel(ids, [label] * len(ids)))

    def ids_at(self, places: list[int]) -> list[str]:
        ids = self.present.ids
        return [ids[place % len(ids)] for place in places] if ids else []

    @rule()
    def maintain(self) -> None:
        self.writer.maintain()

    @rule()
    def compact(self) -> None:
        self.writer.compact()
        assert self.writer.stats()["segments"] <= 1

    # -- the folder ----------------------------------------------------------------

    @rule()
    def commit(self) -> None:
        self.writer.commit()
        self.committed = copy.deepcopy(self.present)

    @rule()
    def roll_back(self) -> None:
        self.writer.rollback()
        self.present = copy.deepcopy(self.committed)

    @rule(mmap=st.booleans())
    def reopen(self, mmap: bool) -> None:
        abandon(self.writer)
        self.open(mmap)
        self.present = copy.deepcopy(self.committed)

    def open(self, mmap: bool = True) -> None:
        self.writer = BM25Index.open(self.folder, "w", mmap=mmap, verify=True)

    @rule()
    def refresh(self) -> None:
        self.reader.refresh()
        assert not self.reader.refresh()
        self.read = copy.deepcopy(self.committed)

    @precondition(lambda self: POSIX)
    @rule(place=st.integers(0, 60), seed=st.integers(0, 1000), power=st.booleans())
    def crash(self, place: int, seed: int, power: bool) -> None:
        """Crash in the middle of a commit; after a power cut, some unflushed data is lost."""
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(self.folder, patch)
            disk.watch()
            disk.fail_at(place, crash)
            try:
                self.writer.commit()
                self.committed = copy.deepcopy(self.present)
            except Crash:
                pass
        abandon(self.writer)
        if not power:
            files = leftover(before, disk.operations, Random(seed))
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            for name, data in files.items():
                (self.folder / name).write_bytes(data)
        self.open()
        if shown(self.writer) != shown_by(self.committed):
            self.committed = self.present
        self.present = copy.deepcopy(self.committed)

    # -- asking --------------------------------------------------------------------

    @rule(chosen=parameters(), query=queries)
    def tune(self, chosen: dict[str, Any], query: list[str]) -> None:
        assert_same_scores(*tuned(self.writer, self.present, chosen), query)

    @rule(label=st.sampled_from(LABELS), query=queries, k=st.integers(0, 5))
    def filter(self, label: int, query: list[str], k: int) -> None:
        for index, reference in ((self.writer, self.present), (self.reader, self.read)):
            found = index.search(query, k, filter={"label": label})
            accepted = reference.search(query, k, lambda _, own: own.get("label") == label)
            assert bits(found) == bits(accepted)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "writer"):
            assert_same_scores(self.writer, self.present, QUERY)
            assert_same_statistics(self.writer, self.present)
            assert_same_scores(self.reader, self.read, QUERY)
            assert_same_statistics(self.reader, self.read)


TestHistories = Histories.TestCase
TestHistories.settings = settings(stateful_step_count=25)
