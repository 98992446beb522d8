"""A folder kept as that of a sharded index is: all of it, or one shard with the statistics."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar

from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.sharded.manifest import (
    STATISTICS,
    ShardedManifest,
    ShardRecord,
    commit_folder,
    parse_sharded,
    read_sharded,
    replace_sharded,
    sealed_sharded,
    shard_folder,
)
from bm25rag.storage.checksummed_file import FileRecord, is_whole
from bm25rag.storage.fs import flush_folder, link_file
from bm25rag.storage.manifest import LOCK, MANIFEST, SHARDED, parse_manifest
from bm25rag.storage.remote import RemoteStore
from bm25rag.storage.remote_mirror import Mirror, Store, check_no_folder

_COMMIT = re.compile(r"commit-(\d+)")
_FILE = re.compile(r"(?P<commit>commit-\d+)/((?P<shard>shard-\d+)/)?[^/]+")


class ShardedMirror(Mirror):
    """A folder that is kept as the folder of a sharded index is; see ``Mirror``.

    ``only`` is the one shard to fetch; ``None`` for all. Shards that others have fetched stay.
    """

    manifest: ClassVar[str] = SHARDED

    def __init__(self, store: Store, folder: str, only: int | None = None) -> None:
        super().__init__(store, folder)
        self._only = only

    def list_files(self, data: bytes) -> tuple[dict[str, FileRecord], dict[str, bytes]]:
        """Return the files that a manifest names, and those that name others, with contents."""
        sharded = parse_sharded(f"{self.store.url}/{SHARDED}", data)
        commit = commit_folder("", sharded.commit)
        files, inner = {f"{commit}/{STATISTICS}": sharded.file}, {}
        for number in sharded.numbers(self._only):
            folder = f"{commit}/{_shard(number)}"
            name = f"{folder}/{MANIFEST}"
            inner[name] = self._read_shard(name, sharded.shards[number])
            manifest = parse_manifest(f"{self.store.url}/{name}", inner[name])
            files |= {f"{folder}/{record.name}": record for record in manifest.records()}
        return files, inner

    def make_way(self, data: bytes, store: RemoteStore) -> None:
        """Give the commit that is there another number, as ``_make_room`` does in a folder."""
        there = store.read(SHARDED)
        # Of what is damaged there, nothing can be lost.
        with suppress(CorruptIndexError, NotAnIndexError, FileNotFoundError):
            if there is None:
                return
            new, old = parse_sharded(SHARDED, data), parse_sharded(SHARDED, there)
            if old.commit != new.commit or old == new:
                return
            old = old._replace(commit=old.commit + 1)
            files, inner = ShardedMirror(store, "").list_files(there)
            for name in (*files, *inner):
                store.copy(name, f"{commit_folder('', old.commit)}/{name.partition('/')[2]}")
            store.put(SHARDED, sealed_sharded(store.url, old), new=False)

    def _read_shard(self, name: str, shard: ShardRecord) -> bytes:
        data = self.store.read(name)
        if data is None:
            raise FileNotFoundError(name)
        if zlib.crc32(data) != shard.checksum:
            raise CorruptIndexError(
                f"{self.store.url}/{name}: is another than was committed; upload the whole "
                "folder from one copy"
            )
        return data

    def _make_room(self, data: bytes, names: Iterable[str]) -> None:
        """Give the commit that is there another number, if it has that of a new one.

        Its files would be replaced one after the other, and neither commit would be whole.
        """
        if self._only is None:
            with suppress(CorruptIndexError, NotAnIndexError):
                new, old = parse_sharded(SHARDED, data), read_sharded(self.folder)
                if old.commit == new.commit and old != new:
                    self._renumber(old)
        super()._make_room(data, names)

    def _renumber(self, old: ShardedManifest) -> None:
        commits = map(_COMMIT.fullmatch, os.listdir(self.folder))
        new = old._replace(commit=1 + max(int(commit[1]) for commit in commits if commit))
        source, target = (commit_folder(self.folder, one.commit) for one in (old, new))
        for folder, _, names in os.walk(source):
            inner = os.path.relpath(folder, source)
            os.makedirs(os.path.join(target, inner))
            for name in names:
                if name != LOCK:
                    link_file(os.path.join(folder, name), os.path.join(target, inner, name))
            flush_folder(os.path.join(target, inner))
        flush_folder(self.folder)
        replace_sharded(self.folder, new)

    def _fetch_file(self, name: str, record: FileRecord, checked: bool) -> None:
        """Fetch a file, unless it is there, or is among those of another commit."""
        target = self._path(name)
        check_no_folder(target)
        if not is_whole(target, record, checked):
            for commit in os.listdir(self.folder):
                source = os.path.join(self.folder, commit, *name.split("/")[1:])
                if is_whole(source, record, checked):
                    with suppress(FileNotFoundError):
                        os.unlink(target)
                    return link_file(source, target)
        return super()._fetch_file(name, record, checked)

    def _is_others(self, name: str) -> bool:
        file = _FILE.fullmatch(name)
        if self._only is None or file is None:
            return False
        if file["shard"] is not None:
            return file["shard"] != _shard(self._only)
        # The statistics are for all shards of a commit that are here.
        folder = os.path.join(self.folder, file["commit"])
        return any(name != STATISTICS for name in os.listdir(folder))


def _shard(number: int) -> str:
    return os.path.basename(shard_folder("", 0, number))
