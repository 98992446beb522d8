"""From metadata to the values at each path.

This is done by column, not by row: metadata with the same keys become one column for each
key, and so do the dicts in those columns.
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
from bm25rag.common.checks import DEEPEST
from bm25rag.common.codec import unescape
from bm25rag.metadata.field import Path

# The keys of dicts that stand for a date or a datetime, see ``codec``.
_DATES: dict[tuple[str, ...], type] = {("$date",): date, ("$datetime",): datetime}


def _to_json(nested: Any) -> str:
    return json.dumps(nested, ensure_ascii=False)  # at once: the list may be the user's own


class _Column(NamedTuple):
    """Some of a node's values, with their positions in the node and their documents."""

    positions: Int64
    documents: Int64
    values: Sequence[Any]

    def group_by(self, labels: Iterable[Any]) -> Iterator[tuple[Any, _Column]]:
        """Yield each label with the values that have it; there is one label for each value."""
        label_of = list(labels)
        if len(set(label_of)) == 1:
            yield label_of[0], self
            return
        groups: dict[Any, list[int]] = {}
        for position, label in enumerate(label_of):
            groups.setdefault(label, []).append(position)
        for label, members in groups.items():
            values = [self.values[position] for position in members]
            yield label, _Column(self.positions[members], self.documents[members], values)


class Node:
    """The values at one path.

    ``documents`` holds the document of each of ``count`` values, in chunks. ``by_type`` holds
    the values of each type and their positions in ``documents``: dates and datetimes as they
    are written, dicts as the ``tuple`` of their keys, lists as ``None``, since their elements
    have a node of their own. ``in_list`` says that this is such a node: there, dicts and lists
    are held whole, as JSON.
    """

    __slots__ = ("by_type", "children", "count", "documents", "elements", "in_list")

    def __init__(self, in_list: bool = False) -> None:
        self.count: int = 0
        self.documents: list[Int64] = []
        self.by_type: dict[type, tuple[list[Int64], list[Any]]] = {}
        self.in_list: bool = in_list
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

    def add(self, documents: Int64, values: Sequence[Any], depth: int) -> None:
        """Add one value for each document."""
        start = self.count
        self.count += len(values)
        self.documents.append(documents)
        column = _Column(np.arange(start, self.count), documents, values)
        for kind, of_kind in column.group_by(map(type, values)):
            self._add_type(kind, of_kind, depth)

    def _add_type(self, kind: type, column: _Column, depth: int) -> None:
        if kind is dict:
            for keys, alike in column.group_by(map(tuple, column.values)):
                self._add_dicts(keys, alike, depth)
        elif kind is list and self.in_list:
            self._put(list, column.positions, map(_to_json, column.values))
        elif kind is list:
            self._put(list, column.positions, repeat(None, len(column.positions)))
            self._add_elements(column, depth)
        else:
            self._put(kind, column.positions, column.values)

    def _put(self, kind: type, positions: Int64, values: Iterable[Any]) -> None:
        chunks, held = self.by_type.setdefault(kind, ([], []))
        chunks.append(positions)
        held.extend(values)

    def _add_dicts(self, keys: tuple[str, ...], column: _Column, depth: int) -> None:
        """Add dicts that have the same keys."""
        if keys in _DATES:
            values = [value[keys[0]] for value in column.values]
            self._put(_DATES[keys], column.positions, values)
        elif self.in_list:
            self._put(dict, column.positions, map(_to_json, column.values))
        else:
            self._put(tuple, column.positions, repeat(keys, len(column.positions)))
            if depth > DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} levels deep")
            for key in keys:
                node = self.children.get(key)
                if node is None:
                    node = self.children[key] = Node()
                # This makes no objects that the garbage collector would have to visit.
                node.add(column.documents, list(map(itemgetter(key), column.values)), depth + 1)

    def _add_elements(self, column: _Column, depth: int) -> None:
        elements = list(chain.from_iterable(column.values))
        if elements:
            if self.elements is None:
                self.elements = Node(in_list=True)
            documents = np.repeat(column.documents, list(map(len, column.values)))
            self.elements.add(documents, elements, depth + 1)
