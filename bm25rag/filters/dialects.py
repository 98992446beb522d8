"""The right spelling of what other filter languages write, and of operators without their ``$``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from reprlib import Repr
from typing import Any

_OPERATORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("eq", "equal", "equals", "term", "==", "="), ("$eq",)),
    **dict.fromkeys(("ne", "neq", "noteq", "notequal", "notequals", "!=", "<>"), ("$ne",)),
    **dict.fromkeys(("lt", "lessthan", "before", "<"), ("$lt",)),
    **dict.fromkeys(("lte", "le", "lessthanequal", "lessthanorequals", "<="), ("$lte",)),
    **dict.fromkeys(("gt", "greaterthan", "after", ">"), ("$gt",)),
    **dict.fromkeys(("gte", "ge", "greaterthanequal", "greaterthanorequals", ">="), ("$gte",)),
    **dict.fromkeys(("between", "range"), ("$gte", "$lte")),
    **dict.fromkeys(("in", "isin", "anyof", "oneof", "terms"), ("$in",)),
    **dict.fromkeys(("nin", "notin", "noneof"), ("$nin",)),
    **dict.fromkeys(
        ("contains", "includes", "elemmatch", "listcontains", "stringcontains"), ("$contains",)
    ),
    **dict.fromkeys(("any", "containsany", "arraycontainsany", "overlaps"), ("$containsAny",)),
    **dict.fromkeys(("all", "containsall", "arraycontainsall"), ("$containsAll",)),
    **dict.fromkeys(("icontains", "ilike"), ("$icontains",)),
    **dict.fromkeys(
        ("like", "match", "matchphrase", "textmatch", "regex", "regexp", "wildcard"),
        ("$contains", "$icontains", "$startswith"),
    ),
    **dict.fromkeys(("startswith", "prefix"), ("$startswith",)),
    **dict.fromkeys(("exists", "isnull", "isempty"), ("$exists",)),
    "date": ("$date",),
    "not": ("$not",),
}
_LOGICAL = {
    **dict.fromkeys(
        ("and", "andall", "must", "filter", "filters", "query", "where", "bool", "conditions"),
        "$and",
    ),
    **dict.fromkeys(("or", "orall", "should"), "$or"),
    **dict.fromkeys(("not", "mustnot", "nor"), "$not"),
    "strict": "$strict",
}
# What Elasticsearch has above a field, and it and Qdrant below one.
_QUERIES = ("term", "terms", "match", "matchphrase", "range", "prefix", "wildcard", "regexp")
_BELOW = {"value": "$eq", "query": "$contains", "text": "$contains", "any": "$in", "except": "$nin"}
_IDS, _METADATA = (("id",), ("_id",)), ("meta", "metadata")
# How deep a value is looked into, and shown, and at how many of its items: it may contain itself.
_LEVELS, _ITEMS = 8, 200
# Bits of an integer that is written: Python may refuse to write longer ones.
_LONGEST = 1000
# What others call the entries of a condition.
_OPERATOR = ("operator", "op", "comparator")
_FIELD = ("field", "key", "attribute", "name", "path")

_SHOWN = Repr()
_SHOWN.maxlevel = _LEVELS
_SHOWN.maxdict = _SHOWN.maxlist = _SHOWN.maxtuple = 20
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 100


def suggest(name: str, known: Iterable[str]) -> str:
    """Return which of some known names an unknown one may stand for, to go into a message."""
    listed, key = list(known), _bare(name)
    meant = [one for one in (*_OPERATORS.get(key, ()), _LOGICAL.get(key, "")) if one in listed]
    if not meant:
        from difflib import get_close_matches

        spelled = {one.lower(): one for one in listed}
        meant = [spelled[one] for one in get_close_matches(name.lower(), spelled, 1, 0.7)]
    return f", did you mean {' or '.join(meant)}?" if meant else ""


def mistaken(
    name: str, path: tuple[str, ...], value: Any
) -> tuple[tuple[str | None, ...], str] | None:
    """Find what looks like an operator in a field's name, or in a value that it is to equal.

    If something does, or the value is a list, of which any may be meant, return the path of a
    ``Demand`` and what may be meant instead; the documents must meet it if nothing else is meant.
    ``name`` is the path as the filter has it.
    """
    if path in _IDS:
        return path, show({"$id": value})
    if path[0] in _METADATA and path[1:]:
        return path, show({".".join(path[1:]): value})
    if isinstance(value, Mapping) and any(map(is_operator, value)):
        return None
    value = _beginning(value)
    if len(path) == 1 and (meant := _respelled_entry(path[0], value)) is not None:
        return path, show(meant)
    if "__" in path[-1]:  # as Django writes it
        field, _, lookup = path[-1].rpartition("__")
        if field and _bare(lookup) in _OPERATORS:
            spelled = ".".join([*path[:-1], field.replace("__", ".")])
            return path, show({spelled: {_OPERATORS[_bare(lookup)][0]: value}})
    if isinstance(value, list) and value:
        return (*path, None), show({name: {"$in": value}})
    return _within(path, value) if isinstance(value, dict) else None


def spelled_out(spec: Mapping[str, Any]) -> tuple[tuple[str, ...], str] | None:
    """Find a condition whose field, operator and value are three entries of a dict.

    The result is as that of ``mistaken``; the field is that of the operator.
    """
    if len(spec) > 1:  # every search with a filter comes here
        for name, value in spec.items():
            lower = name.lower()
            if (type(value) is str and lower in _OPERATOR) or (
                type(value) is dict and lower in _QUERIES and not any(map(is_operator, value))
            ):
                beginning = _beginning(spec)
                meant = _respelled(beginning)
                is_ours = meant is beginning or any(map(is_operator, spec))
                return None if is_ours else ((name,), show(meant))
    return None


def _respelled(spec: Any) -> Any:
    """Return the condition that a dict spells out, or those of a list; others unchanged."""
    if isinstance(spec, list):
        return [*map(_respelled, spec)]
    if not isinstance(spec, dict):
        return spec
    parts = {_bare(name): value for name, value in spec.items()}
    asked = next((_bare(parts[name]) for name in _OPERATOR if name in parts), "")
    field = next((parts[name] for name in _FIELD if name in parts), None)
    if isinstance(field, list):  # Weaviate's path, whose value is valueText and the like
        field = ".".join(map(str, field))
    if isinstance(field, str) and asked in _OPERATORS:
        values = sorted(name for name in parts if name.startswith("value"))  # "value" is the first
        return {field: {_OPERATORS[asked][0]: parts[values[0]] if values else None}}
    if isinstance(field, str) and (query := next(filter(parts.__contains__, _QUERIES), "")):
        return _compared(field, query, parts[query])
    several = next((parts[name] for name in ("conditions", "operands") if name in parts), None)
    if several is not None and asked in _LOGICAL:
        return _logical(_LOGICAL[asked], _respelled(several))
    entries = [_respelled_entry(name, value) for name, value in spec.items()]
    if None in entries or not entries:
        return spec
    return entries[0] if len(entries) == 1 else {"$and": entries}


def _respelled_entry(name: object, value: Any) -> dict[str, Any] | None:
    """Return what an entry of a dict stands for in Elasticsearch, Qdrant or Bedrock, if it does."""
    bare = _bare(name)
    if not isinstance(value, dict | list | tuple) or not value:
        return None
    if bare == "bool" and isinstance(value, dict):
        respelled = _respelled(value)
        return respelled if respelled is not value else {"$and": [value]}
    if bare in _LOGICAL:
        return _logical(_LOGICAL[bare], _respelled(value))
    ids = value.get("values") if isinstance(value, dict) else value
    if bare in ("hasid", "ids") and isinstance(ids, list):
        return {"$id": {"$in": [*map(str, ids)]}}
    if not isinstance(value, dict):
        return None
    if bare in _OPERATORS and value.keys() == {"key", "value"}:
        return {str(value["key"]): {_OPERATORS[bare][0]: value["value"]}}
    if len(value) > 1:
        return None
    ((field, operand),) = value.items()
    if bare == "exists" and field == "field" and isinstance(operand, str):
        return {operand: {"$exists": True}}
    is_field = isinstance(operand, dict) or _bare(field) not in _OPERATORS  # {"range": {"gte": 2}}
    return _compared(field, bare, operand) if bare in _QUERIES and is_field else None


def _compared(field: str, query: str, operand: Any) -> dict[str, Any]:
    if not isinstance(operand, Mapping):
        return {field: {_OPERATORS[query][0]: operand}}
    return {
        field: {
            _BELOW.get(_bare(name)) or _OPERATORS.get(_bare(name), (name,))[0]: value
            for name, value in operand.items()
        }
    }


def _within(path: tuple[str, ...], value: Mapping[str, Any]) -> tuple[tuple[str, ...], str] | None:
    for key, item in value.items():
        if not isinstance(key, str):
            return None  # no value has such a key, which is then refused
        below, bare = (*path, key), _bare(key)
        if bare in _OPERATORS:
            renamed = {
                operator: operand
                for name, operand in value.items()
                for operator in _OPERATORS.get(_bare(name), (name,))[:1]
            }
            return below, show({".".join(path): renamed})
        if bare in _LOGICAL and isinstance(item, dict | list | tuple):
            return below, show({_LOGICAL[bare]: [{".".join(path): "..."}, "..."]})
        if isinstance(item, dict) and (inner := _within(below, item)) is not None:
            return inner
    return None


def _logical(name: str, value: Any) -> dict[str, Any]:
    if name in ("$and", "$or"):
        return {name: value if isinstance(value, list | tuple) else [value]}
    return {name: value if isinstance(value, dict) else {"$or": value}}


def _beginning(value: Any, levels: int = _LEVELS, room: Iterator[int] | None = None) -> Any:
    """Copy the first of all items of a value, and what is nested or long not as a whole."""
    if isinstance(value, int) and value.bit_length() > _LONGEST:
        return "..."
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return value
    if not levels:
        return "..."
    room = iter(range(_ITEMS)) if room is None else room
    if isinstance(value, Mapping):
        items = zip(value.items(), room, strict=False)
        return {key: _beginning(item, levels - 1, room) for (key, item), _ in items}
    return [_beginning(item, levels - 1, room) for item, _ in zip(value, room, strict=False)]


def is_operator(name: object) -> bool:
    """Whether a key of a filter is an operator here."""
    return isinstance(name, str) and name.startswith("$")


def _bare(name: object) -> str:
    return str(name).lower().lstrip("$").replace("_", "").replace(" ", "").replace("-", "")


def show(filter: dict[str, Any]) -> str:
    """Return a filter as it is written, shortened."""
    shown = _SHOWN.repr(_beginning(filter))
    return shown if len(shown) <= 200 else shown[:200] + " ..."
