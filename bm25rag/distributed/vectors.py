"""The sparse vectors of an index that actors serve."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bm25rag.common.checks import check_flag
from bm25rag.common.sparse import Vector
from bm25rag.distributed.asking import DEADLINE
from bm25rag.distributed.results import RayBatch
from bm25rag.documents import Hit
from bm25rag.vectors import vector_terms, vector_terms_each

if TYPE_CHECKING:
    from bm25rag.filters import FilterSpec

__all__ = ["RayVectors"]


class RayVectors:
    """The sparse vectors of a served index, as ``RayIndex.vectors`` returns them.

    Parameters
    ----------
    search
        Asks the actors for the best documents by a list of vectors.
    """

    def __init__(self, search: Callable[..., RayBatch]) -> None:
        self._search = search

    def search(
        self,
        vector: Vector,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        deadline: float = DEADLINE,
    ) -> list[Hit]:
        """Find the best k documents whose vectors have a term of the query's.

        Parameters
        ----------
        vector
            As for ``Vectors.search``.
        k, filter, min_score, offset, deadline
            As for ``RayIndex.search``.

        Raises
        ------
        Exception
            As ``Vectors.search`` and ``RayIndex.search``.
        """
        limits = (k, filter, min_score, offset, True, deadline, False)
        return self._search([vector_terms(vector)], *limits).hits()[0]

    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        contents: bool = True,
        deadline: float = DEADLINE,
        partial: bool = False,
    ) -> RayBatch:
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
