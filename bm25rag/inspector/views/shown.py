"""What several views show: settings, scores by term, ranks, quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bm25rag.documents import Hit
from bm25rag.errors import MissingDependencyError
from bm25rag.evaluation.measures import evaluate
from bm25rag.filters import FilterSpec
from bm25rag.index import BM25Index
from bm25rag.inspector.desk import Desk, Side
from bm25rag.scoring.variants import VARIANTS
from bm25rag.search.explain import Explanation, labels_of
from bm25rag.search.query import Query
from bm25rag.search.query_terms import QueryLike

MEASURE = "nDCG@10"
# How many characters of a text a list shows, and of another field.
SNIPPET, FIELD_SNIPPET = 400, 160
# In how many characters of a text the words of the question are looked for.
_SEARCHED = 200_000
# Terms that a bar and a legend tell apart; the others share one colour.
COLOURS = 10
_SLIDER = {"k1": 3.0, "b": 1.0, "delta": 2.0}


def settings_of(side: Side) -> dict[str, Any]:
    """Return the settings of a side: what is saved, what is asked for, and the choices."""
    saved, index = side.saved, side.index
    names = [name for name in ("k1", "b", "delta") if getattr(index, name) is not None]
    sliders = [_slider(name, getattr(saved, name), getattr(index, name)) for name in names]
    weights = {f"w.{name}": one for name, one in (saved.fields or {}).items()}
    now = {f"w.{name}": one for name, one in (index.fields or {}).items()}
    further = [weight for _, weight in saved.analyzer.also]
    weights |= {f"also.{number}": one for number, one in enumerate(further, 1)}
    now |= {f"also.{number}": one for number, (_, one) in enumerate(index.analyzer.also, 1)}
    return {
        "variant": index.variant,
        "variant_saved": saved.variant,
        "variants": list(VARIANTS),
        "delta_on": index.delta_on,
        "sliders": sliders,
        "weights": [_slider(name, one, now[name]) for name, one in weights.items()],
        "commit_id": saved.commit_id,
        "commit": side.settings.commit,
        "is_tuned": side.is_tuned,
    }


def _slider(name: str, saved: float | None, now: float) -> dict[str, Any]:
    maximum = max(_SLIDER.get(name, 10.0), saved or 0.0, now)
    return {"name": name, "saved": saved, "now": now, "most": maximum}


def shares_of(explanation: Explanation) -> list[dict[str, Any]]:
    """Return the parts of a score, each with the number of its term; the last is the shift."""
    scores = [share.contribution for share in explanation.terms]
    parts: list[dict[str, Any]] = [
        {"term": label, "number": number, "score": score}
        for number, (label, score) in enumerate(
            zip(labels_of(explanation.terms), scores, strict=True)
        )
        if score and number < COLOURS
    ]
    if any(others := scores[COLOURS:]):
        parts.append({"term": "other terms", "number": COLOURS, "score": sum(others)})
    if explanation.shift:
        parts.append({"term": "shift", "number": COLOURS, "score": explanation.shift})
    return parts


def explained_terms(explanation: Explanation) -> list[dict[str, Any]]:
    """Return the terms of an explanation as JSON values."""
    terms = zip(labels_of(explanation.terms), explanation.terms, strict=True)
    return [
        {
            "term": label,
            "number": min(number, COLOURS),
            "count": share.count,
            "df": share.document_frequency,
            "idf": share.idf,
            "tf": share.tf,
            "f": share.f,
            "score": share.contribution,
            "fields": share.fields,
        }
        for number, (label, share) in enumerate(terms)
    ]


def hit_of(hit: Hit, rank: int) -> dict[str, Any]:
    """Return a hit as JSON values; of a long text, the part with the words."""
    text = None if hit.text is None else snippet_of(hit, SNIPPET)
    fields = fields_of(hit, FIELD_SNIPPET)
    shown = {"rank": rank, "id": hit.id, "score": hit.score, "text": text}
    return {**shown, "fields": fields, "metadata": hit.metadata}


def fields_of(hit: Hit, width: int) -> dict[str, Any]:
    """Return the part of each field beside the text that has the most words of the question."""
    own = hit.fields or {}
    return {name: snippet_of(hit.of_field(name), width) for name in own if own[name] != hit.text}


def snippet_of(hit: Hit, width: int) -> dict[str, Any]:
    """Return the part of the text of a hit that has the most words of the question."""
    length = len(hit.text or "")
    if length > _SEARCHED:
        hit.text = (hit.text or "")[:_SEARCHED]
    text, start, spans = hit.snippet(width)
    left_out = length - start - len(text)
    shown = {"text": text, "spans": [*map(list, spans)]}
    return {**shown, "before": start > 0, "after": left_out > 0}


def total_of(index: BM25Index, query: QueryLike, filter: FilterSpec | None) -> int:
    """Return how many documents match; of a question with parts, those found within its time."""
    if isinstance(query, Query):  # its totals would look into all texts, however long that takes
        return int(index.search_batch([query], len(index), filter).counts[0])
    return int(index.search_batch([query], 1, filter).totals()[0])


def rank_of(
    index: BM25Index, query: QueryLike, id: str, score: float, filter: FilterSpec | None
) -> int | None:
    """Return the rank of a document with this score; ``None`` if no search returns it."""
    batch = index.search_batch([query], len(index), filter, min_score=score)
    scores = batch.scores[0, : int(batch.counts[0])]
    first = int(np.count_nonzero(scores > score))
    alike = index.search(query, len(scores) - first, filter, min_score=score, offset=first)
    ids = [hit.id for hit in alike]
    return first + ids.index(id) + 1 if id in ids else None


def quality(ids: Sequence[str], grades: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the measure of one ranking; ``None`` where nothing is judged."""
    if not grades:
        return None
    try:
        evaluation = evaluate(
            {"q": {id: float(-n) for n, id in enumerate(ids)}}, {"q": grades}, MEASURE
        )
    except MissingDependencyError as error:
        return {"missing": str(error)}
    return {"mean": evaluation.mean[MEASURE]}


def grades_of(desk: Desk, question: str) -> Mapping[str, int]:
    """Return the grades of a question; none if there is no file of judgements."""
    return {} if desk.judgements is None else desk.judgements.grades(question)
