"""What all views look at: the index, the judgements and the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bm25rag.index import BM25Index
from bm25rag.inspector.asked import Settings
from bm25rag.inspector.judgements import Judgements
from bm25rag.inspector.opened import OpenedIndex


@dataclass(frozen=True, slots=True)
class Side:
    """An index as it is saved, and under the settings that were asked for."""

    saved: BM25Index
    index: BM25Index
    settings: Settings

    @property
    def is_tuned(self) -> bool:
        """Whether the settings differ from those of the saved index."""
        return self.index is not self.saved


class Baseline(NamedTuple):
    """An index of some moment with the settings of that moment, kept while the inspector runs."""

    side: Side
    time: str


class Desk:
    """What all views look at; one thread at a time may use it.

    Without ``judgements``, there is no file for them.
    """

    def __init__(self, opened: OpenedIndex, judgements: Judgements | None = None) -> None:
        self.opened = opened
        self.judgements = judgements
        self.baseline: Baseline | None = None
        # What was last counted of the metadata, and for what.
        self.counted: tuple[object, list[dict[str, Any]]] = None, []

    def side(self, settings: Settings) -> Side:
        """Return the index under some settings, or the baseline, if there is one."""
        if settings.baseline:
            if self.baseline is None:
                raise ValueError("there is no baseline: keep one first, with the button on Compare")
            return self.baseline.side
        saved = self.opened.at(settings.commit)
        return Side(saved, settings.tuned(saved), settings)

    def keep_baseline(self, settings: Settings) -> None:
        """Keep the index of this moment under some settings, to compare with."""
        time = datetime.now(UTC).isoformat(timespec="seconds")
        side = self.side(settings)
        saved = side.saved.snapshot()
        index = side.settings.tuned(saved) if side.is_tuned else saved
        self.baseline = Baseline(Side(saved, index, settings._replace(baseline=True)), time)
