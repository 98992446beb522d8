"""Where the index of a store is: in memory, or in a folder that stores and processes share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import LockedError, NotAnIndexError

_PATIENCE = 10.0  # seconds for another process to make the same index, which takes milliseconds


class Shelf(Protocol):
    """Holds an index.

    ``index`` is for reading, needs no lock and never changes: a write puts another in its place.
    """

    index: BM25Index

    def writing(self) -> AbstractContextManager[BM25Index]:
        """Give the index to one writer, and show readers the result."""


class Memory:
    """An index in memory."""

    def __init__(self, index: BM25Index) -> None:
        self._written = index
        self._lock = threading.Lock()
        self.index = index.tune()

    def load(self, empty: BM25Index) -> None:
        """Do nothing: what is in memory is there."""

    @contextmanager
    def writing(self) -> Iterator[BM25Index]:
        """Give the index to one writer, and show readers the result."""
        with self._lock:
            yield self._written
            self.index = self._written.tune()


class Folder:
    """An index in a folder, which is locked while a write lasts, not longer.

    Every write opens what was committed last, by whichever process, and commits. The stores
    of a process that have the same folder share one of these, so each sees the writes of all.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._tokenizer: Any = None
        self.index: BM25Index

    def load(self, empty: BM25Index) -> None:
        """Read what was committed last; begin with ``empty`` if there is no index yet."""
        with self._lock:
            self._tokenizer = empty.analyzer.tokenizer or self._tokenizer
            try:
                self.index = BM25Index.open(self._path, tokenizer=self._tokenizer)
            except NotAnIndexError:
                self._make(empty)  # which refuses a folder that holds anything else
                self.index = BM25Index.open(self._path, tokenizer=self._tokenizer)

    def _make(self, empty: BM25Index) -> None:
        """Begin with ``empty``, unless another process has begun meanwhile."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return empty.save(self._path, overwrite=False)
            except FileExistsError:
                return None
            except LockedError:  # the other one is at it
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def writing(self) -> Iterator[BM25Index]:
        """Give the index to one writer; commit if all goes well, else nothing has happened."""
        with self._lock:
            with BM25Index.open(self._path, mode="w", tokenizer=self._tokenizer) as index:
                yield index
            self.index = index


_SHELVES: WeakValueDictionary[Path | str, Memory | Folder] = WeakValueDictionary()
_SHELVES_LOCK = threading.Lock()


def open_shelf(place: Path | str, given: dict[str, Any]) -> Shelf:
    """Return the place of an index, which is made if there is none.

    Parameters
    ----------
    place
        The path of a folder, or a name for a place in memory, which lasts while a store has it.
    given
        Those arguments of ``BM25Index`` that were given.

    Raises
    ------
    ValueError
        If the index there has another analyzer or other parameters than given.
    """
    empty = BM25Index(**given)
    shelf: Memory | Folder
    with _SHELVES_LOCK:
        if isinstance(place, str):
            shelf = _SHELVES.setdefault(place, Memory(empty))
        else:
            shelf = _SHELVES.setdefault(place.resolve(), Folder(place.resolve()))
        shelf.load(empty)
    for name, value in given.items():
        _check_same(name, value, getattr(shelf.index, name), place)
    return shelf


def _check_same(name: str, given: Analyzer | str | float, there: object, place: Path | str) -> None:
    if given != there:
        message = (
            f"{name} is {given!r}, but the index at {str(place)!r} was made with {there!r}: "
            f"leave {name} out, or change a folder with bm25rag itself (tune, reanalyze, save)"
        )
        raise ValueError(message)
