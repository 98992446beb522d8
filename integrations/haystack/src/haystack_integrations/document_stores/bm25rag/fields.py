"""Statistics of the fields in the meta of many documents, as Haystack defines them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Meta = dict[str, Any]


def field_name(field: object) -> str:
    """Return the name of a field without the prefix ``meta.``."""
    if not isinstance(field, str):
        raise TypeError(f"metadata_field must be a str, got {type(field).__name__}")
    return field.removeprefix("meta.")


def unique_values(metas: Iterable[Meta], field: str) -> list[Any]:
    """Return the distinct values of a field except null, ordered by how they print.

    Values of different types are distinct, even 1, 1.0 and True.
    """
    values = (meta.get(field) for meta in metas)
    unique = {_identity(value): value for value in values if value is not None}
    return sorted(unique.values(), key=lambda value: (str(value), type(value).__name__))


def _identity(value: Any) -> tuple[type, str | int]:
    kind = type(value)
    if kind is int or kind is str:  # of which there may be many
        return kind, value
    return kind, json.dumps(value, sort_keys=True, default=repr)


def types_of_fields(metas: Iterable[Meta]) -> dict[str, dict[str, str]]:
    """Return the type of each field's last value: boolean, int, float or keyword."""
    names = {bool: "boolean", int: "int", float: "float"}
    return {
        field: {"type": names.get(type(value), "keyword")}
        for meta in metas
        for field, value in meta.items()
        if value is not None
    }


def least_and_greatest(metas: Iterable[Meta], field: str) -> dict[str, Any]:
    """Return the minimum and maximum of the numbers or strings; ``None`` for a mixture."""
    given = (meta.get(field) for meta in metas)
    # NaN has no order, and would make the result depend on its position.
    values = [value for value in given if isinstance(value, int | float | str) and value == value]
    try:
        return {"min": min(values), "max": max(values)}
    except (TypeError, ValueError):  # mixed types, or no values
        return {"min": None, "max": None}
