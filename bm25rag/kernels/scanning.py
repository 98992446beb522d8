"""Compiled tokenizer: code points to word numbers."""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Int64, UInt8, UInt32, Unsigned
from bm25rag.folding import CJK, MARK, SEPARATOR, WORD
from bm25rag.kernels.compiling import compiled

# What ``scan`` keeps in its state.
POSITION, TOKENS, TEXTS, WORDS, USED, NEEDED = range(6)

_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


@compiled
def translate(
    units: Unsigned,
    lower: Unsigned,
    peculiar: Bool,
    separator: int,
    out: Unsigned,
    out_peculiar: Bool,
) -> None:
    """Lower-case joined texts by a table, and find those for which a table is not enough.

    Parameters
    ----------
    units
        The code points, (n,).
    lower, peculiar
        See ``FoldTable``.
    separator
        What ends each text.
    out
        Takes the lower-cased code points, (n,).
    out_peculiar
        Takes whether a text has a peculiar code point, (texts,).
    """
    text = 0
    found = False
    for place in range(len(units)):
        unit = units[place]
        out[place] = lower[unit]
        found |= peculiar[unit]
        if unit == separator:
            out_peculiar[text] = found
            found = False
            text += 1


@compiled
def _number(
    units: Unsigned,
    first: int,
    length: int,
    mixed: np.uint64,
    starts: Int64,
    hashes: UInt32,
    pool: UInt32,
    slots: UInt32,
    state: Int64,
) -> int:
    """Return the number of a word, a new one if it is new; ``slots`` hold numbers plus one."""
    key = np.uint32(mixed >> np.uint64(32))
    mask = np.uint64(len(slots) - 1)
    slot = np.uint64(key) & mask
    while slots[slot]:
        word = np.int64(slots[slot]) - 1
        start = starts[word]
        if hashes[word] == key and starts[word + 1] - start == length:
            same = True
            for place in range(length):
                if pool[start + place] != units[first + place]:
                    same = False
                    break
            if same:
                return int(word)
        slot = (slot + np.uint64(1)) & mask
    word, used = state[WORDS], state[USED]
    for place in range(length):
        pool[used + place] = units[first + place]
    hashes[word] = key
    starts[word + 1] = used + length
    slots[slot] = word + 1
    state[WORDS], state[USED] = word + 1, used + length
    return int(word)


@compiled
def scan(
    units: Unsigned,
    classes: UInt8,
    starts: Int64,
    hashes: UInt32,
    pool: UInt32,
    slots: UInt32,
    tokens: UInt32,
    ends: Int64,
    state: Int64,
) -> bool:
    """Turn texts, joined by separators, into numbers of their words.

    Parameters
    ----------
    units
        The code points, (n,).
    classes
        The class of every code point that can occur.
    starts, hashes, pool
        The words so far: ``pool[starts[w] : starts[w + 1]]`` are the code points of word w.
    slots
        Hash table with open addressing, a power of two long, at most half full.
    tokens
        Takes the word of every token, (n,).
    ends
        Takes the number of tokens up to the end of each text.
    state
        Where to go on, and counts; see the constants above.

    Returns
    -------
    done
        Whether the end is reached. If not, the words need room for ``state[NEEDED]``
        more, of so many code points together; make it, and call again.
    """
    place, size = state[POSITION], len(units)
    while place < size:
        kind = classes[units[place]]
        last = place + 1
        if kind == WORD:
            mixed = (_SEED ^ np.uint64(units[place])) * _PRIME
            while last < size:
                beyond = classes[units[last]]
                if beyond != WORD and beyond != MARK:
                    break
                mixed = (mixed ^ np.uint64(units[last])) * _PRIME
                last += 1
            if last - place >= 2:
                if _is_full(last - place, 1, starts, pool, slots, state):
                    state[POSITION] = place
                    return False
                tokens[state[TOKENS]] = _number(
                    units, place, last - place, mixed, starts, hashes, pool, slots, state
                )
                state[TOKENS] += 1
        elif kind == CJK:
            while last < size and classes[units[last]] == CJK:
                last += 1
            if _is_full(2 * (last - place), last - place, starts, pool, slots, state):
                state[POSITION] = place
                return False
            length = min(2, last - place)
            for first in range(place, max(place + 1, last - 1)):
                mixed = (_SEED ^ np.uint64(units[first])) * _PRIME
                if length == 2:
                    mixed = (mixed ^ np.uint64(units[first + 1])) * _PRIME
                tokens[state[TOKENS]] = _number(
                    units, first, length, mixed, starts, hashes, pool, slots, state
                )
                state[TOKENS] += 1
        elif kind == SEPARATOR:
            ends[state[TEXTS]] = state[TOKENS]
            state[TEXTS] += 1
        place = last
    state[POSITION] = place
    return True


@compiled
def _is_full(
    units: int, words: int, starts: Int64, pool: UInt32, slots: UInt32, state: Int64
) -> bool:
    state[NEEDED] = units
    after = state[WORDS] + words
    return bool(after >= len(starts) or 2 * after > len(slots) or state[USED] + units > len(pool))


@compiled
def rehash(hashes: UInt32, count: int, slots: UInt32) -> None:
    """Put the first ``count`` words into an empty table."""
    mask = np.uint64(len(slots) - 1)
    for word in range(count):
        slot = np.uint64(hashes[word]) & mask
        while slots[slot]:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word + 1
