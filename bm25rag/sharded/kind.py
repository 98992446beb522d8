"""What opens sharded indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bm25rag.live.open_folder import Kind
from bm25rag.sharded.folder import ShardedReader, ShardedWriter, verify_sharded

if TYPE_CHECKING:
    from bm25rag.storage.remote_mirror import Mirror, Store
    from bm25rag.storage.repair import Damage


def _mirror(store: Store, folder: str) -> Mirror:
    from bm25rag.sharded.remote import ShardedMirror

    return ShardedMirror(store, folder)


def _repair(folder: str, dry_run: bool) -> list[Damage]:
    from bm25rag.sharded.repair import repair_sharded

    return repair_sharded(folder, dry_run)


SHARDED = Kind(ShardedReader, ShardedWriter, _mirror, verify_sharded, _repair)
