"""BM25 by the book, slowly: the yardstick for every other implementation here.

Pure Python over lists of terms; NumPy gives the float32 scalar and nothing else.
It imports nothing of the library, and every formula below was written down from
its paper and the definition of the score, not from the library's code:

* idf and f are computed in float64 and rounded once to float32;
* a posting's part is the float32 product of the two;
* parts are summed in float64 over the distinct query terms, in order of first
  occurrence, each times its multiplicity, or its weight where the query is a
  mapping of terms to weights; then the shift is added.

With fields, a document has a list of terms for each; tf and |d| are sums over the fields of weight
times count and weight times length, in the order of the fields, and so is the sum of all lengths,
of whole numbers by field. A field of weight 0 is as if it were empty.

With further analyses, a document is a text, and each analysis has its own list of terms, document
frequencies and lengths; the parts of their terms follow, each times the weight of the analysis, and
a term of a further one is written with the character of its number before it.

``real_scores`` is the same family without any rounding to float32, over every
query term as it comes, absent terms included: the formula as a paper prints it.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

VARIANTS = ("lucene", "robertson", "atire", "bm25l", "bm25+", "tfldp", "tfidf")
DEFAULT_DELTA = {"bm25l": 0.5, "bm25+": 1.0, "tfldp": 1.0}
SHIFTED = tuple(DEFAULT_DELTA)

Accept = Callable[[str, dict[str, Any]], bool]
Query = Sequence[str] | Mapping[str, float]
Terms = Any  # a list of strings, or a dict of fields and such lists; or a text


def times(query: Query, term: str) -> float:
    """How much a term counts in a query that has it."""
    return float(query[term]) if isinstance(query, Mapping) else query.count(term)


def idf(variant: str, documents: int, df: int) -> float:
    """Inverse document frequency in float64."""
    if variant == "lucene":
        return math.log(1 + (documents - df + 0.5) / (df + 0.5))
    if variant == "robertson":
        return max(0.0, math.log((documents - df + 0.5) / (df + 0.5)))
    if variant == "bm25l":
        return math.log((documents + 1) / (df + 0.5))
    if variant in ("bm25+", "tfldp"):
        return math.log((documents + 1) / df)
    assert variant in ("atire", "tfidf"), variant
    return math.log(documents / df)


def fraction(above: float, below: float) -> float:
    """Quotient in which 0/0, the frequency part of an absent term, is 0."""
    return 0.0 if above == 0 else above / below


def frequency(
    variant: str, tf: float, length: float, average: float, k1: float, b: float, delta: float
) -> float:
    """Term-frequency part f(tf, length) in float64, tf > 0."""
    if variant == "tfidf":
        return tf / length
    norm = 1 - b + b * length / average
    if variant in ("lucene", "robertson"):
        return tf / (tf + k1 * norm)
    if variant == "atire":
        return (k1 + 1) * tf / (tf + k1 * norm)
    if variant == "bm25+":
        return (k1 + 1) * tf / (tf + k1 * norm) + delta
    c = tf / norm
    if variant == "bm25l":
        return (k1 + 1) * (c + delta) / (k1 + c + delta)
    assert variant == "tfldp", variant
    return 1 + math.log(1 + math.log(c + delta))


def absence(variant: str, k1: float, delta: float) -> float:
    """Return f(0), the same for every length; 0 where the formula has 0/0."""
    if variant == "bm25l":
        return (k1 + 1) * delta / (k1 + delta) if k1 + delta > 0 else 0.0
    if variant == "bm25+":
        return delta if k1 > 0 else 0.0
    if variant == "tfldp":
        return 1 + math.log(1 + math.log(delta))
    return 0.0


@dataclass(frozen=True)
class Parts:
    """A query with parts, each a list of words, stop words among them."""

    text: Query = ()
    must: Sequence[Sequence[str]] = ()
    must_not: Sequence[Sequence[str]] = ()
    phrases: Sequence[Sequence[str]] = ()
    not_phrases: Sequence[Sequence[str]] = ()
    # Other wordings, with their weights.
    also: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    field: str | None = None


def in_space(analysis: int, term: str) -> str:
    """Return a term of one of several analyses as an index has it."""
    return chr(analysis or 8) + term if analysis or "\1" <= term[:1] <= "\10" else term


@dataclass(frozen=True)
class Spelt:
    """The words of a text, and those that are also one word: where they begin and end, and it."""

    words: list[str]
    longer: list[tuple[int, int, str]]

    def steps(self, place: int) -> list[tuple[int, str]]:
        """Return the words that begin at a place, and where they end."""
        longer = [(end, word) for begin, end, word in self.longer if begin == place]
        return [*((place + 1, word) for word in self.words[place : place + 1]), *longer]

    def covering(self, place: int) -> list[str]:
        """Return what is also one word with that at a place."""
        return [word for begin, end, word in self.longer if begin <= place < end]

    def has_row(self, phrase: Spelt) -> bool:
        """Whether the words of a phrase are here in a row, by themselves or as one."""

        def goes_on(place: int, at: int) -> bool:
            return at == len(phrase.words) or any(
                word == other and goes_on(end, behind)
                for end, word in self.steps(place)
                for behind, other in phrase.steps(at)
            )

        return any(goes_on(place, 0) for place in range(len(self.words)))


@dataclass(frozen=True)
class ReferenceHit:
    """A result: the position of the document, its id and its score."""

    row: int
    id: str
    score: float


@dataclass
class Reference:
    """An index that keeps lists of terms and recomputes everything every time."""

    variant: str = "lucene"
    k1: float = 1.2
    b: float = 0.75
    delta: float | None = None
    delta_on: str = "all"
    fields: dict[str, float] | None = None
    # What makes the terms of a text by each analysis, with its weight; documents are then texts.
    analyses: Sequence[tuple[Callable[[str], list[str]], float]] = ()
    documents: dict[str, Terms] = field(default_factory=dict)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    counter: int = 0
    # Words that documents keep, and that are no terms but of texts of nothing else.
    stopped: frozenset[str] = frozenset()
    # Whether "a-b" is "a" and "b", and also "ab", and in questions "a" before "2" also "a2".
    joins: bool = False
    whole: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    # -- writing ---------------------------------------------------------------

    def add(
        self,
        texts: Sequence[Terms],
        ids: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        on_duplicate: str = "error",
    ) -> list[str]:
        """Add documents one by one; return the ids written, in document order."""
        names = self._names(len(texts)) if ids is None else list(ids)
        if on_duplicate == "error" and (
            len(set(names)) < len(names) or self.documents.keys() & set(names)
        ):
            raise ValueError("duplicate id")
        written: dict[str, None] = {}
        for place, name in enumerate(names):
            if name in self.documents:
                if on_duplicate == "skip":
                    continue
                self.delete([name])
                written.pop(name, None)
            if self.analyses:
                self.documents[name], self.whole[name] = texts[place], {}
            else:
                self.whole[name] = copy.deepcopy(self.by_field(texts[place]))
                kept = {field_: self.terms(own) for field_, own in self.whole[name].items()}
                self.documents[name] = kept if isinstance(texts[place], dict) else kept["text"]
            self.metadata[name] = dict(metadata[place]) if metadata is not None else {}
            written[name] = None
        return list(written)

    def _names(self, count: int) -> list[str]:
        """Yield decimal numbers that were never assigned before and are not in use."""
        names: list[str] = []
        while len(names) < count:
            name, self.counter = str(self.counter), self.counter + 1
            if name not in self.documents:
                names.append(name)
        return names

    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete documents; return the ids of those that there were."""
        found = [name for name in dict.fromkeys(ids) if name in self.documents]
        for name in found:
            del self.documents[name], self.whole[name]
            self.metadata.pop(name, None)
        return found

    def update_metadata(
        self, ids: Sequence[str], metadata: Sequence[Mapping[str, Any]]
    ) -> list[str]:
        """Replace whole dicts; documents keep their position."""
        found = [
            (name, values)
            for name, values in zip(ids, metadata, strict=True)
            if name in self.documents
        ]
        for name, values in found:
            self.metadata[name] = dict(values)
        return [name for name, _ in found]

    def views(self) -> list[Reference]:
        """Return an index for each analysis."""
        each = []
        for analyse, _ in self.analyses:
            documents = {name: analyse(str(text)) for name, text in self.documents.items()}
            each.append(dataclasses.replace(self, analyses=(), documents=documents))
        return each

    def asked(self, query: Query) -> list[tuple[Reference, Query, float]]:
        """Return the index of each analysis that counts, the terms of a query, and the weight."""
        if not self.analyses:
            return [(self, query, 1.0)]
        pairs = zip(self.views(), self.analyses, strict=True)
        each = [(view, analyse(str(query)), weight) for view, (analyse, weight) in pairs]
        return [one for one in each if one[2]]

    def tune(self, **parameters: Any) -> Reference:
        """Copy under other parameters; delta=None is the variant's default."""
        view = copy.deepcopy(self)
        for name, value in parameters.items():
            setattr(view, name, value)
        return view

    # -- parts -----------------------------------------------------------------

    def kept(self, words: Sequence[str]) -> list[str]:
        """Return words without stop words."""
        return [word for word in words if word not in self.stopped]

    def spelt(self, words: Sequence[str], question: bool = False) -> Spelt:
        """Return the words of a text, of which some are also one."""
        if not self.joins:
            return Spelt([*words], [])
        split = [word.split("-") for word in words]
        begins = [sum(map(len, split[:place])) for place in range(len(split))]
        linked = [(at, one) for at, one in zip(begins, split, strict=True) if len(one) == 2]
        longer = [(begin, begin + 2, "".join(one)) for begin, one in linked]
        for place, pair in enumerate(pairwise(words)):
            is_one = re.fullmatch(r"[a-z]+ \d+|\d+ [a-z]{1,3}", " ".join(pair))
            if question and is_one and self.stopped.isdisjoint(pair):
                longer.append((begins[place], begins[place] + 2, "".join(pair)))
        return Spelt([word for one in split for word in one], longer)

    def terms(self, words: Sequence[str], question: bool = False) -> list[str]:
        """Return the terms of a text: its words without stop words, unless it has no others."""
        spelt = self.spelt(words, question)
        own, longer = spelt.words, self.kept([word for _, _, word in spelt.longer])
        if question:
            return (self.kept(own) or own) + longer
        return self.kept(own) + longer or own

    def clauses(self, part: Sequence[str], in_a_row: bool = False) -> list[list[str]]:
        """Return, of each word of a part that is no stop word, the terms of which one is needed."""
        spelt = self.spelt(part, question=True)
        each = [[word, *spelt.covering(place)] for place, word in enumerate(spelt.words)]
        if in_a_row:
            each = [own for own in each if self.kept(own) == own]
        return [kept for own in each if (kept := self.kept(own))]

    def scoring(self, query: Query | Parts) -> Query:
        """Return what scores."""
        if not isinstance(query, Parts):
            return query
        demanded = (*query.must, *query.phrases)
        scoring: Query
        if isinstance(query.text, Mapping):
            clauses = [own for part in query.must for own in self.clauses(part)]
            clauses += [own for part in query.phrases for own in self.clauses(part, in_a_row=True)]
            unscored = {term: 0.0 for own in clauses for term in own}
            scoring = {**query.text, **{t: 0.0 for t in unscored if t not in query.text}}
        else:
            scoring = [term for part in (query.text, *demanded) for term in self.terms(part, True)]
        if not query.also:
            return scoring
        total = {term: times(scoring, term) for term in scoring}
        for words, weight in query.also.items():
            own = self.terms(words, question=True)
            for term in dict.fromkeys(own):
                total[term] = total.get(term, 0.0) + weight * own.count(term)
        return total

    def texts(self, name: str, field_: str | None) -> list[list[str]]:
        """Return the words of each field of a document that matches, or of one field."""
        weights = {"text": 1.0} if self.fields is None else self.fields
        texts = self.whole[name].items()
        return [own for one, own in texts if weights[one] and field_ in (None, one)]

    def quoted(self, name: str, field_: str | None) -> list[list[str]]:
        """Return the same without the context, in which no words are looked for."""
        return [
            own
            for one in self.whole[name]
            if one != "context" and field_ in (None, one)
            for own in self.texts(name, one)
        ]

    def has(self, name: str, part: Sequence[str], field_: str | None) -> bool:
        """Whether a document has all words of a part, or all stop words if it has no others."""
        texts = self.texts(name, field_)
        if clauses := self.clauses(part):
            held = {term for text in texts for term in self.terms(text)}
            return not any(held.isdisjoint(own) for own in clauses)
        own = self.spelt(part).words
        return any(set(own) <= {*self.spelt(text).words} for text in self.quoted(name, field_))

    def has_row(self, name: str, part: Sequence[str], field_: str | None) -> bool:
        """Whether a document has the words of a phrase in a row."""
        phrase = self.spelt(part, question=True)
        return any(self.spelt(text).has_row(phrase) for text in self.quoted(name, field_))

    def matched(self, name: str, query: Query | Parts) -> bool:
        """Whether a document matches."""
        if self.analyses:
            return any(view.matched(name, terms) for view, terms, _ in self.asked(query))
        touched = not self.words(self.documents[name]).isdisjoint(self.scoring(query))
        if not isinstance(query, Parts):
            return touched
        one, texts = query.field, self.texts(name, query.field)
        demands = bool(query.must or query.phrases)
        if one is not None:
            scoring = set(self.scoring(query))
            touched = any(not scoring.isdisjoint(self.terms(text)) for text in texts)
        return (
            (touched or demands)
            and all(self.has(name, part, one) for part in query.must)
            and not any(self.has(name, part, one) for part in query.must_not)
            and all(self.has_row(name, part, one) for part in query.phrases)
            and not any(self.has_row(name, part, one) for part in query.not_phrases)
        )

    # -- statistics ------------------------------------------------------------

    @property
    def ids(self) -> list[str]:
        """Return the live ids in document order."""
        return list(self.documents)

    @property
    def average(self) -> float:
        """Return the mean length in terms, one float64 division; 0 without documents."""
        totals: dict[str, int] = {}
        for terms in self.documents.values():
            for name, own in self.by_field(terms).items():
                totals[name] = totals.get(name, 0) + len(own)
        total = self.weigh(totals)
        return total / len(self.documents) if self.documents else 0.0

    def by_field(self, terms: Terms) -> dict[str, list[str]]:
        """Return the terms of a document by field."""
        return terms if isinstance(terms, dict) else {"text": terms}

    def weigh(self, counts: Mapping[str, int]) -> float:
        """Sum counts times the weights of their fields."""
        if self.fields is None:
            return counts.get("text", 0)
        total = 0.0
        for name, weight in self.fields.items():
            total += weight * counts.get(name, 0)
        return total

    def tf(self, terms: Terms, term: str) -> float:
        """Return how often a document contains a term."""
        return self.weigh({name: own.count(term) for name, own in self.by_field(terms).items()})

    def counts(self, terms: Terms, term: str) -> dict[str, int] | None:
        """Return how often each field has a term, if the term matches."""
        if self.fields is None:
            return None
        own, found = self.by_field(terms), term in self.words(terms)
        return {name: own.get(name, []).count(term) * found for name in self.fields}

    def length(self, terms: Terms) -> float:
        """Return how long a document is."""
        return self.weigh({name: len(own) for name, own in self.by_field(terms).items()})

    def words(self, terms: Terms) -> set[str]:
        """Return the terms of a document that match."""
        weights = {"text": 1.0} if self.fields is None else self.fields
        fields = self.by_field(terms).items()
        return {term for name, own in fields if weights[name] for term in own}

    def df(self, term: str) -> int:
        """Return how many live documents contain a term."""
        return sum(term in self.words(terms) for terms in self.documents.values())

    def vocabulary(self) -> dict[str, int]:
        """Return every live term by code point, with its document frequency."""
        if self.analyses:
            found = {
                in_space(number, term): df
                for number, view in enumerate(self.views())
                for term, df in view.vocabulary().items()
            }
            return dict(sorted(found.items()))
        terms = sorted({term for terms in self.documents.values() for term in self.words(terms)})
        return {term: self.df(term) for term in terms}

    # -- scoring ---------------------------------------------------------------

    @property
    def effective_delta(self) -> float:
        """Return the delta in force, 0 if the variant has none."""
        return DEFAULT_DELTA.get(self.variant, 0.0) if self.delta is None else self.delta

    def f(self, tf: float, length: float, average: float) -> float:
        """Compute f under this index's parameters."""
        delta = self.effective_delta
        return frequency(self.variant, tf, length, average, self.k1, self.b, delta)

    def absent(self) -> float:
        """Return f(0) where the sum runs over all query terms; nothing where over matched ones."""
        if self.delta_on == "matched":
            return 0.0
        return absence(self.variant, self.k1, self.effective_delta)

    def weights(self, query: Query) -> list[tuple[str, float, np.float32]]:
        """Distinct known query terms in order of occurrence: (term, multiplicity, idf)."""
        size = len(self.documents)
        found = [(term, self.df(term)) for term in dict.fromkeys(query)]
        return [
            (term, times(query, term), np.float32(idf(self.variant, size, df)))
            for term, df in found
            if df
        ]

    def shift(self, query: Query) -> float:
        """Return the score of a document without any query term."""
        total = 0.0
        for _, many, weight in self.weights(query):
            total += many * float(weight * np.float32(self.absent()))
        return total

    def part(self, weight: np.float32, terms: Terms, term: str, average: float) -> np.float32:
        """float32 product of idf and f - f(0) of one posting."""
        f = self.f(self.tf(terms, term), self.length(terms), average) - self.absent()
        return np.float32(weight * np.float32(f))

    def scores(self, query: Query | Parts) -> list[float]:
        """Score of every living document, by definition."""
        totals, shift = dict.fromkeys(self.documents, 0.0), 0.0
        for view, asked, factor in self.asked(self.scoring(query)):
            weights, average = view.weights(asked), view.average
            for name, terms in view.documents.items():
                for term, many, weight in weights:
                    if term in view.words(terms):
                        part = view.part(weight, terms, term, average)
                        totals[name] += factor * many * float(part)
            for _, many, weight in weights:
                shift += factor * many * float(weight * np.float32(view.absent()))
        return [total + shift for total in totals.values()]

    def real_scores(self, query: Query) -> list[float]:
        """Score of every living document in plain float64, straight from the formula."""
        size, absent, average = len(self.documents), self.absent(), self.average
        one = query if isinstance(query, Mapping) else dict.fromkeys(query, 1.0)
        known = [
            (term, one[term] * idf(self.variant, size, self.df(term)))
            for term in query
            if self.df(term)
        ]
        return [
            math.fsum(
                weight
                * (
                    self.f(self.tf(terms, term), self.length(terms), average)
                    if term in self.words(terms)
                    else absent
                )
                for term, weight in known
            )
            for terms in self.documents.values()
        ]

    def matches(self, query: Query | Parts, accept: Accept | None = None) -> list[ReferenceHit]:
        """Every match, best first, ties in document order."""
        hits = [
            ReferenceHit(row, name, score)
            for row, (name, score) in enumerate(
                zip(self.documents, self.scores(query), strict=True)
            )
            if self.matched(name, query) and (accept is None or accept(name, self.metadata[name]))
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.row))

    def search(
        self,
        query: Query | Parts,
        k: int = 10,
        accept: Accept | None = None,
        min_score: float | None = None,
        *,
        offset: int = 0,
        multiplier: Callable[[dict[str, Any]], float] | None = None,
        group: Callable[[dict[str, Any]], Any] | None = None,
        per_group: int = 1,
    ) -> list[ReferenceHit]:
        """Best k matches, or those of the best k groups, whose score is not below the minimum."""
        shape: Any = {"multiplier": multiplier, "group": group}
        page = self.groups(query, accept, min_score, **shape)[offset : offset + k]
        best = [hit for members in page for hit in members[:per_group]]
        return sorted(best, key=lambda hit: (-hit.score, hit.row))

    def groups(
        self,
        query: Query | Parts,
        accept: Accept | None = None,
        min_score: float | None = None,
        *,
        multiplier: Callable[[dict[str, Any]], float] | None = None,
        group: Callable[[dict[str, Any]], Any] | None = None,
    ) -> list[list[ReferenceHit]]:
        """All matches by group, best first; each alone where there are no groups."""
        hits = self.matches(query, accept)
        if multiplier is not None:
            hits = [self._lowered(hit, multiplier(self.metadata[hit.id])) for hit in hits]
            hits.sort(key=lambda hit: (-hit.score, hit.row))
        if min_score is not None:
            hits = [hit for hit in hits if hit.score >= min_score]
        groups: dict[Any, list[ReferenceHit]] = {}
        for hit in hits:
            key = None if group is None else group(self.metadata[hit.id])
            groups.setdefault(("alone", hit.id) if key is None else key, []).append(hit)
        return [*groups.values()]

    def _lowered(self, hit: ReferenceHit, by: float) -> ReferenceHit:
        score = hit.score * by if hit.score >= 0 else hit.score / by
        return ReferenceHit(hit.row, hit.id, score)

    def explain(self, query: Query, name: str) -> dict[str, float]:
        """Contribution of each known query term to a document's score, by term."""
        terms, average = self.documents[name], self.average
        return {
            term: many * float(self.part(weight, terms, term, average))
            if term in self.words(terms)
            else 0.0
            for term, many, weight in self.weights(query)
        }
