"""Fields of several segments to those of one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bm25rag.common.arrays import Bool, Int64, Unsigned
from bm25rag.common.gil import BLOCK, releasing_gil
from bm25rag.metadata.field import FLAGS, KINDS, NUMBERS, Field
from bm25rag.metadata.fields import MOST_FIELDS, Assembler, Fields

# Of a sorted run every so manieth string tells where to cut it.
_STEP = 64

_Text = TypeVar("_Text", str, bytes)


def merge_fields(sources: Sequence[Fields], places: Sequence[Int64], count: int) -> Fields:
    """Make one of several.

    Parameters
    ----------
    sources
        The fields of documents.
    places
        Where each document of each source goes, or -1 if it goes nowhere, int64.
    count
        The number of documents there.
    """
    known = set(chain.from_iterable(sources))
    # What one source has not kept the others cannot make up for.
    sure = {p for p in known if all(one.complete or one.get(p) is not None for one in sources)}
    sizes = {
        path: sum(len(field.codes) for one in sources if (field := one.get(path)) is not None)
        for path in sure
    }
    kept = sorted(sure, key=lambda path: (-sizes[path], repr(path)))[:MOST_FIELDS]
    whole = len(kept) == len(known) and all(one.complete for one in sources)
    merged = Assembler(count, whole)
    for path in kept:
        pieces = [
            _living(field, place)
            for one, place in zip(sources, places, strict=True)
            if (field := one.find(path)) is not None
        ]
        if any(len(piece.codes) for piece in pieces):
            merged.add(path, *_join(pieces))
    return merged.finish()


class _Piece(NamedTuple):
    """The values of one source that go on; ``used`` says which distinct ones are among them."""

    field: Field
    documents: Int64
    codes: Unsigned
    used: Bool


def _living(field: Field, places: Int64) -> _Piece:
    documents = places if field.documents is None else places[field.documents]
    stays = documents >= 0
    codes = field.codes[stays]
    used = np.zeros(len(field), np.bool_)
    used[codes] = True
    return _Piece(field, documents[stays], codes, used)


def _join(pieces: Sequence[_Piece]) -> tuple[Int64, Int64, list[Any]]:
    """Return the documents, new codes and distinct values of one path."""
    renamed = [np.zeros(len(piece.field), np.int64) for piece in pieces]
    ranked: list[Any] = []
    start = 0
    for kind in range(KINDS):
        if not any(piece.field.has(kind) for piece in pieces):
            ranked.append(())
            continue
        used = [piece.used[piece.field.codes_of(kind)] for piece in pieces]
        merged, new = _merge(
            kind, [_chosen(kind, piece.field, u) for piece, u in zip(pieces, used, strict=True)]
        )
        for names, piece, own, u in zip(renamed, pieces, new, used, strict=True):
            names[piece.field.codes_of(kind)][u] = start + own
        ranked.append(merged)
        start += len(merged)
    documents = np.concatenate([piece.documents for piece in pieces])
    codes = np.concatenate([n[piece.codes] for n, piece in zip(renamed, pieces, strict=True)])
    if np.any(documents[1:] < documents[:-1]):  # changed ones come from a source of their own
        order = np.argsort(documents, kind="stable")
        documents, codes = documents[order], codes[order]
    return documents, codes, ranked


def _chosen(kind: int, field: Field, used: Bool) -> Any:
    """Return the distinct values of a kind that are used."""
    if kind in FLAGS:
        return [None] * int(used.sum())
    if kind in NUMBERS:
        return field.numbers_of(kind)[used]
    return list(compress(field.strings_of(kind), used.tolist()))


def _merge(kind: int, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the union of sorted values, sorted, and the places in it of each one's."""
    if kind in FLAGS:
        return [None][: sum(map(len, values))], [0] * len(values)
    if kind in NUMBERS:
        union = np.unique(np.concatenate(values))
        return union, [np.searchsorted(union, own) for own in values]
    return unite(values)


def unite(runs: Sequence[list[_Text]]) -> tuple[list[_Text], list[Int64]]:
    """Return the union of sorted strings, sorted, and the places in it of each one's.

    Parameters
    ----------
    runs
        Ascending strings, each of which a run has once.
    """
    union: list[_Text] = []
    places = [np.empty(len(run), np.int64) for run in runs]
    for cuts in releasing_gil(_cut(runs)):
        pieces = [run[own] for run, own in zip(runs, cuts, strict=True)]
        known = dict.fromkeys(sorted(chain.from_iterable(pieces)))  # runs sort fast, sets not
        numbers = dict(zip(known, range(len(union), len(union) + len(known)), strict=True))
        for place, own, piece in zip(places, cuts, pieces, strict=True):
            place[own] = list(map(numbers.__getitem__, piece))
        union += known
    return union, places


def _cut(runs: Sequence[list[_Text]]) -> Iterator[list[slice]]:
    """Cut all runs at the same strings, into pieces of about ``BLOCK`` strings together."""
    marks = sorted(chain.from_iterable(run[_STEP::_STEP] for run in runs))[:: BLOCK // _STEP]
    starts = [0] * len(runs)
    for mark in marks:
        stops = [bisect_left(run, mark, start) for run, start in zip(runs, starts, strict=True)]
        yield list(map(slice, starts, stops))
        starts = stops
    yield list(map(slice, starts, map(len, runs)))
