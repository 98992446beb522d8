"""A folder kept as another one is: the cache of a remote index, a backup, what is restored.

Files are immutable and have random names, so what is there need not be fetched again, unless it
was damaged since. A file is checked as a whole before it gets its name; the manifest is replaced
last.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from bm25rag.common.strings import utf8
from bm25rag.errors import CorruptIndexError, NotAnIndexError, RemoteError
from bm25rag.storage.checksummed_file import ArraysFile, FileRecord, is_whole
from bm25rag.storage.folder_lock import check_target, folder_to_fill, locked_folder
from bm25rag.storage.fs import flush_folder, is_same, make_folder, name_file, new_file, replacing
from bm25rag.storage.kept_commits import drop_kept
from bm25rag.storage.manifest import (
    MANIFEST,
    Manifest,
    clean,
    manifest_path,
    parse_manifest,
    read_manifest,
)
from bm25rag.storage.remote import RemoteStore, cache_root

if TYPE_CHECKING:
    from bm25rag.storage.local_store import LocalStore

_ATTEMPTS = 5
# Doubled each time: a store without atomic writes may show half a manifest for a moment.
_PAUSE = 0.05


Store: TypeAlias = "LocalStore | RemoteStore"
"""A folder that is mirrored; ``url`` is for messages, ``advice`` what to do about damage."""


def find_cache(
    url: str, cache: str | os.PathLike[str] | None, options: Mapping[str, Any] | None
) -> tuple[RemoteStore, str]:
    """Return the store behind a URL and the folder that is its cache.

    ``cache`` is the folder that holds the cache of each URL; ``None`` for the user's.
    """
    store = RemoteStore(url, options)
    digest = blake2b(utf8(store.name), digest_size=8).hexdigest()
    readable = re.sub(r"[^\w.-]", "_", store.url.rpartition("/")[2])[:40]
    return store, os.path.join(cache_root(cache), f"{readable}-{digest}")


class Mirror:
    """A folder, ``folder``, that is kept as the folder of an index, ``store``, is.

    ``only`` is the one shard to fetch; ``None`` for all. Shards that others have fetched stay.
    """

    def __init__(self, store: Store, folder: str, only: int | None = None) -> None:
        self.store = store
        self.folder = folder
        self._only = only

    def check_cached(self) -> None:
        """Raise ``NotAnIndexError`` if the index is not in the folder yet, or only a part of it."""
        if os.path.exists(manifest_path(self.folder)):
            names = read_manifest(self.folder).names()
            if all(os.path.exists(os.path.join(self.folder, name)) for name in names):
                return
        raise NotAnIndexError(
            f"{self.folder}, the cache of {self.store.name}, holds no index, or one shard alone: "
            "open the URL once without offline=True, with the same endpoint"
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
        with locked_folder(self.folder, -1):  # another process may be downloading
            self.sync()
            yield

    def sync(self, checked: bool = False) -> None:
        """Bring the folder to the last commit of the other, while it is locked.

        ``checked`` says that files that are there are checked, and fetched again if damaged.
        """
        _check_no_folder(manifest_path(self.folder))
        for attempt in range(_ATTEMPTS):
            data = self.read_manifest()
            try:
                manifest = self.parse(data)
                wanted = manifest.only(self._only, self.store.url)
                with self.store.holding(wanted.names()):
                    for record in wanted.records():
                        self._fetch_file(record, checked)
            except (FileNotFoundError, CorruptIndexError) as error:
                # Somebody may have saved there in between.
                time.sleep(_PAUSE * 2**attempt)
                if not os.path.isdir(self.folder):  # it is the copy that is gone
                    raise
                if self.read_manifest() != data:
                    continue
                if isinstance(error, CorruptIndexError):
                    raise
                message = f"{self.store.url}: a file is missing: {error}; {self.store.advice}"
                raise CorruptIndexError(message) from None
            self._replace_manifest(data)
            drop_kept(self.folder)
            clean(self.folder, manifest)
            return
        raise RemoteError(
            f"{self.store.url} has changed {_ATTEMPTS} times while it was read; try again later"
        )

    def read_manifest(self) -> bytes:
        """Return the manifest of the other folder; raise ``NotAnIndexError`` if it has none."""
        data = self.store.read(MANIFEST)
        if data is None:
            raise NotAnIndexError(
                f"{self.store.url} holds no bm25rag index: there is no {MANIFEST}"
            )
        return data

    def parse(self, data: bytes) -> Manifest:
        """Check what ``read_manifest`` has returned."""
        return parse_manifest(f"{self.store.url}/{MANIFEST}", data)

    def _fetch_file(self, record: FileRecord, checked: bool) -> None:
        """Fetch a file, unless it is there; raise ``FileNotFoundError`` if the store lacks it."""
        name, path = record.name, os.path.join(self.folder, record.name)
        if is_whole(path, record, checked):
            return
        _check_no_folder(path)
        size = self.store.size(name)
        if size is not None and size != record.size:  # before it fills the disk
            raise CorruptIndexError(
                f"{self.store.url}/{name}: is {size} bytes long, expected {record.size}; "
                f"{self.store.advice}"
            )
        with self._replacing(path) as new:
            try:
                self.store.download(name, new)
                self._check(new, record)
                _flush(new)
            except OSError as error:
                name_file(error, new)
                raise

    def _check(self, path: str, record: FileRecord) -> None:
        """Check every byte of a download."""
        try:
            ArraysFile(path, record, mapped=True).check_all()
        except CorruptIndexError as error:
            url = f"{self.store.url}/{record.name}"
            raise CorruptIndexError(str(error).replace(path, url)) from None

    def _replace_manifest(self, data: bytes) -> None:
        """Replace the manifest, after all other files are on disk, unless it is as it should be."""
        path = manifest_path(self.folder)
        flush_folder(self.folder)
        with suppress(OSError), open(path, "rb") as file:
            if file.read() == data:
                return
        with self._replacing(path) as new, new_file(new) as file:
            file.write(data)
        flush_folder(self.folder)

    def _replacing(self, path: str) -> AbstractContextManager[str]:
        return replacing(path, os.path.join(self.folder, "download"))


def _check_no_folder(path: str) -> None:
    """Raise ``CorruptIndexError`` if there is a folder where a file will be."""
    if os.path.isdir(path) and not os.path.islink(path):
        raise CorruptIndexError(
            f"{path}: is a folder, where a file of the index belongs; remove it"
        )


def _flush(path: str) -> None:
    with open(path, "r+b" if os.name == "nt" else "rb") as file:  # it may be a link, read-only
        os.fsync(file.fileno())


def copy_folder(mirror: Mirror, overwrite: bool) -> None:
    """Make a folder what another one is; until the last moment, it is what it was.

    It raises what ``BM25Index.backup`` does.
    """
    folder = mirror.folder
    if is_same(mirror.store.url, folder):
        raise ValueError(f"{folder} is both the source and the target")
    _check_free(folder, overwrite)
    mirror.read_manifest()  # before the folder is made
    with folder_to_fill(folder), locked_folder(folder):
        _check_free(folder, overwrite)
        mirror.sync(checked=True)  # a folder is restored because it is damaged


def _check_free(folder: str, overwrite: bool) -> None:
    """Refuse a folder that holds something else, or, unless ``overwrite``, an index."""
    if not os.path.lexists(manifest_path(folder)):  # a damaged one may be replaced
        check_target(folder)
    elif not overwrite:
        raise FileExistsError(f"{folder} holds an index; overwrite=True replaces it")
