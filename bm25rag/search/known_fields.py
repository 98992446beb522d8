"""Whether the documents have the fields that a filter relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from typing import Any

from bm25rag.common.caller import warn
from bm25rag.errors import FilterError, FilterWarning
from bm25rag.filters import And, Condition, Demand, Filter, Operator, escape_key, parse_filter
from bm25rag.filters.dialects import show
from bm25rag.filters.operators import Comparison, ContainsAll, Equals, Exists, In
from bm25rag.search.snapshot import Snapshot

# Fields that a message names.
_SHOWN = 10
# Conditions that one warning names.
_WARNED = 3
# Operands of a condition that are tried as values of another type.
_SAMPLE = 20


def check_demands(
    demands: Iterable[Demand],
    has: Callable[[tuple[str | None, ...]], bool],
    named: Callable[[], Iterable[tuple[str, ...]]],
) -> None:
    """Check what a filter demands of the documents: whether they have its fields.

    ``has`` says whether any document has a field, or a list there if its path ends in ``None``,
    ``named`` returns the fields that documents have
    or had. A ``FilterError`` says that ``$strict`` is around a field that no document has, a
    ``FilterWarning``, once for a filter, that the name of such a field looks like an operator, or
    that a list is compared with what is none.
    """
    odd: list[str] = []
    for demand in demands:
        keys = _keys(demand.path)
        of_list = len(keys) < len(demand.path)
        if has(demand.path) or (of_list and not has(keys)):
            continue
        name = _name(keys)
        if demand.meant:
            lacking = "a list in " if of_list else ""
            message = (
                f"no document has {lacking}the field {name!r}, so nothing equals it: did you mean "
            )
            odd.append(f"filter at {demand.at:.100}: {message}{demand.meant}?")
            if demand.strict:
                raise FilterError(odd[-1])
            continue
        paths = {_name(path): path for path in named()}
        nearest = get_close_matches(name, paths, n=len(paths) or 1, cutoff=0.0)
        known = [one for one in nearest[: 10 * _SHOWN] if has(paths[one])][:_SHOWN]
        likely = get_close_matches(name, known, n=1)
        hint = f", did you mean {likely[0]!r}?" if likely else ";"
        listed = ", ".join(map(repr, known)) or "none"
        more = " ..." if len(known) == _SHOWN else ""
        raise FilterError(
            f"filter at {demand.at}: no document has the field {name!r}{hint} "
            f"known fields: {listed}{more}"
        )
    if odd:
        more = f"\nand {len(odd) - _WARNED:,} more like these" if len(odd) > _WARNED else ""
        warn("\n".join(odd[:_WARNED]) + more, FilterWarning)


def has_field(snapshot: Snapshot, path: tuple[str | None, ...]) -> bool:
    """Whether a living document has a value at a path; a list, if that ends in ``None``."""
    keys = _keys(path)
    operator = Exists(True) if len(keys) == len(path) else ContainsAll(())
    return _passes_some(snapshot, Condition(keys, operator))


def _passes_some(snapshot: Snapshot, filter: Filter) -> bool:
    from bm25rag.search.filter_masks import masks_of

    return any(masks_of([view], filter)[0].count for view in snapshot.views)


def warn_of_types(snapshot: Snapshot, filter: Filter) -> None:
    """Warn if a filter passes nothing because documents have values of another type.

    What is meant passes something: what lists contain, or numbers in place of strings. Where the
    filter is strict about a field, that is a ``FilterError``.
    """
    for part in _conditions(filter):
        if _passes_some(snapshot, part):
            continue
        name, operator = _name(part.path), part.operator
        for meant in _of_other_types(operator):
            other = None
            with suppress(FilterError):  # a number that no document can have
                other = parse_filter({name: meant})
            if other is not None and _passes_some(snapshot, other):
                given = show({name: {operator.name: operator.operand}})
                message = (
                    f"no document passes {given}, but some would whose value has another type: "
                    f"did you mean {show({name: meant})}?"
                )
                if any(demand.strict for demand in filter.demands):
                    raise FilterError(message)
                warn(message, FilterWarning)
                break


def _conditions(filter: Filter) -> Iterator[Condition]:
    """Yield the conditions on metadata that all documents that pass meet."""
    if isinstance(filter, And):
        for part in filter.parts:
            yield from _conditions(part)
    elif isinstance(filter, Condition):
        yield filter


def _of_other_types(operator: Operator) -> Iterator[Any]:
    """Yield what may be meant by an operator, for values of other types than its operand."""
    if isinstance(operator, Equals | In):
        members = [*islice(operator.members, _SAMPLE)]
        yield {"$containsAny": members}  # $contains would look into strings, too
        others = [other for one in members for other in _read_otherwise(one)]
        yield from others if isinstance(operator, Equals) else [{"$in": others}]
    elif isinstance(operator, Comparison) and type(operator.operand) is str:
        yield from ({operator.name: other} for other in _read_otherwise(operator.operand))


def _read_otherwise(value: object) -> Iterator[int | float | str]:
    """Yield the number that a string is, or the string of a number."""
    with suppress(ValueError):  # it is none, or too long
        if type(value) is int or type(value) is float:
            yield str(value)
        elif type(value) is str:
            yield int(value) if value.lstrip("+-").isdecimal() else float(value)


def fields_of(snapshot: Snapshot) -> set[tuple[str, ...]]:
    """Return the paths at which documents, or such as are deleted, have values."""
    parts = [view.segment.fields for view in snapshot.views]
    parts += [one.fields for view in snapshot.views for one in view.changes if one.changed]
    paths = {_keys(path) for fields in parts for path in fields if None not in path}
    return {path for path in paths if not snapshot.is_restricted or has_field(snapshot, path)}


def _keys(path: tuple[str | None, ...]) -> tuple[str, ...]:
    return tuple(key for key in path if key is not None)


def _name(path: tuple[str, ...]) -> str:
    return ".".join(map(escape_key, path))
