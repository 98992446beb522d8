"""The views: each returns what an address asks for, as JSON values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.views.analysis import analysis_view
from bm25rag.inspector.views.comparison import comparison_view
from bm25rag.inspector.views.cost import cost_view
from bm25rag.inspector.views.document import document_view
from bm25rag.inspector.views.health import health_view
from bm25rag.inspector.views.judged import judged_view
from bm25rag.inspector.views.search import search_view
from bm25rag.inspector.views.terms import term_view, terms_view

View: TypeAlias = Callable[[Desk, Asked], dict[str, Any]]

VIEWS: dict[str, View] = {
    "search": search_view,
    "document": document_view,
    "analysis": analysis_view,
    "compare": comparison_view,
    "terms": terms_view,
    "term": term_view,
    "judged": judged_view,
    "cost": cost_view,
    "health": health_view,
}
