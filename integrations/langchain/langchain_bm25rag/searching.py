"""The base class of the retrievers and the document index: their fields, and searching."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from operator import itemgetter
from os import PathLike
from typing import Annotated, Any, Self, Unpack

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, Field, SkipValidation, WithJsonSchema, model_validator
from typing_extensions import TypeAliasType  # which Pydantic requires

from bm25rag import BM25Index, Hit
from bm25rag.adapters import Asking, DecayLike, Options, Question, check_count, spans_of
from langchain_bm25rag.awaiting import awaits, reading
from langchain_bm25rag.documents import to_documents
from langchain_bm25rag.filters import Filter, copy_filter, filter_of, search
from langchain_bm25rag.settings import Opening, check_call
from langchain_bm25rag.storing import Stored

# LangChain makes a model and a JSON schema from the bare types of configurable fields; only in a
# named alias does an annotation survive that.
Index = TypeAliasType(
    "Index", Annotated[BM25Index, WithJsonSchema({"title": "BM25Index", "type": "object"})]
)

_SHORT = reprlib.Repr()
_SHORT.maxother = 200  # characters; the repr of an index takes about 150

_PER_CALL = ("k", "filter", *Asking._fields)
_options_in = itemgetter(*Asking._fields)
# What calls take, as ``check_call`` says it.
_TAKES = (
    "k, filter and min_score for each call, got {}; also correct, expand, offset, parse_query, "
    "group, per_group and decay: "
    "a retriever takes everything else in its constructor"
)


class Fields(Options, total=False):
    """The fields of a retriever except its index."""

    k: int
    filter: Filter | None
    score_key: str | None
    id_key: str | None
    spans_key: str | None
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class OpeningFields(Opening, Fields):
    """What opens a folder, and fields."""


class SearchingBM25(Stored, BaseRetriever):
    """A retriever over a ``BM25Index``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index = Field(default_factory=BM25Index)
    """The index; several retrievers may share one."""

    k: SkipValidation[int] = 4
    """How many documents to return at most, >= 0."""

    filter: SkipValidation[Filter | None] = None
    """Which documents may be returned: a dict in bm25rag's filter language, a set of ids, or a
    callable, which every search calls with the documents that match and pass the rest. A blank
    question returns all that pass, in document order."""

    min_score: SkipValidation[float | None] = None
    """The lowest score that is returned. It does not apply to a filter alone, which scores none."""

    correct: SkipValidation[bool] = False
    """Whether to correct words of the question that no document has, as ``BM25Index.correct``."""

    expand: SkipValidation[bool] = False
    """Whether to add words of the best documents to the question, as ``BM25Index.expand``."""

    offset: SkipValidation[int] = 0
    """How many of the best documents to leave out: the next page begins at ``offset + k``."""

    group: SkipValidation[str | None] = None
    """How results are grouped: by a path in the metadata, such as ``"source"``, as in
    ``BM25Index.search``."""

    per_group: SkipValidation[int] = 1
    """How many documents of each group to return at most."""

    decay: SkipValidation[DecayLike | None] = None
    """What lowers scores, by age or a number, as in ``BM25Index.search``."""

    parse_query: SkipValidation[bool] = False
    """Whether to read quotes and signs in a question, as ``bm25rag.Query.parse`` does."""

    score_key: str | None = None
    """The metadata key for the score of a result; ``None`` for none."""

    id_key: str | None = None
    """The metadata key for the id of a result; ``None`` for none."""

    spans_key: str | None = None
    """The metadata key for the words of a result that match, each a dict of ``start`` and ``end``
    in its content, and ``term``; ``None`` for none. To find them takes as long as to index it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.filter is not None:
            filter_of(self.index, self.filter)
            self.filter = copy_filter(self.filter)
        check_count("k", self.k)
        Asking(*(getattr(self, name) for name in Asking._fields)).checked()
        keys = [key for key in (self.score_key, self.id_key, self.spans_key) if key is not None]
        if len(set(keys)) < len(keys):
            message = f"score_key, id_key and spans_key must differ, got {keys!r}"
            raise ValueError(message)
        return self

    def __repr_str__(self, join_str: str) -> str:
        # Pydantic's hook for repr and str; a filter may contain any number of ids.
        return join_str.join(f"{name}={_SHORT.repr(value)}" for name, value in self.__repr_args__())

    @classmethod
    def from_index(cls, index: BM25Index, **fields: Any) -> Self:
        """Search an existing index, which is shared, not copied, by a retriever of these fields."""
        return cls(index=index, **fields)

    @classmethod
    def open(  # type: ignore[override]
        cls, path: str | PathLike[str], **options: Unpack[OpeningFields]
    ) -> Self:
        """Open what ``save`` wrote, or any saved ``BM25Index``.

        The keywords are those of ``BM25VectorStore.open``, and the fields, which are not saved.
        """
        return super().open(path, **options)

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(ls_retriever_name="bm25rag")

    def _get_relevant_documents(
        self, query: Question, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        return self._documents(search(self.index, query, *self._asked(query, given)))

    @awaits(_get_relevant_documents, reading)
    def _aget_relevant_documents(self) -> None:  # type: ignore[override]
        """Do what ``_get_relevant_documents`` does while the event loop goes on."""

    def _asked(self, query: object, given: Mapping[str, Any]) -> tuple[int, Filter | None, Asking]:
        """Return what a call asks for, with the fields in place of arguments that are None."""
        unknown = [name for name in given if name not in _PER_CALL]
        check_call(type(self).__name__, query, unknown, _TAKES)
        asked = self.__dict__
        if given:
            asked = asked | {name: value for name, value in given.items() if value is not None}
        return asked["k"], asked["filter"], Asking._make(_options_in(asked))

    def _documents(self, hits: Sequence[Hit]) -> list[Document]:
        """Return hits as documents, with what their metadata shall tell."""
        shown: dict[str, list[Any]] = {}
        if self.score_key is not None:
            shown[self.score_key] = [hit.score for hit in hits]
        if self.id_key is not None:
            shown[self.id_key] = [hit.id for hit in hits]
        if self.spans_key is not None:
            shown[self.spans_key] = [spans_of(hit) for hit in hits]
        return to_documents(hits, shown)
