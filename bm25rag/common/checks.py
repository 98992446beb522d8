"""Checks of arguments, with one wording for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

# Of a weight: sums of products with such ones stay far below the largest float32 and float64.
LARGEST_WEIGHT = 1e30
# As float32 has it, a little more: what an index has stored can be added again.
LARGEST_STORED = float(np.float32(LARGEST_WEIGHT))
# Levels of dicts and lists in metadata.
DEEPEST = 100


def check_count(name: str, value: object, *, least: int = 0) -> int:
    """Return ``value`` as an ``int`` of at least ``least``; bools and floats are refused.

    It raises ``TypeError`` for what is no integer, ``ValueError`` for one that is smaller.
    """
    if type(value) is int and value >= least:
        return value
    message = f"{name} must be an integer >= {least}, got {_shown(value)}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(message)
    if value < least:
        raise ValueError(message)
    return int(value)


def check_real(name: str, value: object, low: float, high: float) -> float:
    """Return ``value`` as a ``float`` in ``[low, high]``; a bool is no number.

    It raises ``TypeError`` for what is no number, ``ValueError`` for NaN and what is out of range.
    """
    if type(value) is float and low <= value <= high:
        return value
    message = f"{name} must be a number{_range(low, high)}, got {_shown(value)}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise TypeError(message)
    try:
        real = float(value)
    except OverflowError:
        raise ValueError(message) from None
    if math.isnan(real) or not low <= real <= high:
        raise ValueError(message)
    return real


def check_weight(name: str, of: object, weight: object, largest: float = LARGEST_WEIGHT) -> float:
    """Return the weight of something, a term or a question, as ``check_real`` does."""
    return check_real(f"{name}[{of!r:.100}]", weight, -largest, largest)


def _shown(value: object) -> str:
    try:
        return f"{value!r:.100}"
    except ValueError:
        return "an integer of more digits than Python writes"


def _range(low: float, high: float) -> str:
    if high == math.inf:
        return "" if low == -math.inf else f" >= {low:g}"
    return f" from {low:g} to {high:g}"


def check_flag(name: str, value: object) -> bool:
    """Return ``value``, which may be NumPy's, as a ``bool``; raise ``TypeError`` otherwise."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r:.100}")
    return bool(value)


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``.

    It raises ``TypeError`` for what is no string, ``ValueError`` for another one.
    """
    listed = ", ".join(repr(choice) for choice in choices)
    message = f"{name} must be one of {listed}, got {value!r:.100}"
    if not isinstance(value, str):
        raise TypeError(message)
    if value not in choices:
        raise ValueError(message)
    return value


def check_sequence(name: str, value: object, of: str) -> Iterable[Any]:
    """Return ``value`` if it is an iterable, but not a string, bytes, a mapping or a data frame.

    Columns of Arrow become lists of Python's values. It raises ``TypeError`` if it is one of these.
    """
    if type(value) is list:  # as most are
        return value
    message = f"{name} must be an iterable of {of}, got {type(value).__name__}"
    table = hasattr(value, "columns")
    if isinstance(value, Mapping) or table:  # it would yield its keys
        lone = {"queries": "a query with weights", "vectors": "one vector", "metadata": "one dict"}
        hint = f"put {lone[name]} into a list, or " if name in lone else ""
        raise TypeError(f"{message}; {hint}pick one column of it, such as frame['text']")
    scalar = getattr(value, "ndim", 1) == 0  # an array of NumPy that cannot be iterated over
    if scalar or isinstance(value, (str, bytes, bytearray)) or not isinstance(value, Iterable):
        raise TypeError(message)
    listed: Callable[[], list[Any]] | None = getattr(value, "to_pylist", None)
    return value if listed is None else listed()


def check_strings(name: str, values: object) -> list[str]:
    """Return strings as a list; raise ``TypeError`` for a bare string, and for what is none."""
    strings = list(check_sequence(name, values, "str"))
    for position, string in enumerate(strings):
        if not isinstance(string, str):
            raise TypeError(f"{name}[{position}] must be a str, got {string!r:.100}")
    return strings


def are_strings(values: Sequence[Any]) -> bool:
    """Whether all of ``values`` are strings; joining them is faster than checking each."""
    try:
        "".join(values)
    except TypeError:
        return False
    return True


def check_ids(ids: Iterable[str | int]) -> list[str]:
    """Return ids as a list; raise ``TypeError`` for a bare string or what is no id."""
    return [check_id(f"ids[{n}]", id) for n, id in enumerate(check_sequence("ids", ids, "str"))]


def check_id(name: str, id: object) -> str:
    """Return an id, a string or an integer, as a plain ``str``; raise ``TypeError`` for others."""
    if isinstance(id, str):
        return str.__str__(id)  # NumPy's strings, enums and other subclasses become plain strings
    if isinstance(id, (int, np.integer)) and not isinstance(id, bool):
        return str(int(id))
    raise TypeError(f"{name} must be a str or an int, got {type(id).__name__}")
