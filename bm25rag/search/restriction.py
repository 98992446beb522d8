"""What the parts of a ``Query`` restrict its matches to, and the search within that.

Which documents have all terms of the parts is looked up in the postings, rarest term first. Whether
words are in a row, or stop words there at all, the stored texts say: documents are asked best
first, until enough have passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from time import monotonic
from typing import TypeAlias

import numpy as np

from bm25rag.analysis.word_scanner import borrow, give_back
from bm25rag.common.arrays import Bool, Int64, UInt16
from bm25rag.common.caller import warn
from bm25rag.errors import IncompleteWarning
from bm25rag.filters import CallableFilter, Filter, split
from bm25rag.kernels.records import Allowed
from bm25rag.scoring.variants import Parameters
from bm25rag.search import ranking
from bm25rag.search.explain import PartExplanation
from bm25rag.search.finding import Wanted
from bm25rag.search.queries import RestrictedTerms, Terms
from bm25rag.search.query import OVER, InField, Part
from bm25rag.search.requirements import Requirement, Restriction
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.postings import Postings

# How many documents are ranked at first where texts are looked at, and how many times more if too
# few of them pass.
_FIRST, _GROWTH = 64, 4
# How many texts are looked at together at first, then twice as many each time, up to so many, and
# of how many characters.
_TOGETHER, _MOST_TOGETHER, _CHARACTERS = 16, 256, 1 << 20
# With so many times more postings than documents left, these are looked up one by one.
_RARE = 16


# --- searching ------------------------------------------------------------------------------------


def find_restricted(
    snapshot: Snapshot, terms: Terms, wanted: Wanted, asked: RestrictedTerms, whole: Snapshot
) -> tuple[list[int], list[float]]:
    """Find the best matches of a query among the documents that another restricts it to.

    Parameters
    ----------
    snapshot
        Where to search.
    terms
        The query.
    wanted
        Which matches.
    asked
        The query that restricts; is told if its time was over.
    whole
        The same documents, with the postings of their texts.

    Raises
    ------
    ValueError
        If a text that must be looked at is not stored.
    """
    restriction, depth, shaping = asked.restriction, wanted.depth, wanted.shaping
    within = _Within(whole, restriction, wanted.filter)
    needs_terms = snapshot is not whole or bool(restriction.required) or not restriction.demands
    if not min(depth, snapshot.count) or (needs_terms and not within.asks and shaping is None):
        rows, scores = ranking.rank_one(snapshot, terms, depth, within.masks, wanted.min_score)
        return rows[wanted.offset :], scores[wanted.offset :]
    page = snapshot, terms, within.masks, wanted.min_score
    ranked = _best_first(*page, max(depth, _FIRST)) if needs_terms else _all_by_score(*page)
    rows, scores = [], []
    enough = depth if shaping is None else shaping.first(depth)
    floor = -np.inf if wanted.min_score is None else wanted.min_score
    timeout = restriction.query.timeout
    end = None if timeout is None else monotonic() + timeout
    for row, score, fits in within.looked_at(ranked, max(depth, _TOGETHER)):
        if fits and within.is_asked(*whole.locate(row)):
            rows.append(row)
            scores.append(score)
            if len(rows) == enough:
                if shaping is None:
                    break
                shaped = shaping.shape(rows, scores, False, wanted.k, wanted.offset, floor)
                if shaped is not None:
                    return shaped
                enough *= _GROWTH
        if end is not None and monotonic() > end:
            asked.cut = True
            warn(OVER, IncompleteWarning)
            break
    if shaping is not None:
        shaped = shaping.shape(rows, scores, True, wanted.k, wanted.offset, floor)
        assert shaped is not None  # there are no others
        return shaped
    return rows[wanted.offset :], scores[wanted.offset :]


_Texts: TypeAlias = list[tuple[str | None, str]]


class _Within:
    """The documents that a query and a filter restrict matches to; ``asks`` if some are asked."""

    def __init__(self, whole: Snapshot, restriction: Restriction, filter: Filter | None) -> None:
        known, self._asked = (None, None) if filter is None else split(filter)
        self._whole, self._restriction = whole, restriction
        _check_fields(whole, restriction)
        self._asks_texts = restriction.asks_texts
        self.asks = self._asks_texts or self._asked is not None
        self.masks = _narrowed(whole, restriction, whole.masks(known))

    def passes(self, segment_index: int, number: int) -> bool:
        """Whether a document passes that the masks allow."""
        if self._asks_texts:
            texts = _texts(self._whole, segment_index, number)
            if not self._fit([texts])[0]:
                return False
        return self.is_asked(segment_index, number)

    def is_asked(self, segment_index: int, number: int) -> bool:
        """Whether a document passes what must be asked about each."""
        return self._whole.passes(segment_index, number, self._asked)

    def looked_at(
        self, ranked: Iterator[tuple[int, float]], size: int
    ) -> Iterator[tuple[int, float, bool]]:
        """Yield documents with whether their texts fit, of which some are looked at together."""
        while True:
            batch, texts, length = [], [], 0  # the texts of each
            for row, score in islice(ranked, min(size, _MOST_TOGETHER)):
                batch.append((row, score))
                if self._asks_texts:
                    texts.append(_texts(self._whole, *self._whole.locate(row)))
                    length += sum(len(text) for _, text in texts[-1])
                    if length > _CHARACTERS:
                        break
            if not batch:
                return
            fit = self._fit(texts) if self._asks_texts else repeat(True)
            for (row, score), fits in zip(batch, fit, strict=False):
                yield row, score, fits
            size *= 2

    def _fit(self, texts_of: Sequence[_Texts]) -> list[bool]:
        """Say of each document whether its texts fit."""
        texts = [text for own in texts_of for _, text in own]
        fields = [field for own in texts_of for field, _ in own]
        owners = np.repeat(np.arange(len(texts_of)), [len(own) for own in texts_of])
        analyzer, fit = self._whole.analyzer, self._restriction.fit
        scanner = borrow(analyzer) if len(texts) > 1 else None
        if scanner is None:
            words = [analyzer.whole_words(text) for text in texts]
            found = fit(len(texts_of), owners, fields, lambda one: [*map(one.found_in, words)])
        else:
            scanned = scanner.scan(texts)
            found = fit(len(texts_of), owners, fields, lambda one: one.found_in_each(scanned))
            give_back(analyzer, scanner)  # after an error it is not used again
        result: list[bool] = found.tolist()
        return result


def _check_fields(snapshot: Snapshot, restriction: Restriction) -> None:
    """Check that the index has the fields that a query names."""
    fields = snapshot.parameters.fields
    known = None if fields is None else dict(fields)
    for field in sorted(restriction.fields):
        if known is None:
            raise ValueError(
                f"the index has no fields, so nothing is in {field!r}: leave the field out, or "
                "make the index with fields"
            )
        if field not in known:
            listed = ", ".join(map(repr, known))
            raise ValueError(f"the index has no field {field!r}; it has {listed}")


def _texts(snapshot: Snapshot, segment_index: int, number: int) -> _Texts:
    """Return the texts of a document, each with its field; not those of weight 0."""
    segment, weights = snapshot.views[segment_index].segment, dict(snapshot.parameters.fields or ())
    stored = [(name, segment.texts_of(name or "text")) for name in segment.names or (None,)]
    texts = [(name, column.texts((number,))[0]) for name, column in stored]
    given = [(name, text) for name, text in texts if text is not None]
    if not given:
        raise ValueError(
            "phrases, and parts of stop words alone, are looked for in the stored texts, and that "
            f"of the document {segment.id_of(number)!r} is not stored: add texts with "
            "store_text=True, or ask for words in must alone"
        )
    return [(name, text) for name, text in given if name is None or weights[name]]


def _best_first(
    snapshot: Snapshot, terms: Terms, masks: ranking.Masks, min_score: float | None, width: int
) -> Iterator[tuple[int, float]]:
    seen = 0
    while True:
        rows, scores = ranking.rank_one(snapshot, terms, width, masks, min_score)
        yield from islice(zip(rows, scores, strict=True), seen, None)
        if len(rows) < width:
            return
        seen, width = width, _GROWTH * width


def _all_by_score(
    snapshot: Snapshot, terms: Terms, masks: ranking.Masks, min_score: float | None
) -> Iterator[tuple[int, float]]:
    """Yield all documents of the masks, best first: they need not have a term of the query."""
    allowed = [
        view.ranks(np.flatnonzero(mask.mask) if mask else np.arange(len(view.segment))) + base
        for view, mask, base in zip(snapshot.views, masks, snapshot.bases, strict=False)
    ]
    rows = np.concatenate(allowed)
    scores = ranking.score_all(snapshot, terms)[rows]
    order = np.argsort(-scores, kind="stable")
    for place in order:
        score = float(scores[place])
        if min_score is not None and score < min_score:
            return
        yield int(rows[place]), score


def parts_filter(snapshot: Snapshot, asked: RestrictedTerms) -> Filter:
    """Return a filter that passes what a query restricts its matches to."""
    within = _Within(snapshot, asked.restriction, None)

    def passes(id: str) -> bool:
        place = snapshot.find(id)
        if place is None:
            return False
        allowed = within.masks[place[0]]
        return (allowed is None or bool(allowed.mask[place[1]])) and within.passes(*place)

    return CallableFilter(passes, fetch=str)


def explain_parts(
    snapshot: Snapshot, restriction: Restriction, place: tuple[int, int]
) -> tuple[PartExplanation, ...]:
    """Say of each part of a query whether a document is as it must be; raise as a search."""
    _check_fields(snapshot, restriction)
    words: list[tuple[str | None, list[str]]] | None = None
    parts = []
    for one in restriction.requirements:
        missing = _missing(snapshot, place, one.terms, one.field)
        has = not missing
        if has and one.words is not None:
            if words is None:
                texts, analyzer = _texts(snapshot, *place), snapshot.analyzer
                words = [(field, analyzer.whole_words(text)) for field, text in texts]
            fields = (own for field, own in words if one.field in (None, field))
            has = any(map(one.words.found_in, fields))
        parts.append(PartExplanation(one.kind, _shown(one), has == one.wanted, missing))
    if restriction.any_of:
        query = restriction.query
        missing = _missing(snapshot, place, restriction.any_of, query.field)
        own = InField(query.field or "", restriction.any_of)
        passed = len(missing) < len(restriction.any_of)
        parts.append(PartExplanation("text", own, passed, missing))
    return tuple(parts)


def _shown(one: Requirement) -> Part:
    if one.field is None or isinstance(one.given, InField):
        return one.given
    return InField(one.field, one.given)


def _missing(
    snapshot: Snapshot, place: tuple[int, int], terms: Sequence[str], field: str | None
) -> tuple[str, ...]:
    """Return which terms a document lacks in a field, or in all of them."""
    segment_index, number = place
    postings = snapshot.views[segment_index].segment.postings
    cache, numbers = snapshot.term_numbers(terms)
    starts, has = cache.starts[segment_index], _codes_in(postings, field, snapshot.parameters)
    lacks = []
    for term, known in zip(terms, numbers, strict=True):
        at = None if known < 0 else postings.place_of(number, starts[known])
        if at is None or (has is not None and not has[postings.codes[at]]):
            lacks.append(term)
    return tuple(lacks)


# --- postings -------------------------------------------------------------------------------------


def _narrowed(
    snapshot: Snapshot, restriction: Restriction, masks: ranking.Masks
) -> list[Allowed | None]:
    """Return the documents of the masks that have all required terms, and nothing excluded."""
    # A part that texts decide excludes nothing by its terms alone.
    parts = [
        [(term, one.field) for term in one.terms]
        for one in restriction.requirements
        if not one.wanted and one.words is None
    ]
    any_of = [(term, restriction.query.field) for term in restriction.any_of]
    parts += [any_of, list(restriction.required)]
    names = list(dict.fromkeys(term for part in parts for term, _ in part))
    cache, numbers = snapshot.term_numbers(names)
    number_of = dict(zip(names, numbers, strict=True))
    numbered = [[(number_of[term], field) for term, field in part] for part in parts]
    *excluded, some, required = numbered
    excluded = [part for part in excluded if min(number for number, _ in part) >= 0]
    narrowed: list[Allowed | None] = []
    for view, mask, starts in zip(snapshot.views, masks, cache.starts, strict=True):
        size, lists = len(view.segment), _Lists(view.segment.postings, starts, snapshot.parameters)
        if any_of:
            passing = np.zeros(size, np.bool_)
            for number, field in some:
                if number >= 0:
                    passing[lists.with_all([(number, field)])] = True
            mask = Allowed(passing if mask is None else passing & mask.mask)
        if excluded:
            passing = np.ones(size, np.bool_) if mask is None else mask.mask.copy()
            for part in excluded:
                passing[lists.with_all(part)] = False
            mask = Allowed(passing)
        if required:
            found = np.empty(0, np.int64)
            if min(number for number, _ in required) >= 0:
                found = lists.with_all(required)
            if mask is not None:
                found = found[mask.mask[found]]
            mask = Allowed.of_numbers(found.astype(np.uint32), size)
        narrowed.append(mask)
    return narrowed


class _Lists:
    """The documents of terms, by the numbers of these, in one field or all."""

    def __init__(self, postings: Postings, starts: Int64, parameters: Parameters) -> None:
        self._postings, self._starts, self._parameters = postings, starts, parameters
        self._in: dict[str, Bool | None] = {}

    def with_all(self, terms: Sequence[tuple[int, str | None]]) -> Int64:
        """Return the documents that have all of some terms, each in its field, ascending."""
        starts, size = self._starts, self._postings.doc_blocks.size
        counts = {number: int(starts[number, -1] - starts[number, 0]) for number, _ in terms}
        rarest, *others = sorted(terms, key=lambda term: counts[term[0]])
        blocks = [np.empty(0, np.int64)]
        for block, first in enumerate(self._postings.doc_blocks.firsts.tolist()):
            found = self._in_block(rarest, block)
            for term in others:
                if not len(found):
                    break
                found = found[_are_in(found, self._in_block(term, block), size)]
            blocks.append(found.astype(np.int64) + first)
        return np.concatenate(blocks)

    def _in_block(self, term: tuple[int, str | None], block: int) -> UInt16:
        number, field = term
        first, last = self._starts[number, block], self._starts[number, block + 1]
        documents: UInt16 = self._postings.documents[first:last]
        if field is None:
            return documents
        if field not in self._in:
            self._in[field] = _codes_in(self._postings, field, self._parameters)
        has = self._in[field]
        return documents if has is None else documents[has[self._postings.codes[first:last]]]


def _codes_in(postings: Postings, field: str | None, parameters: Parameters) -> Bool | None:
    """Return which codes are of terms in a field, none if its weight is 0; ``None``: all."""
    fields = postings.text_fields
    if field is None or fields is None:
        return None
    weight = dict(parameters.fields or ())[field]
    present: Bool = (fields.counts[:, fields.names.index(field)] > 0) & (weight > 0.0)
    return present[postings.code_tf]


def _are_in(found: UInt16, others: UInt16, size: int) -> Bool:
    """Say which of some documents are among others of the same block; both ascend."""
    if len(others) > _RARE * len(found):
        places = np.searchsorted(others, found)
        places[places == len(others)] = 0
        return np.equal(others[places], found)
    present = np.zeros(size, np.bool_)
    present[others] = True
    return present[found]
