"""Filter results are cached: writes evaluate only what is new, callables are always asked again."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.filters import Condition
from bm25rag.metadata import mask_cache
from bm25rag.metadata.mask_cache import MaskCache
from bm25rag.search import filter_masks
from bm25rag.storage import segment_files

BOATS = {"kind": "boat"}


class Work:
    """How many documents were evaluated from fields, and how many one by one."""

    def __init__(self) -> None:
        self.selected = self.asked = 0

    def take(self) -> tuple[int, int]:
        done = self.selected, self.asked
        self.selected = self.asked = 0
        return done


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work()
    select, matches = filter_masks.select, Condition.matches

    def counted_select(fields: Any, *rest: Any) -> Any:
        work.selected += fields.count
        return select(fields, *rest)

    def counted_matches(self: Condition, id: str, metadata: Any) -> bool:
        work.asked += 1
        return matches(self, id, metadata)

    monkeypatch.setattr(filter_masks, "select", counted_select)
    monkeypatch.setattr(Condition, "matches", counted_matches)
    return work


@pytest.fixture
def index() -> BM25Index:
    metadata = [{"kind": "boat" if number % 2 else "tea", "n": number} for number in range(100)]
    return BM25Index.from_texts(["red"] * 100, metadata=metadata)


def test_equalities_with_many_values_of_a_path_are_evaluated_at_once(
    index: BM25Index, work: Work
) -> None:
    one_of = [{"n": number} for number in range(40)] + [{"n": {"$in": [50, 51]}}, {"n": None}]
    assert index.count({"$or": [*one_of, {"kind": "boat"}]}) == 71
    assert work.take() == (200, 0)


def test_a_filter_is_evaluated_once_whatever_it_is_given_to(index: BM25Index, work: Work) -> None:
    assert index.count(BOATS) == 50
    assert work.take() == (100, 0)
    assert len(index.search("red", k=99, filter={"kind": {"$eq": "boat"}})) == 50
    assert len(index.tune(k1=2.0).search("red", k=99, filter=BOATS)) == 50
    assert len(index.ids({"kind": {"$in": ["boat"]}})) == 50
    assert work.take() == (100, 0)  # for $in, which has its own key
    assert index.ids({"kind": {"$in": ["boat", "boat"]}}) == index.ids(BOATS)
    assert work.take() == (0, 0)


@pytest.mark.parametrize(
    ("operand", "count"), [(1, 2), (1.0, 2), (True, 1), ("1", 1), (None, 1), ([1], 1)]
)
def test_filters_share_what_is_remembered_only_if_they_are_equal(
    operand: Any, count: int, work: Work
) -> None:
    values = [1, 1.0, True, "1", None, [1], 0]
    index = BM25Index.from_texts(["red"] * 7, metadata=[{"v": value} for value in values])
    for other in values:
        index.count({"v": other})
    work.take()
    assert index.count({"v": operand}) == count
    assert work.take() == (0, 0)


def test_an_added_document_alone_is_evaluated_and_nothing_after_a_deletion(
    index: BM25Index, work: Work
) -> None:
    index.count(BOATS)
    work.take()
    index.delete(["1", "2"])
    assert index.count(BOATS) == 49
    assert work.take() == (0, 0)
    index.add(["red"], metadata=[BOATS])
    assert index.count(BOATS) == 50
    assert work.take() == (1, 0)


def test_documents_whose_metadata_change_are_evaluated_again_and_few_others(
    index: BM25Index, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.count(BOATS)
    view = index.tune()
    work.take()
    index.update_metadata(["1", "2"], [{}, BOATS])
    assert index.ids(BOATS)[:2] == ["2", "3"]
    assert work.take() == (0, 2)
    index.update_metadata(["4"], [BOATS])
    assert index.ids(BOATS)[:3] == ["2", "3", "4"]
    assert work.take() == (0, 3)  # documents changed just before are included
    monkeypatch.setattr(filter_masks, "FEW_CHANGED", 0)
    index.update_metadata(["4"], [{}])
    assert index.ids(BOATS)[:2] == ["2", "3"]
    assert work.take()[0] <= 4  # from their own fields
    assert view.ids(BOATS)[:2] == ["1", "3"]
    assert index.ids(BOATS)[:2] == ["2", "3"]
    assert work.take() == (0, 0)


def test_callables_are_asked_at_every_search_and_for_living_documents_only(
    index: BM25Index,
) -> None:
    seen: list[int] = []

    def odd(metadata: dict[str, Any]) -> bool:
        seen.append(metadata["n"])
        return bool(metadata["n"] % 2)

    index.delete(["0", "1"])
    for _ in range(2):
        assert index.count(odd) == 49
        assert seen == list(range(2, 100))
        seen.clear()


def test_a_callable_is_asked_only_where_the_rest_of_the_filter_leaves_it_open(
    index: BM25Index, work: Work
) -> None:
    seen: list[int] = []

    def low(metadata: dict[str, Any]) -> bool:
        seen.append(metadata["n"])
        return bool(metadata["n"] < 4)

    few = {"n": {"$lt": 6}}
    assert index.ids({"$and": [few, low]}) == ["0", "1", "2", "3"]
    assert seen == [0, 1, 2, 3, 4, 5]
    seen.clear()
    assert index.count({"$or": [{"n": {"$gte": 6}}, low]}) == 98
    assert seen == [0, 1, 2, 3, 4, 5]
    seen.clear()
    assert index.ids({"$and": [{"$not": {"n": {"$gt": 1}}}, {"$not": low}]}) == []
    assert seen == [0, 1]
    work.take()
    index.count({"$and": [few, low]})
    assert work.take() == (0, 0)  # the other parts of a filter with a callable are cached


def test_sets_of_ids_are_looked_up_and_not_remembered(index: BM25Index, work: Work) -> None:
    index.delete(["7"])
    for _ in range(2):
        assert index.ids({"5", "7", "99", "x", ""}) == ["5", "99"]
        assert index.ids({"$id": {"$in": ["6", "5"]}, **BOATS}) == ["5"]
        everything = {str(number) for number in range(1000)}
        assert index.count(everything) == 99
        assert index.count({"$and": [everything, BOATS]}) == 49
    assert index.count(set()) == 0
    assert work.take() == (200, 0)  # BOATS with two ids, and alone


@pytest.mark.parametrize(("name", "most"), [("MAX_BYTES", 10_000), ("MAX_MASKS", 7)])
def test_what_is_remembered_is_bounded(
    index: BM25Index, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(mask_cache, name, most)
    index.delete(["0"])
    for number in range(200):
        assert index.ids({"n": number}) == [str(number)] * (0 < number < 100)
    (part,) = index._snapshot.views
    for cache in (part.masks, part.segment.masks):
        held = [allowed.nbytes for kept in (cache._young, cache._old) for allowed in kept.values()]
        assert 0 < (sum(held) if name == "MAX_BYTES" else len(held)) <= 2 * most


def test_what_is_used_stays_remembered() -> None:
    cache, mask = MaskCache(), np.zeros(mask_cache.MAX_BYTES // 10, np.bool_)
    made: list[str] = []

    def make(key: str) -> np.ndarray:
        made.append(key)
        return mask

    for number in range(40):
        cache.get("used", partial(make, "used"))
        cache.get(f"other {number}", partial(make, f"other {number}"))
    cache.get("other 0", partial(make, "other 0"))
    assert made.count("used") == 1
    assert made.count("other 0") == 2


def test_a_copy_does_not_carry_what_is_remembered(index: BM25Index) -> None:
    before = len(pickle.dumps(index))
    for number in range(50):
        index.count({"n": {"$gt": number}})
    assert len(pickle.dumps(index)) == before
    assert pickle.loads(pickle.dumps(index)).count(BOATS) == 50


def test_an_older_folder_has_no_fields_and_gets_them_when_a_filter_asks(
    index: BM25Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = segment_files.write_arrays

    def without(path: Path, arrays: dict[str, Any]) -> Any:
        return write(path, {n: a for n, a in arrays.items() if not n.startswith("fields.")})

    with monkeypatch.context() as patch:
        patch.setattr(segment_files, "write_arrays", without)
        index.save(tmp_path / "old")
    BM25Index.verify(tmp_path / "old")
    opened = BM25Index.open(tmp_path / "old")
    assert opened.ids(BOATS) == index.ids(BOATS)
    opened.save(tmp_path / "new")
    assert BM25Index.open(tmp_path / "new").ids(BOATS) == index.ids(BOATS)


def test_without_metadata_there_are_no_fields(tmp_path: Path) -> None:
    written: list[str] = []
    write = segment_files.write_arrays

    def look(path: Path, arrays: dict[str, Any]) -> Any:
        written.extend(arrays)
        return write(path, arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_files, "write_arrays", look)
        BM25Index.from_texts(["red"]).save(tmp_path / "index")
    assert not [name for name in written if name.startswith("fields.")]
    opened = BM25Index.open(tmp_path / "index")
    assert opened.count({"a": None}) == 1
    assert opened.count({"a": 1}) == 0


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": 99}, ["99"]),
        ({"n": 1000}, []),
        ({"$not": {}}, []),
        ({"n": {"$gte": 0}}, [str(number) for number in range(99, -1, -1)]),
        (set(), []),
        ({"0"}, ["0"]),
    ],
)
def test_a_filter_may_leave_the_last_match_or_one_document_or_none_or_all(
    filter: Any, expected: list[str]
) -> None:
    # The longer a document is, the lower its score: 0 ranks last.
    texts = [["red"] + ["blue"] * (100 - number) for number in range(100)]
    index = BM25Index.from_texts(texts, metadata=[{"n": number} for number in range(100)])
    for k in (1, 7, 1000):
        assert [hit.id for hit in index.search(["red"], k, filter)] == expected[:k]
        assert index.search_batch([["red"]] * 3, k, filter).ids() == [expected[:k]] * 3
