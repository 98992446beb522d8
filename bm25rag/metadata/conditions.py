"""Which documents of a segment pass a condition, from the fields of their metadata."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt32, Unsigned, as_index
from bm25rag.common.strings import utf8, utf8_each
from bm25rag.filters import Condition, Operator
from bm25rag.filters.operators import (
    AsInstant,
    AsMoment,
    Comparison,
    Contains,
    ContainsAll,
    ContainsAny,
    ContainsFolded,
    Equals,
    Exists,
    In,
    StartsWith,
)
from bm25rag.filters.values import instant_of, ticks
from bm25rag.metadata import kinds
from bm25rag.metadata.field import KNOWN, Field, Path, StringRange, shape_of
from bm25rag.metadata.fields import Fields
from bm25rag.metadata.instants import NO_MOMENT, Moments, read_iso, texts_of

# How many strings are read for each that is looked up.
_SAMPLED = 4


def select(fields: Fields, condition: Condition, scan: Callable[[Bool], Bool]) -> Bool:
    """Return which documents pass a condition; ``Condition.matches`` defines what passes.

    ``scan`` returns which of some documents pass, by reading their metadata; it is called for those
    that the fields leave open.
    """
    path, operator = condition.path, condition.operator
    try:
        field = fields.find(path)
        missing = operator.passes(None, False)
        if field is None:
            return np.full(fields.count, missing)
        if isinstance(operator, ContainsAny | ContainsAll):
            return _with_elements(fields, path, field, operator)
        mask = field.spread(_passing_values(field, operator), missing, fields.count)
        if isinstance(operator, Contains | ContainsFolded):
            return mask | _with_element(fields, path, operator)
        undecided = _undecided(fields, path, field, operator)
        if undecided is not None and (undecided := undecided & ~mask).any():
            mask |= scan(undecided)
        return mask
    except KeyError:  # the path's field was not kept, see MAX_FIELDS
        return scan(np.ones(fields.count, np.bool_))


# --- distinct values ------------------------------------------------------------------------------


def _passing_values(field: Field, operator: Operator) -> Bool:
    """Return which distinct values pass; a list or a dict passes only ``$exists``."""
    passing = np.zeros(len(field), np.bool_)
    match operator:
        case Exists(expected):
            passing[:] = expected
        case StartsWith(prefix):
            _mark_prefix(field, passing, utf8(prefix))
        case Contains(part) | ContainsFolded(part):
            if type(part) is str:
                _mark_containing(field, passing, operator)
        case Equals() | In():
            _mark_equal(field, passing, operator.members)
            _mark_tested(field, passing, kinds.OTHER, operator)
        case Comparison():
            _mark_range(field, passing, operator)
            _mark_tested(field, passing, kinds.OTHER, operator)
        case AsInstant(comparison):
            passing |= _passing_values(field, comparison)  # of dates and datetimes
            if isinstance(comparison, Comparison):
                operand: Any = ticks(comparison.operand)
                _mark_named(field, passing, kinds.STRING, comparison.compare, operand)
            elif isinstance(comparison, Equals | In):
                operand = list(map(ticks, comparison.members))
                _mark_named(field, passing, kinds.STRING, np.isin, operand)
        case AsMoment():
            _mark_moments(field, passing, operator)
        case _:
            for kind in KNOWN:
                _mark_tested(field, passing, kind, operator)
    return passing


def _mark_tested(field: Field, passing: Bool, kind: int, operator: Operator) -> None:
    passing[field.codes_of(kind)] = list(map(operator.passes, field.values(kind)))


def _mark_containing(field: Field, passing: Bool, operator: Contains | ContainsFolded) -> None:
    """Mark the strings that have a part."""
    found = field.strings_of(kinds.STRING).containing(
        utf8(operator.operand), isinstance(operator, ContainsFolded)
    )
    if found is None:
        _mark_tested(field, passing, kinds.STRING, operator)
    else:
        passing[field.starts[kinds.STRING] + found] = True


def _mark_equal(field: Field, passing: Bool, operands: Sequence[Any]) -> None:
    """Mark the values that equal one of the operands."""
    keys_by_kind: dict[int, list[Any]] = {}
    if len(operands) > 1 and {str}.issuperset(map(type, operands)):
        keys_by_kind[kinds.STRING], operands = utf8_each(operands), ()
    for operand in operands:
        for kind, key in _keys_of(operand):
            keys_by_kind.setdefault(kind, []).append(key)
    for kind, keys in keys_by_kind.items():
        if field.has(kind):
            passing[field.starts[kind] + _find(field, kind, keys)] = True
    if kinds.UTC in keys_by_kind:
        _mark_named(field, passing, kinds.ZONED, np.isin, keys_by_kind[kinds.UTC])


def _find(field: Field, kind: int, keys: list[Any]) -> Int64:
    """Return the positions, among the values of a kind, of those keys that are there."""
    if kind in kinds.FLAGS:
        return np.zeros(1, np.int64)
    if kind in kinds.NUMBERS:
        numbers = field.numbers_of(kind)
        wanted = np.array(keys, numbers.dtype)
        positions = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        known: Int64 = positions[numbers[positions] == wanted]
        return known
    return find_strings(field.strings_of(kind), keys)


def find_strings(strings: StringRange, keys: list[bytes]) -> Int64:
    """Return the positions, among sorted strings, of those keys that are there."""
    # Reading a string costs most, so a sample is read once, and narrows each key's search.
    step = max(1, len(strings) // (_SAMPLED * len(keys)))
    sample = strings.every(step)
    if step == 1:
        at = dict(zip(sample, range(len(sample)), strict=True))
        return np.array([at[key] for key in keys if key in at], np.int64)
    positions = []
    for key in keys:
        end = bisect_right(sample, key) * step
        position = bisect_left(strings, key, max(0, end - step), min(end, len(strings)))
        if position < len(strings) and strings[position] == key:
            positions.append(position)
    return np.array(positions, np.int64)


def _mark_range(field: Field, passing: Bool, comparison: Comparison) -> None:
    """Mark the values on the right side of the operand."""
    operand = comparison.operand
    number = type(operand) in (int, float)  # compared with both kinds, exactly as Python does
    both = [(kinds.WHOLE, operand), (kinds.REAL, operand)]
    for kind, key in both if number else _keys_of(operand):
        codes, ranked = field.codes_of(kind), field.ranked(kind)
        bisect = bisect_left if comparison.name in ("$lt", "$gte") else bisect_right
        edge = codes.start + bisect(ranked, key)
        if comparison.name in ("$lt", "$lte"):
            passing[codes.start : edge] = True
        else:
            passing[edge : codes.stop] = True
        if kind == kinds.UTC:
            _mark_named(field, passing, kinds.ZONED, comparison.compare, key)


_FLAG_OF = {None: kinds.NULL, False: kinds.FALSE, True: kinds.TRUE}


def _keys_of(operand: Any) -> list[tuple[int, Any]]:
    """Return the kinds and keys under which a field holds the values equal to an operand."""
    kind = type(operand)
    if operand is None or kind is bool:
        return [(_FLAG_OF[operand], None)]
    if kind is int or kind is float:
        return _keys_of_number(operand)
    if kind is str:
        return [(kinds.STRING, utf8(operand))]
    if kind is timedelta:  # an operand of $date
        return [(each, ticks(operand)) for each in (kinds.DATE, kinds.NAIVE, kinds.UTC)]
    if kind is date or kind is datetime:
        key = ticks(instant_of(operand) or timedelta())
        return [(kinds.DATE, key)] if kind is date else [(kinds.NAIVE, key), (kinds.UTC, key)]
    return []


def _keys_of_number(number: float) -> list[tuple[int, Any]]:
    if -(2**63) <= number < 2**63 and number == int(number):
        return [(kinds.WHOLE, int(number))]
    try:
        return [(kinds.REAL, float(number))] if float(number) == number else []
    except OverflowError:
        return []


def _mark_prefix(field: Field, passing: Bool, prefix: bytes) -> None:
    start, strings = field.starts[kinds.STRING], field.strings_of(kinds.STRING)
    first = bisect_left(strings, prefix)
    last = bisect_right(strings, prefix, key=lambda string: string[: len(prefix)])
    passing[start + first : start + last] = True


def _mark_named(field: Field, passing: Bool, kind: int, compare: Any, operand: Any) -> None:
    """Mark the strings of a kind that name an instant which passes."""
    instants = texts_of(field, kind).read(read_iso).instants
    passing[field.codes_of(kind)] = compare(instants, operand) & (instants != NO_MOMENT)


def _mark_moments(field: Field, passing: Bool, operator: AsMoment) -> None:
    """Mark the datetimes, the strings that name one, and in an order the dates, which pass."""
    for kind in (kinds.DATE, kinds.NAIVE, kinds.UTC, kinds.STRING, kinds.ZONED):
        if field.has(kind) and (operator.orders or kind != kinds.DATE):
            moments = _moments_of(field, kind, operator)
            passing[field.codes_of(kind)] = _pass(moments, operator)


def _moments_of(field: Field, kind: int, operator: AsMoment) -> Moments:
    if kind in kinds.NUMBERS:
        numbers = field.numbers_of(kind)
        return Moments(numbers, numbers, np.full(len(numbers), kind == kinds.UTC))
    if kind == kinds.ZONED:
        return texts_of(field, kind).read(read_iso)
    return texts_of(field, kind).read(operator.read, type(operator), operator.reading)


def _pass(moments: Moments, operator: AsMoment) -> Bool:
    """Return which datetimes pass."""

    def compare(numbers: Int64, keys: list[int]) -> Bool:
        if len(keys) == 1:
            one: Bool = operator.compare(numbers, keys[0])
            return one
        return np.isin(numbers, keys)

    naive = [other.clock for other in operator.operand if not other.aware]
    aware = [other for other in operator.operand if other.aware]
    passing: Bool = compare(moments.clocks, naive)
    passing |= np.where(
        moments.aware,
        compare(moments.instants, [other.instant for other in aware]),
        compare(moments.clocks, [other.clock for other in aware]),
    )
    passing &= moments.clocks != NO_MOMENT
    return passing


# --- lists and dicts ------------------------------------------------------------------------------


def _undecided(fields: Fields, path: Path, field: Field, operator: Operator) -> Bool | None:
    """Return which documents have a value for which the fields do not say whether it passes.

    ``None``: none has.
    """
    match operator:
        case Equals() | In():
            parts = [one for one in operator.members if type(one) is list or type(one) is dict]
            masks = [_may_equal(fields, path, one) for one in parts]
            return np.logical_or.reduce(masks) if masks else None
        case Comparison() | StartsWith() | Exists() | AsInstant() | AsMoment():
            return None
    # Of these the field does not hold the whole value.
    return _of_kinds(fields, field, kinds.LIST, kinds.SHAPE)


def _of_kinds(fields: Fields, field: Field, *wanted: int) -> Bool:
    """Return which documents have a value of some kinds."""
    passing = np.zeros(len(field), np.bool_)
    for kind in wanted:
        passing[field.codes_of(kind)] = True
    return field.spread(passing, False, fields.count)


def _may_equal(fields: Fields, path: Path, operand: Any) -> Bool:
    """Return which documents may have an equal value: all that have one, and few others.

    The elements of lists are looked up whatever their order and number.
    """
    field = fields.find(path)
    if field is None:
        return np.zeros(fields.count, np.bool_)
    if type(operand) is list:
        mask = _of_kinds(fields, field, kinds.LIST)
        for item in operand:
            mask &= _with_element(fields, path, Contains(item))
        elements = None if operand else fields.find((*path, None))
        if elements is not None and elements.documents is not None:
            mask[as_index(elements.documents)] = False
        return mask
    if type(operand) is not dict:
        return field.spread(_passing_values(field, Equals(operand)), False, fields.count)
    passing = np.zeros(len(field), np.bool_)
    passing[field.starts[kinds.SHAPE] + _find(field, kinds.SHAPE, [utf8(shape_of(operand))])] = True
    mask = field.spread(passing, False, fields.count)
    for key, item in operand.items():
        mask &= _may_equal(fields, (*path, key), item)
    return mask


def _with_element(fields: Fields, path: Path, operator: Contains | ContainsFolded) -> Bool:
    """Return which documents have a list with an element that passes."""
    mask = np.zeros(fields.count, np.bool_)
    elements = fields.find((*path, None))
    if elements is None or elements.documents is None:  # all lists are empty
        return mask
    if isinstance(operator, Contains):
        passing = _passing_values(elements, Equals(operator.operand))
    else:
        passing = np.zeros(len(elements), np.bool_)
        texts = elements.values(kinds.STRING)
        passing[elements.codes_of(kinds.STRING)] = [operator.passes([text]) for text in texts]
    mask[as_index(elements.documents[elements.hits(passing)])] = True
    return mask


def _with_elements(
    fields: Fields, path: Path, field: Field, operator: ContainsAny | ContainsAll
) -> Bool:
    """Return which documents have a list with any, or all, of the operands as elements."""
    elements, members = fields.find((*path, None)), operator.members
    if isinstance(operator, ContainsAll) and not members:
        return _of_kinds(fields, field, kinds.LIST)
    mask = np.zeros(fields.count, np.bool_)
    if elements is None or elements.documents is None:  # all lists are empty
        return mask
    passing = _passing_values(elements, In(members))
    wanted = elements.hits(passing)
    documents = elements.documents[wanted]
    if isinstance(operator, ContainsAll):
        if np.count_nonzero(passing) < operator.distinct:  # no document has one of them
            return mask
        documents = _with_each(elements, documents, elements.codes[wanted], operator)
    mask[as_index(documents)] = True
    return mask


def _with_each(
    elements: Field, documents: UInt32, codes: Unsigned, operator: ContainsAll
) -> UInt32:
    """Return which documents have an element equal to each operand.

    ``documents`` and ``codes`` are those of the elements that are equal to one.
    """
    starts, sizes = _groups(documents)
    kept = np.repeat(sizes >= operator.distinct, as_index(sizes))
    documents, codes = documents[kept], codes[kept]
    for first in range(0, len(operator.members), 64):  # each has a bit of a number
        if not len(documents):
            break
        members = operator.members[first : first + 64]
        bits = np.zeros(len(elements), np.uint64)
        for bit, member in enumerate(members):
            bits[_passing_values(elements, Equals(member))] |= np.uint64(1 << bit)
        starts, sizes = _groups(documents)
        matched = np.bitwise_or.reduceat(bits.take(as_index(codes)), as_index(starts))
        kept = np.repeat(matched == np.uint64((1 << len(members)) - 1), as_index(sizes))
        documents, codes = documents[kept], codes[kept]
    return documents


def _groups(documents: UInt32) -> tuple[Int64, Int64]:
    """Return where each document's elements begin, and how many it has."""
    starts = np.r_[0, np.flatnonzero(documents[1:] != documents[:-1]) + 1]
    return starts, np.diff(np.r_[starts, len(documents)])
