"""From a condition to the documents of a segment that fulfil it."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from bm25rag.common.arrays import Bool, Int64
from bm25rag.common.strings import utf8, utf8_each
from bm25rag.filters import Condition
from bm25rag.filters.nodes import Test
from bm25rag.filters.values import equal, instant_of
from bm25rag.metadata.field import (
    DATE,
    FALSE,
    FLAGS,
    KNOWN,
    LIST,
    MOMENT,
    NULL,
    NUMBERS,
    OTHER,
    REAL,
    SHAPE,
    STRING,
    TRUE,
    WHOLE,
    Field,
    Path,
    StringRange,
    shape_of,
    ticks,
)
from bm25rag.metadata.fields import Fields
from bm25rag.metadata.instants import NO_INSTANT, instants_of

_UNKNOWN = (LIST, MOMENT, SHAPE)
_ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "$eq": operator.eq,
    "$lt": operator.lt,
    "$lte": operator.le,
    "$gt": operator.gt,
    "$gte": operator.ge,
}


def select(fields: Fields, condition: Condition, ask: Callable[[Bool], Bool]) -> Bool:
    """Return which documents fulfil a condition.

    Parameters
    ----------
    fields
        The documents' fields.
    condition
        The condition; ``Condition.matches`` says what it means.
    ask
        Asks it for some documents, for what the fields do not tell.
    """
    try:
        field = fields.find(condition.path)
        missing = condition.test(None, False)
        if field is None:
            return np.full(fields.count, missing)
        if condition.operator is None:
            return _ask(field, condition.test, missing, fields.count, ask)
        chosen = _choose(field, condition.operator, condition.operand, condition.test)
        mask = field.spread(chosen, missing, fields.count)
        for nested in _nested(fields, field, condition):
            mask |= nested
        return mask
    except KeyError:  # one of too many paths
        return ask(np.ones(fields.count, np.bool_))


def _ask(field: Field, test: Test, missing: bool, count: int, ask: Callable[[Bool], Bool]) -> Bool:
    """Ask any predicate for each distinct value that is known whole, or else for the document."""
    chosen, unknown = np.zeros(len(field), np.bool_), np.zeros(len(field), np.bool_)
    for kind in KNOWN:
        chosen[field.codes_of(kind)] = [test(value, True) for value in field.values(kind)]
    for kind in _UNKNOWN:
        unknown[field.codes_of(kind)] = True
    mask = field.spread(chosen, missing, count)
    if unknown.any():
        mask |= ask(field.spread(unknown, False, count))
    return mask


def _choose(field: Field, name: str, operand: Any, test: Test) -> Bool:
    """Return which distinct values pass; lists and dicts only by ``$exists``."""
    chosen = np.zeros(len(field), np.bool_)
    dated, _, name = name.rpartition(".")
    if name == "$exists":
        chosen[:] = operand
    elif name == "$startswith":
        _mark_prefix(field, chosen, utf8(operand))
    elif name in ("$contains", "$icontains"):
        if type(operand) is str:
            _mark_tested(field, chosen, STRING, test)
    else:
        if name in ("$eq", "$in"):
            _mark_equal(field, chosen, operand if name == "$in" else (operand,))
        else:
            _mark_ordered(field, chosen, name, operand)
        if dated:
            _mark_dated(field, chosen, name, operand)
        else:
            _mark_tested(field, chosen, OTHER, test)
    return chosen


def _mark_equal(field: Field, chosen: Bool, operands: Sequence[Any]) -> None:
    """Mark the values that equal one of the operands."""
    wanted: dict[int, list[Any]] = {}
    if len(operands) > 1 and {str}.issuperset(map(type, operands)):
        wanted[STRING], operands = utf8_each(operands), ()
    for operand in operands:
        for kind, key in _held(operand):
            wanted.setdefault(kind, []).append(key)
    for kind, keys in wanted.items():
        if field.has(kind):
            chosen[field.starts[kind] + _places(field, kind, keys)] = True


def _places(field: Field, kind: int, keys: list[Any]) -> Int64:
    """Return where those of some keys are that are among the values of a kind."""
    if kind in FLAGS:
        return np.zeros(1, np.int64)
    if kind in NUMBERS:
        numbers = field.numbers_of(kind)
        sought = np.array(keys, numbers.dtype)
        places = np.minimum(np.searchsorted(numbers, sought), len(numbers) - 1)
        found: Int64 = places[numbers[places] == sought]
        return found
    return find_strings(field.strings_of(kind), keys)


def find_strings(strings: StringRange, keys: list[bytes]) -> Int64:
    """Return where those of some keys are that are among sorted strings."""
    # Taking a string out costs most, so every so manieth is taken once, and tells for each
    # key where to look.
    step = max(1, len(strings) // len(keys))
    marks = [strings[place] for place in range(0, len(strings), step)]
    found = []
    for key in keys:
        after = bisect_right(marks, key) * step
        place = bisect_left(strings, key, max(0, after - step), min(after, len(strings)))
        if place < len(strings) and strings[place] == key:
            found.append(place)
    return np.array(found, np.int64)


def _mark_ordered(field: Field, chosen: Bool, name: str, operand: Any) -> None:
    """Mark the values that are less than an operand, or more."""
    number = type(operand) in (int, float)  # of either kind, compared exactly as Python does
    for kind, key in [(WHOLE, operand), (REAL, operand)] if number else _held(operand):
        codes, ranked = field.codes_of(kind), field.ranked(kind)
        bisect = bisect_left if name in ("$lt", "$gte") else bisect_right
        edge = codes.start + bisect(ranked, key)
        chosen[slice(codes.start, edge) if name in ("$lt", "$lte") else slice(edge, codes.stop)] = (
            True
        )


_FLAG_OF = {None: NULL, False: FALSE, True: TRUE}


def _held(operand: Any) -> list[tuple[int, Any]]:
    """Return how fields hold what equals an operand: the kind, and the value."""
    kind = type(operand)
    if operand is None or kind is bool:
        return [(_FLAG_OF[operand], None)]
    if kind is int or kind is float:
        return _held_number(operand)
    if kind is str:
        return [(STRING, utf8(operand))]
    if kind is timedelta:  # an operand of $date
        return [(DATE, ticks(operand)), (MOMENT, ticks(operand))]
    if kind is date or kind is datetime:
        return [(DATE if kind is date else MOMENT, ticks(instant_of(operand) or timedelta()))]
    return []


def _held_number(number: float) -> list[tuple[int, Any]]:
    if -(2**63) <= number < 2**63 and number == int(number):
        return [(WHOLE, int(number))]
    try:
        return [(REAL, float(number))] if float(number) == number else []
    except OverflowError:
        return []


def _mark_prefix(field: Field, chosen: Bool, prefix: bytes) -> None:
    start, strings = field.starts[STRING], field.strings_of(STRING)
    first = bisect_left(strings, prefix)
    last = bisect_right(strings, prefix, key=lambda string: string[: len(prefix)])
    chosen[start + first : start + last] = True


def _mark_tested(field: Field, chosen: Bool, kind: int, test: Test) -> None:
    chosen[field.codes_of(kind)] = [test(value, True) for value in field.values(kind)]


def _mark_dated(field: Field, chosen: Bool, name: str, operand: Any) -> None:
    """Mark the strings that name an instant which passes."""
    instants = field.instants
    if instants is None:
        instants = field.instants = instants_of(field.strings_of(STRING))
    codes = field.codes_of(STRING)
    if name == "$in":
        chosen[codes] = np.isin(instants, np.array(list(map(ticks, operand)), np.int64))
    else:
        chosen[codes] = _ORDERINGS[name](instants, ticks(operand)) & (instants != NO_INSTANT)


# --- lists and dicts ------------------------------------------------------------------------------


def _nested(fields: Fields, field: Field, condition: Condition) -> Iterator[Bool]:
    """Yield which documents pass by a list or a dict."""
    name, operand, path = condition.operator, condition.operand, condition.path
    if name in ("$contains", "$icontains"):
        if field.has(LIST):
            yield _containing(fields, condition)
    elif name in ("$eq", "$in"):
        for member in operand if name == "$in" else (operand,):
            if type(member) in (list, dict):
                yield _equal(fields, path, member)


def _equal(fields: Fields, path: Path, operand: Any) -> Bool:
    """Return which documents have an equal value."""
    field = fields.find(path)
    if field is None:
        return np.full(fields.count, operand is None)
    if type(operand) is list:
        return _equal_lists(fields, path, field, operand)
    if type(operand) is dict:
        return _equal_dicts(fields, path, field, operand)
    return field.spread(_equal_values(field, operand), operand is None, fields.count)


def _equal_values(field: Field, operand: Any) -> Bool:
    return _choose(field, "$eq", operand, lambda value, _: equal(value, operand))


def _containing(fields: Fields, condition: Condition) -> Bool:
    """Return which documents have a list with an element that passes."""
    mask = np.zeros(fields.count, np.bool_)
    elements = fields.find((*condition.path, None))
    if elements is None or elements.documents is None:  # all lists are empty
        return mask
    if condition.operator == "$contains":
        chosen = _equal_values(elements, condition.operand)
    else:
        chosen = np.zeros(len(elements), np.bool_)
        _mark_tested(elements, chosen, STRING, lambda value, _: condition.test([value], True))
    mask[elements.documents[chosen.take(elements.codes)]] = True
    return mask


def _equal_lists(fields: Fields, path: Path, field: Field, operand: list[Any]) -> Bool:
    """Return which documents have a list of equal elements."""
    lists = np.zeros(len(field), np.bool_)
    lists[field.codes_of(LIST)] = True
    mask = field.spread(lists, False, fields.count)
    elements = fields.find((*path, None)) if field.has(LIST) else None
    if elements is None or elements.documents is None:  # all lists are empty
        return mask if not operand else np.zeros_like(mask)
    documents = elements.documents
    starts = np.flatnonzero(np.append(True, documents[1:] != documents[:-1]))
    if not operand:
        mask[documents[starts]] = False
        return mask
    starts = starts[np.diff(np.append(starts, len(documents))) == len(operand)]
    for place, item in enumerate(operand):
        starts = starts[_equal_values(elements, item).take(elements.codes[starts + place])]
    mask[:] = False
    mask[documents[starts]] = True
    return mask


def _equal_dicts(fields: Fields, path: Path, field: Field, operand: dict[str, Any]) -> Bool:
    """Return which documents have a dict of the same keys and equal values."""
    shapes, shape = field.strings_of(SHAPE), utf8(shape_of(operand))
    chosen = np.zeros(len(field), np.bool_)
    first = field.starts[SHAPE] + bisect_left(shapes, shape)
    chosen[first : field.starts[SHAPE] + bisect_right(shapes, shape)] = True
    mask = field.spread(chosen, False, fields.count)
    for key, item in operand.items():
        if mask.any():
            mask &= _equal(fields, (*path, key), item)
    return mask
