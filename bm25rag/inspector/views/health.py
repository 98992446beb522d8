"""Health: what the index holds, its segments, deletions, bytes and commits, and what to do."""

from __future__ import annotations

from typing import Any

from bm25rag.inspector.asked import Asked
from bm25rag.inspector.desk import Desk
from bm25rag.inspector.python_code import program
from bm25rag.inspector.views.comparison import commits_of
from bm25rag.kernels import backend

# More segments or a larger part of deleted documents than these are worth a remark.
_SEGMENTS, _DELETED = 12, 0.2
_COMMITS = 50


def health_view(desk: Desk, asked: Asked) -> dict[str, Any]:
    """Return counts, sizes, segments, commits and remarks."""
    side = desk.side(asked.settings)
    index = side.saved
    stats = index.stats()
    # Their sizes would tell of the documents outside of a restriction.
    views = [] if desk.opened.restrict is not None else index._snapshot.views
    frequencies = index.vectors.document_frequencies()
    names = ("variant", "k1", "b", "delta", "delta_on", "fields")
    return {
        "place": desk.opened.place,
        "stats": stats,
        "segments": [
            {"documents": view.count, "deleted": len(view.deleted), "bytes": view.segment.nbytes}
            for view in views
        ],
        "vectors": {"terms": len(frequencies), "postings": int(frequencies.sum())},
        "parameters": {name: getattr(index, name) for name in names},
        "analyzer": repr(index.analyzer),
        "hot_loops": backend.chosen(),
        "commits": commits_of(desk)[:_COMMITS],
        "restricted": desk.opened.restrict,
        "remarks": [*desk.opened.warned, *remarks_on(stats)],
        "python": program(
            desk, side, asked, "for name, value in index.stats().items():", "    print(name, value)"
        ),
    }


def remarks_on(stats: dict[str, Any]) -> list[str]:
    """Return what is worth doing, or knowing."""
    remarks = []
    documents, deleted = stats["documents"], stats.get("deleted", 0)
    if deleted > _DELETED * (documents + deleted):
        freed = stats["compaction_frees"]
        remarks.append(
            f"{deleted:,} of {documents + deleted:,} documents in the segments are deleted: "
            f"'bm25rag compact' would free about {freed:,} bytes."
        )
    if stats.get("segments", 0) > _SEGMENTS * max(stats.get("shards") or 1, 1):
        remarks.append(
            f"There are {stats['segments']} segments; maintain() merges them, so that searches "
            "look into fewer."
        )
    if backend.chosen() != "compiled":
        remarks.append("NumPy answers, many times slower than compiled code: see 'bm25rag doctor'.")
    return remarks
