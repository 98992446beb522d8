"""A question with all its options, as adapters and their settings have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple, Self, TypeAlias, TypedDict

from bm25rag.common.checks import check_count, check_flag, check_real
from bm25rag.decay import DecayLike, decay_dict
from bm25rag.documents import Document, Hit, in_fields
from bm25rag.filters import FilterSpec
from bm25rag.fusion import FusionMethod
from bm25rag.index import BM25Index
from bm25rag.search.query import Query

Question: TypeAlias = str | Sequence[str] | Mapping[str, float] | Query
"""A text, its terms, terms and their weights, or what documents must have and must not have."""
Expand: TypeAlias = bool | Mapping[str, Any]
"""Whether to expand questions, or the arguments of ``BM25Index.expand``."""

_OF_EXPAND = ("fb_docs", "fb_terms", "original_query_weight")


class Page(TypedDict, total=False):
    """Which results are wanted, as in ``BM25Index.search``."""

    offset: int
    group: str | None
    per_group: int
    decay: DecayLike | None


class Options(Page, total=False):
    """The same, and how a question is changed: options of ``Asking`` as keywords."""

    correct: bool
    expand: Expand
    min_score: float | None
    parse_query: bool


class Fusing(TypedDict, total=False):
    """How two rankings are fused, as in ``BM25Index.search_hybrid``."""

    fetch_k: int
    method: FusionMethod
    weights: Sequence[float] | None
    rank_constant: int


class Asking(NamedTuple):
    """How questions are answered; a setting that is kept, or the options of one call.

    Parameters
    ----------
    min_score, correct, offset, group, per_group, decay
        As in ``BM25Index.search``.
    expand
        Whether to expand questions; or the arguments of ``BM25Index.expand``.
    parse_query
        Whether to read quotes and signs in texts, as ``Query.parse`` does.
    """

    min_score: float | None = None
    correct: bool = False
    expand: Expand = False
    offset: int = 0
    parse_query: bool = False
    group: str | None = None
    per_group: int = 1
    decay: DecayLike | None = None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> Self:
        """Take the options out of other arguments, from which they are removed."""
        return cls(**{name: given.pop(name) for name in cls._fields if name in given})

    @classmethod
    def check_names(cls, given: Mapping[str, Any], *others: str) -> None:
        """Raise ``TypeError`` for a name of no option; it lists what ``others`` a search takes."""
        if unknown := [name for name in given if name not in cls._fields]:
            takes = ", ".join((*others, *cls._fields))
            raise TypeError(f"a search takes {takes}, got {', '.join(unknown)}")

    @property
    def is_usual(self) -> bool:
        """Whether all options are those of most questions: nothing is asked for."""
        return all(map(is_, self, _USUAL))

    def checked(self) -> Self:
        """Return the same; a ``TypeError`` or ``ValueError`` names an option that is wrong."""
        if self.is_usual:
            return self
        check_flag("correct", self.correct)
        if isinstance(self.expand, Mapping):
            if unknown := [name for name in self.expand if name not in _OF_EXPAND]:
                raise ValueError(
                    f"expand must be a bool or a mapping with some of {', '.join(_OF_EXPAND)}, "
                    f"got {unknown[0]!r}"
                )
            BM25Index().expand("", **self.expand)  # checks the values
        else:
            check_flag("expand", self.expand)
        if self.min_score is not None:
            check_real("min_score", self.min_score, -math.inf, math.inf)
        check_flag("parse_query", self.parse_query)
        if (self.group, self.per_group) != (None, 1):
            BM25Index().search("", 0, group=self.group, per_group=self.per_group)  # checks them
        offset = check_count("offset", self.offset)
        if self.decay is None and offset is self.offset:  # most of them
            return self
        return self._replace(offset=offset, decay=decay_dict(self.decay))

    def with_paths(self, path_of: Callable[[str], str]) -> Self:
        """Return the same for fields of metadata as a framework names them.

        ``path_of`` returns the core's path for a name, as filters have it.
        """
        group, decay = self.group, decay_dict(self.decay)
        if group is None and decay is None:  # most of them
            return self
        if isinstance(group, str) and group != "$text":
            group = path_of(group)
        if decay is not None:
            decay["path"] = path_of(str(decay["path"]))
        return self._replace(group=group, decay=decay)

    @property
    def page(self) -> dict[str, Any]:
        """Which results are wanted, as arguments of the core's searches."""
        return {
            "min_score": self.min_score,
            "offset": self.offset,
            "group": self.group,
            "per_group": self.per_group,
            "decay": self.decay,
        }

    def read(self, question: Question, index: BM25Index) -> Question:
        """Return a question; a text that is not blank is parsed if that is asked for.

        The index may have fields.
        """
        if not check_flag("parse_query", self.parse_query):
            return question
        if isinstance(question, str) and not is_blank(question):
            return Query.parse(question, fields=index.fields)
        return question

    def rewrite(
        self, question: Question, index: BM25Index, filter: FilterSpec | None = None
    ) -> tuple[Question, bool]:
        """Return a question, expanded if that is asked for, and whether it is to be corrected.

        It is one that ``read`` has returned; ``index`` is a snapshot.
        """
        arguments = self.expand
        if arguments is False:  # most questions
            return question, self.correct
        if not isinstance(arguments, Mapping):
            if not check_flag("expand", arguments):
                return question, self.correct
            arguments = {}
        if check_flag("correct", self.correct):
            question = index.correct(question, filter).terms
        return index.expand(question, filter, **arguments), False

    def find(
        self, index: BM25Index, question: Question, k: int, filter: FilterSpec | None = None
    ) -> list[Hit]:
        """Return the k best documents; for a blank question, the first k that pass the filter.

        The latter have score 0, whatever ``min_score`` is; without a filter there are none.
        ``index`` is a snapshot.
        """
        if filter is None and self.is_usual:
            return index.search(question, k)
        if filter is not None and is_blank(question):
            index.search(question or "", k, min_score=self.min_score)  # checks them
            return [
                Hit(one.id, 0.0, one.text, one.metadata, one.payload, fields=one.fields)
                for one in index.get(index.ids(filter, k=k, offset=self.offset))
            ]
        asked, correct = self.rewrite(self.read(question, index), index, filter)
        return index.search(asked, k, filter, correct=correct, **self.page)


_USUAL = Asking()


def is_blank(question: object) -> bool:
    """Whether a question asks for nothing: only a filter can say then what is wanted."""
    if isinstance(question, Query):
        parts = question.also, question.must, question.must_not, question.phrases
        return is_blank(question.text) and not any((*parts, question.not_phrases))
    return not question or (isinstance(question, str) and question.isspace())


def with_fields(index: BM25Index, documents: Iterable[Document]) -> Iterable[Document]:
    """Return documents with the fields of an index that has some, from their metadata.

    Their texts are one of the fields.
    """
    fields = index.fields
    return documents if fields is None else _with_fields(fields, documents)


def _with_fields(fields: Iterable[str], documents: Iterable[Document]) -> Iterator[Document]:
    for document in documents:
        document.fields = in_fields(document.text or "", document.metadata, fields)
        yield document
