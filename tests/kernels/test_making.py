"""Objects that are made many at a time are those that Python would make one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bm25rag import Hit
from bm25rag.adapters import make_models
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


def test_models_have_the_values_and_sets_of_their_own(backend: str) -> None:
    values = [{"text": "a", "more": []}, {"text": "b"}]
    models = make_models(Model, iter(values), {"text": None}.keys())
    assert [type(one) for one in models] == [Model, Model]
    for model, own in zip(models, values, strict=True):
        assert vars(model) is own
        assert model.__pydantic_fields_set__ == {"text"}
        assert model.__pydantic_extra__ is None
        assert model.__pydantic_private__ is None
    assert models[0].__pydantic_fields_set__ is not models[1].__pydantic_fields_set__
    assert make_models(Model, [], set()) == []


def test_what_cannot_be_made_is_an_error(backend: str) -> None:
    def each() -> Iterator[dict[str, Any]]:
        yield {}
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        make_models(Model, each(), set())
    with pytest.raises((TypeError, AttributeError)):
        make_models("Model", [{}], set())  # type: ignore[type-var]
    with pytest.raises(AttributeError):
        make_models(Hit, [{}], set())  # which has other slots
    with pytest.raises(ValueError, match=r"differ in length|shorter"):
        backends.current().make_unread(Hit, ["a", "b"], [1.0], None)


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

    made = backends.current().make_unread(Greedy, ids, scores, None)
    assert [vars(one)["score"] for one in made] == [1.0, 2.0, 3.0][: len(made)]
