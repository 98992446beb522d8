"""Compiled table of words: byte strings to numbers.

A word of up to 16 bytes is its own key, two numbers of 64 bits; a longer one has a hash
and its length in their place.
"""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import Int64, UInt8, UInt32, UInt64
from bm25rag.kernels.compiling import compiled

# Words that are looked up together.
_TOGETHER = np.uint64(512)
# Bytes that may be read beyond the last one of a word.
BEYOND = 16
_LONG = np.uint64(0xFF) << np.uint64(56)  # no byte of UTF-8, hence above all short words
_SEVERAL = np.uint32(0xFFFFFFFE)  # above all numbers of terms
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE, _BYTE = np.uint64(1), np.uint64(0xFF)
_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xC2B2AE3D27D4EB4F)
# The first n bytes of eight.
_FIRST = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


@compiled
def new_words(room: int) -> tuple[UInt64, UInt64, UInt8, Int64]:
    """Return an empty table of words with room for some, a power of two.

    Returns
    -------
    slots
        Hash table with open addressing, at most half full: half a hash above, a word's
        number plus one below.
    entries
        A row for each word, in the order in which they came: the two numbers of its key,
        where it begins in the pool, and its length.
    pool
        The words, with a line feed after each.
    used
        How many words there are, and bytes in the pool, (2,).
    """
    slots, entries = np.zeros(2 * room, np.uint64), np.empty((room, 4), np.uint64)
    return slots, entries, np.empty(16 * room, np.uint8), np.zeros(2, np.int64)


@compiled
def load_word(source: UInt8, place: np.uint64) -> np.uint64:
    """Read eight bytes at once: so it compiles."""
    word = np.uint64(source[place])
    for byte in range(1, 8):
        word |= np.uint64(source[place + np.uint64(byte)]) << np.uint64(8 * byte)
    return word


@compiled
def key(source: UInt8, first: int, length: int) -> tuple[np.uint64, np.uint64]:
    """Return the key of a word; no two words have the same, but for long ones."""
    place = np.uint64(first)
    low, high = load_word(source, place), load_word(source, place + np.uint64(8))
    if length <= 16:
        return low & _FIRST[min(length, 8)], high & _FIRST[max(length - 8, 0)]
    low = _A
    for start in range(first, first + length, 8):
        rest = min(first + length - start, 8)
        low = (low ^ (load_word(source, np.uint64(start)) & _FIRST[rest])) * _B
        low ^= low >> _HALF
    return low, _LONG | np.uint64(length)


@compiled
def _hash(low: np.uint64, high: np.uint64) -> np.uint64:
    mixed = (low ^ (high * _B)) * _A
    return ((mixed ^ (mixed >> _HALF)) * _B) >> _HALF


@compiled
def _prefetch(
    found: UInt64,
    begin: np.uint64,
    stop: np.uint64,
    slots: UInt64,
    hashes: UInt64,
    numbers: UInt32,
) -> None:
    """Hash words, and have their slots fetched into the cache.

    What is read here depends on nothing that was read before, so the processor fetches many
    slots at once; ``number_words`` would wait for each. In ``numbers`` nothing of use remains.
    """
    mask = np.uint64(len(slots) - 1)
    for row in range(begin, stop):  # an index without a sign is looked up sooner
        hashes[row - begin] = _hash(found[row, 0], found[row, 1])
    for row in range(begin, stop):
        numbers[row] = slots[hashes[row - begin] & mask] & _LOW_HALF


@compiled
def number_words(
    found: UInt64,
    source: UInt8,
    slots: UInt64,
    entries: UInt64,
    pool: UInt8,
    used: Int64,
    numbers: UInt32,
) -> None:
    """Give words numbers: known ones theirs, new ones the next; there must be room for them.

    Parameters
    ----------
    found, source
        The words, in rows as in ``entries``; their bytes are in ``source``.
    slots, entries, pool, used
        The table; see ``new_words``.
    numbers
        Takes the number of each word.
    """
    mask, end = np.uint64(len(slots) - 1), np.uint64(len(numbers))
    hashes = np.empty(int(_TOGETHER), np.uint64)
    stop = np.uint64(0)
    while stop < end:
        begin, stop = stop, min(stop + _TOGETHER, end)
        _prefetch(found, begin, stop, slots, hashes, numbers)
        for row in range(begin, stop):
            low, high = found[row, 0], found[row, 1]
            first, length = found[row, 2], found[row, 3]
            mixed = hashes[row - begin]
            slot = mixed & mask
            while slots[slot]:
                if slots[slot] >> _HALF == mixed:
                    word = (slots[slot] & _LOW_HALF) - _ONE
                    alike = entries[word, 0] == low and entries[word, 1] == high
                    held = entries[word, 2]
                    if alike and (high < _LONG or _same(pool, held, source, first, length)):
                        break
                slot = (slot + _ONE) & mask
            if not slots[slot]:
                word, start = np.uint64(used[0]), np.uint64(used[1])
                slots[slot] = (mixed << _HALF) | (word + _ONE)
                entries[word, 0], entries[word, 1] = low, high
                entries[word, 2], entries[word, 3] = start, length
                _write(low, high, source, first, length, pool, start)
                used[0] += 1
                used[1] += np.int64(length) + 1
            numbers[row] = (slots[slot] & _LOW_HALF) - _ONE


@compiled
def _same(
    pool: UInt8, start: np.uint64, source: UInt8, first: np.uint64, length: np.uint64
) -> bool:
    differs = False
    for place in range(length):
        differs |= pool[start + place] != source[first + place]
    return not differs


@compiled
def _write(
    low: np.uint64,
    high: np.uint64,
    source: UInt8,
    first: np.uint64,
    length: np.uint64,
    pool: UInt8,
    start: np.uint64,
) -> None:
    """Write a word and a line feed to the pool; what comes next writes over the rest."""
    if high < _LONG:
        for byte in range(8):
            shift = np.uint64(8 * byte)
            pool[start + np.uint64(byte)] = (low >> shift) & _BYTE
            pool[start + np.uint64(byte + 8)] = (high >> shift) & _BYTE
    else:
        for place in range(length):
            pool[start + place] = source[first + place]
    pool[start + length] = 10


@compiled
def with_room(
    slots: UInt64, entries: UInt64, pool: UInt8, used: Int64, more: int, size: int
) -> tuple[UInt64, UInt64, UInt8]:
    """Return the table with room for more words, of so many bytes together."""
    # Element by element: an assignment to a slice takes Numba six seconds more to compile.
    needed = used[1] + size + more + BEYOND
    if needed > len(pool):
        larger = np.empty(2 * needed, np.uint8)
        for place in range(used[1]):
            larger[place] = pool[place]
        pool = larger
    if used[0] + more > len(entries):
        room = len(entries)
        while used[0] + more > room:
            room *= 2
        known, entries = entries, np.empty((room, 4), np.uint64)
        for word in range(used[0]):
            for part in range(4):
                entries[word, part] = known[word, part]
        slots = _rehashed(slots, 2 * room)
    return slots, entries, pool


@compiled
def _rehashed(slots: UInt64, length: int) -> UInt64:
    larger = np.zeros(length, np.uint64)
    mask = np.uint64(length - 1)
    for held in slots:
        if held:
            slot = (held >> _HALF) & mask
            while larger[slot]:
                slot = (slot + _ONE) & mask
            larger[slot] = held
    return larger


@compiled
def adopt(
    found: UInt64, source: UInt8, slots: UInt64, entries: UInt64, pool: UInt8, used: Int64
) -> tuple[UInt64, UInt64, UInt8, UInt32]:
    """Give the words of one table numbers in another, and make room for them.

    Parameters
    ----------
    found, source
        The entries and the pool of the one; what has up to 16 bytes may be missing there.
    slots, entries, pool, used
        The other.

    Returns
    -------
    slots, entries, pool
        The other, perhaps larger now.
    numbers
        The number of each word, uint32.
    """
    numbers = np.empty(len(found), np.uint32)
    size = np.int64(0)
    for word in range(len(found)):
        size += np.int64(found[word, 3])
    slots, entries, pool = with_room(slots, entries, pool, used, len(found), int(size))
    number_words(found, source, slots, entries, pool, used, numbers)
    return slots, entries, pool, numbers


@compiled
def expand(
    tokens: UInt32, counts: UInt32, words: UInt32, starts: Int64, numbers: UInt32
) -> tuple[UInt32, UInt32]:
    """Put the numbers of terms in the place of words, of which some are several terms or none.

    Parameters
    ----------
    tokens, counts
        Words, and how many each text has, as ``scan`` returns them. ``counts`` becomes how
        many terms each has.
    words
        The number of each word in the table.
    starts, numbers
        The terms of a word in the table are from its start to the next in ``numbers``.

    Returns
    -------
    tokens, counts
        The same for terms.
    """
    more = np.int64(0)
    plain = np.empty(len(words), np.uint32)
    for word in range(len(words)):
        number = np.uint64(words[word])
        first = starts[number]
        if starts[number + _ONE] - first == 1 and numbers[first] != _SEVERAL:
            plain[word] = numbers[first]
        else:
            plain[word] = _SEVERAL
    for token in tokens:
        if plain[np.uint64(token)] == _SEVERAL:
            number = np.uint64(words[token])
            more += starts[number + _ONE] - starts[number] - 1
    found = np.empty(len(tokens) + more, np.uint32)
    place, stop, token = np.uint64(0), np.uint64(0), np.uint64(0)
    for text in range(len(counts)):
        begin = place
        stop += np.uint64(counts[text])
        while token < stop:
            one = plain[np.uint64(tokens[token])]
            if one != _SEVERAL:
                found[place] = one
                place += _ONE
            else:
                number = np.uint64(words[np.uint64(tokens[token])])
                for at in range(np.uint64(starts[number]), np.uint64(starts[number + _ONE])):
                    found[place] = numbers[at]
                    place += _ONE
            token += _ONE
        counts[text] = np.uint32(place - begin)
    return found, counts
