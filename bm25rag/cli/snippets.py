"""The part of a text that a query matches, with the matching words marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice
from re import Pattern
from re import compile as compile_pattern
from typing import NamedTuple

from rich.text import Text

from bm25rag import Analyzer
from bm25rag.analysis import scripts
from bm25rag.cli.terminal import readable

_LENGTH = 240
# How far a cut may move to fall between words.
_SNAP = 24
# Characters analysed at once. Passages are shorter; whole books are longer.
_BLOCK = 50_000


class Match(NamedTuple):
    """The position of a matching word in a text, and the term that it becomes."""

    start: int
    end: int
    term: str


def first_lines(text: str, length: int = _LENGTH) -> str:
    """Return the beginning of a text on one line."""
    # Four times the length is enough: a longer run is white space.
    shown = readable(text[: 4 * length]).strip()
    return shown if len(shown) <= length else shown[: length - 1].rstrip() + "…"


def snippet(
    text: str | None, analyzer: Analyzer, terms: AbstractSet[str], length: int = _LENGTH
) -> Text:
    """Return the part of a text that matches the terms best, on one line, matches in bold."""
    if text is None:
        return Text("(text not stored)", style="dim")
    matches = find_matches(text, analyzer, terms)
    if not matches:
        return Text(first_lines(text, length))
    start, end = _window(text, _densest(matches, length), length)
    shown = Text("…" if start else "")
    for piece, marked in _pieces(text, _joined(matches), start, end):
        shown.append(readable(piece), style="bold" if marked else "")
    if end < len(text):
        shown.rstrip()
        shown.append("…")
    return shown


def densest_part(text: str, analyzer: Analyzer, terms: AbstractSet[str], length: int) -> int:
    """Return where the part of a text begins that matches the terms best; 0 if no word does."""
    matches = find_matches(text, analyzer, terms) if len(text) > length else []
    return _window(text, _densest(matches, length), length)[0] if matches else 0


# --- where the words are ------------------------------------------------------------


def find_matches(text: str, analyzer: Analyzer, terms: AbstractSet[str]) -> list[Match]:
    """Find the words of a text that become one of the terms, in order.

    In a very long text, search the block with the most different terms.
    """
    best: tuple[int, str, list[str], dict[str, list[tuple[str, str]]]] = (0, "", [], {})
    most = 0
    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK]
        words = analyzer.find_words(block)
        found = _terms_of(list(set(words)), analyzer, terms)
        different = len({term for pairs in found.values() for _, term in pairs})
        if different > most:
            best, most = (start, block, words, found), different
    return _locate(*best, analyzer)


def _terms_of(
    words: list[str], analyzer: Analyzer, terms: AbstractSet[str]
) -> dict[str, list[tuple[str, str]]]:
    """Return, by word, the tokens that become one of the terms, each with its term."""
    tokens, counts = analyzer.splitter.split_words(words)
    made, _ = analyzer.analyze_words(words)
    pairs = iter(zip(tokens, made, strict=True))
    found = {}
    for number, word in enumerate(words):
        own = list(islice(pairs, counts.get(number, 1)))
        matching = [(token, term) for token, term in own if term is not None and term in terms]
        if matching:
            found[word] = matching
    return found


def _locate(
    start: int,
    block: str,
    words: Sequence[str],
    found: Mapping[str, list[tuple[str, str]]],
    analyzer: Analyzer,
) -> list[Match]:
    """Find the positions of words in the text that they come from; they are in order."""
    folded, spans = _fold(block, analyzer)
    matches = []
    at = 0
    for word in words:
        same = word.replace("ς", "σ")
        first = folded.find(same, at)
        if first < 0 or not word:  # a pattern may match nothing at all
            continue
        for token, term in found.get(word, ()):
            inner = _place_of(token.replace("ς", "σ"), same)
            begin = first + max(inner, 0)
            end = begin + (len(token) if inner >= 0 else len(word))
            matches.append(Match(start + spans[begin][0], start + spans[end - 1][1], term))
        at = first + len(analyzer.splitter.first_of_bigram(word) or word)
    return matches


def _place_of(token: str, word: str) -> int:
    """Return where a token stands in a word: by itself, or else inside another; -1 if nowhere."""
    first = at = word.find(token)
    while at >= 0:
        before, after = word[:at][-1:], word[at + len(token) :][:1]
        if not before.isalnum() and not after.isalnum() and not (after and scripts.is_mark(after)):
            return at
        at = word.find(token, at + 1)
    return first


def _fold(text: str, analyzer: Analyzer) -> tuple[str, Sequence[tuple[int, int]]]:
    """Return the folded text, and for each of its characters the span that it comes from.

    The lower case of a sigma depends on what follows it, so both forms become one here.
    """
    if _keeps_places(text, analyzer):
        folded = analyzer.splitter.fold(text).replace("ς", "σ")
        return folded, [(at, at + 1) for at in range(len(text))]
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    for cluster in _clusters().finditer(text):
        piece = _fold_cluster(cluster[0], analyzer)
        pieces.append(piece)
        spans += [cluster.span()] * len(piece)
    return "".join(pieces), spans


def _keeps_places(text: str, analyzer: Analyzer) -> bool:
    """Tell quickly whether each character becomes one character; it takes 1 % of the time."""
    if text.isascii():
        return True
    composed = analyzer.normalize in (None, "NFC") and scripts.is_surely_nfc(text)
    # The lower case of İ has two characters.
    gone = scripts.JOINER.search(text) or scripts.IGNORED.search(text)
    return composed and "İ" not in text and gone is None


@lru_cache(maxsize=10_000)
def _fold_cluster(cluster: str, analyzer: Analyzer) -> str:
    return analyzer.splitter.fold(cluster).replace("ς", "σ")


@lru_cache(maxsize=1)
def _clusters() -> Pattern[str]:
    """Return a pattern for a character and the marks that may combine with it."""
    marks = "".join(map(chr, scripts.marks()))
    return compile_pattern(f"(?s:.)[{marks}\u200c\u200d\uff9e\uff9f\u1160-\u11ff]*")


# --- what to show -------------------------------------------------------------------


def _densest(matches: Sequence[Match], length: int) -> Sequence[Match]:
    """Return the matches within `length` characters that have the most different terms."""
    best = range(0)
    most = (0, 0)
    last = 0  # those from number to last are near the first of them
    near: Counter[str] = Counter()
    for number, first in enumerate(matches):
        while last < len(matches) and (last == number or matches[last].end - first.start <= length):
            near[matches[last].term] += 1
            last += 1
        score = (len(near), last - number)
        if score > most:
            best, most = range(number, last), score
        near[first.term] -= 1
        if not near[first.term]:
            del near[first.term]
    return matches[best.start : best.stop]


def _window(text: str, matches: Sequence[Match], length: int) -> tuple[int, int]:
    """Return the part of a text to show, with the matches in the middle if there is room."""
    first, last = matches[0].start, min(matches[-1].end, matches[0].start + length)
    start = max(0, min(first - (length - (last - first)) // 2, len(text) - length))
    end = min(len(text), start + length)
    if start:
        spaces = [at for at in range(start, min(start + _SNAP, first)) if text[at].isspace()]
        start = spaces[0] + 1 if spaces else start
    if end < len(text):
        spaces = [at for at in range(max(end - _SNAP, last), end) if text[at].isspace()]
        end = spaces[-1] if spaces else end
    return start, end


def _joined(matches: Sequence[Match]) -> list[Match]:
    """Merge matches that overlap, as bigrams do."""
    joined: list[Match] = []
    for match in matches:
        if joined and match.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(match.end, joined[-1].end))
        else:
            joined.append(match)
    return joined


def _pieces(
    text: str, matches: Sequence[Match], start: int, end: int
) -> Iterator[tuple[str, bool]]:
    """Split a part of a text where matches begin and end; tell which pieces match."""
    at = start
    for match in matches:
        first, last = max(match.start, at), min(match.end, end)
        if first < last:
            yield text[at:first], False
            yield text[first:last], True
            at = last
    yield text[at:end], False
