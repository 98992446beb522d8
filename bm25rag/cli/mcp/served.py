"""An index that is served: how it is opened, and what a model is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from bm25rag import BM25Index
from bm25rag.agents.fields import described_fields


class Served:
    """A saved index, open for reading; it may be used by several threads.

    ``about`` says what it holds, for descriptions; of what is ``untrusted``, the names of metadata
    fields are in none. A write waits ``patience`` seconds for another writer. ``restrict`` and
    ``statistics`` are as in ``BM25Index.restricted``: outside of that filter nothing may be found,
    counted or named; by the statistics of the whole index, ``explain`` tells how common a word is
    elsewhere.
    """

    def __init__(
        self,
        path: Path | str,
        untrusted: bool = False,
        about: str | None = None,
        patience: float = 5.0,
        restrict: dict[str, Any] | None = None,
        statistics: Literal["whole", "part"] = "part",
    ) -> None:
        self._path, self._untrusted, self._patience = path, untrusted, patience
        self._about = f"{about.strip().rstrip('.')}. " if about else ""
        self.index: BM25Index = BM25Index.open(path, untrusted=untrusted)
        self._looked_at: tuple[object, bool] = None, False
        if restrict is not None:
            self.index = self.index.restricted(restrict, statistics=statistics)

    @property
    def name(self) -> str:
        """A name for it: that of its folder, without the ending."""
        return Path(str(self._path).rstrip("/")).stem or "index"

    @property
    def description(self) -> str:
        """What it holds, in a sentence or two."""
        count, language = len(self.index), self.index.analyzer.language
        forms = f"{language}: forms of a word are one" if language else "words as they are"
        return f"{self._about}{count:,} document{'' if count == 1 else 's'} ({forms})"

    @property
    def has_vectors(self) -> bool:
        """Whether a document has a sparse vector."""
        snapshot = self.index._snapshot
        if self._looked_at[0] is not snapshot:  # every call asks, and some must read all postings
            self._looked_at = snapshot, bool(self.index.vectors)
        return self._looked_at[1]

    @property
    def parts(self) -> list[str]:
        """The fields of its documents whose words count with weights, if it has any."""
        return [] if self._untrusted else [*(self.index.fields or ())]

    def writer(self) -> BM25Index:
        """Open the index for one commit, so that others may write in between."""
        options: dict[str, Any] = {"untrusted": self._untrusted, "timeout": self._patience}
        return BM25Index.open(self._path, mode="w", **options)

    def fields(self) -> str:
        """Return the names and kinds of fields that a sample of the documents has."""
        # A stranger's words should not pass for instructions.
        return "" if self._untrusted else described_fields(self.index)


def named(served: list[Served]) -> dict[str, Served]:
    """Return indexes by name; a number tells apart those of the same name."""
    names: dict[str, Served] = {}
    for one in served:
        name, number = one.name, 2
        while name in names:
            name, number = f"{one.name}-{number}", number + 1
        names[name] = one
    return names
