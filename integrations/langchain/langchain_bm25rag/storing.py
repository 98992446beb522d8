"""What the classes over an index have in common: opening, saving, and the one who writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Mode, Tokenizer, in_write_thread
from langchain_bm25rag.opening import open_index


class Stored:
    """A class over an ``index`` that may be that of a folder."""

    index: BM25Index

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        mode: Mode = "r",
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
        analyzer: Analyzer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Open what ``save`` wrote, or any saved ``BM25Index``.

        Parameters
        ----------
        path
            The folder, or its URL for ``mode="r"``.
        mode
            ``"r"`` to search; ``refresh`` then loads later commits. ``"w"`` to write too: the
            folder is locked until ``close``, and made if it is missing; ``commit`` makes the
            changes durable, and ``with`` commits and closes.
        mmap
            Whether to map the files into memory rather than read them.
        tokenizer
            The ``preprocess_func`` that the index was made with, if any.
        verify
            Whether to check every byte on opening.
        untrusted
            Whether the folder comes from an untrusted source; see ``BM25Index.open``.
        timeout
            How many seconds ``mode="w"`` waits for another writer to close, >= 0.
        analyzer, bm25_params
            As in ``BM25Retriever.from_texts``: the settings of a new index. An existing one must
            have the same.
        **kwargs
            Other arguments of the constructor, which are not saved.

        Raises
        ------
        StorageError
            If the folder holds no index, a damaged one, or one that ``untrusted`` refuses, or if
            another writer still has it open.
        TokenizerRequiredError
            If the index was made with a callable and ``tokenizer`` is missing.
        ValueError
            If the index was made with a different ``analyzer`` or ``bm25_params``.
        """
        options = {
            "mode": mode,
            "mmap": mmap,
            "verify": verify,
            "untrusted": untrusted,
            "timeout": timeout,
        }
        construct: Callable[..., Self] = cls
        index = open_index(path, analyzer, tokenizer, bm25_params, options)
        try:
            return construct(index=index, **kwargs)
        except BaseException:
            index.close()  # otherwise the folder stays locked while a traceback holds the index
            raise

    def save(self, path: str | PathLike[str]) -> None:
        """Save documents, analyzer and parameters in a folder or to a URL, in one atomic step."""
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
