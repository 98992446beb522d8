"""The filter language: dicts, sets of ids and callables are parsed into a tree.

``docs/filters.md`` describes the language for users; adapters translate their own into it.
"""

from __future__ import annotations

from bm25rag.filters.nodes import (
    And,
    CallableFilter,
    Condition,
    Demand,
    Filter,
    IdCondition,
    IdSet,
    Not,
    Or,
    on_documents,
    split,
    without_demands,
)
from bm25rag.filters.operators import AsMoment, Operator
from bm25rag.filters.parse import FilterSpec, escape_key, parse_filter

__all__ = [
    "And",
    "AsMoment",
    "CallableFilter",
    "Condition",
    "Demand",
    "Filter",
    "FilterSpec",
    "IdCondition",
    "IdSet",
    "Not",
    "Operator",
    "Or",
    "escape_key",
    "on_documents",
    "parse_filter",
    "split",
    "without_demands",
]
