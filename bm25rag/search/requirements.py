"""The parts of a ``Query``, analysed: the terms that each has in the postings, and its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Bool
from bm25rag.search.queries import RestrictedTerms, Terms, terms_of
from bm25rag.search.query import Part, Query

if TYPE_CHECKING:
    from bm25rag.analysis.word_scanner import ScannedWords

# The kinds of parts, and which of them matches must have.
KINDS = {"must": True, "phrases": True, "must_not": False, "not_phrases": False}
# The most words in a row that are looked for.
_LONGEST = 1000


class Requirement(NamedTuple):
    """A part of a query, analysed.

    Parameters
    ----------
    kind
        A key of ``KINDS``.
    given
        The part.
    terms
        What a document that has it has in the postings.
    words
        Finds it in the words of a text; ``None``: the terms say all.
    """

    kind: str
    given: Part
    terms: tuple[str, ...]
    words: WordsInText | None

    @property
    def wanted(self) -> bool:
        """Whether matches must have it."""
        return KINDS[self.kind]


class Restriction(NamedTuple):
    """What matches must have and must not have; see ``Query``."""

    query: Query
    requirements: tuple[Requirement, ...]

    @property
    def required(self) -> set[str]:
        """The terms that every match has."""
        return {term for one in self.requirements if one.wanted for term in one.terms}

    @property
    def asks_texts(self) -> bool:
        """Whether texts must be looked at."""
        return any(one.words is not None for one in self.requirements)

    @property
    def demands(self) -> bool:
        """Whether matches must have anything."""
        return any(one.wanted for one in self.requirements)

    def fits(self, words: Sequence[str]) -> bool:
        """Whether the words of a text are as required, as far as terms do not say it."""
        return all(finder.found_in(words) == wanted for finder, wanted in self._finders())

    def fits_each(self, scanned: ScannedWords) -> Bool:
        """Say the same of some texts."""
        fit = np.ones(len(scanned.ends), np.bool_)
        for finder, wanted in self._finders():
            fit &= finder.found_in_each(scanned) == wanted
        return fit

    def _finders(self) -> Iterator[tuple[WordsInText, bool]]:
        for one in self.requirements:
            if one.words is not None:
                yield one.words, one.wanted


class WordsInText:
    """Finds words in those of a text, as ``Analyzer.whole_words`` returns them.

    A word of the text that has several terms, such as a compound or a pair of characters with the
    first of them, is each word whose terms are among them.

    Parameters
    ----------
    words
        The words.
    in_a_row
        Whether they must follow one another.
    """

    def __init__(self, words: Sequence[str], in_a_row: bool) -> None:
        self.words, self.in_a_row = tuple(words), in_a_row
        self._places: dict[str, int] = {}  # the bits of the places that a word has
        for place, word in enumerate(words):
            self._places[word] = self._places.get(word, 0) | 1 << place
        self._terms = [(frozenset(word.split("\0")), bits) for word, bits in self._places.items()]
        self._joined = "\0".join(["", *words, ""])

    def found_in(self, words: Sequence[str]) -> bool:
        """Whether the words of a text have these."""
        joined = "\0".join(["", *words, ""])
        if joined.count("\0") > len(words) + 1:  # some have several terms
            return self._found(words)
        if self.in_a_row:
            return self._joined in joined
        return self._places.keys() <= set(words)

    def found_in_each(self, scanned: ScannedWords) -> Bool:
        """Say whether each of some texts has them."""
        found = np.zeros(len(scanned.ends), np.bool_)
        if self.in_a_row:
            places, words = scanned.places(self.words[0]), scanned.words
            for distance, word in enumerate(self.words[1:], 1):
                places = places[: np.searchsorted(places, len(words) - distance)]
                places = places[scanned.are(words[places + distance], word)]
            texts = scanned.texts_at(places)
            found[texts[texts == scanned.texts_at(places + len(self.words) - 1)]] = True
            return found
        counts = np.zeros(len(found), np.int64)
        for word in self.words:
            counts[np.unique(scanned.texts_at(scanned.places(word)))] += 1
        return counts == len(self.words)

    def _found(self, words: Sequence[str]) -> bool:
        last, matched, seen = 1 << len(self.words) >> 1, 0, 0
        for word in words:
            places = self._places_of(word) if "\0" in word else self._places.get(word, 0)
            # Each bit says that the words up to its place end here: one step for all of them.
            matched, seen = (matched << 1 | 1) & places, seen | places
            if self.in_a_row and matched & last:
                return True
        return not self.in_a_row and seen + 1 == 1 << len(self.words)

    def _places_of(self, word: str) -> int:
        terms, places = frozenset(word.split("\0")), 0
        for own, bits in self._terms:
            if own <= terms:
                places |= bits
        return places


# --- analysis -------------------------------------------------------------------------------------


def analyzed(analyzer: Analyzer, query: Query, name: str) -> Terms:
    """Analyse a query; raise as ``terms_of``."""
    text = terms_of(analyzer, query.text, f"{name}.text")
    requirements = tuple(
        _requirement(analyzer, kind, part, f"{name}.{kind}[{number}]")
        for kind in KINDS
        for number, part in enumerate(getattr(query, kind))
    )
    if not requirements:
        return text
    wanted = [one for one in requirements if one.wanted]
    if isinstance(text, dict):
        terms = RestrictedTerms(text)
        for term in chain.from_iterable(one.terms for one in wanted):
            terms.setdefault(term, 0.0)
    else:
        terms = RestrictedTerms()
        scoring = chain(text, *(_scoring(analyzer, one) for one in wanted))
        for term in scoring:
            terms[term] = terms.get(term, 0.0) + 1.0
    terms.restriction, terms.cut = Restriction(query, requirements), False
    return terms


def _requirement(analyzer: Analyzer, kind: str, part: Part, name: str) -> Requirement:
    in_a_row = kind.endswith("phrases")
    words = analyzer.whole_words(part) if isinstance(part, str) else [*part]
    if in_a_row:
        # Stop words are in no postings, and what has the stem of one may be one.
        stems = chain.from_iterable(word.split("\0") for word in words)
        terms = [stem for stem in stems if stem not in analyzer.stopped_stems]
    else:
        terms = analyzer.terms(part) if isinstance(part, str) else words
    if not words:
        raise ValueError(f"{name}, {part!r:.100}, has no words as the index analyses texts")
    if len(words) > _LONGEST and in_a_row:
        raise ValueError(
            f"{name} has {len(words):,} words, at most {_LONGEST:,} in a row are looked for: "
            "shorten it"
        )
    in_terms = bool(terms) and (not in_a_row or (len(words) == 1 and "\0" not in words[0]))
    looked_for = words if in_a_row else [*dict.fromkeys(words)]
    matcher = None if in_terms else WordsInText(looked_for, in_a_row)
    return Requirement(kind, part, tuple(dict.fromkeys(terms)), matcher)


def _scoring(analyzer: Analyzer, one: Requirement) -> Sequence[str]:
    """Return the terms of a part that score: those that it would have as a text."""
    return analyzer.query_terms(one.given) if isinstance(one.given, str) else one.terms


def corrected(terms: RestrictedTerms, weights: dict[str, float], fixed: dict[str, str]) -> Query:
    """Return a query with other weights, in whose parts terms are replaced.

    Parameters
    ----------
    terms
        The query.
    weights
        What scores.
    fixed
        The replacement of each term; what must not be there stays as it is.
    """
    parts: dict[str, list[Part]] = {}
    for kind, given, own, words in terms.restriction.requirements:
        held = own if words is None else words.words
        is_fixed = KINDS[kind] and not fixed.keys().isdisjoint(held)
        new = tuple(fixed.get(term, term) for term in held)
        parts.setdefault(kind, []).append(new if is_fixed else given)
    return terms.restriction.query.replaced(text=weights, **parts)
