"""BM25Retriever, for chains, agents and ensembles, and the base class of all retrievers here."""

from __future__ import annotations

import reprlib
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from operator import attrgetter, is_, itemgetter
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Self, Unpack

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, Field, SkipValidation, WithJsonSchema, model_validator
from typing_extensions import TypeAliasType  # which Pydantic requires

from bm25rag import Analyzer, BM25Index, Hit
from bm25rag.adapters import (
    Asking,
    DecayLike,
    Options,
    Question,
    Tokenizer,
    check_count,
    spans_of,
)
from langchain_bm25rag.awaiting import awaited, building, reading, streams, writing
from langchain_bm25rag.documents import (
    Ids,
    Metadatas,
    NewIds,
    read_ids,
    read_texts,
    to_documents,
    write,
)
from langchain_bm25rag.filters import Filter, copy_filter, delete, filter_of, search
from langchain_bm25rag.storing import Making, Opening, Stored, check_call

# LangChain makes a model and a JSON schema from the bare types of configurable fields; only in a
# named alias does an annotation survive that.
Index = TypeAliasType(
    "Index", Annotated[BM25Index, WithJsonSchema({"title": "BM25Index", "type": "object"})]
)

_SHORT = reprlib.Repr()
_SHORT.maxother = 200  # characters; the repr of an index takes about 150

_PER_CALL = ("k", "filter", *Asking._fields)
_options_in = itemgetter(*Asking._fields)
_USUAL = Asking()
# What the metadata of a result may tell of it, under the keys for score, id and spans.
_SHOWN: tuple[Callable[[Hit], object], ...] = attrgetter("score"), attrgetter("id"), spans_of
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
            raise ValueError(f"score_key, id_key and spans_key must differ, got {keys!r}")
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

    if TYPE_CHECKING:  # LangChain's own take a str alone

        def invoke(
            self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
        ) -> list[Document]:
            """Search, with ``k``, ``filter`` and others of the fields for this call."""

        async def ainvoke(
            self, input: Question, config: RunnableConfig | None = None, **kwargs: Any
        ) -> list[Document]:
            """Do what ``invoke`` does while the event loop goes on."""
    else:
        ainvoke = awaited(BaseRetriever.invoke, reading, native=BaseRetriever.ainvoke)

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(ls_retriever_name="bm25rag")

    def _get_relevant_documents(
        self, query: Question, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        fields = self.__dict__
        usual = not given and fields["filter"] is None and type(query) is str
        if usual and all(map(is_, _options_in(fields), _USUAL)):  # most ask for nothing more
            return self._documents(self.index.search(query, self.k))
        return self._documents(search(self.index, query, *self._asked(query, given)))

    _aget_relevant_documents = awaited(_get_relevant_documents, reading)  # type: ignore[arg-type]

    def _asked(self, query: object, given: Mapping[str, Any]) -> tuple[int, Filter | None, Asking]:
        """Return what a call asks for, with the fields in place of arguments that are None."""
        asked = self.__dict__
        unknown: list[str] = []
        if given:
            unknown = [name for name in given if name not in _PER_CALL]
            asked = asked | {name: value for name, value in given.items() if value is not None}
        check_call(type(self).__name__, query, unknown, _TAKES)
        return asked["k"], asked["filter"], Asking._make(_options_in(asked))

    def _documents(self, hits: Sequence[Hit]) -> list[Document]:
        """Return hits as documents, with what their metadata shall tell."""
        documents = to_documents(hits)
        keys = self.score_key, self.id_key, self.spans_key
        if keys != (None, None, None):  # as most have them
            for document, hit in zip(documents, hits, strict=True):
                for key, shown in zip(keys, _SHOWN, strict=True):
                    if key is not None:
                        document.metadata[key] = shown(hit)
        return documents


class MakingFields(Making, Fields):
    """What makes an index, and fields."""


class BM25Retriever(SearchingBM25):
    """An exact, updatable, durable BM25 retriever.

    It returns only documents that contain a term of the query, as new objects equal to those
    that were stored. ``k``, ``filter``, ``min_score``, ``correct``, ``expand``, ``offset`` and
    ``parse_query`` are arguments of the constructor, and of each call of ``invoke``, ``ainvoke``,
    ``batch``, ``abatch`` and ``bind``, where ``None`` means the constructor's. A question is a
    text, a dict of terms and their weights, or a ``bm25rag.Query``; a blank text with a filter
    returns all that passes, in document order.

    Examples
    --------
    >>> retriever = BM25Retriever.from_texts(["A cat sat.", "Dogs run."], ids=["a", "b"], k=3)
    >>> [document.id for document in retriever.invoke("cats")]
    ['a']
    """

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Metadatas | None = None,
        ids: NewIds | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        preprocess_func: Tokenizer | None = None,
        *,
        analyzer: Analyzer | None = None,
        bm25_variant: str | None = None,
        **fields: Unpack[Fields],
    ) -> Self:
        """Index texts.

        Parameters
        ----------
        texts
            Any iterable of texts; it may be empty.
        metadatas
            A dict of JSON values, dates and datetimes for each text, or ``None``; an empty list
            means no metadata. The page "Metadata" of bm25rag lists what else is accepted.
        ids
            An id for each text, or ``None`` or ``""`` for a UUID; an empty list means no ids. Of
            equal ids the last wins. A number becomes a string.
        bm25_params
            ``k1``, ``b``, ``variant``, ``delta``, ``delta_on`` and ``fields``, as in
            ``BM25Index``; the fields of a document are its metadata by their names.
        preprocess_func
            A callable from text to a list or tuple of terms, in place of an analyzer.
        analyzer
            How texts become terms; ``None`` for ``Analyzer()``, English.
        bm25_variant
            ``"okapi"`` or ``"plus"``, names that langchain-community's class has after 0.4.2,
            for the default variant or ``"bm25+"``.
        k, filter, ...
            The fields.

        Raises
        ------
        TypeError, ValueError, MetadataError
            If an argument or an element has the wrong type, the iterables differ in length, a
            parameter is not supported, or metadata cannot be stored; the message names row,
            document and key.
        """
        retriever = cls._made(analyzer, preprocess_func, bm25_params, bm25_variant, **fields)
        write(retriever.index, read_texts(texts, metadatas, ids), "metadatas")
        return retriever

    @classmethod
    def from_documents(cls, documents: Iterable[Document], **options: Unpack[MakingFields]) -> Self:
        """Index documents, any iterable; a document without an id gets a UUID.

        The keywords are those of ``from_texts``, which also lists the exceptions.
        """
        retriever = cls._made(**options)
        retriever.add_documents(documents)
        return retriever

    @classmethod
    @streams(from_texts, building)
    async def afrom_texts(  # type: ignore[empty-body]
        cls, texts: Iterable[str] | AsyncIterable[str], *args: Any, **kwargs: Any
    ) -> Self:
        """Do what ``from_texts`` does; ``texts`` may be an async iterable."""

    @classmethod
    @streams(from_documents, building, Stored.add_documents)
    async def afrom_documents(  # type: ignore[empty-body]
        cls,
        documents: Iterable[Document] | AsyncIterable[Document],
        **options: Unpack[MakingFields],
    ) -> Self:
        """Do what ``from_documents`` does; ``documents`` may be an async iterable."""

    def delete(self, ids: Ids | None = None, *, filter: Filter | None = None) -> list[str]:
        """Delete documents by their ids, by a filter or by both; return the ids of those there are.

        Parameters
        ----------
        ids
            The ids; a number becomes a string. ``None`` for all documents that the filter passes.
        filter
            As in searches; documents that it rejects stay.

        Raises
        ------
        TypeError, ValueError, ReadOnlyError
            If ``ids`` is not an iterable of strings and numbers, if there are none, and the filter
            rejects nothing (some stores delete everything then), or if the index was opened for
            reading.
        """
        given = None if ids is None and filter is not None else read_ids(ids)
        return delete(self.index, given, filter)

    adelete = awaited(delete, writing)
