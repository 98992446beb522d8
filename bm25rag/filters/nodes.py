"""The tree of a parsed filter: conditions at the leaves, And, Or and Not above them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

from bm25rag.common.record import Record
from bm25rag.filters.operators import Equals, In, Operator
from bm25rag.filters.values import fresh

# The most ids that are cached as a mask.
_MAX_KEYED = 100


class Demand(NamedTuple):
    """A field that a filter relies on: documents must have it.

    A ``path`` that ends in ``None`` is that of a field which, if there is one, must have a list.
    ``at`` is the place in the filter, for messages; ``strict`` whether it is an error if no
    document has it, or only a warning; ``meant`` the filter that may be meant instead, if one is
    known.
    """

    path: tuple[str | None, ...]
    at: str
    strict: bool = True
    meant: str = ""


class Filter(ABC):
    """A parsed filter: immutable, and independent of the dict it was parsed from."""

    __slots__ = ()

    @property
    def rejects_nothing(self) -> bool:
        """Whether everything matches, for lack of any condition."""
        return False

    @property
    def demands(self) -> tuple[Demand, ...]:
        """The fields that documents must have, checked before the filter is used."""
        return ()

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The fields that it asks about."""
        return ()

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """A cache key: filters with equal keys match the same documents. None: do not cache."""

    @property
    def ids(self) -> frozenset[str] | None:
        """The matching ids, if the filter is nothing but a set of ids; they are looked up."""
        return None

    @property
    def per_document(self) -> bool:
        """Whether ``matches`` must be called for each document, at every search."""
        return self.key is None and self.ids is None

    @abstractmethod
    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        """Say whether a document with this id and these metadata, which never change, passes."""


class Condition(Record, Filter):
    """An operator on the value at one path of the metadata, one or more keys from its top down."""

    __slots__ = __match_args__ = ("path", "operator")

    def __init__(self, path: tuple[str, ...], operator: Operator) -> None:
        self.path: Final = path
        self.operator: Final = operator

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        return (self.path,)

    @property
    def key(self) -> Hashable:
        return self.path, self.operator.key

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        value: Any = metadata
        for key in self.path:
            # Lists are not descended into, and the top level may be any mapping.
            if not (isinstance(value, dict) or value is metadata) or key not in value:
                return self.operator.passes(None, False)
            value = value[key]
        return self.operator.passes(value)


class IdCondition(Record, Filter):
    """An operator on the id."""

    __slots__ = __match_args__ = ("operator",)

    def __init__(self, operator: Operator) -> None:
        self.operator: Final = operator

    @property
    def key(self) -> Hashable:
        return "$id", self.operator.key

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        return self.operator.passes(id)


class IdSet(Record, Filter):
    """The documents with these ids; an empty set matches nothing."""

    __slots__ = __match_args__ = ("members",)

    def __init__(self, members: frozenset[str]) -> None:
        self.members: Final = members

    @property
    def key(self) -> Hashable:
        """The ids; None if there are many, since looking them up is cheaper than a mask."""
        return None if len(self.members) > _MAX_KEYED else self.members

    @property
    def ids(self) -> frozenset[str]:
        return self.members

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        return id in self.members


class CallableFilter(Record, Filter):
    """A function of a document, called at every search for what passes the rest of the filter.

    It is called with a copy of the metadata, or with what ``fetch`` returns for an id, such as a
    framework's document; a true result passes. Its exceptions propagate. A generator function or a
    coroutine function is a ``TypeError``.
    """

    __slots__ = __match_args__ = ("function", "fetch")

    def __init__(
        self, function: Callable[[Any], object], fetch: Callable[[str], object] | None = None
    ) -> None:
        if inspect.isgeneratorfunction(function):
            raise _not_plain("a generator")
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise _not_plain("an awaitable")
        self.function: Final = function
        self.fetch: Final = fetch

    @property
    def key(self) -> None:
        """None: what the function says may change from call to call."""
        return None

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        result = self.function(fresh(dict(metadata)) if self.fetch is None else self.fetch(id))
        if inspect.isawaitable(result) or inspect.isasyncgen(result):
            if inspect.iscoroutine(result):
                result.close()  # or Python warns that it was never awaited
            raise _not_plain("an awaitable")
        if isinstance(result, Iterator):
            raise _not_plain("an iterator")
        return bool(result)


def on_documents(filter: Filter, fetch: Callable[[str], object]) -> Filter:
    """Return a filter whose functions are called with what ``fetch`` returns for an id.

    A function that is an object whose ``__call__`` is a generator or a coroutine function is a
    ``TypeError``.
    """
    match filter:
        case CallableFilter(function):
            CallableFilter(type(function).__call__)  # refuses an object whose __call__ is async
            return CallableFilter(function, fetch)
        case And(parts) | Or(parts):
            of_parts = sum(len(part.demands) for part in parts)
            own = filter.demands[: len(filter.demands) - of_parts]
            return type(filter)(tuple(on_documents(part, fetch) for part in parts), own)
        case Not(part):
            return Not(on_documents(part, fetch))
    return filter


def without_demands(filter: Filter) -> Filter:
    """Return a filter that passes the same, and demands no fields of the documents."""
    match filter:
        case And(parts) | Or(parts):
            return type(filter)(tuple(map(without_demands, parts)))
        case Not(part):
            return Not(without_demands(part))
    return filter


def _not_plain(returned: str) -> TypeError:
    # Such a result is always true, so everything would pass.
    return TypeError(
        f"filter: expected a function that returns true or false, got one that returns {returned}"
    )


class _Joined(Record, Filter):
    """Several filters as one."""

    __slots__ = ("_demands", "parts")
    __match_args__ = ("parts",)
    name: ClassVar[str]

    def __init__(self, parts: tuple[Filter, ...], demands: tuple[Demand, ...] = ()) -> None:
        self.parts: Final = tuple(sorted(parts, key=lambda part: part.per_document))
        self._demands: Final = (*demands, *chain.from_iterable(part.demands for part in parts))

    @property
    def demands(self) -> tuple[Demand, ...]:
        return self._demands

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        return tuple(chain.from_iterable(part.paths for part in self.parts))

    @property
    def per_document(self) -> bool:
        return any(part.per_document for part in self.parts)

    @property
    def key(self) -> Hashable:
        keys = frozenset(part.key for part in self.parts)
        return None if None in keys else (self.name, keys)


class And(_Joined):
    """All parts match; without parts, everything does."""

    __slots__ = ()
    name = "$and"

    @property
    def rejects_nothing(self) -> bool:
        return all(part.rejects_nothing for part in self.parts)

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        return all(part.matches(id, metadata) for part in self.parts)


class Or(_Joined):
    """At least one part matches; equalities with values at one path are one part."""

    __slots__ = ()
    name = "$or"

    def __init__(self, parts: tuple[Filter, ...], demands: tuple[Demand, ...] = ()) -> None:
        super().__init__(_with_joined_equalities(parts), demands)

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        return any(part.matches(id, metadata) for part in self.parts)


def _with_joined_equalities(parts: tuple[Filter, ...]) -> tuple[Filter, ...]:
    """Return one ``$in`` for all equalities at a path, which takes as long as one of them."""
    members: dict[tuple[str, ...], list[Any]] = {}
    others: list[Filter] = []
    for part in parts:
        match part:
            case Condition(path, Equals() | In() as operator):
                members.setdefault(path, []).extend(operator.members)
            case _:
                others.append(part)
    joined = (Condition(path, In(tuple(values))) for path, values in members.items())
    return (*joined, *others)


class Not(_Joined):
    """The part does not match."""

    __slots__ = ()
    __match_args__ = ("part",)
    name = "$not"

    def __init__(self, part: Filter) -> None:
        super().__init__((part,))

    @property
    def part(self) -> Filter:
        """The filter that does not match."""
        return self.parts[0]

    def matches(self, id: str, metadata: Mapping[str, Any]) -> bool:
        return not self.part.matches(id, metadata)


def split(filter: Filter | None) -> tuple[Filter | None, Filter | None]:
    """Split a filter into a part to look up and a part to call for what passes the first.

    A document passes it if it passes both parts; ``None`` passes everything.
    """
    if filter is None or not filter.per_document:
        return filter, None
    if not isinstance(filter, And):
        return None, filter
    pairs = [split(part) for part in filter.parts]
    looked_up, called = (
        tuple(part for part in side if part is not None) for side in zip(*pairs, strict=True)
    )
    return all_of(looked_up) if looked_up else None, all_of(called)


def all_of(parts: Sequence[Filter]) -> Filter:
    """Return a filter that passes what all parts pass."""
    return parts[0] if len(parts) == 1 else And(tuple(parts))
