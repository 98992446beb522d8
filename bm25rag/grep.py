"""Lines of stored texts that hold a string, or match a regular expression, in document order.

Analysis plays no part: what is looked for stands in the text as it is written. Texts are searched
block by block, joined by line breaks, which no match contains. Regular expressions are those of
RE2, whose time grows with the length of the text alone, whatever the pattern.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.any_case import AnyCase
from bm25rag.common.arrays import Int64
from bm25rag.common.checks import check_flag
from bm25rag.common.optional import load
from bm25rag.common.strings import text_of, utf8
from bm25rag.documents import Document, Line, Span
from bm25rag.index import BM25Index
from bm25rag.search.finding import parse_filter

if TYPE_CHECKING:
    from bm25rag.filters import FilterSpec
    from bm25rag.search.snapshot import Snapshot


LONGEST_PATTERN = 1000
# Instructions of RE2. A step of its slowest engine takes up to 3 ns for each of them.
_LARGEST_PROGRAM = 10_000
# Steps between two looks at the clock, for which that engine takes half a second at most.
_STEPS = 200_000_000
# Documents whose texts are read together, and spans of a line that are told.
_TOGETHER, _MOST_SPANS = 512, 100
_WHITE = " \t\r\f\v"
_WORD = re.compile(rf"(?<=[{_WHITE}])[0-9A-Za-z]+(?=[{_WHITE}])")
# What a regular expression of RE2 is written with: escapes, classes, repetitions and characters.
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\(?:[pPx]\{[^}]*\}|.)|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)|(?P<open>\((?:\?[^):>]*[):>]?)?)|.",
    re.DOTALL,
)


def has_regular_expressions() -> bool:
    """Whether the engine for regular expressions is installed."""
    try:
        import re2  # noqa: F401
    except ImportError:
        return False
    return True


class Place(NamedTuple):
    """Where to go on: the row of a document, and the byte of its text."""

    row: int
    start: int


class GrepMatch(NamedTuple):
    """A line that matches, in the document of a row.

    ``start`` is where in the document it begins, in bytes of UTF-8, each line end counted as one;
    with the row it says where to go on.
    """

    grep: Grep
    row: int
    place: tuple[int, int]
    start: int
    number: int
    text: bytes

    @property
    def document(self) -> Document:
        """The document, a fresh one."""
        return self.grep.snapshot.document(*self.place)

    @property
    def line(self) -> Line:
        """The line, and what matches in it: a hundred places at most, with what stands there."""
        spans: list[Span] = []
        text, at, begin = self.text, 0, 0
        for match in islice(self.grep.engine.finditer(text), _MOST_SPANS):
            first, last = match.span()
            if first < last:
                begin, matched = begin + len(text_of(text[at:first])), text_of(text[first:last])
                spans.append(Span(begin, begin + len(matched), matched))
                at = first
        return Line(self.number, text_of(text), spans)


class Grep:
    """A pattern, compiled, and the documents of this moment that may match it.

    The pattern is a string or, with ``regex``, a regular expression of RE2, of at most 1,000
    characters. Lines are searched one by one: ``^`` and ``$`` are the ends of a line, and nothing
    matches a line break. So many bytes of texts as a ``block`` has are looked at together. If there
    is no engine for regular expressions, this raises ``MissingDependencyError``.
    """

    engine: Any

    def __init__(
        self,
        index: BM25Index,
        pattern: str,
        filter: FilterSpec | None = None,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        block: int = 1 << 20,
    ) -> None:
        _check_pattern(pattern)
        check_flag("regex", regex)
        check_flag("ignore_case", ignore_case)
        self.snapshot: Snapshot = index._snapshot
        self._filter = parse_filter(filter, self.snapshot)
        self._block, self._cut, words = block, sys.maxsize, _WORD.findall(pattern)
        if regex:
            words = _required_words(pattern)
            self.engine = _compile_regex(pattern, ignore_case)
            self._cut = max(1 << 14, _STEPS // self.engine.programsize)
        else:
            self.engine = AnyCase(pattern) if ignore_case else re.compile(re.escape(utf8(pattern)))
        self.terms: Sequence[str] = _certain_terms(words, self.snapshot.analyzer, ignore_case)

    def matches(
        self, row: int = 0, after: int = -1, seconds: float | None = None
    ) -> Iterator[GrepMatch | Place]:
        """Yield the lines that match, in order; and last of all where to go on.

        The first document to look at is that of ``row``, and ``after`` the ``start`` of the last
        line there that is not to be yielded again. After a first part, it looks for so many
        ``seconds``. Where to go on is the place from which on nothing was looked at: of the row
        after the last if nothing is left.
        """
        end = None if seconds is None else monotonic() + seconds
        for number, block in enumerate(self._blocks(row, after)):
            if number and end is not None and monotonic() > end:
                yield Place(block[0].row, block[0].start)
                return
            for match in self._in_block(block):
                if match.row > row or match.start > after:
                    yield match
        yield Place(self.snapshot.count, 0)

    def _in_block(self, block: Sequence[_Piece]) -> Iterator[GrepMatch]:
        text, at = b"\n".join([piece.text for piece in block]), 0
        if b"\r" in text:
            block = [piece._replace(text=_with_newlines(piece.text)) for piece in block]
            text = b"\n".join([piece.text for piece in block])
        begins = list(accumulate((len(piece.text) + 1 for piece in block), initial=0))
        known, number = -1, 0  # the last piece that had a match, and of which line
        while at <= len(text) and (match := self.engine.search(text, at)):
            first = match.start()
            index = bisect_right(begins, first) - 1
            piece, begin = block[index], text.rfind(b"\n", 0, first) + 1
            stop = text.find(b"\n", match.end())
            stop = len(text) if stop < 0 else stop
            if index != known:
                known, number, at = index, piece.line, begins[index]
            number += text.count(b"\n", at, begin)
            start = piece.start + begin - begins[index]
            yield GrepMatch(self, piece.row, piece.place, start, number, text[begin:stop])
            at, number = stop + 1, number + 1

    def _blocks(self, row: int, after: int) -> Iterator[Sequence[_Piece]]:
        """Yield the texts of candidates from a place on, in blocks of about the same size."""
        snapshot, limit = self.snapshot, min(self._block, self._cut)
        for segment, numbers in enumerate(snapshot.passing_numbers(self._filter)):
            view, base = snapshot.views[segment], snapshot.rows.bases[segment]
            if base + view.count <= row:
                continue
            chosen = self._having_terms(segment, np.asarray(numbers, np.int64))
            rows = base + view.rows.ranks(chosen)
            for first in range(int(np.searchsorted(rows, row)), len(chosen), _TOGETHER):
                together = chosen[first : first + _TOGETHER].tolist()
                texts = zip(
                    rows[first : first + _TOGETHER].tolist(),
                    together,
                    view.segment.texts.views(together),
                    strict=True,
                )
                pieces = (
                    _Piece(number, (segment, place), start, line, part)
                    for number, place, text in texts
                    if text is not None
                    for start, last, line, part in self._parts(text)
                    if number > row or last > after
                )
                yield from _divided(pieces, limit)

    def _parts(self, text: memoryview) -> Iterable[tuple[int, int, int, bytes | memoryview]]:
        """Return parts of a text: where each begins, where its last line may, its line number."""
        return ((0, len(text), 1, text),) if len(text) <= self._cut else self._cuts(text)

    def _cuts(self, whole: memoryview) -> Iterator[tuple[int, int, int, bytes | memoryview]]:
        """Cut a text at line breaks, and a line that is too long where a character begins."""
        text, longest = _with_newlines(whole), self._cut
        start, line = 0, 1
        while len(text) - start > longest:
            end = text.rfind(b"\n", start, start + longest)
            begin = end + 1
            if end < start:
                end = start + longest
                while text[end] & 0xC0 == 0x80:
                    end -= 1
                begin = end
            yield start, begin - 1, line, text[start:end]
            line += text.count(b"\n", start, begin)
            start = begin
        yield start, len(text), line, text[start:]

    def _having_terms(self, segment: int, numbers: Int64) -> Int64:
        postings = self.snapshot.views[segment].segment.postings
        for term in self.terms:
            documents = postings.documents_of(postings.find(utf8(term)))
            numbers = np.intersect1d(numbers, documents, assume_unique=True)
        return numbers


class _Piece(NamedTuple):
    """A part of a text: of which document, and from which of its bytes and lines on."""

    row: int
    place: tuple[int, int]
    start: int
    line: int
    text: bytes | memoryview


def _divided(pieces: Iterable[_Piece], limit: int) -> Iterator[Sequence[_Piece]]:
    """Divide pieces into blocks of so many bytes, or one piece more."""
    block: list[_Piece] = []
    size = 0
    for piece in pieces:
        if size > limit:
            yield block
            block, size = [], 0
        block.append(piece)
        size += len(piece.text)
    if block:
        yield block


def _with_newlines(text: bytes | memoryview) -> bytes:
    r"""Return a text in which ``\n`` ends each line; see ``common.lines``."""
    return bytes(text).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


# --- patterns -----------------------------------------------------------------------


def _check_pattern(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise TypeError(f"pattern must be a string, got {type(pattern).__name__}")
    if not 0 < len(pattern) <= LONGEST_PATTERN:
        raise ValueError(
            f"pattern must have 1 to {LONGEST_PATTERN:,} characters, got {len(pattern):,}"
        )
    if "\n" in pattern or "\r" in pattern:
        raise ValueError("pattern must be within one line: lines are searched one by one")


def _compile_regex(pattern: str, ignore_case: bool) -> Any:
    re2 = load("re2", "regular expressions need google-re2", "grep")
    for token in _TOKEN.finditer(pattern):
        if token[0] in (r"\A", r"\z", r"\C") or re.match(r"\(\?\w*-\w*m", token[0]):
            raise ValueError(
                f"pattern must not have {token[0]!r:.20}: lines are searched one by one, and ^ and "
                "$ are their ends"
            )
    options = re2.Options()
    options.never_nl, options.log_errors, options.never_capture = True, False, True
    options.case_sensitive = not ignore_case
    try:
        compiled = re2.compile(b"(?m)" + utf8(pattern), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"pattern is no regular expression of RE2 ({reason:.200}); it has no look-around or "
            "backreferences; regex=False looks for a string"
        ) from None
    if compiled.programsize > _LARGEST_PROGRAM:
        raise ValueError(
            f"pattern is too large: {compiled.programsize:,} steps, at most {_LARGEST_PROGRAM:,}; "
            "use fewer or smaller counted repetitions"
        )
    return compiled


def _required_words(pattern: str) -> list[str]:
    """Return words of ASCII between white space that every match of an expression contains."""
    plain: list[str] = []  # the characters that must be there; others are "."
    depth = 0
    for token in _TOKEN.finditer(pattern):
        part = token[0]
        if part == "|" and not depth:
            return []
        if token["open"]:
            if part.startswith("(?") and part.endswith(")"):  # flags
                return []
            depth += 1
        elif part == ")":
            depth -= 1
        elif token["repeat"]:
            if plain and not (plain[-1] == " " and part[0] == "+"):
                plain[-1] = "."
            continue
        plain.append(" " if part == r"\s" and not depth else part if not depth else ".")
    single = (part if len(part) == 1 and part not in "()^$" else "." for part in plain)
    return _WORD.findall("".join(single))


def _certain_terms(words: Iterable[str], analyzer: Analyzer, ignore_case: bool) -> Sequence[str]:
    """Return the terms that a text is sure to have in which these words stand between spaces.

    Such a word of ASCII letters and digits is a word to the analyzer, whatever is around it,
    unless a pattern or a function of the user's finds the words. Stop words are terms of no text
    but those that have nothing else.
    """
    if analyzer.tokenizer is not None or analyzer.token_pattern != "auto":
        return []
    if ignore_case:  # "ſ" and the sign of Kelvin are forms of "s" and "k"
        plain = analyzer.lowercase and not analyzer.identifiers
        words = [
            word
            for word in words
            if plain
            and not set("sSkK") & set(word)
            and analyzer.terms(word.lower()) == analyzer.terms(word.upper())
        ]
    terms = dict.fromkeys(term for word in words for term in analyzer.terms(word))
    return [term for term in terms if term not in analyzer.stopped_stems]
