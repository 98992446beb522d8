"""From the values that users have to those that are stored: JSON, dates and datetimes.

Other values are accepted if they have one obvious form among these, since loaders, splitters
and data frames produce them. ``docs/metadata.md`` says what comes back for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np

from bm25rag.common.checks import DEEPEST
from bm25rag.errors import MetadataError

# JSON's own types, whose values need no check: Python writes and reads NaN and infinities too.
PLAIN_TYPES = frozenset({str, int, float, bool, type(None)})
_FIRST_DAY, _LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31T23:59:59.999999")
_EXPECTED = "expected str, int, float, bool, None, list, dict, date or datetime"


class UnstorableError(ValueError):
    """What is wrong with a value; ``keys`` lead to it, the innermost first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.keys: list[str] = []


def plain_metadata(metadata: object, document: str) -> dict[str, Any]:
    """Return metadata, a mapping or ``None``, in the form that is written.

    If a value has no form that can be stored, ``MetadataError`` names document and key; what is no
    mapping raises ``TypeError``.
    """
    if metadata is None:
        return {}
    if type(metadata) is not dict and not isinstance(metadata, Mapping):
        raise TypeError(
            f"metadata of document {document!r} must be a dict or None, got {metadata!r:.100}"
        )
    try:
        return _plain_dict(metadata, 0)
    except UnstorableError as error:
        key = ".".join(error.keys[:-4:-1] if len(error.keys) > DEEPEST else error.keys[::-1])
        raise MetadataError(document, key, str(error)) from None


def plain_value(value: object) -> Any:
    """Return one value in the form that is written; raise ``UnstorableError``."""
    return _plain(value, 0)


def copy_metadata(metadata: Any) -> Any:
    """Copy metadata that the caller may change; nesting beyond the limit is refused later."""
    try:
        return _copy(metadata, DEEPEST + 1)
    except RecursionError:
        return metadata


def _copy(value: Any, levels: int) -> Any:
    kind = type(value)
    if kind in PLAIN_TYPES:
        return value
    if kind is not dict:  # to ask for other kinds takes as long as to copy most dicts
        if isinstance(value, np.ndarray):
            if value.dtype.kind != "O":
                return value.copy()
            value = value.tolist()
        if not isinstance(value, (Mapping, list, tuple)):
            return value
    if not levels:
        raise RecursionError
    if kind is dict and PLAIN_TYPES.issuperset(map(type, value.values())):  # most of them
        return value.copy()
    if kind is dict or isinstance(value, Mapping):
        return {key: _copy(item, levels - 1) for key, item in value.items()}
    return [_copy(item, levels - 1) for item in value]


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in PLAIN_TYPES:
        return value
    encode = _ENCODERS.get(kind) or next(
        (encode for base, encode in _ENCODERS.items() if isinstance(value, base)), None
    )
    if encode is not None:
        return encode(value, depth)
    if any(_is_a(value, *names) for names in _AS_STR):
        return str(value)
    if _is_a(value, "pandas._libs.missing", "NAType"):
        return None
    raise UnstorableError(f"{_EXPECTED}, got {kind.__name__}{_hint(value)}")


# Classes whose values are stored as their ``str``.
_AS_STR = (("uuid", "UUID"), ("decimal", "Decimal"), ("pathlib", "PurePath"))


def _is_a(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class; if it is, its module has been imported already."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def _hint(value: object) -> str:
    if isinstance(value, Set):
        return "; a set has no order: store sorted(...) of it"
    if isinstance(value, (bytes, bytearray)):
        return "; decode it, or keep it as the payload"
    if hasattr(value, "isoformat"):
        return "; store its .isoformat()"
    if hasattr(value, "tolist"):
        return "; store its .tolist()"
    return "; store str() of it, or leave it out"


def _plain_list(value: Any, depth: int) -> list[Any]:
    _check_depth(depth)
    if PLAIN_TYPES.issuperset(map(type, value)):
        return list(value)
    plain = []
    for number, item in enumerate(value):
        try:
            plain.append(_plain(item, depth + 1))
        except UnstorableError as error:
            error.keys.append(str(number))
            raise
    return plain


def _plain_dict(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    _check_depth(depth)
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            key = plain_key(key)
        if type(item) not in PLAIN_TYPES:
            try:
                item = _plain(item, depth + 1)
            except UnstorableError as error:
                error.keys.append(key)
                raise
        plain["$" + key if key[:1] == "$" else key] = item
    if len(plain) < len(value):
        raise UnstorableError("two keys are the same as str, such as 'a' and an enum of 'a'")
    return plain


def plain_key(key: object) -> str:
    """Return a key of a dict in the form that is written; raise ``UnstorableError``."""
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    raise UnstorableError(
        f"the key {key!r:.100} must be a str, got {type(key).__name__}; store str() of it"
    )


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise UnstorableError(f"nested more than {DEEPEST} levels deep")


def _plain_datetime(value: datetime, depth: int) -> dict[str, str] | None:
    if value != value:  # NaT of pandas, which is a datetime by its type only
        return None
    try:
        if type(value) is not datetime:  # a subclass may write more than the microseconds we hold
            day = date(value.year, value.month, value.day)
            value = datetime.combine(day, value.time(), value.tzinfo)
        offset = value.utcoffset()
    except (ValueError, OverflowError) as error:  # a year or an offset beyond Python's
        raise UnstorableError(f"a datetime that Python has none for: {error}") from None
    if offset and abs(offset) < timedelta(seconds=1):
        # Python writes such an offset, but does not read it.
        raise UnstorableError(
            f"a datetime with a time zone offset of {offset.total_seconds():g} seconds; expected "
            "none or at least one second: store value.astimezone(timezone.utc)"
        )
    return {"$datetime": value.isoformat()}


def _plain_array(value: Any, depth: int) -> Any:
    """Return a NumPy array or scalar as Python values."""
    _check_depth(depth)
    kind = value.dtype.kind
    if kind == "M":
        days = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
        value = value.astype("M8[D]" if days else "M8[us]")
    plain = value.tolist()
    # A time that Python cannot hold would come out as a bare count of nanoseconds or days.
    if kind in "mV" or (kind == "M" and np.any((value < _FIRST_DAY) | (value > _LAST_DAY))):
        raise UnstorableError(f"{_EXPECTED}, got numpy.{value.dtype}; store str() of it")
    if type(plain) is type(value) and kind != "O":  # more bits than Python's types
        plain = float(value) if kind == "f" else complex(value)
    return _plain(plain, depth + 1)


def _plain_enum(value: Enum, depth: int) -> Any:
    _check_depth(depth)  # a value may be a member again
    return _plain(value.value, depth + 1)


def _plain_number(value: Any, depth: int) -> int | float:
    """Return the plain number of a subclass's value."""
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


# By type; a value of a subclass takes the first that fits.
_ENCODERS: dict[type, Callable[[Any, int], Any]] = {
    list: _plain_list,
    dict: _plain_dict,
    datetime: _plain_datetime,
    date: lambda day, depth: {"$date": date(day.year, day.month, day.day).isoformat()},
    tuple: _plain_list,
    Enum: _plain_enum,
    np.generic: _plain_array,
    np.ndarray: _plain_array,
    str: lambda value, depth: str.__str__(value),
    int: _plain_number,
    float: _plain_number,
    Mapping: _plain_dict,
}
