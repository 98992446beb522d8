"""Why this document, or why not: its rank and its score by term, beside that of the best."""

from __future__ import annotations

from typing import Any

from bm25rag.documents import Document, Hit
from bm25rag.index import BM25Index
from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.python_code import document_code
from bm25rag.inspector.views.shown import (
    explained_terms,
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
    data: dict[str, Any] = {"question": asked.question, "id": asked.id, "found": False}
    data |= {"settings": settings_of(side), "filter": filter, "verdict": None}
    data["python"] = document_code(desk.opened, side, asked)
    if asked.id is None:
        return data
    documents = index.get([asked.id])
    if not documents:
        return data | {"verdict": f"There is no document with the id {asked.id!r}."}
    explanation = index.explain(query, asked.id)
    passes = bool(index.get([asked.id], filter))
    best = index.search(query, max(asked.size, 1), filter)
    data |= _shown(index, documents[0], query)
    data |= {
        "found": True,
        "score": explanation.score,
        "matched": explanation.matched,
        "passes": passes,
        "terms": explained_terms(explanation),
        "shares": shares_of(explanation),
        "shift": explanation.shift,
        "parts": [str(part) for part in explanation.parts],
        "grade": grades_of(desk, asked.question).get(asked.id),
    }
    if best:
        data["best"] = {
            "id": best[0].id,
            "score": best[0].score,
            "terms": explained_terms(index.explain(query, best[0].id)),
            "shares": shares_of(index.explain(query, best[0].id)),
        }
    rank = None
    if passes and explanation.matched:
        rank = rank_of(index, query, asked.id, explanation.score, filter)
    total = total_of(index, query, filter)
    data |= {"rank": rank, "total": total}
    return data | {"verdict": _verdict(asked, explanation, passes, rank, total, best)}


def _shown(index: BM25Index, document: Document, query: QueryLike) -> dict[str, Any]:
    """Return the contents of a document, with the words of the question marked."""
    (hit, *_) = [*index.search(query, 1, {document.id}), None]
    if hit is None:
        hit = Hit(document.id, 0.0, document.text, document.metadata, fields=document.fields)
    fields = {
        name: snippet_of(hit.of_field(name), _SHOWN)
        for name, value in (document.fields or {}).items()
        if value != document.text
    }
    return {
        "text": None if document.text is None else snippet_of(hit, _SHOWN),
        "length": len(document.text or ""),
        "fields": fields,
        "metadata": document.metadata,
        "payload_bytes": None if document.payload is None else len(document.payload),
    }


def _verdict(
    asked: Asked,
    explanation: Explanation,
    passes: bool,
    rank: int | None,
    total: int,
    best: list[Hit],
) -> str:
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
    if not passes:
        return "Not found: the filter rejects it."
    if rank is None:
        return "Not found: it matches, and no search returned it. Please report this."
    lacking = [share.term for share in explanation.terms if not share.tf]
    said = f"Found at rank {rank:,} of {total:,}."
    if rank > len(best) and best:
        gap = best[-1].score - explanation.score
        said += f" A page of {len(best)} ends {gap:.4f} above its score."
    return said + (f" It lacks {_listed(lacking)}." if lacking else "")


def _listed(terms: list[str]) -> str:
    shown = ", ".join(map(repr, terms[:10]))
    return f"{shown} and {len(terms) - 10} more" if len(terms) > 10 else shown
