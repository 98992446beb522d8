"""The tree of a parsed filter: conditions at the leaves, And, Or and Not above them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bm25rag.filters.values import fresh

Test: TypeAlias = Callable[[Any, bool], bool]
"""A predicate on ``(value, present)``; the value is None where the path is missing."""


# Ids that a key may hold.
_MOST_KEYED = 100


class Filter(ABC):
    """A parsed filter; immutable, and independent of the dict it was parsed from."""

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """A cache key: filters with equal keys match the same documents; None: do not cache."""

    @property
    def ids(self) -> frozenset[str] | None:
        """The ids that match, if that is all the filter says; look them up instead of scanning."""
        return None

    @abstractmethod
    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether a document passes.

        Parameters
        ----------
        id
            The document's id.
        metadata
            The document's metadata, which is never changed.
        """


@dataclass(frozen=True)
class Condition(Filter):
    """One predicate on the value at one path of the metadata.

    Parameters
    ----------
    path
        The keys from the top of the metadata down; one or more.
    test
        The predicate on the value and on whether it is present. It is asked once for all
        documents of one value, and 1 and 1.0 are one value.
    rule
        What the predicate says: equal rules mean the same predicate.
    operator, operand
        What of the filter language the predicate stands for, such as ``$lt`` or ``$date.$lt``,
        so that values need not be asked one by one; None for a predicate of another origin.
    """

    path: tuple[str, ...]
    test: Test = field(compare=False, repr=False)
    rule: Hashable
    operator: str | None = field(default=None, compare=False, repr=False)
    operand: Any = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> Hashable:
        """The path and the rule."""
        return self.path, self.rule

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether the predicate holds for the value at the path."""
        value: Any = metadata
        for key in self.path:
            # Lists are not descended into, and the top level may be any mapping.
            if not (isinstance(value, dict) or value is metadata) or key not in value:
                return self.test(None, False)
            value = value[key]
        return self.test(value, True)


@dataclass(frozen=True)
class IdCondition(Filter):
    """One predicate on the id.

    Parameters
    ----------
    test
        The predicate; the value is the id, which is always present.
    rule
        What the predicate says: equal rules mean the same predicate.
    """

    test: Test = field(compare=False, repr=False)
    rule: Hashable

    @property
    def key(self) -> Hashable:
        """The reserved name and the rule."""
        return "$id", self.rule

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether the predicate holds for the id."""
        return self.test(id, True)


@dataclass(frozen=True)
class IdSet(Filter):
    """The documents with these ids; the empty set matches nothing.

    Parameters
    ----------
    members
        The ids.
    """

    members: frozenset[str]

    @property
    def key(self) -> Hashable:
        """The ids; of many None, since to look them up is cheaper."""
        return None if len(self.members) > _MOST_KEYED else self.members

    @property
    def ids(self) -> frozenset[str]:
        """The ids."""
        return self.members

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether the id is a member."""
        return id in self.members


@dataclass(frozen=True)
class CallableFilter(Filter):
    """A function of the metadata, called for every document at every search.

    Parameters
    ----------
    function
        Called with a copy of the metadata; a true result passes. What it raises propagates.
    """

    function: Callable[[dict[str, Any]], object]

    @property
    def key(self) -> None:
        """None: what the function says may change from call to call."""
        return None

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether the function returns something true."""
        result = self.function(fresh(dict(metadata)))
        if inspect.isawaitable(result) or inspect.isasyncgen(result):
            if inspect.iscoroutine(result):
                result.close()  # or Python warns that nobody awaited it
            message = "filter: expected a plain function, got one that returns an awaitable"
            raise TypeError(message)
        return bool(result)


@dataclass(frozen=True)
class And(Filter):
    """All parts match; without parts, everything does.

    Parameters
    ----------
    parts
        The filters, tried in order.
    """

    parts: tuple[Filter, ...]

    @property
    def key(self) -> Hashable:
        """The parts' keys, whose order is all the same."""
        return _joint_key("$and", self.parts)

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether every part matches."""
        return all(part.matches(id, metadata) for part in self.parts)


@dataclass(frozen=True)
class Or(Filter):
    """At least one part matches.

    Parameters
    ----------
    parts
        The filters, tried in order.
    """

    parts: tuple[Filter, ...]

    @property
    def key(self) -> Hashable:
        """The parts' keys, whose order is all the same."""
        return _joint_key("$or", self.parts)

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether a part matches."""
        return any(part.matches(id, metadata) for part in self.parts)


@dataclass(frozen=True)
class Not(Filter):
    """The part does not match.

    Parameters
    ----------
    part
        The filter.
    """

    part: Filter

    @property
    def key(self) -> Hashable:
        """The part's key, marked."""
        key = self.part.key
        return None if key is None else ("$not", key)

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether the part does not match."""
        return not self.part.matches(id, metadata)


def _joint_key(name: str, parts: tuple[Filter, ...]) -> Hashable:
    """Join the parts' keys; None if one is never to be cached."""
    keys = frozenset(part.key for part in parts)
    return None if None in keys else (name, keys)
