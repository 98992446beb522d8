"""The state of an index at one moment."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from bm25rag.analysis import Analyzer
from bm25rag.scoring.variants import Parameters
from bm25rag.search.snapshot import Snapshot
from bm25rag.storage.state import State as StoredState

Mode: TypeAlias = Literal["r", "w", "a"]
"""How a folder is opened."""

OnDuplicate: TypeAlias = Literal["error", "skip", "replace"]
"""What ``add`` does with an id that is there already."""


class State(NamedTuple):
    """All there is to an index at one moment; a write replaces it as a whole.

    ``probe`` holds words and their stems at the time they were indexed, ``extra`` what a
    caller keeps with the index.
    """

    snapshot: Snapshot
    next_id: int
    probe: dict[str, str]
    extra: dict[str, Any]

    @classmethod
    def of(cls, stored: StoredState) -> State:
        """Return the state that was stored."""
        snapshot = Snapshot(stored.views, stored.parameters, stored.analyzer, stored.statistics)
        return cls(snapshot, stored.next_id, stored.probe, stored.extra)

    def stored(self) -> StoredState:
        """Return the state as it is stored."""
        snapshot, next_id, probe, extra = self
        views = list(snapshot.views)
        settings = snapshot.analyzer, snapshot.parameters
        return StoredState(*settings, views, next_id, probe, extra, snapshot.statistics)


def new_state(analyzer: Analyzer | None = None, **parameters: Any) -> State:
    """Return the state of an index without documents; raise as the constructor."""
    check_analyzer(analyzer)
    chosen = Parameters(**parameters)
    return State(Snapshot((), chosen, Analyzer() if analyzer is None else analyzer), 0, {}, {})


def check_analyzer(analyzer: object) -> None:
    """Check that an argument is an analyzer or ``None``."""
    if analyzer is not None and not isinstance(analyzer, Analyzer):
        hint = f" {analyzer!r}: write Analyzer({analyzer!r})" if isinstance(analyzer, str) else ""
        raise TypeError(
            f"analyzer must be an Analyzer or None, got {type(analyzer).__name__}{hint}"
        )
