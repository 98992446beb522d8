"""Spans and metrics of searches for OpenTelemetry, which ``instrument`` turns on.

Until then nothing is imported and nothing added to a search. The names are those of
OpenTelemetry's conventions for generative AI, where these have one.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from bm25rag import index as index_module
from bm25rag import vectors as vectors_module
from bm25rag.common.optional import load
from bm25rag.common.version import __version__
from bm25rag.index import BM25Index
from bm25rag.search import hybrid_and_fused
from bm25rag.search.query import Query
from bm25rag.search.results import BatchResult
from bm25rag.vectors import Vectors

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["instrument", "uninstrument"]

# What is timed of a search: functions by the modules that call them.
_STAGES: Mapping[str, tuple[tuple[ModuleType, str], ...]] = {
    "arguments": ((index_module, "check_wanted"), (vectors_module, "check_wanted")),
    "analysis": (
        (index_module, "terms_of"),
        (index_module, "terms_of_each"),
        (vectors_module, "vector_terms"),
        (vectors_module, "vector_terms_each"),
    ),
    "matching": (
        (index_module, "find"),
        (index_module, "find_one"),
        (hybrid_and_fused, "find"),
        (hybrid_and_fused, "find_both"),
        (vectors_module, "find"),
        (vectors_module, "find_one"),
    ),
}
_METHODS: tuple[tuple[type, str, str], ...] = (
    (BM25Index, "search", "search"),
    (BM25Index, "search_batch", "search_batch"),
    (BM25Index, "search_fused", "search_fused"),
    (BM25Index, "search_hybrid", "search_hybrid"),
    (Vectors, "search", "vectors.search"),
    (Vectors, "search_batch", "vectors.search_batch"),
)
# In seconds: those of the convention begin at 10 ms.
_BUCKETS = [n * 10.0**e for e in range(-5, 1) for n in (1, 2.5, 5)]
_RETRIEVAL = {"gen_ai.operation.name": "retrieval", "gen_ai.provider.name": "bm25rag"}

_replaced: list[tuple[Any, str, Any]] = []
_lock = threading.Lock()
_running = threading.local()


class _Instruments(NamedTuple):
    """What spans and metrics are made with, and what spans show."""

    tracer: Any
    duration: Any
    count: Any
    error: Any
    ids: bool
    texts: bool


def instrument(
    *,
    ids: bool = False,
    texts: bool = False,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> None:
    """Let every search of this process make a span and count in two metrics, from now on.

    Called again, it replaces what was asked for before. ``docs/operating.md`` lists the attributes.

    Parameters
    ----------
    ids
        Whether spans show the ids and scores of what was found.
    texts
        Whether spans show the texts of queries.
    tracer_provider, meter_provider
        Those of OpenTelemetry; ``None`` for those that are set globally.

    Raises
    ------
    MissingDependencyError
        If OpenTelemetry is not installed, which the extra ``otel`` brings.
    """
    need = "telemetry needs OpenTelemetry"
    trace = load("opentelemetry.trace", need, "otel")
    metrics = load("opentelemetry.metrics", need, "otel")
    meter = metrics.get_meter("bm25rag", __version__, meter_provider)
    instruments = _Instruments(
        trace.get_tracer("bm25rag", __version__, tracer_provider),
        meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Duration of a retrieval.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        ),
        meter.create_counter(
            "bm25rag.retrieval.documents", unit="{document}", description="Documents retrieved."
        ),
        trace.StatusCode.ERROR,
        ids,
        texts,
    )
    with _lock:
        _restore()
        for stage, functions in _STAGES.items():
            for module, name in functions:
                _replace(module, name, _timed(stage, getattr(module, name)))
        for kind, name, called in _METHODS:
            _replace(kind, name, _traced(called, getattr(kind, name), instruments))


def uninstrument() -> None:
    """Undo ``instrument``."""
    with _lock:
        _restore()


def _replace(owner: Any, name: str, new: Any) -> None:
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, new)


def _restore() -> None:
    while _replaced:
        setattr(*_replaced.pop())


def _timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        times = getattr(_running, "times", None)
        if times is None:  # not within a search, but of ``explain``, say
            return function(*arguments, **options)
        start = perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            times[stage] = times.get(stage, 0.0) + perf_counter() - start

    return call


def _traced(
    called: str, method: Callable[..., Any], instruments: _Instruments
) -> Callable[..., Any]:
    _, *names = inspect.signature(method).parameters

    @wraps(method)
    def search(self: Any, *arguments: Any, **options: Any) -> Any:
        given = dict(zip(names, arguments, strict=False)) | options
        index = self if isinstance(self, BM25Index) else _index_of(self)
        attributes = {**_RETRIEVAL, "bm25rag.method": called}
        if index is not None and (source := index._live.attachment.source) is not None:
            attributes["gen_ai.data_source.id"] = source
        before = None if index is None else index.commit_id
        with _span(attributes, instruments) as span:
            with _timing(span, attributes, instruments):
                answer = method(self, *arguments, **options)
            if span.is_recording():
                after = None if index is None else index.commit_id
                if before is not None and before == after:  # or another thread has refreshed
                    span.set_attribute("bm25rag.commit_id", before)
                span.set_attributes(_asked(given, instruments.texts) | _found(answer, instruments))
            instruments.count.add(_count(answer), attributes)
        return answer

    return search


def _span(attributes: dict[str, Any], instruments: _Instruments) -> Any:
    name = f"retrieval {attributes.get('gen_ai.data_source.id', '')}".strip()
    # What ``record_exception`` shows has the message, which may have texts.
    options = {"record_exception": False, "set_status_on_exception": False}
    return instruments.tracer.start_as_current_span(name, attributes=attributes, **options)


@contextmanager
def _timing(span: Span, attributes: dict[str, Any], instruments: _Instruments) -> Iterator[None]:
    """Time a search and its stages, note an error, and tell the span and the metric."""
    outer, times = getattr(_running, "times", None), dict[str, float]()
    _running.times, start = times, perf_counter()
    try:
        yield
    except Exception as error:
        attributes["error.type"] = type(error).__name__
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(instruments.error)
        raise
    finally:
        total, _running.times = perf_counter() - start, outer
        times["results"] = total - sum(times.values())
        span.set_attributes({f"bm25rag.{stage}_us": s * 1e6 for stage, s in times.items()})
        instruments.duration.record(total, attributes)


def _asked(given: Mapping[str, Any], texts: bool) -> dict[str, Any]:
    """Return what was asked for."""
    asked: dict[str, Any] = {
        "gen_ai.retrieval.top_k": int(given.get("k", 10)),
        "bm25rag.filter": given.get("filter") not in (None, {}),
    }
    if texts and (text := _text_of(given)) is not None:
        asked["gen_ai.retrieval.query.text"] = text
    return asked


def _text_of(given: Mapping[str, Any]) -> str | None:
    """Return the texts of queries; none of vectors, weights, and what can be read once alone."""
    if "query" in given:
        return _words_of(given["query"])
    queries = given.get("queries")
    words = map(_words_of, queries) if isinstance(queries, (list, tuple)) else [None]
    shown = [one for one in words if one is not None]
    return json.dumps(shown) if shown else None


def _words_of(query: object) -> str | None:
    if isinstance(query, (list, tuple)):
        return " ".join(map(str, query))
    return (
        query.as_text() if isinstance(query, Query) else query if isinstance(query, str) else None
    )


def _found(answer: Any, instruments: _Instruments) -> dict[str, Any]:
    """Return what was found."""
    shown: dict[str, Any] = {"bm25rag.hits": _count(answer)}
    if isinstance(answer, BatchResult):
        shown["bm25rag.queries"] = len(answer.counts)
    if instruments.ids:
        lists = answer.hits() if isinstance(answer, BatchResult) else [answer]
        documents = [
            {"id": hit.id, "score": hit.score} | ({"query": number} if len(lists) > 1 else {})
            for number, hits in enumerate(lists)
            for hit in hits
        ]
        shown["gen_ai.retrieval.documents"] = json.dumps(documents)
    return shown


def _count(answer: Any) -> int:
    return int(answer.counts.sum()) if isinstance(answer, BatchResult) else len(answer)


def _index_of(vectors: Vectors) -> BM25Index | None:
    """Return the index whose vectors are searched."""
    (index, *_) = getattr(vectors._whole, "args", (None,))
    return index if isinstance(index, BM25Index) else None
