"""The parts of a ``Query``, analysed: the terms that each has in the postings, and its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Bool, Int64
from bm25rag.search.queries import RestrictedTerms, Terms, terms_of
from bm25rag.search.query import InField, Part, Query

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
    field
        The field in which it must be; ``None``: any.
    """

    kind: str
    given: Part
    terms: tuple[str, ...]
    words: WordsInText | None
    field: str | None

    @property
    def wanted(self) -> bool:
        """Whether matches must have it."""
        return KINDS[self.kind]


class Restriction(NamedTuple):
    """What matches must have and must not have; see ``Query``.

    Parameters
    ----------
    query
        The query.
    requirements
        Its parts.
    any_of
        Terms of its text, of which matches must have one in its field; empty: they need not.
    """

    query: Query
    requirements: tuple[Requirement, ...]
    any_of: tuple[str, ...]

    @property
    def required(self) -> set[tuple[str, str | None]]:
        """The terms that every match has, each with the field in which it has it."""
        wanted = (one for one in self.requirements if one.wanted)
        return {(term, one.field) for one in wanted for term in one.terms}

    @property
    def fields(self) -> set[str]:
        """The fields that it names."""
        named = {self.query.field, *(one.field for one in self.requirements)}
        return {field for field in named if field is not None}

    @property
    def asks_texts(self) -> bool:
        """Whether texts must be looked at."""
        return any(one.words is not None for one in self.requirements)

    @property
    def demands(self) -> bool:
        """Whether matches must have anything."""
        return any(one.wanted for one in self.requirements)

    def fit(
        self,
        count: int,
        owners: Int64,
        fields: Sequence[str | None],
        find: Callable[[WordsInText], Sequence[bool] | Bool],
    ) -> Bool:
        """Say of some documents whether their texts are as required.

        Parameters
        ----------
        count
            How many documents there are.
        owners, fields
            The document, by its place, and the field of each text.
        find
            Says of each text whether it has some words.
        """
        fit = np.ones(count, np.bool_)
        for one in self.requirements:
            if one.words is not None:
                found = np.asarray(find(one.words), np.bool_)
                if one.field is not None:
                    found = found & np.array([field == one.field for field in fields], np.bool_)
                has = np.zeros(count, np.bool_)
                has[owners[found]] = True
                fit &= has == one.wanted
        return fit


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
        return np.equal(counts, len(self.words))

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
        _requirement(analyzer, kind, part, query.field, f"{name}.{kind}[{number}]")
        for kind in KINDS
        for number, part in enumerate(getattr(query, kind))
    )
    if not requirements and query.field is None:
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
    any_of = () if query.field is None or wanted else tuple(terms)
    terms.restriction, terms.cut = Restriction(query, requirements, any_of), False
    return terms


def _requirement(
    analyzer: Analyzer, kind: str, given: Part, field: str | None, name: str
) -> Requirement:
    in_a_row, part = kind.endswith("phrases"), given
    if isinstance(given, InField):
        field, part = given
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
    return Requirement(kind, given, tuple(dict.fromkeys(terms)), matcher, field)


def _scoring(analyzer: Analyzer, one: Requirement) -> Sequence[str]:
    """Return the terms of a part that score: those that it would have as a text."""
    part = one.given.part if isinstance(one.given, InField) else one.given
    return analyzer.query_terms(part) if isinstance(part, str) else one.terms


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
    for kind, given, own, words, _ in terms.restriction.requirements:
        held = own if words is None else words.words
        is_fixed = KINDS[kind] and not fixed.keys().isdisjoint(held)
        fixed_terms = tuple(fixed.get(term, term) for term in held)
        new = InField(given.field, fixed_terms) if isinstance(given, InField) else fixed_terms
        parts.setdefault(kind, []).append(new if is_fixed else given)
    return terms.restriction.query.replaced(text=weights, **parts)
