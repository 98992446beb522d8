"""What is left of a damaged sharded index: the whole segments of each shard."""

from __future__ import annotations

import os
from contextlib import nullcontext

from bm25rag.errors import CorruptIndexError, StorageError
from bm25rag.sharded.folder import Shard, ShardedWriter, check_statistics
from bm25rag.sharded.manifest import (
    STATISTICS,
    ShardedManifest,
    check_shard,
    commit_folder,
    read_sharded,
    shard_folder,
)
from bm25rag.sharded.statistics import read_statistics
from bm25rag.storage.folder_lock import locked_folder
from bm25rag.storage.manifest import Manifest, read_manifest
from bm25rag.storage.repair import Damage, keep_aside, sift, state_of


def repair_sharded(folder: str, dry_run: bool) -> list[Damage]:
    """Commit what is whole in a folder; see ``BM25Index.repair``."""
    read_sharded(folder, writing=True)
    with nullcontext() if dry_run else locked_folder(folder) as held:
        sharded = read_sharded(folder, writing=True)
        shards, damages = [], []
        for number in range(len(sharded.shards)):
            shard, own = _sift_shard(folder, sharded, number)
            shards.append(shard)
            damages += own
        if not damages:
            damages = _check_statistics(folder, sharded, shards)
        if damages and dry_run and read_sharded(folder, writing=True) != sharded:
            return repair_sharded(folder, dry_run)  # what is missing, a writer has removed
        if damages and held is not None:
            writer = ShardedWriter(folder, held)
            keep_aside(folder, damages)
            views = [view for shard in shards for view in shard.views]
            state = state_of(folder, sharded.settings, views)
            writer.start_from_shards(sharded, shards, state)
            writer.commit(state)
        return damages


def _sift_shard(folder: str, sharded: ShardedManifest, number: int) -> tuple[Shard, list[Damage]]:
    path = shard_folder(folder, sharded.commit, number)
    try:
        manifest = read_manifest(path)
        check_shard(path, number, manifest.settings, sharded)
    except (FileNotFoundError, StorageError) as error:
        problem = str(error).partition("; ")[0]
        lost = Damage(path, problem, [], sharded.shards[number].documents)
        return Shard(Manifest(0, {}, (), ()), []), [lost]
    kept, views, damages = sift(path, manifest)
    return Shard(kept, views), damages


def _check_statistics(folder: str, sharded: ShardedManifest, shards: list[Shard]) -> list[Damage]:
    """Return the damage of the statistics, which are counted again."""
    try:
        file, counts = sharded.file, (sharded.documents, sharded.tokens)
        stored = read_statistics(commit_folder(folder, sharded.commit), file, True, *counts)
        check_statistics(folder, sharded, shards, stored)
    except (CorruptIndexError, FileNotFoundError) as error:
        path = os.path.join(commit_folder(folder, sharded.commit), STATISTICS)
        return [Damage(path, str(error).partition("; restore")[0], [], 0)]
    return []
