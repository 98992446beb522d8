"""The words of many texts at once, by the compiled scanner; documents and questions share this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bm25rag.analysis.fold_table import fold_table
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.columns.column import join
from bm25rag.common.gil import release_gil
from bm25rag.common.strings import utf8
from bm25rag.kernels.scanner_interface import Scanned, Scanner, Texts


class TextScanner:
    """Runs the compiled scanner by the rules of a splitter; any threads may share it.

    ``joins`` says whether to find what is also one word; see ``links``.
    """

    def __init__(self, scanner: Scanner, splitter: WordSplitter, joins: bool) -> None:
        self._scanner, self._splitter = scanner, splitter
        self._table = fold_table(splitter.fold_rules)
        self._rules = splitter.least, splitter.drops_possessives, joins
        self._spare: list[Any] = []

    def scan(self, texts: Sequence[str], question: bool = False) -> tuple[Texts, Scanned]:
        """Find the words of texts, or of questions; return the UTF-8 of the texts, too."""
        given = arrays = self._scanner.encode(texts)
        release_gil()
        if peculiar := self._find_peculiar(arrays):
            # To fold a text takes four times as long as all the rest, and links are often all.
            folded = [utf8(self._splitter.with_links(texts[number])) for number in peculiar]
            for place in self._find_peculiar(_together(folded)):
                folded[place] = utf8(self._splitter.fold(texts[peculiar[place]]))
            self._find_peculiar(_together(folded))
            arrays = _replace(arrays, peculiar, folded)
        rules = *self._rules, question
        return given, self._scanner.scan(arrays, self._table.entries, *rules, self._spare)

    def _find_peculiar(self, texts: Texts) -> list[int]:
        """Return which texts need more than the fold table, which then has all their characters."""
        peculiar, pages = self._scanner.find_peculiar(texts, self._table.entries)
        if pages:
            self._table.add_pages(pages)
            peculiar, _ = self._scanner.find_peculiar(texts, self._table.entries)
        return peculiar


def _together(texts: list[bytes]) -> Texts:
    joined = join(texts)
    ends = np.cumsum(joined.lengths, dtype=np.int64)
    return Texts(np.frombuffer(joined.data, np.uint8), ends)


def _replace(texts: Texts, numbers: list[int], others: list[bytes]) -> Texts:
    """Return texts, some of them replaced."""
    lengths = np.diff(texts.ends, prepend=0)
    ends = texts.ends[numbers]
    pieces: list[Any] = []
    done = 0
    for other, start, end in zip(
        others, (ends - lengths[numbers]).tolist(), ends.tolist(), strict=True
    ):
        pieces += texts.data[done:start].data, other
        done = end
    data = b"".join([*pieces, texts.data[done:].data])
    lengths[numbers] = [len(other) for other in others]
    return Texts(np.frombuffer(data, np.uint8), np.cumsum(lengths))
