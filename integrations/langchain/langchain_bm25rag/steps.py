"""What is done to a vector store or a record manager, step by step, at once or awaited.

A plan is a generator: it yields steps, and is sent their results. One plan serves a synchronous
method and its asynchronous twin, in which what the plan itself does runs in the index's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from bm25rag import BM25Index
from bm25rag.adapters import in_write_thread

_T = TypeVar("_T")


class Step(NamedTuple):
    """A call of a method, or of its twin with an a in front."""

    owner: Any
    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - never changed


class _End(NamedTuple, Generic[_T]):
    value: _T


Plan: TypeAlias = Generator[Step, Any, _T]


def run(plan: Plan[_T]) -> _T:
    """Take all steps, and return the result of the plan."""
    step = _after(partial(next, plan))
    while not isinstance(step, _End):
        try:
            answer = getattr(step.owner, step.method)(*step.args, **step.kwargs)
        except BaseException as error:
            step = _after(partial(plan.throw, error))
        else:
            step = _after(partial(plan.send, answer))
    result: _T = step.value
    return result


async def arun(plan: Plan[_T], index: BM25Index) -> _T:
    """Do what ``run`` does, with asynchronous methods."""
    step = await in_write_thread(index, _after, partial(next, plan))
    while not isinstance(step, _End):
        try:
            answer = await getattr(step.owner, f"a{step.method}")(*step.args, **step.kwargs)
        except BaseException as error:
            step = await in_write_thread(index, _after, partial(plan.throw, error))
        else:
            step = await in_write_thread(index, _after, partial(plan.send, answer))
    result: _T = step.value
    return result


def _after(go_on: Callable[[], Step]) -> Step | _End[Any]:
    try:
        return go_on()
    except StopIteration as end:
        return _End(end.value)
