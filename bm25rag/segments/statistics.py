"""Statistics of a whole collection, for an index that holds only some of its documents."""

from __future__ import annotations

from bm25rag.columns.string_table import StringTable
from bm25rag.common.arrays import Unsigned


class Statistics:
    """What scores need to know of a collection; immutable.

    ``tokens`` is the sum of the documents' lengths, by field; ``frequencies`` says in how many
    documents each of ``terms`` occurs, (V,), unsigned.
    """

    def __init__(
        self, documents: int, tokens: tuple[int, ...], terms: StringTable, frequencies: Unsigned
    ) -> None:
        self.documents = documents
        self.tokens = tokens
        self.terms = terms
        self.frequencies = frequencies

    def frequency(self, term: bytes) -> int:
        """Return in how many documents a term occurs; raise as ``StringTable.find``."""
        number = self.terms.find(term)
        return 0 if number < 0 else self._frequency_at(number)

    def _frequency_at(self, number: int) -> int:
        return int(self.frequencies[number])
