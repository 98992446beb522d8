"""Texts to term numbers, in bulk: what an ``Analyzer`` does to one text, for a whole build."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bm25rag import scripts
from bm25rag._types import Int64, UInt8, UInt32, Unsigned
from bm25rag.analysis import PAPER_PATTERN, Analyzer
from bm25rag.backend import kernels
from bm25rag.folding import SEPARATOR, fold_table
from bm25rag.kernels_numpy import STOPPED

# A separator of texts must not occur in them, and no analysis may change it.
_SEPARATORS = "\x00\x01\x02\x03\x04\x05\x06\x07"
# Python analyses a byte in the time in which NumPy walks so many postings.
_WORK = 8

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Encoder:
    """Numbers the terms of texts for one build.

    The texts of a chunk are joined and, where the analyzer is one that the compiled
    scanner knows, scanned at once; otherwise word by word in Python. The terms are
    the same.

    Parameters
    ----------
    analyzer
        How texts become terms.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._terms: dict[str, int] = {}
        own = analyzer if analyzer.tokenizer is None else None
        self._of_word = _Numbers(own, self._terms)
        self._of_term = _Numbers(None, self._terms)
        self._scanner: _Scanner | None = None
        self._seen = 0

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def terms(self) -> list[str]:
        """The terms so far, in the order of their numbers."""
        return list(self._terms)

    def encode(self, texts: Sequence[str | Sequence[str]]) -> tuple[UInt32, UInt32]:
        """Turn texts into numbers of their terms.

        Parameters
        ----------
        texts
            Texts to be analysed, or lists of terms.

        Returns
        -------
        tokens
            The term of every token, uint32; ``STOPPED`` for a stop word.
        counts
            How many tokens each text has, uint32.
        """
        plain = [text for text in texts if isinstance(text, str)]
        if plain and len(plain) == len(texts) and (scanner := self._scanner_for(plain)) is not None:
            encoded = scanner.encode(plain)
            if encoded is not None:
                return encoded
        tokens, counts = array("I"), array("I")
        for text in texts:
            if isinstance(text, str):
                words: Sequence[str] = self._analyzer.words(text)
                tokens.extend(map(self._of_word.__getitem__, words))
            else:
                words = text
                tokens.extend(map(self._of_term.__getitem__, words))
            counts.append(len(words))
        return np.frombuffer(tokens, np.uint32), np.frombuffer(counts, np.uint32)

    def _scanner_for(self, texts: Sequence[str]) -> _Scanner | None:
        if self._scanner is None and self._analyzer.token_pattern in ("auto", PAPER_PATTERN):
            self._seen += sum(map(len, texts))
            hot = kernels(_WORK * self._seen)
            if self._analyzer.tokenizer is None and hasattr(hot, "scan"):
                self._scanner = _Scanner(self._analyzer, self._terms, hot)
        return self._scanner


class _Numbers(dict[str, int]):
    """Words to term numbers; an unknown word is analysed once."""

    def __init__(self, analyzer: Analyzer | None, terms: dict[str, int]) -> None:
        self._analyzer = analyzer
        self._terms = terms

    def __missing__(self, word: str) -> int:
        term = word if self._analyzer is None else self._analyzer.stem(word)
        number = STOPPED if term is None else self._terms.setdefault(term, len(self._terms))
        self[word] = number
        return number


class _Scanner:
    """Holds the words that the compiled scanner has met, and their terms."""

    def __init__(self, analyzer: Analyzer, terms: dict[str, int], hot: ModuleType) -> None:
        self._analyzer = analyzer
        self._terms = terms
        self._hot = hot
        self._state = np.zeros(6, np.int64)
        self._starts = np.zeros(1 << 12, np.int64)
        self._pool = np.zeros(1 << 15, np.uint32)
        self._slots = np.zeros(1 << 14, np.uint64)
        self._term_of = np.zeros(0, np.uint32)

    def encode(self, texts: Sequence[str]) -> tuple[UInt32, UInt32] | None:
        """As ``Encoder.encode``; ``None`` if the texts use every separator."""
        joined = "".join(texts)
        separator = next((one for one in _SEPARATORS if one not in joined), None)
        if separator is None:
            return None
        units, classes = self._fold(texts, separator)
        tokens, ends = np.empty(len(units), np.uint32), np.empty(len(texts), np.int64)
        self._state[:3] = 0
        while not self._scan(units, classes, tokens, ends):
            self._grow()
        self._take_new_words()
        counts = np.diff(ends, prepend=0).astype(np.uint32)
        return self._term_of[tokens[: self._state[1]]], counts

    def _fold(self, texts: Sequence[str], separator: str) -> tuple[Unsigned, UInt8]:
        """Join texts, lower-case them by a table, and let the analyzer fold what needs more."""
        units = _units(separator.join(texts) + separator)
        table = fold_table(self._analyzer, units.itemsize)
        peculiar = np.zeros(len(texts), np.bool_)
        folded = np.empty_like(units)
        self._hot.translate(units, table.lower, table.peculiar, ord(separator), folded, peculiar)
        if peculiar.any():
            plain = list(texts)
            for number in np.flatnonzero(peculiar).tolist():
                plain[number] = self._analyzer.fold(plain[number])
                if self._analyzer.token_pattern == "auto":
                    plain[number] = scripts.join_conjuncts(plain[number])
            units = _units(separator.join(plain) + separator)
            table = fold_table(self._analyzer, units.itemsize)
            folded = np.empty_like(units)
            self._hot.translate(
                units, table.lower, table.peculiar, ord(separator), folded, peculiar
            )
        classes = table.classes.copy()
        classes[ord(separator)] = SEPARATOR
        return folded, classes

    def _scan(self, units: Unsigned, classes: UInt8, tokens: UInt32, ends: Int64) -> bool:
        arrays = (self._starts, self._pool, self._slots)
        return bool(self._hot.scan(units, classes, *arrays, tokens, ends, self._state))

    def _grow(self) -> None:
        needed = int(self._state[5])
        self._starts = _larger(self._starts, needed)
        self._pool = _larger(self._pool, needed)
        slots = np.zeros(1 << (4 * len(self._starts)).bit_length(), np.uint64)
        self._hot.rehash(self._slots, slots)
        self._slots = slots

    def _take_new_words(self) -> None:
        known, count = len(self._term_of), int(self._state[3])
        starts = self._starts[known : count + 1]
        joined = self._pool[starts[0] : starts[-1]].tobytes().decode("utf-32-le", "surrogatepass")
        edges = (starts - starts[0]).tolist()
        new = [joined[first:last] for first, last in pairwise(edges)]
        stopwords, terms = self._analyzer.stopwords, self._terms
        stems = self._analyzer.stems(new)
        numbers = [
            STOPPED if word in stopwords else terms.setdefault(stem, len(terms))
            for word, stem in zip(new, stems, strict=True)
        ]
        self._term_of = np.concatenate((self._term_of, np.array(numbers, np.uint32)))


def _larger(values: npt.NDArray[_Scalar], needed: int) -> npt.NDArray[_Scalar]:
    grown = np.zeros(2 * len(values) + needed, values.dtype)
    grown[: len(values)] = values
    return grown


def _units(text: str) -> Unsigned:
    """Return the code points of a text in the narrowest of 8, 16 and 32 bits."""
    try:
        return np.frombuffer(text.encode("latin-1"), np.uint8)
    except UnicodeEncodeError:
        wide = text.encode("utf-16-le", "surrogatepass")
    if len(wide) == 2 * len(text):
        return np.frombuffer(wide, "<u2").view(np.uint16)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").view(np.uint32)
