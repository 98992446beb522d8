"""Which text of a node is indexed: one mode for all nodes of an index."""

from __future__ import annotations

from llama_index.core.schema import MetadataMode
from llama_index.retrievers.bm25rag.lookup import mode_of
from llama_index.retrievers.bm25rag.persistence import saved_settings

from bm25rag import BM25Index


def choose_mode(index: BM25Index, given: object) -> MetadataMode:
    """Return the given mode, or that of the index, or ``EMBED``.

    Raises
    ------
    TypeError, ValueError
        If it is not a metadata mode.
    ValueError
        If the nodes of the index were indexed with another mode.
    """
    wanted = None if given is None else _check_mode(given)
    settings = saved_settings(index)
    saved = None if settings is None else settings.metadata_mode
    held = mode_of(index) or (saved if len(index) else None)
    if wanted is not None and held is not None and wanted is not held:
        raise ValueError(
            f"metadata_mode must be {held.value!r}, by which the nodes of the index were indexed, "
            f"got {wanted.value!r}; a new BM25Retriever(nodes, metadata_mode=...) can use another"
        )
    return wanted or held or saved or MetadataMode.EMBED


def _check_mode(given: object) -> MetadataMode:
    message = (
        f"metadata_mode must be a MetadataMode ({', '.join(mode.value for mode in MetadataMode)}) "
        f"or None, got {given!r:.100}"
    )
    if not isinstance(given, str):
        raise TypeError(message)
    try:
        return MetadataMode(given)
    except ValueError:
        raise ValueError(message) from None
