"""What the retriever and the document index share: their fields, and searching."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict, Field, SkipValidation, model_validator

from bm25rag import BM25Index
from langchain_bm25rag.documents import to_document
from langchain_bm25rag.filters import Filter, read_filter, search

# Searched to check arguments: what is wrong with one is the core's to say.
_EMPTY = BM25Index()


class SearchingBM25(BaseRetriever):
    """A retriever over a ``BM25Index``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: BM25Index = Field(default_factory=BM25Index, repr=False)
    """The index; several retrievers may share one."""

    k: SkipValidation[int] = 4
    """How many documents to return at most, >= 0."""

    filter: SkipValidation[Filter | None] = None
    """Which documents may be returned: a dict in bm25rag's filter language, a set of ids, or a
    callable, which is called with every document at every search."""

    min_score: SkipValidation[float | None] = None
    """The least score that is returned."""

    score_key: str | None = "bm25_score"
    """Where in the metadata of a result its score stands; ``None`` for nowhere."""

    id_key: str | None = "bm25_id"
    """Where in the metadata of a result its id stands; ``None`` for nowhere."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        read_filter(self.filter)
        _EMPTY.search("", self.k, None, self.min_score)
        if self.score_key is not None and self.score_key == self.id_key:
            message = f"score_key and id_key must differ, got {self.id_key!r} for both"
            raise ValueError(message)
        return self

    @classmethod
    def from_index(cls, index: BM25Index, **kwargs: Any) -> Self:
        """Search an index that is there.

        Parameters
        ----------
        index
            The index, which is shared and not copied.
        **kwargs
            Other fields: ``k``, ``filter``, ``min_score``, ``score_key``, ``id_key``, ``tags``, ...
        """
        return cls(index=index, **kwargs)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        mode: str = "r",
        mmap: bool = True,
        tokenizer: Any = None,
        verify: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Open what ``save`` wrote, or any saved ``BM25Index``.

        Parameters
        ----------
        path
            The folder.
        mode
            ``"r"`` to search; ``"w"`` to write too: it locks the folder until ``index.close()``,
            and ``save`` to the same folder commits.
        mmap
            Whether to map the files or to read them.
        tokenizer
            The ``preprocess_func`` that the index was made with, if any.
        verify
            Whether to check every byte now.
        **kwargs
            Other fields, which are not saved.

        Raises
        ------
        StorageError
            If the folder holds no index, or a damaged one, or another writer has it open.
        TokenizerRequiredError
            If the index was made with a callable and ``tokenizer`` is missing.
        """
        index = BM25Index.open(path, mode=mode, mmap=mmap, tokenizer=tokenizer, verify=verify)
        return cls(index=index, **kwargs)

    def save(self, path: str | PathLike[str]) -> None:
        """Save documents, analyzer and parameters in a folder, in one atomic step."""
        self.index.save(path)

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
    ) -> list[Document]:
        hits = search(
            self.index,
            query,
            self.k if k is None else k,
            self.filter if filter is None else filter,
            self.min_score if min_score is None else min_score,
        )
        for hit in hits:
            if self.score_key is not None:
                hit.metadata[self.score_key] = hit.score
            if self.id_key is not None:
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
    ) -> list[Document]:
        return await run_in_executor(
            None,
            self._get_relevant_documents,
            query,
            run_manager=run_manager.get_sync(),
            k=k,
            filter=filter,
            min_score=min_score,
        )
