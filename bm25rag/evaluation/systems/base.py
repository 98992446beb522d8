"""What a benchmark asks of a system."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

from bm25rag.documents import Document
from bm25rag.evaluation.retrievers import Found as Found


class CannotRunError(Exception):
    """What a system needs besides packages is missing; the message says what."""


class System(ABC):
    """The interface of a system; every system has ``build`` and ``search``."""

    #: The package whose version is reported.
    package: ClassVar[str] = ""
    #: Whether the work is done by a server, whose memory is not that of this process.
    remote: ClassVar[bool] = False
    #: Whether ``build`` takes documents one by one, so that they need not all be in memory.
    streams: ClassVar[bool] = False
    #: Seconds of warm-up queries at least: what is compiled while it runs needs them.
    warmup: ClassVar[float] = 0.0

    def version(self) -> str | None:
        """Return the version of the engine, if it is known."""
        try:
            return version(self.package) if self.package else None
        except PackageNotFoundError:
            return None

    @abstractmethod
    def build(self, documents: Sequence[Document]) -> None:
        """Index documents."""

    @abstractmethod
    def search(self, query: str, k: int) -> Found:
        """Return ids and scores of the best k, best first."""

    def search_batch(self, queries: Sequence[str], k: int, threads: int) -> None:
        """Answer many queries; one by one unless the system has a better way."""
        for query in queries:
            self.search(query, k)

    # Most leave nothing, so this is no abstract method.
    def close(self) -> None:  # noqa: B027
        """Remove what the system left elsewhere."""


class SavedSystem(System):
    """A system that can be saved; a new process opens what another has written."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the index to a folder."""

    @abstractmethod
    def load(self, folder: Path) -> None:
        """Open the index that ``save`` wrote."""


class FolderSystem(SavedSystem):
    """A system that builds its index in a folder, which is copied to save it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="bm25rag-bench-"))

    def save(self, folder: Path) -> None:
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def write_ids(folder: Path, ids: list[str]) -> None:
    """Write the ids of documents beside an engine's files, which know only their numbers."""
    (folder / "ids.txt").write_text("\n".join(ids), encoding="utf-8")


def read_ids(folder: Path) -> list[str]:
    """Read what ``write_ids`` has written."""
    return (folder / "ids.txt").read_text(encoding="utf-8").split("\n")
