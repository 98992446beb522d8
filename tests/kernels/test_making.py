"""Objects that are made many at a time are those that Python would make one by one."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import pytest

from bm25rag import Hit
from bm25rag.adapters import make_models
from bm25rag.documents import Hits
from bm25rag.kernels import backend as backends


class Model:
    """Has the slots of a model of Pydantic, and is set by nothing but them."""

    __slots__ = (
        "__dict__",
        "__pydantic_extra__",
        "__pydantic_fields_set__",
        "__pydantic_private__",
    )

    def __new__(cls, *given: Any) -> Model:
        assert not given
        return object.__new__(cls)

    def __init__(self) -> None:
        raise AssertionError

    def __setattr__(self, name: str, value: object) -> None:
        raise AssertionError


def like(**values: Any) -> Model:
    model = object.__new__(Model)
    vars(model).update(values)
    return model


def test_models_have_the_values_and_sets_of_their_own(backend: str) -> None:
    blank = like(kind="m", text="", tags=["a"], more={"b": 1}, values=(), own=[])
    own = [{}, [1]]
    models: list[Any] = make_models(blank, {"text": ["a", "b"], "own": own})
    assert [type(one) for one in models] == [Model, Model]
    for model, text, value in zip(models, "ab", own, strict=True):
        assert [*vars(model)] == [*vars(blank)], "in the order of its class"
        assert vars(model) == {**vars(blank), "text": text, "own": value}
        assert vars(model)["own"] is value
        assert model.__pydantic_fields_set__ == {"text", "own"}
        assert model.__pydantic_extra__ is None
        assert model.__pydantic_private__ is None
    first, second = models
    for name in ("tags", "more"):
        assert len({id(vars(one)[name]) for one in (blank, first, second)}) == 3
    assert first.__pydantic_fields_set__ is not second.__pydantic_fields_set__
    assert vars(blank)["text"] == ""
    assert make_models(blank, {"text": []}) == make_models(blank, {}) == []


def test_what_cannot_be_made_is_an_error(backend: str) -> None:
    with pytest.raises(ValueError, match=r"differ in length|shorter|longer"):
        make_models(like(), {"a": [1, 2], "b": [1]})
    with pytest.raises((TypeError, AttributeError)):
        make_models("text", {"a": [1]})
    with pytest.raises((TypeError, AttributeError)):
        make_models(Model, {"a": [1]})  # a class, and not an object of it
    with pytest.raises((TypeError, AttributeError)):
        make_models(Hit("a", 1.0, None), {"id": ["a"]})  # which has other slots


class Holding:
    """Holds what hits have in common; what it does when one is made is left out."""

    def __init__(self) -> None:
        raise AssertionError


def made_hits(kind: type, columns: Any, counts: Any) -> list[Any]:
    return backends.current().make_hits((kind, Hits, Holding), "answer", *columns, counts)


def test_hits_have_the_contents_of_their_query(backend: str) -> None:
    columns = ["a", "b", "c"], [3.0, 2.0, 1.0]
    first, none, last = made_hits(Hit, columns, iter([2, 0, 1]))
    assert [type(one) for one in (first, none, last)] == [Hits] * 3
    assert [(hit.id, hit.score, hit._position) for hit in first] == [("a", 3.0, 0), ("b", 2.0, 1)]
    assert [(hit.id, hit.score, hit._position) for hit in last] == [("c", 1.0, 0)]
    assert none == []
    assert first[0]._contents is first[1]._contents is not last[0]._contents
    assert vars(last[0]._contents) == {
        "_answer": "answer",
        "_query": 2,
        "_first": 2,
        "_last": 3,
        "_read": {},
    }
    assert made_hits(Hit, ([], []), []) == []


@pytest.mark.parametrize("counts", [[3], [1, 2], [-1], [1, -1], [2**62, 2**62]])
def test_no_hit_is_made_of_nothing(backend: str, counts: list[int]) -> None:
    with pytest.raises((ValueError, OverflowError)):
        made_hits(Hit, (["a", "b"], [2.0, 1.0]), counts)


def test_what_a_slot_held_is_given_up(backend: str) -> None:
    class Slotted:
        __slots__ = ("__dict__", "_contents", "id", "score")

    class Below(Slotted):  # of which "_position" is no slot
        pass

    id, score = "".join(["long ", "and new"]), float("1.5")
    counts = sys.getrefcount(id), sys.getrefcount(score)
    for kind in (Hit, Slotted, Below):
        (made,) = made_hits(kind, ([id], [score]), [1])
        assert (made[0].id, made[0].score, made[0]._position) == (id, score, 0)
        del made
    assert (sys.getrefcount(id), sys.getrefcount(score)) == counts


def test_columns_of_hits_are_as_long_as_each_other(backend: str) -> None:
    with pytest.raises(ValueError, match="differ in number"):
        made_hits(Hit, (["a", "b"], [1.0]), [2])


def test_lists_may_change_while_hits_are_made(backend: str) -> None:
    ids, scores = ["a", "b", "c"], [1.0, 2.0, 3.0]

    class Greedy:
        @property
        def id(self) -> str:
            return "a"

        @id.setter
        def id(self, value: str) -> None:
            ids.clear()
            scores.clear()

    with suppress(IndexError):
        (made,) = made_hits(Greedy, (ids, scores), [3])
        assert [vars(one)["score"] for one in made] == [1.0, 2.0, 3.0]
