"""Learned sparse vectors of texts: the functions that make them, and what these may return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

from bm25rag.errors import BM25Error
from bm25rag.vectors import Vector, read_vector


class SparseEncoderError(BM25Error, RuntimeError):
    """A function that makes sparse vectors failed, or returned something else."""


BatchSparseEncoding: TypeAlias = tuple[list[list[int]], list[list[float]]]
"""For each text the numbers of its terms, and for each text their weights."""
SparseEncoderCallable: TypeAlias = Callable[[list[str]], BatchSparseEncoding | Iterable[Vector]]
"""As LlamaIndex's ``QdrantVectorStore`` takes it, or one that returns a vector for each text."""


class Encoder:
    """A function that makes sparse vectors of texts; what it returns is checked.

    ``argument`` is the name of the argument that it was given as, for messages.
    """

    def __init__(self, argument: str, function: SparseEncoderCallable) -> None:
        kind = type(function).__name__
        if not callable(function):
            raise TypeError(
                f"{argument} must be a function of texts or None, got {kind}; of a model, give a "
                "method such as get_text_embedding_batch"
            )
        self._function = function
        self._name = f"{argument} ({getattr(function, '__qualname__', kind)})"

    @classmethod
    def of(cls, argument: str, function: SparseEncoderCallable | None) -> Encoder | None:
        """Return the encoder of an argument, if it was given."""
        return None if function is None else cls(argument, function)

    def encode(self, texts: list[str]) -> list[dict[str, float]]:
        """Return a vector for each text: weights by term."""
        try:
            encoded = self._function(texts)
            encoded = encoded if isinstance(encoded, tuple) else list(encoded)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise SparseEncoderError(f"{self._name} failed: {problem}") from error
        vectors = self._read(encoded)
        if len(vectors) != len(texts):
            raise SparseEncoderError(
                f"{self._name} must return a vector for each of {len(texts)} texts, got "
                f"{len(vectors)}"
            )
        try:
            named = ((f"the vector of texts[{n}]", vector) for n, vector in enumerate(vectors))
            return [read_vector(vector, name) for name, vector in named]
        except (TypeError, ValueError) as error:
            raise SparseEncoderError(f"{self._name} is wrong: {error}") from error

    def _read(self, encoded: Sequence[Any]) -> list[Any]:
        if isinstance(encoded, list) or len(encoded) != 2 or not all(map(_is_column, encoded)):
            return list(encoded)
        indices, values = encoded
        if len(indices) != len(values):
            raise SparseEncoderError(
                f"{self._name} must return as many lists of indices as of values, got "
                f"{len(indices)} and {len(values)}"
            )
        pairs = zip(indices, values, strict=True)
        return [SimpleNamespace(indices=first, values=second) for first, second in pairs]


def _is_column(part: Any) -> bool:
    """Whether it is the lists of indices or of values of all texts, and not a vector."""
    is_vector = isinstance(part, Mapping) or hasattr(part, "indices") or hasattr(part, "tocsr")
    return hasattr(part, "__len__") and not is_vector
