"""Folders behind URLs, through fsspec: what a store is asked, and its errors in our words.

fsspec is BSD-licensed, pure Python, and what pandas, Dask and Hugging Face read URLs with. It
finds the package for a protocol (s3fs, gcsfs, huggingface_hub ...), which users install.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Any

from bm25rag.common.optional import load
from bm25rag.common.urls import from_home, holds_secret, shown_url
from bm25rag.errors import MissingDependencyError, RemoteError
from bm25rag.forks import importing
from bm25rag.storage.manifest import LARGEST_MANIFEST

# Files that no manifest names are removed at this age: another process may be uploading them.
LEFTOVER_AGE = timedelta(days=1)
# How many seconds a request may take that moves no file. The client of a store may repeat it
# longer: s3fs asks a silent server 25 times, a quarter of a minute each.
_LONGEST = 60.0
# How S3 and Google Cloud Storage say that a bucket, and not a file, is missing.
_NO_BUCKET = "bucket does not exist"
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


class RemoteStore:
    """The files of a folder behind a URL, as fsspec takes it.

    ``options`` are credentials, endpoints and time limits for fsspec, kept in memory only. ``url``
    is for messages, without user and password; ``name`` tells the folder from all others, also from
    those of another endpoint. A URL that holds a password or a query raises ``ValueError``.
    """

    advice = "save the index there anew"

    def __init__(self, url: str, options: Mapping[str, Any] | None) -> None:
        if not isinstance(options, Mapping | None):
            raise TypeError(  # without their values, which may be secret
                "storage_options must be a dict of arguments for fsspec or None, "
                f"got {type(options).__name__}"
            )
        url = url.rstrip("/")
        if url.endswith(":"):  # without its slashes it would name a folder of this machine
            url += "//"
        self.url: str = shown_url(url)
        if holds_secret(url):
            raise ValueError(
                f"the URL of {self.url} must not hold a password or a query: pass credentials "
                "in storage_options, or as the environment variables of the store's client"
            )
        self._url, self._options = url, dict(options or {})
        self.name: str = f"{self.url} {_endpoint(self._options)}".strip()

    def read(self, name: str) -> bytes | None:
        """Return a file, cut off at the size of the largest manifest; ``None`` if missing.

        As every other method, it raises ``RemoteError`` if the store refuses or cannot be reached.
        """
        with self._asking(f"read {name}") as (files, path):
            try:
                data: bytes = _call(
                    files, "cat_file", f"{path}/{name}", start=0, end=LARGEST_MANIFEST
                )
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                if _NO_BUCKET in str(error):
                    raise self._failure(f"read {name}", error) from error
                return None
            return data

    def download(self, name: str, path: str) -> None:
        """Copy a file to a path of this machine; raise ``FileNotFoundError`` if it is missing."""
        with self._asking(f"read {name}", local=path) as (files, folder):
            files.get_file(f"{folder}/{name}", path)

    def size(self, name: str) -> int | None:
        """Return the size of a file, ``None`` if the store does not tell it."""
        with self._asking(f"read {name}") as (files, path):
            size: int | None = _call(files, "info", f"{path}/{name}").get("size")
            return size

    def holding(self, names: Iterable[str]) -> AbstractContextManager[None]:
        """Do nothing: files of the commit before stay for a day."""
        return nullcontext()

    def sizes(self) -> dict[str, int | None]:
        """Return what the folder holds, and how large it is; nothing if there is no folder."""
        with self._asking("list") as (files, path):
            try:
                entries = _call(files, "ls", path, detail=True)
            except FileNotFoundError as error:
                if _NO_BUCKET in str(error):
                    raise self._failure("list", error) from error
                return {}
        # S3 lists the folder itself if somebody has made an object of that name.
        names = ((entry["name"].rstrip("/").rpartition("/")[2], entry) for entry in entries)
        own = path.rstrip("/").rpartition("/")[2]
        return {
            name: entry.get("size")
            for name, entry in names
            if name and not (name == own and not entry.get("size"))
        }

    def upload(self, path: str, name: str) -> None:
        """Copy a file of this machine into the folder, which is made if the store has folders."""
        with self._asking(f"write {name}") as (files, folder):
            target = f"{folder}/{name}"
            if files.root_marker:  # not in object stores, where this could make a bucket
                files.makedirs(target.rpartition("/")[0], exist_ok=True)
            try:
                files.put_file(path, target)
            except FileNotFoundError as error:
                raise self._failure(f"write {name}", error) from error

    def copy(self, name: str, target: str) -> None:
        """Copy a file within the folder; raise ``FileNotFoundError`` if it is missing."""
        with self._asking(f"copy {name}") as (files, folder):
            if files.root_marker:  # as in ``upload``
                files.makedirs(f"{folder}/{target}".rpartition("/")[0], exist_ok=True)
            files.cp_file(f"{folder}/{name}", f"{folder}/{target}")

    def put(self, name: str, data: bytes, *, new: bool) -> None:
        """Write a small file in one request; ``FileExistsError`` if it is there but ``new``."""
        with self._asking(f"write {name}") as (files, path):
            try:
                mode = "create" if new else "overwrite"
                _call(files, "pipe_file", f"{path}/{name}", data, mode=mode)
            except Exception as error:
                there = None
                with suppress(RemoteError):
                    there = self.read(name)
                if there == data:  # the answer was lost, not the request
                    return
                # Stores have different words for a file that is there.
                if isinstance(error, FileExistsError) or (new and there is not None):
                    raise FileExistsError(f"{self.url} holds an index") from error
                if isinstance(error, FileNotFoundError):
                    raise self._failure(f"write {name}", error) from error
                raise

    def remove(self, names: Iterable[str], *, than: str | None = None) -> None:
        """Remove files as far as possible; with ``than``, those a day older than that file."""
        with suppress(Exception), self._asking("remove") as (files, path):
            newest = None if than is None else files.modified(f"{path}/{than}")
            for name in names:
                # A missing right, or a store that knows no times, leaves the file there.
                with suppress(Exception):
                    one = f"{path}/{name}"
                    if newest is None or newest - files.modified(one) > LEFTOVER_AGE:
                        _call(files, "rm_file", one)

    @contextmanager
    def _asking(self, what: str, local: str = "") -> Iterator[tuple[Any, str]]:
        """Give the file system and the folder's path in it; raise its errors in our words."""
        try:
            files, path = self._connect()
            yield files, path.rstrip("/")
        except (RemoteError, MissingDependencyError, FileNotFoundError, FileExistsError):
            raise
        except Exception as error:  # clients of stores have classes of their own
            if isinstance(error, OSError) and (error.filename == local or error.errno in _FULL):
                raise  # this machine's disk
            raise self._failure(what, error) from error

    def _connect(self) -> tuple[Any, str]:
        # Anew each time, which costs microseconds: fsspec keeps what it has made, but for each
        # thread, and not across a fork.
        with importing:
            need = f"{self.url} needs fsspec"
            core, registry = (
                load(f"fsspec.{name}", need, "remote") for name in ("core", "registry")
            )
            try:
                files, path = core.url_to_fs(self._url, **self._options)
            except ImportError as cause:
                known = registry.known_implementations.get(self._url.partition("://")[0], {})
                package = known.get("class", "fsspec").partition(".")[0]
                hint = f"{package}: pip install {package}"
                if package == "fsspec":
                    hint = f"a package that is not installed: {cause}"
                raise MissingDependencyError(f"{self.url} needs {hint}") from cause
        files.invalidate_cache()
        return files, path

    def _failure(self, what: str, error: Exception) -> RemoteError:
        said = re.sub(r"//[^/@\s]+@", "//***@", str(error)) or f"no answer in {_LONGEST:g} s"
        # A longer one first: a shorter one may be a part of it.
        for value in sorted(_strings(self._options), key=len, reverse=True):
            said = said.replace(value, "***")
        return RemoteError(
            f"{self.url}: cannot {what} ({type(error).__name__}: {said:.300}); check the URL, "
            "credentials (storage_options) and the network"
        )


def _call(files: Any, method: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of a file system, and wait for its answer for so long and no longer."""
    if not files.async_impl or hasattr(files, "fs"):  # the latter may be around one that is not
        return getattr(files, method)(*arguments, **options)
    from fsspec.asyn import sync

    return sync(files.loop, getattr(files, f"_{method}"), *arguments, timeout=_LONGEST, **options)


def _endpoint(options: Mapping[str, Any]) -> str:
    """Return the server that a URL is asked of, if options say so."""
    client = options.get("client_kwargs")
    named = client.get("endpoint_url") if isinstance(client, Mapping) else None
    return shown_url(str(options.get("endpoint_url") or named or ""))


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in options that may be secret; a short one would garble messages."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, str) and len(value) >= 4 and not value.startswith(("http:", "https:")):
        yield value


def cache_root(cache: str | os.PathLike[str] | None) -> str:
    """Return the folder of all caches: ``cache``, ``$BM25RAG_CACHE``, or the user's."""
    if cache is None:
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
        cache = os.environ.get("BM25RAG_CACHE") or os.path.join(caches, "bm25rag")
    return os.path.realpath(from_home(cache))
