"""What a search reads of a segment: strings, and where the postings of a term are.

A segment may lie in a file, of which nothing is used before it is checked. What is not known to be
right is left to Python, which checks it or says what is wrong.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.checksum import IS_FAST
from bm25rag.kernels.memory import empty, view

# How many documents numbers of 16 bits tell apart.
_NUMBERS = cython.declare(cython.Py_ssize_t, 1 << 16)
# Strings of so many bytes in all are near enough to the processor, as a few thousand ids are.
_NEAR = cython.declare(cython.Py_ssize_t, 1 << 18)
# Documents that are looked for among those of a term at most, or the other way round, to count
# them; and documents of a term that are looked up in a mask. A search takes as long as so many of
# these. What takes longer, Python does and remembers.
_COUNTED = cython.declare(cython.Py_ssize_t, 1 << 12)
_MASKED = cython.declare(cython.Py_ssize_t, 1 << 15)
_SEARCHED = cython.declare(cython.Py_ssize_t, 16)
# Strings of more that are fetched together, and then decoded.
_TOGETHER = cython.declare(cython.Py_ssize_t, 16)

if not cython.compiled:
    from bm25rag.kernels.checksum import crc_after
    from bm25rag.kernels.collecting import first_at_least
    from bm25rag.kernels.rows import SegmentRows, first_from
    from bm25rag.kernels.utf8 import text_of

    def length_of(piece: int) -> int:
        """Return how many bytes a piece has."""
        return max(1, (piece.bit_length() + 7) // 8)

    def store(data: memoryview, place: int, piece: int) -> None:
        """Write eight bytes, the lowest first."""
        data[place : place + 8] = piece.to_bytes(8, "little")


@cython.final
@cython.cclass
class _Blocks:
    """Which blocks of a file have been checked, and what checks the others, if anything does."""


@cython.final
@cython.cclass
class _Strings:
    """Where the strings of a column begin, and their bytes; where both are in a file.

    Offsets are in one of two arrays; the other is empty. With ``pieces``, ``data`` is empty, and
    ``numbers`` has theirs.
    """


@cython.final
@cython.cclass
class Postings:
    """``PostingsArrays``; where those arrays are in a file of which only parts are checked."""


@cython.cfunc
def _prepare_blocks(file) -> _Blocks:
    blocks: _Blocks = _Blocks()
    blocks.flags = view(file.flags)
    blocks.size = file.size
    blocks.data = view(file.data)
    blocks.sums = view(file.sums if IS_FAST else np.empty(0, np.uint32))
    return blocks


@cython.cfunc
def prepare_strings(strings) -> _Strings:
    """Return ``StringArrays`` as the kernels take them, made once."""
    prepared: _Strings
    if strings.prepared is not None:
        prepared = strings.prepared
        return prepared
    prepared = _Strings()
    prepared.blocks = _prepare_blocks(strings.file)
    prepared.count = len(strings.offsets) - 1
    prepared.is_narrow = strings.offsets.dtype == np.uint32
    prepared.narrow = view(strings.offsets if prepared.is_narrow else np.empty(0, np.uint32))
    prepared.wide = view(np.empty(0, np.uint64) if prepared.is_narrow else strings.offsets)
    prepared.pieces = view(strings.pieces)
    packed: cython.bint = strings.data.dtype == np.uint16
    prepared.data = view(np.empty(0, np.uint8) if packed else strings.data)
    prepared.numbers = view(strings.data if packed else np.empty(0, np.uint16))
    prepared.width = strings.data.itemsize
    prepared.starts_at, prepared.data_at = strings.file.places[:2]
    prepared.pieces_at = strings.file.places[2] if packed else 0
    strings.prepared = prepared
    return prepared


@cython.cfunc
def prepare_postings(postings) -> Postings:
    """Return ``PostingsArrays`` as the kernels take them, made once."""
    prepared: Postings
    if postings.prepared is not None:
        prepared = postings.prepared
        return prepared
    prepared = Postings()
    prepared.blocks = _prepare_blocks(postings.file)
    prepared.terms = prepare_strings(postings.terms)
    prepared.keys = view(postings.keys)
    prepared.indptr = view(postings.indptr)
    prepared.documents = view(postings.documents)
    prepared.is_narrow = postings.codes.dtype == np.uint16
    prepared.narrow = view(postings.codes if prepared.is_narrow else np.empty(0, np.uint16))
    prepared.wide = view(np.empty(0, np.uint32) if prepared.is_narrow else postings.codes)
    prepared.frequent = view(postings.frequent)
    prepared.edges = view(postings.edges)
    prepared.before = view(postings.before)
    prepared.high = view(postings.high)
    prepared.codes = postings.code_count
    prepared.size = postings.size
    prepared.block_size = postings.block_size
    prepared.doc_blocks = postings.blocks
    places = postings.file.places
    prepared.indptr_at, prepared.documents_at, prepared.codes_at = places[:3]
    prepared.edges_at, prepared.high_at = places[3:]
    postings.prepared = prepared
    return prepared


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _checked(blocks: _Blocks, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> cython.bint:
    """Check the bytes of the file from ``start`` to before ``stop``; return if they are right."""
    block: cython.Py_ssize_t
    if blocks.flags.shape[0] == 0 or start >= stop:  # not of a file
        return True
    for block in range(start // blocks.size, (stop - 1) // blocks.size + 1):
        if not blocks.flags[block] and not _check_block(blocks, block):
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _check_block(blocks: _Blocks, block: cython.Py_ssize_t) -> cython.bint:
    """Do so for a block that has not been checked; false, too, if Python must check it."""
    start: cython.Py_ssize_t = block * blocks.size
    size: cython.Py_ssize_t = min(blocks.size, blocks.data.shape[0] - start)
    if block >= blocks.sums.shape[0] or size <= 0:
        return False
    if crc_after(0, cython.address(blocks.data[start]), size) != blocks.sums[block]:
        return False
    blocks.flags[block] = 1  # other threads may write the same
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _start(strings: _Strings, number: cython.Py_ssize_t) -> cython.ulonglong:
    return strings.narrow[number] if strings.is_narrow else strings.wide[number]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _lies_right(strings: _Strings, number: cython.Py_ssize_t) -> cython.bint:
    """Whether a string is known to lie within the data."""
    width: cython.Py_ssize_t = 4 if strings.is_narrow else 8
    at: cython.Py_ssize_t = strings.starts_at + width * number
    if not 0 <= number < strings.count or not _checked(strings.blocks, at, at + 2 * width):
        return False
    start: cython.ulonglong = _start(strings, number)
    stop: cython.ulonglong = _start(strings, number + 1)
    size: cython.ulonglong = strings.data.shape[0] + strings.numbers.shape[0]
    if not start <= stop <= size:
        return False
    at = strings.data_at
    return _checked(strings.blocks, at + strings.width * start, at + strings.width * stop)


@cython.cfunc
def _fetch(strings: _Strings, numbers: list):
    """Have strings fetched into the cache at once, not each when the one before has been read."""
    number: cython.Py_ssize_t
    for number in numbers:
        if cython.compiled and _lies_right(strings, number):
            fetch(  # noqa: F821 - of the .pxd
                strings.data, strings.numbers, _start(strings, number), _start(strings, number + 1)
            )


def decode(arrays, numbers):
    """Decode some strings; see ``Backend.decode``."""
    strings: _Strings = prepare_strings(arrays)
    decoded: list = list(numbers)  # where each number makes place for its string
    i: cython.Py_ssize_t
    if strings.width == 2:
        return _decode_packed(strings, decoded)
    far: cython.bint = strings.data.shape[0] > _NEAR
    for i in range(len(decoded)):
        if far and i % _TOGETHER == 0:
            _fetch(strings, decoded[i : i + _TOGETHER])
        if not _decode_one(strings, decoded, i):
            return None
    return decoded


@cython.cfunc
def _decode_one(strings: _Strings, decoded: list, i: cython.Py_ssize_t) -> cython.bint:
    """Put a string in the place of its number; return whether it is known to be right."""
    number: cython.Py_ssize_t = decoded[i]
    if not _lies_right(strings, number):
        return False
    data = cython.address(strings.data[0]) if cython.compiled else strings.data
    decoded[i] = text_of(data, _start(strings, number), _start(strings, number + 1))
    return True


def decode_each(columns: list, segments: list, numbers):
    """Decode strings of several columns; see ``Backend.decode_each``."""
    decoded: list = list(numbers)
    strings: _Strings
    segment: cython.Py_ssize_t
    i: cython.Py_ssize_t
    try:
        for i in range(len(decoded)):
            segment = segments[i]
            if not 0 <= segment < len(columns):
                return None
            strings = prepare_strings(columns[segment])
            if strings.width == 2 or not _decode_one(strings, decoded, i):
                return None
    except UnicodeDecodeError:
        return None
    return decoded


@cython.cfunc
def _decode_packed(strings: _Strings, decoded: list):
    """Do the same for strings in pieces, in the place of their numbers."""
    at: cython.Py_ssize_t = strings.pieces_at
    number: cython.Py_ssize_t
    start: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    size: cython.Py_ssize_t
    i: cython.Py_ssize_t
    buffer: cython.uchar[::1] = empty(1 << 12, np.uint8)
    if not _checked(strings.blocks, at, at + 8 * strings.pieces.shape[0]):
        return None
    for i in range(len(decoded)):
        number = decoded[i]
        if not _lies_right(strings, number):
            return None
        start = _start(strings, number)
        stop = _start(strings, number + 1)
        if buffer.shape[0] < 8 * (stop - start):
            buffer = empty(8 * (stop - start), np.uint8)
        size = _put_together(strings.pieces, strings.numbers, start, stop, buffer, 0)
        if size < 0:
            return None
        data = cython.address(buffer[0]) if cython.compiled else buffer
        decoded[i] = text_of(data, 0, size)
    return decoded


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put_together(
    pieces: cython.const[cython.ulonglong][::1],
    numbers: cython.const[cython.ushort][::1],
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    data: cython.uchar[::1],
    place: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write some pieces and zeros behind them; return where they end, -1 if one is not there."""
    piece: cython.ulonglong
    i: cython.Py_ssize_t
    for i in range(start, stop):
        if numbers[i] >= pieces.shape[0]:
            return -1
        piece = pieces[numbers[i]]
        store(data, place, piece)
        place += length_of(piece)
    return place


def unpack(pieces, numbers, starts, stops):
    """Put texts in pieces together; see ``Backend.unpack``."""
    known: cython.const[cython.ulonglong][::1] = view(pieces)
    packed: cython.const[cython.ushort][::1] = view(numbers)
    begins: cython.const[cython.longlong][::1] = view(starts)
    ends: cython.const[cython.longlong][::1] = view(stops)
    offsets = np.zeros(len(starts) + 1, np.int64)
    places: cython.longlong[::1] = view(offsets)
    longest: cython.Py_ssize_t = 8 * int((stops - starts).sum())
    data = np.empty(longest, np.uint8)
    out: cython.uchar[::1] = view(data)
    place: cython.Py_ssize_t = 0
    text: cython.Py_ssize_t
    with cython.nogil:
        for text in range(begins.shape[0]):
            if place >= 0:
                place = _put_together(known, packed, begins[text], ends[text], out, place)
            places[text + 1] = place
    return None if place < 0 else (data[:place].copy(), offsets)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def find_term(
    postings: Postings,
    name: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
    key: cython.uint,
    starts: cython.pointer[cython.longlong],
) -> cython.bint:
    """Write where a term's postings begin, if it has any; return whether that is right.

    ``name`` is the term in UTF-8, of ``size`` bytes, and ``key`` its CRC-32. ``starts`` has room
    for where those of each block begin, and where the last ones end.
    """
    low: cython.Py_ssize_t = first_from(postings.keys, 0, key)
    if low == postings.keys.shape[0] or postings.keys[low] != key:
        return True
    # Two terms with the same key are few, and may be out of order.
    if low + 1 < postings.keys.shape[0] and postings.keys[low + 1] == key:
        return False
    if not _lies_right(postings.terms, low):
        return False
    return not _is_string(postings.terms, low, name, size) or _find_starts(postings, low, starts)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def count_living(
    postings: Postings, starts: cython.pointer[cython.longlong], rows: SegmentRows
) -> cython.Py_ssize_t:
    """Count the living documents of a term; -1 if that would take long.

    ``starts`` are as ``find_term`` writes them; where they are right, so are the documents.
    """
    count: cython.Py_ssize_t = starts[postings.doc_blocks] - starts[0]
    fewer: cython.Py_ssize_t = min(count, rows.numbers.shape[0])
    if rows.kept:
        return _count_common(postings, starts, rows.numbers) if fewer <= _COUNTED else -1
    if fewer * _SEARCHED < count:
        return count - _count_common(postings, starts, rows.numbers) if fewer <= _COUNTED else -1
    if count > _MASKED:
        return -1
    living: cython.Py_ssize_t = 0
    block: cython.Py_ssize_t
    place: cython.Py_ssize_t
    for block in range(postings.doc_blocks):
        for place in range(starts[block], starts[block + 1]):
            living += rows.living[block * postings.block_size + postings.documents[place]]
    return living


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_common(
    postings: Postings,
    starts: cython.pointer[cython.longlong],
    numbers: cython.const[cython.uint][::1],
) -> cython.Py_ssize_t:
    """Count the documents of a term that are among ascending ones."""
    place: cython.Py_ssize_t = starts[0]
    stop: cython.Py_ssize_t = starts[postings.doc_blocks]
    common: cython.Py_ssize_t = 0
    block: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t
    if stop - place <= numbers.shape[0]:
        for place in range(starts[0], stop):
            while place >= starts[block + 1]:
                block += 1
            number = block * postings.block_size + postings.documents[place]
            at = first_from(numbers, at, number)
            common += at < numbers.shape[0] and numbers[at] == number
        return common
    for at in range(numbers.shape[0]):
        number = numbers[at]
        block = number // postings.block_size
        place = first_at_least(
            postings.documents,
            max(place, cython.cast(cython.Py_ssize_t, starts[block])),
            starts[block + 1],
            number % postings.block_size,
        )
        common += place < starts[block + 1] and (
            postings.documents[place] == number % postings.block_size
        )
    return common


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_string(
    strings: _Strings,
    number: cython.Py_ssize_t,
    name: cython.pointer[cython.const[cython.uchar]],
    size: cython.Py_ssize_t,
) -> cython.bint:
    start: cython.Py_ssize_t = _start(strings, number)
    i: cython.Py_ssize_t
    if cython.cast(cython.Py_ssize_t, _start(strings, number + 1)) - start != size:
        return False
    for i in range(size):
        if strings.data[start + i] != name[i]:
            break
    else:
        return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_starts(
    postings: Postings, number: cython.Py_ssize_t, starts: cython.pointer[cython.longlong]
) -> cython.bint:
    """Do as ``DocBlocks.starts`` for a term, if all that it reads is right; return whether."""
    at: cython.Py_ssize_t = postings.indptr_at + 4 * number
    if number + 1 >= postings.indptr.shape[0] or not _checked(postings.blocks, at, at + 8):
        return False
    start: cython.Py_ssize_t = postings.indptr[number]
    stop: cython.Py_ssize_t = postings.indptr[number + 1]
    last: cython.Py_ssize_t = postings.doc_blocks
    if not start < stop <= postings.documents.shape[0]:
        return False
    if last > 1 and not _divide(postings, number, start, stop, starts):
        return False
    starts[0] = start
    starts[last] = stop
    return _are_right(postings, starts)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _divide(
    postings: Postings,
    number: cython.Py_ssize_t,
    start: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    starts: cython.pointer[cython.longlong],
) -> cython.bint:
    """Write where the postings of the second and later blocks begin; return whether it is right."""
    width: cython.Py_ssize_t = postings.doc_blocks - 1
    row: cython.Py_ssize_t = first_from(postings.frequent, 0, number)
    middle: cython.Py_ssize_t
    at: cython.Py_ssize_t
    previous: cython.Py_ssize_t = 0
    value: cython.Py_ssize_t
    i: cython.Py_ssize_t
    if row < postings.frequent.shape[0] and (
        cython.cast(cython.Py_ssize_t, postings.frequent[row]) == number
    ):
        at = postings.edges_at + 4 * row * width
        if not _checked(postings.blocks, at, at + 4 * width):
            return False
        for i in range(width):
            value = postings.edges[row, i]
            if value < previous or value > stop - start:
                return False
            starts[1 + i] = start + value
            previous = value
        return True
    first: cython.Py_ssize_t = start
    if row > 0:
        middle = postings.frequent[row - 1]
        at = postings.indptr_at + 4 * (middle + 1)
        if not _checked(postings.blocks, at, at + 4):
            return False
        first -= cython.cast(cython.Py_ssize_t, postings.indptr[middle + 1]) - cython.cast(
            cython.Py_ssize_t, postings.before[row - 1]
        )
    if first < 0 or first + stop - start > postings.high.shape[0]:
        return False
    at = postings.high_at + 2 * first
    if not _checked(postings.blocks, at, at + 2 * (stop - start)):
        return False
    for i in range(stop - start):
        value = postings.high[first + i]
        if value < previous or value > width:
            return False
        while previous < value:
            previous += 1
            starts[previous] = start + i
    while previous < width:
        previous += 1
        starts[previous] = stop
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_right(
    postings: Postings, starts: cython.pointer[cython.const[cython.longlong]]
) -> cython.bint:
    """Whether the documents and codes of a term are known to be as a search needs them."""
    if postings.blocks.flags.shape[0] == 0:  # they come from no file
        return True
    start: cython.Py_ssize_t = starts[0]
    stop: cython.Py_ssize_t = starts[postings.doc_blocks]
    width: cython.Py_ssize_t = 2 if postings.is_narrow else 4
    at: cython.Py_ssize_t = postings.documents_at + 2 * start
    if not _checked(postings.blocks, at, at + 2 * (stop - start)):
        return False
    at = postings.codes_at + width * start
    if not _checked(postings.blocks, at, at + width * (stop - start)):
        return False
    if _wrong(
        postings.documents, 0, starts, postings.doc_blocks, postings.block_size, postings.size
    ):
        return False
    largest: cython.uint = 0
    of_narrow: cython.ushort = 0
    i: cython.Py_ssize_t
    if postings.is_narrow:
        for i in range(start, stop):
            of_narrow = max(of_narrow, postings.narrow[i])
        largest = of_narrow
    else:
        for i in range(start, stop):
            largest = max(largest, postings.wide[i])
    return largest < cython.cast(cython.size_t, postings.codes)


def find_wrong(documents, starts, block_size: cython.Py_ssize_t, size: cython.Py_ssize_t):
    """Say what is wrong with the documents of a term; see ``Backend.find_wrong``."""
    numbers: cython.const[cython.ushort][::1] = view(documents)
    edges: cython.const[cython.longlong][::1] = view(starts)
    blocks: cython.Py_ssize_t = edges.shape[0] - 1
    wrong: cython.int
    first_edge = cython.address(edges[0]) if cython.compiled else edges
    with cython.nogil:
        wrong = _wrong(numbers, edges[0], first_edge, blocks, block_size, size)
    return (None, "block", "documents")[wrong]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _wrong(
    numbers: cython.const[cython.ushort][::1],
    first: cython.Py_ssize_t,
    edges: cython.pointer[cython.const[cython.longlong]],
    blocks: cython.Py_ssize_t,
    block_size: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.int:
    """Return 1 if a document is beyond its block, 2 if they do not ascend, 0 if all is well.

    ``edges`` say where the postings of each of ``blocks`` are in ``numbers``, which begin at
    ``first``, and where the last ones end.
    """
    last: cython.Py_ssize_t = edges[blocks]
    # Of 16 bits, as the documents are, or eight times fewer would be compared at once.
    highest: cython.ushort = 0
    falls: cython.ushort = 0
    in_block: cython.Py_ssize_t
    block: cython.Py_ssize_t
    posting: cython.Py_ssize_t
    if block_size < _NUMBERS:
        for posting in range(edges[0] - first, last - first):
            highest = max(highest, numbers[posting])
    for block in range(blocks):
        in_block = size - block * block_size
        for posting in range(edges[block] - first + 1, edges[block + 1] - first):
            falls |= cython.cast(cython.ushort, numbers[posting] <= numbers[posting - 1])
        if edges[block] < edges[block + 1]:
            falls |= numbers[edges[block + 1] - first - 1] >= in_block
    if highest >= block_size:
        return 1
    return 2 if falls else 0
