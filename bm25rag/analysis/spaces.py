"""The terms of several analyses in one index: each analysis has a space of its own.

A term of a further analysis begins with the character of its number, from 1 on. A term of the first
analysis gets one more character in front if it would begin with such a one. So no term of one
analysis equals a term of another, whatever texts and tokenizers hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from bm25rag.analysis.settings import MOST_FURTHER
from bm25rag.columns.column import Column, arrange

# What comes before a term of the first analysis that begins like those of others.
_ESCAPE = MOST_FURTHER + 1


def spaced(number: int, term: str) -> str:
    """Return a term of an analysis, 0 for the first, as it is in the index."""
    if number or "\0" < term[:1] <= chr(_ESCAPE):
        return chr(number or _ESCAPE) + term
    return term


def space_of(term: str) -> tuple[int, str]:
    """Return which analysis a term of an index with several is of, and the term."""
    if "\0" < term[:1] <= chr(_ESCAPE):
        return ord(term[0]) % _ESCAPE, term[1:]
    return 0, term


def of_first(terms: Iterable[str]) -> list[str]:
    """Return the terms of the first of several analyses."""
    return [term for term in terms if not space_of(term)[0]]


def into_space(terms: Column, number: int) -> Column:
    """Return terms of an analysis as they are in the index."""
    starts = terms.offsets[:-1].astype(np.int64)
    moved = np.ones(len(terms), np.bool_)
    if not number:
        firsts = np.append(terms.data, np.uint8(0))[starts]
        moved = (terms.lengths() > 0) & (firsts > 0) & (firsts <= _ESCAPE)
    data = np.insert(terms.data, starts[moved], number or _ESCAPE)
    return arrange(terms.lengths() + moved, data, np.zeros(len(terms), np.bool_))


def weighed(asked: Iterable[tuple[Sequence[str], float]]) -> dict[str, float]:
    """Return the weights of a question's terms, given the terms by each analysis and its weight."""
    weights: dict[str, float] = {}
    for number, (terms, weight) in enumerate(asked):
        if weight:
            counts = Counter(terms).items()
            weights |= {spaced(number, term): weight * count for term, count in counts}
    return weights
