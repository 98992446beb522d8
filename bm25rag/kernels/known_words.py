"""The terms of words that were met before, by the UTF-8 of the words: none is made a string."""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.memory import empty, zeros

if not cython.compiled:
    from bm25rag.kernels.utf8 import utf8_of

_ROOM = cython.declare(cython.Py_ssize_t, 512)
# How many slots are looked at for a word. More than that are in use together if somebody has
# chosen words for it, which are then not remembered.
_PROBES = cython.declare(cython.Py_ssize_t, 64)
_ALL = cython.declare(cython.ulonglong, (1 << 64) - 1)
_LOW_HALF = cython.declare(cython.ulonglong, (1 << 32) - 1)
_A = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_B = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)


@cython.final
@cython.cclass
class KnownWords:
    """Remembers the terms of words, the first that it is given; threads may share it.

    The words are in ``pool``, one after another, and ``ends`` are where each begins and the last
    one ends. ``slots``, at most half of which are in use, have a word's hash above and its number,
    plus one, below. A change makes room first; after that it calls nothing that lets another
    thread in. ``folds`` are of letters of two bytes, as ``utf8.folded_of`` takes them; 0: it is
    not known.
    """

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return len(self.terms)

    def clear(self):
        """Forget all words."""
        slots: cython.ulonglong[::1] = zeros(2 * _ROOM, np.uint64)
        ends: cython.longlong[::1] = zeros(_ROOM + 1, np.int64)
        pool: cython.uchar[::1] = empty(16 * _ROOM, np.uint8)
        terms: list = []
        folds: cython.ulonglong[::1] = zeros(0x800, np.uint64)
        self.slots = slots
        self.ends = ends
        self.pool = pool
        self.terms = terms
        self.folds = folds

    def get(self, word):
        """Return the terms of a word; ``None`` if it is not known."""
        return _get_or_set(self, word, None)

    def update(self, of_words):
        """Remember the terms of words, but of those with lone surrogates."""
        for word, terms in of_words.items():
            _get_or_set(self, word, terms)


@cython.cfunc
def _get_or_set(known: KnownWords, word, terms):
    """Return the terms of a word, or remember them if they are given."""
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        data = utf8_of(word, cython.address(size))
    else:
        data, size = utf8_of(word)
    if size < 0:
        return None
    if terms is None:
        return terms_at(known, data, 0, size)
    remember(known, data, 0, size, terms)
    return terms


@cython.cfunc
def terms_at(
    known: KnownWords,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
):
    """Return the terms of the word from ``start`` to before ``stop``; ``None``: it is unknown."""
    number: cython.Py_ssize_t = _number_of(known, _hash(data, start, stop), data, start, stop)
    return None if number < 0 else known.terms[number]


@cython.cfunc
def remember(
    known: KnownWords,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    terms,
) -> cython.void:
    """Remember the terms of the word from ``start`` to before ``stop``."""
    hash_: cython.ulonglong = _hash(data, start, stop)
    slot: cython.ulonglong
    number: cython.Py_ssize_t
    end: cython.longlong
    place: cython.Py_ssize_t
    while not _has_room(known, len(known.terms), stop - start):
        _grow(known, stop - start)
    if _number_of(known, hash_, data, start, stop) >= 0:
        return
    slot = _free_slot(known.slots, hash_)
    if slot == _ALL:
        return
    known.terms.append(terms)
    number = len(known.terms)
    end = known.ends[number - 1]
    for place in range(start, stop):
        known.pool[end] = data[place]
        end += 1
    known.ends[number] = end
    known.slots[slot] = (hash_ << 32) | number


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _hash(
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.ulonglong:
    """Return a hash of 32 bits."""
    mixed: cython.ulonglong = _A ^ (stop - start)
    place: cython.Py_ssize_t
    for place in range(start, stop - 8, 8):
        mixed = ((mixed ^ _eight(data, place)) * _B) & _ALL
        mixed ^= mixed >> 32
    mixed = ((mixed ^ _last(data, start, stop)) * _B) & _ALL
    return ((mixed ^ mixed >> 32) * _A & _ALL) >> 32


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _eight(
    data: cython.pointer[cython.const[cython.uchar]], place: cython.Py_ssize_t
) -> cython.ulonglong:
    """Return eight bytes as a number, the first one lowest."""
    loaded: cython.ulonglong = 0
    i: cython.Py_ssize_t
    for i in range(8):
        loaded |= cython.cast(cython.ulonglong, data[place + i]) << (8 * i)
    return loaded


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _last(
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.ulonglong:
    """Return the last eight bytes of a word, or all that it has, as a number."""
    loaded: cython.ulonglong = 0
    place: cython.Py_ssize_t
    if stop - start >= 8:
        return _eight(data, stop - 8)
    for place in range(start, stop):
        loaded = (loaded << 8 & _ALL) | data[place]
    return loaded


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _number_of(
    known: KnownWords,
    hash_: cython.ulonglong,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Return the number of a word; -1 if it is not known."""
    mask: cython.ulonglong = known.slots.shape[0] - 1
    tried: cython.Py_ssize_t
    held: cython.ulonglong
    number: cython.Py_ssize_t
    for tried in range(_PROBES):
        held = known.slots[(hash_ + tried) & mask]
        if held == 0:
            return -1
        if held >> 32 == hash_:
            number = (held & _LOW_HALF) - 1
            if _is_word(known, number, data, start, stop):
                return number
    return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_word(
    known: KnownWords,
    number: cython.Py_ssize_t,
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
) -> cython.bint:
    begin: cython.Py_ssize_t = known.ends[number]
    end: cython.Py_ssize_t = known.ends[number + 1]
    differs: cython.ulonglong = 0
    i: cython.Py_ssize_t
    if end - begin != stop - start:
        return False
    pool = cython.address(known.pool[0]) if cython.compiled else known.pool
    for i in range(0, stop - start - 8, 8):
        differs |= _eight(pool, begin + i) ^ _eight(data, start + i)
    return differs | (_last(pool, begin, end) ^ _last(data, start, stop)) == 0


@cython.cfunc
@cython.exceptval(check=False)
def _free_slot(slots: cython.ulonglong[::1], hash_: cython.ulonglong) -> cython.ulonglong:
    """Return the first free slot for a hash; ``_ALL`` if it is too far."""
    mask: cython.ulonglong = slots.shape[0] - 1
    tried: cython.Py_ssize_t
    for tried in range(_PROBES):
        if slots[(hash_ + tried) & mask] == 0:
            return (hash_ + tried) & mask
    return _ALL


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _has_room(known: KnownWords, count: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.bint:
    """Whether there is room for one more word than there are, of so many bytes."""
    return count + 1 < known.ends.shape[0] and known.ends[count] + size <= known.pool.shape[0]


@cython.cfunc
def _grow(known: KnownWords, size: cython.Py_ssize_t):
    """Make room for one more word, of so many bytes, and for many others."""
    count: cython.Py_ssize_t = len(known.terms)
    used: cython.longlong = known.ends[count]
    words: cython.Py_ssize_t = known.ends.shape[0] - 1
    pool_size: cython.Py_ssize_t = known.pool.shape[0]
    if count == words:
        words *= 4
    if used + size > pool_size:
        pool_size = 4 * (pool_size + size)
    slots: cython.ulonglong[::1] = zeros(2 * words, np.uint64)
    ends: cython.longlong[::1] = zeros(words + 1, np.int64)
    pool: cython.uchar[::1] = empty(pool_size, np.uint8)
    slot: cython.ulonglong
    i: cython.Py_ssize_t
    count = len(known.terms)
    used = known.ends[count]
    if count > words or used > pool_size:  # new memory has let others in, who made room, too
        return
    for i in range(count + 1):
        ends[i] = known.ends[i]
    for i in range(used):
        pool[i] = known.pool[i]
    for i in range(known.slots.shape[0]):
        if known.slots[i]:
            slot = _free_slot(slots, known.slots[i] >> 32)
            if slot != _ALL:
                slots[slot] = known.slots[i]
    known.slots = slots
    known.ends = ends
    known.pool = pool
