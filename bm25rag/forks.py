"""Forks at any moment, also while another thread imports.

A forked child has only the thread that forked. A module that another thread was importing stays
locked there for ever, and whoever imports it hangs. So what functions import is imported before a
fork, which takes tens of milliseconds once, and an import that another thread has begun is awaited.

And what such a child calls at its end.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import RLock

LAZY_MODULES = (
    "bm25rag",
    "bm25rag.additions",
    "bm25rag.analysis.fold_table",
    "bm25rag.analysis.links",
    "bm25rag.analysis.question_grammar",
    "bm25rag.analysis.snippets",
    "bm25rag.analysis.spaces",
    "bm25rag.analysis.text_scanner",
    "bm25rag.building.build",
    "bm25rag.building.plan",
    "bm25rag.building.shards",
    "bm25rag.columns.merge",
    "bm25rag.columns.packing",
    "bm25rag.common.caller",
    "bm25rag.common.codec",
    "bm25rag.common.storable",
    "bm25rag.common.tables",
    "bm25rag.decay",
    "bm25rag.filters",
    "bm25rag.filters.parse",
    "bm25rag.kernels.compiled",
    "bm25rag.kernels.compiled_writing",
    "bm25rag.kernels.numpy_twin",
    "bm25rag.live.reanalysis",
    "bm25rag.live.restricted_index",
    "bm25rag.merging.merge",
    "bm25rag.merging.policy",
    "bm25rag.metadata.field_builder",
    "bm25rag.new_segments",
    "bm25rag.search.analyzed_parts",
    "bm25rag.search.correction",
    "bm25rag.search.expansion",
    "bm25rag.search.explain",
    "bm25rag.search.filter_masks",
    "bm25rag.search.hybrid_and_fused",
    "bm25rag.search.known_fields",
    "bm25rag.search.matrix",
    "bm25rag.search.query",
    "bm25rag.search.parts",
    "bm25rag.search.shaping",
    "bm25rag.segments.matching",
    "bm25rag.segments.similar_terms",
    "bm25rag.segments.strip_rows",
    "bm25rag.segments.text_fields",
    "bm25rag.segments.vectors_builder",
    "bm25rag.segments.statistics",
    "bm25rag.storage.checked_fields",
    "bm25rag.storage.checked_packed",
    "bm25rag.storage.checked_text_fields",
    "bm25rag.storage.leftovers",
    "bm25rag.storage.local_store",
    "bm25rag.storage.remote",
    "bm25rag.storage.remote_mirror",
    "bm25rag.storage.remote_writer",
    "bm25rag.storage.repair",
    "bm25rag.storage.shard_statistics",
    "bm25rag.storage.verify",
    "bm25rag.vectors",
)
# What functions import of others; ``numpy.unique`` imports ``numpy.ma``.
_OTHERS = ("Stemmer", "encodings.utf_32_le", "numpy.ma", "shutil", "urllib.parse")

importing = RLock()
"""Held while a function imports a module that does something at forks itself.

Python would call what such a module, imported before a fork, does after it.
"""


def _before() -> None:
    importing.acquire()
    for name in (*LAZY_MODULES, *_OTHERS):  # a microsecond each if they are there
        with suppress(ImportError):  # which is said where it is needed
            importlib.import_module(name)


if hasattr(os, "register_at_fork"):
    after = importing.release
    os.register_at_fork(before=_before, after_in_parent=after, after_in_child=after)


# --- the end of a child ---------------------------------------------------------------

_AT_END: set[Callable[[], None]] = set()


def call_at_end(function: Callable[[], None]) -> None:
    """Call a function, which ``atexit`` has, at the end of a child of ``multiprocessing``, too.

    If it was forked, it calls nothing of ``atexit``, and only what ``multiprocessing`` was given in
    the child. If it was spawned, it calls the function twice.
    """
    processes = sys.modules.get("multiprocessing.process")
    if function not in _AT_END and processes is not None and processes.parent_process():
        from multiprocessing.util import Finalize  # a child has imported it

        _AT_END.add(function)
        Finalize(None, function, exitpriority=0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_AT_END.clear)
