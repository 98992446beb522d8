"""What the parts of a ``Query`` restrict its matches to, and the search within that.

Which documents have all terms of the parts is looked up in the postings, rarest term first. Whether
words are in a row, or stop words there at all, the stored texts say: documents are asked best
first, until enough have passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from time import monotonic

import numpy as np

from bm25rag.analysis.word_scanner import borrow, give_back
from bm25rag.common.arrays import Bool, Int64, UInt16
from bm25rag.common.caller import warn
from bm25rag.errors import IncompleteWarning
from bm25rag.filters import CallableFilter, Filter, split
from bm25rag.kernels.records import Allowed
from bm25rag.search import ranking
from bm25rag.search.explain import PartExplanation
from bm25rag.search.finding import Wanted
from bm25rag.search.queries import RestrictedTerms, Terms
from bm25rag.search.query import OVER
from bm25rag.search.requirements import Restriction
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
    restriction, depth = asked.restriction, wanted.depth
    within = _Within(whole, restriction, wanted.filter)
    needs_terms = snapshot is not whole or restriction.required or not restriction.demands
    if not min(depth, snapshot.count) or (needs_terms and not within.asks):
        rows, scores = ranking.rank_one(snapshot, terms, depth, within.masks, wanted.min_score)
        return rows[wanted.offset :], scores[wanted.offset :]
    page = snapshot, terms, within.masks, wanted.min_score
    ranked = _best_first(*page, max(depth, _FIRST)) if needs_terms else _all_by_score(*page)
    rows, scores = [], []
    timeout = restriction.query.timeout
    end = None if timeout is None else monotonic() + timeout
    for row, score, fits in within.looked_at(ranked, max(depth, _TOGETHER)):
        if fits and within.is_asked(*whole.locate(row)):
            rows.append(row)
            scores.append(score)
            if len(rows) == depth:
                break
        if end is not None and monotonic() > end:
            asked.cut = True
            warn(OVER, IncompleteWarning)
            break
    return rows[wanted.offset :], scores[wanted.offset :]


class _Within:
    """The documents that a query and a filter restrict matches to; ``asks`` if some are asked."""

    def __init__(self, whole: Snapshot, restriction: Restriction, filter: Filter | None) -> None:
        known, self._asked = (None, None) if filter is None else split(filter)
        self._whole, self._restriction = whole, restriction
        self._asks_texts = restriction.asks_texts
        self.asks = self._asks_texts or self._asked is not None
        self.masks = _narrowed(whole, restriction, whole.masks(known))

    def passes(self, segment_index: int, number: int) -> bool:
        """Whether a document passes that the masks allow."""
        texts = [_text(self._whole, segment_index, number)] if self._asks_texts else []
        return all(self._fit(texts)) and self.is_asked(segment_index, number)

    def is_asked(self, segment_index: int, number: int) -> bool:
        """Whether a document passes what must be asked about each."""
        return self._whole.passes(segment_index, number, self._asked)

    def looked_at(
        self, ranked: Iterator[tuple[int, float]], size: int
    ) -> Iterator[tuple[int, float, bool]]:
        """Yield documents with whether their texts fit, of which some are looked at together."""
        while True:
            batch, texts, length = [], [], 0
            for row, score in islice(ranked, min(size, _MOST_TOGETHER)):
                batch.append((row, score))
                if self._asks_texts:
                    texts.append(_text(self._whole, *self._whole.locate(row)))
                    length += len(texts[-1])
                    if length > _CHARACTERS:
                        break
            if not batch:
                return
            fit = self._fit(texts) if self._asks_texts else repeat(True)
            for (row, score), fits in zip(batch, fit, strict=False):
                yield row, score, fits
            size *= 2

    def _fit(self, texts: Sequence[str]) -> Sequence[bool]:
        """Say of each text whether it fits."""
        analyzer = self._whole.analyzer
        scanner = borrow(analyzer) if len(texts) > 1 else None
        if scanner is None:
            return [self._restriction.fits(analyzer.whole_words(text)) for text in texts]
        fit: list[bool] = self._restriction.fits_each(scanner.scan(texts)).tolist()
        give_back(analyzer, scanner)  # after an error it is not used again
        return fit


def _text(snapshot: Snapshot, segment_index: int, number: int) -> str:
    segment = snapshot.views[segment_index].segment
    (text,) = segment.texts.texts((number,))
    if text is None:
        raise ValueError(
            "phrases, and parts of stop words alone, are looked for in the stored texts, and that "
            f"of the document {segment.id_of(number)!r} is not stored: add texts with "
            "store_text=True, or ask for words in must alone"
        )
    return text


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
    segment_index, number = place
    postings = snapshot.views[segment_index].segment.postings
    words: list[str] | None = None
    parts = []
    for one in restriction.requirements:
        cache, numbers = snapshot.term_numbers(one.terms)
        starts = cache.starts[segment_index]
        missing = tuple(
            term
            for term, known in zip(one.terms, numbers, strict=True)
            if known < 0 or postings.place_of(number, starts[known]) is None
        )
        has = not missing
        if has and one.words is not None:
            if words is None:
                words = snapshot.analyzer.whole_words(_text(snapshot, *place))
            has = one.words.found_in(words)
        parts.append(PartExplanation(one.kind, one.given, has == one.wanted, missing))
    return tuple(parts)


# --- postings -------------------------------------------------------------------------------------


def _narrowed(
    snapshot: Snapshot, restriction: Restriction, masks: ranking.Masks
) -> list[Allowed | None]:
    """Return the documents of the masks that have all required terms, and nothing excluded."""
    # A part that texts decide excludes nothing by its terms alone.
    parts = [one.terms for one in restriction.requirements if not one.wanted and one.words is None]
    parts.append(tuple(restriction.required))
    names = [*chain.from_iterable(parts)]
    cache, numbers = snapshot.term_numbers(names)
    number_of = dict(zip(names, numbers, strict=True))
    *excluded, required = ([number_of[term] for term in terms] for terms in parts)
    excluded = [terms for terms in excluded if min(terms) >= 0]
    narrowed: list[Allowed | None] = []
    for view, mask, starts in zip(snapshot.views, masks, cache.starts, strict=True):
        postings, size, mask_ = view.segment.postings, len(view.segment), mask
        if excluded:
            passing = np.ones(size, np.bool_) if mask is None else mask.mask.copy()
            for terms in excluded:
                passing[_with_all(postings, [starts[number] for number in terms])] = False
            mask_ = Allowed(passing)
        if required:
            found = np.empty(0, np.int64)
            if min(required) >= 0:
                found = _with_all(postings, [starts[number] for number in required])
            if mask_ is not None:
                found = found[mask_.mask[found]]
            mask_ = Allowed.of_numbers(found.astype(np.uint32), size)
        narrowed.append(mask_)
    return narrowed


def _with_all(postings: Postings, terms: Sequence[Int64]) -> Int64:
    """Return the documents that have all of some terms, given their starts, ascending."""
    rarest, *others = sorted(terms, key=lambda starts: int(starts[-1] - starts[0]))
    documents, size = postings.documents, postings.doc_blocks.size
    blocks = [np.empty(0, np.int64)]
    for block, first in enumerate(postings.doc_blocks.firsts.tolist()):
        found = documents[rarest[block] : rarest[block + 1]]
        for starts in others:
            if not len(found):
                break
            found = found[_are_in(found, documents[starts[block] : starts[block + 1]], size)]
        blocks.append(found.astype(np.int64) + first)
    return np.concatenate(blocks)


def _are_in(found: UInt16, others: UInt16, size: int) -> Bool:
    """Say which of some documents are among others of the same block; both ascend."""
    if len(others) > _RARE * len(found):
        places = np.searchsorted(others, found)
        places[places == len(others)] = 0
        return np.equal(others[places], found)
    present = np.zeros(size, np.bool_)
    present[others] = True
    return present[found]
