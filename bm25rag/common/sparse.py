"""Sparse vectors as users have them: weights by term, read into one form and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias, TypedDict

import numpy as np

from bm25rag.common.checks import LARGEST_STORED, check_sequence, check_weight


class IndexedValues(Protocol):
    """A vector as two sequences of one length, as Haystack, Qdrant and FastEmbed have it."""

    @property
    def indices(self) -> Any:
        """The numbers of the terms."""

    @property
    def values(self) -> Any:
        """Their weights."""


class IndicesAndValues(TypedDict):
    """The same as a dict, as Pinecone has it; its lists are of unlike types, which needs names."""

    indices: Any
    values: Any


Vector: TypeAlias = (
    Mapping[str, float]
    | Mapping[int, float]
    | IndexedValues
    | IndicesAndValues
    | Mapping[str, Sequence[Any]]
)
"""Weights by term; the number of a term stands for its decimal digits."""


def read_vector(vector: object, name: str) -> dict[str, float]:
    """Return a vector as weights by term.

    Parameters
    ----------
    vector
        A mapping of terms or their numbers to weights; an object with ``indices`` and ``values``,
        or a mapping of these two to lists, as Pinecone has it; or a SciPy array of one row.
    name
        Its name in messages.

    Raises
    ------
    TypeError
        If it is nothing of that, or a term or a weight has the wrong type.
    ValueError
        If a number is negative, a term occurs twice, there are not as many terms as weights, or a
        weight is NaN or beyond 1e30.
    """
    if isinstance(vector, Mapping):
        if _maps_lists(vector):
            return read_vector(SimpleNamespace(**vector), name)
        terms, weights = list(vector), list(vector.values())
    elif hasattr(vector, "tocsr"):
        rows = list(read_rows(vector, name))
        if len(rows) != 1:
            raise ValueError(f"{name} must have one row, got {len(rows)}")
        return rows[0]
    # Since Python 3.12, isinstance of a protocol sees nothing that __getattr__ has, as in gRPC.
    elif hasattr(vector, "indices") and hasattr(vector, "values") and not callable(vector.indices):
        terms = _listed(vector.indices, f"{name}.indices", "terms or their numbers")
        weights = _listed(vector.values, f"{name}.values", "weights")
    else:
        raise TypeError(
            f"{name} must map terms to weights, or have indices and values, got {vector!r:.100}"
        )
    if len(terms) != len(weights):
        raise ValueError(f"{name} has {len(terms)} indices and {len(weights)} values")
    if set(map(type, terms)) - {str}:
        terms = _digits(terms) or [_check_term(term, name) for term in terms]
    if set(map(type, weights)) != {float} or not all(
        -LARGEST_STORED <= weight <= LARGEST_STORED for weight in weights
    ):
        pairs = zip(terms, weights, strict=True)
        weights = [check_weight(name, *pair, LARGEST_STORED) for pair in pairs]
    read = dict(zip(terms, weights, strict=True))
    if len(read) < len(terms):
        ((twice, _),) = Counter(terms).most_common(1)
        raise ValueError(f"{name} has the term {twice!r:.100} twice")
    return read


def read_each(vectors: Iterable[Vector | None], name: str) -> Iterator[dict[str, float] | None]:
    """Yield vectors as ``read_vector`` does, ``None`` for ``None``; messages say which is wrong.

    The vectors may be a SciPy array with a row for each.
    """
    if hasattr(vectors, "tocsr"):
        yield from read_rows(vectors, name)
        return
    for number, vector in enumerate(check_sequence(name, vectors, "vectors")):
        yield None if vector is None else read_vector(vector, f"{name}[{number}]")


def read_rows(matrix: Any, name: str) -> Iterator[dict[str, float]]:
    """Yield the rows of a SciPy array; values at the same place are added, as SciPy does."""
    if matrix.ndim > 2:
        raise ValueError(f"{name} must be a SciPy array of rows, got one of {matrix.ndim} axes")
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.ndim == 1:
        rows = rows.reshape(1, -1).tocsr()
    if rows.nnz and rows.indices.min() < 0:
        raise ValueError(f"{name} must have columns >= 0, got {rows.indices.min()}")
    weights = rows.data.astype(np.float64) if rows.dtype.kind in "iuf" else rows.data
    for number, (first, last) in enumerate(zip(rows.indptr, rows.indptr[1:], strict=False)):
        pairs = zip(rows.indices[first:last].tolist(), weights[first:last].tolist(), strict=True)
        yield read_vector(dict(pairs), f"{name}[{number}]")


def _maps_lists(vector: Mapping[Any, Any]) -> bool:
    """Whether it has ``indices`` and ``values``, and not two terms of these names."""
    return vector.keys() == {"indices", "values"} and hasattr(vector["indices"], "__len__")


def _listed(values: Any, name: str, of: str) -> list[Any]:
    if callable(values):
        raise TypeError(f"{name} must be an iterable of {of}, got a method: pass what it returns")
    return list(check_sequence(name, values.tolist() if hasattr(values, "tolist") else values, of))


def _digits(terms: list[Any]) -> list[str] | None:
    """Return the digits of numbers from 0, ``None`` if these are others."""
    try:
        usual = set(map(type, terms)) == {int} and min(terms) >= 0
        return list(map(str, terms)) if usual else None
    except ValueError:
        return None


def _check_term(term: object, name: str) -> str:
    if isinstance(term, str):
        return str(term)
    if isinstance(term, (bool, np.bool_)) or not isinstance(term, (int, np.integer)):
        raise TypeError(f"{name} must have terms that are strings or integers, got {term!r:.100}")
    try:
        digits = str(int(term))
    except ValueError:
        message = "has a term of more digits than Python writes; give it as a str"
        raise ValueError(f"{name} {message}") from None
    if term < 0:
        raise ValueError(f"{name} must have numbers of terms >= 0, got {digits:.100}")
    return digits
