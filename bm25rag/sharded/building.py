"""A sharded index built step by step; each step leaves a receipt, and is not done again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np

from bm25rag.building.folder import check_new, remove
from bm25rag.building.gathering import Gathered, gather
from bm25rag.building.merging import write_merged
from bm25rag.building.plan import Plan, check_plan
from bm25rag.common.checks import check_count, check_sequence
from bm25rag.common.urls import local_path
from bm25rag.documents import Document, Text
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.index import BM25Index, OnDuplicate
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView
from bm25rag.sharded.index import ShardedIndex
from bm25rag.sharded.manifest import (
    STATISTICS,
    ShardedManifest,
    clean_sharded,
    commit_folder,
    record_shard,
    replace_sharded,
    shard_folder,
    shard_receipt,
)
from bm25rag.sharded.statistics import (
    LocalStatistics,
    merge_statistics,
    statistics_id,
    write_statistics,
)
from bm25rag.storage.fs import flush_folder, make_folder
from bm25rag.storage.manifest import (
    BUILDING,
    clean,
    folder_to_fill,
    lock,
    manifest_path,
    read_manifest,
    replace_manifest,
)
from bm25rag.storage.segment_files import read_index

# A new shard begins when the last has twice as many documents as one had at first, or this many.
SMALLEST_CAPACITY = 1 << 16


def build(
    documents: Iterable[Document | Text],
    folder: str | PathLike[str],
    shards: int,
    *,
    memory: str | int = "2GiB",
    store_text: bool = True,
    on_duplicate: OnDuplicate = "error",
    progress: bool = False,
    threads: int | None = None,
    extra: dict[str, Any] | None = None,
    **settings: Any,
) -> ShardedIndex:
    """Build a sharded index in a folder, and open it for reading.

    Each shard holds consecutive documents, as many as the others or one more. Otherwise this
    is like ``BM25Index.build``: it reads the documents once, and goes on where it was if it
    is called again after an interruption.

    Parameters
    ----------
    documents
        Any iterable: ``Document`` records, or texts, which get decimal numbers as ids.
    folder
        The folder; made if it is missing.
    shards
        How many, >= 1; with fewer documents than shards, some are empty.
    memory, store_text, on_duplicate, progress, threads, extra
        As for ``BM25Index.build``.
    **settings
        As for ``BM25Index``: ``analyzer``, ``variant``, ``k1``, ``b``, ...

    Raises
    ------
    TypeError
        If an argument or a document has the wrong type; the message says which.
    ValueError
        If ``shards`` is less than 1, ``memory`` is too little, or an interrupted build had
        other documents or settings.
    FileExistsError
        If the folder holds an index.
    NotAnIndexError
        If the folder holds something else.
    DuplicateIdError, MetadataError
        As ``BM25Index.add``.
    LockedError
        If another process builds there.
    OSError
        If the disk is full; with more room, the same call goes on.
    """
    count = check_count("shards", shards, least=1)
    empty = BM25Index(**settings)
    plan = check_plan(empty, memory, store_text, on_duplicate, progress, threads, extra)
    check_sequence("documents", documents, "bm25rag.Document or texts")
    path = local_path(folder)
    check_new(path)
    with folder_to_fill(path):
        held = lock(path)
        try:
            check_new(path)
            if not os.path.exists(manifest_path(os.path.join(path, BUILDING))):
                remove(commit_folder(path, 1))  # of a build that was given up
            gathered = gather(documents, path, plan, count)
            write_shards(gathered, path, even_edges(len(gathered), count), plan)
            statistics = merge_statistics([read_shard(path, number) for number in range(count)])
            state = gathered._state.stored()._replace(extra=plan.extra)
            publish(path, count, statistics, state.settings())
        finally:
            held.release()
    return ShardedIndex.open(path, tokenizer=empty.analyzer.tokenizer)


def even_edges(documents: int, shards: int) -> list[int]:
    """Return where each of some shards begins, and where the last ends."""
    return [documents * number // shards for number in range(shards + 1)]


def write_shards(gathered: Gathered, folder: str, edges: Sequence[int], plan: Plan) -> None:
    """Write each shard that is not there yet: the rows from one edge to before the next."""
    state = gathered._state.stored()
    for number, (first, last) in enumerate(pairwise(edges)):
        target, receipt = shard_folder(folder, 1, number), shard_receipt(number, None)
        receipt["rows"] = [first, last]
        if _receipt(target) == receipt:
            continue
        remove(target)
        make_folder(target)
        held = lock(target)
        try:
            views = _between(gathered._state.snapshot, first, last)
            building = os.path.join(folder, BUILDING)
            write_merged(target, held, state._replace(views=views, extra=receipt), plan, building)
        finally:
            held.release()


def _receipt(folder: str) -> object:
    with suppress(NotAnIndexError, CorruptIndexError):
        return read_manifest(folder).settings.get("extra")
    return None


def _between(snapshot: Snapshot, first: int, last: int) -> list[SegmentView]:
    """Return the segments with the rows from ``first`` to before ``last``, without others."""
    pieces = []
    for base, view in zip(snapshot.bases, snapshot.views, strict=False):
        low, high = max(first - base, 0), min(last - base, view.count)
        if low < high:
            numbers = np.asarray(view.numbers())
            others = np.concatenate((numbers[:low], numbers[high:]))
            pieces.append(view.without(others) if len(others) else view)
    return pieces


def read_shard(folder: str, number: int) -> LocalStatistics:
    """Return the statistics of a shard that was written."""
    return LocalStatistics(read_index(shard_folder(folder, 1, number), mapped=True, known={})[1])


def publish(folder: str, shards: int, statistics: Statistics, settings: dict[str, Any]) -> None:
    """Commit the shards that were written as an index.

    Parameters
    ----------
    folder
        The folder of the sharded index.
    shards
        How many shards there are.
    statistics
        The merged statistics of all of them.
    settings
        Those of the index, as ``State.settings`` returns them.
    """
    id, target = statistics_id(statistics), os.path.join(commit_folder(folder, 1), STATISTICS)
    remove(target)
    file = write_statistics(target, statistics)
    records = []
    for number in range(shards):
        path, receipt = shard_folder(folder, 1, number), shard_receipt(number, id)
        manifest, views = read_index(path, mapped=True, known={})
        stamped = manifest._replace(settings=manifest.settings | {"extra": receipt})
        replace_manifest(path, stamped)
        clean(path, stamped)  # what an interrupted step has left
        flush_folder(path)
        records.append(record_shard(path, sum(view.count for view in views)))
    capacity = max(SMALLEST_CAPACITY, 2 * -(-statistics.documents // shards))
    sharded = ShardedManifest(
        1,
        settings,
        id,
        statistics.documents,
        statistics.tokens,
        file,
        tuple(records),
        capacity,
    )
    replace_sharded(folder, sharded)
    clean_sharded(folder, 1)
