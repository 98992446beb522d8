"""What the classes over an index have in common: saving it, and the one who writes to it."""

from __future__ import annotations

from os import PathLike
from types import TracebackType
from typing import Self

from bm25rag import BM25Index
from bm25rag.adapters import in_write_thread


class Stored:
    """A class over an ``index`` that may be that of a folder."""

    index: BM25Index

    def save(self, path: str | PathLike[str]) -> None:
        """Save documents, analyzer and parameters in a folder, in one atomic step."""
        self.index.save(path)

    async def asave(self, path: str | PathLike[str]) -> None:
        """Run ``save`` in a thread."""
        await in_write_thread(self.index, self.save, path)

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        Raises
        ------
        ReadOnlyError
            If this was not opened with ``mode="w"``.
        """
        self.index.commit()

    async def acommit(self) -> None:
        """Run ``commit`` in a thread."""
        await in_write_thread(self.index, self.commit)

    def refresh(self) -> bool:
        """Load the last commit of the folder, which another process may have made.

        Returns
        -------
        changed
            Whether there was a newer commit.

        Raises
        ------
        StorageError
            If this was not opened with ``mode="r"``.
        """
        return self.index.refresh()

    async def arefresh(self) -> bool:
        """Run ``refresh`` in a thread."""
        return await in_write_thread(self.index, self.refresh)

    def close(self) -> None:
        """Release the writer's lock without a commit; do nothing if there is no lock.

        Warns
        -----
        ResourceWarning
            If there are uncommitted changes; they are lost.
        """
        self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit, or after an error return to the last commit; then close."""
        self.index.__exit__(kind, error, trace)
