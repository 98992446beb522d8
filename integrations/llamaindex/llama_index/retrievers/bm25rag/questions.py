"""Options of questions, which name keys of the metadata as filters do."""

from __future__ import annotations

from typing import Any

from llama_index.retrievers.bm25rag.filters import path_of

from bm25rag.adapters import Asking, decay_dict


def check(asking: Asking, spans_key: Any = None) -> Asking:
    """Return options; a ``TypeError`` or ``ValueError`` names one that is wrong."""
    if not isinstance(spans_key, str | None):
        raise TypeError(f"spans_key must be a str or None, got {spans_key!r:.100}")
    checked = asking.with_paths(path_of).checked()
    return checked._replace(group=asking.group, decay=decay_dict(asking.decay))
