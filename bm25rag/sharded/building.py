"""A sharded index built step by step; each step leaves a receipt, and is not done again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from bm25rag.building.build import write_merged
from bm25rag.building.folder import locked_to_build, remove
from bm25rag.building.gathering import gather
from bm25rag.building.plan import Plan
from bm25rag.common.checks import check_count, check_sequence
from bm25rag.documents import Document, Text
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView
from bm25rag.sharded.folder import write_rest
from bm25rag.sharded.manifest import (
    clean_sharded,
    commit_folder,
    replace_sharded,
    shard_folder,
    shard_receipt,
)
from bm25rag.sharded.statistics import LocalStatistics, merge_statistics, statistics_id
from bm25rag.storage.folder_lock import locked_folder
from bm25rag.storage.fs import flush_folder, make_folder
from bm25rag.storage.manifest import BUILDING, clean, read_manifest, replace_manifest
from bm25rag.storage.segment_files import read_index
from bm25rag.storage.state import State

# A new shard begins when the last has twice as many documents as one had at first, or this many.
SMALLEST_CAPACITY = 1 << 16


def build_sharded(
    documents: Iterable[Document | Text], folder: str | os.PathLike[str], shards: int, plan: Plan
) -> None:
    """Build a sharded index in a folder, or go on where that was interrupted; see ``gather``."""
    count = check_count("shards", shards, least=1)
    check_sequence("documents", documents, "bm25rag.Document or texts")
    with locked_to_build(folder) as (path, _):
        receipt = _receipt(os.path.join(path, BUILDING))
        if not (isinstance(receipt, dict) and receipt.get("read")):
            # Of a build that was given up, or of documents that this one's are not compared with.
            remove(commit_folder(path, 1))
        state = gather(documents, path, plan, count)
        write_shards(state, path, even_edges(sum(v.count for v in state.views), count), plan)
        written = (read_index(shard_folder(path, 1, n), True, known={}) for n in range(count))
        statistics = merge_statistics([LocalStatistics(v, state.parameters) for _, v in written])
        publish(path, count, statistics, state.settings())


def even_edges(documents: int, shards: int) -> list[int]:
    """Return where each of some shards begins, and where the last ends."""
    return [documents * number // shards for number in range(shards + 1)]


def write_shards(state: State, folder: str, edges: Sequence[int], plan: Plan) -> None:
    """Write each shard that is not there yet: the rows from one edge to before the next."""
    for number, (first, last) in enumerate(pairwise(edges)):
        target, receipt = shard_folder(folder, 1, number), shard_receipt(number, None)
        receipt["rows"] = [first, last]
        if _receipt(target) == receipt:
            continue
        remove(target)
        make_folder(target)
        views, building = _between(state.views, first, last), os.path.join(folder, BUILDING)
        with locked_folder(target) as held:
            write_merged(target, held, state._replace(views=views, extra=receipt), plan, building)


def _receipt(folder: str) -> object:
    with suppress(NotAnIndexError, CorruptIndexError):
        return read_manifest(folder).settings.get("extra")
    return None


def _between(views: Sequence[SegmentView], first: int, last: int) -> list[SegmentView]:
    """Return the segments with the rows from ``first`` to before ``last``, without others."""
    pieces, base = [], 0
    for view in views:
        low, high = max(first - base, 0), min(last - base, view.count)
        if low < high:
            numbers = np.asarray(view.numbers())
            others = np.concatenate((numbers[:low], numbers[high:]))
            pieces.append(view.without(others) if len(others) else view)
        base += view.count
    return pieces


def publish(folder: str, shards: int, statistics: Statistics, settings: dict[str, Any]) -> None:
    """Commit the shards that were written as an index, with the merged statistics of all of them.

    ``settings`` are those of the index, as ``State.settings`` returns them.
    """
    id, counts = statistics_id(statistics), []
    for number in range(shards):
        path, receipt = shard_folder(folder, 1, number), shard_receipt(number, id)
        manifest, views = read_index(path, mapped=True, known={})
        stamped = manifest._replace(settings=manifest.settings | {"extra": receipt})
        replace_manifest(path, stamped)
        clean(path, stamped)  # what an interrupted step has left
        flush_folder(path)
        counts.append(sum(view.count for view in views))
    capacity = max(SMALLEST_CAPACITY, 2 * -(-statistics.documents // shards))
    replace_sharded(folder, write_rest(folder, 1, settings, statistics, id, counts, capacity))
    clean_sharded(folder, 1)
