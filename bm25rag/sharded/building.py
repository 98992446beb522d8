"""A sharded index built step by step; each step leaves a receipt, and is not done again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from os import PathLike
from typing import Any, get_args

import numpy as np

from bm25rag.common.checks import check_choice, check_count, check_flag, check_sequence
from bm25rag.common.urls import local_path
from bm25rag.documents import Document, Text
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.index import OnDuplicate
from bm25rag.merging.merge import merge_segments
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView
from bm25rag.sharded.gathering import Gathered, gather, read_source
from bm25rag.sharded.index import ShardedIndex
from bm25rag.sharded.manifest import (
    STATISTICS,
    ShardedManifest,
    check_new,
    clean_sharded,
    commit_folder,
    record_shard,
    remove,
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
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.fs import flush_folder, make_folder
from bm25rag.storage.manifest import lock, read_manifest, replace_manifest
from bm25rag.storage.segment_files import read_index
from bm25rag.storage.state import check_extra

# A new shard begins when the last has twice as many documents as one had at first, or this many.
SMALLEST_CAPACITY = 1 << 16


def build(
    documents: Iterable[Document | Text],
    folder: str | PathLike[str],
    shards: int,
    *,
    store_text: bool = True,
    on_duplicate: OnDuplicate = "error",
    progress: bool = False,
    threads: int | None = None,
    extra: dict[str, Any] | None = None,
    **settings: Any,
) -> ShardedIndex:
    """Build a sharded index in a folder, and open it for reading.

    Each shard holds consecutive documents, as many as the others or one more. Documents are
    read once; in memory are one part of them (some 64 million characters) and, later, one
    shard. The folder needs twice the space of the index until the end. If the build is
    interrupted, call it again with the same arguments: it goes on where it was.

    Parameters
    ----------
    documents
        Any iterable: ``Document`` records, or texts, which get decimal numbers as ids.
    folder
        The folder; made if it is missing.
    shards
        How many, >= 1; with fewer documents than shards, some are empty.
    store_text, on_duplicate, progress, threads
        As for ``BM25Index.add``.
    extra
        JSON values to keep with the index, as for ``BM25Index.save``.
    **settings
        As for ``BM25Index``: ``analyzer``, ``variant``, ``k1``, ``b``, ...

    Raises
    ------
    TypeError
        If an argument or a document has the wrong type; the message says which.
    ValueError
        If ``shards`` is less than 1, or an interrupted build had other documents or settings.
    FileExistsError
        If the folder holds an index.
    NotAnIndexError
        If the folder holds something else.
    DuplicateIdError, MetadataError
        As ``BM25Index.add``.
    LockedError
        If another process builds there.
    """
    count = check_count("shards", shards, least=1)
    check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
    if threads is not None:
        check_count("threads", threads, least=1)
    kept = {} if extra is None else check_extra(extra)
    check_flag("store_text", store_text)
    check_sequence("documents", documents, "bm25rag.Document or texts")
    empty, path = Gathered(**settings), local_path(folder)
    check_new(path)
    source = read_source(documents, store_text, progress)
    make_folder(path)
    held = lock(path)
    try:
        check_new(path)
        gathered = gather(source, path, empty, count, on_duplicate, threads)
        write_shards(gathered, path, even_edges(len(gathered), count))
        statistics = merge_statistics([read_shard(path, number) for number in range(count)])
        state = gathered._state.stored()._replace(extra=kept)
        publish(path, count, statistics, state.settings())
    finally:
        held.release()
    return ShardedIndex.open(path, tokenizer=empty.analyzer.tokenizer)


def even_edges(documents: int, shards: int) -> list[int]:
    """Return where each of some shards begins, and where the last ends."""
    return [documents * number // shards for number in range(shards + 1)]


def write_shards(gathered: Gathered, folder: str, edges: Sequence[int]) -> None:
    """Write each shard that is not there yet: the rows from one edge to before the next."""
    state = gathered._state.stored()
    for number, (first, last) in enumerate(pairwise(edges)):
        target, receipt = shard_folder(folder, 1, number), shard_receipt(number, None)
        receipt["rows"] = [first, last]
        if _receipt(target) == receipt:
            continue
        remove(target)
        pieces = _between(gathered._state.snapshot, first, last)
        views = [SegmentView(merge_segments(pieces))] if pieces else []
        FolderWriter.write(target, state._replace(views=views, extra=receipt), True, None)


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
            pieces.append(view.without(others.tolist()) if len(others) else view)
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
