"""Segments are merged into few, exactly, and without blocking anyone."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.columns import column as columns
from bm25rag.columns.column import Column, build_column
from bm25rag.columns.merge import JoinedTerms, join_columns, join_tables
from bm25rag.columns.string_table import build_table, index_column
from bm25rag.common.arrays import UInt32
from bm25rag.merging import policy
from bm25rag.merging.policy import SHARE, plan
from support.holding import apply, assert_same_scores, assert_same_statistics, build
from support.reference import Reference
from support.strategies import Step, histories, parameters, queries
from support.threads import together

LIMIT = 30  # seconds after which a thread counts as stuck

strings = st.lists(st.none() | st.binary(max_size=6), max_size=12)


@dataclass(eq=False)
class Pretended:
    """What ``plan`` reads of a view."""

    size: int
    count: int = 1
    segment: Any = b"1"
    changed_count: int = 0


def sizes(groups: list[policy.Group]) -> list[list[int]]:
    return [[view.size for view in group.views] for group in groups]


# -- which segments ----------------------------------------------------------------------------


@given(st.lists(st.integers(1, 10**6), max_size=60))
def test_without_a_limit_the_segments_that_stay_are_each_larger_than_twice_the_rest(
    given_sizes: list[int],
) -> None:
    left = [group.size for group in plan([Pretended(size) for size in given_sizes])]
    assert sum(left) == sum(given_sizes)
    assert all(size > 2 * sum(left[place + 1 :]) for place, size in enumerate(left[:-1]))


@given(st.lists(st.integers(1, 10**6), max_size=200))
def test_no_write_merges_more_than_its_share_and_the_number_of_segments_stays_bounded(
    writes: list[int],
) -> None:
    views: list[int] = []
    for size in writes:
        views.append(size)
        most = sum(views) // SHARE
        groups = plan([Pretended(size) for size in views], most)
        assert all(len(group.views) == 1 or group.size <= most for group in groups)
        assert [size for group in sizes(groups) for size in group] == views
        views = [group.size for group in groups]
        assert len(views) <= 2 * SHARE + math.log(sum(views), 3) + 2


def test_decreasing_batches_are_merged_too() -> None:
    views = [Pretended(size) for size in range(1000, 0, -1)]
    assert len(plan(views)) < 10


def test_small_segments_before_a_large_one_are_merged_among_themselves() -> None:
    views = [Pretended(size) for size in (90, 8, 4, 2, 1, 90)]
    assert sizes(plan(views, limit=50)) == [[90], [8, 4, 2, 1], [90]]


def test_a_segment_that_is_merged_elsewhere_is_left_alone_and_its_neighbours_too() -> None:
    held = Pretended(4, segment=b"2")
    views = [Pretended(1), Pretended(1), held, Pretended(1), Pretended(1)]
    groups = plan(views, held={b"2"})
    assert sizes(groups) == [[1, 1], [4], [1, 1]]
    assert [group.due for group in groups] == [True, False, True]


@pytest.mark.parametrize(
    ("view", "due"),
    [
        (Pretended(9, count=5, segment=b"123456789"), False),
        (Pretended(9, count=4, segment=b"123456789"), True),
        (Pretended(9, 9, b"123456789", changed_count=4), False),
        (Pretended(9, 9, b"123456789", changed_count=5), True),
    ],
)
def test_a_segment_is_written_anew_when_most_of_it_is_deleted_or_changed(
    view: Pretended, due: bool
) -> None:
    assert [group.due for group in plan([view])] == [due]
    assert [group.due for group in plan([view], limit=8)] == [False]
    assert [group.due for group in plan([view], held={view.segment})] == [False]


@pytest.mark.further
def test_single_documents_make_few_segments_and_each_write_merges_few_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy, "LEAST", 4_000)
    merged: list[int] = []
    merge = policy.merge_segments

    def noted(views: Any) -> Any:
        merged.append(sum(view.count for view in views))
        return merge(views)

    monkeypatch.setattr(policy, "merge_segments", noted)
    index = BM25Index()
    for number in range(600):
        index.add([f"word{number % 7} other"])
        assert index.stats()["segments"] <= 32
    assert max(merged) < 200
    assert index.ids() == [str(number) for number in range(600)]


# -- columns and tables ------------------------------------------------------------------------


@st.composite
def kept_strings(draw: st.DrawFn) -> tuple[list[bytes | None], list[bool] | None]:
    values = draw(strings)
    flags = st.lists(st.booleans(), min_size=len(values), max_size=len(values))
    return values, draw(st.none() | flags)


def mask(flags: list[bool] | None) -> Any:
    return None if flags is None else np.array(flags, bool)


@given(pieces=st.lists(kept_strings(), max_size=4), size=st.sampled_from([1, 3, 1 << 18]))
def test_joined_columns_hold_what_stays_in_order(
    pieces: list[tuple[list[bytes | None], list[bool] | None]], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_BYTES", size)
        joined = join_columns([(build_column(own), mask(flags)) for own, flags in pieces])
    expected = [
        value
        for own, flags in pieces
        for value, stays in zip(own, flags or [True] * len(own), strict=True)
        if stays
    ]
    assert [None if value is None else bytes(value) for value in joined] == expected
    assert arrays_of(joined) == arrays_of(build_column(expected))


def arrays_of(column: Any) -> list[Any]:
    return [values.tolist() for values in (column.offsets, column.data, column.null)]


def collide(patch: pytest.MonkeyPatch) -> None:
    def checksums(column: Column) -> UInt32:
        return np.array([sum(string or b"") % 4 for string in column], np.uint32)

    patch.setattr("bm25rag.columns.string_table.keys_of", checksums)
    patch.setattr("bm25rag.columns.string_table.zlib.crc32", lambda data: sum(data) % 4)


@pytest.mark.parametrize("colliding", [False, True])
@given(
    pieces=st.lists(st.lists(st.binary(max_size=2), unique=True, max_size=9), max_size=4),
    size=st.sampled_from([1, 3, 1 << 18]),
)
def test_joined_terms_are_one_table_of_all(
    colliding: bool, pieces: list[list[bytes]], size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_BYTES", size)
        if colliding:
            collide(patch)
        joined = JoinedTerms([build_table(build_column(own))[0] for own in pieces])
        table, places = joined.table(np.arange(len(joined)))
        expected, _ = build_table(build_column(sorted({term for own in pieces for term in own})))
        assert arrays_of(table.column) == arrays_of(expected.column)
        assert table.keys.tolist() == expected.keys.tolist()
        assert places.tolist() == list(range(len(joined)))
        for own, numbers in zip(pieces, joined.numbers, strict=True):
            terms = [bytes(term or b"") for term in build_table(build_column(own))[0].column]
            assert [table.column[number] for number in numbers.tolist()] == terms


@pytest.mark.parametrize("colliding", [False, True])
@given(
    ids=st.lists(st.binary(max_size=2), unique=True, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=3),
    dead=st.sets(st.integers(0, 11)),
)
def test_joined_tables_find_what_stays(
    colliding: bool, ids: list[bytes], cuts: list[int], dead: set[int]
) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut <= len(ids)), len(ids)]
    with pytest.MonkeyPatch.context() as patch:
        if colliding:
            collide(patch)
        pieces = [
            (
                index_column(build_column(ids[start:stop])),
                mask([number not in dead for number in range(start, stop)]),
            )
            for start, stop in pairwise(edges)
        ]
        joined = join_tables(pieces)
        left = [id for number, id in enumerate(ids) if number not in dead]
        assert [joined.find(id) for id in left] == list(range(len(left)))
        assert all(joined.find(ids[number]) == -1 for number in dead if number < len(ids))


# -- maintain and compact ----------------------------------------------------------------------


TIDYING: list[Callable[[BM25Index], None]] = [BM25Index.maintain, BM25Index.compact]
tidying = pytest.mark.parametrize("tidy", TIDYING)


@tidying
@given(chosen=parameters(), steps=histories, query=queries)
def test_neither_changes_any_answer(
    tidy: Callable[[BM25Index], None], chosen: dict[str, Any], steps: list[Step], query: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "LEAST", 0)  # so that writes leave several segments
        index, reference = BM25Index(**chosen), Reference(**chosen)
        for step in steps:
            index = apply(index, reference, step)
            assert_same_scores(index, reference, query)
        tidy(index)
    assert_same_scores(index, reference, query)
    assert_same_statistics(index, reference)


def scattered(monkeypatch: pytest.MonkeyPatch) -> tuple[BM25Index, Reference]:
    """Make eight segments of five documents, with a deletion in each."""
    monkeypatch.setattr(policy, "LEAST", 0)
    index, reference = build([])
    for number in range(8):
        texts = [["a", f"t{number}", *"b" * copies] for copies in range(5)]
        for side in (index, reference):
            side.add(texts, metadata=[{"label": number}] * 5)
    for side in (index, reference):
        side.delete([str(number) for number in range(0, 40, 5)])
    assert index.stats()["segments"] == 8
    return index, reference


def test_maintain_leaves_few_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    index, reference = scattered(monkeypatch)
    index.maintain()
    assert index.stats()["segments"] == 1
    assert_same_scores(index, reference, ["a", "b"])


def test_compact_leaves_nothing_of_what_was_deleted_or_replaced(tmp_path: Path) -> None:
    BM25Index.from_texts(
        ["secretword alpha", "plain beta", "plain gamma"],
        ids=["secret-id", "b", "c"],
        metadata=[{}, {"key": "secretvalue"}, {}],
        payloads=[b"secretpayload", None, None],
    ).save(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.delete(["secret-id"])
        writer.update_metadata(["b"], [{"key": "new"}])
        writer.commit()
        assert b"secret" in contents(tmp_path / "index")
        writer.compact()
        assert writer.stats()["segments"] == 1
    assert b"secret" not in contents(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index", verify=True)
    assert [document.metadata for document in opened.get(["b", "c"])] == [{"key": "new"}, {}]


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def test_compacting_an_index_without_documents_works() -> None:
    index = BM25Index()
    index.compact()
    index.add(["red"])
    index.delete(["0"])
    index.compact()
    assert index.search("red") == []


# -- beside other work -------------------------------------------------------------------------

MEANWHILE: dict[str, Callable[[Any], object]] = {
    "add": lambda index: index.add([["a", "new"]]),
    "delete": lambda index: index.delete(["1", "7", "39"]),
    "replace": lambda index: index.add([["b"]], ["8"], on_duplicate="replace"),
    "relabel": lambda index: index.update_metadata(["2", "38"], [{"label": 9}, {}]),
    "empty": lambda index: index.delete([str(number) for number in range(40)]),
}


@tidying
@pytest.mark.parametrize("write", MEANWHILE.values(), ids=MEANWHILE)
def test_what_is_written_during_a_merge_is_kept(
    tidy: Callable[[BM25Index], None],
    write: Callable[[Any], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index, reference = scattered(monkeypatch)
    index.update_metadata(["38"], [{"label": 7}])
    during_merge(index, tidy, lambda: (write(index), write(reference)), monkeypatch)
    assert_same_scores(index, reference, ["a", "b"])
    assert_same_statistics(index, reference)
    tidy(index)
    assert_same_scores(index, reference, ["a", "b"])
    assert_same_statistics(index, reference)


def during_merge(
    index: BM25Index,
    tidy: Callable[[BM25Index], None],
    work: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run something on another thread after the merge and before its result is installed."""
    merge, left = policy.merge_segments, threading.Event()

    def interrupted(views: Any) -> Any:
        merged = merge(views)
        if not left.is_set():
            left.set()
            together([work])
        return merged

    with monkeypatch.context() as patch:
        patch.setattr("bm25rag.merging.merge.merge_segments", interrupted)
        tidy(index)
    assert left.is_set()


@tidying
def test_a_rollback_during_a_merge_stands(
    tidy: Callable[[BM25Index], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, reference = scattered(monkeypatch)
    index.save(tmp_path / "index")
    writer = BM25Index.open(tmp_path / "index", mode="w")
    writer.delete(["1", "2"])
    writer.update_metadata(["3"], [{"label": 5}])
    during_merge(writer, tidy, writer.rollback, monkeypatch)
    assert_same_scores(writer, reference, ["a", "b"])
    assert_same_statistics(writer, reference)
    writer.close()


def test_both_on_many_threads_at_once_end(monkeypatch: pytest.MonkeyPatch) -> None:
    index, reference = scattered(monkeypatch)

    def write() -> None:
        for number in range(40):
            index.add([["a", "b"]], [f"new{number}"])

    reference.add([["a", "b"]] * 40, [f"new{number}" for number in range(40)])
    together([write, index.maintain, index.compact, index.maintain, index.compact])
    index.compact()
    assert index.stats()["segments"] == 1
    assert_same_scores(index, reference, ["a", "b"])
    assert_same_statistics(index, reference)


@tidying
def test_what_add_takes_its_texts_from_cannot_call_either(
    tidy: Callable[[BM25Index], None],
) -> None:
    index = BM25Index.from_texts(["red"])

    def texts() -> Iterator[str]:
        tidy(index)
        yield "blue"

    with pytest.raises(RuntimeError, match="within add"):
        index.add(texts())
    assert index.ids() == ["0"]


def test_what_a_write_merges_fits_together_on_the_disk() -> None:
    several = [BM25Index.from_texts([f"boat {n}" for n in range(size)]) for size in (400, 40, 4)]
    views = [
        index._live.state.snapshot.views[0].without(range(len(index) - len(index) // 4))
        for index in several
    ]
    sizes = [view.size for view in views]
    merged = policy.tidy(views, (), room=sizes[0])
    assert [view.is_whole for view in merged] == [True, False, False]
    assert [view.is_whole for view in policy.tidy(views, (), room=sum(sizes))] == [True, True, True]
