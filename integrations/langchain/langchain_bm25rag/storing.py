"""How an index is made, opened and saved, and checks that the core does not make."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Collection, Iterable, Mapping
from numbers import Number
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypedDict

from langchain_core.documents import Document
from langchain_core.indexing import RecordManager
from pydantic import ValidationError

from bm25rag import Analyzer, BM25Index, Query
from bm25rag import Document as StoredDocument
from bm25rag.adapters import Call, Mode, OnDuplicate, Plan, Tokenizer, check_choice, planned
from bm25rag.errors import ReadOnlyError
from langchain_bm25rag.aligning import align_records
from langchain_bm25rag.awaiting import awaited, reading, streams, writing
from langchain_bm25rag.documents import (
    Ids,
    Metadatas,
    NewIds,
    read_documents,
    read_ids,
    replace_metadata,
    to_documents,
    write,
)

_PARAMETERS = ("variant", "k1", "b", "delta", "delta_on", "fields")
# Okapi there floors the idf relative to the mean idf; the default variant's is never negative.
_COMMUNITY = {"okapi": None, "plus": "bm25+"}
_ANALYZER = "give analyzer=Analyzer('german'), which has the language, its stemmer and stop words"
_ELSEWHERE = {
    "epsilon": "bm25rag has no floor relative to the mean idf: the idf of its default variant is "
    "never negative, and variant='robertson' floors it at 0, as epsilon=0 did",
    "tokenizer": "give the callable as preprocess_func",
    "language": _ANALYZER,
    "stemmer": _ANALYZER,
    "stopwords": _ANALYZER,
}


class Making(TypedDict, total=False):
    """What makes an index."""

    analyzer: Analyzer | None
    preprocess_func: Tokenizer | None
    bm25_params: Mapping[str, Any] | None
    bm25_variant: str | None


class Opening(TypedDict, total=False):
    """What opens a folder."""

    mode: Mode
    mmap: bool
    tokenizer: Tokenizer | None
    verify: bool
    untrusted: bool
    timeout: float
    analyzer: Analyzer | None
    bm25_params: Mapping[str, Any] | None


def make_index(
    analyzer: Analyzer | None,
    preprocess_func: Tokenizer | None,
    bm25_params: Mapping[str, Any] | None,
    bm25_variant: str | None = None,
    name: str = "preprocess_func",
) -> BM25Index:
    """Make an empty index of checked settings; ``name`` is the caller's word for the callable."""
    params = _checked(bm25_params, bm25_variant)
    if preprocess_func is not None:
        if analyzer is not None:
            raise ValueError(f"{name} replaces analyzer; give one of them")
        if not callable(preprocess_func):
            got = type(preprocess_func).__name__
            raise TypeError(f"{name} must be a callable from str to list[str], got {got}")
        analyzer = Analyzer(tokenizer=preprocess_func)
    return BM25Index(analyzer, **params)


def _checked(bm25_params: object, bm25_variant: str | None) -> dict[str, Any]:
    """Return parameters of an index, with the variant that langchain-community's class names."""
    if bm25_params is not None and not isinstance(bm25_params, Mapping):
        raise TypeError(f"bm25_params must be a dict or None, got {type(bm25_params).__name__}")
    params = dict(bm25_params or {})
    for name in params:
        if name not in _PARAMETERS:
            why = _ELSEWHERE.get(name, f"the parameters are {', '.join(_PARAMETERS)}")
            raise ValueError(f"bm25_params[{name!r}] is not supported: {why}")
    if bm25_variant is None:
        return params
    check_choice("bm25_variant", bm25_variant, _COMMUNITY)
    if "variant" in params:
        raise ValueError("bm25_variant replaces bm25_params['variant']; give one of them")
    named = _COMMUNITY[bm25_variant]
    return params | {"variant": named} if named else params


class Stored:
    """A class over an ``index`` that may be that of a folder."""

    index: BM25Index

    @classmethod
    def _made(
        cls,
        analyzer: Analyzer | None = None,
        preprocess_func: Tokenizer | None = None,
        bm25_params: Any = None,
        bm25_variant: str | None = None,
        **fields: Any,
    ) -> Self:
        """Return one over a new index."""
        construct: Callable[..., Self] = cls
        index = make_index(analyzer, preprocess_func, bm25_params, bm25_variant)
        try:
            return construct(index=index, **fields)
        except (TypeError, ValidationError) as error:
            for name in fields:
                if name in _PARAMETERS:
                    error.add_note(
                        f"{name} belongs into bm25_params, as in {{'k1': 1.2, 'b': 0.5}}"
                    )
                elif name in _ELSEWHERE:
                    error.add_note(f"{name}: {_ELSEWHERE[name]}")
            raise

    @classmethod
    def open(cls, path: str | PathLike[str], **options: Any) -> Self:
        """Open a saved index; subclasses say what ``options`` there are."""
        given = {name: options.pop(name) for name in Opening.__annotations__ if name in options}
        params = given.pop("bm25_params", None)
        # For its checks.
        make_index(given.get("analyzer"), given.get("tokenizer"), params, name="tokenizer")
        mode = given.pop("mode", "r")
        index = BM25Index.open(path, "a" if mode == "w" else mode, **given, **(params or {}))
        construct: Callable[..., Self] = cls
        try:
            return construct(index=index, **options)
        except BaseException:
            index.close()  # otherwise the folder stays locked while a traceback holds the index
            raise

    @planned
    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        ids: NewIds | None = None,
        on_duplicate: OnDuplicate = "replace",
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Plan[list[str]]:
        """Add all documents, or none on error; return the id of each that was not skipped.

        Parameters
        ----------
        documents
            Any iterable; a document without an id gets a UUID.
        ids
            An id for each document, in place of its own, or None.
        on_duplicate
            What to do where an id is there already: ``"replace"`` the document, ``"skip"`` the
            new one, or raise an ``"error"`` and write nothing.
        batch_size
            Not used: LangChain's ``index()`` gives it, and all are added in one step.
        **kwargs
            Refused.

        Raises
        ------
        TypeError, ValueError, MetadataError, DuplicateIdError, ReadOnlyError
            If an element is not a document, ``ids`` has another length, metadata cannot be stored
            (the message names row, document and key), an id is there already and ``on_duplicate``
            is ``"error"``, or the index was opened for reading.
        RuntimeError
            If a ``sparse_embedding`` or a ``vector_store`` fails.
        """
        refuse("add_documents", kwargs)
        return (yield from self._adding(read_documents(documents, ids), "documents", on_duplicate))

    def _adding(
        self, documents: Iterable[StoredDocument], source: str, on_duplicate: OnDuplicate
    ) -> Plan[list[str]]:
        """Add documents, of whose metadata ``source`` is the argument."""
        yield from ()  # nobody is asked
        return write(self.index, documents, source, on_duplicate)

    @streams(add_documents, writing)
    async def aadd_documents(  # type: ignore[empty-body]
        self,
        documents: Iterable[Document] | AsyncIterable[Document],
        *,
        ids: NewIds | None = None,
        on_duplicate: OnDuplicate = "replace",
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Do what ``add_documents`` does; ``documents`` may be an async iterable."""

    def get_by_ids(self, ids: Ids, /) -> list[Document]:
        """Return documents in the order of the ids; a number becomes a string.

        Unknown ids are skipped. What is no iterable of strings and numbers is a ``TypeError``.
        """
        return to_documents(self.index.get(read_ids(ids)))

    aget_by_ids = awaited(get_by_ids, reading)

    def update_metadata(self, ids: Ids, metadatas: Metadatas) -> list[str]:
        """Replace the whole metadata of documents, and return the ids of those there are.

        They keep their texts; a number becomes a string.

        Raises
        ------
        TypeError, ValueError, MetadataError, ReadOnlyError
            If an argument or an element has the wrong type, the two differ in length, metadata
            cannot be stored (the message says which), or the index was opened for reading.
        """
        return replace_metadata(self.index, ids, metadatas)

    aupdate_metadata = awaited(update_metadata, writing)

    @planned
    def align(self, records: RecordManager) -> Plan[Any]:
        """Make the index and a record manager forget what only one of the two knows.

        After a crash they can differ; the run of ``index()`` that follows adds what is wanted.
        Nothing else may write to the manager's namespace, or to the index.
        """
        yield from align_records(self, records)

    aalign = awaited(align, writing)

    def save(self, path: str | PathLike[str]) -> None:
        """Save documents, analyzer and parameters in a folder or to a URL, in one atomic step."""
        self.index.save(path)

    asave = awaited(save, writing)

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        It raises ``ReadOnlyError`` if this was not opened for writing, as ``rollback`` does.
        """
        self.index.commit()

    acommit = awaited(commit, writing)

    def rollback(self) -> None:
        """Go back to the last commit."""
        self.index.rollback()

    arollback = awaited(rollback, writing)

    def refresh(self) -> bool:
        """Load the last commit of the folder, and say whether it is a newer one.

        It raises ``StorageError`` if this was not opened with ``mode="r"``.
        """
        return self.index.refresh()

    arefresh = awaited(refresh, writing)

    def close(self) -> None:
        """Release the writer's lock without a commit; do nothing if there is no lock.

        Warns if there are uncommitted changes, which are lost.
        """
        self.index.close()

    aclose = awaited(close, writing)

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    @planned
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Plan[None]:
        """Commit, or after an error return to the last commit; then close."""
        try:
            yield Call(self, "commit" if error is None else "rollback")
        except ReadOnlyError:
            pass  # there is nothing to commit to
        except BaseException:
            if error is None:
                yield Call(self, "rollback")
            raise
        finally:
            yield Call(self, "close")

    __aexit__ = awaited(__exit__, writing)


def check_call(name: str, query: object, given: Collection[str], takes: str) -> None:
    """Raise ``TypeError`` for a query that cannot be one, and for unknown keywords of a search.

    In a chain, the query may be anything; LangChain's own ``verbose`` may be among the keywords.
    ``takes`` says what a call takes, and where else to give what it does not.
    """
    if not isinstance(query, (str, Query)) and not _is_weighted(query):
        raise TypeError(f"query must be a str, got {type(query).__name__}{_hint(query)}")
    if given and (unknown := [each for each in given if each != "verbose"]):
        raise TypeError(f"{name} takes {takes.format(', '.join(unknown))}")


def refuse(method: str, kwargs: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` for keywords that a method of LangChain's interface does not take."""
    if kwargs:
        raise TypeError(f"{method} does not take {', '.join(kwargs)}")


def _is_weighted(query: object) -> bool:
    return (
        isinstance(query, Mapping)
        and bool(query)
        and all(isinstance(weight, Number) for weight in query.values())
    )


def _hint(query: object) -> str:
    if isinstance(query, Mapping):
        key = next((key for key in query if isinstance(query[key], str)), "question")
        return f": pick the text first, as in itemgetter({key!r}) | retriever"
    if isinstance(query, (list, tuple)):
        return ": batch takes several queries"
    return ""
