"""Child runs for the two sides of a hybrid search, as LangChain's tracers show them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document

_T = TypeVar("_T")


def traced(
    parent: CallbackManagerForRetrieverRun,
    name: str,
    query: str,
    ask: Callable[[], _T],
    documents: Callable[[_T], list[Document]],
) -> _T:
    """Ask, within a run of its own.

    Parameters
    ----------
    parent
        The run that it is a part of.
    name, query
        What is asked, and what for.
    ask
        The call.
    documents
        Returns the documents of an answer.
    """
    if not parent.inheritable_handlers:  # nobody looks
        return ask()
    run = parent.get_child().on_retriever_start(None, query, name=name)
    try:
        answer = ask()
    except BaseException as error:
        run.on_retriever_error(error)
        raise
    run.on_retriever_end(documents(answer))
    return answer


async def atraced(
    parent: AsyncCallbackManagerForRetrieverRun,
    name: str,
    query: str,
    ask: Callable[[], Coroutine[Any, Any, _T]],
    documents: Callable[[_T], list[Document]],
) -> _T:
    """Do what ``traced`` does, with a call that is awaited."""
    if not parent.inheritable_handlers:
        return await ask()
    run = await parent.get_child().on_retriever_start(None, query, name=name)
    try:
        answer = await ask()
    except BaseException as error:
        await run.on_retriever_error(error)
        raise
    await run.on_retriever_end(documents(answer))
    return answer
