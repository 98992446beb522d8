"""What may be asked of an index: a question in any of the core's forms, with its options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

from llama_index.retrievers.bm25rag.filters import path_of

from bm25rag import BM25Index, Hit, Query
from bm25rag.adapters import DecayLike, check_count, check_flag, check_real, decay_dict
from bm25rag.filters import FilterSpec

Question: TypeAlias = str | Sequence[str] | Mapping[str, float] | Query
"""A text, the terms of one, terms and their weights, or what nodes must have and must not have."""

Expand: TypeAlias = bool | Mapping[str, Any]
"""Whether to expand questions, or the arguments of ``BM25Index.expand``."""

_OF_EXPAND = ("fb_docs", "fb_terms", "original_query_weight")


class Options(NamedTuple):
    """How a question is answered; ``BM25Retriever`` says what each means."""

    correct: bool = False
    expand: Expand = False
    min_score: float | None = None
    offset: int = 0
    spans_key: str | None = None
    group: str | None = None
    per_group: int = 1
    decay: DecayLike | None = None
    parse_query: bool = False

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> Self:
        """Take the options out of other arguments, and check them."""
        return cls(**{name: given.pop(name) for name in cls._fields if name in given}).checked()

    def checked(self) -> Self:
        """Return the same; a ``TypeError`` or ``ValueError`` names an option that is wrong."""
        if not isinstance(self.correct, bool):
            raise TypeError(f"correct must be a bool, got {type(self.correct).__name__}")
        expected = f"expand must be a bool or a mapping with some of {', '.join(_OF_EXPAND)}"
        if isinstance(self.expand, Mapping):
            unknown = [name for name in self.expand if name not in _OF_EXPAND]
            if unknown:
                raise ValueError(f"{expected}, got {unknown[0]!r}")
            BM25Index().expand("", **self.expand)  # checks the values
        elif not isinstance(self.expand, bool):
            raise TypeError(f"{expected}, got {type(self.expand).__name__}")
        if self.min_score is not None:
            check_real("min_score", self.min_score, -math.inf, math.inf)
        if not isinstance(self.spans_key, str | None):
            raise TypeError(f"spans_key must be a str or None, got {self.spans_key!r:.100}")
        check_flag("parse_query", self.parse_query)
        shaping = {"group": _path(self.group), "per_group": self.per_group}
        if list(shaping.values()) != [None, 1]:
            BM25Index().search("", 0, **shaping)  # checks them
        offset, decay = check_count("offset", self.offset), decay_dict(self.decay)
        return self._replace(offset=offset, decay=decay)

    def read(self, question: Question, index: BM25Index) -> Question:
        """Return a question, parsed if it is a text and that is asked for."""
        if self.parse_query and isinstance(question, str):
            return Query.parse(question, fields=index.fields)
        return question

    def changed(self, **given: Any) -> Self:
        """Return options of which those are replaced that are given, and not ``None``."""
        new = {name: value for name, value in given.items() if value is not None}
        return self._replace(**new).checked()


def is_blank(question: object) -> bool:
    """Whether a question asks for nothing: only a filter can say then what is wanted."""
    return not question or (isinstance(question, str) and question.isspace())


def search(
    index: BM25Index, question: Question, k: int, filter: FilterSpec | None, options: Options
) -> list[Hit]:
    """Return the nodes that contain a term of a question, ranked, of a snapshot of an index."""
    question, correct = options.read(question, index), options.correct
    if options.expand:
        if correct:
            question, correct = index.correct(question, filter).terms, False
        given = options.expand if isinstance(options.expand, Mapping) else {}
        question = index.expand(question, filter=filter, **given)
    return index.search(question, k, filter, correct=correct, **page_of(options))


def page_of(options: Options) -> dict[str, Any]:
    """Return which results are wanted, as arguments of the core's searches."""
    if (decay := decay_dict(options.decay)) is not None:
        decay["path"] = _path(decay["path"])
    return {
        "min_score": options.min_score,
        "offset": options.offset,
        "group": _path(options.group),
        "per_group": options.per_group,
        "decay": decay,
    }


def _path(key: Any) -> Any:
    """Return the core's path for a key of the metadata, as filters name it."""
    return path_of(key) if isinstance(key, str) and key != "$text" else key
