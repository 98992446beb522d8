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


class RayVectors:
    """The sparse vectors of a served index, as ``RayIndex.vectors`` returns them.

    The arguments of its methods are those of ``RayIndex``, vectors those of ``Vectors``; they raise
    what these do.

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
        """Find the best k documents whose vectors have a term of the query's."""
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
        """Search for many vectors at once."""
        batch = vector_terms_each(vectors)
        check_flag("contents", contents)
        limits = (k, filter, min_score, offset, contents, deadline, partial)
        return self._search(batch, *limits, group, per_group, decay)
