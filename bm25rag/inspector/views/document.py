"""Why this document, or why not: its rank and its score by term, beside that of the best."""

from __future__ import annotations

from typing import Any

from bm25rag.documents import Document, Hit
from bm25rag.index import BM25Index
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.python_code import program, query_call
from bm25rag.inspector.views.shown import (
    explained_terms,
    fields_of,
    grades_of,
    rank_of,
    settings_of,
    shares_of,
    snippet_of,
    total_of,
)
from bm25rag.search.explain import Explanation
from bm25rag.search.query_terms import QueryLike

# How many characters of a text are shown.
_SHOWN = 20_000


def document_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return a document, and why a search returns it, or does not."""
    side = desk.side(asked.settings)
    index, query, filter = side.index, asked.query(side.index), asked.filter
    line = f"print(index.explain({query_call(asked)}, {asked.id or ''!r}))"
    data: dict[str, Any] = {
        "question": asked.question,
        "id": asked.id,
        "filter": filter,
        "settings": settings_of(side),
        "python": program(desk, side, asked, line),
        "found": False,
        "verdict": None,
    }
    if asked.id is None:
        return data
    documents = index.get([asked.id])
    if not documents:
        return data | {"verdict": f"There is no document with the id {asked.id!r}."}
    explanation = index.explain(query, asked.id)
    best = index.search(query, asked.size, filter)
    place = _place(index, query, filter, explanation)
    return {
        **data,
        **_contents(index, documents[0], query),
        **_score(explanation),
        **place,
        "found": True,
        "best": _score(index.explain(query, best[0].id)) if best else None,
        "grade": grades_of(desk, asked.question).get(asked.id),
        "verdict": _verdict(asked, explanation, place, best),
    }


def _score(explanation: Explanation) -> dict[str, Any]:
    """Return a score and its parts."""
    return {
        "id": explanation.id,
        "score": explanation.score,
        "matched": explanation.matched,
        "terms": explained_terms(explanation),
        "shares": shares_of(explanation),
        "shift": explanation.shift,
        "parts": [str(part) for part in explanation.parts],
    }


def _place(
    index: BM25Index, query: QueryLike, filter: dict[str, Any] | None, explanation: Explanation
) -> dict[str, Any]:
    """Return where the document is in the ranking, if it is there."""
    id, rank = explanation.id, None
    passes = bool(index.get([id], filter))
    if passes and explanation.matched:
        rank = rank_of(index, query, id, explanation.score, filter)
    return {"passes": passes, "rank": rank, "total": total_of(index, query, filter)}


def _contents(index: BM25Index, document: Document, query: QueryLike) -> dict[str, Any]:
    """Return the contents of a document, with the words of the question marked."""
    (hit, *_) = [*index.search(query, 1, {document.id}), None]
    if hit is None:
        hit = Hit(document.id, 0.0, document.text, document.metadata, fields=document.fields)
    return {
        "text": None if document.text is None else snippet_of(hit, _SHOWN),
        "length": len(document.text or ""),
        "fields": fields_of(hit, _SHOWN),
        "metadata": document.metadata,
        "payload_bytes": None if document.payload is None else len(document.payload),
    }


def _verdict(asked: Asked, explanation: Explanation, place: dict[str, Any], best: list[Hit]) -> str:
    """Say in a sentence or two why a search returns the document, or why not."""
    if not asked.question.strip():
        return "There is no question yet: ask one to see why it finds this document, or does not."
    failed = [str(part) for part in explanation.parts if not part.passed]
    if failed:
        return f"Not found: of the question, {'; '.join(failed)}."
    if not explanation.matched:
        terms = [share.term for share in explanation.terms]
        if not terms:
            return "Not found: no word of the question is left after the analysis."
        unknown = [share.term for share in explanation.terms if not share.document_frequency]
        beside = f" (of these, no document has {_listed(unknown)})" if unknown else ""
        return f"Not found: it has none of the terms {_listed(terms)}{beside}."
    rank = place["rank"]
    if not place["passes"]:
        return "Not found: the filter rejects it."
    if rank is None:
        return "Not found: it matches, and no search returned it. Please report this."
    lacking = [share.term for share in explanation.terms if not share.tf]
    said = f"Found at rank {rank:,} of {place['total']:,}."
    if rank > len(best) and best:
        gap = best[-1].score - explanation.score
        said += f" A page of {len(best)} ends {gap:.4f} above its score."
    return said + (f" It lacks {_listed(lacking)}." if lacking else "")


def _listed(terms: list[str]) -> str:
    shown = ", ".join(map(repr, terms[:10]))
    return f"{shown} and {len(terms) - 10} more" if len(terms) > 10 else shown
