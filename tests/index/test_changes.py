"""Changes to a segment are kept in sets, so that a commit writes only what is new."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError
from bm25rag.segments.changes import Changes, all_changed, all_deleted, push
from bm25rag.segments.view import SegmentView
from support.folders import body_of, write_manifest

SIZE = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Index.from_texts([["red"]] * SIZE).save(tmp_path / "index")
    return tmp_path / "index"


def whole(number: int) -> SegmentView:
    (view,) = BM25Index.from_texts([["red"]] * number)._snapshot.views
    return view


EVENTS = st.lists(
    st.tuples(st.booleans(), st.sets(st.integers(0, SIZE - 1), min_size=1, max_size=6)), max_size=40
)


@given(EVENTS)
def test_sets_of_changes_say_what_happened_and_are_few(events: list[tuple[bool, set[int]]]) -> None:
    view, dead = whole(SIZE), set[int]()
    changed: dict[int, bytes] = {}
    for moment, (dies, numbers) in enumerate(events):
        living = numbers - dead
        if dies:
            view, dead = view.without(living), dead | living
        else:
            new = dict.fromkeys(living, json.dumps({"at": moment}).encode())
            view, changed = view.with_metadata(new), changed | new
        total = sum(map(len, view.changes))
        assert len(view.changes) <= math.log2(max(total, 1)) + 2
        assert view.deleted.tolist() == sorted(dead)
        assert view.count == SIZE - len(dead)
        for number in set(range(SIZE)) - dead:
            stored = changed.get(number)
            assert view.metadata_of([number]) == [None if stored is None else stored.decode()]
            assert view.changed.get(number) == stored


def test_merged_changes_hold_no_metadata_of_deleted_documents() -> None:
    all_changes = push(
        [Changes(all_deleted([]), {1: b"a", 2: b"b"})], Changes(all_deleted([]), {1: b"c"})
    )
    (view,) = [SegmentView(whole(3).segment, all_changes).without([2])]
    assert [changes.changed for changes in view.changes] == [{1: b"c"}]
    assert all_changed(view.changes) == {1: b"c"}


def test_a_write_of_little_leaves_larger_sets_of_changes_as_they_are() -> None:
    view = whole(SIZE).without(range(10))
    after = view.without([20]).with_metadata({21: b"{}"})
    assert after.changes[0] is view.changes[0]


def test_a_commit_writes_what_is_new_whatever_has_happened_before(tmp_path: Path) -> None:
    def written(earlier: int) -> int:
        """Return the size of the files written by the last of many commits of one document."""
        folder = tmp_path / str(earlier)
        index = BM25Index.from_texts([["red"]] * 8000)
        index.delete([str(number) for number in range(earlier)])
        changed = [str(number) for number in range(earlier, 2 * earlier)]
        index.update_metadata(changed, [{"new": "value"}] * earlier)
        index.save(folder)
        with BM25Index.open(folder, mode="w") as writer:
            before = set(folder.iterdir())
            writer.delete(["7000"])
            writer.commit()
            writer.update_metadata(["7001"], [{"x": 1}])
            writer.commit()
        return sum(path.stat().st_size for path in set(folder.iterdir()) - before)

    assert written(1500) <= written(10) + 100


def test_a_document_that_is_deleted_twice_is_refused(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["0", "1", "2", "3"])
        writer.commit()
        (early,) = body_of(folder)["segments"][0]["changes"]
        kept = (folder / early["file"]).read_bytes()
        writer.delete(["4", "5", "6"])
    body = body_of(folder)
    (late,) = body["segments"][0]["changes"]
    (folder / early["file"]).write_bytes(kept)
    body["segments"][0]["changes"] = [early, late]
    write_manifest(folder, body)
    with pytest.raises(CorruptIndexError, match=f"{late['file']}.*deleted already"):
        BM25Index.open(folder)


def test_equal_scores_of_a_batch_keep_the_order_of_the_segments() -> None:
    index = BM25Index.from_texts([["a", "b"], ["a"]] * SIZE)
    index.add([["a"], ["a", "b"], ["a"]])
    assert len(index._snapshot.views) == 2
    best = sorted({*range(1, 2 * SIZE, 2), 2 * SIZE, 2 * SIZE + 2})
    others = sorted({*range(0, 2 * SIZE, 2), 2 * SIZE + 1})
    for k in (1, SIZE, SIZE + 1, SIZE + 2, len(index)):
        (rows,) = index.search_batch([["a"]], k=k).rows.tolist()
        assert rows == [*best, *others][:k]
