"""The index of a retriever or a store: an existing one, or an empty one with these settings."""

from __future__ import annotations

from typing import Any

from llama_index.retrievers.bm25rag.analysis import NO_ANALYSIS, StemmerLike, make_analyzer
from llama_index.retrievers.bm25rag.persistence import bring_up_to_date

from bm25rag import BM25Index
from bm25rag.adapters import Tokenizer


def choose_index(
    existing: BM25Index | None,
    analysis: tuple[str | None, StemmerLike | None, bool, str, Tokenizer | None],
    given: dict[str, Any],
) -> BM25Index:
    """Return the existing index, its nodes in the current form, or an empty one.

    Parameters
    ----------
    existing
        The index, if any.
    analysis
        language, stemmer, skip_stemming, token_pattern and tokenizer.
    given
        The parameters of ``BM25Index`` by name; ``None`` for its defaults.

    Raises
    ------
    TypeError, ValueError
        If ``existing`` is anything but a core index, or settings are given with it.
    """
    parameters = {name: value for name, value in given.items() if value is not None}
    if existing is None:
        return BM25Index(make_analyzer(*analysis), **parameters)
    _check(existing, analysis != NO_ANALYSIS, list(parameters))
    bring_up_to_date(existing)
    return existing


def _check(index: object, analysis: bool, parameters: list[str]) -> None:
    """Refuse anything but a core index, and settings that the index has already."""
    if not isinstance(index, BM25Index):
        got = f"{type(index).__module__}.{type(index).__qualname__}"
        raise TypeError(f"existing_bm25 must be a bm25rag.BM25Index or None, got {got}")
    if analysis:
        raise ValueError(
            "existing_bm25 has an analyzer; leave language, stemmer, skip_stemming, "
            "token_pattern and tokenizer out"
        )
    if parameters:
        raise ValueError(
            f"existing_bm25 has parameters; leave {', '.join(parameters)} out, or give "
            "BM25Index(k1=..., b=..., variant=...)"
        )
