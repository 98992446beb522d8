"""Texts to term numbers in bulk: what an ``Analyzer`` does to one text, for a whole build."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np

from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.build_terms import BuildTerms, CompiledBuildTerms
from bm25rag.analysis.settings import check_tokens
from bm25rag.columns.column import Column, StringBatch, byte_positions, join, join_none
from bm25rag.common.arrays import Int64, UInt32, as_index
from bm25rag.common.chunks import Growing
from bm25rag.common.gil import others_read, releasing_gil
from bm25rag.common.strings import SEPARATOR, TermList, utf8
from bm25rag.kernels import backend
from bm25rag.kernels.scanner_interface import SEVERAL, STOPPED, Scanned, Scanner, Texts

# How many words are stemmed between pauses, and characters of joined terms numbered at a time.
_STEMMED = 256
_JOINED = 1 << 16
# How many of a callable's tokens, which then are in the processor's cache.
_RETURNED = 1 << 12
_SEPARATOR = SEPARATOR.encode()
# Ends a word in the scanner's pool.
_END = 10
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
        scanner = backend.current().scanner
        self._terms = BuildTerms() if scanner is None else CompiledBuildTerms(scanner)
        # The numbers of the terms of each word that was analysed in Python.
        self._of_word: dict[str, list[int]] = {}
        self._scanner: _Scanner | None = None

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def terms(self) -> Column:
        """The terms so far, in the order of their numbers."""
        return self._terms.column()

    @property
    def scans(self) -> bool:
        """Whether the compiled scanner reads texts."""
        return self._made_scanner() is not None

    def number_terms(self, terms: Sequence[str]) -> UInt32:
        """Return the number of each term, uint32; new ones get the next."""
        return self._terms.number(terms)

    def encode(self, texts: Sequence[str | TermList]) -> tuple[UInt32, UInt32]:
        """Turn texts into the numbers of their terms, as ``reader`` and ``number`` do."""
        return self.number(self.reader(texts, stored=False)())

    def reader(self, texts: Sequence[str | TermList], stored: bool) -> Callable[[], Read]:
        """Return a function that reads some texts; any thread may call it, once."""
        if not all(map(isinstance, texts, repeat(str))):
            return partial(_read, texts, stored)
        if (scanner := self._made_scanner()) is not None:
            return partial(scanner.read, texts, stored)
        if stored and isinstance(self._terms, CompiledBuildTerms):
            return partial(_encode, self._terms.scanner, texts)
        return partial(_read, texts, stored)

    def number(self, read: Read) -> tuple[UInt32, UInt32]:
        """Return the term of every token of texts that were read, and how many each text has.

        Stop words are left out, or ``STOPPED``. What readers return is numbered in the order in
        which these were made.
        """
        if read.scanned is not None and self._scanner is not None:
            tokens, counts = self._scanner.number(read.scanned)
            return self._with_stopwords(read, read.scanned.counts, tokens, counts)
        words = iter(self._analyzed(read.texts))
        batch = _Batch(self._terms)
        for text in read.texts:
            if not isinstance(text, str):
                batch.add(text)
            elif self._analyzer.tokenizer is not None:
                batch.add_returned(self._analyzer.tokenizer(text))
            else:
                numbers = [*chain.from_iterable(map(self._of_word.__getitem__, next(words)))]
                if numbers and set(numbers) == {STOPPED}:
                    numbers = self._terms.number(self._analyzer.terms(text)).tolist()
                batch.add_numbers(numbers)
        return batch.finish()

    def _with_stopwords(
        self, read: Read, words: UInt32, tokens: UInt32, counts: UInt32
    ) -> tuple[UInt32, UInt32]:
        """Add the terms of texts that have only stop words: such texts keep them."""
        if not self._analyzer.stopwords:
            return tokens, counts
        bare = np.flatnonzero((counts == 0) & (words > 0))
        if not len(bare):
            return tokens, counts
        terms = [self._analyzer.terms(str(read.texts[index])) for index in bare.tolist()]
        sizes = [len(own) for own in terms]
        places = np.repeat(np.cumsum(counts, dtype=np.int64)[bare], sizes)
        counts[bare] = np.array(sizes, counts.dtype)
        numbers = self._terms.number([*chain.from_iterable(terms)])
        return np.insert(tokens, places, numbers), counts

    def _made_scanner(self) -> _Scanner | None:
        known = self._analyzer.tokenizer is None and self._analyzer.splitter.least > 0
        if self._scanner is None and known and isinstance(self._terms, CompiledBuildTerms):
            self._scanner = _Scanner(self._analyzer, self._terms)
        return self._scanner

    def _analyzed(self, texts: Sequence[str | TermList]) -> list[list[str]]:
        """Return the words of the texts that are no terms, after analysing new ones."""
        if self._analyzer.tokenizer is not None:
            return []
        plain = [text for text in texts if isinstance(text, str)]
        words = [
            self._analyzer._find_words(text) + self._analyzer.splitter.joined_words(text)
            for text in releasing_gil(plain)
        ]
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


def _encode(scanner: Scanner, texts: Sequence[Any]) -> Read:
    return Read(texts, _strings(scanner.encode(texts)))


def _strings(utf8: Texts) -> StringBatch:
    lengths = np.diff(utf8.ends, prepend=0).astype(np.uint64)
    return StringBatch(utf8.data.data, lengths, bytes(len(lengths)))


def _analyze(
    analyzer: Analyzer, terms: BuildTerms, words: list[str], odd: Int64 | None
) -> tuple[UInt32, Int64]:
    """Return the numbers of the terms of words, and how many each has."""
    analyzed_terms, stopped = list[str](), list[int]()
    sizes = np.ones(len(words), np.int64)
    # Fewer at a time cost more, so they are only where other threads wait for the GIL.
    step = _STEMMED if others_read() else max(len(words), 1)
    for first in releasing_gil(range(0, len(words), step)):
        own = None
        if odd is not None:
            begin, end = np.searchsorted(odd, (first, first + step))
            own = (odd[begin:end] - first).tolist()
        analyzed, several, without = analyzer._analyze_words(words[first : first + step], odd=own)
        stopped += [len(analyzed_terms) + place for place in without]
        analyzed_terms += analyzed
        for number, size in several.items():
            sizes[first + number] = size
    return terms.number_kept(analyzed_terms, stopped), sizes


class _Batch:
    """The terms of some texts, of which many are numbered at a time."""

    def __init__(self, terms: BuildTerms) -> None:
        self._terms = terms
        # Of the latest texts, whose terms have no numbers yet: the joined ones of each, or what a
        # tokenizer returned, and where it ends for each.
        self._joined: list[bytes] = []
        self._size = 0
        self._returned: list[str] = []
        self._ends: list[int] = []
        self._tokens = [np.empty(0, np.uint32)]
        self._counts = array("I")

    def add(self, terms: TermList) -> None:
        """Add the terms of a text."""
        if isinstance(terms, list):
            self.add_numbers(self._terms.number(terms))
            return
        if self._returned:
            self._number()
        self._counts.append(terms.count(_SEPARATOR) + 1 if terms else 0)
        if terms:
            self._joined.append(terms)
            self._size += len(terms)
            if self._size >= _JOINED:
                self._number()

    def add_returned(self, tokens: object) -> None:
        """Add what a tokenizer returned; this or a later call raises as ``check_tokens``."""
        if self._joined:
            self._number()
        start = len(self._returned)
        self._returned += tokens if isinstance(tokens, (list, tuple)) else check_tokens(tokens)
        self._ends.append(len(self._returned))
        self._counts.append(len(self._returned) - start)
        if len(self._returned) >= _RETURNED:
            self._number()

    def add_numbers(self, numbers: UInt32 | list[int]) -> None:
        """Add the terms of a text by their numbers."""
        self._number()
        self._tokens.append(np.array(numbers, np.uint32))
        self._counts.append(len(numbers))

    def _number(self) -> None:
        self._tokens.append(self._terms.number_joined(self._joined))
        self._joined, self._size = [], 0
        try:
            self._tokens.append(self._terms.number(self._returned))
        except TypeError:
            for start, end in pairwise([0, *self._ends]):
                check_tokens(self._returned[start:end])
            raise
        self._returned, self._ends = [], []

    def finish(self) -> tuple[UInt32, UInt32]:
        """Return what ``Encoder.number`` returns."""
        self._number()
        return np.concatenate(self._tokens), np.frombuffer(self._counts, np.uint32)


class _Scanner:
    """Runs the compiled scanner, and keeps the words that it has found and their terms."""

    def __init__(self, analyzer: Analyzer, terms: CompiledBuildTerms) -> None:
        self._analyzer = analyzer
        self._terms = terms
        self._scanner = scanner = terms.scanner
        self._texts = analyzer.splitter.new_text_scanner(scanner, analyzer.splitter.joins_words)
        self._words = scanner.new_words(1 << 10)
        self._analyzed = 0  # bytes of the pool whose words have been analysed
        self._keeps = analyzer.keeps_words
        # The term of each word; see ``Scanner.expand``. The numbers of those of several terms
        # begin at their ``_starts`` in ``_numbers``.
        self._plain = Growing(np.uint32)
        self._numbers, self._starts = Growing(np.uint32), Growing(np.int64)
        self._starts.append(np.zeros(1, np.int64))
        self._knows_stopwords = not analyzer.splitter.splits_all
        if self._knows_stopwords:
            self._add_stopwords()

    def _add_stopwords(self) -> None:
        """Know stop words of ASCII letters and digits: other words are not looked up in them."""
        stopwords = sorted(self._analyzer.stopwords)
        plain = [word for word in stopwords if word.isascii() and word.isalnum()]
        self._words, _ = self._scanner.add_terms(plain, self._words)
        self._plain.append(np.full(len(plain), STOPPED, np.uint32))
        self._analyzed = int(self._words.used[1])

    def read(self, texts: Sequence[Any], stored: bool) -> Read:
        """Find the words of texts; any thread may call this."""
        utf8, scanned = self._texts.scan(texts)
        return Read(texts, _strings(utf8) if stored else join_none(len(texts)), scanned)

    def number(self, scanned: Scanned) -> tuple[UInt32, UInt32]:
        """Return the term numbers of texts that were scanned, as ``Encoder.number`` does."""
        if self._keeps:
            plain, starts, terms = self._terms.number_words(scanned), _NO_STARTS, _NO_TERMS
            return self._scanner.expand(scanned.tokens, scanned.counts, plain, starts, terms)
        self._words, words = self._scanner.add_words(scanned, self._words)
        self._analyze_new()
        plain = self._plain.chunks().take(as_index(words))
        several = np.flatnonzero((plain >= SEVERAL) & (plain != STOPPED))
        # Only the terms of these words, one after another.
        numbers = plain[several].astype(np.int64) - SEVERAL
        begins = self._starts.chunks()[numbers]
        sizes = self._starts.chunks()[numbers + 1] - begins
        plain[several] = np.arange(len(several), dtype=np.uint32) + np.uint32(SEVERAL)
        starts = np.concatenate(([0], np.cumsum(sizes)))
        terms = self._numbers.chunks()[byte_positions(begins, sizes)]
        return self._scanner.expand(scanned.tokens, scanned.counts, plain, starts, terms)

    def _analyze_new(self) -> None:
        end = int(self._words.used[1])
        pool = self._words.pool[self._analyzed : end]
        self._analyzed = end
        new = pool.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
        is_odd = np.zeros(len(new), np.bool_)
        is_odd[
            np.searchsorted(np.flatnonzero(pool == _END), np.flatnonzero(_ODD.take(as_index(pool))))
        ] = True
        odd = np.flatnonzero(is_odd) if self._knows_stopwords else None
        numbers, sizes = _analyze(self._analyzer, self._terms, new, odd)
        is_plain = sizes == 1
        of_plain = np.repeat(is_plain, as_index(sizes))
        several = sizes[~is_plain]
        plain = np.empty(len(new), np.uint32)
        plain[is_plain] = numbers[of_plain]
        first = SEVERAL + len(self._starts) - 1
        plain[~is_plain] = np.arange(first, first + len(several))
        self._plain.append(plain)
        self._starts.append(np.cumsum(several) + len(self._numbers))
        self._numbers.append(numbers[~of_plain])
