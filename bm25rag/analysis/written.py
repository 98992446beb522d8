"""A text as its words, and what of them is also one word: of "e-mail", "email".

Parts of a ``Query`` compare words so: as they are written, and joined.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence, Set
from itertools import accumulate, chain
from typing import TYPE_CHECKING, NamedTuple, cast

from bm25rag.analysis import scripts

if TYPE_CHECKING:
    from bm25rag.analysis.analyzer import Analyzer
    from bm25rag.analysis.links import Joined

# Words whose terms are remembered: those of parts of queries, and of hits, come again. Longer ones
# are few, and may have many n-grams: those of 100 characters would take 230 MB, these take 75.
_MOST_WORDS, _LONGEST = 1 << 15, 32


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


def word_starts(analyzer: Analyzer, words: Sequence[str], folded: str) -> list[int]:
    """Return where each word begins in the folded text that it comes from; -1 if nowhere.

    The lower case of a sigma depends on what follows it, so ``folded`` has but one form of it.
    """
    if "ς" in "".join(words):
        words = [word.replace("ς", "σ") for word in words]
    starts, at, find = list[int](), 0, folded.find
    overlaps = {} if folded.isascii() else analyzer.splitter.overlaps(words)
    for word in words:
        first = find(word, at) if word else -1
        starts.append(first)
        if first >= 0:
            at = first + (overlaps.get(word) or len(word))
    return starts


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


def _terms_of(analyzer: Analyzer, words: Sequence[str]) -> list[tuple[Term, ...]]:
    """Return the terms of each word."""
    by_word = {
        word: tuple(Term(term, token in analyzer.stopwords) for token, term in pairs_of(own))
        for word, own in tokens_and_terms(analyzer, words).items()
    }
    return [by_word[word] for word in words]


def tokens_and_terms(analyzer: Analyzer, words: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return by word its tokens, each with its term behind it."""
    known: dict[str, tuple[str, ...]] = analyzer.known_tokens
    by_word = dict(zip(words, map(known.get, words), strict=True))
    new = [word for word, own in by_word.items() if own is None]
    if new:
        tokens, counts = analyzer.splitter.split_words(new)
        each = (*chain.from_iterable(zip(tokens, analyzer.stems(tokens), strict=True)),)
        ends = [*accumulate(2 * counts.get(n, 1) for n in range(len(new)))]
        own = dict(zip(new, map(each.__getitem__, map(slice, [0, *ends], ends)), strict=True))
        by_word |= own
        if len(known) > _MOST_WORDS:
            known.clear()
        known.update((word, own[word]) for word in new if len(word) <= _LONGEST)
    return cast("dict[str, tuple[str, ...]]", by_word)


def pairs_of(tokens_and_terms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Return the tokens of a word with their terms, as pairs."""
    return zip(tokens_and_terms[::2], tokens_and_terms[1::2], strict=True)
