"""The scanner: texts in UTF-8 to word numbers.

What is ASCII goes through loops that compile to vector instructions or have no branch
for each character; where another character occurs within a run of word characters, that
run is decoded.
"""

from __future__ import annotations

import cython
import numpy as np

from bm25rag.kernels.bigrams import with_bigrams
from bm25rag.kernels.boundary import LONGEST_JOINED, LONGEST_WORD
from bm25rag.kernels.memory import empty, view, zeros
from bm25rag.kernels.scanner_interface import PAGE, PECULIAR_TEXT
from bm25rag.kernels.word_table import BEYOND, TOGETHER

if not cython.compiled:
    from bm25rag.kernels.analyzing import mark_inside
    from bm25rag.kernels.fold_bits import (
        ANY,
        ASKED_SINGLE,
        CJK,
        CLUSTER,
        DIGIT,
        FIRST,
        JOINER,
        KIND,
        MARK,
        MEETING,
        OTHER,
        PECULIAR,
        SECOND,
        SIGN,
        SINGLE,
        SIZE,
        STOP,
        SYMBOL,
        WORD,
    )
    from bm25rag.kernels.selecting import lowest_bit
    from bm25rag.kernels.signs import class_of, is_inside
    from bm25rag.kernels.word_table import Words, new_words, number_words

# Bytes between two looks at what begins and ends in them.
BLOCK = 4096
_BLOCK = cython.declare(cython.Py_ssize_t, BLOCK)
_BEYOND = cython.declare(cython.Py_ssize_t, BEYOND)
_PAGE = cython.declare(cython.Py_ssize_t, PAGE)
_TOGETHER = cython.declare(cython.Py_ssize_t, TOGETHER)
# Stands for an ASCII character whose lower case is not ASCII; no byte of UTF-8.
_STRANGE = cython.declare(cython.uchar, 0xFF)
_ALL = cython.declare(cython.ulonglong, (1 << 64) - 1)
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)
# By which a number of eight bytes, each 0 or 1, has these as bits in its highest byte.
_ONE_BIT_EACH = cython.declare(cython.ulonglong, 0x0102040810204080)
_LOW_HALF = cython.declare(cython.ulonglong, 0xFFFFFFFF)
_LONG = cython.declare(cython.ulonglong, 0xFF << 56)
_A = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_B = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
_PECULIAR_TEXT = cython.declare(cython.Py_ssize_t, PECULIAR_TEXT)
# Bytes that are asked together whether a character may be peculiar.
_AT_ONCE = cython.declare(cython.Py_ssize_t, 32)
_NOTHING = cython.declare(cython.Py_ssize_t, -2)
# Neither spaces nor what comes before them in ASCII change how characters beside them are folded.
_A_SPACE = cython.declare(cython.uchar, 32)
# Of so many bytes one piece is expected to be peculiar, at most.
_PER_PIECE = cython.declare(cython.Py_ssize_t, 32)
# Bytes of one text up to which its scan is short enough to keep the GIL; and room of a scan that
# is kept for the next text.
_SHORT = cython.declare(cython.Py_ssize_t, 1 << 10)
_KEPT = cython.declare(cython.Py_ssize_t, 1 << 13)
_FULL_STOP = cython.declare(cython.Py_ssize_t, 46)
_LONGEST_JOINED = cython.declare(cython.Py_ssize_t, LONGEST_JOINED)
_LONGEST_WORD = cython.declare(cython.Py_ssize_t, LONGEST_WORD)
_A_LINE = cython.declare(cython.int, 95)
_A_POINT = cython.declare(cython.int, 46)
# In fewer bytes, and where fewer of them begin a Chinese, Japanese or Korean character, bigrams
# are looked up like other words: to sort them has a price of its own. Of so many bytes one is
# asked; it is no multiple of three.
_LEAST, _SHARE, _STEP = 1 << 15, 16, 256


@cython.final
@cython.cclass
class _Scan:
    """What a scan works on, and what it keeps from block to block.

    There is ``room`` for so many bytes of texts; a later scan may use all of it again. ``data`` is
    the texts, one after another, which end at ``ends``. ``words`` numbers the words, and
    ``all_tokens`` is ``tokens`` as an array. ``source`` has the texts with a gap after each,
    lower-cased where that is a matter of ASCII; behind them, from ``aside`` on, room for words that
    are not ASCII. ``inside`` says whether what is one place before is inside a word. ``edges`` are
    the places at which words begin and end, in turn; ``links`` those of signs that may be links of
    one word. ``keys`` takes the words of a block, in rows like the ``entries`` of a ``WordTable``,
    and ``origins`` where each was. ``pairs`` takes bigrams of code points of 16 bits, as
    ``with_bigrams`` has them, where there is room for any. A single text has ``own_ends`` and
    ``own_counts``.
    """

    room: cython.Py_ssize_t
    data: cython.const[cython.uchar][::1]
    words: Words
    all_tokens: object
    source: cython.uchar[::1]
    inside: cython.uchar[::1]
    table: cython.const[cython.ulonglong][::1]
    ends: cython.const[cython.longlong][::1]
    edges: cython.longlong[::1]
    links: cython.longlong[::1]
    keys: cython.ulonglong[:, ::1]
    origins: cython.longlong[::1]
    pairs: cython.uint[:, ::1]
    tokens: cython.uint[::1]
    counts: cython.uint[::1]
    own_ends: cython.longlong[::1]
    own_counts: cython.uint[::1]
    hashes: cython.ulonglong[::1]
    # Of how many characters a word is, at least; the ASCII character whose lower case is not
    # ASCII, as the Turkish I, or -1; and whether signs may be inside words, which are then of
    # letters, digits and underscores. Otherwise ``roles`` says of which bytes they are.
    least: cython.Py_ssize_t
    strange: cython.int
    signs: cython.bint
    # Whether the texts are questions; and whether what is also one word is to be found.
    question: cython.bint
    joins: cython.bint
    roles: cython.uchar[::1]
    aside: cython.Py_ssize_t
    # The next edge, and the next place if it is amid a run, else -1.
    edge: cython.Py_ssize_t
    place: cython.Py_ssize_t
    # The kind of what the word so far is of; where in ``source`` that begins and ends; of how
    # many characters or clusters it is; where the second of two clusters begins; the latest
    # character; and the classes of the latest two.
    at: cython.int
    begin: cython.Py_ssize_t
    end: cython.Py_ssize_t
    length: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    former: cython.Py_ssize_t
    prior: cython.int
    # The next link, how many there are, and the text that the next one is in.
    link: cython.Py_ssize_t
    all_links: cython.Py_ssize_t
    linked: cython.Py_ssize_t
    # The words of this block, and their bytes; all before it; all bigrams; and the text
    # that the latest word was in.
    rows: cython.Py_ssize_t
    size: cython.Py_ssize_t
    total: cython.Py_ssize_t
    bigrams: cython.Py_ssize_t
    text: cython.Py_ssize_t


def encode(texts, beyond: cython.Py_ssize_t):
    """Return the UTF-8 of texts, with so many bytes behind the last; see ``Scanner.encode``."""
    own: list = list(texts)  # which no other thread changes
    ends = np.empty(len(own), np.int64)
    out_ends: cython.longlong[::1] = view(ends)
    room: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i, text in enumerate(own):
        # Other classes may say anything of themselves.
        size = utf8_room(text) if cython.compiled and type(text) is str else -1  # noqa: F821
        if size < 0:
            own[i] = _utf8(text)
            size = len(own[i])
        room += size
        out_ends[i] = room
    if not cython.compiled:
        return np.frombuffer(b"".join([*own, bytes(beyond)]), np.uint8), ends
    data = np.empty(room + beyond + 1, np.uint8)  # the last may be empty
    out: cython.uchar[::1] = view(data)
    for i, text in enumerate(own):
        size = write_utf8(text, cython.address(out[place]))  # noqa: F821 - of the .pxd
        if size < 0:
            size = write_utf8(_utf8(text), cython.address(out[place]))  # noqa: F821
        place += size
        out_ends[i] = place
    return data[: place + beyond], ends


@cython.cfunc
def _utf8(text):
    # Not by a method of the text: a class of a user's may have another.
    try:
        if cython.compiled:
            return PyUnicode_AsUTF8String(text)  # noqa: F821 - of the .pxd
        return str.encode(text)
    except UnicodeEncodeError:
        return str.encode(text, "utf-8", "surrogatepass")


def find_peculiar(texts, fold_table):
    """Find pieces that need more than the fold table; see ``Scanner.find_peculiar``."""
    data: cython.const[cython.uchar][::1] = view(texts.data)
    ends: cython.const[cython.longlong][::1] = view(texts.ends)
    table: cython.const[cython.ulonglong][::1] = view(fold_table)
    pages: cython.uchar[::1] = zeros(len(fold_table) // PAGE, np.uint8)
    room: cython.Py_ssize_t = len(texts.data) // _PER_PIECE
    count: cython.Py_ssize_t = room + 1
    pieces: cython.longlong[:, ::1]
    while count > room:
        room = count
        found = np.empty((room, 2), np.int64)
        pieces = view(found)
        with cython.nogil:
            count = _find_peculiar(data, ends, table, pieces, pages)
    if count < 0:
        return found[:0], np.flatnonzero(pages).tolist()
    return found[:count], []


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_peculiar(
    data: cython.const[cython.uchar][::1],
    ends: cython.const[cython.longlong][::1],
    table: cython.const[cython.ulonglong][::1],
    pieces: cython.longlong[:, ::1],
    pages: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Write where pieces begin and end, while there is room; return how many there are.

    -1 if characters have no entries: their pages are marked.
    """
    count: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = 0
    asked: cython.Py_ssize_t = 0  # up to here nothing is peculiar, or each character is looked up
    latin: cython.uchar = _first_of_plain(table, 0xC3)
    upper: cython.uchar = _first_of_plain(table, 0xD0)
    lower: cython.uchar = _first_of_plain(table, 0xD1)
    text: cython.Py_ssize_t
    point: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0  # of the text
    end: cython.Py_ssize_t
    width: cython.Py_ssize_t
    is_lacking: cython.bint = False
    entry: cython.ulonglong
    before: cython.ulonglong
    for text in range(ends.shape[0]):
        before = 0
        while place < ends[text]:
            if place >= asked:
                asked = place
                while asked + _AT_ONCE <= data.shape[0] and _are_plain(
                    data, asked, latin, upper, lower
                ):
                    asked += _AT_ONCE
                if place < asked:
                    place = asked
                    before = 0
                    continue
                asked += _AT_ONCE
            if data[place] < 0xC0:  # ASCII, or the rest of a character that has been asked
                place += 1
                before = 0
                continue
            if data[place] < 0xE0:  # as most are
                point = (data[place] & 0x1F) << 6 | (data[place + 1] & 0x3F)
                width = 2
            else:
                point = _decode(data, place)
                width = _width(data[place])
            entry = table[point]  # once: another thread may make it meanwhile
            if (entry - 1) >> JOINER:  # there is none, or one that may need more
                if not entry:
                    pages[point // _PAGE] = 1
                    is_lacking = True
                elif _is_peculiar(before, entry):
                    end = place
                    while end < ends[text] and data[end] > _A_SPACE:
                        point = _decode(data, end)
                        if not table[point]:
                            pages[point // _PAGE] = 1
                            is_lacking = True
                        end += _width(data[end])
                    if count < pieces.shape[0]:
                        pieces[count, 0] = _begin_of_piece(data, start, place)
                        pieces[count, 1] = end
                    count += 1
                    place = end
                    before = 0
                    continue
            before = entry
            place += width
        start = ends[text]
    return -1 if is_lacking else count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _begin_of_piece(
    data: cython.const[cython.uchar][::1], start: cython.Py_ssize_t, place: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return where a piece begins that holds a place of the text from ``start`` on."""
    while place > start and data[place - 1] > _A_SPACE:
        place -= 1
    return place


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_peculiar(before: cython.ulonglong, entry: cython.ulonglong) -> cython.bint:
    """Whether a character behind another needs more than its entry."""
    first: cython.int = before >> MEETING & ANY
    second: cython.int = entry >> MEETING & ANY
    if entry >> PECULIAR or (entry >> JOINER & 1 and before >> KIND & 0xFF == MARK):
        return True
    return first and second and not (first == FIRST and second == SECOND)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _first_of_plain(table: cython.const[cython.ulonglong][::1], byte: cython.uchar) -> cython.uchar:
    """Return the first byte of 64 characters if none is peculiar and all are there; otherwise 0."""
    first: cython.Py_ssize_t = (byte & 0x1F) << 6
    point: cython.Py_ssize_t
    for point in range(first, first + 64):
        if not table[point] or table[point] >> PECULIAR:
            return 0
    return byte


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _are_plain(
    data: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    latin: cython.uchar,
    upper: cython.uchar,
    lower: cython.uchar,
) -> cython.bint:
    """Whether all of some bytes, which are asked in vectors, are ASCII or of these characters."""
    others: cython.uchar = 0
    i: cython.Py_ssize_t
    byte: cython.uchar
    for i in range(start, start + _AT_ONCE):
        byte = data[i]
        others |= (byte >= 0xC0) & (byte != latin) & (byte != upper) & (byte != lower)
    return others == 0


def scan(texts, fold_table, least, possessives, joins, question, spare):
    """Turn texts into numbers of their words; see ``Scanner.scan`` and ``Scanned``."""
    bytes_: cython.Py_ssize_t = len(texts.data)
    number: cython.Py_ssize_t = len(texts.ends)
    size: cython.Py_ssize_t = bytes_ + number
    without_possessives: cython.bint = possessives
    out_counts = np.zeros(number, np.uint32)
    # Sorted bigrams come with the characters that documents have.
    sorts: cython.bint = not question and _is_dense(texts.data)
    all_pairs = np.empty((bytes_ // 3 if sorts else 0, 3), np.uint32)
    it: _Scan = _with_room(size, spare)
    it.data = view(texts.data)
    it.table = view(fold_table)
    it.ends = view(texts.ends)
    it.pairs = view(all_pairs)
    it.counts = view(out_counts)
    it.least = least
    it.question = question
    it.joins = joins
    words: Words = it.words
    with cython.nogil:
        _run(it, words, size, without_possessives)
    _, entries, pool, used = words.arrays
    tokens, entries, pool = (
        it.all_tokens[: it.total].copy(),
        entries[: used[0]].copy(),
        pool[: used[1]].copy(),
    )
    if it.bigrams:
        with cython.nogil:
            _count_bigrams(it)
        tokens, entries = with_bigrams(all_pairs, it.bigrams, tokens, entries, fold_table)
    spare.append(it)
    return tokens, out_counts, entries, pool


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _run(it: _Scan, words: Words, size: cython.Py_ssize_t, possessives: cython.bint) -> cython.int:
    """Find and number the words of texts, of ``size`` with the gaps; return -1 after an error."""
    i: cython.Py_ssize_t
    it.strange = -1
    it.signs = it.table[_FULL_STOP] >> SIGN & 0xFF != 0
    it.aside = size + _BEYOND
    it.edge = it.rows = it.size = it.total = it.bigrams = it.text = 0
    it.link = it.all_links = it.linked = 0
    it.at = it.prior = 0
    it.place = -1
    it.begin = it.end = it.length = it.middle = it.former = 0
    for i in range(size, size + _BEYOND):
        it.source[i] = 0
    it.inside[0] = 0
    for i in range(words.slots.shape[0]):
        words.slots[i] = 0
    words.used[0] = 0
    words.used[1] = 0
    _fold(it)
    if it.signs:
        it.all_links = mark_inside(it.source, it.inside, size, possessives, it.links)
    if not it.joins:
        it.all_links = 0
    return _scan(it, words, size)


@cython.cfunc
def _with_room(size: cython.Py_ssize_t, spare) -> _Scan:
    """Return a scan with room for so many bytes, a spare one if that is large enough."""
    it: _Scan
    try:
        it = spare.pop()
        if it.room >= size:
            return it
    except IndexError:
        pass
    it = _Scan()
    it.room = size + size // 4
    # Beside texts, so much again for what is folded, a half more, and for what is joined.
    it.source = view(np.empty(4 * it.room + 2 * BEYOND, np.uint8))
    it.inside = empty(it.room + 1, np.uint8)
    it.all_tokens = np.empty(3 * (it.room // 4) + 4, np.uint32)
    it.links = empty(it.room // 2 + 1, np.int64)
    it.tokens = view(it.all_tokens)
    it.edges = empty(BLOCK + 2, np.int64)
    # One more than BLOCK, since two words may end at once.
    it.keys = view(np.empty((BLOCK + 1, 4), np.uint64))
    it.origins = empty(BLOCK + 1, np.int64)
    it.roles = empty(256, np.uint8)
    it.own_ends = empty(1, np.int64)
    it.own_counts = zeros(1, np.uint32)
    it.hashes = empty(TOGETHER + 1, np.uint64)
    room: cython.Py_ssize_t = 64
    while 48 * room < size:  # English has a new word every 60 bytes, Chinese every 20
        room *= 2
    it.words = new_words(room)
    return it


def _is_dense(data):
    """Guess from a sample of the bytes whether bigrams are so many that to sort them pays."""
    begun = int(np.count_nonzero((data[::_STEP] >= 0xE3) & (data[::_STEP] < 0xEE)))
    return _LEAST <= len(data) < 1 << 32 and _SHARE * _STEP * begun > len(data)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _scan(it: _Scan, words: Words, size: cython.Py_ssize_t) -> cython.int:
    """Find words, block by block, and number them; return -1 after an error."""
    pending: cython.Py_ssize_t = 0
    first: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    while first < size:
        last = min(first + _BLOCK, size)
        pending = _find_edges(it, first, last, pending)
        it.edge = 0
        it.begin = it.aside
        it.end = it.aside
        it.middle = it.aside
        it.rows = 0
        stop = _edge_of_links(it, pending - 1, last)
        while it.edge < pending - 1 or _are_links_before(it, last):
            _gather(it, it.source, it.edges, it.keys, it.origins, stop)
            _split_runs(it, it.source, it.table, it.pairs, stop)
            if it.edge >= stop and _are_links_before(it, last):
                _join_links(it, it.source)
                stop = _edge_of_links(it, pending - 1, last)
            if it.rows < _BLOCK and (it.edge < pending - 1 or _are_links_before(it, last)):
                continue
            number_words(
                words, it.keys, it.rows, it.source, it.size, it.tokens, it.total, it.hashes
            )
            _count_words(it)
            it.total += it.rows
            it.size = 0
            it.rows = 0
        if pending & 1:
            it.edges[0] = it.edges[pending - 1]
        pending &= 1
        first += _BLOCK
    return 0


# --- bytes -------------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _load_word(
    source: cython.const[cython.uchar][::1], place: cython.Py_ssize_t
) -> cython.ulonglong:
    """Return eight bytes as a number, the first one lowest."""
    word: cython.ulonglong = 0
    i: cython.Py_ssize_t
    for i in range(8):
        word |= cython.cast(cython.ulonglong, source[place + i]) << (8 * i)
    return word


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _low_key(
    source: cython.const[cython.uchar][::1], first: cython.Py_ssize_t, length: cython.Py_ssize_t
) -> cython.ulonglong:
    """Return the first number of a word's key; no two short words have the same key."""
    low: cython.ulonglong
    word: cython.ulonglong
    start: cython.Py_ssize_t
    rest: cython.Py_ssize_t
    if length <= 16:
        return _load_word(source, first) & (_ALL >> (64 - 8 * min(length, 8)))
    low = _A
    start = first
    while start < first + length:
        rest = min(first + length - start, 8)
        word = _load_word(source, start) & (_ALL >> (64 - 8 * rest))
        low = ((low ^ word) * _B) & _ALL
        low ^= low >> 32
        start += 8
    return low


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _high_key(
    source: cython.const[cython.uchar][::1], first: cython.Py_ssize_t, length: cython.Py_ssize_t
) -> cython.ulonglong:
    """Return the second number of a word's key."""
    if length <= 8:
        return 0
    if length <= 16:
        return _load_word(source, first + 8) & (_ALL >> (128 - 8 * length))
    return _LONG | length


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _decode(data: cython.const[cython.uchar][::1], place: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the code point at a place; the data is UTF-8, perhaps with surrogates."""
    byte: cython.Py_ssize_t = data[place]
    second: cython.Py_ssize_t
    third: cython.Py_ssize_t
    if byte < 0x80:
        return byte
    second = data[place + 1] & 0x3F
    if byte < 0xE0:
        return (byte & 0x1F) << 6 | second
    third = data[place + 2] & 0x3F
    if byte < 0xF0:
        return (byte & 0x0F) << 12 | second << 6 | third
    return (byte & 0x07) << 18 | second << 12 | third << 6 | (data[place + 3] & 0x3F)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _width(byte: cython.uchar) -> cython.Py_ssize_t:
    """Return how many bytes a code point has, by the first of them."""
    if byte < 0x80:
        return 1
    if byte < 0xE0:
        return 2
    return 3 if byte < 0xF0 else 4


# --- folding and edges -------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fold(it: _Scan) -> cython.void:
    """Lower-case ASCII, and mark what may be inside a word but for signs, one place further on."""
    data: cython.const[cython.uchar][::1] = it.data
    source: cython.uchar[::1] = it.source
    inside: cython.uchar[::1] = it.inside
    # From A to a, or 0 to keep case.
    to_lower: cython.uchar = (it.table[65] - 65) & 0xFF
    # A byte like all others, or the loops would take four at a time. If there is no such
    # character, that is what it becomes.
    strange: cython.uchar = _STRANGE
    roles: cython.uchar[::1] = it.roles
    letter: cython.Py_ssize_t
    text: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for letter in range(128):
        roles[letter] = it.table[letter] >> KIND & 0xFF == WORD
        if it.table[letter] >> SIZE & 0xFF > 1:
            it.strange = letter
            strange = letter
            roles[letter] = 1
    for letter in range(128, 256):
        roles[letter] = 1
    for text in range(it.ends.shape[0]):
        stop = it.ends[text]
        for i in range(start, stop):
            source[i + text] = _lower(data[i], to_lower, strange)
        if it.signs:
            for i in range(start, stop - 1):
                inside[i + text + 1] = _role(data[i], data[i + 1])
            if start < stop:
                inside[stop + text] = _role(data[stop - 1], 0)
        else:
            for i in range(start, stop):
                inside[i + text + 1] = roles[data[i]]
        start = stop
        source[start + text] = 0
        inside[start + text + 1] = 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _lower(byte: cython.uchar, to_lower: cython.uchar, strange: cython.uchar) -> cython.uchar:
    letter: cython.uchar = (byte - 65) & 0xFF
    lowered: cython.uchar = (byte + (to_lower if letter < 26 else 0)) & 0xFF
    return _STRANGE if byte == strange else lowered


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _role(byte: cython.uchar, following: cython.uchar) -> cython.uchar:
    """Return 1 for a byte inside a word as people write it, 2 for a sign that may be."""
    letter: cython.uchar = ((byte | 32) - 97) & 0xFF
    digit: cython.uchar = (byte - 48) & 0xFF
    word: cython.uchar = (letter < 26) | (digit < 10) | (byte == 95) | (byte >= 128)
    # Most signs end a sentence or a clause: a space is behind them.
    # An apostrophe or ampersand; a comma, hyphen or full stop.
    quote: cython.uchar = (byte - 38) & 0xFF
    point: cython.uchar = (byte - 44) & 0xFF
    between: cython.uchar = ((quote < 2) | (point < 3)) & (following > 32)
    sign: cython.uchar = between | (byte == 35) | (byte == 43)
    return word | (2 if sign else 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _find_edges(
    it: _Scan, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, count: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Add the places at which words begin and end, in turn; return how many there are."""
    inside: cython.uchar[::1] = it.inside
    edges: cython.longlong[::1] = it.edges
    changes: cython.ulonglong
    mask: cython.ulonglong
    i: cython.Py_ssize_t
    while first + 64 <= stop:
        mask = 0
        for i in range(0, 64, 8):
            changes = _load_word(inside, first + i) ^ _load_word(inside, first + i + 1)
            mask |= (changes * _ONE_BIT_EACH & _ALL) >> 56 << i
        while mask:
            edges[count] = first + lowest_bit(mask)
            count += 1
            mask &= mask - 1
        first += 64
    for i in range(first, stop):
        edges[count] = i
        count += inside[i] ^ inside[i + 1]
    return count


# --- words ---------------------------------------------------------------------------------------


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _gather(
    it: _Scan,
    source: cython.uchar[::1],
    edges: cython.longlong[::1],
    keys: cython.ulonglong[:, ::1],
    origins: cython.longlong[::1],
    stop: cython.Py_ssize_t,
) -> cython.void:
    """Find words of ASCII, up to the first run that is not all ASCII, or to the last edge.

    Here and below, arrays of ``it`` are arguments where functions are called for each word: to
    hold one in a local variable counts a reference, atomically, twice.
    """
    least: cython.Py_ssize_t = it.least
    edge: cython.Py_ssize_t = it.edge
    rows: cython.Py_ssize_t = it.rows
    size: cython.Py_ssize_t = it.size
    place: cython.Py_ssize_t
    length: cython.Py_ssize_t
    low: cython.ulonglong
    high: cython.ulonglong
    while edge < stop and rows < _BLOCK:
        place = edges[edge]
        length = edges[edge + 1] - place
        if length >= least:
            if source[place] >= 0x80:
                break
            low = _low_key(source, place, length)
            high = _high_key(source, place, length)
            if not _is_ascii(source, place, length, low, high):
                break
            keys[rows, 0] = low
            keys[rows, 1] = high
            keys[rows, 2] = place
            keys[rows, 3] = length
            origins[rows] = place
            rows += 1
            size += length
        edge += 2
    it.edge = edge
    it.rows = rows
    it.size = size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_ascii(
    source: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    low: cython.ulonglong,
    high: cython.ulonglong,
) -> cython.bint:
    bits: cython.uchar = 0
    i: cython.Py_ssize_t
    if length <= 16:
        return (low | high) & _HIGH_BITS == 0
    for i in range(first, first + length):
        bits |= source[i]
    return bits < 0x80


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _keep_word(
    it: _Scan,
    low: cython.ulonglong,
    high: cython.ulonglong,
    start: cython.Py_ssize_t,
    width: cython.Py_ssize_t,
    origin: cython.Py_ssize_t,
) -> cython.void:
    """Add a word to those of the block."""
    it.keys[it.rows, 0] = low
    it.keys[it.rows, 1] = high
    it.keys[it.rows, 2] = start
    it.keys[it.rows, 3] = width
    it.origins[it.rows] = origin
    it.rows += 1
    it.size += width


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _entry(it: _Scan, place: cython.Py_ssize_t) -> cython.ulonglong:
    """Return the entry in the fold table of what is at a place of ``source``."""
    if it.source[place] == _STRANGE:
        return it.table[it.strange]
    return it.table[_decode(it.source, place)]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _next(it: _Scan, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return where the next character of ``source`` is."""
    return place + (1 if it.source[place] == _STRANGE else _width(it.source[place]))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _ends_word(at: cython.int, kind: cython.int) -> cython.bint:
    """Whether a character of a kind is none of the word so far: clusters are words each."""
    return (at != WORD and at != CLUSTER) or (kind != at and kind != MARK) or kind == CLUSTER


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _kind_of(
    it: _Scan, entry: cython.ulonglong, at: cython.int, prior: cython.int, place: cython.Py_ssize_t
) -> cython.int:
    """Return the kind of a character, behind which ``place`` is; signs inside words are words.

    There is always something behind it: two characters of no word are behind the last one.
    """
    sign: cython.int = entry >> SIGN & 0xFF
    # Of signs only a full stop begins a word.
    if (sign == STOP or (sign != 0 and at == WORD)) and is_inside(
        entry, prior, _entry(it, place), _entry(it, _next(it, place))
    ):
        return WORD
    return entry >> KIND & 0xFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _keep_folded(it: _Scan, begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.void:
    """Add a word that lies folded in ``source``, and is not empty."""
    width: cython.Py_ssize_t = end - begin
    low: cython.ulonglong = _low_key(it.source, begin, width)
    high: cython.ulonglong = _high_key(it.source, begin, width)
    if width:
        _keep_word(it, low, high, begin, width, it.edges[it.edge])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _keep_single(it: _Scan, one: cython.ulonglong, start: cython.Py_ssize_t) -> cython.void:
    """Add a character that is a word; the lower half of its entry is its folded bytes."""
    if one >> SIZE & 0xFF:
        _keep_word(it, one & _LOW_HALF, 0, start, one >> SIZE & 0xFF, it.edges[it.edge])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _keep_bigram(
    it: _Scan,
    one: cython.ulonglong,
    other: cython.ulonglong,
    start: cython.Py_ssize_t,
) -> cython.void:
    """Add two characters in a row that are a word together: their bytes fit into one key."""
    width: cython.Py_ssize_t = one >> SIZE & 0xFF
    low: cython.ulonglong = one & _LOW_HALF | (other & _LOW_HALF) << (8 * width)
    width += other >> SIZE & 0xFF
    if width:
        _keep_word(it, low, 0, start, width, it.edges[it.edge])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _keep_ended(
    it: _Scan,
    at: cython.int,
    kind: cython.int,
    entry: cython.ulonglong,
    former: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    begin: cython.Py_ssize_t,
    middle: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> cython.void:
    """Add what ends before a character of a kind and entry; there is room for two words.

    Of ``length`` characters or clusters so far, of the kind ``at``, the last one is ``former`` and
    what lies folded in ``source`` is from ``begin`` to ``end``: at most two clusters, the second
    from ``middle`` on.
    """
    if at == CJK:
        # Each with the next one; what stands alone, or counts as a word, by itself as well.
        if kind == CJK:
            _keep_bigram(it, it.table[former], entry, begin)
        elif length == 1 or it.table[former] >> (ASKED_SINGLE if it.question else SINGLE) & 1:
            _keep_single(it, it.table[former], begin)
    elif at == CLUSTER:
        if length > 1 or kind != CLUSTER:
            _keep_folded(it, begin, end)
        if length > 1 and kind != CLUSTER and not it.question:
            _keep_folded(it, middle, end)
    elif at == WORD and length >= it.least:
        _keep_folded(it, begin, end)
    elif at == SYMBOL:
        _keep_single(it, it.table[former], begin)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _append(
    source: cython.uchar[::1], entry: cython.ulonglong, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Write what an entry folds a character to at the end of ``source``; return the new end."""
    i: cython.Py_ssize_t
    for i in range(4):
        source[end + i] = entry >> (8 * i) & 0xFF
    return end + (entry >> SIZE & 0xFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy_run(
    it: _Scan,
    source: cython.uchar[::1],
    table: cython.const[cython.ulonglong][::1],
    place: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
) -> cython.bint:
    """Copy a run and count its characters, if all are letters and digits; return whether they are.

    If not, what is said of the word so far is as before.
    """
    end: cython.Py_ssize_t = it.end
    length: cython.Py_ssize_t = 0
    byte: cython.Py_ssize_t
    entry: cython.ulonglong
    while place < last:
        byte = source[place]
        if 0xC0 <= byte < 0xE0:  # as most are that come here
            entry = table[(byte & 0x1F) << 6 | (source[place + 1] & 0x3F)]
            place += 2
        elif byte == _STRANGE:
            return False
        else:
            entry = table[_decode(source, place)]
            place += _width(source[place])
        if not _is_alphanumeric(entry):
            return False
        end = _append(source, entry, end)
        length += 1
    it.end = end
    it.length = length
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _split_runs(
    it: _Scan,
    source: cython.uchar[::1],
    table: cython.const[cython.ulonglong][::1],
    pairs: cython.uint[:, ::1],
    stop: cython.Py_ssize_t,
) -> cython.void:
    """Find words in runs that are not all ASCII, as many as there is room for.

    The word so far lies folded at the end of ``source``. Between two calls ``it`` says how far
    this is; within one, locals do, and the edge alone is in both.
    """
    place: cython.Py_ssize_t = it.place
    at: cython.int = it.at
    begin: cython.Py_ssize_t = it.begin
    end: cython.Py_ssize_t = it.end
    length: cython.Py_ssize_t = it.length
    former: cython.Py_ssize_t = it.former
    middle: cython.Py_ssize_t = it.middle
    prior: cython.int = it.prior
    last: cython.Py_ssize_t
    point: cython.Py_ssize_t
    i: cython.Py_ssize_t
    kind: cython.int
    entry: cython.ulonglong
    while it.edge < stop and it.rows < _BLOCK:
        last = it.edges[it.edge + 1]
        if place < 0:
            place = it.edges[it.edge]
            prior = 0
            # Most runs are one word of letters and digits: half the time.
            it.end = end
            if _copy_run(it, source, table, place, last):
                if it.length >= it.least:
                    _keep_folded(it, end, it.end)
                end = it.end
                place = last + 1
        while place <= last and it.rows < _BLOCK:
            entry = 0  # behind the last one is what is inside no word
            point = 0
            if place == last:
                place += 1
            elif source[place] == _STRANGE:
                entry = table[it.strange]
                place += 1
            else:
                point = _decode(source, place)
                place += _width(source[place])
                entry = table[point]
            kind = _kind_of(it, entry, at, prior, place)
            prior = class_of(entry, at == CLUSTER, kind == WORD) | (prior << 8 & 0xFF00)
            if _ends_word(at, kind):
                _keep_ended(it, at, kind, entry, former, length, begin, middle, end)
                if at == CLUSTER:
                    if length > 1:
                        begin = middle
                    middle = end
                if kind != at:
                    begin = end
                    length = 0
                at = kind if kind != MARK else OTHER
                former = point
                length += 1
                if kind == CJK and former < 1 << 16 and it.bigrams < pairs.shape[0]:
                    # The rest of the run, while its characters have three bytes: what the loop
                    # around asks of other kinds is not asked again for each.
                    i = it.bigrams
                    _list_pairs(it, source, table, pairs, place, last, former)
                    if it.bigrams > i:
                        place += 3 * (it.bigrams - i)
                        former = pairs[it.bigrams - 1, 2] & 0xFFFF
                        length = 2
                if kind != WORD and kind != CLUSTER:
                    continue
            elif at == WORD:
                length += 1
            end = _append(source, entry, end)
            if at == WORD:
                # The rest of the word as far as it is letters and digits: a third of the time.
                it.end = end
                it.length = length
                it.prior = prior
                place = _copy_letters(it, source, table, place, last)
                end = it.end
                length = it.length
                prior = it.prior
        if place > last:
            it.edge += 2
            place = -1
            if it.edge < stop and source[it.edges[it.edge]] < 0x80:
                break
    it.place = place
    it.at = at
    it.begin = begin
    it.end = end
    it.length = length
    it.former = former
    it.middle = middle
    it.prior = prior


# --- links ---------------------------------------------------------------------------------------


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _are_links_before(it: _Scan, last: cython.Py_ssize_t) -> cython.bint:
    """Whether the text that the next link is in ends before a place."""
    return it.link < it.all_links and it.ends[it.linked] + it.linked < last


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _edge_of_links(
    it: _Scan, stop: cython.Py_ssize_t, last: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Return the first edge behind the text of the next link; ``stop`` if there is none."""
    low: cython.Py_ssize_t = it.edge
    high: cython.Py_ssize_t = stop
    middle: cython.Py_ssize_t
    end: cython.Py_ssize_t
    if it.link >= it.all_links:
        return stop
    while it.links[it.link] >> 8 >= it.ends[it.linked] + it.linked:
        it.linked += 1
    if not _are_links_before(it, last):
        return stop
    end = it.ends[it.linked] + it.linked
    while low < high:
        middle = (low + high) >> 1
        if it.edges[middle] > end:
            high = middle
        else:
            low = middle + 1
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _join_links(it: _Scan, source: cython.uchar[::1]) -> cython.void:
    """Add what is also one word in a text whose words have been added, while there is room.

    It lies where folded words do.
    """
    end: cython.Py_ssize_t = it.ends[it.linked] + it.linked
    link: cython.Py_ssize_t
    place: cython.Py_ssize_t
    width: cython.Py_ssize_t
    low: cython.ulonglong
    high: cython.ulonglong
    while it.link < it.all_links and it.links[it.link] >> 8 < end and it.rows < _BLOCK:
        link = it.links[it.link]
        place = link >> 8
        if link & 0xFF:
            width = _join_two(it, source, place, link >> 4 & 0xF, link & 0xF)
        else:
            width = _join(it, place)
        if width:
            low = _low_key(source, it.end, width)
            high = _high_key(source, it.end, width)
            _keep_word(it, low, high, it.end, width, place)
            it.end += width
        it.link += 1
    it.begin = it.middle = it.end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _join_two(
    it: _Scan,
    source: cython.uchar[::1],
    link: cython.Py_ssize_t,
    before: cython.Py_ssize_t,
    behind: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write two short parts of ASCII as one word; return its bytes, 0 if they are two numbers."""
    end: cython.Py_ssize_t = it.end
    letters: cython.uchar = 0
    i: cython.Py_ssize_t
    for i in range(before):
        source[end + i] = source[link - before + i]
        letters |= source[end + i]
    for i in range(behind):
        source[end + before + i] = source[link + 1 + i]
        letters |= source[end + before + i]
    return before + behind if letters & 64 else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _join(it: _Scan, link: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Write the parts around the first link of a chain as one word; return its bytes.

    0 if it is no such link, or the parts are not written so; see ``analysis.links``.
    """
    parts: cython.Py_ssize_t = 1
    width: cython.Py_ssize_t = 0
    place: cython.Py_ssize_t = _begin_of_part(it, link)
    former: cython.Py_ssize_t = place  # where the part begins
    sign: cython.int = 0
    points: cython.bint = True  # whether all links are full stops
    wide: cython.bint = False  # whether a part has two characters
    named: cython.bint = False  # whether there is a letter
    is_digit: cython.bint = False  # whether the latest character is a digit
    entry: cython.ulonglong
    if place == link or _continues(it, place):
        return 0
    while True:
        entry = _quick_entry(it, place)
        if _is_part(entry):
            if sign == _A_POINT and is_digit and entry >> DIGIT & 1:
                return 0
            wide = wide or (place > former)
            is_digit = entry >> DIGIT & 1
            named = named or not is_digit
            if width <= _LONGEST_WORD:
                it.source[it.end + width] = entry & 0xFF
            width += 1
            sign = 0
        elif sign == 0 and _is_link(entry) and _is_part(_quick_entry(it, _quick_next(it, place))):
            sign = entry & 0xFF
            points = points and sign == _A_POINT
            parts += 1
            former = _quick_next(it, place)
        else:
            break
        place = _quick_next(it, place)
    if parts == 1 or _is_in_word(entry) or (points and not wide) or not named:
        return 0
    if parts == 2:
        return width if width <= _LONGEST_JOINED else 0
    return width if points and width <= _LONGEST_WORD else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _begin_of_part(it: _Scan, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return where letters and digits of ASCII begin that end before a place."""
    before: cython.Py_ssize_t
    while place > 0:
        before = _former(it, place)
        if not _is_part(_quick_entry(it, before)):
            break
        place = before
    return place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _continues(it: _Scan, place: cython.Py_ssize_t) -> cython.bint:
    """Whether what begins at a place continues a chain, a longer word or a number."""
    before: cython.Py_ssize_t
    entry: cython.ulonglong
    if place == 0:
        return False
    before = _former(it, place)
    entry = _quick_entry(it, before)
    if entry & _LOW_HALF == 44:  # a comma
        return True
    if _is_link(entry):
        return before > 0 and _is_part(_quick_entry(it, _former(it, before)))
    if entry >> KIND & 0xFF == MARK:  # those of clusters are in no word
        while before > 0 and entry >> KIND & 0xFF == MARK:
            before = _former(it, before)
            entry = _quick_entry(it, before)
        return entry >> KIND & 0xFF != CLUSTER
    return _is_in_word(entry)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _quick_entry(it: _Scan, place: cython.Py_ssize_t) -> cython.ulonglong:
    """As ``_entry``, in half the time where most characters are ASCII."""
    return it.table[it.source[place]] if it.source[place] < 0x80 else _entry(it, place)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _quick_next(it: _Scan, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
    return place + 1 if it.source[place] < 0x80 else _next(it, place)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_part(entry: cython.ulonglong) -> cython.bint:
    """Whether a character is a letter or digit of ASCII, or folded to one."""
    is_ascii: cython.bint = entry >> SIZE & 0xFF == 1 and entry >> KIND & 0xFF == WORD
    return is_ascii and entry & 0xFF != _A_LINE


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_alphanumeric(entry: cython.ulonglong) -> cython.bint:
    """Whether a character is a letter or digit: its kind, and behind that no sign."""
    return entry >> KIND & 0xFFFF == WORD


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_in_word(entry: cython.ulonglong) -> cython.bint:
    return entry >> KIND & 0xFF == WORD or entry >> KIND & 0xFF == MARK


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_link(entry: cython.ulonglong) -> cython.bint:
    low: cython.ulonglong = entry & _LOW_HALF
    return low == 38 or low == 45 or low == 46


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _former(it: _Scan, place: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return where the character of ``source`` before a place is."""
    place -= 1
    while place > 0 and it.source[place] & 0xC0 == 0x80:
        place -= 1
    return place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_letters(
    it: _Scan,
    source: cython.uchar[::1],
    table: cython.const[cython.ulonglong][::1],
    place: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy letters and digits of a word from a place on; return the place of what follows."""
    end: cython.Py_ssize_t = it.end
    entry: cython.ulonglong
    former: cython.ulonglong = 0
    latest: cython.ulonglong = 0
    while place < last and source[place] != _STRANGE:
        entry = table[_decode(source, place)]
        if not _is_alphanumeric(entry):
            break
        end = _append(source, entry, end)
        it.length += 1
        place += _width(source[place])
        former = latest
        latest = entry
    if former:
        it.prior = class_of(former, False, True)
    if latest:
        it.prior = class_of(latest, False, True) | (it.prior << 8 & 0xFF00)
    it.end = end
    return place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _list_pairs(
    it: _Scan,
    source: cython.uchar[::1],
    table: cython.const[cython.ulonglong][::1],
    pairs: cython.uint[:, ::1],
    place: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    former: cython.Py_ssize_t,
) -> cython.void:
    """List the bigrams from a place on, behind the character ``former``."""
    count: cython.Py_ssize_t = it.bigrams
    before: cython.Py_ssize_t = it.total + it.rows
    point: cython.Py_ssize_t
    while place < last and count < pairs.shape[0] and source[place] >> 4 == 0xE:
        point = (
            cython.cast(cython.Py_ssize_t, source[place] & 0x0F) << 12
            | cython.cast(cython.Py_ssize_t, source[place + 1] & 0x3F) << 6
            | (source[place + 2] & 0x3F)
        )
        if table[point] >> KIND & 0xFF != CJK:
            break
        pairs[count, 0] = before + count
        pairs[count, 1] = place
        pairs[count, 2] = former << 16 | point
        former = point
        place += 3
        count += 1
    it.bigrams = count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_words(it: _Scan) -> cython.void:
    """Count words to the texts they are in."""
    counted: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    for row in range(it.rows):
        while it.origins[row] >= it.ends[it.text] + it.text:
            it.counts[it.text] += row - counted
            it.text += 1
            counted = row
    it.counts[it.text] += it.rows - counted


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count_bigrams(it: _Scan) -> cython.void:
    """Count bigrams to the texts they are in."""
    text: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for i in range(it.bigrams):
        while it.pairs[i, 1] >= it.ends[text] + text:
            text += 1
        it.counts[text] += 1


# --- one text ----------------------------------------------------------------------------------


@cython.final
@cython.cclass
class Finder:
    """A fold table as ``find_words`` sees it, and scans whose memory is used again."""

    table: cython.const[cython.ulonglong][::1]
    pairs: cython.uint[:, ::1]
    spare: list

    def __init__(self, fold_table) -> None:
        self.table = view(fold_table)
        self.pairs = view(np.empty((0, 3), np.uint32))
        self.spare = []

    def find(self, text, least, question, folded):
        """Find the words of one text; see ``Backend.find_words``."""
        utf8 = _utf8(text)
        size: cython.Py_ssize_t = len(utf8)
        tokens: list = []
        i: cython.Py_ssize_t
        it: _Scan = _with_room(max(size + 1, _SHORT), self.spare)
        it.data = utf8 if cython.compiled else memoryview(utf8)
        it.table = self.table
        it.pairs = self.pairs
        it.own_ends[0] = size
        it.ends = it.own_ends
        it.counts = it.own_counts
        it.least = least
        it.question = question
        it.joins = False
        lacking: cython.Py_ssize_t = _lacking(it.data, it.table, folded)
        if lacking == _NOTHING:
            words: Words = it.words
            if size > _SHORT:
                with cython.nogil:
                    _run(it, words, size + 1, False)
            else:
                _run(it, words, size + 1, False)
            distinct: list = _decoded(words)
            for i in range(it.total):
                tokens.append(distinct[it.tokens[i]])
        if it.room <= _KEPT:
            self.spare.append(it)
        return tokens if lacking == _NOTHING else lacking


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _lacking(
    data: cython.const[cython.uchar][::1],
    table: cython.const[cython.ulonglong][::1],
    folded: cython.bint,
) -> cython.Py_ssize_t:
    """Return the first page of the table that a text lacks, ``PECULIAR_TEXT``, or ``_NOTHING``."""
    place: cython.Py_ssize_t = 0
    point: cython.Py_ssize_t
    entry: cython.ulonglong
    before: cython.ulonglong = 0
    is_peculiar: cython.bint = False
    while place < data.shape[0]:
        if data[place] < 0x80:
            place += 1
            before = 0
            continue
        point = _decode(data, place)
        entry = table[point]
        if not entry:
            return point // _PAGE
        if entry >> JOINER and _is_peculiar(before, entry):
            is_peculiar = True
        before = entry
        place += _width(data[place])
    return _PECULIAR_TEXT if is_peculiar and not folded else _NOTHING


@cython.cfunc
def _decoded(words: Words):
    """Return the words of a table."""
    size: cython.Py_ssize_t = words.used[1]
    if not cython.compiled:
        return bytes(words.pool[:size]).decode("utf-8", "surrogatepass").split("\n")
    data = cython.cast(cython.p_char, cython.address(words.pool[0]))
    return PyUnicode_DecodeUTF8(data, size, "surrogatepass").split("\n")  # noqa: F821 - of the .pxd


# --- strings -------------------------------------------------------------------------------------


def add_strings(data, ends, gap: cython.Py_ssize_t, table):
    """Give strings numbers in a table; see ``Scanner.add_strings`` and ``add_terms``.

    So many bytes are left out behind each.
    """
    words: Words = Words(table)
    source: cython.const[cython.uchar][::1] = view(data)
    to_ends: cython.const[cython.longlong][::1] = view(ends)
    keys: cython.ulonglong[:, ::1] = view(np.empty((TOGETHER, 4), np.uint64))
    numbers = np.empty(len(ends), np.uint32)
    out: cython.uint[::1] = view(numbers)
    hashes: cython.ulonglong[::1] = empty(TOGETHER + 1, np.uint64)
    with cython.nogil:
        _add_strings(words, source, to_ends, gap, keys, out, hashes)
    return words.arrays, numbers


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _add_strings(
    words: Words,
    source: cython.const[cython.uchar][::1],
    ends: cython.const[cython.longlong][::1],
    gap: cython.Py_ssize_t,
    keys: cython.ulonglong[:, ::1],
    numbers: cython.uint[::1],
    hashes: cython.ulonglong[::1],
) -> cython.int:
    """Give strings numbers, a few at a time; return -1 after an error."""
    row: cython.Py_ssize_t
    first: cython.Py_ssize_t = 0
    rows: cython.Py_ssize_t
    place: cython.Py_ssize_t = 0
    length: cython.Py_ssize_t
    size: cython.Py_ssize_t
    while first < ends.shape[0]:
        rows = min(_TOGETHER, ends.shape[0] - first)
        size = 0
        for row in range(rows):
            length = ends[first + row] - place
            keys[row, 0] = _low_key(source, place, length) if length else 0
            keys[row, 1] = _high_key(source, place, length)
            keys[row, 2] = place
            keys[row, 3] = length
            place += length + gap
            size += length
        number_words(words, keys, rows, source, size, numbers, first, hashes)
        first += rows
    return 0
