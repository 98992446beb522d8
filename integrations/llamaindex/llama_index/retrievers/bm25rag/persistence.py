"""The settings of a retriever, which are kept with its index, in the same commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llama_index.core.bridge.pydantic import BaseModel, ValidationError
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, NotAnIndexError

_KEY = "llama_index"
_BM25S = "params.index.json"


class Settings(BaseModel):
    """What a retriever has that its index has not."""

    similarity_top_k: int
    filters: MetadataFilters | None
    metadata_mode: MetadataMode
    verbose: bool
    object_ids: list[str]
    classes: list[str]


def save(index: BM25Index, folder: Path, settings: Settings) -> None:
    """Save an index and the settings; what others keep with the index stays."""
    index.save(folder, extra=index.extra | {_KEY: settings.model_dump(mode="json")})


def load(folder: Path, tokenizer: Callable[[str], list[str]] | None) -> tuple[BM25Index, Settings]:
    """Open an index for reading, with the settings.

    Raises
    ------
    NotAnIndexError
        If the folder was written by llama-index-retrievers-bm25, or holds no retriever.
    CorruptIndexError
        If the settings cannot be read.
    """
    try:
        index = BM25Index.open(folder, tokenizer=tokenizer)
    except NotAnIndexError:
        if not (folder / _BM25S).exists():
            raise
        raise NotAnIndexError(
            f"{folder} was written by llama-index-retrievers-bm25, which saves neither "
            "language nor stemmer nor token pattern: make a BM25Retriever of the nodes and "
            "persist that into another folder"
        ) from None
    written = index.extra.get(_KEY)
    if written is None:
        raise NotAnIndexError(
            f"{folder} holds an index that was not written by persist(); "
            "BM25Retriever(existing_bm25=BM25Index.open(path)) searches it"
        )
    try:
        return index, Settings.model_validate(written)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, (_KEY, *first["loc"])))
        raise CorruptIndexError(f"{folder}: wrong settings at {at}: {first['msg']}") from None
