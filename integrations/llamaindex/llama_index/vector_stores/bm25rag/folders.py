"""Where a store is saved, and with which settings.

``StorageContext.persist`` tells every vector store to save itself as a file, ``NAME.json``. Here
that means the folder ``NAME.bm25`` next to it, and the file only says so. Without a vector store,
``StorageContext.from_defaults`` reads all such files as those of a ``SimpleVectorStore``. This one
makes it fail: in place of a number there is a sentence, which the error repeats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem
from llama_index.core.schema import MetadataMode
from llama_index.retrievers.bm25rag.persistence import Settings, saved_settings
from llama_index.vector_stores.bm25rag.dense import Vectors

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Mode, check_count, check_real, is_url, local_path
from bm25rag.errors import NotAnIndexError
from bm25rag.fusion import check_fusion

FUSION = ("alpha", "method", "rank_constant", "fetch_k")
ENCODERS = ("sparse_doc_fn", "sparse_query_fn")
_SENTENCE = (
    "This is no SimpleVectorStore but a BM25VectorStore, which is loaded first: "
    "StorageContext.from_defaults(persist_dir=persist_dir, "
    "vector_store=BM25VectorStore.from_persist_dir(persist_dir))"
)


class _AsSaved(Enum):  # a member is the same object when it is copied or pickled
    """Stands for an argument that is not given: an error if the index was saved with one."""

    AS_SAVED = "as saved"


AS_SAVED: Any = _AsSaved.AS_SAVED


# --- settings -------------------------------------------------------------------------------


def settings_of(
    index: BM25Index,
    mode: MetadataMode,
    fusion: Mapping[str, Any],
    parts: Mapping[str, Any],
    vectors: Vectors | None,
) -> Settings:
    """Return the settings of a store over an index: those given, those saved, or the defaults.

    ``parts`` are ``dense`` and the functions of ``ENCODERS``, as they were given.
    """
    chosen = {name: value for name, value in fusion.items() if value is not None}
    if "alpha" in chosen:
        chosen["alpha"] = check_real("alpha", chosen["alpha"], 0, 1)
    if "fetch_k" in chosen:
        chosen["fetch_k"] = check_count("fetch_k", chosen["fetch_k"])
    saved = saved_settings(index) or Settings(metadata_mode=mode)
    check_fusion(chosen.get("method", "rrf"), None, chosen.get("rank_constant", 0))
    for name, value in parts.items():
        was = saved.dense if name == "dense" else name in saved.encoders
        if value is AS_SAVED and was:
            raise ValueError(_missing(name, saved))
    if vectors is not None and saved.dense and len(index) and vectors.count() == 0:
        raise ValueError(
            f"dense holds 0 vectors, and the index {len(index)} nodes, which were saved with a "
            f"dense store ({saved.dense}): {_WHICH_DENSE}. To fill a new one, add the nodes to it "
            "before it is given here"
        )
    has = {name: value is not AS_SAVED and value is not None for name, value in parts.items()}
    return saved.changed(
        {
            "metadata_mode": mode,
            "dense": type(parts["dense"]).__name__ if has["dense"] else None,
            "encoders": [name for name in ENCODERS if has[name]],
            **chosen,
        }
    )


_WHICH_DENSE = (
    "give dense=..., such as SimpleVectorStore.from_persist_path(path + '.dense'), where "
    "persist(path) saves one in memory, or dense=None to do without, by BM25 alone"
)


def _missing(name: str, saved: Settings) -> str:
    if name == "dense":
        what = f"with a dense store ({saved.dense})"
        return f"dense must be given: the index was saved {what}; {_WHICH_DENSE}"
    return (
        f"{name} must be given: the index was saved by a store with such a function, which is not "
        f"saved. Give {name}=..., or {name}=None to do without"
    )


# --- folders --------------------------------------------------------------------------------


class Folder:
    """A folder with an index that is locked only while it is written to; made if it is missing.

    An index that is there must have the analyzer and the parameters that are given.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        timeout: float,
        analyzer: Analyzer | None,
        parameters: dict[str, Any],
    ) -> None:
        self.path = path if is_url(path) else local_path(path)
        tokenizer = None if analyzer is None else analyzer.any_tokenizer
        self._options: dict[str, Any] = {"tokenizer": tokenizer, "timeout": timeout}
        options = {"analyzer": analyzer, "timeout": timeout, **parameters}
        try:  # which asks for neither the lock nor the right to write
            mode: Mode = "a" if is_url(path) else "r"  # a URL is refused
            self.reader = BM25Index.open(self.path, mode, tokenizer=tokenizer, **options)
        except NotAnIndexError:
            BM25Index.open(self.path, mode="a", **options).close()
            self.reader = BM25Index.open(self.path, tokenizer=tokenizer)

    def is_at(self, path: str) -> bool:
        """Whether a path is that of this folder."""
        return not is_url(path) and local_path(path) == self.path

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
        return str(Path(local_path(persist_path)).with_suffix(".bm25"))
    return persist_path


def write_signpost(persist_path: str) -> None:
    """Write the file that LlamaIndex reads if nobody tells it of the folder."""
    if folder_of(persist_path) != persist_path:
        content = {"embedding_dict": {"": [_SENTENCE]}}
        Path(local_path(persist_path)).write_text(json.dumps(content), encoding="utf-8")


def check_local(fs: AbstractFileSystem | None) -> None:
    """Refuse any file system but the local one."""
    if fs is not None and not isinstance(fs, LocalFileSystem):
        raise ValueError(
            f"fs must be a local file system or None, got {type(fs).__name__}: the files of an "
            "index are mapped into memory"
        )
