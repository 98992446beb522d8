"""Search: a page of hits with scores by term, moved ranks, counted values, and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk, Side
from bm25rag.inspector.python_code import program, search_call
from bm25rag.inspector.views.facets import MATCHES, facets
from bm25rag.inspector.views.shown import (
    explained_terms,
    grades_of,
    hit_of,
    quality,
    settings_of,
    shares_of,
    total_of,
)
from bm25rag.search.query_terms import QueryLike

# How deep the saved settings are searched for the ranks that documents had.
_BEFORE = 1_000


def search_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return a page of what a search finds."""
    side = desk.side(asked.settings)
    index, query, filter = side.index, asked.query(side.index), asked.filter
    batch = index.search_batch([query], asked.size, filter, offset=asked.offset)
    total, ranking = total_of(index, query, filter), batch.hits()[0]
    before = _ranks(side, query, asked) if side.is_tuned else {}
    grades = grades_of(desk, asked.question)
    hits = []
    for rank, hit in enumerate(ranking, asked.offset + 1):
        shown = hit_of(hit, rank)
        shown["shares"] = shares_of(index.explain(query, hit.id))
        if side.is_tuned:
            shown["before"] = before.get(hit.id)
        hits.append(shown | {"grade": grades.get(hit.id)})
    terms = explained_terms(index.explain(query, ranking[0].id)) if ranking else []
    return {
        "question": asked.question,
        "total": total,
        "page": asked.page,
        "pages": -(-total // asked.size),
        "size": asked.size,
        "terms": [{name: one[name] for name in ("term", "number", "df", "idf")} for one in terms],
        "hits": hits,
        "searched_before": _BEFORE if side.is_tuned else None,
        "facets": _facets(desk, side, asked) if ranking else [],
        "facets_of": min(total, MATCHES),
        "filter": filter,
        "settings": settings_of(side),
        "quality": _quality(side, query, asked, grades),
        "judged": len(grades),
        "python": program(
            desk,
            side,
            asked,
            f"hits = {search_call(asked)}",
            f"for rank, hit in enumerate(hits, {asked.offset + 1}):",
            "    print(rank, hit.id, hit.score)",
        ),
    }


def _facets(desk: Desk, side: Side, asked: Asked) -> list[dict[str, Any]]:
    """Return the values of the metadata; of the saved settings, so that sliders need not wait."""
    key = side.saved.commit_id, asked.question, asked.filter_text, asked.syntax
    if desk.counted[0] != key:
        desk.counted = key, facets(side.saved, asked.query(side.saved), asked.filter)
    return desk.counted[1]


def _ranks(side: Side, query: QueryLike, asked: Asked) -> dict[str, int]:
    """Return the ranks of documents under the saved settings."""
    depth = max(_BEFORE, asked.offset + 10 * asked.size)
    ids = side.saved.search_batch([query], depth, asked.filter).ids()[0]
    return {id: rank for rank, id in enumerate(ids, 1)}


def _quality(
    side: Side, query: QueryLike, asked: Asked, grades: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return how good the ranking is, and that of the saved settings; ``None``: not judged."""
    if not grades:
        return None
    measured = quality(side.index.search_batch([query], 100, asked.filter).ids()[0], grades)
    if side.is_tuned and measured is not None:
        own = quality(side.saved.search_batch([query], 100, asked.filter).ids()[0], grades)
        measured["saved"] = None if own is None else own.get("mean")
    return measured
