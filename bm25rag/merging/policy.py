"""Parts joined into fewer: how, and when that is worth its price.

A write merges little, and the rest waits for ``BM25Index.maintain()``, which works on
the parts of one moment while others search and write; ``carry`` brings what has been
deleted and changed in the meantime into what it made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from bm25rag.merging.merge import merge_parts
from bm25rag.segments.changes import Layer
from bm25rag.segments.segment import Segment
from bm25rag.segments.view import Part

# What a write may merge at once: so many bytes (20 ms or so), or this share of the index, which
# bounds the number of parts whatever is written.
LEAST = 1 << 22
SHARE = 16


class Group(NamedTuple):
    """Consecutive parts, ``size`` bytes of living documents, and whether to merge them."""

    parts: list[Part]
    size: int
    due: bool


def plan(
    parts: Sequence[Part], most: float = math.inf, held: Collection[Segment] = ()
) -> list[Group]:
    """Say which consecutive parts to merge; the empty are left out.

    A part goes together with what follows while it is not more than twice as large as all
    behind it. So without a limit N documents make at most log3(N) parts and a document is
    copied O(log N) times on the way; with the limit ``most``, a sixteenth of the whole,
    there are at most 32 parts more.

    Parameters
    ----------
    parts
        All parts, in document order.
    most
        Bytes that one merge may take in.
    held
        Segments that are being merged elsewhere, to be left alone.
    """
    groups: list[Group] = []
    behind = 0
    for part in reversed(parts):
        free = part.segment not in held
        if free and not part.count:
            continue
        last = groups[-1] if groups and groups[-1].parts[0].segment not in held else None
        if last and free and part.size <= 2 * behind and part.size + last.size <= most:
            groups[-1] = Group([part, *last.parts], part.size + last.size, True)
        else:
            groups.append(Group([part], part.size, free and _is_worn(part) and part.size <= most))
        behind += part.size
    return groups[::-1]


def _is_worn(part: Part) -> bool:
    """Whether more than half of a part has been deleted or has new metadata."""
    return 2 * part.count < len(part.segment) or 2 * part.changes > len(part.segment)


def tidy(parts: Sequence[Part], held: Collection[Segment]) -> list[Part]:
    """Merge as much as a single write may."""
    most = max(LEAST, sum(part.size for part in parts) // SHARE)
    return [
        Part(merge_parts(group.parts)) if group.due else group.parts[0]
        for group in plan(parts, most, held)
    ]


def carry(merged: Segment, before: Sequence[Part], now: Sequence[Part]) -> list[Part] | None:
    """Put a segment in the place of the parts it was made of, as they are now.

    Parameters
    ----------
    merged
        What ``merge_parts`` made of ``before``.
    before, now
        The parts that were merged, and all parts of the index as they are now.

    Returns
    -------
    parts
        All parts, or ``None`` if something of ``before`` was undone in the meantime.
    """
    segments = [part.segment for part in now]
    first = segments.index(before[0].segment) if before[0].segment in segments else 0
    last = first + len(before)
    if segments[first:last] != [part.segment for part in before]:
        return None
    dead, offset = [np.empty(0, np.int64)], 0
    changed: dict[int, bytes] = {}
    for old, new in zip(before, now[first:last], strict=True):
        died = new.dead if old.living is None else new.dead[old.living[new.dead]]
        if len(died) != len(new.dead) - len(old.dead) or not all(
            number in new.changed or not new.lives(number) for number in old.changed
        ):
            return None
        dead.append(old.ranks(died.astype(np.int64)) + offset)
        data = new.changed
        numbers = [number for number in data if old.changed.get(number) is not data[number]]
        ranks = old.ranks(np.array(numbers, np.int64)) + offset
        changed |= {
            rank: data[number] for rank, number in zip(ranks.tolist(), numbers, strict=True)
        }
        offset += old.count
    since = Layer(np.concatenate(dead).astype(np.uint32), changed)
    part = Part(merged, (since,) if len(since) else ())
    return [*now[:first], part, *now[last:]]
