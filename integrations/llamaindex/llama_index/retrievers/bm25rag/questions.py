"""Options of questions, in which a group is named by a key of the metadata, as in filters."""

from __future__ import annotations

from typing import Any

from llama_index.retrievers.bm25rag.filters import path_of

from bm25rag.adapters import Asking


def check(asking: Asking, spans_key: Any = None) -> Asking:
    """Return options; a ``TypeError`` or ``ValueError`` names one that is wrong."""
    if not isinstance(spans_key, str | None):
        raise TypeError(f"spans_key must be a str or None, got {spans_key!r:.100}")
    return in_core(asking).checked()._replace(group=asking.group)


def in_core(asking: Asking) -> Asking:
    """Return options as the core takes them."""
    key: Any = asking.group
    is_key = isinstance(key, str) and key != "$text"
    return asking._replace(group=path_of(key)) if is_key else asking
