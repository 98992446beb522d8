"""Parses what the caller wrote into a tree; errors name the place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from bm25rag.errors import FilterError
from bm25rag.filters.dialects import is_operator, mistaken, spelled_out, suggest
from bm25rag.filters.nodes import (
    And,
    CallableFilter,
    Condition,
    Demand,
    Filter,
    IdCondition,
    IdSet,
    Not,
    Or,
    all_of,
)
from bm25rag.filters.operands import (
    COMPLEMENTS,
    DATE_READERS,
    FIELD_READERS,
    ID_READERS,
    OperandReader,
    check_depth,
    describe,
    read_key,
    refuse,
)
from bm25rag.filters.operators import OPERATORS, AsInstant

FilterSpec: TypeAlias = (
    dict[str, Any] | set[str] | frozenset[str] | Callable[[dict[str, Any]], object] | Filter
)
"""What ``filter=`` takes, beside None."""

_NAMES = ("$and", "$or", "$not", "$id", "$strict")
# Compiled when a filter first needs them.
_ESCAPE = r"(?s)\\(.?)"
_ESCAPABLE = (".", "$", "\\")
_PIECE = r"(?s)(?:\A|\.)((?:[^\\.]|\\.)*)"


def parse_filter(filter: FilterSpec | None) -> Filter | None:
    """Turn what the caller wrote into a tree, or into None if it filters nothing.

    Parameters
    ----------
    filter
        A dict in the filter language, a set of ids, a callable on the metadata, or a parsed filter,
        which is returned unchanged. None and ``{}`` filter nothing.

    Raises
    ------
    TypeError
        If it is none of these, or a set with a member that is not a string.
    FilterError
        If a dict is malformed; the message names the place.
    """
    if filter is None or isinstance(filter, Filter):
        return filter
    if isinstance(filter, dict) and not filter:
        return None
    expected = "expected a dict, a set of ids, a callable or None"
    if not isinstance(filter, dict | set | frozenset) and not callable(filter):
        if isinstance(filter, list | tuple):
            expected = f"{expected} (of a list of ids, give set(ids))"
        elif hasattr(filter, "__array__"):  # weight_mask= of bm25s
            expected = f"{expected} (of a mask, give set(itertools.compress(index.ids(), mask)))"
        raise TypeError(f"filter: {expected}, got {type(filter).__name__}")
    if isinstance(filter, set | frozenset) and (wrong := _non_string(filter)):
        raise TypeError(f"filter: expected ids as str in the set, got {wrong}")
    return _parse(filter, "", 1)


def check_rejecting(needs: str, filter: FilterSpec | None, parsed: Filter | None) -> Filter:
    """Return a parsed filter, which must reject something; ``needs`` says who needs that."""
    if parsed is None or parsed.rejects_nothing:
        kind = TypeError if parsed is None and filter != {} else ValueError
        raise kind(f"{needs} that rejects something, got {filter!r}")
    return parsed


def escape_key(key: str) -> str:
    r"""Escape a metadata key so that a filter takes it literally.

    ``a.b`` becomes ``a\.b``, ``$id`` becomes ``\$id``.
    """
    return re.sub(r"([\\.$])", r"\\\1", key)


def parse_path(path: object, name: str) -> tuple[str, ...]:
    """Split a path into the metadata, as it stands in a filter, into its keys.

    ``name`` is what messages call it; what is no path is a ``TypeError`` or a ``FilterError``.
    """
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a path in the metadata, got {describe(path)}")
    if path.startswith("$"):
        raise FilterError(
            f"{name}: expected a path; a field's own $ is written \\$, got {path!r:.100}"
        )
    return _path(path, name)


class _Subject(NamedTuple):
    """What a condition is about: the operators it takes, and how a condition is made."""

    readers: dict[str, OperandReader]
    make: Callable[[str, Any], Filter]
    dates: _Subject | None = None
    negatable: bool = True

    def known(self) -> list[str]:
        """List the operators for an error message."""
        nested = ["$date"] * (self.dates is not None) + ["$not"] * self.negatable
        return [*self.readers, *COMPLEMENTS, *nested]


def _of_metadata(path: tuple[str, ...]) -> _Subject:
    def make(name: str, operand: Any) -> Filter:
        return Condition(path, OPERATORS[name](operand))

    def make_dated(name: str, operand: Any) -> Filter:
        return Condition(path, AsInstant(OPERATORS[name](operand)))

    return _Subject(FIELD_READERS, make, _Subject(DATE_READERS, make_dated, negatable=False))


def _id_condition(name: str, operand: Any) -> Filter:
    if name == "$eq":
        return IdSet(frozenset([operand]))
    if name == "$in":
        return IdSet(frozenset(operand))
    return IdCondition(OPERATORS[name](operand))


_OF_ID = _Subject(ID_READERS, _id_condition)


def _parse(spec: Any, at: str, depth: int) -> Filter:
    """Parse a filter at the top, or in a list or a ``$not``."""
    check_depth(at, depth)
    if isinstance(spec, dict):
        named = {read_key(name, at, "names"): value for name, value in spec.items()}
        looks = spelled_out(named)
        read = _clause if looks is None else _equality
        parts = [read(name, one, _below(at, name), depth) for name, one in named.items()]
        if looks is None:
            return all_of(parts)
        return And(tuple(parts), (Demand(looks[0], at, strict=False, meant=looks[1]),))
    if isinstance(spec, set | frozenset):
        if wrong := _non_string(spec):
            refuse(at, f"expected ids as str in the set, got {wrong}")
        return IdSet(frozenset(map(str.__str__, spec)))
    if not callable(spec):
        refuse(at, f"expected a dict, a set of ids or a callable, got {describe(spec)}")
    return CallableFilter(spec)


def _non_string(ids: set[Any] | frozenset[Any]) -> str:
    """Name the type of a member that is not a string; empty if there is none."""
    return next((describe(member) for member in ids if not isinstance(member, str)), "")


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _clause(name: str, value: Any, at: str, depth: int) -> Filter:
    """Parse one entry of a filter dict."""
    if not name.startswith("$"):
        return _condition(name, value, at, depth)
    if name == "$id":
        return _field(_OF_ID, value, at, depth)
    if name == "$not":
        return Not(_parse(value, at, depth + 1))
    if name == "$strict":
        part = _parse(value, at, depth + 1)
        return And((part,), tuple(Demand(path, at) for path in dict.fromkeys(part.paths)))
    if name == "$and":
        return all_of(_parts(value, at, depth))
    if name != "$or":
        hint = "operators stand below a field; a field's own $ is written \\$"
        meant = suggest(name, _NAMES) or ";"
        refuse(at, f"unknown name{meant} known here: {', '.join(_NAMES)} ({hint})")
    return Or(tuple(_parts(value, at, depth)))


def _equality(name: str, value: Any, at: str, depth: int) -> Filter:
    return _field(_of_metadata(_path(name, at)), value, at, depth)


def _condition(name: str, value: Any, at: str, depth: int) -> Filter:
    """Parse a condition on a field of the metadata."""
    path = _path(name, at)
    looks = mistaken(name, path, value)
    if looks is None:
        return _field(_of_metadata(path), value, at, depth)
    try:
        condition = _field(_of_metadata(path), value, at, depth)
    except FilterError as error:
        if looks[0][-1] is None:  # what no list may hold is no better below $in
            raise
        raise FilterError(f"{error}; did you mean {looks[1]}?") from None
    return And((condition,), (Demand(looks[0], at, strict=False, meant=looks[1]),))


def _parts(value: Any, at: str, depth: int) -> list[Filter]:
    """Parse the list below ``$and`` or ``$or``."""
    if not isinstance(value, list | tuple) or not value:
        came = "an empty one" if isinstance(value, list | tuple) else describe(value)
        refuse(at, f"expected a non-empty list of filters, got {came}")
    return [_parse(part, f"{at}[{i}]", depth + 1) for i, part in enumerate(value)]


def _path(name: str, at: str) -> tuple[str, ...]:
    """Split a field's name at the dots that are not escaped."""
    if "\\" not in name:
        return tuple(name.split("."))
    if any(match[1] not in _ESCAPABLE for match in re.finditer(_ESCAPE, name)):
        refuse(at, "expected '.', '$' or a backslash after a backslash")
    return tuple(re.sub(_ESCAPE, r"\1", piece) for piece in re.findall(_PIECE, name))


def _field(subject: _Subject, value: Any, at: str, depth: int) -> Filter:
    """Parse what stands below a field: a dict of operators, or a value that it equals."""
    if isinstance(value, dict) and any(map(is_operator, value)):
        return _operators(subject, value, at, depth + 1)
    _refuse_buried_operators(value, at, depth + 1)
    return _operator(subject, "$eq", value, at, depth)


def _refuse_buried_operators(value: Any, at: str, depth: int) -> None:
    """Refuse ``{"a": {"b": {"$gt": 1}}}``, which as a value would silently match nothing."""
    if isinstance(value, dict):
        items = [(f"{at}.{name}", item) for name, item in value.items()]
        if name := next(filter(is_operator, value), None):
            hint = 'a nested field is written "a.b", a value with such a key stands below $eq'
            refuse(f"{at}.{name}", f"expected no operator inside a value ({hint})")
    elif isinstance(value, list | tuple):
        items = [(f"{at}[{i}]", item) for i, item in enumerate(value)]
    else:
        return
    check_depth(at, depth)
    for below, item in items:
        _refuse_buried_operators(item, below, depth + 1)


def _operators(subject: _Subject, spec: Any, at: str, depth: int) -> Filter:
    """Parse a dict of operators, which must not be empty."""
    check_depth(at, depth)
    if not isinstance(spec, dict) or not spec:
        came = "an empty one" if isinstance(spec, dict) else describe(spec)
        refuse(at, f"expected a dict of operators, got {came}")
    named = ((read_key(name, at, "names"), item) for name, item in spec.items())
    return all_of([_operator(subject, name, item, _below(at, name), depth) for name, item in named])


def _operator(subject: _Subject, name: str, operand: Any, at: str, depth: int) -> Filter:
    """Parse one operator and its operand."""
    if name == "$not" and subject.negatable:
        return Not(_operators(subject, operand, at, depth + 1))
    if name == "$date" and subject.dates is not None:
        if isinstance(operand, dict):
            return _operators(subject.dates, operand, at, depth + 1)
        return _operator(subject.dates, "$eq", operand, at, depth + 1)
    plain = COMPLEMENTS.get(name, name)
    if plain not in subject.readers:
        what = "unknown operator" if name.startswith("$") else "a field's name among operators"
        meant = suggest(name, subject.known()) or ";"
        refuse(at, f"{what}{meant} known here: {', '.join(subject.known())}")
    condition = subject.make(plain, subject.readers[plain](operand, at, depth + 1))
    return condition if plain == name else Not(condition)
