"""Cost: what a search takes, stage by stage, and how much it reads."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

from bm25rag.documents import columns
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.python_code import program, search_call
from bm25rag.kernels import backend
from bm25rag.search.finding import check_wanted, find_one
from bm25rag.search.query_terms import terms_of

# A stage is repeated so often, or for so many seconds.
_ROUNDS, _SECONDS = 25, 0.25
_Result = TypeVar("_Result")


def cost_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return the times of the stages of a search: the first, the median and the least."""
    side = desk.side(asked.settings)
    snapshot, query = side.index._snapshot, asked.query(side.index)
    stages: list[dict[str, Any]] = []

    def timed(name: str, what: str, work: Callable[[], _Result]) -> _Result:
        times: list[float] = []
        while len(times) < _ROUNDS and sum(times) <= _SECONDS:
            begun = perf_counter()
            result = work()
            times.append(perf_counter() - begun)
        best = {"first": times[0], "median": median(times), "least": min(times)}
        stages.append({"name": name, "what": what, "rounds": len(times), **best})
        return result

    terms = timed(
        "analysis", "the question becomes terms", lambda: terms_of(snapshot.analyzer, query)
    )
    wanted = timed(
        "filter",
        "the filter is read and checked",
        lambda: check_wanted(snapshot, asked.size, asked.filter, None, asked.offset),
    )
    rows, scores = timed(
        "search", "documents are scored and ranked", lambda: find_one(snapshot, terms, wanted)
    )
    timed(
        "reading",
        f"ids, texts and metadata of {len(rows)} hits",
        lambda: columns(snapshot.hits(rows, scores, None, terms), "id", "text", "metadata"),
    )
    total = sum(stage["median"] for stage in stages)
    cache, numbers = snapshot.term_numbers(dict.fromkeys(terms))
    frequencies = [int(cache.frequencies[number]) if number >= 0 else 0 for number in numbers]
    return {
        "question": asked.question,
        "filter": asked.filter,
        "stages": [{**stage, "share": stage["median"] / total} for stage in stages],
        "total": total,
        "terms": len(frequencies),
        "postings": sum(frequencies),
        "documents": len(side.index),
        "hits": len(rows),
        "hot_loops": backend.chosen(),
        "python": program(
            desk,
            side,
            asked,
            f"print(timeit(lambda: {search_call(asked)}, number=100) / 100)",
            before=["from timeit import timeit", ""],
        ),
    }
