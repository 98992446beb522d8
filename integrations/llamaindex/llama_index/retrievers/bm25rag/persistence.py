"""The settings of a retriever or a store, saved with its index in the same commit."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

from llama_index.core.bridge.pydantic import BaseModel, Field, ValidationError
from llama_index.core.constants import DEFAULT_SIMILARITY_TOP_K
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters
from llama_index.retrievers.bm25rag.analysis import Stemming

from bm25rag import BM25Index
from bm25rag.adapters import Tokenizer, is_url, local_path
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.fusion import FusionMethod

_KEY = "llama_index"
_BM25S = "params.index.json"


class Settings(BaseModel):
    """What a retriever or a store has beyond its index; each keeps what the other saved."""

    metadata_mode: MetadataMode

    # Of a retriever.
    similarity_top_k: int = DEFAULT_SIMILARITY_TOP_K
    filters: MetadataFilters | None = None
    verbose: bool = False
    object_ids: list[str] = Field(default_factory=list)
    correct: bool = False
    expand: bool | dict[str, Any] = False
    min_score: float | None = None
    spans_key: str | None = None
    group: str | None = None
    per_group: int = 1
    decay: dict[str, Any] | None = None
    parse_query: bool = False

    # Of a store.
    alpha: float = 0.5
    method: FusionMethod = "minmax"
    rank_constant: int = 60
    fetch_k: int = 100
    # What cannot be saved and must be given again: the dense store, by the name of its class, and
    # the functions for sparse vectors, by those of the arguments.
    dense: str | None = None
    encoders: list[str] = Field(default_factory=list)
    # Of the dense store's vectors; 0 if unknown.
    dimension: int = 0

    def changed(self, given: Mapping[str, Any]) -> Self:
        """Return settings of which some are others; one of a wrong type is a ``ValueError``."""
        return self.model_validate({**dict(self), **given})

    def write_to(self, extra: dict[str, Any]) -> dict[str, Any]:
        """Return what is saved with an index; what others stored with it stays."""
        return extra | {_KEY: self.model_dump(mode="json")}


def saved_settings(index: BM25Index) -> Settings | None:
    """Return the settings with which a retriever or store of the index was saved, if any was."""
    try:
        return Settings.model_validate(index.extra.get(_KEY))
    except ValidationError:
        return None


def save(index: BM25Index, folder: str | PathLike[str], settings: Settings) -> None:
    """Save an index and the settings; an own stemmer that cannot be saved is a ``ValueError``."""
    if isinstance(index.analyzer.tokenizer, Stemming):
        raise ValueError(
            "stemmer cannot be saved: it matches none of PyStemmer's algorithms. Use one of "
            "them, or give a tokenizer, to the constructor and when loading"
        )
    index.save(folder, extra=settings.write_to(index.extra))


def load(folder: str | PathLike[str], tokenizer: Tokenizer | None) -> tuple[BM25Index, Settings]:
    """Open an index that can be changed in memory, and the settings."""
    try:
        index = BM25Index.open(folder, tokenizer=tokenizer)
    except NotAnIndexError:
        if is_url(folder) or not Path(local_path(folder), _BM25S).exists():
            raise
        raise NotAnIndexError(
            f"{folder} was written by llama-index-retrievers-bm25, which saves neither "
            "language nor stemmer nor token pattern: make a BM25Retriever from the nodes and "
            "persist it to another folder"
        ) from None
    written = index.extra.get(_KEY)
    if written is None:
        raise NotAnIndexError(
            f"{folder} holds an index that was not written by persist(); "
            "BM25Retriever(existing_bm25=BM25Index.open(path)) searches it"
        )
    try:
        return copy.copy(index), Settings.model_validate(written)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, (_KEY, *first["loc"])))
        raise CorruptIndexError(f"{folder}: wrong settings at {at}: {first['msg']}") from None
