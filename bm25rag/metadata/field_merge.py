"""Merges the fields of several segments into those of one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bm25rag.common.arrays import Bool, Int64, Unsigned
from bm25rag.common.gil import BLOCK, releasing_gil
from bm25rag.metadata.field import FLAGS, KINDS, NUMBERS, Field, Path
from bm25rag.metadata.fields import MAX_FIELDS, Assembler, Fields

# Every string so far apart in a sorted run is a candidate for a boundary between blocks.
_STEP = 64

_Text = TypeVar("_Text", str, bytes)


def merge_fields(sources: Sequence[Fields], new_numbers: Sequence[Int64], count: int) -> Fields:
    """Merge fields.

    Parameters
    ----------
    sources
        The fields of each source.
    new_numbers
        For each source, the new number of each of its documents, or -1 if it is dropped, int64.
    count
        The number of documents after the merge.
    """

    def surviving(source: int, field: Field) -> int:
        new = new_numbers[source]
        documents = new if field.documents is None else new[field.documents]
        return int(np.count_nonzero(documents >= 0))

    kept, complete = kept_paths(sources, surviving)
    merged = Assembler(count, complete)
    for path in kept:
        pieces = [
            _surviving(field, numbers)
            for one, numbers in zip(sources, new_numbers, strict=True)
            if (field := one.find(path)) is not None
        ]
        merged.add(path, *_join(pieces))
    return merged.finish()


def kept_paths(
    sources: Sequence[Fields], count: Callable[[int, Field], int]
) -> tuple[list[Path], bool]:
    """Return which paths get a field when sources are merged, and whether these are all.

    Parameters
    ----------
    sources
        The fields of each source.
    count
        Counts the values of a field of a source, given by its number, that are left.
    """
    paths = set(chain.from_iterable(sources))
    # A path that one source has and did not keep cannot be completed by the others.
    known = {p for p in paths if all(one.complete or one.get(p) is not None for one in sources)}
    sizes: dict[Path, int] = {}
    for path in known:
        found = ((number, one.find(path)) for number, one in enumerate(sources))
        sizes[path] = sum(count(number, field) for number, field in found if field is not None)
    left = [path for path in known if sizes[path]]
    kept = sorted(left, key=lambda path: (-sizes[path], repr(path)))[:MAX_FIELDS]
    complete = len(kept) == len(left) and known == paths and all(one.complete for one in sources)
    return kept, complete


class _Piece(NamedTuple):
    """The surviving values of one source; ``used`` says which distinct ones are among them."""

    field: Field
    documents: Int64
    codes: Unsigned
    used: Bool


def _surviving(field: Field, new_numbers: Int64) -> _Piece:
    documents = new_numbers if field.documents is None else new_numbers[field.documents]
    survives = documents >= 0
    codes = field.codes[survives]
    used = np.zeros(len(field), np.bool_)
    used[codes] = True
    return _Piece(field, documents[survives], codes, used)


def _join(pieces: Sequence[_Piece]) -> tuple[Int64, Int64, list[Any]]:
    """Return the documents, new codes and distinct values of one path."""
    new_codes = [np.zeros(len(piece.field), np.int64) for piece in pieces]
    ranked: list[Any] = []
    start = 0
    for kind in range(KINDS):
        if not any(piece.field.has(kind) for piece in pieces):
            ranked.append(())
            continue
        ranges = [piece.field.codes_of(kind) for piece in pieces]
        used = [piece.used[of_kind] for piece, of_kind in zip(pieces, ranges, strict=True)]
        union, ranks = _merge(
            kind, [_used(kind, piece.field, mask) for piece, mask in zip(pieces, used, strict=True)]
        )
        for codes, of_kind, mask, new_ranks in zip(new_codes, ranges, used, ranks, strict=True):
            codes[of_kind][mask] = start + new_ranks
        ranked.append(union)
        start += len(union)
    documents = np.concatenate([piece.documents for piece in pieces])
    joined = np.concatenate(
        [new[piece.codes] for new, piece in zip(new_codes, pieces, strict=True)]
    )
    if np.any(documents[1:] < documents[:-1]):  # changed documents are a source of their own
        order = np.argsort(documents, kind="stable")
        documents, joined = documents[order], joined[order]
    return documents, joined, ranked


def _used(kind: int, field: Field, mask: Bool) -> Any:
    """Return the distinct values of a kind that are used."""
    if kind in FLAGS:
        return [None] * int(mask.sum())
    if kind in NUMBERS:
        return field.numbers_of(kind)[mask]
    return list(compress(field.strings_of(kind), mask.tolist()))


def _merge(kind: int, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the union of sorted values, sorted, and the rank in it of each source's values."""
    if kind in FLAGS:
        return [None][: sum(map(len, values))], [0] * len(values)
    if kind in NUMBERS:
        union = np.unique(np.concatenate(values))
        return union, [np.searchsorted(union, of_source) for of_source in values]
    return unite(values)


def unite(runs: Sequence[list[_Text]]) -> tuple[list[_Text], list[Int64]]:
    """Return the union of sorted strings, sorted, and the rank in it of each run's strings.

    Parameters
    ----------
    runs
        Each run is strictly ascending.
    """
    union: list[_Text] = []
    ranks = [np.empty(len(run), np.int64) for run in runs]
    for block in releasing_gil(_aligned_blocks(runs)):
        pieces = [run[part] for run, part in zip(runs, block, strict=True)]
        # Sorting runs and dropping duplicates is faster than sorting a set.
        distinct = dict.fromkeys(sorted(chain.from_iterable(pieces)))
        rank_of = dict(zip(distinct, range(len(union), len(union) + len(distinct)), strict=True))
        for of_run, part, piece in zip(ranks, block, pieces, strict=True):
            of_run[part] = list(map(rank_of.__getitem__, piece))
        union += distinct
    return union, ranks


def _aligned_blocks(runs: Sequence[list[_Text]]) -> Iterator[list[slice]]:
    """Split all runs at the same strings, into blocks of about ``BLOCK`` strings in total."""
    candidates = chain.from_iterable(run[_STEP::_STEP] for run in runs)
    starts = [0] * len(runs)
    for boundary in sorted(candidates)[:: BLOCK // _STEP]:
        stops = [bisect_left(run, boundary, start) for run, start in zip(runs, starts, strict=True)]
        yield list(map(slice, starts, stops))
        starts = stops
    yield list(map(slice, starts, map(len, runs)))
