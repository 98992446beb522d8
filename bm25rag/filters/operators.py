"""The operators of the filter language: what each one says of a value."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import Any, Final

from bm25rag.common.record import Record
from bm25rag.filters.values import equal, instant, instant_of, key_of, moment_of

# Infinities equal nothing and order with nothing, as NaN does; as bounds they are useful.
_INFINITIES = (math.inf, -math.inf)


class Operator(Record, ABC):
    """An operator with its operand: a predicate on one value.

    Operators are equal if their keys are equal, and such operators must pass the same values.
    An adapter may subclass this; ``passes`` is then called once for each distinct value of
    all documents, where 1 and 1.0 are one value, and for each document with a list or a dict.

    Parameters
    ----------
    operand
        What values are compared with.
    key
        Tells the operand from others, for the cache of masks; by default from the value.
    """

    __slots__ = ("key", "operand")
    __match_args__ = ("operand",)
    name: str

    def __init__(self, operand: Any, key: Hashable = None) -> None:
        self.operand: Final = operand
        self.key: Final = (self.name, key_of(operand) if key is None else key)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Operator) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @abstractmethod
    def passes(self, value: Any, present: bool = True) -> bool:
        """Say whether a metadata value passes, ``None`` if it is missing, or is not ``present``."""


class Equals(Operator):
    """``$eq``: typed and exact equality, see ``equal``."""

    __slots__ = ()
    name = "$eq"

    @property
    def members(self) -> tuple[Any, ...]:
        """The operand, as the only value to be equal to."""
        return (self.operand,)

    def passes(self, value: Any, present: bool = True) -> bool:
        return equal(value, self.operand)


class _OfMembers(Operator):
    """An operator with a tuple of operands."""

    __slots__ = ("_lookup",)
    _lookup: tuple[dict[type, set[Any]], list[Any]]

    @property
    def members(self) -> tuple[Any, ...]:
        """The operands."""
        members: tuple[Any, ...] = self.operand
        return members

    def has(self, value: Any) -> bool:
        """Say whether a value is equal to an operand."""
        if value is None:  # which is asked of every filter, whose mask needs no sets
            return None in self.members
        kind, (sets, nested) = type(value), self._by_type()
        if kind is list or kind is dict:
            return any(equal(value, member) for member in nested)
        return kind in sets and _hashable(value) in sets[kind]

    def _by_type(self) -> tuple[dict[type, set[Any]], list[Any]]:
        """Return a set for each type, since True must not be found as 1; and lists and dicts.

        They are made on first use: usually the mask is in the cache.
        """
        if not hasattr(self, "_lookup"):
            sets: dict[type, set[Any]] = {}
            sets[int] = sets[float] = set()
            nested = []
            for member in self.members:
                if isinstance(member, list | dict):
                    nested.append(member)
                elif member not in _INFINITIES:
                    sets.setdefault(type(member), set()).add(_hashable(member))
            object.__setattr__(self, "_lookup", (sets, nested))  # two threads may
        return self._lookup


class In(_OfMembers):
    """``$in``: equal to one of a tuple of operands."""

    __slots__ = ()
    name = "$in"

    def passes(self, value: Any, present: bool = True) -> bool:
        return self.has(value)


class ContainsAny(_OfMembers):
    """``$containsAny``: a list with an element that is equal to one of a tuple of operands."""

    __slots__ = ()
    name = "$containsAny"

    def passes(self, value: Any, present: bool = True) -> bool:
        return type(value) is list and any(map(self.has, value))


class ContainsAll(_OfMembers):
    """``$containsAll``: a list that has, for each of a tuple of operands, an equal element."""

    __slots__ = ()
    name = "$containsAll"

    @property
    def distinct(self) -> int:
        """A number of operands of which no two are equal."""
        sets, nested = self._by_type()
        return sum(map(len, {id(one): one for one in sets.values()}.values())) + bool(nested)

    def passes(self, value: Any, present: bool = True) -> bool:
        return type(value) is list and all(
            any(equal(item, member) for item in value) for member in self.members
        )


def _hashable(value: Any) -> Any:
    """Return a datetime's instant, since Python never equates a naive with an aware one."""
    return instant(value) if type(value) is datetime else value


class Comparison(Operator):
    """``$lt``, ``$lte``, ``$gt`` or ``$gte``; values of unlike types do not pass."""

    __slots__ = ("compare", "name")
    __match_args__ = ("name", "operand")

    def __init__(self, name: str, compare: Callable[[Any, Any], Any], operand: Any) -> None:
        self.name: Final = name
        self.compare: Final = compare
        super().__init__(operand)

    def passes(self, value: Any, present: bool = True) -> bool:
        kind, operand = type(self.operand), self.operand
        if kind is datetime:
            return type(value) is datetime and self.compare(instant(value), instant(operand))
        if kind is int or kind is float:
            return (
                type(value) in (int, float)
                and self.compare(value, operand)
                and value not in _INFINITIES
            )
        return type(value) is kind and self.compare(value, operand)


class Contains(Operator):
    """``$contains``: a list with an equal element, or a string with this part."""

    __slots__ = ()
    name = "$contains"

    def passes(self, value: Any, present: bool = True) -> bool:
        operand = self.operand
        if type(value) is list:
            return any(equal(item, operand) for item in value)
        return type(value) is str and type(operand) is str and operand in value


class ContainsFolded(Operator):
    """``$icontains``: as ``$contains``, without regard to case; the operand is case-folded."""

    __slots__ = ()
    name = "$icontains"

    def passes(self, value: Any, present: bool = True) -> bool:
        folded: str = self.operand
        if type(value) is list:
            return any(type(item) is str and item.casefold() == folded for item in value)
        return type(value) is str and folded in value.casefold()


class StartsWith(Operator):
    """``$startswith``."""

    __slots__ = ()
    name = "$startswith"

    def passes(self, value: Any, present: bool = True) -> bool:
        return type(value) is str and value.startswith(self.operand)


class Exists(Operator):
    """``$exists``."""

    __slots__ = ()
    name = "$exists"

    def passes(self, value: Any, present: bool = True) -> bool:
        return present is self.operand


class AsInstant(Operator):
    """``$date``: a comparison of the instants that values name."""

    __slots__ = ()
    name = "$date"

    def __init__(self, comparison: Operator) -> None:
        super().__init__(comparison, comparison.key)

    def passes(self, value: Any, present: bool = True) -> bool:
        moment = instant_of(value)
        return moment is not None and self.operand.passes(moment)


class AsMoment(Operator):
    """A comparison of datetimes in which one without a time zone takes that of the other.

    A date is ordered as its midnight, without a time zone, and equals no datetime.
    Adapters subclass it to say which strings name a datetime.

    Parameters
    ----------
    compare
        ``operator.eq``, ``lt``, ``le``, ``gt`` or ``ge``.
    moments
        What values are compared with: with ``eq``, any number of datetimes, otherwise one.
    reading
        Tells from others how strings are read; strings are read again if it changes.
    """

    __slots__ = ("compare", "reading")
    name = "moment"

    def __init__(
        self, compare: Callable[[Any, Any], Any], moments: Sequence[datetime], reading: Hashable
    ) -> None:
        operand = tuple(map(moment_of, moments))
        super().__init__(operand, (type(self), compare.__name__, frozenset(operand), reading))
        self.compare: Final = compare
        self.reading: Final = reading

    @property
    def orders(self) -> bool:
        """Whether this orders values, and does not equate them."""
        return self.compare is not operator.eq

    @abstractmethod
    def read(self, text: str) -> datetime | None:
        """Return the datetime that a string names; called once for each unusual spelling.

        The usual ones are ``2024-05-01`` and ``2024-05-01T12:00:00``, with fractions of a second
        in three or six digits, and with ``Z`` or an offset such as ``+02:00``.
        """

    def passes(self, value: Any, present: bool = True) -> bool:
        named = self.read(value) if type(value) is str else value
        if type(named) is date and self.orders:
            named = datetime.combine(named, time())
        if type(named) is not datetime:
            return False
        one = moment_of(named)
        return any(
            self.compare(one.instant, other.instant)
            if one.aware and other.aware
            else self.compare(one.clock, other.clock)
            for other in self.operand
        )


OPERATORS: dict[str, Callable[[Any], Operator]] = {
    "$eq": Equals,
    "$lt": partial(Comparison, "$lt", operator.lt),
    "$lte": partial(Comparison, "$lte", operator.le),
    "$gt": partial(Comparison, "$gt", operator.gt),
    "$gte": partial(Comparison, "$gte", operator.ge),
    "$in": In,
    "$contains": Contains,
    "$containsAny": ContainsAny,
    "$containsAll": ContainsAll,
    "$icontains": ContainsFolded,
    "$startswith": StartsWith,
    "$exists": Exists,
}
