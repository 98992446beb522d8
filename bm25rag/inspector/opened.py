"""The index that is looked at: opened once, refreshed for each page, and its earlier commits."""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from bm25rag.common.arrays import Int64
from bm25rag.common.urls import is_url, shown_url
from bm25rag.errors import BM25Error
from bm25rag.index import BM25Index
from bm25rag.maintenance import Commit

# How many earlier commits stay open, and of how many states the vocabulary is kept.
_COMMITS, _VOCABULARIES = 4, 2


class OpenedIndex:
    """A saved index, open for reading; one thread at a time may use it.

    It stays at ``commit``, or follows the folder without one. ``restrict`` is the filter outside of
    which nothing may be found, counted or named, if there is one, and ``statistics`` those by which
    documents are then scored, as in ``BM25Index.restricted``: those of the whole index tell how
    common the words of a question are elsewhere. ``trouble`` is why the folder could not be read
    again, empty if it could; ``warned`` what opening it has warned of.
    """

    def __init__(
        self,
        path: Path | str,
        untrusted: bool = False,
        commit: str | None = None,
        restrict: dict[str, Any] | None = None,
        statistics: Literal["whole", "part"] = "whole",
    ) -> None:
        self.path = path
        self.untrusted = untrusted
        self.restrict = restrict
        self.statistics = statistics
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._reader = self._open(commit)
        self.warned: list[str] = [str(one.message) for one in caught]
        self.trouble: str = ""
        self._pinned = commit
        self._view = self._restricted(self._reader)
        self._earlier = lru_cache(_COMMITS)(lambda commit: self._restricted(self._open(commit)))
        self._vocabularies: dict[str, tuple[list[str], Int64]] = {}

    @property
    def name(self) -> str:
        """What to call it: the name of its folder."""
        return Path(str(self.path).rstrip("/")).name or "index"

    @property
    def place(self) -> str:
        """Where it is, without what a URL may hold of secrets."""
        return shown_url(self.path) if is_url(self.path) else str(self.path)

    def at(self, commit: str | None = None) -> BM25Index:
        """Return the last commit, or an earlier one; the former changes when it is asked for again.

        An index behind a URL stays as it was opened. A folder that cannot be read any more is shown
        as it was read last, which ``trouble`` says.
        """
        if commit is None or commit == self._pinned:
            self._refresh()
            return self._view
        return self._view if commit == self._reader.commit_id else self._earlier(commit)

    def _open(self, commit: str | None) -> BM25Index:
        return BM25Index.open(self.path, untrusted=self.untrusted, commit=commit)

    def _restricted(self, index: BM25Index) -> BM25Index:
        if self.restrict is None:
            return index
        return index.restricted(self.restrict, statistics=self.statistics)

    def _refresh(self) -> None:
        if is_url(self.path):  # asking the store would take longer than most views
            return
        try:
            self._reader.refresh()
            self.trouble = ""
        except (BM25Error, OSError) as error:
            self.trouble = f"The folder cannot be read any more; this is its last state. {error}"

    def commits(self) -> list[Commit]:
        """Return the commits that the folder holds, the last first; none if it cannot list them."""
        try:
            return BM25Index.commits(self.path)[::-1]
        except (BM25Error, OSError, ValueError):
            return []

    def vocabulary(self, index: BM25Index) -> tuple[list[str], Int64]:
        """Return the terms of an index and their document frequencies; kept for the next page."""
        key = index.commit_id
        vocabulary = self._vocabularies.pop(key, None)
        if vocabulary is None:
            vocabulary = index._snapshot.frequencies()
        self._vocabularies[key] = vocabulary
        if len(self._vocabularies) > _VOCABULARIES:
            del self._vocabularies[next(iter(self._vocabularies))]
        return vocabulary
