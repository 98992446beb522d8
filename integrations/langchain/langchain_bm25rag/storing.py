"""What the classes over an index have in common: making, opening, saving, and the one writer."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.indexing import RecordManager

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Call, Plan, Tokenizer, planned
from bm25rag.errors import ReadOnlyError
from langchain_bm25rag.aligning import align_records
from langchain_bm25rag.awaiting import awaited, reading, writing
from langchain_bm25rag.documents import Ids, Metadatas, read_ids, replace_metadata, to_documents
from langchain_bm25rag.settings import Opening, make_index, open_index


class Stored:
    """A class over an ``index`` that may be that of a folder."""

    index: BM25Index

    @classmethod
    def _made(
        cls,
        analyzer: Analyzer | None = None,
        preprocess_func: Tokenizer | None = None,
        bm25_params: Any = None,
        bm25_variant: str | None = None,
        **fields: Any,
    ) -> Self:
        """Return one over a new index."""
        construct: Callable[..., Self] = cls
        index = make_index(analyzer, preprocess_func, bm25_params, bm25_variant)
        return construct(index=index, **fields)

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Any) -> Self:
        """Open a saved index; subclasses say what ``options`` there are."""
        opening = {name: options.pop(name) for name in Opening.__annotations__ if name in options}
        index = open_index(path, **opening)
        construct: Callable[..., Self] = cls
        try:
            return construct(index=index, **options)
        except BaseException:
            index.close()  # otherwise the folder stays locked while a traceback holds the index
            raise

    def get_by_ids(self, ids: Ids, /) -> list[Document]:
        """Return documents in the order of the ids; a number becomes a string.

        Unknown ids are skipped. What is no iterable of strings and numbers is a ``TypeError``.
        """
        return to_documents(self.index.get(read_ids(ids)))

    aget_by_ids = awaited(get_by_ids, reading)

    def update_metadata(self, ids: Ids, metadatas: Metadatas) -> list[str]:
        """Replace the whole metadata of documents, and return the ids of those there are.

        They keep their texts; a number becomes a string.

        Raises
        ------
        TypeError, ValueError, MetadataError, ReadOnlyError
            If an argument or an element has the wrong type, the two differ in length, metadata
            cannot be stored (the message says which), or the index was opened for reading.
        """
        return replace_metadata(self.index, ids, metadatas)

    aupdate_metadata = awaited(update_metadata, writing)

    @planned
    def align(self, records: RecordManager) -> Plan[Any]:
        """Make the index and a record manager forget what only one of the two knows.

        After a crash they can differ; the run of ``index()`` that follows adds what is wanted.
        Nothing else may write to the manager's namespace, or to the index.
        """
        yield from align_records(self, records)

    aalign = awaited(align, writing)

    def save(self, path: str | PathLike[str]) -> None:
        """Save documents, analyzer and parameters in a folder or to a URL, in one atomic step."""
        self.index.save(path)

    asave = awaited(save, writing)

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        It raises ``ReadOnlyError`` if this was not opened for writing, as ``rollback`` does.
        """
        self.index.commit()

    acommit = awaited(commit, writing)

    def rollback(self) -> None:
        """Go back to the last commit."""
        self.index.rollback()

    arollback = awaited(rollback, writing)

    def refresh(self) -> bool:
        """Load the last commit of the folder, and say whether it is a newer one.

        It raises ``StorageError`` if this was not opened with ``mode="r"``.
        """
        return self.index.refresh()

    arefresh = awaited(refresh, writing)

    def close(self) -> None:
        """Release the writer's lock without a commit; do nothing if there is no lock.

        Warns if there are uncommitted changes, which are lost.
        """
        self.index.close()

    aclose = awaited(close, writing)

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    @planned
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Plan[None]:
        """Commit, or after an error return to the last commit; then close."""
        try:
            yield Call(self, "commit" if error is None else "rollback")
        except ReadOnlyError:
            pass  # there is nothing to commit to
        except BaseException:
            if error is None:
                yield Call(self, "rollback")
            raise
        finally:
            yield Call(self, "close")

    __aexit__ = awaited(__exit__, writing)
