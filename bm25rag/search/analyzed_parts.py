"""The parts of a ``Query``, analysed: the terms that each has in the postings, and its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias, cast

from bm25rag.analysis import Analyzer
from bm25rag.analysis.written import Term, WholeWords, Written, written
from bm25rag.search.phrases import WordsInText
from bm25rag.search.plain_terms import RestrictedTerms, Terms, check_weights, plain_terms
from bm25rag.search.query import InField, Part, Query

# Terms of which a document has one: that of a word, and those of what is also one word with it.
Clause: TypeAlias = tuple[str, ...]

# The kinds of parts, and which of them matches must have.
KINDS = {"must": True, "phrases": True, "must_not": False, "not_phrases": False}
# Any field but the context, where a field is named.
QUOTED = ""
# The most words in a row that are looked for.
_LONGEST = 1000


class Requirement(NamedTuple):
    """A part of a query, analysed: its kind, a key of ``KINDS``, the part as given, and its terms.

    A document that has the part has a term of each of the ``clauses`` in the postings. ``words``
    finds the part in the words of a text; it is ``None`` where the terms say all. ``field`` is
    where it must be.
    """

    kind: str
    given: Part
    terms: tuple[str, ...]
    clauses: tuple[Clause, ...]
    words: WordsInText | None
    field: str | None

    @property
    def searched(self) -> str | None:
        """The field of its terms; ``QUOTED`` for a phrase, which no context has."""
        return QUOTED if self.field is None and self.kind.endswith("phrases") else self.field

    @property
    def wanted(self) -> bool:
        """Whether matches must have it."""
        return KINDS[self.kind]


class Restriction(NamedTuple):
    """What matches must have and must not have, a requirement for each part; see ``Query``.

    ``any_of`` are terms of its text, of which matches must have one in its field; empty: they need
    not.
    """

    query: Query
    requirements: tuple[Requirement, ...]
    any_of: tuple[str, ...]

    @property
    def required(self) -> set[tuple[Clause, str | None]]:
        """The terms of which every match has one, with the field in which it has it."""
        wanted = (one for one in self.requirements if one.wanted)
        return {(clause, one.searched) for one in wanted for clause in one.clauses}

    @property
    def spellings(self) -> frozenset[str]:
        """The single words that words of a text may also be, where texts must be looked at."""
        each = (one.words.spellings for one in self.requirements if one.words is not None)
        return frozenset(chain.from_iterable(each))

    @property
    def looked_in(self) -> set[str | None]:
        """The fields in whose texts words are looked for; ``None``: in all."""
        return {one.field for one in self.requirements if one.words is not None}

    @property
    def demands(self) -> bool:
        """Whether matches must have anything."""
        return any(one.wanted for one in self.requirements)


# --- analysis -------------------------------------------------------------------------------------


def analyzed(analyzer: Analyzer, query: Query, name: str) -> Terms:
    """Analyse a query; raise as ``terms_of``."""
    text = plain_terms(analyzer, query.text, f"{name}.text")
    requirements = tuple(
        _requirement(analyzer, kind, part, query.field, f"{name}.{kind}[{number}]")
        for kind in KINDS
        for number, part in enumerate(getattr(query, kind))
    )
    if not (requirements or query.also) and query.field is None:
        return text
    wanted = [one for one in requirements if one.wanted]
    terms = RestrictedTerms(text if isinstance(text, dict) else ())
    if isinstance(query.text, Mapping):
        clauses = (clause for one in wanted for clause in one.clauses)
        for term in chain.from_iterable(clauses):
            terms.setdefault(term, 0.0)
    else:
        unweighted = () if isinstance(text, dict) else text
        _add(terms, [*chain(unweighted, *(_scoring(analyzer, one) for one in wanted))], 1.0)
    others = [plain_terms(analyzer, one, f"{name}.also") for one in query.also]
    for own, weight in zip(others, query.also.values(), strict=True):
        _add(terms, own, weight)
    if others:
        check_weights(terms, name)
    if not requirements and query.field is None:
        return dict(terms)
    any_of = () if query.field is None or wanted else tuple(terms)
    terms.restriction, terms.cut = Restriction(query, requirements, any_of), False
    return terms


def _add(weights: dict[str, float], terms: Terms, weight: float) -> None:
    """Add the terms of a question to those of others: the count of each, times a weight."""
    for term, count in Counter(terms).items():
        weights[term] = weights.get(term, 0.0) + weight * count


def _requirement(
    analyzer: Analyzer, kind: str, given: Part, field: str | None, name: str
) -> Requirement:
    in_a_row, part = kind.endswith("phrases"), given
    if isinstance(given, InField):
        field, part = given
    if isinstance(part, str):
        as_written = written(analyzer, part, question=True)
        if isinstance(part, _Corrected):
            as_written = part.corrected(as_written)
    else:
        terms = cast("Sequence[str]", part)
        as_written = Written([_given_word(word, in_a_row) for word in terms], [])
    if not as_written.words:
        raise ValueError(f"{name}, {part!r:.100}, has no words as the index analyses texts")
    if len(as_written.words) > _LONGEST and in_a_row:
        raise ValueError(
            f"{name} has {len(as_written.words):,} words, at most {_LONGEST:,} in a row are looked "
            "for: shorten it"
        )
    clauses = _clauses(analyzer, as_written, in_a_row)
    if isinstance(part, str) and analyzer.stopped_stems.issuperset(chain.from_iterable(clauses)):
        clauses = []  # texts of nothing but stop words keep them, and others do not
    if isinstance(part, str):
        clauses = [tuple(_in_index(analyzer, [*clause])) for clause in clauses]
    whole = WholeWords.of(as_written)
    if not in_a_row:
        whole = WholeWords([*dict.fromkeys(whole.words)])
    in_terms = bool(clauses)
    if in_a_row:
        in_terms &= len(whole.words) == 1 and not whole.longer and "\0" not in whole.words[0]
    matcher = None if in_terms else WordsInText(whole, in_a_row)
    own = dict.fromkeys(clause[0] for clause in clauses)
    return Requirement(kind, given, tuple(own), tuple(clauses), matcher, field)


class _Corrected(str):
    """A part with joined words of which misspelt terms are replaced when it is analysed."""

    fixed: dict[str, str]

    @classmethod
    def of(cls, part: str, fixed: dict[str, str]) -> _Corrected:
        """Return a part with the replacement of each term."""
        made = cls(part)
        made.fixed = fixed
        return made

    def corrected(self, as_written: Written) -> Written:
        """Return words with their terms replaced."""

        def fix(one: Term) -> Term:
            return one._replace(term=self.fixed.get(one.term, one.term))

        words = [tuple(map(fix, word)) for word in as_written.words]
        return Written(words, [one._replace(term=fix(one.term)) for one in as_written.longer])


def _given_word(word: str, in_a_row: bool) -> tuple[Term, ...]:
    """Return the terms of a word in a list: of phrases, a word may have several."""
    return tuple(Term(term, False) for term in (word.split("\0") if in_a_row else [word]))


def _clauses(analyzer: Analyzer, as_written: Written, in_a_row: bool) -> list[Clause]:
    """Return clauses: documents with some words have a term of each clause in the postings.

    A word is there by itself, or in what is also one word with others: "e-mail" by "e" and "mail",
    or by "email". Stop words are in no postings, and what has the stem of one may be one.
    """
    longer: list[list[str]] = [[] for _ in as_written.words]
    for begin, end, (term, is_stopped) in as_written.longer:
        if in_a_row or not is_stopped:
            for own in longer[begin:end]:
                own.append(term)
    clauses: dict[Clause, None] = {}
    for word, others in zip(as_written.words, longer, strict=True):
        for term, is_stopped in word:
            own = [term] if in_a_row or not is_stopped else []
            clause = tuple(dict.fromkeys([*own, *others]))
            if clause and not (in_a_row and analyzer.stopped_stems.intersection(clause)):
                clauses[clause] = None
    return [*clauses]


def _scoring(analyzer: Analyzer, one: Requirement) -> Sequence[str]:
    """Return the terms of a part that score: those that it would have as a text."""
    part = one.given.part if isinstance(one.given, InField) else one.given
    if isinstance(part, str):
        return _in_index(analyzer, analyzer.query_terms(part))
    in_a_row = one.kind.endswith("phrases")
    given = chain.from_iterable(_given_word(word, in_a_row) for word in part)
    return [term for term, _ in given if term in one.terms]  # as often as it occurs


def _in_index(analyzer: Analyzer, terms: list[str]) -> list[str]:
    """Return terms of the first analysis as they are in the index."""
    if not analyzer.also:
        return terms
    from bm25rag.analysis.spaces import spaced  # few indexes have several

    return [spaced(0, term) for term in terms]


def corrected(terms: RestrictedTerms, weights: dict[str, float], fixed: dict[str, str]) -> Query:
    """Return a query with other weights, in whose parts terms are replaced.

    What must not be there stays as it is.
    """
    parts: dict[str, list[Part]] = {}
    for kind, given, own, clauses, words, _ in terms.restriction.requirements:
        held = own if words is None else words.words
        part = given.part if isinstance(given, InField) else given
        new: Part = given
        if KINDS[kind] and not fixed.keys().isdisjoint({*held, *chain.from_iterable(clauses)}):
            new = tuple(fixed.get(term, term) for term in held)
            # No list of terms says what is also one word.
            joins = words.joins if words is not None else any(len(one) > 1 for one in clauses)
            if joins and isinstance(part, str):
                new = _Corrected.of(part, fixed)
            new = InField(given.field, new) if isinstance(given, InField) else new
        parts.setdefault(kind, []).append(new)
    return terms.restriction.query.replaced(text=weights, also=(), **parts)
