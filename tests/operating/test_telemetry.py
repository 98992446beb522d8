"""Spans and metrics as OpenTelemetry's own exporters receive them."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Query, telemetry
from bm25rag.agents import search
from bm25rag.errors import MissingDependencyError
from bm25rag.following import follow

metrics = pytest.importorskip("opentelemetry.sdk.metrics")
exports = pytest.importorskip("opentelemetry.sdk.metrics.export")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
processors = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

SECRET = "secretword"
ASKED: dict[str, Callable[[BM25Index], Any]] = {
    "search": lambda index: index.search(f"{SECRET} boat", k=2, filter={"n": {"$lt": 2}}),
    "search_batch": lambda index: index.search_batch([f"{SECRET} boat", "sea"], 2, {"n": 1}),
    "search_fused": lambda index: index.search_fused([f"{SECRET} boat", "sea"], 2),
    "search_hybrid": lambda index: index.search_hybrid(f"{SECRET} boat", {"a": 1.0}, k=2),
    "vectors.search": lambda index: index.vectors.search({SECRET: 1.0, "a": 1.0}, k=2),
    "vectors.search_batch": lambda index: index.vectors.search_batch([{SECRET: 1.0}], k=2),
}


class Seen:
    """What the exporters have received."""

    def __init__(self) -> None:
        self._spans, self._metrics = memory.InMemorySpanExporter(), exports.InMemoryMetricReader()
        self.tracers = sdk.TracerProvider()
        self.tracers.add_span_processor(processors.SimpleSpanProcessor(self._spans))
        self.meters = metrics.MeterProvider([self._metrics])

    def start(self, **shown: bool) -> None:
        telemetry.instrument(tracer_provider=self.tracers, meter_provider=self.meters, **shown)

    def spans(self) -> list[Any]:
        found = [*self._spans.get_finished_spans()]
        self._spans.clear()
        return found

    def points(self) -> dict[str, list[Any]]:
        data = self._metrics.get_metrics_data()
        return {
            metric.name: [*metric.data.data_points]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def seen() -> Iterator[Seen]:
    yield Seen()
    telemetry.uninstrument()


@pytest.fixture
def index(tmp_path: Path) -> BM25Index:
    made = BM25Index.from_texts(
        [f"red boat {SECRET}", "a boat at sea", "tea"],
        metadata=[{"n": n} for n in range(3)],
        vectors=[{"a": 1.0}, {SECRET: 2.0}, None],
    )
    made.save(tmp_path / "it")
    return BM25Index.open(tmp_path / "it")


@pytest.mark.parametrize("name", ASKED)
def test_each_retrieval_is_one_span_without_texts_and_ids(
    seen: Seen, index: BM25Index, name: str
) -> None:
    expected = ASKED[name](index)
    seen.start()
    assert _ids(ASKED[name](index)) == _ids(expected)
    (span,) = seen.spans()
    attributes = dict(span.attributes)
    folder = index._live.attachment.folder  # type: ignore[attr-defined]
    assert span.name == f"retrieval {folder}"
    stages = {key: attributes.pop(key) for key in [*attributes] if key.endswith("_us")}
    assert set(stages) == {
        f"bm25rag.{stage}_us" for stage in ("arguments", "analysis", "matching", "results")
    }
    took = (span.end_time - span.start_time) / 1000
    assert 0 < sum(stages.values()) <= took
    assert stages["bm25rag.matching_us"] > 0
    batch = len(expected.counts) if "batch" in name else None
    hits = int(expected.counts.sum()) if batch else len(expected)
    assert attributes == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.provider.name": "bm25rag",
        "gen_ai.data_source.id": folder,
        "gen_ai.retrieval.top_k": 2,
        "bm25rag.method": name,
        "bm25rag.filter": name in ("search", "search_batch"),
        "bm25rag.hits": hits,
        "bm25rag.commit_id": index.commit_id,
    } | ({"bm25rag.queries": batch} if batch else {})
    assert hits
    assert SECRET not in span.to_json()
    points = seen.points()
    (duration,) = points["gen_ai.client.operation.duration"]
    assert duration.count == 1
    assert 0 < duration.sum * 1e6 <= took
    assert duration.explicit_bounds[0] == 1e-5
    (count,) = points["bm25rag.retrieval.documents"]
    assert count.value == hits
    assert count.attributes["bm25rag.method"] == name


VIEWS: dict[str, Callable[[BM25Index], BM25Index]] = {
    "snapshot": BM25Index.snapshot,
    "followed": lambda index: follow(index._live.attachment.source or "").current,
    "tune": lambda index: index.tune(k1=2),
    "restricted": lambda index: index.restricted({"n": 0}).snapshot(),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_has_the_folder_of_its_index(
    seen: Seen, index: BM25Index, view: Callable[[BM25Index], BM25Index], tmp_path: Path
) -> None:
    seen.start()
    assert view(index).search("boat")
    (span,) = seen.spans()
    assert span.name == f"retrieval {tmp_path / 'it'}"
    assert span.attributes["gen_ai.data_source.id"] == str(tmp_path / "it")


def _ids(found: Any) -> Any:
    return found.ids() if hasattr(found, "ids") else [(hit.id, hit.score) for hit in found]


@pytest.mark.parametrize("name", ASKED)
def test_ids_scores_and_queries_are_shown_if_asked_for(
    seen: Seen, index: BM25Index, name: str
) -> None:
    seen.start(ids=True, texts=True)
    found = ASKED[name](index)
    (span,) = seen.spans()
    lists = found.hits() if "batch" in name else [found]
    shown = json.loads(span.attributes["gen_ai.retrieval.documents"])
    assert [(one["id"], one["score"]) for one in shown] == [
        (hit.id, hit.score) for hits in lists for hit in hits
    ]
    asked = span.attributes.get("gen_ai.retrieval.query.text", "")
    assert (SECRET in asked) is not name.startswith("vectors")
    assert "at sea" not in span.to_json()


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda index: index.search(Query("red", also=["sea"])), "red sea"),
        (lambda index: index.search(["red", "boat"]), "red boat"),
        (lambda index: index.search_batch([Query("red"), "sea"]), '["red", "sea"]'),
        (lambda index: index.search({"red": 2.0}), None),
        (lambda index: index.search_batch(iter(["red"])), None),
    ],
)
def test_queries_of_every_kind_are_shown_as_words(
    seen: Seen, index: BM25Index, ask: Callable[[BM25Index], Any], text: str | None
) -> None:
    seen.start(texts=True)
    ask(index)
    (span,) = seen.spans()
    assert span.attributes.get("gen_ai.retrieval.query.text") == text


@pytest.mark.parametrize(
    "asked", [{}, {"also": ["sea"]}, {"vector": {"a": 1.0}}, {"query": None, "vector": {"a": 1.0}}]
)
def test_a_search_of_an_agent_is_one_span(
    seen: Seen, index: BM25Index, asked: dict[str, Any]
) -> None:
    seen.start()
    answer = search(index, **{"query": "boat", "k": 1, **asked})
    assert answer.content["total"] >= 1
    (span,) = seen.spans()
    assert span.attributes["bm25rag.commit_id"] == index.commit_id


def test_errors_are_named_without_their_messages_and_spans_have_parents(
    seen: Seen, index: BM25Index
) -> None:
    seen.start()
    with (
        pytest.raises(ValueError, match="k must be"),
        seen.tracers.get_tracer("mine").start_as_current_span("request"),
    ):
        index.search(SECRET, k=-1)
    span, request = seen.spans()
    assert span.parent.span_id == request.context.span_id
    assert span.attributes["error.type"] == "ValueError"
    assert not span.status.is_ok
    assert SECRET not in span.to_json()
    (duration,) = seen.points()["gen_ai.client.operation.duration"]
    assert duration.attributes["error.type"] == "ValueError"


def test_threads_do_not_mix_their_stages(seen: Seen, index: BM25Index) -> None:
    seen.start()
    threads = [
        threading.Thread(target=lambda: [ASKED["search"](index) for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = seen.spans()
    assert len(spans) == 200
    for span in spans:
        stages = [value for key, value in span.attributes.items() if key.endswith("_us")]
        assert len(stages) == 4
        assert sum(stages) <= (span.end_time - span.start_time) / 1000


def test_it_can_be_turned_off_and_on_and_leaves_all_as_it_was(seen: Seen, index: BM25Index) -> None:
    before = BM25Index.search, BM25Index.search_batch
    for _ in range(2):
        seen.start()
        seen.start(ids=True)  # in place of the first
        index.search("boat")
        index.explain("boat", "0")
        index.snapshot().search("boat")
        copy.copy(index).search("boat")
        first, second, in_memory = seen.spans()
        assert "gen_ai.data_source.id" in first.attributes
        assert second.attributes["bm25rag.commit_id"] == index.commit_id
        assert in_memory.name == "retrieval"
        telemetry.uninstrument()
        assert (BM25Index.search, BM25Index.search_batch) == before
        index.search("boat")
        assert seen.spans() == []
    telemetry.uninstrument()


def test_nothing_is_imported_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import sys, bm25rag, bm25rag.telemetry; bm25rag.BM25Index.from_texts(['a b']).search('a');"
        " sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bm25rag\[otel\]'"):
        telemetry.instrument()
    assert not telemetry._replaced
