"""What opens sharded indexes."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from bm25rag.live.open_folder import Kind
from bm25rag.sharded.folder import ShardedReader, ShardedWriter, verify_sharded

if TYPE_CHECKING:
    from bm25rag.storage.remote_mirror import Mirror


def mirror_shards(
    url: str,
    cache: str | PathLike[str] | None,
    options: dict[str, Any] | None,
    only: int | None = None,
) -> Mirror:
    """Return the cache of a remote sharded index, or of ``only`` one shard of it."""
    from bm25rag.sharded.remote import ShardedMirror

    return ShardedMirror(url, cache, options, only)


SHARDED = Kind(ShardedReader, ShardedWriter, mirror_shards, verify_sharded)
