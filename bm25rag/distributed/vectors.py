"""The sparse vectors of an index that actors serve."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from bm25rag.common.checks import check_flag
from bm25rag.common.sparse import Vector
from bm25rag.distributed.asking import DEADLINE
from bm25rag.distributed.results import Partial, RayBatch
from bm25rag.documents import Hit
from bm25rag.vectors import vector_terms, vector_terms_each

if TYPE_CHECKING:
    from bm25rag.filters import FilterSpec

__all__ = ["RayVectors", "only_hits"]

_Search: TypeAlias = Callable[..., RayBatch | Partial[RayBatch]]


class RayVectors:
    """The sparse vectors of a served index, as ``RayIndex.vectors`` returns them.

    Parameters
    ----------
    search
        Asks the actors for the best documents by a list of vectors.
    """

    def __init__(self, search: _Search) -> None:
        self._search = search

    @overload
    def search(
        self,
        vector: Vector,
        k: int = ...,
        filter: FilterSpec | None = ...,
        min_score: float | None = ...,
        *,
        offset: int = ...,
        deadline: float = ...,
        partial: Literal[False] = ...,
    ) -> list[Hit]: ...

    @overload
    def search(
        self,
        vector: Vector,
        k: int = ...,
        filter: FilterSpec | None = ...,
        min_score: float | None = ...,
        *,
        offset: int = ...,
        deadline: float = ...,
        partial: Literal[True],
    ) -> Partial[list[Hit]]: ...

    def search(
        self,
        vector: Vector,
        k: int = 10,
        filter: FilterSpec | None = None,
        min_score: float | None = None,
        *,
        offset: int = 0,
        deadline: float = DEADLINE,
        partial: bool = False,
    ) -> list[Hit] | Partial[list[Hit]]:
        """Find the best k documents whose vectors have a term of the query's.

        Parameters
        ----------
        vector
            As for ``Vectors.search``.
        k, filter, min_score, offset, deadline, partial
            As for ``RayIndex.search``.

        Raises
        ------
        Exception
            As ``Vectors.search`` and ``RayIndex.search``.
        """
        limits = (k, filter, min_score, offset, True, deadline, partial)
        return only_hits(self._search([vector_terms(vector)], *limits))

    @overload
    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = ...,
        filter: FilterSpec | None = ...,
        min_score: float | None = ...,
        *,
        offset: int = ...,
        contents: bool = ...,
        deadline: float = ...,
        partial: Literal[False] = ...,
    ) -> RayBatch: ...

    @overload
    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = ...,
        filter: FilterSpec | None = ...,
        min_score: float | None = ...,
        *,
        offset: int = ...,
        contents: bool = ...,
        deadline: float = ...,
        partial: Literal[True],
    ) -> Partial[RayBatch]: ...

    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = 10,
        filter: FilterSpec | None = None,
        min_score: float | None = None,
        *,
        offset: int = 0,
        contents: bool = True,
        deadline: float = DEADLINE,
        partial: bool = False,
    ) -> RayBatch | Partial[RayBatch]:
        """Search for many vectors at once.

        Parameters
        ----------
        vectors
            As for ``Vectors.search_batch``.
        k, filter, min_score, offset, contents, deadline, partial
            As for ``RayIndex.search_batch``.

        Raises
        ------
        Exception
            As ``search``.
        """
        batch = vector_terms_each(vectors)
        check_flag("contents", contents)
        return self._search(batch, k, filter, min_score, offset, contents, deadline, partial)


def only_hits(found: RayBatch | Partial[RayBatch]) -> list[Hit] | Partial[list[Hit]]:
    """Return the hits of the first query of a batch."""
    if isinstance(found, Partial):
        return Partial(found.found.hits()[0], found.missing)
    return found.hits()[0]
