"""Judgements: the judged questions, and how good the settings of one or two sides are for them."""

from __future__ import annotations

from typing import Any

from bm25rag.errors import MissingDependencyError
from bm25rag.evaluation.measures import Evaluation, Qrels, evaluate
from bm25rag.evaluation.runs import run_of
from bm25rag.evaluation.significance import compare
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk, Side
from bm25rag.inspector.python_code import judged_code
from bm25rag.inspector.views.comparison import baseline_of, commits_of
from bm25rag.inspector.views.shown import MEASURE, settings_of

# Results of each question that are evaluated, and questions that are shown.
_DEPTH, _SHOWN = 100, 500


def judged_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return the judged questions with the measure under both settings."""
    a, b = desk.side(asked.settings), desk.side(asked.other)
    data: dict[str, Any] = {"measure": MEASURE, "file": None, "questions": [], "missing": None}
    data |= {"a": settings_of(a), "b": settings_of(b), "mean": None, "comparison": None}
    data |= {"commits": commits_of(desk), "baseline": baseline_of(desk), "judged": 0}
    data |= {"b_baseline": b.settings.baseline, "a_baseline": a.settings.baseline}
    data["python"] = judged_code(desk, a)
    if desk.judgements is None:
        return data
    qrels = desk.judgements.all()
    data |= {"file": str(desk.judgements.path.name), "judged": len(qrels)}
    if not qrels:
        return data
    texts = {id: desk.judgements.text_of(id) for id in qrels}
    different = a.index is not b.index and _key(a) != _key(b)
    try:
        before = evaluate(run_of(a.index, texts, _DEPTH), qrels, MEASURE)
        after = evaluate(run_of(b.index, texts, _DEPTH), qrels, MEASURE) if different else None
        if after is not None:
            data["comparison"] = compare(after, before, MEASURE).to_dict()
    except MissingDependencyError as error:
        return data | {"missing": str(error), "questions": _questions(texts, qrels, None, None)}
    data["mean"] = before.mean[MEASURE]
    return data | {"questions": _questions(texts, qrels, before, after)}


def _key(side: Side) -> tuple[object, ...]:
    index = side.index
    further = [weight for _, weight in index.analyzer.also]
    own = (index.variant, index.k1, index.b, index.delta, index.delta_on)
    return (side.saved.commit_id, *own, str(index.fields), str(further))


def _questions(
    texts: dict[str, str], qrels: Qrels, before: Evaluation | None, after: Evaluation | None
) -> list[dict[str, Any]]:
    def value(of: Evaluation | None, query: str) -> float | None:
        return None if of is None else of.per_query[query][MEASURE]

    rows: list[dict[str, Any]] = [
        {
            "id": query,
            "question": text,
            "judged": len(qrels[query]),
            "relevant": sum(grade > 0 for grade in qrels[query].values()),
            "a": value(before, query),
            "b": value(after, query),
        }
        for query, text in texts.items()
    ]
    if after is not None:  # what differs most comes first
        rows.sort(key=lambda one: -abs(one["b"] - one["a"]))
    return rows[:_SHOWN]
