"""The filter language: plain dicts, sets of ids and callables become a tree that is evaluated.

``docs/filters.md`` describes the language for users; adapters translate theirs into it.
"""

from __future__ import annotations

from bm25rag.filters.nodes import (
    And,
    CallableFilter,
    Condition,
    Filter,
    IdCondition,
    IdSet,
    Not,
    Or,
    split,
)
from bm25rag.filters.operators import Operator
from bm25rag.filters.parse import FilterSpec, escape_key, parse_filter

__all__ = [
    "And",
    "CallableFilter",
    "Condition",
    "Filter",
    "FilterSpec",
    "IdCondition",
    "IdSet",
    "Not",
    "Operator",
    "Or",
    "escape_key",
    "parse_filter",
    "split",
]
