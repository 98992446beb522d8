"""Where a store is saved: a folder of its own, and one that LlamaIndex names as a file.

``StorageContext.persist`` tells every vector store to save itself as a file, ``NAME.json``. Here
that means the folder ``NAME.bm25`` next to it, and the file only says so. Without a vector store,
``StorageContext.from_defaults`` reads all such files as those of a ``SimpleVectorStore``. This one
makes it fail: in place of a number there is a sentence, which the error repeats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem
from llama_index.retrievers.bm25rag.persistence import Settings, bring_up_to_date, saved_settings
from llama_index.vector_stores.bm25rag.settings import ENCODERS

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import is_url

_SENTENCE = (
    "This is no SimpleVectorStore but a BM25VectorStore, which is loaded first: "
    "StorageContext.from_defaults(persist_dir=persist_dir, "
    "vector_store=BM25VectorStore.from_persist_dir(persist_dir))"
)


class Folder:
    """A folder with an index that is locked only while it is written to; made if it is missing.

    Parameters
    ----------
    path
        The folder.
    timeout
        How many seconds to wait while another writes.
    analyzer, parameters
        The settings of a new index; one that is there must have those that are given.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        timeout: float,
        analyzer: Analyzer | None,
        parameters: dict[str, Any],
    ) -> None:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"path must be a str or a path, got {type(path).__name__}")
        self.path = str(path) if is_url(path) else str(Path(path).expanduser().resolve())
        tokenizer = None if analyzer is None else analyzer.tokenizer
        self._options: dict[str, Any] = {"tokenizer": tokenizer, "timeout": timeout}
        options = {"analyzer": analyzer, "timeout": timeout, **parameters}
        with BM25Index.open(self.path, mode="a", **options) as index:
            bring_up_to_date(index)
        self.reader = BM25Index.open(self.path, tokenizer=tokenizer)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "reader"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.reader = BM25Index.open(self.path, tokenizer=self._options["tokenizer"])

    def is_at(self, path: str) -> bool:
        """Whether a path is that of this folder."""
        return not is_url(path) and str(Path(path).resolve()) == self.path

    def remember(self, settings: Settings) -> None:
        """Save settings with the index, and the parts that any store over it had."""
        saved = saved_settings(self.reader)
        if saved is not None:
            encoders = [name for name in ENCODERS if name in saved.encoders + settings.encoders]
            parts = {"dense": settings.dense or saved.dense, "encoders": encoders}
            settings = settings.changed(parts)
        if settings != saved:
            with self.writing() as index:
                index.save(self.path, extra=settings.write_to(index.extra))

    @contextmanager
    def writing(self) -> Iterator[BM25Index]:
        """Give the last commit to one writer; commit, or after an error change nothing."""
        with BM25Index.open(self.path, mode="w", **self._options) as index:
            yield index
        self.reader.refresh()


def folder_of(persist_path: str) -> str:
    """Return the folder of a store that is saved at a path."""
    if persist_path.endswith(".json") and not is_url(persist_path):
        return str(Path(persist_path).with_suffix(".bm25"))
    return persist_path


def write_signpost(persist_path: str) -> None:
    """Write the file that LlamaIndex reads if nobody tells it of the folder."""
    if folder_of(persist_path) != persist_path:
        content = {"embedding_dict": {"": [_SENTENCE]}}
        Path(persist_path).write_text(json.dumps(content), encoding="utf-8")


def check_local(fs: AbstractFileSystem | None) -> None:
    """Refuse any file system but the local one.

    Raises
    ------
    ValueError
        If it is another.
    """
    if fs is not None and not isinstance(fs, LocalFileSystem):
        raise ValueError(
            f"fs must be a local file system or None, got {type(fs).__name__}: the files of an "
            "index are mapped into memory"
        )
