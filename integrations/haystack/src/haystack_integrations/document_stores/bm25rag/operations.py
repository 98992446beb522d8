"""What a store does with documents; ``document_store`` adds the rest."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.document_stores.bm25rag.conversion import from_core, to_core
from haystack_integrations.document_stores.bm25rag.fields import (
    Meta,
    field_name,
    least_and_greatest,
    types_of_fields,
    unique_values,
)
from haystack_integrations.document_stores.bm25rag.filters import translate
from haystack_integrations.document_stores.bm25rag.shelves import Shelf

from bm25rag import BM25Index
from bm25rag.errors import DuplicateIdError
from bm25rag.filters import Filter

_ON_DUPLICATE = {
    DuplicatePolicy.NONE: "error",
    DuplicatePolicy.FAIL: "error",
    DuplicatePolicy.SKIP: "skip",
    DuplicatePolicy.OVERWRITE: "replace",
}

# As Haystack's in-memory store has it: half of the scale at 0, 0.78 at 10.
_SCALING_FACTOR = 8


class Operations:
    """The synchronous methods of ``BM25DocumentStore``.

    A read is answered from one state of the index, whatever is written meanwhile.
    """

    _shelf: Shelf

    # --- writing ------------------------------------------------------------------

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents; all of them or, if anything is wrong, none.

        Parameters
        ----------
        documents
            Documents of any kind; those without content are kept and match no query.
        policy
            What to do about ids that are there already, or occur twice in the call:
            ``FAIL`` (and ``NONE``) writes nothing, ``SKIP`` keeps the first,
            ``OVERWRITE`` the last.

        Returns
        -------
        count
            How many were written; with ``OVERWRITE``, how many were given.

        Raises
        ------
        ValueError
            If ``documents`` holds anything but documents, or meta that cannot be stored;
            the message names document and key.
        DuplicateDocumentError
            If ``policy`` is ``FAIL`` or ``NONE`` and an id is there already.
        """
        given = _check_documents(documents)
        if not isinstance(policy, DuplicatePolicy):
            raise TypeError(f"policy must be a DuplicatePolicy, got {policy!r}")
        columns = to_core(given)
        try:
            with self._shelf.writing() as index:
                written = index.add(*columns, on_duplicate=_ON_DUPLICATE[policy])
        except DuplicateIdError as error:
            raise DuplicateDocumentError(str(error)) from error
        return len(given) if policy is DuplicatePolicy.OVERWRITE else len(written)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; unknown ids are ignored."""
        with self._shelf.writing() as index:
            index.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Delete all documents."""
        with self._shelf.writing() as index:
            index.delete(index.ids())

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that pass, and return how many.

        Raises
        ------
        FilterError
            If the filter is malformed or empty; for all, use ``delete_all_documents``.
        """
        with self._shelf.writing() as index:
            return index.delete(_chosen(index, filters))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Change the meta of the documents that pass, and return how many they are.

        Parameters
        ----------
        filters
            Which documents.
        meta
            The fields to set; the others stay.

        Raises
        ------
        FilterError
            If the filter is malformed or empty.
        TypeError
            If ``meta`` is no dict.
        ValueError
            If ``meta`` cannot be stored; the message names document and key.
        """
        if not isinstance(meta, dict):
            raise TypeError(f"meta must be a dict, got {type(meta).__name__}")
        with self._shelf.writing() as index:
            found = index.get(_chosen(index, filters))
            return index.update_metadata(
                [one.id for one in found], [one.metadata | meta for one in found]
            )

    # --- reading ------------------------------------------------------------------

    def bm25_retrieval(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        scale_score: bool = False,
    ) -> list[Document]:
        """Find the best documents that contain a term of the query.

        Parameters
        ----------
        query
            A text; if only blanks or stop words, nothing matches.
        filters
            Which documents may be found.
        top_k
            How many at most, >= 0.
        scale_score
            Whether to scale scores into 0 to 1, by Haystack's own function.

        Returns
        -------
        documents
            Fresh documents with their scores, best first.

        Raises
        ------
        ValueError
            If the query is empty, or ``top_k`` negative.
        TypeError
            If an argument has the wrong type.
        FilterError
            If the filter is malformed.
        """
        if not isinstance(query, str):
            raise TypeError(f"query must be a str, got {type(query).__name__}")
        if not query:
            raise ValueError("query must not be empty")
        count = check_top_k(top_k, least=0)
        index = self._shelf.index
        hits = index.search(query, count, _passing(index, filters))
        if scale_score:
            return [from_core(hit, _scaled(hit.score)) for hit in hits]
        return [from_core(hit, hit.score) for hit in hits]

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return len(self._shelf.index)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return fresh copies of the documents that pass, in the order of writing."""
        index = self._shelf.index
        return [from_core(found) for found in index.get(index.ids(_passing(index, filters)))]

    def count_documents_by_filter(self, filters: dict[str, Any] | None) -> int:
        """Return how many documents pass."""
        index = self._shelf.index
        return index.count(_passing(index, filters))

    def count_unique_metadata_by_filter(
        self, filters: dict[str, Any] | None, metadata_fields: list[str]
    ) -> dict[str, int]:
        """Return how many distinct values each field has among the documents that pass."""
        if isinstance(metadata_fields, str):
            raise TypeError(f"metadata_fields must be a list of str, got {metadata_fields!r}")
        metas = self._metas(filters)
        names = [field_name(field) for field in metadata_fields]
        return {name: len(unique_values(metas, name)) for name in names}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return the fields of all meta, with their types: keyword, int, float or boolean."""
        return types_of_fields(self._metas())

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the least and the greatest value of a field; ``None`` if they do not compare."""
        return least_and_greatest(self._metas(), field_name(metadata_field))

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the distinct values of a field, and how many there are.

        Parameters
        ----------
        metadata_field
            The field, with or without ``meta.`` before it.
        search_term
            A part of the value, in any case; ``None`` for all.
        from_, size
            Where the page begins, and its length.
        filters
            Which documents count.
        """
        values = unique_values(self._metas(filters), field_name(metadata_field))
        if search_term:
            values = [value for value in values if search_term.lower() in str(value).lower()]
        return values[from_ : from_ + size], len(values)

    def _metas(self, filters: dict[str, Any] | None = None) -> list[Meta]:
        index = self._shelf.index
        found = index.get(index.ids(_passing(index, filters)))
        return [one.metadata for one in found]


def check_top_k(top_k: object, least: int) -> int:
    """Return ``top_k`` as an int of at least ``least``; bools and floats are refused."""
    message = f"top_k must be an integer >= {least}, got {top_k!r}"
    if isinstance(top_k, bool):
        raise TypeError(message)
    try:
        count = operator.index(top_k)  # type: ignore[arg-type]  # the point of the try
    except TypeError:
        raise TypeError(message) from None
    if count < least:
        raise ValueError(message)
    return count


def _check_documents(documents: Iterable[Document]) -> list[Document]:
    message = "documents must be a list of Documents"
    if isinstance(documents, str | bytes | dict) or not isinstance(documents, Iterable):
        raise ValueError(f"{message}, got {type(documents).__name__}")
    given = list(documents)
    for number, one in enumerate(given):
        if not isinstance(one, Document):
            raise ValueError(f"{message}, got {type(one).__name__} at documents[{number}]")
    return given


def _passing(index: BM25Index, filters: dict[str, Any] | None) -> Filter | None:
    return translate(filters, lambda id: from_core(index.get([id])[0]))


def _chosen(index: BM25Index, filters: dict[str, Any]) -> list[str]:
    """Return the ids that pass a filter that must not be left out."""
    passing = _passing(index, filters)
    if passing is None:
        raise FilterError(f"filters must have a condition here, got {filters!r}")
    return index.ids(passing)


def _scaled(score: float) -> float:
    # The logistic function, in the form that does not overflow.
    return 0.5 + 0.5 * math.tanh(score / (2 * _SCALING_FACTOR))
