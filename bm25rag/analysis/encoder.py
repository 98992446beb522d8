"""Texts to term numbers in bulk: what an ``Analyzer`` does to one text, for a whole build."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

import numpy as np

from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.settings import Tokenizer, check_tokens
from bm25rag.analysis.term_numbers import TermNumbers, TermTable, new_term_numbers
from bm25rag.analysis.text_scanner import TextScanner
from bm25rag.columns.column import Column, StringBatch, byte_positions, join, join_none
from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32
from bm25rag.common.gil import others_read, releasing_gil
from bm25rag.common.strings import SEPARATOR, TermList, join_terms, utf8
from bm25rag.kernels.boundary import LONGEST_JOINED
from bm25rag.kernels.scanner import BEYOND, SEVERAL, STOPPED, Scanned, Texts

# How many words are stemmed between pauses, and characters of joined terms numbered at a time.
_STEMMED = 256
_JOINED = 1 << 16
_SEPARATOR = SEPARATOR.encode()
# Ends a word in the scanner's pool; a hyphen; the first of the letters, behind all digits; and
# what may be read behind words.
_END, _HYPHEN, _FIRST_LETTER = 10, ord("-"), ord("A")
_NOTHING = np.zeros(BEYOND, np.uint8)
# Which bytes are neither ASCII letters or digits nor the end of a word.
_ODD = np.array([not (chr(byte).isalnum() and byte < 128) and byte != _END for byte in range(256)])
# What ``Scanner.expand`` is given where every word is one term.
_NO_STARTS, _NO_TERMS = np.zeros(1, np.int64), np.empty(0, np.uint32)


class Read(NamedTuple):
    """Texts, their UTF-8 (``None`` for texts that are not stored), and what the scanner found."""

    texts: Sequence[str | TermList]
    strings: StringBatch
    scanned: Scanned | None = None


class Encoder:
    """Numbers the terms of texts for one build.

    Any thread may read texts; their terms are then numbered in order. If the compiled scanner
    knows the rules of the analyzer, reading scans the texts; otherwise numbering analyses them
    word by word in Python. The terms are the same.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._terms = new_term_numbers()
        # The numbers of the terms of each word that was analysed in Python.
        self._of_word: dict[str, list[int]] = {}
        self._scanner: _Scanner | None = None

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def terms(self) -> Column:
        """The terms so far, in the order of their numbers."""
        return self._terms.column()

    def encode(self, texts: Sequence[str | TermList]) -> tuple[UInt32, UInt32]:
        """Turn texts into the numbers of their terms, as ``reader`` and ``number`` do."""
        return self.number(self.reader(texts, stored=False)())

    def reader(self, texts: Sequence[str | TermList], stored: bool) -> Callable[[], Read]:
        """Return a function that reads some texts; any thread may call it, once."""
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
            The term of every token, uint32; stop words are left out, or ``STOPPED``.
        counts
            How many tokens each text has, uint32.
        """
        if read.scanned is not None and self._scanner is not None:
            tokens, counts = self._scanner.number(read.scanned)
            bare = np.flatnonzero((counts == 0) & (read.scanned.counts > 0))
            return (
                self._add_stopped(read.texts, tokens, counts, bare)
                if len(bare)
                else (tokens, counts)
            )
        words = iter(self._analyzed(read.texts))
        batch = _Batch(self._terms)
        for text in read.texts:
            if not isinstance(text, str):
                batch.add(text)
            elif self._analyzer.tokenizer is not None:
                batch.add(_tokens(self._analyzer.tokenizer, text))
            else:
                found = [*chain.from_iterable(map(self._of_word.__getitem__, next(words)))]
                if found and set(found) == {STOPPED}:
                    found = self._terms.number(self._analyzer.terms(text)).tolist()
                batch.add_numbers(found)
        return batch.finish()

    def _add_stopped(
        self, texts: Sequence[Any], tokens: UInt32, counts: UInt32, bare: Int64
    ) -> tuple[UInt32, UInt32]:
        """Add the terms of texts of nothing but stop words, which they keep."""
        found = [self._terms.number(self._analyzer.terms(texts[index])) for index in bare.tolist()]
        sizes = [len(one) for one in found]
        places = np.repeat(np.cumsum(counts, dtype=np.int64)[bare], sizes)
        counts[bare] = sizes
        return np.insert(tokens, places, np.concatenate(found)), counts

    def _made_scanner(self) -> _Scanner | None:
        known = self._analyzer.tokenizer is None and self._analyzer.splitter.least > 0
        if self._scanner is None and known and isinstance(self._terms, TermTable):
            self._scanner = _Scanner(self._analyzer, self._terms)
        return self._scanner

    def _analyzed(self, texts: Sequence[str | TermList]) -> list[list[str]]:
        """Return the words of the texts that are no terms, after analysing new ones."""
        if self._analyzer.tokenizer is not None:
            return []
        plain = [text for text in texts if isinstance(text, str)]
        words = [self._analyzer.find_words(text) for text in releasing_gil(plain)]
        distinct = dict.fromkeys(chain.from_iterable(words))
        new = [word for word in distinct if word not in self._of_word]
        numbers, sizes = _analyze(self._analyzer, self._terms, new, None)
        parts = np.split(numbers, np.cumsum(sizes)[:-1]) if new else []
        self._of_word.update(zip(new, [part.tolist() for part in parts], strict=True))
        return words


def _read(texts: Sequence[str | TermList], stored: bool) -> Read:
    if not stored:
        return Read(texts, join_none(len(texts)))
    return Read(texts, join([utf8(text) if isinstance(text, str) else None for text in texts]))


def _tokens(tokenizer: Tokenizer, text: str) -> TermList:
    """Return the terms of a text; raise as ``check_tokens``."""
    tokens = tokenizer(text)
    if isinstance(tokens, (list, tuple)):
        with suppress(TypeError):
            return join_terms(tokens)
    return join_terms(check_tokens(tokens))


def _analyze(
    analyzer: Analyzer, terms: TermNumbers, words: list[str], odd: Int64 | None
) -> tuple[UInt32, Int64]:
    """Return the numbers of the terms of words, and how many each has."""
    found, stopped = list[str](), list[int]()
    sizes = np.ones(len(words), np.int64)
    # Fewer at a time cost more, so they are only where other threads wait for the GIL.
    step = _STEMMED if others_read() else max(len(words), 1)
    for first in releasing_gil(range(0, len(words), step)):
        own = None
        if odd is not None:
            begin, end = np.searchsorted(odd, (first, first + step))
            own = (odd[begin:end] - first).tolist()
        analyzed, several, without = analyzer.analyze_words(words[first : first + step], odd=own)
        stopped += [len(found) + place for place in without]
        found += analyzed
        for number, size in several.items():
            sizes[first + number] = size
    return terms.number_kept(found, stopped), sizes


class _Batch:
    """The terms of some texts, of which many are numbered at a time."""

    def __init__(self, terms: TermNumbers) -> None:
        self._terms = terms
        self._joined: list[bytes] = []
        self._size = 0
        self._tokens = [np.empty(0, np.uint32)]
        self._counts = array("I")

    def add(self, terms: TermList) -> None:
        """Add the terms of a text."""
        if isinstance(terms, list):
            self.add_numbers(self._terms.number(terms))
            return
        self._counts.append(terms.count(_SEPARATOR) + 1 if terms else 0)
        if terms:
            self._joined.append(terms)
            self._size += len(terms)
            if self._size >= _JOINED:
                self._number()

    def add_numbers(self, numbers: UInt32 | list[int]) -> None:
        """Add the terms of a text by their numbers."""
        self._number()
        self._tokens.append(np.array(numbers, np.uint32))
        self._counts.append(len(numbers))

    def _number(self) -> None:
        self._tokens.append(self._terms.number_joined(self._joined))
        self._joined, self._size = [], 0

    def finish(self) -> tuple[UInt32, UInt32]:
        """Return what ``Encoder.number`` returns."""
        self._number()
        return np.concatenate(self._tokens), np.frombuffer(self._counts, np.uint32)


class _Scanner:
    """Runs the compiled scanner, and keeps the words that it has found and their terms."""

    def __init__(self, analyzer: Analyzer, terms: TermTable) -> None:
        self._analyzer = analyzer
        self._terms = terms
        self._scanner = scanner = terms.scanner
        self._texts = TextScanner(scanner, analyzer.splitter)
        self._words = scanner.new_words(1 << 10)
        self._analyzed = 0  # bytes of the pool whose words have been analysed
        self._keeps = analyzer.keeps_words
        self._links = analyzer.splitter.splits_links
        # The term of each word; see ``Scanner.expand``. The numbers of those of several terms
        # begin at their ``_starts`` in ``_numbers``.
        self._plain = _Growing(np.uint32)
        self._numbers, self._starts = _Growing(np.uint32), _Growing(np.int64)
        self._starts.extend(np.zeros(1, np.int64))
        self._knows_stopwords = not analyzer.splitter.splits_all
        if self._knows_stopwords:
            self._add_stopwords(analyzer.stopwords)

    def _add_stopwords(self, stopwords: AbstractSet[str]) -> None:
        """Know stop words of ASCII letters and digits: other words are not looked up in them."""
        plain = [word for word in sorted(stopwords) if word.isascii() and word.isalnum()]
        self._number_words(np.frombuffer("".join(f"{word}\n" for word in plain).encode(), np.uint8))
        self._plain.extend(np.full(len(plain), STOPPED, np.uint32))
        self._analyzed = int(self._words.used[1])

    def read(self, texts: Sequence[Any], stored: bool) -> Read:
        """Find the words of texts; any thread may call this."""
        strings, scanned = self._texts.scan(texts)
        return Read(texts, strings if stored else join_none(len(texts)), scanned)

    def number(self, scanned: Scanned) -> tuple[UInt32, UInt32]:
        """Return the term numbers of texts that were scanned, as ``Encoder.number`` does."""
        if self._keeps:
            plain, starts, terms = self._terms.number_words(scanned), _NO_STARTS, _NO_TERMS
            return self._scanner.expand(scanned.tokens, scanned.counts, plain, starts, terms)
        self._words, words = self._scanner.add_words(scanned, self._words)
        self._analyze_new()
        plain = self._plain.array[words]
        several = np.flatnonzero((plain >= SEVERAL) & (plain != STOPPED))
        # Only the terms of these words, one after another.
        numbers = plain[several].astype(np.int64) - SEVERAL
        begins = self._starts.array[numbers]
        sizes = self._starts.array[numbers + 1] - begins
        plain[several] = np.arange(len(several), dtype=np.uint32) + np.uint32(SEVERAL)
        starts = np.concatenate(([0], np.cumsum(sizes)))
        terms = self._numbers.array[byte_positions(begins, sizes)]
        return self._scanner.expand(scanned.tokens, scanned.counts, plain, starts, terms)

    def _analyze_new(self) -> None:
        first, known = self._analyzed, len(self._plain.array)
        is_odd, linked, parts, sizes = self._find_odd(self._words.pool[first:])
        self._analyzed = int(self._words.used[1])
        is_own = np.ones(len(is_odd), np.bool_)
        is_own[linked] = False
        new = self._words.pool[first : self._analyzed].tobytes()
        words = new.decode("utf-8", "surrogatepass").split("\n")[:-1]
        if len(linked):
            words = [*compress(words, is_own.tolist())]
        odd = np.flatnonzero(is_odd[is_own]) if self._knows_stopwords else None
        numbers, counts = _analyze(self._analyzer, self._terms, words, odd)
        is_one = counts == 1
        of_one, own = np.repeat(is_one, counts), np.flatnonzero(is_own)
        plain = np.empty(len(is_odd), np.uint32)
        plain[own[is_one]] = numbers[of_one]
        plain[own[~is_one]] = self._add_several(numbers[~of_one], counts[~is_one])
        self._plain.extend(plain)
        if len(linked):
            self._plain.array[known + linked] = self._add_several(self._plain.array[parts], sizes)

    def _add_several(self, numbers: UInt32, sizes: Int64) -> UInt32:
        """Keep the terms of words that have so many each, and return what stands for them."""
        first = SEVERAL + len(self._starts.array) - 1
        self._starts.extend(np.cumsum(sizes) + len(self._numbers.array))
        self._numbers.extend(numbers)
        return np.arange(first, first + len(sizes), dtype=np.uint32)

    def _find_odd(self, pool: UInt8) -> tuple[Bool, Int64, UInt32, Int64]:
        """Return which new words are odd, which are linked, and the words of which these are.

        Linked words are of ASCII letters and digits between hyphens. Python would take three
        times as long for them. Their parts are words, and may be new ones at the end.

        Returns
        -------
        is_odd
            Whether a word is not only of ASCII letters and digits; words of parts included.
        linked
            The indexes of linked words.
        parts, sizes
            The numbers of the words that these are of, and of how many each is.
        """
        count = int(self._words.used[0]) - len(self._plain.array)
        pool = pool[: int(self._words.used[1]) - self._analyzed]
        ends = np.flatnonzero(pool == _END)
        odd = np.flatnonzero(_ODD[pool])
        of_odd, is_hyphen = np.searchsorted(ends, odd), pool[odd] == _HYPHEN
        others = np.bincount(of_odd[~is_hyphen], minlength=count)
        hyphens = np.bincount(of_odd[is_hyphen], minlength=count)
        parts, sizes = np.empty(0, np.uint32), np.empty(0, np.int64)
        linked = np.flatnonzero((hyphens > 0) & (others == 0)) if self._links else sizes
        if len(linked):
            sizes = hyphens[linked] + 1
            starts = np.concatenate(([0], ends[:-1] + 1))[linked]
            parts, sizes = self._number_parts(pool, starts, ends[linked] + 1 - starts, sizes)
        is_odd = np.zeros(int(self._words.used[0]) - len(self._plain.array), np.bool_)
        is_odd[of_odd] = True
        return is_odd, linked, parts, sizes

    def _number_parts(
        self, pool: UInt8, starts: Int64, lengths: Int64, sizes: Int64
    ) -> tuple[UInt32, Int64]:
        """Return the numbers of the parts of linked words, and of two short ones as one word.

        Parameters
        ----------
        pool, starts, lengths
            The words, and where they are, each with what ends it.
        sizes
            How many parts each has.

        Returns
        -------
        parts, sizes
            The numbers, and how many each word has.
        """
        data = pool[byte_positions(starts, lengths)]
        parts = self._number_words(np.where(data == _HYPHEN, _END, data))
        letters = np.add.reduceat(data >= _FIRST_LETTER, np.cumsum(lengths) - lengths)
        # As ``tokens.other_tokens`` has it; a hyphen and an end are among the lengths.
        joins = (sizes == 2) & (lengths - 2 <= LONGEST_JOINED) & (letters > 0)
        data = pool[byte_positions(starts[joins], lengths[joins])]
        joined = self._number_words(data[data != _HYPHEN])
        return np.insert(parts, np.cumsum(sizes)[joins], joined), sizes + joins

    def _number_words(self, data: UInt8) -> UInt32:
        """Return the numbers of words, each with what ends it."""
        texts = Texts(np.concatenate((data, _NOTHING)), np.flatnonzero(data == _END))
        self._words, numbers = self._scanner.add_strings(texts, self._words)
        return numbers


class _Growing:
    """An array that grows."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._room = np.empty(1 << 10, kind)
        self.array = self._room[:0]

    def extend(self, values: np.ndarray[Any, Any]) -> None:
        """Add some values."""
        known = len(self.array)
        if known + len(values) > len(self._room):
            self._room = np.empty(2 * (known + len(values)), self._room.dtype)
            self._room[:known] = self.array
        self._room[known : known + len(values)] = values
        self.array = self._room[: known + len(values)]
