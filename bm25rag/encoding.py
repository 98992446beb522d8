"""Texts to term numbers, in bulk: what an ``Analyzer`` does to one text, for a whole build."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count, repeat
from typing import Any, NamedTuple

import numpy as np

from bm25rag import scripts
from bm25rag._types import UInt32, utf8, utf8_each
from bm25rag.analysis import AUTO_0_1, PAPER, Analyzer
from bm25rag.columns import Strings, join, join_none
from bm25rag.folding import fold_table
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import STOPPED, Scanned, Scanner, Texts
from bm25rag.turns import give_way, in_turns

# Words that are stemmed at a time.
_STEMMED = 256
# Ends a word in the scanner's pool.
_END = 10
# Which bytes are not letters, digits or ends.
_ODD = np.array([not (chr(byte).isalnum() and byte < 128) and byte != _END for byte in range(256)])


class Read(NamedTuple):
    """Texts, the same in UTF-8 (``None`` for what is not stored), and what the scanner found."""

    texts: Sequence[str | Sequence[str]]
    strings: Strings
    scanned: Scanned | None = None


class Encoder:
    """Numbers the terms of texts for one build.

    Texts are read, by any thread, and their terms then numbered, in order. Where the
    analyzer is one that the compiled scanner knows, reading scans them; otherwise
    numbering analyses them word by word in Python. The terms are the same.

    Parameters
    ----------
    analyzer
        How texts become terms.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        # A stop word is the term None, so that a number is found for it, too.
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
        """Turn texts into numbers of their terms: ``number`` of what the ``reader`` returns."""
        return self.number(self.reader(texts, stored=False)())

    def reader(self, texts: Sequence[str | Sequence[str]], stored: bool) -> Callable[[], Read]:
        """Return what reads some texts, to be called once, by any thread.

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
        """Give the terms of texts that were read their numbers.

        Parameters
        ----------
        read
            What a reader returned; in the order in which the readers were made.

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
                words = self._analyzer.cut(text)
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
    """Whether the compiled scanner knows how an analyzer cuts texts."""
    plain = analyzer.token_pattern in (AUTO_0_1, PAPER) and not analyzer.southeast_asian
    return analyzer.tokenizer is None and (analyzer.token_pattern == "auto" or plain)


def _read(texts: Sequence[str | Sequence[str]], stored: bool) -> Read:
    kept = [utf8(text) if stored and isinstance(text, str) else None for text in texts]
    return Read(texts, join(kept))


class _Numbers(dict[str, list[int]]):
    """Words to the numbers of their terms; an unknown word is analysed once."""

    def __init__(self, analyzer: Analyzer, terms: dict[str | None, int]) -> None:
        self._analyzer = analyzer
        self._terms = terms

    def __missing__(self, word: str) -> list[int]:
        own, _ = self._analyzer.analyze([word])
        numbers = self[word] = [self._terms[term] for term in own]
        return numbers


class _Scanner:
    """Has the compiled scanner find words, and holds those found and their terms."""

    def __init__(self, analyzer: Analyzer, terms: dict[str | None, int], scanner: Scanner) -> None:
        self._analyzer = analyzer
        self._terms = terms
        self._scanner = scanner
        self._table = fold_table(analyzer)
        auto = analyzer.token_pattern == "auto"
        self._rules = 1 if auto else 2, analyzer.drops_possessives
        self._words = scanner.new_words(1 << 10)
        self._analyzed = 0  # bytes of the pool
        # Of each word the numbers of its terms: from ``_starts`` on in ``_numbers``.
        self._numbers, self._starts = np.zeros(0, np.uint32), np.zeros(1, np.int64)

    def read(self, texts: Sequence[Any], stored: bool) -> Read:
        """Find the words of texts; any thread may do it."""
        encoded = utf8_each(texts)
        give_way()
        strings = join(encoded)
        arrays = _arrays(strings)
        peculiar = np.flatnonzero(self._scanner.find_peculiar(arrays, self._table))
        if len(peculiar):
            for number in peculiar.tolist():
                encoded[number] = utf8(self._fold(texts[number]))
            arrays = _arrays(join(encoded))
        kept = strings if stored else join_none(len(texts))
        return Read(texts, kept, self._scanner.scan(arrays, self._table, *self._rules))

    def _fold(self, text: str) -> str:
        text = self._analyzer.fold(text)
        return scripts.join_conjuncts(text) if self._analyzer.token_pattern == AUTO_0_1 else text

    def number(self, scanned: Scanned) -> tuple[UInt32, UInt32]:
        """As ``Encoder.number``, of what the compiled ``scan`` returned."""
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
        for block in in_turns(range(len(bounds) - 1)):
            first = block * _STEMMED
            own = (odd[bounds[block] : bounds[block + 1]] - first).tolist()
            terms, several = self._analyzer.analyze(new[first : first + _STEMMED], odd=own)
            numbers += map(self._terms.__getitem__, terms)
            for number, size in several.items():
                sizes[first + number] = size
        ends = np.cumsum(sizes) + len(self._numbers)
        self._numbers = np.concatenate((self._numbers, np.array(numbers, np.uint32)))
        self._starts = np.concatenate((self._starts, ends))


def _arrays(strings: Strings) -> Texts:
    data = np.frombuffer(strings.data, np.uint8)
    return Texts(data, np.cumsum(strings.lengths, dtype=np.int64))
