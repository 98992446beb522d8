"""One shard of a sharded index, opened where it is, and the answers of all shards merged."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from bm25rag.analysis import Tokenizer
from bm25rag.common.checks import check_count
from bm25rag.common.urls import is_url
from bm25rag.documents import Hit, Hits
from bm25rag.index import BM25Index
from bm25rag.kernels.records import Matches
from bm25rag.live.index import LiveIndex, State
from bm25rag.opening import local_folder
from bm25rag.storage.attachment import Unattached
from bm25rag.storage.checksummed_file import damage
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.manifest import manifest_path

__all__ = ["OpenShard", "Ranking", "merge_hits", "merge_rankings", "open_shard"]

Ranking = Matches
"""Rows, scores and counts as in ``BatchResult``: int64 and float64 (q, w), int64 (q,)."""

_SHARD = Unattached("a shard of a sharded index", True, "open the whole index with mode='w'")


class OpenShard(NamedTuple):
    """One shard of a sharded index, opened for reading.

    Its answers can be merged with those of shards of the same ``commit``.

    Parameters
    ----------
    searcher
        An index of its documents; scores are those of the whole index. ``correct``, ``expand``,
        ``vocabulary``, ``document_frequencies`` and ``stats`` know this shard alone.
    number
        Which shard it is, from 0.
    first_row
        The row of its first document in the whole index.
    commit
        The ``commit_id`` of the whole index.
    """

    searcher: BM25Index
    number: int
    first_row: int
    commit: str


def open_shard(
    folder: str | PathLike[str],
    number: int,
    *,
    mmap: bool = True,
    tokenizer: Tokenizer | None = None,
    untrusted: bool = False,
    cache: str | PathLike[str] | None = None,
    storage_options: dict[str, Any] | None = None,
) -> OpenShard:
    """Open one shard of a sharded index.

    Parameters
    ----------
    folder
        The folder of the sharded index, or its URL, of which this shard and the statistics of
        all are fetched.
    number
        Which shard, from 0.
    mmap, tokenizer, untrusted, cache, storage_options
        As for ``BM25Index.open``.

    Raises
    ------
    ValueError
        If there is no such shard.
    NotAnIndexError, FormatVersionError, CorruptIndexError, RemoteError
        As ``BM25Index.open``; no other shard is looked at.
    """
    only, mirror = check_count("number", number), None
    if is_url(folder):
        from bm25rag.storage.remote_mirror import Mirror, find_cache

        mirror = Mirror(*find_cache(str(folder), cache, storage_options), only)
    path = local_folder(folder, cache, storage_options) if mirror is None else mirror.folder
    reader = FolderReader(path, mmap, tokenizer, untrusted)
    reader.mirror, reader.only = mirror, only
    with reader.synced():
        searcher = BM25Index._from_live(LiveIndex(State.of(reader.read()), _SHARD))
    shards = reader.manifest.shards
    assert shards is not None
    if len(searcher) != shards.documents[only]:
        raise damage(manifest_path(path), f"shard {only}", "has not so many documents")
    return OpenShard(searcher, only, shards.first_rows[only], reader.manifest.commit_id)


def merge_hits(found: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Return the best k hits of all shards, as a search of the whole index would.

    ``found`` has the best k of each shard, the shards in order.
    """
    # Of equal scores, ``merge`` takes those of the earlier shard first, which is document order.
    width = min(check_count("k", k), sum(map(len, found)))
    return Hits(islice(merge(*found, key=lambda hit: -hit.score), width))


def merge_rankings(found: Sequence[Ranking], first_rows: Sequence[int], k: int) -> Ranking:
    """Return the best k matches of each query in all shards, by their rows in the whole index.

    ``found`` has the best k in each shard, the shards in order, ``first_rows`` the row of each
    shard's first document.
    """
    width = min(check_count("k", k), sum(one.rows.shape[1] for one in found))
    rows = np.concatenate(
        [
            np.where(one.rows < 0, -1, one.rows + first)
            for one, first in zip(found, first_rows, strict=True)
        ],
        axis=1,
    )
    scores = np.concatenate([one.scores for one in found], axis=1)
    # Rows of a shard are in order of their scores, so a stable sort keeps document order.
    order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
    counts = np.minimum(sum(one.counts for one in found), width)
    rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    return Ranking(rows, scores, counts)
