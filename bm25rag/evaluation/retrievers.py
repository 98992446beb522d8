"""Any retriever as a function from a query and k to ids and scores, and its rankings checked."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, TypeAlias

from bm25rag.evaluation.measures import unrankable

Found: TypeAlias = list[tuple[str, float]]


def answering(retriever: Any) -> Callable[[str, int], Found]:
    """Return a function that asks a retriever; its methods tell which framework it is of.

    It is a callable from a query and k to ids, or to pairs of id and score, best first; or a
    retriever of LangChain (``invoke``), LlamaIndex (``retrieve``) or Haystack (``run``) whose
    documents or nodes have ids. What gives no scores gets ones that fall by rank.
    """
    ask = _asking(retriever)
    return lambda query, k: _pairs(list(ask(query, k))[:k])


def _asking(retriever: Any) -> Callable[[str, int], Iterable[Any]]:
    if hasattr(retriever, "invoke"):  # takes its k when it is made
        return lambda query, k: [one.id for one in retriever.invoke(query)]
    if hasattr(retriever, "retrieve"):
        return lambda query, k: [one.node.node_id for one in retriever.retrieve(query)]
    if hasattr(retriever, "run"):
        return lambda query, k: [one.id for one in retriever.run(query=query, top_k=k)["documents"]]
    if callable(retriever):
        return retriever  # type: ignore[no-any-return]
    raise TypeError(
        "expected a callable from a query and k to ids, or a retriever of LangChain, LlamaIndex or "
        f"Haystack, got {type(retriever).__name__}"
    )


def _pairs(returned: Sequence[Any]) -> Found:
    if all(isinstance(one, str) for one in returned):
        return [(id, float(-rank)) for rank, id in enumerate(returned)]
    for one in returned:
        if not (isinstance(one, (tuple, list)) and len(one) == 2 and isinstance(one[0], str)):
            raise TypeError(
                "a retriever must return ids (str), or pairs of id and score, or documents that "
                f"have ids; it returned {one!r:.100}"
            )
    return [(id, float(score)) for id, score in returned]


def ranks(query: str, ranking: Found, known: Container[str] | None = None) -> dict[str, float]:
    """Return a ranking as scores that fall by rank; refuse anything that is not a ranking."""
    ids, scores = [id for id, _ in ranking], [score for _, score in ranking]
    for id in ids:
        if known is not None and id not in known:
            raise ValueError(f"{id!r}, found for query {query!r}, is not the id of a document")
    if len(set(ids)) < len(ids):
        raise ValueError(f"a document occurs twice for query {query!r}")
    for id, score in ranking:
        if wrong := unrankable(score):
            raise ValueError(f"the score of {id!r} for query {query!r} {wrong}")
    if scores != sorted(scores, reverse=True):
        raise ValueError(f"scores for query {query!r} are not in descending order")
    return {id: float(-rank) for rank, id in enumerate(ids)}
