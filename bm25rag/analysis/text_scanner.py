"""The words of many texts at once, by the compiled scanner; documents and questions share this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bm25rag.analysis.fold_table import fold_table
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.common.arrays import Int64
from bm25rag.common.gil import in_blocks, release_gil
from bm25rag.common.strings import SEPARATOR, text_of, utf8
from bm25rag.kernels.scanner_interface import Scanned, Scanner, Texts

# How many pieces are folded at once. No piece has the character that is put between them.
_TOGETHER = 64
_SEPARATOR = SEPARATOR.encode()


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
        pieces = self._find_peculiar(arrays)
        if len(pieces):  # to fold whole texts takes four times as long as all the rest
            arrays = self._fold(arrays, pieces)
        rules = *self._rules, question
        return given, self._scanner.scan(arrays, self._table.entries, *rules, self._spare)

    def _find_peculiar(self, texts: Texts) -> Int64:
        """Return which pieces need more than the fold table, which then has all characters."""
        pieces, pages = self._scanner.find_peculiar(texts, self._table.entries)
        if pages:
            self._table.add_pages(pages)
            pieces, _ = self._scanner.find_peculiar(texts, self._table.entries)
        return pieces

    def _fold(self, texts: Texts, pieces: Int64) -> Texts:
        """Return texts of which some pieces are folded."""
        begins, ends = pieces.T.tolist()
        source = texts.data.tobytes()  # a slice of an array takes 400 bytes
        own = [source[begin:end] for begin, end in zip(begins, ends, strict=True)]
        folded = dict[bytes, bytes]()
        for block in in_blocks([*dict.fromkeys(own)], _TOGETHER):
            together = self._splitter.fold(text_of(_SEPARATOR.join(block)))
            self._find_peculiar(self._scanner.encode([together]))
            folded.update(zip(block, utf8(together).split(_SEPARATOR), strict=True))
        parts, done = list[bytes](), 0
        for begin, end, piece in zip(begins, ends, own, strict=True):
            parts += source[done:begin], folded[piece]
            done = end
        data = np.frombuffer(b"".join([*parts, source[done:]]), np.uint8)
        sizes = [len(folded[piece]) for piece in own]
        growth = np.cumsum(sizes) - np.cumsum(pieces[:, 1] - pieces[:, 0])
        before = np.searchsorted(pieces[:, 1], texts.ends, "right")
        return Texts(data, texts.ends + np.concatenate(([0], growth))[before])
