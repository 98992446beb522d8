"""The cache of a remote sharded index: all of it, or one shard with the statistics."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from bm25rag.errors import CorruptIndexError
from bm25rag.sharded.folder import link_file
from bm25rag.sharded.manifest import (
    STATISTICS,
    ShardRecord,
    commit_folder,
    parse_sharded,
    shard_folder,
)
from bm25rag.storage.array_file import FileRecord
from bm25rag.storage.manifest import MANIFEST, SHARDED, parse_manifest
from bm25rag.storage.remote_mirror import Mirror, is_whole

_FILE = re.compile(r"(?P<commit>commit-\d+)/((?P<shard>shard-\d+)/)?[^/]+")


class ShardedMirror(Mirror):
    """A cache folder for the remote folder of a sharded index.

    Parameters
    ----------
    url, cache, options
        As for ``Mirror``.
    only
        The one shard to fetch; ``None`` for all. Shards that others have fetched stay.
    """

    manifest: ClassVar[str] = SHARDED

    def __init__(
        self,
        url: str,
        cache: str | os.PathLike[str] | None,
        options: Mapping[str, Any] | None,
        only: int | None = None,
    ) -> None:
        super().__init__(url, cache, options)
        self._only = only

    def _fetch(self, data: bytes) -> list[str]:
        sharded = parse_sharded(f"{self.store.url}/{SHARDED}", data)
        count = len(sharded.shards)
        if self._only is not None and self._only >= count:
            raise ValueError(f"number must be less than {count}, the shards, got {self._only}")
        commit = commit_folder("", sharded.commit)
        kept = [f"{commit}/{STATISTICS}"]
        os.makedirs(os.path.join(self.folder, commit), exist_ok=True)
        self._fetch_file(kept[0], sharded.file)
        for number in range(count) if self._only is None else [self._only]:
            kept += self._fetch_shard(f"{commit}/{_shard(number)}", sharded.shards[number])
        return kept

    def _fetch_shard(self, folder: str, shard: ShardRecord) -> list[str]:
        name = f"{folder}/{MANIFEST}"
        data = self.store.read(name)
        if data is None:
            raise FileNotFoundError(name)
        if zlib.crc32(data) != shard.checksum:
            raise CorruptIndexError(
                f"{self.store.url}/{name}: is another than was committed; upload the whole "
                "folder from one copy"
            )
        manifest = parse_manifest(f"{self.store.url}/{name}", data)
        os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
        for stored in manifest.stored:
            for record in (stored.segment, *stored.changes):
                self._fetch_file(f"{folder}/{record.name}", record)
        self._write(name, data)
        return [name, *(f"{folder}/{one}" for one in manifest.names())]

    def _fetch_file(self, name: str, record: FileRecord) -> None:
        """Fetch a file, unless it is there, or is among those of another commit."""
        target = self._path(name)
        if not is_whole(target, record):
            for commit in os.listdir(self.folder):
                source = os.path.join(self.folder, commit, *name.split("/")[1:])
                if is_whole(source, record):
                    with suppress(FileNotFoundError):
                        os.unlink(target)
                    return link_file(source, target)
        return super()._fetch_file(name, record)

    def _is_others(self, name: str) -> bool:
        found = _FILE.fullmatch(name)
        if self._only is None or found is None:
            return False
        if found["shard"] is not None:
            return found["shard"] != _shard(self._only)
        # The statistics are for all shards of a commit that are here.
        folder = os.path.join(self.folder, found["commit"])
        return any(name != STATISTICS for name in os.listdir(folder))


def _shard(number: int) -> str:
    return os.path.basename(shard_folder("", 0, number))
