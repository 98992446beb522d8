"""Calls of a dense store, by methods that are written once and run as functions or coroutines.

Such a method is a generator. It yields each ``Call`` and is sent what the store returned; if the
store raises, a ``DenseStoreError`` is thrown into it. Only who runs it knows whether to await.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeVar

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from bm25rag.errors import BM25Error

_T = TypeVar("_T")

_ASYNC = {
    "add": "async_add",
    "clear": "aclear",
    "delete": "adelete",
    "delete_nodes": "adelete_nodes",
    "query": "aquery",
}


class DenseStoreError(BM25Error, RuntimeError):
    """The dense store of a ``BM25VectorStore`` failed; the message says what the stores hold."""


class Call(NamedTuple):
    """A call of a method of the dense store.

    Parameters
    ----------
    method
        The name of the synchronous one.
    arguments
        Its arguments by name.
    after
        What holds if it fails, and what to do, for the message.
    """

    method: str
    arguments: dict[str, Any]
    after: str


Calls = Generator[Call, Any, _T]


def run(calls: Calls[_T], dense: BasePydanticVectorStore | None) -> _T:
    """Run a method, with the synchronous methods of the dense store."""
    done, value = _step(calls.send, None)
    while not done:
        try:
            answer = getattr(dense, value.method)(**value.arguments)
        except Exception as error:
            done, value = _step(calls.throw, _failed(dense, value, error))
        else:
            done, value = _step(calls.send, answer)
    return value  # type: ignore[no-any-return]  # _step says what it is


async def arun(
    calls: Calls[_T],
    dense: BasePydanticVectorStore | None,
    in_thread: Callable[..., Awaitable[tuple[bool, Any]]],
) -> _T:
    """Run a method with the asynchronous methods of the dense store, and the rest in a thread."""
    done, value = await in_thread(_step, calls.send, None)
    while not done:
        try:
            answer = await getattr(dense, _ASYNC[value.method])(**value.arguments)
        except Exception as error:
            failure = _failed(dense, value, error)
            done, value = await in_thread(_step, calls.throw, failure)
        else:
            done, value = await in_thread(_step, calls.send, answer)
    return value  # type: ignore[no-any-return]  # _step says what it is


def _step(go_on: Callable[[Any], Call], answer: object) -> tuple[bool, Any]:
    """Return whether the method has ended, and what it returned or calls next."""
    try:
        return False, go_on(answer)
    except StopIteration as end:  # no future can carry it
        return True, end.value


def _failed(dense: object, call: Call, error: Exception) -> DenseStoreError:
    name = type(dense).__name__
    problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    failure = DenseStoreError(
        f"the dense store ({name}) failed at {call.method}: {problem}; {call.after}"
    )
    failure.__cause__ = error
    return failure
