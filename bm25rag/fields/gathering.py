"""From the JSON of metadata to the values at each path.

Columns are taken, not rows: metadata of the same keys are turned into a column for each
key, and so are the dicts in these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

from bm25rag.documents import DEEPEST, read_plain, unescape
from bm25rag.errors import CorruptIndexError
from bm25rag.fields.field import Path

# Documents that are decoded at once: few, or the garbage collector looks at them all.
_DECODED = 512
# The keys of dicts that are written for something else; see ``documents``.
_DATES: dict[tuple[str, ...], type] = {("$date",): date, ("$datetime",): datetime}


class _Column(NamedTuple):
    """Some values, where each is among those at its path, and whose it is."""

    places: Sequence[int]
    numbers: Sequence[int]
    values: Sequence[Any]

    def pick(self, own: Iterable[bool]) -> _Column:
        """Return those that ``own`` says."""
        flags = list(own)
        return self if all(flags) else _Column(*(list(compress(each, flags)) for each in self))


class Node:
    """What some documents have at one path.

    ``numbers`` says of each value whose it is. ``found`` holds the values by type, and
    where each is among ``numbers``: dates and datetimes as they are written, dicts as the
    ``tuple`` of their keys, lists as nothing, since they are held by their elements.
    Only ``inside`` a list are dicts and lists held whole.
    """

    __slots__ = ("children", "elements", "found", "inside", "numbers")

    def __init__(self, inside: bool = False) -> None:
        self.numbers: list[int] = []
        self.found: dict[type, tuple[list[int], list[Any]]] = {}
        self.inside = inside
        self.children: dict[str, Node] = {}
        self.elements: Node | None = None

    def walk(self, path: Path) -> Iterator[tuple[Path, Node]]:
        """Yield the paths below this one."""
        for key, node in self.children.items():
            below = (*path, unescape(key))
            yield below, node
            yield from node.walk(below)
        if self.elements is not None:
            yield (*path, None), self.elements

    def take(self, numbers: Sequence[int], values: Sequence[Any], depth: int) -> None:
        """Take one value for each number."""
        start = len(self.numbers)
        column = _Column(range(start, start + len(values)), numbers, values)
        self.numbers += numbers
        types = list(map(type, values))
        for kind in set(types):
            self._take_kind(kind, column.pick(one is kind for one in types), depth)

    def _take_kind(self, kind: type, column: _Column, depth: int) -> None:
        if kind is dict:
            keys = list(map(tuple, column.values))
            for one in set(keys):
                self._take_dicts(one, column.pick(own == one for own in keys), depth)
        elif kind is list and not self.inside:
            self._put(list, column.places, repeat(None, len(column.places)))
            self._take_elements(column, depth)
        else:
            self._put(kind, column.places, column.values)

    def _put(self, kind: type, places: Iterable[int], values: Iterable[Any]) -> None:
        known = self.found.setdefault(kind, ([], []))
        known[0].extend(places)
        known[1].extend(values)

    def _take_dicts(self, keys: tuple[str, ...], column: _Column, depth: int) -> None:
        """Take dicts that have the same keys."""
        if keys in _DATES:
            values = [value[keys[0]] for value in column.values]
            self._put(_DATES[keys], column.places, values)
        elif self.inside:
            self._put(dict, column.places, column.values)
        else:
            self._put(tuple, column.places, repeat(keys, len(column.places)))
            if depth > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
            rows = map(dict.values, column.values)
            for key, below in zip(keys, zip(*rows, strict=True), strict=True):
                node = self.children.get(key)
                if node is None:
                    node = self.children[key] = Node()
                node.take(column.numbers, below, depth + 1)

    def _take_elements(self, column: _Column, depth: int) -> None:
        elements = list(chain.from_iterable(column.values))
        if elements:
            if self.elements is None:
                self.elements = Node(inside=True)
            sizes = map(len, column.values)
            numbers = list(chain.from_iterable(map(repeat, column.numbers, sizes)))
            self.elements.take(numbers, elements, depth + 1)


def gather(metadata: Sequence[memoryview | None]) -> list[tuple[Path, Node]]:
    """Return the values at every path, those first that most documents have.

    Raises
    ------
    CorruptIndexError
        If it is not what ``encode_metadata`` writes.
    """
    root = Node()
    for first in range(0, len(metadata), _DECODED):
        some = metadata[first : first + _DECODED]
        numbers = list(compress(range(first, first + len(some)), some))
        try:
            root.take(numbers, read_plain(list(filter(None, some))), 0)
        except ValueError as error:
            raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    return sorted(root.walk(()), key=lambda found: -len(found[1].numbers))
