"""The sparse vectors of an index: what a learned encoder makes of texts, beside BM25.

The score of a document is the sum, over the terms of the query's vector, of its weight there
times the document's, which is rounded once to float32: products and sum are float64, the sum
in the order of the query's vector. A match has a term of it, whatever the score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.checks import check_ids
from bm25rag.common.sparse import Vector, read_each, read_vector
from bm25rag.documents import Hit
from bm25rag.search.finding import check_threads, check_wanted, find, find_one, parse_filter
from bm25rag.search.ranking import score_all
from bm25rag.search.results import BatchResult, batch_result, totals_of
from bm25rag.search.snapshot import Snapshot
from bm25rag.search.stored_vectors import read_vectors

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from bm25rag.decay import DecayLike
    from bm25rag.filters import FilterSpec
    from bm25rag.search.explain import Explanation

__all__ = ["Vector", "Vectors", "read_vector"]


class Vectors:
    """The sparse vectors of an index, as ``BM25Index.vectors`` returns them.

    Each method sees the index as it is when it is called.

    Parameters
    ----------
    snapshot
        Returns the state of the index.

    Examples
    --------
    >>> from bm25rag import BM25Index
    >>> texts = ["A cat sat.", "Dogs run."]
    >>> index = BM25Index.from_texts(texts, vectors=[{"cat": 1.5, "pet": 0.5}, {"pet": 1.0}])
    >>> [(hit.id, hit.score) for hit in index.vectors.search({"pet": 2.0})]
    [('1', 2.0), ('0', 1.0)]
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._whole = snapshot

    @property
    def _snapshot(self) -> Snapshot:
        return self._whole().by_vectors

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
    ) -> list[Hit]:
        """Find the best k documents whose vectors have a term of the query's.

        Parameters
        ----------
        vector
            The query: weights by term, or by the number of a term; an object with ``indices``
            and ``values``; or a SciPy array of one row.
        k, filter, min_score, offset, group, per_group, decay
            As in ``BM25Index.search``.
        """
        whole, shaping = self._whole(), (group, per_group, decay)
        wanted = check_wanted(whole, k, filter, min_score, offset, *shaping)
        snapshot = whole.by_vectors
        terms = vector_terms(vector)
        ranking = find_one(snapshot, terms, wanted)
        return snapshot.hits(*ranking, totals=totals_of(snapshot, terms, wanted))

    def search_batch(
        self,
        vectors: Iterable[Vector],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        threads: int | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> BatchResult:
        """Search for many vectors at once.

        Parameters
        ----------
        vectors
            The queries, or a SciPy array with a row for each.
        k, filter, min_score, threads, offset, group, per_group, decay
            As in ``BM25Index.search_batch``.
        """
        allowed, batch = check_threads(threads), vector_terms_each(vectors)
        whole, shaping = self._whole(), (group, per_group, decay)
        wanted = check_wanted(whole, k, filter, min_score, offset, *shaping)
        snapshot = whole.by_vectors
        matches = find(snapshot, batch, wanted, allowed)
        return batch_result(snapshot, matches, [()] * len(batch), wanted, asked=batch)

    def scores(self, vector: Vector) -> Float64:
        """Score every document, in document order, float64 (N,); 0 for what does not match.

        Parameters
        ----------
        vector
            As in ``search``.
        """
        return score_all(self._snapshot, vector_terms(vector))

    def explain(self, vector: Vector, id: str, filter: FilterSpec | None = None) -> Explanation:
        """Explain the score of a document, as ``BM25Index.explain`` does; ``f`` is its weight.

        Parameters
        ----------
        vector, id, filter
            As in ``search``; the document.
        """
        from bm25rag.search.explain import explain

        whole = self._whole()
        parsed = parse_filter(filter, whole)
        why = explain(whole.by_vectors, vector_terms(vector), id, parsed)
        return replace(why, terms=tuple(replace(term, tf=min(term.tf, 1)) for term in why.terms))

    def get(self, ids: Iterable[str | int]) -> list[dict[str, float]]:
        """Return the vectors of documents, in the order asked; empty for those without one.

        Weights are those that are stored, rounded to float32, terms in any order. It looks at the
        postings of all documents, so ask for many at once.

        Parameters
        ----------
        ids
            The documents; unknown ones are left out, as ``BM25Index.get`` leaves them out.
        """
        return read_vectors(self._snapshot, check_ids(ids))

    def __bool__(self) -> bool:
        """Whether any document has a vector."""
        views = [view for view in self._snapshot.views if len(view.segment.postings.documents)]
        if any(view.living is None for view in views):
            return True
        for view in views:
            view.segment.postings.check_all()
        return any(view.frequencies().any() for view in views)

    def vocabulary(self) -> list[str]:
        """Return the terms of the vectors of living documents, by code point."""
        return self._snapshot.frequencies()[0]

    def document_frequencies(self) -> Int64:
        """Return how many vectors have each term of ``vocabulary()``, int64 (V,)."""
        return self._snapshot.frequencies()[1]

    def to_scipy(self) -> csc_array:
        """Return the vectors: float32 (N, V), columns as ``vocabulary()``; needs SciPy."""
        from bm25rag.search.matrix import score_matrix

        return score_matrix(self._snapshot)


def vector_terms(vector: Vector) -> dict[str, float]:
    """Return the terms of a query's vector and their weights, checked."""
    return _unsigned_zeros(read_vector(vector, "vector"))


def vector_terms_each(vectors: Iterable[Vector]) -> list[dict[str, float]]:
    """Return the same for each of several vectors."""
    batch = []
    for number, vector in enumerate(read_each(vectors, "vectors")):
        if vector is None:
            raise TypeError(f"vectors[{number}] must be a vector, got None")
        batch.append(_unsigned_zeros(vector))
    return batch


def _unsigned_zeros(vector: dict[str, float]) -> dict[str, float]:
    return {term: weight + 0.0 for term, weight in vector.items()}
