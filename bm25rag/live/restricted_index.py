"""A view of the documents of an index that pass a filter; it follows what is written there."""

from __future__ import annotations

from os import PathLike
from typing import Any

from bm25rag.filters import Filter
from bm25rag.live.index import LiveIndex, State, new_id
from bm25rag.search.restricted_snapshot import restrict
from bm25rag.storage.attachment import RESTRICTED, SNAPSHOT


class RestrictedIndex(LiveIndex):
    """The documents of another index that pass a filter, read only; see ``BM25Index.restricted``.

    ``by_whole`` is whether they are scored by the statistics of that index.
    """

    def __init__(self, whole: LiveIndex, filter: Filter, by_whole: bool) -> None:
        self._whole, self._filter, self._by_whole = whole, filter, by_whole
        seen = whole.state
        super().__init__(self._restrict(seen), RESTRICTED)
        # A state of the other index, and what passes there; replaced together.
        self._made: tuple[State | None, State] = seen, self._made[1]

    @property
    def state(self) -> State:
        """All that passes now."""
        seen, state = self._made
        if (now := self._whole.state) is not seen:
            state = self._restrict(now)
            self._made = now, state
        return state

    @state.setter
    def state(self, state: State) -> None:
        self._made = None, state

    def _restrict(self, state: State) -> State:
        # What is kept with the whole, and the ids it has given, tell of other documents.
        snapshot = restrict(state.snapshot, self._filter, self._by_whole)
        return State(snapshot, 0, state.probe, {}, new_id())

    @property
    def reopened_by(self) -> tuple[dict[str, Any], Filter | None, bool] | None:
        """With what a pickle opens the folder again and restricts it; ``None``: it does not."""
        whole = self._whole.reopened_by
        return None if whole is None else (whole[0], self._filter, self._by_whole)

    def save(
        self,
        path: str | PathLike[str],
        folder: str | None,
        extra: dict[str, Any] | None,
        overwrite: bool,
        storage_options: dict[str, Any] | None,
    ) -> None:
        """Save in a folder or, if that is ``None``, behind the URL ``path``."""
        now = LiveIndex(self.state, SNAPSHOT)
        now.save(path, folder, extra, overwrite, storage_options)

    def refresh(self) -> bool:
        """Go to the last commit of the folder that the other index is read from."""
        return self._whole.refresh()
