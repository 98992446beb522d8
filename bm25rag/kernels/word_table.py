"""A table of words: byte strings to numbers.

A word of up to 16 bytes is its own key, two numbers of 64 bits, with its length; a longer one
has a hash and its length in their place. See ``WordTable`` for the arrays.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, view
from bm25rag.kernels.scanner_interface import BEYOND, SEVERAL, STOPPED, WordTable

# Words that are looked up together.
TOGETHER = 512
_TOGETHER = cython.declare(cython.Py_ssize_t, TOGETHER)
_BEYOND = cython.declare(cython.Py_ssize_t, BEYOND)
# What the second number of a long word's key is above: no byte of UTF-8.
_LONG = cython.declare(cython.ulonglong, 0xFF << 56)
_ALL = cython.declare(cython.ulonglong, (1 << 64) - 1)
_LOW_HALF = cython.declare(cython.ulonglong, (1 << 32) - 1)
_A = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_B = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
_SEVERAL = cython.declare(cython.uint, SEVERAL)
_STOPPED = cython.declare(cython.uint, STOPPED)


@cython.cclass
class Words:
    """A table that grows: its arrays as a ``WordTable``, and as the loops see them."""

    def __init__(self, table) -> None:
        _hold(self, table)


@cython.cfunc
def _hold(words: Words, table):
    """Show a table to the loops: all of its arrays or, if one cannot be shown, none."""
    slots: cython.ulonglong[::1] = view(table.slots)
    entries: cython.ulonglong[:, ::1] = view(table.entries)
    pool: cython.uchar[::1] = view(table.pool)
    used: cython.longlong[::1] = view(table.used)
    words.arrays = table
    words.slots = slots
    words.entries = entries
    words.pool = pool
    words.used = used


@cython.cfunc
def new_words(room: cython.Py_ssize_t) -> Words:
    """Return an empty table with room for some words, a power of two."""
    slots, entries = np.zeros(2 * room, np.uint64), np.empty((room, 4), np.uint64)
    pool = np.empty(16 * room, np.uint8)
    return Words(WordTable(slots, entries, pool, np.zeros(2, np.int64)))


def empty_table(room):
    """Return an empty table with room for some words, a power of two."""
    return new_words(room).arrays


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _reserve(words: Words, more: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    """Make room for more words, of so many bytes together; return -1 after an error."""
    if (
        words.used[0] + more > words.entries.shape[0]
        or words.used[1] + size + more + _BEYOND > words.pool.shape[0]
    ):
        with cython.gil:
            _grow(words, more, size)
    return 0


@cython.cfunc
def _grow(words: Words, more: cython.Py_ssize_t, size: cython.Py_ssize_t):
    """Copy everything into larger arrays, and then replace the table.

    Memory may be short, and Ctrl-C may be raised by any call. The table before stays as it was,
    so whoever still has it can go on with it.
    """
    _, known_entries, known_pool, used = words.arrays
    needed = used[1] + size + more + BEYOND
    room = len(known_entries)
    while used[0] + more > room:
        room *= 2
    slots, entries = np.zeros(2 * room, np.uint64), np.empty((room, 4), np.uint64)
    # It grows beside the others, or all would be copied again when it alone is too small.
    pool = np.empty(max(2 * needed, len(known_pool)), np.uint8)
    entries[: used[0]] = known_entries[: used[0]]
    pool[: used[1]] = known_pool[: used[1]]
    _rehash(words.slots, view(slots))
    _hold(words, WordTable(slots, entries, pool, used.copy()))


@cython.cfunc
@cython.exceptval(check=False)
def _rehash(slots: cython.ulonglong[::1], larger: cython.ulonglong[::1]) -> cython.void:
    mask: cython.ulonglong = larger.shape[0] - 1
    held: cython.ulonglong
    slot: cython.ulonglong
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(slots.shape[0]):
            held = slots[i]
            if held:
                slot = (held >> 32) & mask
                while larger[slot]:
                    slot = (slot + 1) & mask
                larger[slot] = held


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(low: cython.ulonglong, high: cython.ulonglong) -> cython.ulonglong:
    mixed: cython.ulonglong = ((low ^ (high * _B & _ALL)) * _A) & _ALL
    return ((mixed ^ (mixed >> 32)) * _B & _ALL) >> 32


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _prefetch(
    words: Words,
    keys: cython.const[cython.ulonglong][:, ::1],
    begin: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    hashes: cython.ulonglong[::1],
) -> cython.void:
    """Hash words, and have their slots and entries fetched into the cache.

    What a loop reads here depends on nothing that it read before, so the processor fetches many
    at once; ``number_words`` would wait for each.
    """
    slots: cython.ulonglong[::1] = words.slots
    entries: cython.ulonglong[:, ::1] = words.entries
    mask: cython.ulonglong = slots.shape[0] - 1
    seen: cython.ulonglong = 0
    word: cython.ulonglong
    row: cython.Py_ssize_t
    for row in range(begin, stop):
        hashes[row - begin] = _hash(keys[row, 0], keys[row, 1])
    for row in range(begin, stop):
        seen |= slots[hashes[row - begin] & mask]
    for row in range(begin, stop):
        word = slots[hashes[row - begin] & mask] & _LOW_HALF
        seen |= entries[word - (word > 0), 0]
    hashes[_TOGETHER] = seen  # or the compiler would leave the loop out


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def number_words(
    words: Words,
    keys: cython.const[cython.ulonglong][:, ::1],
    count: cython.Py_ssize_t,
    source: cython.const[cython.uchar][::1],
    size: cython.Py_ssize_t,
    numbers: cython.uint[::1],
    first: cython.Py_ssize_t,
    hashes: cython.ulonglong[::1],
) -> cython.int:
    """Give words numbers: known ones theirs, new ones the next; return -1 after an error.

    Before it writes anything it makes room, so an error leaves the table as it was.
    ``keys`` are ``count`` rows like those of ``entries``, but with their places in ``source``,
    where they have ``size`` bytes. ``numbers`` takes that of each word, from ``first`` on;
    ``hashes`` is room for ``TOGETHER`` + 1.
    """
    _reserve(words, count, size)
    slots: cython.ulonglong[::1] = words.slots
    entries: cython.ulonglong[:, ::1] = words.entries
    pool: cython.uchar[::1] = words.pool
    mask: cython.ulonglong = slots.shape[0] - 1
    known: cython.ulonglong = words.used[0]
    end: cython.ulonglong = words.used[1]
    begin: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    row: cython.Py_ssize_t
    low: cython.ulonglong
    high: cython.ulonglong
    mixed: cython.ulonglong
    slot: cython.ulonglong
    word: cython.ulonglong
    while begin < count:
        stop = min(begin + _TOGETHER, count)
        _prefetch(words, keys, begin, stop, hashes)
        for row in range(begin, stop):
            low = keys[row, 0]
            high = keys[row, 1]
            mixed = hashes[row - begin]
            slot = mixed & mask
            while slots[slot]:
                if slots[slot] >> 32 == mixed:
                    word = (slots[slot] & _LOW_HALF) - 1
                    if (
                        entries[word, 0] == low
                        and entries[word, 1] == high
                        and entries[word, 3] == keys[row, 3]
                        and (
                            high < _LONG
                            or _same(pool, entries[word, 2], source, keys[row, 2], keys[row, 3])
                        )
                    ):
                        break
                slot = (slot + 1) & mask
            if not slots[slot]:
                slots[slot] = (mixed << 32) | (known + 1)
                entries[known, 0] = low
                entries[known, 1] = high
                entries[known, 2] = end
                entries[known, 3] = keys[row, 3]
                _write(low, high, source, keys[row, 2], keys[row, 3], pool, end)
                known += 1
                end += keys[row, 3] + 1
            numbers[first + row] = (slots[slot] & _LOW_HALF) - 1
        begin = stop
    words.used[0] = known
    words.used[1] = end
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _same(
    pool: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    source: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
) -> cython.bint:
    differs: cython.uchar = 0
    i: cython.Py_ssize_t
    for i in range(length):
        differs |= pool[start + i] ^ source[first + i]
    return differs == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(
    low: cython.ulonglong,
    high: cython.ulonglong,
    source: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    pool: cython.uchar[::1],
    start: cython.Py_ssize_t,
) -> cython.void:
    """Write a word and a line feed to the pool; what comes next writes over the rest."""
    i: cython.Py_ssize_t
    if high < _LONG:
        for i in range(8):
            pool[start + i] = (low >> (8 * i)) & 0xFF
            pool[start + i + 8] = (high >> (8 * i)) & 0xFF
    else:
        for i in range(length):
            pool[start + i] = source[first + i]
    pool[start + length] = 10


def adopt(scanned, table):
    """Give the words of a scan numbers in a table; see ``Scanner.add_words``."""
    words: Words = Words(table)
    keys: cython.const[cython.ulonglong][:, ::1] = view(scanned.entries)
    source: cython.const[cython.uchar][::1] = view(scanned.pool)
    numbers = np.empty(len(scanned.entries), np.uint32)
    out: cython.uint[::1] = view(numbers)
    hashes: cython.ulonglong[::1] = empty(TOGETHER + 1, np.uint64)
    size: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(keys.shape[0]):
            size += keys[i, 3]
        number_words(words, keys, keys.shape[0], source, size, out, 0, hashes)
    return words.arrays, numbers


def expand(tokens, counts, plain, starts, terms):
    """Put terms in the place of words; see ``Scanner.expand``."""
    in_tokens: cython.const[cython.uint][::1] = view(tokens)
    in_counts: cython.const[cython.uint][::1] = view(counts)
    in_plain: cython.const[cython.uint][::1] = view(plain)
    in_starts: cython.const[cython.longlong][::1] = view(starts)
    in_terms: cython.const[cython.uint][::1] = view(terms)
    more: cython.Py_ssize_t
    total: cython.Py_ssize_t
    with cython.nogil:
        more = _count_more(in_tokens, in_plain, in_starts)
    # One more, because a stop word is written, too, before what follows it takes its place.
    expanded = np.empty(len(tokens) + more + 1, np.uint32)
    expanded_counts = np.empty(len(counts), np.uint32)
    out: cython.uint[::1] = view(expanded)
    out_counts: cython.uint[::1] = view(expanded_counts)
    with cython.nogil:
        total = _expand(in_tokens, in_counts, in_plain, in_starts, in_terms, out, out_counts)
    return expanded[:total], expanded_counts


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_more(
    tokens: cython.const[cython.uint][::1],
    plain: cython.const[cython.uint][::1],
    starts: cython.const[cython.longlong][::1],
) -> cython.Py_ssize_t:
    """Return how many more terms than one the words have that are several terms."""
    more: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    word: cython.Py_ssize_t
    for i in range(tokens.shape[0]):
        if plain[tokens[i]] ^ _SEVERAL < _STOPPED ^ _SEVERAL:
            word = plain[tokens[i]] - _SEVERAL
            more += max(starts[word + 1] - starts[word] - 1, 0)
    return more


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _expand(
    tokens: cython.const[cython.uint][::1],
    counts: cython.const[cython.uint][::1],
    plain: cython.const[cython.uint][::1],
    starts: cython.const[cython.longlong][::1],
    terms: cython.const[cython.uint][::1],
    expanded: cython.uint[::1],
    expanded_counts: cython.uint[::1],
) -> cython.Py_ssize_t:
    """Write terms and how many each text has; return how many there are."""
    place: cython.Py_ssize_t = 0
    token: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t = 0
    begin: cython.Py_ssize_t
    text: cython.Py_ssize_t
    i: cython.Py_ssize_t
    word: cython.Py_ssize_t
    term: cython.uint
    for text in range(counts.shape[0]):
        begin = place
        stop += counts[text]
        while token < stop:
            term = plain[tokens[token]]
            token += 1
            # Whether it is between them, in one comparison.
            if term ^ _SEVERAL < _STOPPED ^ _SEVERAL:
                word = term - _SEVERAL
                for i in range(starts[word], starts[word + 1]):
                    expanded[place] = terms[i]
                    place += terms[i] != _STOPPED
            else:
                # No branch on stop words: no processor foresees where they are.
                expanded[place] = term
                place += term != _STOPPED
        expanded_counts[text] = place - begin
    return place
