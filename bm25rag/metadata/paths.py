"""From metadata to the values at each path.

Columns are taken, not rows: metadata of the same keys are turned into a column for each
key, and so are the dicts in these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from bm25rag.common.arrays import Int64
from bm25rag.metadata.codec import unescape
from bm25rag.metadata.field import Path
from bm25rag.metadata.values import DEEPEST

# The keys of dicts that are written for something else; see ``documents``.
_DATES: dict[tuple[str, ...], type] = {("$date",): date, ("$datetime",): datetime}


def _write(nested: Any) -> str:
    return json.dumps(nested, ensure_ascii=False)  # now: what a list holds is the user's


class _Column(NamedTuple):
    """Some values, where each is among those at its path, and whose it is."""

    places: Int64
    numbers: Int64
    values: Sequence[Any]

    def split(self, kinds: Iterable[Any]) -> Iterator[tuple[Any, _Column]]:
        """Yield each of the kinds, one of which is told for each value, and its values."""
        told = list(kinds)
        if len(set(told)) == 1:
            yield told[0], self
            return
        of_kind: dict[Any, list[int]] = {}
        for place, kind in enumerate(told):
            of_kind.setdefault(kind, []).append(place)
        for kind, own in of_kind.items():
            values = [self.values[place] for place in own]
            yield kind, _Column(self.places[own], self.numbers[own], values)


class Node:
    """What some documents have at one path.

    ``numbers`` says of each of ``count`` values whose it is, in pieces. ``found`` holds the
    values by type, and where each is among ``numbers``: dates and datetimes as they are
    written, dicts as the ``tuple`` of their keys, lists as nothing, since they are held by
    their elements. Only ``inside`` a list are dicts and lists held whole, as JSON.
    """

    __slots__ = ("children", "count", "elements", "found", "inside", "numbers")

    def __init__(self, inside: bool = False) -> None:
        self.count = 0
        self.numbers: list[Int64] = []
        self.found: dict[type, tuple[list[Int64], list[Any]]] = {}
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

    def take(self, numbers: Int64, values: Sequence[Any], depth: int) -> None:
        """Take one value for each number."""
        start = self.count
        self.count += len(values)
        self.numbers.append(numbers)
        column = _Column(np.arange(start, self.count), numbers, values)
        for kind, own in column.split(map(type, values)):
            self._take_kind(kind, own, depth)

    def _take_kind(self, kind: type, column: _Column, depth: int) -> None:
        if kind is dict:
            for keys, same in column.split(map(tuple, column.values)):
                self._take_dicts(keys, same, depth)
        elif kind is list and self.inside:
            self._put(list, column.places, map(_write, column.values))
        elif kind is list:
            self._put(list, column.places, repeat(None, len(column.places)))
            self._take_elements(column, depth)
        else:
            self._put(kind, column.places, column.values)

    def _put(self, kind: type, places: Int64, values: Iterable[Any]) -> None:
        known = self.found.setdefault(kind, ([], []))
        known[0].append(places)
        known[1].extend(values)

    def _take_dicts(self, keys: tuple[str, ...], column: _Column, depth: int) -> None:
        """Take dicts that have the same keys."""
        if keys in _DATES:
            values = [value[keys[0]] for value in column.values]
            self._put(_DATES[keys], column.places, values)
        elif self.inside:
            self._put(dict, column.places, map(_write, column.values))
        else:
            self._put(tuple, column.places, repeat(keys, len(column.places)))
            if depth > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
            for key in keys:
                node = self.children.get(key)
                if node is None:
                    node = self.children[key] = Node()
                # Nothing here makes objects that the garbage collector would look at.
                node.take(column.numbers, list(map(itemgetter(key), column.values)), depth + 1)

    def _take_elements(self, column: _Column, depth: int) -> None:
        elements = list(chain.from_iterable(column.values))
        if elements:
            if self.elements is None:
                self.elements = Node(inside=True)
            numbers = np.repeat(column.numbers, list(map(len, column.values)))
            self.elements.take(numbers, elements, depth + 1)
