"""The cache of a remote index: an ordinary index folder, kept as the remote one is.

Files are immutable and have random names, so what is there need not be fetched again. A file
is checked as a whole before it gets its name; the manifest is replaced last.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any, ClassVar

from bm25rag.common.strings import utf8
from bm25rag.errors import CorruptIndexError, NotAnIndexError, RemoteError
from bm25rag.storage.array_file import ArraysFile, FileRecord
from bm25rag.storage.folder_lock import lock_folder
from bm25rag.storage.fs import flush_folder, make_folder, new_file
from bm25rag.storage.manifest import LOCK, MANIFEST, SHARDED, parse_manifest
from bm25rag.storage.remote import RemoteStore, cache_root

_ATTEMPTS = 5
# Doubled each time: a store without atomic writes may show half a manifest for a moment.
_PAUSE = 0.05


class Mirror:
    """A cache folder, ``folder``, for the remote folder of an index, ``store``.

    ``cache`` is the folder that holds the cache of each URL; ``None`` for the user's.
    """

    manifest: ClassVar[str] = MANIFEST

    def __init__(
        self, url: str, cache: str | os.PathLike[str] | None, options: Mapping[str, Any] | None
    ) -> None:
        self.store = RemoteStore(url, options)
        digest = blake2b(utf8(self.store.name), digest_size=8).hexdigest()
        readable = re.sub(r"[^\w.-]", "_", self.store.url.rpartition("/")[2])[:40]
        self.folder = os.path.join(cache_root(cache), f"{readable}-{digest}")

    def is_sharded(self) -> bool:
        """Whether the remote folder holds a sharded index."""
        return self.store.read(SHARDED) is not None

    def check_cached(self) -> None:
        """Raise ``NotAnIndexError`` if nothing is in the folder yet."""
        if not os.path.exists(os.path.join(self.folder, self.manifest)):
            raise NotAnIndexError(
                f"{self.folder}, the cache of {self.store.name}, holds no index: open the URL once "
                "without offline=True, with the same endpoint"
            )

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Bring the folder to the last remote commit, and keep it there while it is read.

        It raises what ``read_manifest`` does; ``CorruptIndexError`` if a remote file is missing or
        damaged; ``RemoteError`` if the store refuses, or changes faster than it can be read.
        """
        make_folder(os.path.dirname(self.folder))
        with suppress(FileExistsError):
            os.mkdir(self.folder, 0o700)  # the store may keep from others what is in it
        held = lock_folder(self.folder, -1)  # another process may be downloading
        try:
            self._sync()
            yield
        finally:
            held.release()

    def _sync(self) -> None:
        for attempt in range(_ATTEMPTS):
            data = self._read_manifest()
            try:
                kept = self._fetch(data)
            except (FileNotFoundError, CorruptIndexError) as error:
                # Somebody may have saved there in between.
                time.sleep(_PAUSE * 2**attempt)
                if self._read_manifest() != data:
                    continue
                if isinstance(error, CorruptIndexError):
                    raise
                message = f"{self.store.url}: a file is missing: {error}; save the index there anew"
                raise CorruptIndexError(message) from None
            self._write(self.manifest, data)
            self._clean({*kept, self.manifest, LOCK})
            return
        raise RemoteError(
            f"{self.store.url} has changed {_ATTEMPTS} times while it was read; try again later"
        )

    def _read_manifest(self) -> bytes:
        data = self.store.read(self.manifest)
        if data is None:
            raise NotAnIndexError(
                f"{self.store.url} holds no bm25rag index: there is no {self.manifest}"
            )
        return data

    def _fetch(self, data: bytes) -> list[str]:
        """Fetch what a manifest names and the folder lacks; return all names."""
        manifest = parse_manifest(f"{self.store.url}/{self.manifest}", data)
        for stored in manifest.stored:
            for record in (stored.segment, *stored.changes):
                self._fetch_file(record.name, record)
        return manifest.names()

    def _fetch_file(self, name: str, record: FileRecord) -> None:
        """Fetch a file, unless it is there; raise ``FileNotFoundError`` if the store lacks it."""
        path = self._path(name)
        if is_whole(path, record):
            return
        size = self.store.size(name)
        if size is not None and size != record.size:  # before it fills the disk
            raise CorruptIndexError(
                f"{self.store.url}/{name}: is {size} bytes long, expected {record.size}; "
                "save the index there anew"
            )
        new = self._new_name()
        try:
            self.store.download(name, new)
            self._check(new, name, record)
            _flush(new)
            os.replace(new, path)
        finally:
            with suppress(OSError):
                os.unlink(new)

    def _check(self, path: str, name: str, record: FileRecord) -> None:
        """Check every byte of a download."""
        try:
            ArraysFile(path, record, mapped=True).check_all()
        except CorruptIndexError as error:
            message = str(error).replace(path, f"{self.store.url}/{name}")
            raise CorruptIndexError(message) from None

    def _write(self, name: str, data: bytes) -> None:
        """Replace a small file, after all others are on disk, unless it is as it should be."""
        path = self._path(name)
        with suppress(OSError), open(path, "rb") as file:
            if file.read() == data:
                return
        flush_folder(os.path.dirname(path))
        new = self._new_name()
        with new_file(new) as file:
            file.write(data)
        os.replace(new, path)
        flush_folder(os.path.dirname(path))

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, *name.split("/"))

    def _new_name(self) -> str:
        return os.path.join(self.folder, f"download-{os.urandom(8).hex()}.tmp")

    def _clean(self, kept: set[str]) -> None:
        """Remove all other files, and folders that are then empty."""
        for folder, _, names in os.walk(self.folder, topdown=False):
            for name in names:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, self.folder).replace(os.sep, "/")
                # Windows keeps a file that a reader has mapped; a later call removes it.
                if relative not in kept and not self._is_others(relative):
                    with suppress(OSError):
                        os.unlink(path)
            with suppress(OSError):
                os.rmdir(folder)

    def _is_others(self, name: str) -> bool:
        """Whether a file may belong to readers of other parts of the folder."""
        return False


def is_whole(path: str, record: FileRecord) -> bool:
    """Whether a file is there; its blocks were checked when it came, and are when they are used."""
    try:
        ArraysFile(path, record, mapped=True)
    except OSError:  # StorageError is one
        return False
    return True


def _flush(path: str) -> None:
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
