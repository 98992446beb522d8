"""The base class of the retriever and the document index: their fields, and searching."""

from __future__ import annotations

import math
import reprlib
from typing import Annotated, Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict, Field, SkipValidation, WithJsonSchema, model_validator
from typing_extensions import TypeAliasType  # which Pydantic requires

from bm25rag import BM25Index
from bm25rag.adapters import check_count, check_real, read_hits
from langchain_bm25rag.documents import to_document
from langchain_bm25rag.filters import Filter, copy_filter, read_filter, search
from langchain_bm25rag.settings import check_call
from langchain_bm25rag.storing import Stored

# LangChain makes a model and a JSON schema from the bare types of configurable fields; only in a
# named alias does an annotation survive that.
Index = TypeAliasType(
    "Index", Annotated[BM25Index, WithJsonSchema({"title": "BM25Index", "type": "object"})]
)

_SHORT = reprlib.Repr()
_SHORT.maxother = 200  # characters; the repr of an index takes about 150


class SearchingBM25(Stored, BaseRetriever):
    """A retriever over a ``BM25Index``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Index = Field(default_factory=BM25Index)
    """The index; several retrievers may share one."""

    k: SkipValidation[int] = 4
    """The maximum number of documents to return, >= 0."""

    filter: SkipValidation[Filter | None] = None
    """Which documents may be returned: a dict in bm25rag's filter language, a set of ids, or a
    callable, which every search calls with the documents that match and pass the rest."""

    min_score: SkipValidation[float | None] = None
    """The lowest score that is returned."""

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

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        return LangSmithRetrieverParams(ls_retriever_name="bm25rag")

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        min_score: float | None = None,
        **unknown: Any,
    ) -> list[Document]:
        check_call(type(self).__name__, query, unknown)
        hits = search(
            self.index,
            query,
            self.k if k is None else k,
            self.filter if filter is None else filter,
            self.min_score if min_score is None else min_score,
        )
        read_hits(hits, "text", "metadata")
        if self.score_key is not None:
            for hit in hits:
                hit.metadata[self.score_key] = hit.score
        if self.id_key is not None:
            for hit in hits:
                hit.metadata[self.id_key] = hit.id
        return [to_document(hit) for hit in hits]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Filter | None = None,
        min_score: float | None = None,
        **unknown: Any,
    ) -> list[Document]:
        return await run_in_executor(
            None,
            self._get_relevant_documents,
            query,
            run_manager=run_manager.get_sync(),
            k=k,
            filter=filter,
            min_score=min_score,
            **unknown,
        )
