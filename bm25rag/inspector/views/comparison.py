"""Compare: what one question finds under two settings, or in two commits, or now and then."""

from __future__ import annotations

from typing import Any

from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk, Side
from bm25rag.inspector.python_code import comparison_code
from bm25rag.inspector.views.shown import grades_of, quality, settings_of

# How deep the other side is searched for the rank of a document.
_DEPTH = 1_000


def comparison_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return the best documents of both sides, those gained and lost, and how good each side is."""
    sides = {"a": desk.side(asked.settings), "b": desk.side(asked.other)}
    rankings = {name: _found(side, asked) for name, side in sides.items()}
    ids = {name: [id for id, _ in ranking] for name, ranking in rankings.items()}
    ranks = {name: {id: rank for rank, id in enumerate(own, 1)} for name, own in ids.items()}
    grades = grades_of(desk, asked.question)
    shown: dict[str, Any] = {}
    for name, other in (("a", "b"), ("b", "a")):
        shown[name] = {
            "settings": settings_of(sides[name]),
            "baseline": sides[name].settings.baseline,
            "documents": len(sides[name].index),
            "quality": quality(ids[name][:100], grades),
            "hits": [
                {
                    "rank": rank,
                    "id": id,
                    "score": score,
                    "other_rank": ranks[other].get(id),
                    "grade": grades.get(id),
                }
                for rank, (id, score) in enumerate(rankings[name][: asked.size], 1)
            ],
        }
    top = {name: ids[name][: asked.size] for name in ids}
    return {
        "question": asked.question,
        "size": asked.size,
        "depth": _DEPTH,
        **shown,
        "gained": [id for id in top["b"] if id not in set(top["a"])],
        "lost": [id for id in top["a"] if id not in set(top["b"])],
        "moved": sum(ranks["a"][id] != ranks["b"][id] for id in {*top["a"]} & {*top["b"]}),
        "same": rankings["a"] == rankings["b"],
        "commits": commits_of(desk),
        "baseline": baseline_of(desk),
        "python": comparison_code(desk, sides["a"], sides["b"], asked),
    }


def commits_of(desk: Desk) -> list[dict[str, str]]:
    """Return the commits of the folder, the last first."""
    return [{"id": one.id, "time": one.time.isoformat()} for one in desk.opened.commits()]


def baseline_of(desk: Desk) -> dict[str, Any] | None:
    """Return what the baseline is; ``None`` if there is none."""
    if desk.baseline is None:
        return None
    side = desk.baseline.side
    names = ("variant", "k1", "b", "delta", "fields")
    settings = {name: getattr(side.index, name) for name in names}
    return {"time": desk.baseline.time, "commit_id": side.saved.commit_id, **settings}


def _found(side: Side, asked: Asked) -> list[tuple[str, float]]:
    query = asked.query(side.index)
    batch = side.index.search_batch([query], max(_DEPTH, asked.size), asked.filter)
    return [*zip(batch.ids()[0], batch.scores[0].tolist(), strict=False)]
