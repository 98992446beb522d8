"""Statistics of a whole collection, for an index that holds only some of its documents."""

from __future__ import annotations

from collections.abc import Callable

from bm25rag.columns.string_table import StringTable
from bm25rag.common.arrays import Unsigned


class Statistics:
    """What scores need to know of a collection; immutable.

    ``tokens`` is the sum of the documents' lengths, by field; ``frequencies`` says in how many
    documents each of ``terms`` occurs, (V,), unsigned; ``check`` checks some, if they are of a
    file.
    """

    def __init__(
        self,
        documents: int,
        tokens: tuple[int, ...],
        terms: StringTable,
        frequencies: Unsigned,
        check: Callable[[int, int], object] = lambda start, stop: None,
    ) -> None:
        self.documents = documents
        self.tokens = tokens
        self.terms = terms
        self.frequencies = frequencies
        self._check = check

    def __reduce__(self) -> tuple[type[Statistics], tuple[object, ...]]:
        self._check(0, len(self.frequencies))
        return Statistics, (self.documents, self.tokens, self.terms, self.frequencies)

    def frequency(self, term: bytes) -> int:
        """Return in how many documents a term occurs; raise as ``StringTable.find``."""
        number = self.terms.find(term)
        if number < 0:
            return 0
        self._check(number, number + 1)
        return int(self.frequencies[number])
