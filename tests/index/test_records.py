"""Records that users get or pass: equality, repr, copying, pickling, matching."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest

from bm25rag import BatchResult, BM25Index, Document, Explanation, Hit
from bm25rag.adapters import columns
from bm25rag.common.codec import decode_each
from bm25rag.filters import And, Filter, IdSet, Not, Or, parse_filter
from bm25rag.scoring.variants import Parameters
from bm25rag.search import contents

INDEX = BM25Index.from_texts(["red boat", "red"])
CHANGEABLE = [Document("a", None, {"n": 1}, b""), Hit("a", 0.5, "red", {"tags": ["x"]}, None)]
FIXED = [
    INDEX.explain("red tea", "0"),
    INDEX.explain("red", "0").terms[0],
    Parameters("bm25+", k1=2),
    IdSet(frozenset("a")),
    And((IdSet(frozenset("a")), Not(Or(())))),
]


@pytest.mark.parametrize("value", [*CHANGEABLE, *FIXED], ids=lambda value: type(value).__name__)
def test_a_copy_is_equal(value: object) -> None:
    pickled = [pickle.loads(pickle.dumps(value, protocol)) for protocol in (2, 3, 4, 5)]
    for twin in [copy.copy(value), copy.deepcopy(value), *pickled]:
        assert type(twin) is type(value)
        assert twin is not value
        assert twin == value
        assert repr(twin) == repr(value)
    assert value != object()


def test_the_result_of_a_batch_says_what_to_pickle_in_its_place() -> None:
    result = INDEX.search_batch(["red", "boat"])
    for way in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"hits\(\) read the index .* rows, scores and counts"):
            way(result)
    assert copy.copy(result).ids() == result.ids()
    own = object.__new__(type("Own", (BatchResult,), {}))
    vars(own).update(vars(result))
    assert type(copy.copy(own)) is type(own)
    assert pickle.loads(pickle.dumps(result.hits())) == result.hits()


@pytest.mark.parametrize("protocol", [0, 1])
def test_an_index_can_be_pickled_by_the_oldest_protocols(protocol: int) -> None:
    twin = pickle.loads(pickle.dumps(INDEX, protocol))
    assert twin.search("red boat") == INDEX.search("red boat")
    assert pickle.loads(pickle.dumps(FIXED[2], protocol)) == FIXED[2]


@pytest.mark.parametrize("value", CHANGEABLE, ids=lambda value: type(value).__name__)
def test_what_is_the_callers_own_can_be_changed_but_not_hashed(value: Document | Hit) -> None:
    twin = copy.deepcopy(value)
    twin.metadata["new"] = 1
    assert twin != value
    twin.metadata = value.metadata
    assert twin == value
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    with pytest.raises(AttributeError):
        value.other = 1  # type: ignore[union-attr]


@pytest.mark.parametrize("value", FIXED, ids=lambda value: type(value).__name__)
def test_what_is_fixed_can_be_hashed_but_not_changed(value: object) -> None:
    assert hash(value) == hash(copy.deepcopy(value))
    for name in type(value).__match_args__:  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match=name):
            setattr(value, name, None)
        with pytest.raises(AttributeError, match=name):
            delattr(value, name)
    with pytest.raises((AttributeError, TypeError)):  # TypeError: a bug of Python 3.11
        value.other = 1  # type: ignore[attr-defined]


def test_values_show_how_they_are_made() -> None:
    assert repr(CHANGEABLE[0]) == "Document(id='a', text=None, metadata={'n': 1}, payload=b'')"
    assert repr(Hit("a", 0.5, "red", {}, None)) == "Hit(id='a', score=0.5, text='red')"
    for value in (*CHANGEABLE, *FIXED):
        names = {kind.__name__: kind for kind in map(type, [*CHANGEABLE, *FIXED])}
        assert eval(repr(value), names | {"Or": Or, "Not": Not}) == value


def test_a_repr_is_one_short_line_whatever_is_in_it() -> None:
    big: Any = {
        "text": "line\n" * 10**5,
        "metadata": {"k": ["v\n"] * 10**5},
        "payload": b"x" * 10**6,
    }
    for value in (Document(id="a" * 500, **big), Hit(id="a" * 500, score=1 / 3, **big)):
        assert len(repr(value)) < 350
        assert "\n" not in repr(value)


@pytest.mark.parametrize("wrong", [7, 2.5, date(2024, 1, 31), object, {"a": "b" * 1000}])
def test_a_document_of_wrong_types_can_be_shown(wrong: Any) -> None:
    document = Document(wrong, wrong, wrong, payload=wrong, context=wrong)
    assert f"id={wrong!r}"[:50] in repr(document)
    assert len(repr(document)) < 700


def test_values_can_be_matched() -> None:
    match Hit("a", 0.5, "red", {}, None):
        case Hit(id, score, text):
            assert (id, score, text) == ("a", 0.5, "red")
    match INDEX.explain("red", "0"):
        case Explanation(id, _, matched):
            assert (id, matched) == ("0", True)


def test_a_document_never_equals_a_hit_nor_one_filter_another() -> None:
    def passes(metadata: object) -> bool:
        return True

    parts: tuple[Filter, ...] = (IdSet(frozenset("a")),)
    assert And(parts) != Or(parts)
    assert Document("a", "b", {}, None) != Hit("a", 0.0, "b", {}, None)
    assert parse_filter(passes) == parse_filter(passes)
    assert parse_filter({"a": 1}) == parse_filter({"a": 1.0}) != parse_filter({"a": 2})


def test_a_hit_is_read_when_it_is_asked_and_as_it_was_when_it_was_found() -> None:
    index = BM25Index()
    index.add(["red boat"], ["a"], metadata=[{"n": 1}], payloads=[b"x"])
    first, second, third, fourth = (index.search("boat")[0] for _ in range(4))
    index.update_metadata(["a"], [{"n": 2}])
    index.add(["blue boat"], ["a"], on_duplicate="replace")
    index.compact()
    assert (first.text, first.metadata, first.payload) == ("red boat", {"n": 1}, b"x")
    assert pickle.loads(pickle.dumps(second)) == first == copy.deepcopy(third)
    assert dataclasses.asdict(fourth) == {
        "id": "a",
        "score": first.score,
        "text": "red boat",
        "metadata": {"n": 1},
        "payload": b"x",
        "corrections": None,
        "fields": None,
    }
    first.metadata["n"] = 3
    assert first.metadata == {"n": 3} != second.metadata
    first.text = "changed"
    assert first.text == "changed"
    with pytest.raises(AttributeError, match="'Hit' object has no attribute 'txt'"):
        first.txt  # type: ignore[attr-defined]  # noqa: B018


def test_hits_can_be_read_at_once() -> None:
    texts = [f"red boat {n}" for n in range(40)]
    index = BM25Index.from_texts(texts, metadata=[{"n": n} for n in range(40)])
    index.add(["red boat of a later segment"], ["x"], payloads=[b"y"])
    hits, others = index.search("boat", k=50), index.search("boat", k=50)
    ids, read, metadata, payloads = columns(hits, "id", "text", "metadata", "payload")
    metadata[3]["m"] = 1  # of that document alone
    assert [one for one in metadata if "m" in one] == [{"n": 3, "m": 1}]
    assert "m" not in hits[3].metadata
    del metadata[3]["m"]
    assert len(hits) == 41
    scores = [hit.score for hit in hits]
    assert [Hit(*one) for one in zip(ids, scores, read, metadata, payloads, strict=True)] == others
    assert payloads == [None] * 40 + [b"y"]
    assert columns(index.search("nothing"), "text", "payload") == [[], []]
    assert columns(hits[:7], "text") == [[hit.text for hit in hits[:7]]]
    for wrong in (hits[1:], hits[::-1], hits[:3] + hits[4:]):
        with pytest.raises(ValueError, match="that a query has returned, from the first on"):
            columns(wrong, "text")
    for found in (hits, index.get(["x"]), []):
        assert columns(found) == []
    for found in (hits, index.get(["x"])):
        with pytest.raises(AttributeError, match="txt"):
            columns(found, "id", "txt")
    with pytest.raises(AttributeError, match="no column 'spans'"):  # which a hit has
        columns(hits, "spans")


def test_documents_are_read_together_and_come_as_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each segment at once; the same one twice is two documents that share nothing."""
    index = BM25Index(fields={"title": 2.0, "text": 1.0, "context": 1.0})
    for first, count in ((0, 50), (50, 5)):
        index.add_documents(
            Document(
                str(n),
                f"red {n}",
                {"n": [n]},
                b"%d" % n if n % 2 else None,
                fields={"title": f"title {n}"} if n % 3 else None,
                context=f"context {n}" if n % 5 else None,
            )
            for n in range(first, first + count)
        )
    index.delete(["7"])
    index.update_metadata(["8"], [{"n": "new"}])
    read: list[int] = []

    def counted(stored: list[Any]) -> list[Any]:
        read.append(len(stored))
        return decode_each(stored)

    monkeypatch.setattr(contents, "decode_each", counted)
    asked = ["54", "8", "3", "7", "none", *map(str, range(40, 55)), "3"]
    documents = index.get(asked)
    assert sorted(read) == [6, 13]
    monkeypatch.undo()
    assert documents == [one for id in asked for one in index.get([id])]
    assert [one.id for one in documents] == [id for id in asked if id not in {"7", "none"}]
    assert (documents[1].metadata, documents[2].text) == ({"n": "new"}, "red 3")
    assert documents[2] == documents[-1]
    assert documents[2].metadata["n"] is not documents[-1].metadata["n"]


def test_columns_of_documents_and_of_copied_hits_are_what_they_hold() -> None:
    index = BM25Index.from_texts(["red boat", "boat"], metadata=[{"n": 1}, {"n": 2}])
    hits = copy.deepcopy(index.search("boat"))
    for found in (hits, index.get(["1", "0"])):
        ids, metadata = columns(found, "id", "metadata")
        assert ids == ["1", "0"]
        assert metadata[0] is found[0].metadata


def test_threads_that_read_one_hit_get_the_same_objects() -> None:
    index = BM25Index.from_texts(["red boat"] * 50, metadata=[{"n": n} for n in range(50)])
    for _ in range(20):
        hits, barrier = index.search("boat", k=50), threading.Barrier(4)

        def read(hits: list[Hit] = hits, barrier: threading.Barrier = barrier) -> list[int]:
            barrier.wait()
            return [id(hit.metadata) for hit in hits]

        with ThreadPoolExecutor(4) as pool:
            seen = [future.result() for future in [pool.submit(read) for _ in range(4)]]
        assert seen == [[id(hit.metadata) for hit in hits]] * 4
