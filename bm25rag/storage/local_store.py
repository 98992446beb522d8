"""A folder of this machine as a store that a mirror copies from, while a writer works there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO

from bm25rag.storage.checksummed_file import open_regular
from bm25rag.storage.manifest import LARGEST_MANIFEST

# How many files are kept open at once, of the thousand that a process may have.
_MOST_OPEN = 256


class LocalStore:
    """The files of a folder; ``link`` gives them second names in place of copies."""

    name: str

    advice = "restore the folder from a copy, or drop what is damaged: bm25rag repair"

    def __init__(self, folder: str, link: bool = False) -> None:
        self.url = self.name = folder
        self._link = link
        self._open: dict[str, BinaryIO] = {}

    def read(self, name: str) -> bytes | None:
        """Return a file, cut off at the size of the largest manifest; ``None`` if missing."""
        try:
            with open_regular(self._path(name)) as file:
                return file.read(LARGEST_MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            return None

    @contextmanager
    def holding(self, names: Iterable[str]) -> Iterator[None]:
        """Keep files open that a writer may remove; ``FileNotFoundError`` if one is gone."""
        with ExitStack() as held:
            for name in list(names)[:_MOST_OPEN]:
                self._open[name] = held.enter_context(open_regular(self._path(name)))
            try:
                yield
            finally:
                self._open.clear()

    def size(self, name: str) -> int:
        """Return the size of a file."""
        with self._reading(name) as file:
            return os.fstat(file.fileno()).st_size

    def download(self, name: str, path: str) -> None:
        """Link or copy a file to a path; raise ``FileNotFoundError`` if it is missing."""
        if self._link:
            try:
                return os.link(os.path.realpath(self._path(name)), path)
            except FileNotFoundError:
                raise
            except (OSError, AttributeError):  # another file system, or no links here
                self._link = False
        with self._reading(name) as file, open(path, "xb") as new:
            file.seek(0)
            shutil.copyfileobj(file, new, 1 << 20)
        return None

    @contextmanager
    def _reading(self, name: str) -> Iterator[BinaryIO]:
        if (held := self._open.get(name)) is not None:
            yield held
        else:
            with open_regular(self._path(name)) as file:
                yield file

    def _path(self, name: str) -> str:
        return os.path.join(self.url, name)
