"""Forks at any moment, also while another thread imports.

A forked child has only the thread that forked. A module that another thread was importing stays
locked there for ever, and whoever imports it hangs. So what functions import is imported before a
fork, which takes up to 50 ms once, and an import that another thread has begun is awaited.
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress

LATE = (
    "bm25rag",
    "bm25rag.additions",
    "bm25rag.filters",
    "bm25rag.filters.values",
    "bm25rag.kernels.compiled",
    "bm25rag.merging.merge",
    "bm25rag.merging.policy",
    "bm25rag.metadata.codec",
    "bm25rag.metadata.field_builder",
    "bm25rag.search.correction",
    "bm25rag.search.expansion",
    "bm25rag.search.explain",
    "bm25rag.search.filter_masks",
    "bm25rag.search.matrix",
    "bm25rag.segments.spelling",
    "bm25rag.storage.verify",
)
# What searches and writes import of others.
_OTHERS = (
    "Stemmer",
    "concurrent.futures.thread",
    "encodings.utf_32_le",
    "filelock",
    "numpy.ma",  # numpy.unique does
)


def finish_imports() -> None:
    """Import what is imported late; what is there already costs a microsecond each."""
    for name in (*LATE, *_OTHERS):
        with suppress(ImportError):  # which is said where it is needed
            importlib.import_module(name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=finish_imports)
