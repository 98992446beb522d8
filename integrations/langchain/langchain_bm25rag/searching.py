"""The base class of the retrievers and the document index: their fields, and searching."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Annotated, Any, Self

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, Field, SkipValidation, WithJsonSchema, model_validator
from typing_extensions import TypeAliasType  # which Pydantic requires

from bm25rag import Analyzer, BM25Index, Hit
from bm25rag.adapters import Mode, Tokenizer, check_count, check_real
from langchain_bm25rag.documents import read_ids, to_document
from langchain_bm25rag.filters import Filter, Question, copy_filter, read_filter, search
from langchain_bm25rag.settings import check_call
from langchain_bm25rag.storing import Stored
from langchain_bm25rag.threads import asking, reading, runs

# LangChain makes a model and a JSON schema from the bare types of configurable fields; only in a
# named alias does an annotation survive that.
Index = TypeAliasType(
    "Index", Annotated[BM25Index, WithJsonSchema({"title": "BM25Index", "type": "object"})]
)

_SHORT = reprlib.Repr()
_SHORT.maxother = 200  # characters; the repr of an index takes about 150

# What calls take, as ``check_call`` says it.
TAKES = (
    "k, filter and min_score for each call, got {}; also correct, expand and offset: "
    "a retriever takes everything else in its constructor"
)


class SearchingBM25(Stored, BaseRetriever):
    """A retriever over a ``BM25Index``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index = Field(default_factory=BM25Index)
    """The index; several retrievers may share one."""

    k: SkipValidation[int] = 4
    """The maximum number of documents to return, >= 0."""

    filter: SkipValidation[Filter | None] = None
    """Which documents may be returned: a dict in bm25rag's filter language, a set of ids, or a
    callable, which every search calls with the documents that match and pass the rest. A blank
    question returns all that pass, in document order."""

    min_score: SkipValidation[float | None] = None
    """The lowest score that is returned."""

    correct: SkipValidation[bool] = False
    """Whether to correct words of the question that no document has, as ``BM25Index.correct``."""

    expand: SkipValidation[bool] = False
    """Whether to add words of the best documents to the question, as ``BM25Index.expand``."""

    offset: SkipValidation[int] = 0
    """How many of the best documents to leave out: the next page begins at ``offset + k``."""

    score_key: str | None = None
    """The metadata key for the score of a result; ``None`` for none."""

    id_key: str | None = None
    """The metadata key for the id of a result; ``None`` for none."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.filter is not None:
            read_filter(self.filter)
            self.filter = copy_filter(self.filter)
        check_count("k", self.k)
        check_count("offset", self.offset)
        if self.min_score is not None:
            check_real("min_score", self.min_score, -math.inf, math.inf)
        if self.score_key is not None and self.score_key == self.id_key:
            message = f"score_key and id_key must differ, got {self.id_key!r} for both"
            raise ValueError(message)
        return self

    def __repr_str__(self, join_str: str) -> str:
        # Pydantic's hook for repr and str; a filter may contain any number of ids.
        return join_str.join(f"{name}={_SHORT.repr(value)}" for name, value in self.__repr_args__())

    @classmethod
    def from_index(cls, index: BM25Index, **kwargs: Any) -> Self:
        """Search an existing index.

        Parameters
        ----------
        index
            The index; it is shared, not copied.
        **kwargs
            Other fields: ``k``, ``filter``, ``min_score``, ``score_key``, ``id_key``, ``tags``, ...
        """
        return cls(index=index, **kwargs)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        mode: Mode = "r",
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
        analyzer: Analyzer | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        k: int = 4,
        filter: Filter | None = None,
        min_score: float | None = None,
        correct: bool = False,
        expand: bool = False,
        score_key: str | None = None,
        id_key: str | None = None,
        **fields: Any,
    ) -> Self:
        """Open what ``save`` wrote, or any saved ``BM25Index``.

        Parameters
        ----------
        path
            The folder, or its URL for ``mode="r"``.
        mode, mmap, tokenizer, verify, untrusted, timeout, analyzer, bm25_params
            As in ``BM25VectorStore.open``, which also lists the exceptions.
        k, filter, min_score, correct, expand, score_key, id_key, **fields
            The fields of the retriever, which are not saved.
        """
        return super().open(
            path,
            mode=mode,
            mmap=mmap,
            tokenizer=tokenizer,
            verify=verify,
            untrusted=untrusted,
            timeout=timeout,
            analyzer=analyzer,
            bm25_params=bm25_params,
            k=k,
            filter=filter,
            min_score=min_score,
            correct=correct,
            expand=expand,
            score_key=score_key,
            id_key=id_key,
            **fields,
        )

    def get_by_ids(self, ids: Iterable[str | float], /) -> list[Document]:
        """Return documents in the order of the ids; unknown ids are skipped.

        Parameters
        ----------
        ids
            The ids; a number becomes a string.

        Raises
        ------
        TypeError
            If ``ids`` is not an iterable of strings and numbers.
        """
        return [to_document(found) for found in self.index.get(read_ids(ids))]

    @runs(get_by_ids, reading)
    def aget_by_ids(self) -> None:
        """Run ``get_by_ids`` in a thread."""

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(ls_retriever_name="bm25rag")

    def _get_relevant_documents(
        self,
        query: Question,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        min_score: float | None = None,
        correct: bool | None = None,
        expand: bool | None = None,
        offset: int | None = None,
        **unknown: Any,
    ) -> list[Document]:
        check_call(type(self).__name__, query, unknown, TAKES)
        hits = search(
            self.index,
            query,
            self.k if k is None else k,
            self.filter if filter is None else filter,
            self.min_score if min_score is None else min_score,
            correct=self.correct if correct is None else correct,
            expand=self.expand if expand is None else expand,
            offset=self.offset if offset is None else offset,
        )
        return self._documents(hits)

    @runs(_get_relevant_documents, asking)
    def _aget_relevant_documents(self) -> None:  # type: ignore[override]
        """Run ``_get_relevant_documents`` in a thread."""

    def _documents(self, hits: Iterable[Hit]) -> list[Document]:
        """Return hits as documents, with what their metadata shall tell."""
        for key, name in ((self.score_key, "score"), (self.id_key, "id")):
            if key is not None:
                for hit in hits:
                    hit.metadata[key] = getattr(hit, name)
        return [to_document(hit) for hit in hits]
