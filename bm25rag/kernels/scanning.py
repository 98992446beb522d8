"""Compiled tokenizer: code points to word numbers."""

from __future__ import annotations

import numpy as np

from bm25rag._types import Bool, Int64, UInt8, UInt32, UInt64, Unsigned
from bm25rag.folding import CJK, MARK, SEPARATOR, WORD
from bm25rag.kernels.compiling import compiled

# What ``scan`` keeps in its state.
POSITION, TOKENS, TEXTS, WORDS, USED, NEEDED = range(6)

_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_BYTE = np.uint64(8)
# Words of up to 7 characters below 256 are their own keys, with their length on top: to find
# one of them is to look at one cache line. Others have a hash, and this on top.
_PACKED = 7
_HASHED = np.uint64(0xFF) << np.uint64(56)


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
def _slot(key: np.uint64, slots: UInt64) -> np.uint64:
    mask = np.uint64(len(slots) // 2 - 1)
    return ((key * _SPREAD) >> np.uint64(32)) & mask


@compiled
def _number(
    units: Unsigned,
    first: int,
    length: int,
    key: np.uint64,
    starts: Int64,
    pool: UInt32,
    slots: UInt64,
    state: Int64,
) -> int:
    """Return the number of a word, a new one if it is new.

    ``slots`` hold a key and a number plus one, side by side.
    """
    mask = np.uint64(len(slots) // 2 - 1)
    slot = _slot(key, slots)
    while slots[2 * slot + 1]:
        if slots[2 * slot] == key:
            word = np.int64(slots[2 * slot + 1]) - 1
            start = starts[word]
            same = key < _HASHED or starts[word + 1] - start == length
            if key >= _HASHED and same:
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
    starts[word + 1] = used + length
    slots[2 * slot], slots[2 * slot + 1] = key, np.uint64(word + 1)
    state[WORDS], state[USED] = word + 1, used + length
    return int(word)


@compiled
def _key(units: Unsigned, first: int, length: int) -> np.uint64:
    """Return the key of a word."""
    packed, mixed, wide = np.uint64(0), _SEED, np.uint64(0)
    for place in range(first, first + length):
        unit = np.uint64(units[place])
        packed = (packed << _BYTE) | unit
        mixed = (mixed ^ unit) * _PRIME
        wide |= unit
    if length <= _PACKED and wide < np.uint64(256):
        return packed | (np.uint64(length) << np.uint64(56))
    return mixed | _HASHED


@compiled
def scan(
    units: Unsigned,
    classes: UInt8,
    starts: Int64,
    pool: UInt32,
    slots: UInt64,
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
    starts, pool
        The words so far: ``pool[starts[w] : starts[w + 1]]`` are the code points of word w.
    slots
        Hash table with open addressing, pairs of key and number, a power of two of them,
        at most half full.
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
            while last < size:
                beyond = classes[units[last]]
                if beyond != WORD and beyond != MARK:
                    break
                last += 1
            if last - place >= 2:
                if _is_full(last - place, 1, starts, pool, slots, state):
                    state[POSITION] = place
                    return False
                key = _key(units, place, last - place)
                tokens[state[TOKENS]] = _number(
                    units, place, last - place, key, starts, pool, slots, state
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
                key = _key(units, first, length)
                tokens[state[TOKENS]] = _number(
                    units, first, length, key, starts, pool, slots, state
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
    units: int, words: int, starts: Int64, pool: UInt32, slots: UInt64, state: Int64
) -> bool:
    state[NEEDED] = units
    after = state[WORDS] + words
    return bool(after >= len(starts) or 4 * after > len(slots) or state[USED] + units > len(pool))


@compiled
def rehash(old: UInt64, slots: UInt64) -> None:
    """Put the words of a table into a larger, empty one."""
    mask = np.uint64(len(slots) // 2 - 1)
    for place in range(0, len(old), 2):
        if old[place + 1]:
            slot = _slot(old[place], slots)
            while slots[2 * slot + 1]:
                slot = (slot + np.uint64(1)) & mask
            slots[2 * slot], slots[2 * slot + 1] = old[place], old[place + 1]
