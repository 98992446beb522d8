"""Decay and Prior: what a document's metadata do to its score, as a bounded multiplier."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

import numpy as np

from bm25rag.common.arrays import Bool, Float64, Int64
from bm25rag.common.checks import check_real
from bm25rag.common.record import Record
from bm25rag.filters.parse import parse_path
from bm25rag.filters.values import instant, instant_of, ticks, value_at

__all__ = ["Decay", "DecayLike", "Prior", "Span", "parse_span", "read_decay"]

Span: TypeAlias = str | timedelta
"""A span of time: a number with a unit, such as ``"30d"``, or a ``timedelta``."""

# A score that is not negative is multiplied, and another divided, by no less.
_LEAST = 1e-9
# Float64 holds all integers up to here.
_EXACT = 1 << 53
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_SPAN = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})\s*")


class _Multiplier(Record):
    """A multiplier from ``floor`` to 1 for the value at a path of the metadata."""

    __slots__ = ("floor", "missing", "path")

    def __init__(self, path: str, floor: float, missing: float | None) -> None:
        parse_path(path, "path")
        self.path: Final = path
        self.floor: Final = check_real("floor", floor, _LEAST, 1.0)
        self.missing: Final = (
            self.floor if missing is None else check_real("missing", missing, self.floor, 1.0)
        )


class Decay(_Multiplier):
    """Lets scores fall with the age of documents: halved with each ``half_life``, to a floor.

    The multiplier is ``max(floor, 0.5 ** (age / half_life))``, and 1 for a date in the future. A
    negative score is divided by it, so that it falls too.

    Parameters
    ----------
    path
        Where the date is in the metadata, as in a filter: a date, a datetime or a string in ISO
        8601; without a time zone it is in UTC.
    half_life
        A ``timedelta``, or a number of ``s``, ``min``, ``h``, ``d``, ``w`` or ``y``: ``"30d"``.
    floor
        The least multiplier, greater than 0 and at most 1, so that no age drowns relevance.
    now
        The date from which ages count; ``None`` for the time of the search.
    missing
        The multiplier of a document without a date there; ``None`` for ``floor``.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.

    Examples
    --------
    >>> decay = Decay("date", half_life="30d", floor=0.25, now="2024-03-01")
    >>> [decay.of(date) for date in ("2024-01-31", "2001-01-01", "2030-01-01", "soon")]
    [0.5, 0.25, 1.0, 0.25]
    """

    __slots__ = ("half_life", "now")
    __match_args__ = ("path", "half_life", "floor", "now", "missing")

    def __init__(
        self,
        path: str,
        half_life: Span,
        *,
        floor: float = 0.5,
        now: datetime | date | str | None = None,
        missing: float | None = None,
    ) -> None:
        super().__init__(path, floor, missing)
        self.half_life: Final = parse_span("half_life", half_life)
        if now is not None and instant_of(now) is None:
            raise ValueError(f"now must be a date, a datetime or an ISO string, got {now!r:.100}")
        self.now: Final = now

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments as JSON values: what ``decay=`` takes, too."""
        seconds = self.half_life / timedelta(seconds=1)
        given = {"path": self.path, "half_life": f"{seconds:f}s", "floor": self.floor}
        now = {} if self.now is None else {"now": str(self.now)}
        return given | {"missing": self.missing} | now

    def started(self) -> Decay:
        """Return the same with the present as ``now``, unless it has one."""
        if self.now is not None:
            return self
        floor, missing = self.floor, self.missing
        return Decay(self.path, self.half_life, floor=floor, now=datetime.now(UTC), missing=missing)

    def of(self, value: Any) -> float:
        """Return the multiplier for a value of the metadata.

        Parameters
        ----------
        value
            The value; ``None`` if there is none.
        """
        then, now = instant_of(value), instant_of(self.now)
        if then is None:
            return self.missing
        age = ((instant(datetime.now(UTC)) if now is None else now) - then) / self.half_life
        return max(self.floor, 2.0**-age) if age > 0.0 else 1.0

    def _of_each(self, instants: Int64, known: Bool) -> Float64:
        """Return the multipliers for dates, in microseconds since the year 1, to the bit.

        ``known`` says whether each document has a date.
        """
        now, half = instant_of(self.started().now), ticks(self.half_life)
        assert now is not None
        multipliers = np.where(known, 1.0, self.missing)
        older = np.flatnonzero(known & (instants < ticks(now)))
        since = ticks(now) - instants[older]
        # As of two integers in Python: of those that float64 holds, NumPy rounds once, too.
        exact = half < _EXACT and since.max(initial=0) < _EXACT
        ages = since / half if exact else np.array([one / half for one in since.tolist()])
        multipliers[older] = self.floor
        counts = ages < 1e-6 - math.log2(self.floor)  # beyond that it is the floor
        powers = [max(self.floor, 2.0**-age) for age in ages[counts].tolist()]
        multipliers[older[counts]] = powers
        return multipliers


class Prior(_Multiplier):
    """Lets scores fall with a number of documents: their quality, say, or how often they are read.

    The multiplier is ``value / full``, at least ``floor`` and at most 1. A negative score is
    divided by it, so that it falls too.

    Parameters
    ----------
    path
        Where the number is in the metadata, as in a filter.
    full
        The number from which on scores stay as they are, > 0.
    floor
        The least multiplier, greater than 0 and at most 1.
    missing
        The multiplier of a document without a number there; ``None`` for ``floor``.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.

    Examples
    --------
    >>> prior = Prior("stars", full=5)
    >>> [prior.of(stars) for stars in (5, 4, 1, 7, "many")]
    [1.0, 0.8, 0.5, 1.0, 0.5]
    """

    __slots__ = ("full",)
    __match_args__ = ("path", "full", "floor", "missing")

    def __init__(
        self, path: str, full: float = 1.0, *, floor: float = 0.5, missing: float | None = None
    ) -> None:
        super().__init__(path, floor, missing)
        self.full: Final = check_real("full", full, 1e-30, 1e30)

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments as JSON values: what ``decay=`` takes, too."""
        return {name: getattr(self, name) for name in self.__match_args__}

    def started(self) -> Prior:
        """Return the same."""
        return self

    def of(self, value: Any) -> float:
        """Return the multiplier for a value of the metadata.

        Parameters
        ----------
        value
            The value; ``None`` if there is none.
        """
        if type(value) not in (int, float) or value != value:  # NaN
            return self.missing
        # A value may be an integer that no float can be.
        share: float = min(max(value, 0.0), self.full) / self.full
        return min(max(share, self.floor), 1.0)

    def _of_each(self, numbers: Float64) -> Float64:
        """Return the multipliers for some numbers, NaN for none, to the bit those of ``of``."""
        shares = np.clip(np.clip(numbers, 0.0, self.full) / self.full, self.floor, 1.0)
        return np.where(np.isnan(numbers), self.missing, shares)


DecayLike: TypeAlias = Decay | Prior | Mapping[str, Any]
"""What ``decay=`` takes: one of them, or a dict of the arguments of either."""


def read_decay(given: DecayLike) -> Decay | Prior:
    """Return what was given, checked, with the present as ``now``; raise as their constructors."""
    if isinstance(given, Decay | Prior):
        return given.started()
    if not isinstance(given, Mapping):
        raise TypeError(
            f"decay must be a Decay, a Prior, a dict of their arguments or None, got {given!r:.100}"
        )
    kind: Any = Decay if "half_life" in given else Prior
    unknown = [name for name in given if name not in kind.__match_args__]
    lacks = "path" if "path" not in given else "half_life or full"
    if unknown or lacks == "path" or given.keys().isdisjoint({"half_life", "full"}):
        takes = [f"{one.__name__}: {', '.join(one.__match_args__)}" for one in (Decay, Prior)]
        problem = f"unknown: {unknown[0]!r:.100}" if unknown else f"{lacks} is missing"
        raise ValueError(f"decay is a dict of the arguments of {' or '.join(takes)}; {problem}")
    made: Decay | Prior = kind(**given)
    return made.started()


def decay_dict(given: DecayLike | None) -> dict[str, Any] | None:
    """Return what ``decay=`` takes, checked, as a dict of JSON values; ``None`` stays."""
    if given is None:
        return None
    read_decay(given)
    return dict(given) if isinstance(given, Mapping) else given.to_dict()


def multiplied(score: float, multiplier: float) -> float:
    """Return a score that has fallen by a multiplier from 0 to 1; a negative one falls, too."""
    return score * multiplier if score >= 0.0 else score / multiplier


def multiplied_each(scores: Float64, multipliers: Float64) -> Float64:
    """Return scores that have fallen so, float64 (n,)."""
    return np.where(scores >= 0.0, scores * multipliers, scores / multipliers)


def multiplier_of(given: DecayLike, metadata: dict[str, Any]) -> float:
    """Return what the score of a document is multiplied by."""
    decay = read_decay(given)
    return decay.of(value_at(metadata, parse_path(decay.path, "path")))


def parse_span(name: str, given: object) -> timedelta:
    """Return an argument that is a span of time; raise ``TypeError`` or ``ValueError``."""
    expected = f"{name} must be a timedelta > 0, or a number with a unit such as '30d'"
    if isinstance(given, str):
        match = _SPAN.fullmatch(given)
        try:
            span = timedelta(seconds=float(match[1]) * _UNITS[match[2]]) if match else timedelta()
        except OverflowError:
            span = timedelta()
        if not span:
            units = ", ".join(_UNITS)
            raise ValueError(f"{expected}; units are {units}; got {given!r:.100}")
        return span
    if not isinstance(given, timedelta):
        raise TypeError(f"{expected}, got {given!r:.100}")
    if given <= timedelta():
        raise ValueError(f"{expected}, got {given!r}")
    return timedelta(microseconds=given // timedelta(microseconds=1))
