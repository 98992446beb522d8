"""Compiled tokenizer: texts in UTF-8 to word numbers.

What is ASCII goes through loops that compile to vector instructions or have no branch
for each character; where another character occurs within a run of word characters, that
run is decoded. Calls with arrays cost 30 ns and more, so each works on many words.
"""

from __future__ import annotations

import numpy as np

from bm25rag.common.arrays import Bool, Int64, UInt8, UInt32, UInt64
from bm25rag.kernels.bigrams import with_bigrams
from bm25rag.kernels.compiling import ZERO, compiled
from bm25rag.kernels.fold_bits import CJK, CLUSTER, MARK, OTHER, STOP, WORD
from bm25rag.kernels.signs import class_of, is_inside, mark_inside
from bm25rag.kernels.typed_bits import KIND, PECULIAR, SIGN, SINGLE, SIZE
from bm25rag.kernels.words import BEYOND, key, load_word, new_words, number_words, with_room

# Bytes between two looks at what begins and ends in them.
_BLOCK = 4096
# Stands for an ASCII character whose lower case is not ASCII; no byte of UTF-8.
_STRANGE = np.uint8(0xFF)
_HIGH_BITS = np.uint64(0x8080808080808080)
_ONE, _TWO, _BYTE = np.uint64(1), np.uint64(2), np.uint64(0xFF)
_FOUR_BYTES = np.uint64(0xFFFFFFFF)
# As typed constants: else Numba compiles functions once more for each literal number.
_ZERO, _NONE = np.int64(0), np.int64(-1)
# What is kept from call to call: the next edge, and the next place if it is amid a run;
# what the run is at; where in ``source`` the word so far begins, and its end; of how many
# characters or clusters it is; the latest character; bytes of the words found; the text they
# are in; how many words were found before them, and pairs; where the second of two clusters
# begins; and the classes of the latest two characters.
_EDGE, _PLACE, _AT, _BEGIN, _END, _LENGTH, _FORMER, _BYTES, _TEXT, _BEFORE, _PAIRS = range(11)
_MIDDLE, _PRIOR = 11, 12
_FULL_STOP = 46
# In fewer bytes, and where fewer of them begin a Chinese, Japanese or Korean character, bigrams
# are looked up like other words: to sort them has a price of its own. Of so many bytes one is
# asked; it is no multiple of three.
_LEAST, _SHARE, _STEP = 1 << 15, 16, 256


@compiled
def find_peculiar(data: UInt8, ends: Int64, table: UInt64, peculiar: Bool) -> bool:
    """Find the texts for which the table is not enough; return whether there are any.

    Parameters
    ----------
    data
        Texts in UTF-8, one after the other.
    ends
        Where each text ends, (n,).
    table
        See ``fold_table``.
    peculiar
        Takes whether a text needs more than the table, (n,).
    """
    place, found = _ZERO, False
    for text in range(len(ends)):
        mark = np.uint64(0)
        while place < ends[text]:
            if place + 8 <= ends[text] and not load_word(data, np.uint64(place)) & _HIGH_BITS:
                place += 8
            elif data[place] < 0x80:
                place += 1
            else:
                point, place = _decode(data, place)
                mark |= table[point]
        place = ends[text]
        peculiar[text] = mark & PECULIAR != 0
        found |= peculiar[text]
    return found


@compiled
def scan(
    data: UInt8, ends: Int64, table: UInt64, least: int, possessives: bool
) -> tuple[UInt32, UInt32, UInt64, UInt8]:
    """Turn texts into numbers of their words.

    Parameters
    ----------
    data
        Texts in UTF-8, one after the other.
    ends
        Where each text ends, (n,).
    table
        See ``fold_table``.
    least
        Of how many characters a word is, at least: 1 or 2.
    possessives
        Whether to leave the ends of possessives out, of which nothing would remain.

    Returns
    -------
    tokens
        The word of every token, uint32.
    counts
        How many tokens each text has, (n,), uint32.
    entries, pool
        The words; see ``new_words``. Of bigrams that were sorted the pool has nothing.
    """
    # The texts with a gap after each, lower-cased where that is a matter of ASCII; behind
    # them room for words that are not ASCII.
    size = len(data) + len(ends)
    aside = size + BEYOND
    source = np.empty(3 * size + 2 * BEYOND, np.uint8)
    for place in range(size, aside):
        source[place] = 0
    inside = np.zeros(size + 1, np.uint8)
    strange = _fold(data, ends, table, source, inside)
    mark_inside(source, inside, size, possessives)
    edges = np.empty(_BLOCK + 2, np.int64)
    # One more than _BLOCK, since two words may end at once.
    found, origins = np.empty((_BLOCK + 1, 4), np.uint64), np.empty(_BLOCK + 1, np.int64)
    state = np.zeros(13, np.int64)
    state[_PLACE] = -1
    tokens, total = np.empty(size // 2 + 1, np.uint32), _ZERO
    counts = np.zeros(len(ends), np.uint32)
    pairs = np.empty((len(data) // 3 if _is_dense(data) else 0, 3), np.uint32)
    room = 64
    while 32 * room < len(data):  # English has a new word every 60 bytes, Chinese every 20
        room *= 2
    slots, entries, pool, used = new_words(room)
    pending = _ZERO
    for first in range(0, size, _BLOCK):
        pending = _find_edges(inside, first, min(first + _BLOCK, size), edges, pending)
        state[_EDGE], state[_BEGIN], state[_END], rows = 0, aside, aside, ZERO
        state[_MIDDLE] = aside
        while state[_EDGE] < pending - 1:
            rows = _gather(source, edges, pending - 1, found, origins, rows, state, least)
            rows = _split_runs(
                source,
                edges,
                pending - 1,
                table,
                strange,
                found,
                origins,
                rows,
                state,
                pairs,
                least,
            )
            if state[_EDGE] < pending - 1 and rows < _BLOCK:
                continue
            slots, entries, pool = with_room(slots, entries, pool, used, rows, state[_BYTES])
            number_words(found, source, slots, entries, pool, used, tokens[total : total + rows])
            _tell(origins, rows, ends, counts, state)
            total += rows
            state[_BEFORE], state[_BYTES], rows = total, 0, ZERO
        if pending & 1:
            edges[0] = edges[pending - 1]
        pending &= 1
    tokens, entries, pool = tokens[:total].copy(), entries[: used[0]].copy(), pool[: used[1]].copy()
    if state[_PAIRS]:
        text = 0
        for pair in range(state[_PAIRS]):
            while pairs[pair, 1] >= ends[text] + text:
                text += 1
            counts[text] += np.uint32(1)
        tokens, entries = with_bigrams(pairs, state[_PAIRS], tokens, entries, table)
    return tokens, counts, entries, pool


@compiled
def _is_dense(data: UInt8) -> bool:
    """Whether bigrams are so many that sorting them is worth its price, by a glance."""
    begun = 0
    for place in range(0, len(data), _STEP):
        begun += (data[place] >= 0xE3) & (data[place] < 0xEE)
    return bool(_LEAST <= len(data) < 1 << 32 and _SHARE * _STEP * begun > len(data))


@compiled
def _fold(data: UInt8, ends: Int64, table: UInt64, source: UInt8, inside: UInt8) -> np.int64:
    """Lower-case ASCII, and mark what may be inside a word but for signs, one place further on.

    Returns
    -------
    strange
        The ASCII character whose lower case is not ASCII, as the Turkish I, or -1.
    """
    add = np.uint8(table[65]) - np.uint8(65)  # from A to a, or 0 to keep case
    signs = np.uint8(2 if table[_FULL_STOP] >> SIGN & _BYTE else 0)
    strange = _NONE
    for letter in range(128):
        if table[letter] >> SIZE & _BYTE > 1:
            strange = np.int64(letter)
    start = _ZERO
    for text in range(len(ends)):
        gap = np.uint64(text)
        # An unsigned index has no end to wrap around at: so the loop becomes vector code.
        stop = np.uint64(max(ends[text] - 1, start))
        for place in range(np.uint64(start), stop):
            byte = data[place]
            source[place + gap] = _lower(byte, add, strange)
            inside[place + gap + _ONE] = _role(byte, data[place + _ONE], signs)
        for place in range(stop, np.uint64(ends[text])):
            source[place + gap] = _lower(data[place], add, strange)
            inside[place + gap + _ONE] = _role(data[place], np.uint8(0), signs)
        start = ends[text]
        source[start + text] = 0
    return strange


@compiled
def _lower(byte: np.uint8, add: np.uint8, strange: np.int64) -> np.uint8:
    capital = np.uint8(byte - 65) < np.uint8(26)
    return _STRANGE if byte == strange else np.uint8(byte + (add if capital else np.uint8(0)))


@compiled
def _role(byte: np.uint8, following: np.uint8, signs: np.uint8) -> np.uint8:
    """Return 1 for a byte inside a word, 2 for a sign that may be."""
    word = (
        (np.uint8((byte | np.uint8(32)) - 97) < np.uint8(26))
        | (np.uint8(byte - 48) < np.uint8(10))
        | (byte == 95)
        | (byte >= 128)
    )
    # Most signs end a sentence or a clause: a space is behind them.
    between = ((byte == 39) | (byte == 44) | (byte == 46)) & (following > 32)
    return np.uint8(word) | signs * np.uint8(between | (byte == 35) | (byte == 43))


@compiled
def _find_edges(inside: UInt8, first: int, stop: int, edges: Int64, count: np.int64) -> np.int64:
    """Add the places at which words begin and end, in turn; return how many there are."""
    for place in range(np.uint64(first), np.uint64(stop)):
        edges[np.uint64(count)] = place
        count += inside[place] ^ inside[place + _ONE]
    return count


@compiled
def _gather(
    source: UInt8,
    edges: Int64,
    stop: np.int64,
    found: UInt64,
    origins: Int64,
    rows: int,
    state: Int64,
    least: int,
) -> int:
    """Find words of ASCII, up to the first run that is not all ASCII.

    Parameters
    ----------
    source, state
        See ``scan``, and above.
    edges, stop
        Where runs of word characters begin and end, in turn, and how many of these to take.
    found, origins
        Take the words, as ``number_words`` has them, and where each was.
    rows
        How many are there before.
    least
        Of how many characters a word is, at least.

    Returns
    -------
    rows
        How many words there are now.
    """
    edge, size = state[_EDGE], state[_BYTES]
    while edge < stop and rows < _BLOCK:
        place = edges[np.uint64(edge)]
        length = edges[np.uint64(edge + 1)] - place
        if length >= least:
            if source[np.uint64(place)] >= 0x80:
                break
            low, high = key(source, place, length)
            if not _is_ascii(source, place, length, low, high):
                break
            row = np.uint64(rows)
            found[row, 0], found[row, 1] = low, high
            found[row, 2], found[row, 3] = place, length
            origins[row] = place
            rows += 1
            size += length
        edge += 2
    state[_EDGE], state[_BYTES] = edge, size
    return rows


@compiled
def _is_ascii(source: UInt8, first: int, length: int, low: np.uint64, high: np.uint64) -> bool:
    if length <= 16:
        return bool((low | high) & _HIGH_BITS == 0)
    bits = np.uint8(0)
    for place in range(first, first + length):
        bits |= source[place]
    return bool(bits < 0x80)


@compiled
def _split_runs(
    source: UInt8,
    edges: Int64,
    stop: np.int64,
    table: UInt64,
    strange: np.int64,
    found: UInt64,
    origins: Int64,
    rows: int,
    state: Int64,
    pairs: UInt32,
    least: int,
) -> int:
    """Find words in runs that are not all ASCII, as many as there is room for.

    The word so far lies folded at the end of ``source``. Parameters and result are as for
    ``_gather``. Bigrams of code points of 16 bits become ``pairs``, as ``with_bigrams`` takes
    them, where there is room for any.
    """
    edge, place = state[_EDGE], state[_PLACE]
    at, begin, end, length = state[_AT], state[_BEGIN], state[_END], state[_LENGTH]
    former, size, middle, prior = state[_FORMER], state[_BYTES], state[_MIDDLE], state[_PRIOR]
    while edge < stop and rows < _BLOCK:
        if place < 0:
            place, prior = edges[edge], _ZERO
        last = edges[edge + 1]
        while place <= last and rows < _BLOCK:
            entry, point = np.uint64(0), _ZERO  # behind the last one is what is inside no word
            if place == last:
                place += 1
            elif source[np.uint64(place)] == _STRANGE:
                entry, place = table[np.uint64(strange)], place + 1
            else:
                point, place = _decode(source, place)
                entry = table[np.uint64(point)]
            kind = np.int64(entry >> KIND & _BYTE)
            sign = np.int64(entry >> SIGN & _BYTE)
            # Of signs only a full stop begins a word.
            joins = sign == STOP or (sign != 0 and at == WORD)
            if joins and _is_inside(source, place, table, strange, entry, prior):
                kind = np.int64(WORD)
            prior = class_of(entry, at == CLUSTER, kind == WORD) | prior << 8 & 0xFF00
            if (at != WORD and at != CLUSTER) or (kind != at and kind != MARK) or kind == CLUSTER:
                low, high, width, start = np.uint64(0), np.uint64(0), _ZERO, begin
                if at == CJK:
                    one = table[np.uint64(former)]
                    if kind == CJK or length == 1 or (one & SINGLE) != 0:
                        low, width = one & _FOUR_BYTES, np.int64(one >> SIZE & _BYTE)
                        if kind == CJK:
                            low |= (entry & _FOUR_BYTES) << np.uint64(8 * width)
                            width += np.int64(entry >> SIZE & _BYTE)
                elif at == CLUSTER:
                    if length > 1 or kind != CLUSTER:
                        width = end - begin
                        low, high = key(source, begin, width)
                    if length > 1:
                        begin = middle
                    middle = end
                elif at == WORD and length >= least:
                    width = end - begin
                    low, high = key(source, begin, width)
                if width:
                    row = np.uint64(rows)
                    found[row, 0], found[row, 1] = low, high
                    found[row, 2], found[row, 3] = start, width
                    origins[row] = edges[edge]
                    rows += 1
                    size += width
                if at == CLUSTER and kind != CLUSTER and length > 1:
                    width = end - begin
                    low, high = key(source, begin, width)
                    row = np.uint64(rows)
                    found[row, 0], found[row, 1] = low, high
                    found[row, 2], found[row, 3] = begin, width
                    origins[row] = edges[edge]
                    rows += 1
                    size += width
                if kind != at:
                    begin, length = end, _ZERO
                at, former = kind if kind != MARK else np.int64(OTHER), point
                length += 1
                if kind == CJK and former < 1 << 16:
                    # The rest of the run, while its characters have three bytes: what the loop
                    # around asks of other kinds is not asked again for each.
                    count = np.uint64(state[_PAIRS])
                    before = np.uint64(state[_BEFORE] + rows)
                    while place < last and count < np.uint64(len(pairs)):
                        here = np.uint64(place)
                        if source[here] >> 4 != 0xE:
                            break
                        point = (
                            np.int64(source[here] & 0x0F) << 12
                            | np.int64(source[here + _ONE] & 0x3F) << 6
                            | np.int64(source[here + _TWO] & 0x3F)
                        )
                        if np.int64(table[np.uint64(point)] >> KIND & _BYTE) != CJK:
                            break
                        pairs[count, 0], pairs[count, 1] = before + count, place
                        pairs[count, 2] = former << 16 | point
                        former, place, length, count = point, place + 3, np.int64(2), count + _ONE
                    state[_PAIRS] = np.int64(count)
                if kind != WORD and kind != CLUSTER:
                    continue
            elif at == WORD:
                length += 1
            for byte in range(4):
                source[np.uint64(end) + np.uint64(byte)] = entry >> np.uint64(8 * byte) & _BYTE
            end += np.int64(entry >> SIZE & _BYTE)
        if place > last:
            edge, place = edge + 2, _NONE
            if edge < stop and source[edges[edge]] < 0x80:
                break
    state[_EDGE], state[_PLACE] = edge, place
    state[_AT], state[_BEGIN], state[_END], state[_LENGTH] = at, begin, end, length
    state[_FORMER], state[_BYTES], state[_MIDDLE], state[_PRIOR] = former, size, middle, prior
    return rows


@compiled
def _is_inside(
    source: UInt8,
    place: np.int64,
    table: UInt64,
    strange: np.int64,
    entry: np.uint64,
    prior: np.int64,
) -> bool:
    """Whether a sign before a place is inside a word; see ``is_inside``."""
    following, beyond = _entry(source, place, table, strange)
    after, _ = _entry(source, beyond, table, strange)
    return is_inside(entry, prior, following, after)


@compiled
def _entry(
    source: UInt8, place: np.int64, table: UInt64, strange: np.int64
) -> tuple[np.uint64, np.int64]:
    """Return the entry of what is at a place, and where the next one is."""
    if source[np.uint64(place)] == _STRANGE:
        return table[np.uint64(strange)], place + 1
    point, beyond = _decode(source, place)
    return table[np.uint64(point)], beyond


@compiled
def _tell(origins: Int64, rows: int, ends: Int64, counts: UInt32, state: Int64) -> None:
    """Count words to the texts they are in."""
    text, told = state[_TEXT], 0
    for row in range(rows):
        while origins[row] >= ends[text] + text:
            counts[text] += np.uint32(row - told)
            text, told = text + 1, row
    counts[text] += np.uint32(rows - told)
    state[_TEXT] = text


@compiled
def _decode(data: UInt8, place: np.int64) -> tuple[np.int64, np.int64]:
    """Return a code point and where the next one is; the data is UTF-8, perhaps with surrogates."""
    at = np.uint64(place)
    byte = np.int64(data[at])
    if byte < 0x80:
        return byte, place + 1
    second = np.int64(data[at + np.uint64(1)]) & 0x3F
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | second, place + 2
    third = np.int64(data[at + np.uint64(2)]) & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | second << 6 | third, place + 3
    fourth = np.int64(data[at + np.uint64(3)]) & 0x3F
    return (byte & 0x07) << 18 | second << 12 | third << 6 | fourth, place + 4
