"""Texts to term numbers in bulk: what an ``Analyzer`` does to one text, for a whole build."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count, repeat
from typing import Any, NamedTuple

import numpy as np

from bm25rag.analysis import scripts
from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.fold_table import fold_table
from bm25rag.analysis.legacy import AUTO_0_1
from bm25rag.analysis.settings import PAPER
from bm25rag.columns.column import StringBatch, join, join_none
from bm25rag.common.arrays import UInt32
from bm25rag.common.gil import release_gil, releasing_gil
from bm25rag.common.strings import utf8, utf8_each
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import STOPPED, Scanned, Scanner, Texts

# How many words are stemmed at a time.
_STEMMED = 256
# Ends a word in the scanner's pool.
_END = 10
# Which bytes are neither ASCII letters or digits nor the end of a word.
_ODD = np.array([not (chr(byte).isalnum() and byte < 128) and byte != _END for byte in range(256)])


class Read(NamedTuple):
    """Texts, their UTF-8 (``None`` for texts that are not stored), and what the scanner found."""

    texts: Sequence[str | Sequence[str]]
    strings: StringBatch
    scanned: Scanned | None = None


class Encoder:
    """Numbers the terms of texts for one build.

    Any thread may read texts; their terms are then numbered in order. If the compiled scanner
    knows the rules of the analyzer, reading scans the texts; otherwise numbering analyses them
    word by word in Python. The terms are the same.

    Parameters
    ----------
    analyzer
        How texts become terms.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        # Stop words are the term None, so that they have a number, too.
        self._terms: dict[str | None, int] = defaultdict(count().__next__, {None: STOPPED})
        self._of_word = _Numbers(analyzer, self._terms)
        self._scanner: _Scanner | None = None

    def __len__(self) -> int:
        return len(self._terms) - 1

    @property
    def terms(self) -> list[str]:
        """The terms so far, in the order of their numbers."""
        return [term for term in self._terms if term is not None]

    def encode(self, texts: Sequence[str | Sequence[str]]) -> tuple[UInt32, UInt32]:
        """Turn texts into the numbers of their terms, as ``reader`` and ``number`` do."""
        return self.number(self.reader(texts, stored=False)())

    def reader(self, texts: Sequence[str | Sequence[str]], stored: bool) -> Callable[[], Read]:
        """Return a function that reads some texts; any thread may call it, once.

        Parameters
        ----------
        texts
            Texts to be analysed, or lists of terms.
        stored
            Whether to return the texts in UTF-8, for a column.
        """
        plain = all(map(isinstance, texts, repeat(str)))
        scanner = self._made_scanner() if plain else None
        return partial(_read if scanner is None else scanner.read, texts, stored)

    def number(self, read: Read) -> tuple[UInt32, UInt32]:
        """Return the term numbers of texts that were read.

        Parameters
        ----------
        read
            What a reader returned; readers are numbered in the order in which they were made.

        Returns
        -------
        tokens
            The term of every token, uint32; ``STOPPED`` for a stop word.
        counts
            How many tokens each text has, uint32.
        """
        if read.scanned is not None and self._scanner is not None:
            return self._scanner.number(read.scanned)
        tokens, counts = array("I"), array("I")
        for text in read.texts:
            before = len(tokens)
            if isinstance(text, str):
                words = self._analyzer.find_words(text)
                if self._analyzer.tokenizer is None:
                    tokens.extend(chain.from_iterable(map(self._of_word.__getitem__, words)))
                else:
                    tokens.extend(map(self._terms.__getitem__, words))
            else:
                tokens.extend(map(self._terms.__getitem__, text))
            counts.append(len(tokens) - before)
        return np.frombuffer(tokens, np.uint32), np.frombuffer(counts, np.uint32)

    def _made_scanner(self) -> _Scanner | None:
        if self._scanner is None and _is_scanned(self._analyzer):
            scanner = backend.current().scanner
            if scanner is not None:
                self._scanner = _Scanner(self._analyzer, self._terms, scanner)
        return self._scanner


def _is_scanned(analyzer: Analyzer) -> bool:
    """Whether the compiled scanner knows how an analyzer finds words."""
    plain = analyzer.token_pattern in (AUTO_0_1, PAPER) and not analyzer.southeast_asian
    return analyzer.tokenizer is None and (analyzer.token_pattern == "auto" or plain)


def _read(texts: Sequence[str | Sequence[str]], stored: bool) -> Read:
    kept = [utf8(text) if stored and isinstance(text, str) else None for text in texts]
    return Read(texts, join(kept))


class _Numbers(dict[str, list[int]]):
    """Maps a word to the numbers of its terms; each word is analysed once."""

    def __init__(self, analyzer: Analyzer, terms: dict[str | None, int]) -> None:
        self._analyzer = analyzer
        self._terms = terms

    def __missing__(self, word: str) -> list[int]:
        terms, _ = self._analyzer.analyze_words([word])
        numbers = self[word] = [self._terms[term] for term in terms]
        return numbers


class _Scanner:
    """Runs the compiled scanner, and keeps the words that it has found and their terms."""

    def __init__(self, analyzer: Analyzer, terms: dict[str | None, int], scanner: Scanner) -> None:
        self._analyzer = analyzer
        self._terms = terms
        self._scanner = scanner
        self._table = fold_table(analyzer)
        auto = analyzer.token_pattern == "auto"
        self._rules = 1 if auto else 2, analyzer.splitter.drops_possessives
        self._words = scanner.new_words(1 << 10)
        self._analyzed = 0  # bytes of the pool whose words have been analysed
        # The numbers of the terms of each word begin at its ``_starts`` in ``_numbers``.
        self._numbers, self._starts = np.zeros(0, np.uint32), np.zeros(1, np.int64)

    def read(self, texts: Sequence[Any], stored: bool) -> Read:
        """Find the words of texts; any thread may call this."""
        encoded = utf8_each(texts)
        release_gil()
        strings = join(encoded)
        arrays = _arrays(strings)
        if peculiar := self._find_peculiar(arrays):
            folded = [utf8(self._fold(texts[number])) for number in peculiar]
            self._find_peculiar(_arrays(join(folded)))
            for number, text in zip(peculiar, folded, strict=True):
                encoded[number] = text
            arrays = _arrays(join(encoded))
        kept = strings if stored else join_none(len(texts))
        return Read(texts, kept, self._scanner.scan(arrays, self._table.entries, *self._rules))

    def _find_peculiar(self, texts: Texts) -> list[int]:
        """Return which texts need more than the fold table, which then has all their characters."""
        peculiar, pages = self._scanner.find_peculiar(texts, self._table.entries)
        if len(pages):
            self._table.add_pages(pages)
            peculiar, _ = self._scanner.find_peculiar(texts, self._table.entries)
        return np.flatnonzero(peculiar).tolist()

    def _fold(self, text: str) -> str:
        text = self._analyzer.splitter.fold(text)
        return scripts.join_conjuncts(text) if self._analyzer.token_pattern == AUTO_0_1 else text

    def number(self, scanned: Scanned) -> tuple[UInt32, UInt32]:
        """Return the term numbers of texts that were scanned, as ``Encoder.number`` does."""
        self._words, words = self._scanner.add_words(scanned, self._words)
        self._analyze_new()
        return self._scanner.expand(
            scanned.tokens, scanned.counts, words, self._starts, self._numbers
        )

    def _analyze_new(self) -> None:
        end = int(self._words.used[1])
        pool = self._words.pool[self._analyzed : end]
        self._analyzed = end
        new = pool.tobytes().decode("utf-8").split("\n")[:-1]
        is_odd = np.zeros(len(new), np.bool_)
        is_odd[np.searchsorted(np.flatnonzero(pool == _END), np.flatnonzero(_ODD[pool]))] = True
        odd = np.flatnonzero(is_odd)
        numbers: list[int] = []
        sizes = np.ones(len(new), np.int64)
        bounds = np.searchsorted(odd, range(0, len(new) + _STEMMED, _STEMMED))
        for block in releasing_gil(range(len(bounds) - 1)):
            first = block * _STEMMED
            own = (odd[bounds[block] : bounds[block + 1]] - first).tolist()
            terms, several = self._analyzer.analyze_words(new[first : first + _STEMMED], odd=own)
            numbers += map(self._terms.__getitem__, terms)
            for number, size in several.items():
                sizes[first + number] = size
        ends = np.cumsum(sizes) + len(self._numbers)
        self._numbers = np.concatenate((self._numbers, np.array(numbers, np.uint32)))
        self._starts = np.concatenate((self._starts, ends))


def _arrays(strings: StringBatch) -> Texts:
    data = np.frombuffer(strings.data, np.uint8)
    return Texts(data, np.cumsum(strings.lengths, dtype=np.int64))
