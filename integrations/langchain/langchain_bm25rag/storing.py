"""What the classes over an index have in common: opening, saving, and the one who writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Mode, Tokenizer
from bm25rag.errors import ReadOnlyError
from langchain_bm25rag.documents import replace_metadata
from langchain_bm25rag.settings import open_index
from langchain_bm25rag.steps import Plan, Step, arun, run
from langchain_bm25rag.threads import runs, writing


class Stored:
    """A class over an ``index`` that may be that of a folder."""

    index: BM25Index

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        mode: Mode = "r",
        analyzer: Analyzer | None = None,
        tokenizer: Tokenizer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        mmap: bool = True,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
        **fields: Any,
    ) -> Self:
        """Open a saved index; subclasses say what ``fields`` there are."""
        options = {"mmap": mmap, "verify": verify, "untrusted": untrusted, "timeout": timeout}
        index = open_index(path, mode, analyzer, tokenizer, bm25_params, options)
        construct: Callable[..., Self] = cls
        try:
            return construct(index=index, **fields)
        except BaseException:
            index.close()  # otherwise the folder stays locked while a traceback holds the index
            raise

    def update_metadata(
        self, ids: Iterable[str | float], metadatas: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of documents, which keep their texts; unknown ids are ignored.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.
        metadatas
            The whole new metadata of each.

        Returns
        -------
        ids
            The ids of the documents that were changed.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type.
        ValueError
            If the two differ in length.
        MetadataError
            If metadata cannot be stored; the message names row, document and key.
        ReadOnlyError
            If the index was opened for reading.
        """
        return replace_metadata(self.index, ids, metadatas)

    @runs(update_metadata, writing)
    def aupdate_metadata(self) -> None:
        """Run ``update_metadata`` in a thread."""

    def save(self, path: str | PathLike[str]) -> None:
        """Save documents, analyzer and parameters in a folder or to a URL, in one atomic step."""
        self.index.save(path)

    @runs(save, writing)
    def asave(self) -> None:
        """Run ``save`` in a thread."""

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        Raises
        ------
        ReadOnlyError
            If this was not opened for writing.
        """
        self.index.commit()

    @runs(commit, writing)
    def acommit(self) -> None:
        """Run ``commit`` in a thread."""

    def rollback(self) -> None:
        """Go back to the last commit.

        Raises
        ------
        ReadOnlyError
            If this was not opened for writing.
        """
        self.index.rollback()

    @runs(rollback, writing)
    def arollback(self) -> None:
        """Run ``rollback`` in a thread."""

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

    @runs(refresh, writing)
    def arefresh(self) -> None:
        """Run ``refresh`` in a thread."""

    def close(self) -> None:
        """Release the writer's lock without a commit; do nothing if there is no lock.

        Warns if there are uncommitted changes, which are lost.
        """
        self.index.close()

    @runs(close, writing)
    def aclose(self) -> None:
        """Run ``close`` in a thread."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit, or after an error return to the last commit; then close."""
        run(self._finishing(error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Do what ``with`` does, with the asynchronous methods."""
        await arun(self._finishing(error), self.index)

    def _finishing(self, error: BaseException | None) -> Plan[None]:
        try:
            yield Step(self, "commit" if error is None else "rollback")
        except ReadOnlyError:
            pass  # there is nothing to commit to
        except BaseException:
            if error is None:
                yield Step(self, "rollback")
            raise
        finally:
            yield Step(self, "close")
