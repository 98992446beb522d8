"""Whether the documents have the fields that a filter relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

from bm25rag.common.caller import warn
from bm25rag.errors import FilterError, FilterWarning
from bm25rag.filters import And, Condition, Demand, Filter, Not, escape_key
from bm25rag.filters.operators import ContainsAll, Equals, Exists, In
from bm25rag.kernels.records import Allowed
from bm25rag.search.snapshot import Snapshot

# Fields that a message names.
_SHOWN = 10
# Conditions that one warning names.
_WARNED = 3
_IS_LIST = ContainsAll(())


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
    present = Condition(keys, Exists(True) if len(keys) == len(path) else _IS_LIST)
    return any(mask.count for mask in _masks_of(snapshot, present))


def _masks_of(snapshot: Snapshot, filter: Filter) -> Iterator[Allowed]:
    """Yield which documents of each segment pass; the next one when it is asked for."""
    from bm25rag.search.filter_masks import masks_of

    for view in snapshot.views:
        yield from masks_of([view], filter)


def warn_of_lists(snapshot: Snapshot, filter: Filter) -> None:
    """Warn if a filter passes nothing because it equates a field of lists with what is in them."""
    for part in filter.parts if isinstance(filter, And) else (filter,):
        if not isinstance(part, Condition) or not isinstance(part.operator, Equals | In):
            continue
        compound = any(isinstance(one, list | dict) for one in part.operator.members)
        if compound or not has_field(snapshot, (*part.path, None)):
            continue
        others = And((Condition(part.path, Exists(True)), Not(Condition(part.path, _IS_LIST))))
        if not any(mask.count for mask in _masks_of(snapshot, others)):
            name = _name(part.path)
            wanted, is_one = part.operator.operand, isinstance(part.operator, Equals)
            meant = {"$contains": wanted} if is_one else {"$containsAny": [*wanted]}
            warn(
                f"all documents that have the field {name!r} have lists there, which equal nothing "
                f"but lists: did you mean { {name: meant}!r:.200}?",
                FilterWarning,
            )


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
