"""A text as its words, and what of them is also one word: of "e-mail", "email".

Parts of a ``Query`` compare words so: as they are written, and joined.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from bm25rag.analysis import scripts
from bm25rag.kernels.boundary import LONGEST_WORD

if TYPE_CHECKING:
    from bm25rag.analysis.analyzer import Analyzer
    from bm25rag.analysis.links import Joined

# Words whose terms are remembered: those of parts of queries come again.
_MOST_WORDS = 1 << 14


class Term(NamedTuple):
    """A term of a word, and whether it is that of a stop word."""

    term: str
    is_stopped: bool


class Longer(NamedTuple):
    """What is also one word: those from ``begin`` until ``end``."""

    begin: int
    end: int
    term: Term


class Written(NamedTuple):
    """The words of a text, each by its terms, and what of them is also one word."""

    words: list[tuple[Term, ...]]
    longer: list[Longer]


class WholeWords(NamedTuple):
    """The words of a text, as ``Analyzer.whole_words`` returns them.

    ``longer`` are the begin, the end, and the word of those that are also one.
    """

    words: Sequence[str]
    longer: Sequence[tuple[int, int, str]] = ()

    @classmethod
    def of(cls, as_written: Written) -> WholeWords:
        """Return the words of a text, the terms of each joined."""
        words = ["\0".join(term for term, _ in word) for word in as_written.words]
        return cls(words, [(begin, end, term) for begin, end, (term, _) in as_written.longer])


def written(analyzer: Analyzer, text: str, question: bool = False) -> Written:
    """Return the words of a text; of a question, in which "type 2" is one word, too."""
    words = analyzer._find_words(text)
    each = _terms_of(analyzer, words)
    kept = [terms for terms in each if terms]
    wholes, folded = _wholes(analyzer, text, question)
    if not wholes:
        return Written(kept, [])
    # Of a word that is not found, the place of the one before it does.
    starts = accumulate(word_starts(analyzer, words, folded), max)
    places = [at for at, terms in zip(starts, each, strict=True) if terms]
    longer = []
    joined = _terms_of(analyzer, [whole.word for whole in wholes])
    for whole, terms in zip(wholes, joined, strict=True):
        begin = max(bisect_right(places, whole.start) - 1, 0)
        end = bisect_left(places, whole.end)
        if begin < end and len(terms) == 1:
            longer.append(Longer(begin, end, terms[0]))
    return Written(kept, longer)


def whole_words(analyzer: Analyzer, text: str, wanted: Set[str]) -> WholeWords:
    """Return the words of a document, with those that are joined if any of them is wanted.

    Without, it takes a hundredth of the time.
    """
    if _may_join(analyzer, text):
        joined = [*dict.fromkeys(analyzer.splitter.joined_words(text))]
        terms = (term for own in _terms_of(analyzer, joined) for term, _ in own)
        if not wanted.isdisjoint(terms):
            return WholeWords.of(written(analyzer, text))
    return WholeWords(analyzer.whole_words(text))


def word_starts(analyzer: Analyzer, words: Sequence[str], folded: str) -> Iterator[int]:
    """Yield where each word begins in the folded text that it comes from; -1 if nowhere.

    The lower case of a sigma depends on what follows it, so ``folded`` has but one form of it.
    """
    at = 0
    for word in words:
        first = folded.find(word.replace("ς", "σ"), at) if word else -1
        yield first
        if first >= 0:
            at = first + len(analyzer.splitter.first_of_bigram(word) or word)


def _wholes(analyzer: Analyzer, text: str, question: bool) -> tuple[list[Joined], str]:
    """Return what is also one word, with where it is in the folded text, which comes with it."""
    splitter = analyzer.splitter
    # To tell quickly whether there may be any: of questions, also words beside numbers.
    asks = question and splitter.joins_words and " " in text and scripts.DIGIT.search(text)
    if not (asks or _may_join(analyzer, text)):
        return [], ""
    folded = splitter.fold(text)
    wholes = [*splitter.find_joined(folded)]
    if question:
        wholes += splitter.find_numbered(folded, analyzer.unwanted)
    return wholes, folded.replace("ς", "σ")


def _may_join(analyzer: Analyzer, text: str) -> bool:
    """Tell quickly whether there may be joined words in a document."""
    splitter = analyzer.splitter
    if not splitter.joins_words:
        return False
    return splitter.lost is None or scripts.LINK.search(text) is not None


def _terms_of(analyzer: Analyzer, words: list[str]) -> list[tuple[Term, ...]]:
    """Return the terms of each word."""
    if analyzer.tokenizer is not None:
        return [(Term(word, False),) for word in words]
    known: dict[str, tuple[Term, ...]] = analyzer.written_words
    by_word = {word: known.get(word) for word in words}
    new = [word for word, terms in by_word.items() if terms is None]
    if new:
        tokens, counts = analyzer.splitter.split_words(new)
        stopped = map(analyzer.stopwords.__contains__, tokens)
        terms = map(Term, analyzer.stems(tokens), stopped)
        own = {word: tuple(islice(terms, counts.get(n, 1))) for n, word in enumerate(new)}
        if len(known) > _MOST_WORDS:
            known.clear()
        known.update((word, own[word]) for word in new if len(word) <= LONGEST_WORD)
        by_word |= own
    return [by_word[word] or () for word in words]
