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
    from bm25rag.decay import DecayLike
    from bm25rag.filters import FilterSpec

__all__ = ["RayVectors"]


class RayVectors:
    """The sparse vectors of a served index, as ``RayIndex.vectors`` returns them.

    Its methods raise what those of ``Vectors`` and ``RayIndex`` do.

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
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        deadline: float = DEADLINE,
    ) -> list[Hit]:
        """Find the best k documents whose vectors have a term of the query's.

        Parameters
        ----------
        vector
            As for ``Vectors.search``.
        k, filter, min_score, offset, group, per_group, decay, deadline
            As for ``RayIndex.search``.
        """
        limits = (k, filter, min_score, offset, True, deadline, False, group, per_group, decay)
        return self._search([vector_terms(vector)], *limits).hits()[0]

    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        contents: bool = True,
        deadline: float = DEADLINE,
        partial: bool = False,
    ) -> RayBatch:
        """Search for many vectors at once.

        Parameters
        ----------
        vectors
            As for ``Vectors.search_batch``.
        k, filter, min_score, offset, group, per_group, decay, contents, deadline, partial
            As for ``RayIndex.search_batch``.
        """
        batch = vector_terms_each(vectors)
        check_flag("contents", contents)
        limits = (k, filter, min_score, offset, contents, deadline, partial)
        return self._search(batch, *limits, group, per_group, decay)
