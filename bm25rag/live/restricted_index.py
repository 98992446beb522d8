"""A view of the documents of an index that pass a filter; it follows what is written there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bm25rag.common.checks import check_choice
from bm25rag.filters import FilterSpec
from bm25rag.filters.parse import check_rejecting
from bm25rag.live.index import LiveIndex, State, new_id
from bm25rag.search.finding import parse_filter
from bm25rag.search.restricted_snapshot import restrict
from bm25rag.storage.attachment import RESTRICTED, SNAPSHOT


class RestrictedIndex(LiveIndex):
    """The documents of another index that pass a filter; see ``BM25Index.restricted``."""

    def __init__(self, whole: LiveIndex, filter: FilterSpec, statistics: str) -> None:
        check_choice("statistics", statistics, ("whole", "part"))
        seen = whole.state
        parsed = parse_filter(filter, seen.snapshot)
        self._whole, self._statistics = whole, statistics
        self._filter = check_rejecting("restricted needs a filter", filter, parsed)
        super().__init__(self._restrict(seen), RESTRICTED.of(whole.attachment))
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
        snapshot = restrict(state.snapshot, self._filter, self._statistics == "whole")
        return State(snapshot, 0, state.probe, {}, new_id())

    @property
    def reads_folder(self) -> bool:
        return self._whole.reads_folder

    def __reduce__(self) -> tuple[Callable[..., LiveIndex], tuple[Any, ...]]:
        if self.reads_folder:
            return RestrictedIndex, (self._whole, self._filter, self._statistics)
        return super().__reduce__()

    def save(self, *given: Any) -> None:
        """Save what passes now."""
        LiveIndex(self.state, SNAPSHOT).save(*given)

    def refresh(self) -> bool:
        return self._whole.refresh()
