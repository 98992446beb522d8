"""The settings of a store: those given, those saved with its index, or the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import MetadataMode
from llama_index.retrievers.bm25rag.persistence import Settings, saved_settings

from bm25rag import BM25Index
from bm25rag.adapters import check_count, check_real
from bm25rag.fusion import fuse

FUSION = ("alpha", "method", "rank_constant", "fetch_k")
ENCODERS = ("sparse_doc_fn", "sparse_query_fn")


class _AsSaved:
    """Stands for an argument that is not given: an error if the index was saved with one."""

    def __repr__(self) -> str:
        return "<as saved>"

    def __copy__(self) -> _AsSaved:
        return self

    def __deepcopy__(self, memo: object) -> _AsSaved:
        return self


AS_SAVED: Any = _AsSaved()


def check_fusion(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of ``FUSION`` that are given, checked.

    Raises
    ------
    TypeError, ValueError
        If one is wrong; the message names it.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if "alpha" in chosen:
        chosen["alpha"] = check_real("alpha", chosen["alpha"], 0, 1)
    if "fetch_k" in chosen:
        chosen["fetch_k"] = check_count("fetch_k", chosen["fetch_k"])
    fuse([], **{name: chosen[name] for name in ("method", "rank_constant") if name in chosen})
    return chosen


def settings_of(
    index: BM25Index, mode: MetadataMode, fusion: Mapping[str, Any], parts: Mapping[str, Any]
) -> Settings:
    """Return the settings of a store over an index.

    Parameters
    ----------
    index
        The index, perhaps saved with settings.
    mode
        Its metadata mode.
    fusion
        What ``check_fusion`` returned.
    parts
        ``dense`` and the functions of ``ENCODERS``, as they were given.

    Raises
    ------
    ValueError
        If a part is not given, and the index was saved with one; the message names it.
    """
    saved = saved_settings(index) or Settings(metadata_mode=mode)
    was = {"dense": saved.dense} | {name: name in saved.encoders for name in ENCODERS}
    for name, value in parts.items():
        if value is AS_SAVED and was[name]:
            raise ValueError(_missing(name, saved))
    has = {name: value is not AS_SAVED and value is not None for name, value in parts.items()}
    return saved.changed(
        {
            "metadata_mode": mode,
            "dense": type(parts["dense"]).__name__ if has["dense"] else None,
            "encoders": [name for name in ENCODERS if has[name]],
            **fusion,
        }
    )


def _missing(name: str, saved: Settings) -> str:
    if name == "dense":
        return (
            f"dense must be given: the index was saved with a dense store ({saved.dense}). Give "
            "dense=..., such as SimpleVectorStore.from_persist_path(path + '.dense'), where "
            "persist(path) saves one in memory, or dense=None to do without, by BM25 alone"
        )
    return (
        f"{name} must be given: the index was saved by a store with such a function, which is not "
        f"saved. Give {name}=..., or {name}=None to do without"
    )
