"""From the JSON of metadata to the values at each path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any

from bm25rag.documents import DEEPEST, read_plain, revive, unescape
from bm25rag.errors import CorruptIndexError
from bm25rag.fields.field import Path

# Documents that are decoded at once: few, or the garbage collector looks at them all.
_DECODED = 512


class Node:
    """What some documents have at one path: ``values``, and the ``numbers`` of who has each.

    All lists are represented by one value, and all dicts of the same keys.
    """

    __slots__ = ("children", "elements", "numbers", "shapes", "values")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.values: list[Any] = []
        self.children: dict[str, Node] = {}
        self.elements: Node | None = None
        self.shapes: dict[tuple[str, ...], dict[str, Any]] = {}

    def take(self, number: int, metadata: dict[str, Any], depth: int = 0) -> None:
        """Take what a document has below this path."""
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        children = self.children
        for key, value in metadata.items():
            node = children.get(key)
            if node is None:
                node = children[key] = Node()
            kind = type(value)
            if kind is dict:
                value = revive(value)
                if type(value) is dict:
                    node.take(number, value, depth + 1)
                    value = node.shapes.setdefault(tuple(value), value)
            elif kind is list:
                node.take_elements(number, value)
                value = _LIST
            node.numbers.append(number)
            node.values.append(value)

    def take_elements(self, number: int, elements: list[Any]) -> None:
        """Take the elements of a list at this path."""
        if not elements:
            return
        node = self.elements
        if node is None:
            node = self.elements = Node()
        node.numbers += [number] * len(elements)
        node.values += [revive(one) if type(one) is dict else one for one in elements]

    def walk(self, path: Path) -> Iterator[tuple[Path, Node]]:
        """Yield the paths below this one."""
        for key, node in self.children.items():
            below = (*path, unescape(key))
            yield below, node
            yield from node.walk(below)
        if self.elements is not None:
            yield (*path, None), self.elements


_LIST: list[Any] = []


def gather(metadata: Sequence[memoryview | None]) -> list[tuple[Path, Node]]:
    """Return the values at every path, those first that most documents have.

    Raises
    ------
    CorruptIndexError
        If it is not what ``encode_metadata`` writes.
    """
    root = Node()
    try:
        for first in range(0, len(metadata), _DECODED):
            some = metadata[first : first + _DECODED]
            numbers = compress(range(first, first + len(some)), some)
            for number, plain in zip(numbers, read_plain(list(filter(None, some))), strict=True):
                root.take(number, plain)
    except (ValueError, TypeError) as error:  # a date that is none
        raise CorruptIndexError(f"stored metadata cannot be read: {error}") from None
    return sorted(root.walk(()), key=lambda found: -len(found[1].numbers))
