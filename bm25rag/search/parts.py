"""What the parts of a ``Query`` restrict its matches to, and the search within that.

Which documents have all terms of the parts is looked up in the postings, rarest term first. Whether
words are in a row, or stop words there at all, the stored texts say: documents are asked best
first, until enough have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from time import monotonic
from typing import TypeAlias

import numpy as np

from bm25rag.analysis.word_scanner import borrow, give_back
from bm25rag.analysis.written import WholeWords, whole_words
from bm25rag.common.arrays import Bool, Int64, UInt16, as_index
from bm25rag.common.strings import CONTEXT
from bm25rag.filters import CallableFilter, Filter
from bm25rag.kernels.records import Allowed
from bm25rag.scoring.variants import Parameters
from bm25rag.search import ranking
from bm25rag.search.analyzed_parts import QUOTED, Clause, Requirement, Restriction
from bm25rag.search.plain_terms import RestrictedTerms, Terms
from bm25rag.search.query import InField, Part
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.postings import Postings
from bm25rag.segments.segment import Segment

# How many documents are ranked at first where texts are looked at.
_FIRST = 64
# How many documents are looked at together at first, then twice as many each time, up to so many,
# and of how many bytes.
_TOGETHER, _MOST_TOGETHER, _BYTES = 16, 1024, 1 << 20
# With so many times more postings than documents left, these are looked up one by one.
_RARE = 16


# --- searching ------------------------------------------------------------------------------------


class PartsMatches:
    """The matches of a query among the documents that its parts, or those of another, leave.

    ``asked`` is the query that restricts, and is told if its time was over; ``whole`` has the same
    documents, with the postings of their texts. ``answers`` say whether functions let a row pass,
    if there are functions.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        terms: Terms,
        asked: RestrictedTerms,
        whole: Snapshot,
        masks: ranking.Masks,
        answers: Mapping[int, bool] | None,
    ) -> None:
        restriction = asked.restriction
        self._snapshot, self._terms, self._asked, self._answers = snapshot, terms, asked, answers
        self._within = _Within(whole, restriction, masks)
        named = bool(restriction.required) or not restriction.demands
        self._needs_terms = snapshot is not whole or named
        self._end: float | None = None
        if restriction.query.timeout is not None:
            self._end = monotonic() + restriction.query.timeout

    def rank(self, width: int, floor: float | None, among: Filter | None) -> ranking.Ranked:
        """Rank so many of at least that score among the documents that pass a filter.

        A text that must be looked at and is not stored is a ``ValueError``.
        """
        snapshot, within, answers = self._snapshot, self._within, self._answers
        masks = within.masks if among is None else snapshot.narrowed(within.masks, among)
        page = snapshot, self._terms, masks, floor
        rows: list[int] = []
        scores: list[float] = []
        complete = True
        if self._needs_terms and answers is None and not within.asks_texts:
            rows, scores = ranking.rank_one(snapshot, self._terms, width, masks, floor)
            complete = len(rows) < width or width >= snapshot.count
        else:
            if self._needs_terms:
                ranked = ranking.best_first(*page, max(width, _FIRST))
            else:
                ranked = _all_by_score(*page)
            for row, score in within.fitting(ranked, max(width, _TOGETHER), self._is_over):
                if answers is None or answers[row]:
                    rows.append(row)
                    scores.append(score)
                    if len(rows) == width:
                        complete = False
                        break
                if answers is not None and self._is_over():
                    break
        return ranking.Ranked(np.array(rows, np.int64), np.array(scores, np.float64), complete)

    def _is_over(self) -> bool:
        """Whether the time is over; if so, note in the query that its answer is cut."""
        if self._end is None or monotonic() <= self._end:
            return False
        self._asked.cut = True
        return True

    def best(self, depth: int, floor: float | None) -> tuple[list[int], list[float]]:
        """Return the best so many of at least that score; raise as ``rank``."""
        rows, scores, _ = self.rank(depth, floor, None)
        return rows.tolist(), scores.tolist()


_Text: TypeAlias = tuple[int, str | None, str]  # whose it is, its field, and the text


class _Within:
    """The documents that a query and masks restrict matches to."""

    def __init__(self, whole: Snapshot, restriction: Restriction, masks: ranking.Masks) -> None:
        self._whole, self._restriction = whole, restriction
        _check_fields(whole, restriction)
        self.asks_texts = bool(restriction.looked_in)
        self.masks = _narrowed(whole, restriction, masks)
        self._known: dict[int, bool] = {}  # whether the texts of rows fit

    def passes(self, segment_index: int, number: int) -> bool:
        """Whether the texts of a document fit."""
        if not self.asks_texts:
            return True
        segment, fields = self._whole.views[segment_index].segment, self._restriction.looked_in
        return self._fit(1, _texts(self._whole, segment, (number,), (0,), fields))[0]

    def fitting(
        self, ranked: Iterator[tuple[int, float]], size: int, is_over: Callable[[], bool]
    ) -> Iterator[tuple[int, float]]:
        """Yield documents whose texts fit; some are looked at together.

        Once the time is over, it yields those that come next as long as all are known.
        """
        known, asks_texts = self._known, self.asks_texts
        while batch := [*islice(ranked, min(size, _MOST_TOGETHER))]:
            new = [row for row, _ in batch if row not in known] if asks_texts else []
            parts = self._in_parts(np.array(new, np.int64))
            for row, score in batch:
                if asks_texts and row not in known:
                    if is_over():
                        return
                    rows = next(parts)
                    texts = _texts_of(self._whole, rows, self._restriction.looked_in)
                    fit = self._fit(len(rows), texts)
                    known.update(zip(rows.tolist(), fit, strict=True))
                if not asks_texts or known[row]:
                    yield row, score
            size *= 2

    def _in_parts(self, rows: Int64) -> Iterator[Int64]:
        """Cut rows into those whose texts are looked at together."""
        sizes = np.zeros(len(rows), np.int64)
        for view, places, numbers in self._whole.by_segment(rows):
            for name in _looked_in(self._whole, view.segment, self._restriction.looked_in):
                sizes[places] += view.segment.texts_of(name or "text").most_bytes(numbers)
        first, before = 0, 0
        for last, end in enumerate(np.cumsum(sizes).tolist(), start=1):
            if end - before > _BYTES or last == len(rows):
                yield rows[first:last]
                first, before = last, end

    def _fit(self, count: int, given: Sequence[_Text]) -> list[bool]:
        """Say of so many documents whether their texts fit."""
        owners = np.array([owner for owner, _, _ in given], np.int64)
        texts = [text for _, _, text in given]
        analyzer, wanted = self._whole.analyzer, self._restriction.spellings
        scanner = borrow(analyzer) if len(texts) > 1 else None
        scanned = None if scanner is None else scanner.scan(texts)
        words = [whole_words(analyzer, text, wanted) for text in texts] if scanned is None else []
        fit = np.ones(count, np.bool_)
        for one in self._restriction.requirements:
            if one.words is None:
                continue
            if scanned is None:
                matching = np.array([*map(one.words.found_in, words)], np.bool_)
            else:
                matching = one.words.found_in_each(scanned)
            if one.field is not None:
                matching &= np.array([field == one.field for _, field, _ in given], np.bool_)
            has = np.zeros(count, np.bool_)
            has[owners[matching]] = True
            fit &= has == one.wanted
        if scanner is not None:
            give_back(analyzer, scanner)  # after an error it is not used again
        result: list[bool] = fit.tolist()
        return result


def _check_fields(snapshot: Snapshot, restriction: Restriction) -> None:
    """Check that the index has the fields that a query names."""
    fields = snapshot.parameters.fields
    known = None if fields is None else dict(fields)
    named = {restriction.query.field, *(one.field for one in restriction.requirements)}
    for field in sorted(one for one in named if one is not None):
        if known is None:
            raise ValueError(
                f"the index has no fields, so nothing is in {field!r}: leave the field out, or "
                "make the index with fields"
            )
        if field not in known:
            listed = ", ".join(map(repr, known))
            raise ValueError(f"the index has no field {field!r}; it has {listed}")
    for one in restriction.requirements:
        if one.field == CONTEXT and (one.words is not None or one.kind.endswith("phrases")):
            raise ValueError(
                f"{one.kind} {one.given!r:.100}: no phrase, and no stop word, is looked for in a "
                "context: ask for words in must"
            )


def _texts_of(snapshot: Snapshot, rows: Int64, fields: Collection[str | None]) -> list[_Text]:
    """Return the texts of documents, each with the place of its document among the rows."""
    places = np.arange(len(rows))
    each = [
        _texts(snapshot, view.segment, numbers.tolist(), places[own].tolist(), fields)
        for view, own, numbers in snapshot.by_segment(rows)
    ]
    return each[0] if len(each) == 1 else [*chain.from_iterable(each)]


def _texts(
    snapshot: Snapshot,
    segment: Segment,
    numbers: Sequence[int],
    owners: Sequence[int],
    fields: Collection[str | None],
) -> list[_Text]:
    """Return the texts of documents in some fields, with their owners; none of weight 0."""
    names = _looked_in(snapshot, segment, fields)
    columns = [segment.texts_of(name or "text").texts(numbers) for name in names]
    if all(None in column for column in columns):
        each = enumerate(numbers)
        _check_stored(segment, [n for at, n in each if all(own[at] is None for own in columns)])
    return [
        (owner, name, text)
        for name, column in zip(names, columns, strict=True)
        for owner, text in zip(owners, column, strict=True)
        if text is not None
    ]


def _looked_in(
    snapshot: Snapshot, segment: Segment, fields: Collection[str | None]
) -> list[str | None]:
    """Return the fields of a segment that are looked in if these are, or all (``None``)."""
    if segment.names is None:
        return [None]
    weights, every = dict(snapshot.parameters.fields or ()), None in fields
    named = [name for name in segment.names if every or name in fields]
    return [name for name in named if name != CONTEXT and weights[name]]


def _check_stored(segment: Segment, numbers: Sequence[int]) -> None:
    """Check that each document has a text in some field."""
    for number, *own in zip(numbers, *segment.texts_by_field(numbers), strict=True):
        if own.count(None) == len(own):
            raise ValueError(
                "phrases, and parts of stop words alone, are looked for in the stored texts, and "
                f"that of the document {segment.id_of(number)!r} is not stored: add texts with "
                "store_text=True, or ask for words in must alone"
            )


def _all_by_score(
    snapshot: Snapshot, terms: Terms, masks: ranking.Masks, min_score: float | None
) -> Iterator[tuple[int, float]]:
    """Yield all documents of the masks, best first: they need not have a term of the query."""
    rows = snapshot.rows_of(masks)
    scores = ranking.score_all(snapshot, terms)[rows]
    if min_score is not None:
        rows, scores = rows[scores >= min_score], scores[scores >= min_score]
    order = np.argsort(-scores, kind="stable")
    for first in range(0, len(order), _MOST_TOGETHER):  # the first are often enough
        some = order[first : first + _MOST_TOGETHER]
        yield from zip(rows[some].tolist(), scores[some].tolist(), strict=True)


def parts_filter(snapshot: Snapshot, asked: RestrictedTerms) -> Filter:
    """Return a filter that passes what a query restricts its matches to."""
    within = _Within(snapshot, asked.restriction, snapshot.masks(None))

    def passes(id: str) -> bool:
        place = snapshot.find(id)
        if place is None:
            return False
        allowed = within.masks[place[0]]
        return (allowed is None or bool(allowed.mask[place[1]])) and within.passes(*place)

    return CallableFilter(passes, fetch=str)


@dataclass(frozen=True, slots=True)
class PartExplanation:
    """Whether a document has what a part of a ``Query`` demands, or lacks what it excludes.

    ``kind`` is ``"must"``, ``"must_not"``, ``"phrases"`` or ``"not_phrases"``; ``"text"`` if one of
    its terms must be in a field. ``passed`` says whether the document has what it must have, or has
    not what it must not have; ``missing`` are the terms of the part that it lacks.
    """

    kind: str
    part: Part
    passed: bool
    missing: tuple[str, ...]

    def __str__(self) -> str:
        part = self.part
        shown = f"{self.kind} {part!r}"
        if isinstance(part, InField):
            shown = f"{self.kind} {part[1]!r} in {part[0]}"
        if self.passed:
            return f"{shown}: passed"
        if "not" in self.kind:
            return f"{shown}: failed, the document has it"
        lacking = ", ".join(map(repr, self.missing))
        why = f"the document lacks {lacking}" if lacking else "its words are not there so"
        return f"{shown}: failed, {why}"


def explain_parts(
    snapshot: Snapshot, restriction: Restriction, place: tuple[int, int]
) -> tuple[PartExplanation, ...]:
    """Say of each part of a query whether a document is as it must be; raise as a search."""
    _check_fields(snapshot, restriction)
    words: list[tuple[str | None, WholeWords]] | None = None
    parts = []
    for one in restriction.requirements:
        missing = _missing(snapshot, place, one.clauses, one.searched)
        has = not missing
        if has and one.words is not None:
            if words is None:
                segment, analyzer = snapshot.views[place[0]].segment, snapshot.analyzer
                texts = _texts(snapshot, segment, place[1:], (0,), restriction.looked_in)
                wanted = restriction.spellings
                words = [(field, whole_words(analyzer, text, wanted)) for _, field, text in texts]
            fields = (own for field, own in words if one.field in (None, field))
            has = any(map(one.words.found_in, fields))
        parts.append(PartExplanation(one.kind, _shown(one), has == one.wanted, missing))
    if restriction.any_of:
        query = restriction.query
        each = [(term,) for term in restriction.any_of]
        missing = _missing(snapshot, place, each, query.field)
        own = InField(query.field or "", restriction.any_of)
        passed = len(missing) < len(restriction.any_of)
        parts.append(PartExplanation("text", own, passed, missing))
    return tuple(parts)


def _shown(one: Requirement) -> Part:
    if one.field is None or isinstance(one.given, InField):
        return one.given
    return InField(one.field, one.given)


def _missing(
    snapshot: Snapshot, place: tuple[int, int], clauses: Sequence[Clause], field: str | None
) -> tuple[str, ...]:
    """Return the first terms of those clauses of which a document has none in a field, or any."""
    segment_index, number = place
    postings = snapshot.views[segment_index].segment.postings
    terms = [*dict.fromkeys(chain.from_iterable(clauses))]
    cache, numbers = snapshot.term_numbers(terms)
    starts, has = cache.starts[segment_index], _codes_in(postings, field, snapshot.parameters)
    present = set()
    for term, known in zip(terms, numbers, strict=True):
        at = None if known < 0 else postings.place_of(number, starts[known])
        if at is not None and (has is None or has[postings.codes[at]]):
            present.add(term)
    return tuple(dict.fromkeys(one[0] for one in clauses if present.isdisjoint(one)))


# --- postings -------------------------------------------------------------------------------------


def _narrowed(
    snapshot: Snapshot, restriction: Restriction, masks: ranking.Masks
) -> list[Allowed | None]:
    """Return the documents of the masks that have all required terms, and nothing excluded."""
    # A part that texts decide excludes nothing by its terms alone.
    parts = [
        [(clause, one.searched) for clause in one.clauses]
        for one in restriction.requirements
        if not one.wanted and one.words is None
    ]
    any_of = restriction.any_of
    parts += [[(any_of, restriction.query.field)], list(restriction.required)]
    names = list(dict.fromkeys(term for part in parts for clause, _ in part for term in clause))
    cache, numbers = snapshot.term_numbers(names)
    known = {name: number for name, number in zip(names, numbers, strict=True) if number >= 0}
    *excluded, (some,), required = (
        [([known[term] for term in clause if term in known], field) for clause, field in part]
        for part in parts
    )
    excluded = [part for part in excluded if all(clause for clause, _ in part)]
    narrowed: list[Allowed | None] = []
    for view, mask, starts in zip(snapshot.views, masks, cache.starts, strict=True):
        size, lists = len(view.segment), _Lists(view.segment.postings, starts, snapshot.parameters)
        if any_of:
            passing = np.zeros(size, np.bool_)
            if some[0]:
                passing[lists.with_all([some])] = True
            mask = Allowed(passing if mask is None else passing & mask.mask)
        if excluded:
            passing = np.ones(size, np.bool_) if mask is None else mask.mask.copy()
            for part in excluded:
                passing[lists.with_all(part)] = False
            mask = Allowed(passing)
        if required:
            documents = np.empty(0, np.int64)
            if all(clause for clause, _ in required):
                documents = lists.with_all(required)
            if mask is not None:
                documents = documents[mask.mask[documents]]
            mask = Allowed.of_numbers(documents.astype(np.uint32), size)
        narrowed.append(mask)
    return narrowed


class _Lists:
    """The documents of terms, by the numbers of these, in one field or all."""

    def __init__(self, postings: Postings, starts: Int64, parameters: Parameters) -> None:
        self._postings, self._starts, self._parameters = postings, starts, parameters
        self._in: dict[str, Bool | None] = {}

    def with_all(self, clauses: Sequence[tuple[Sequence[int], str | None]]) -> Int64:
        """Return the documents that have a term of each clause, in its field, ascending."""
        starts, size = self._starts, self._postings.doc_blocks.size
        rarest, *others = sorted(
            clauses, key=lambda clause: sum(int(starts[n, -1] - starts[n, 0]) for n in clause[0])
        )
        blocks = [np.empty(0, np.int64)]
        for block, first in enumerate(self._postings.doc_blocks.firsts.tolist()):
            documents = self._in_block(*rarest, block)
            for clause in others:
                if not len(documents):
                    break
                documents = documents[_are_in(documents, self._in_block(*clause, block), size)]
            blocks.append(documents.astype(np.int64) + first)
        return np.concatenate(blocks)

    def _in_block(self, numbers: Sequence[int], field: str | None, block: int) -> UInt16:
        if len(numbers) > 1:
            each = [self._in_block([number], field, block) for number in numbers]
            either: UInt16 = np.unique(np.concatenate(each))
            return either
        first, last = self._starts[numbers[0], block], self._starts[numbers[0], block + 1]
        documents: UInt16 = self._postings.documents[first:last]
        if field is None:
            return documents
        if field not in self._in:
            self._in[field] = _codes_in(self._postings, field, self._parameters)
        has = self._in[field]
        return (
            documents
            if has is None
            else documents[has.take(as_index(self._postings.codes[first:last]))]
        )


def _codes_in(postings: Postings, field: str | None, parameters: Parameters) -> Bool | None:
    """Return which codes are of terms in a field, none if its weight is 0; ``None``: all."""
    fields = postings.text_fields
    if field is None or fields is None:
        return None
    weights = dict(parameters.fields or ())
    if field == QUOTED and CONTEXT not in weights:
        return None
    named = [
        name for name in fields.names if field == name or (field == QUOTED and name != CONTEXT)
    ]
    columns = [fields.names.index(name) for name in named if weights[name]]
    present: Bool = np.asarray(fields.counts[:, columns].any(axis=1))
    return present.take(as_index(postings.code_tf))


def _are_in(numbers: UInt16, others: UInt16, size: int) -> Bool:
    """Say which of some documents are among others of the same block; both ascend."""
    if len(others) > _RARE * len(numbers):
        places = np.searchsorted(others, numbers)
        places[places == len(others)] = 0
        return np.equal(others[places], numbers)
    present = np.zeros(size, np.bool_)
    present[as_index(others)] = True
    return present.take(as_index(numbers))
