"""Spans, lines and snippets: where the words of a query are in a text, which is analysed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import islice
from re import Pattern
from re import compile as compile_pattern
from typing import Any, NamedTuple

from bm25rag.analysis import scripts
from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.analysis.written import word_starts
from bm25rag.common.lines import placed_lines
from bm25rag.documents import Line, Snippet, Span

# How far a cut may move to fall between words.
_SNAP = 24
# Characters analysed at once, and of these how many at the end in which to look for white space.
# Passages are shorter; whole books are longer.
_BLOCK, _BLOCK_END = 50_000, 1000


class Match(NamedTuple):
    """A word of a text, or a part of one, that becomes a term of the query."""

    start: int  # where it is in the text
    end: int
    term: str
    begin: int  # where it is in the folded text
    stop: int
    folded: str  # what stands there


class _Block(NamedTuple):
    """A part of a text, and its words."""

    start: int
    text: str
    words: list[str]
    joined: list[str]  # what is also one word
    matching: dict[str, list[tuple[str, str]]]  # by word, the tokens that match, with their terms

    def different(self) -> int:
        """Count the terms that are in it."""
        return len({term for pairs in self.matching.values() for _, term in pairs})


class QueryMatcher(NamedTuple):
    """Finds in texts the words that become terms of a query."""

    analyzer: Analyzer
    terms: Collection[str]

    def spans(self, text: str) -> list[Span]:
        """Return the words that match, in order; spans do not overlap."""
        blocks = _blocks(text, self.analyzer, frozenset(self.terms))
        return [span for block in blocks for span in _joined(_locate(block, self.analyzer))]

    def lines(self, text: str) -> list[Line]:
        """Return the lines in which spans begin."""
        lines: list[Line] = []
        spans = self.spans(text)
        at = 0  # the next of the spans
        for number, (start, line) in enumerate(placed_lines(text) if spans else (), 1):
            end, own = start + len(line), []
            while at < len(spans) and spans[at].start <= end:
                first, last, term = spans[at]
                own.append(Span(max(first - start, 0), min(last, end) - start, term))
                at += 1
            if own:
                lines.append(Line(number, line, own))
        return lines

    def snippet(self, text: str, width: int) -> Snippet:
        """Return the part, of at most ``width`` characters, with the most different terms."""
        matches = self.matches(text)
        near = densest(matches, width)
        start, end = _window(text, near, width) if near else (0, _cut(text, width, 0))
        spans = [
            Span(max(first, start) - start, min(last, end) - start, term)
            for first, last, term in _joined(matches)
            if first < end and last > start
        ]
        return Snippet(text[start:end], start, spans)

    def __reduce__(self) -> tuple[type[Any], tuple[object, ...]]:
        # A tokenizer may be a function that no other process knows: there is nothing instead.
        return (QueryMatcher, (*self,)) if self.analyzer.tokenizer is None else (type(None), ())

    def __deepcopy__(self, memo: object) -> QueryMatcher:
        return self  # nothing in it ever changes

    def matches(self, text: str) -> list[Match]:
        """Return the words and parts of words that match, in order.

        Of a very long text, those of the block with the most different terms.
        """
        blocks = _blocks(text, self.analyzer, frozenset(self.terms))
        best = max(blocks, key=_Block.different, default=None)  # the first of several
        return [] if best is None else _locate(best, self.analyzer)


def densest(matches: Sequence[Match], width: int) -> Sequence[Match]:
    """Return the matches within ``width`` characters that have the most different terms."""
    best = range(0)
    best_score = (0, 0)
    last = 0  # those from number to last are near the first of them
    near: Counter[str] = Counter()
    for number, first in enumerate(matches):
        while last < len(matches) and (last == number or matches[last].end - first.start <= width):
            near[matches[last].term] += 1
            last += 1
        score = (len(near), last - number)
        if score > best_score:
            best, best_score = range(number, last), score
        near[first.term] -= 1
        if not near[first.term]:
            del near[first.term]
    return matches[best.start : best.stop]


# --- where the words are ------------------------------------------------------------


def _blocks(text: str, analyzer: Analyzer, terms: AbstractSet[str]) -> Iterator[_Block]:
    """Analyse a text block by block; a block ends at white space, if there is any near."""
    start = 0
    while terms and start < len(text):
        end = start + _BLOCK
        if end < len(text):
            spaces = (text.rfind(space, end - _BLOCK_END, end) for space in "\n \t")
            end = max(spaces) + 1 or end
        block = text[start:end]
        words = analyzer._find_words(block)
        joined = analyzer.splitter.joined_words(block)
        matching = _terms_of([*{*words, *joined}], analyzer, terms)
        yield _Block(start, block, words, [word for word in joined if word in matching], matching)
        start = end


def _terms_of(
    words: list[str], analyzer: Analyzer, terms: AbstractSet[str]
) -> dict[str, list[tuple[str, str]]]:
    """Return, by word, the tokens that become one of the terms, each with its term."""
    tokens, counts = analyzer.splitter.split_words(words)
    stopwords = analyzer.stopwords
    if stopwords.issuperset(tokens):  # the text keeps them
        stopwords = frozenset()
    pairs = iter(zip(tokens, analyzer.stems(tokens), strict=True))
    by_word = {}
    for number, word in enumerate(words):
        own = list(islice(pairs, counts.get(number, 1)))
        matching = [pair for pair in own if pair[1] in terms and pair[0] not in stopwords]
        if matching:
            by_word[word] = matching
    return by_word


def _locate(block: _Block, analyzer: Analyzer) -> list[Match]:
    """Find the positions of words in the text that they come from; they are in order."""
    folded, spans = _fold(block.text, analyzer)
    matches = []
    starts = word_starts(analyzer, block.words, folded)
    for word, first in zip(block.words, starts, strict=True):
        if first < 0:  # a pattern may match nothing at all
            continue
        places: dict[str, list[int]] = {}  # of a token, those that are left
        whole = word.replace("ς", "σ")  # one copy of it: many n-grams may not be found in it
        for token, term in block.matching.get(word, ()):
            own = places.get(token)
            if own is None:
                own = places[token] = _places_of(token, word, analyzer.lowercase)
            begin = first + (own[-1] if own else 0)
            found = folded[begin : begin + len(token)] if own else whole
            stop = begin + len(found)
            if len(own) > 1:
                own.pop()
            start, end = block.start + spans[begin][0], block.start + spans[stop - 1][1]
            matches.append(Match(start, end, term, begin, stop, found))
    for word, first, last in analyzer.splitter.find_joined(folded) if block.joined else ():
        for _, term in block.matching.get(word, ()):
            start, end = block.start + spans[first][0], block.start + spans[last - 1][1]
            matches.append(Match(start, end, term, first, last, folded[first:last]))
    return sorted(matches, key=lambda match: (match.begin, -match.stop))


def _joined(matches: Sequence[Match]) -> list[Span]:
    """Return spans: pairs of characters that overlap become runs, and parts give way to wholes."""
    joined: list[Span] = []
    stop = 0  # of the last one, in the folded text
    for match in matches:
        last = joined[-1] if joined else None
        if last is None or match.start >= last.end:
            joined.append(Span(match.start, match.end, match.term))
        elif match.end > last.end:
            term = match.term
            if match.start > last.start:
                term = last.term + match.folded[stop - match.begin :]
            joined[-1] = Span(last.start, match.end, term)
        else:
            continue
        stop = match.stop
    return joined


def _places_of(token: str, word: str, lowercase: bool) -> list[int]:
    """Return where a token stands in a word, the last first; by itself comes behind all others."""
    lower = word.lower()
    if lowercase and len(lower) == len(word):  # only the parts of identifiers are in lower case
        token, word = token.lower(), lower
    token, word = token.replace("ς", "σ"), word.replace("ς", "σ")
    places = []
    at = word.find(token)
    while at >= 0:
        places.append(at)
        at = word.find(token, at + 1)

    def is_alone(at: int) -> bool:
        end = at + len(token)
        before, after = word[at - 1 : at], word[end : end + 1]
        return not (before.isalnum() or after.isalnum() or (after and scripts.is_mark(after)))

    return sorted(places, key=lambda at: (is_alone(at), -at))


def _fold(text: str, analyzer: Analyzer) -> tuple[str, Sequence[tuple[int, int]]]:
    """Return the folded text, and for each of its characters the span that it comes from.

    The lower case of a sigma depends on what follows it, so both forms become one here.
    """
    if _keeps_places(text, analyzer):
        folded = analyzer.splitter.fold(text).replace("ς", "σ")
        return folded, [(at, at + 1) for at in range(len(text))]
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    for cluster in _clusters(analyzer.normalize == "NFKC").finditer(text):
        piece = _fold_cluster(cluster[0], analyzer.splitter)
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


@lru_cache(maxsize=10_000)  # equal analyzers would be compared at each call, in 15 microseconds
def _fold_cluster(cluster: str, splitter: WordSplitter) -> str:
    return splitter.fold(cluster).replace("ς", "σ")


@lru_cache(maxsize=2)
def _clusters(compatible: bool) -> Pattern[str]:
    """Return a pattern for a character and the marks that may combine with it.

    Behind what is left out, such as a soft hyphen, they combine with what is before it.
    ``compatible`` is for NFKC, which makes syllables of Hangul's compatibility letters, too.
    """
    marks = "".join(map(chr, scripts.marks()))
    mark, left_out = f"[{marks}\u200c\u200d\uff9e\uff9f\u1160-\u11ff]", scripts.IGNORED.pattern
    if compatible:  # a vowel behind a consonant, and a final one behind that or a syllable
        skipped, vowels = f"{left_out}{{0,9}}", "\u314f-\u3163\uffc2-\uffdc"
        initial = "\u1100-\u1112\u3131-\u314e\u3260-\u326d\uffa1-\uffbe"
        final = "\u3133\u3135\u3136\u313a-\u313f\uffa3\uffa5\uffa6\uffaa-\uffaf"
        opening = f"\u1161-\u1175\u326e-\u327e\uac00-\ud7a3{vowels}"
        behind = f"|(?<=[{initial}]){skipped}[{vowels}]|(?<=[{opening}]){skipped}[{final}]"
    else:
        behind = ""
    return compile_pattern(f"(?s:.)(?:{left_out}{{0,9}}{mark}{behind})*")


# --- what to show -------------------------------------------------------------------


def _window(text: str, matches: Sequence[Match], width: int) -> tuple[int, int]:
    """Return the part of a text to show, with the matches in the middle if there is room."""
    first, last = matches[0].start, min(matches[-1].end, matches[0].start + width)
    start = max(0, min(first - (width - (last - first)) // 2, len(text) - width))
    if start and not text[start - 1].isspace():
        spaces = [at for at in range(start, min(start + _SNAP, first)) if text[at].isspace()]
        start = spaces[0] + 1 if spaces else start
    return start, _cut(text, start + width, last)


def _cut(text: str, end: int, least: int) -> int:
    """Return where to cut a text: at ``end`` or, between words, a little before."""
    if end >= len(text) or text[end].isspace():
        return min(end, len(text))
    spaces = [at for at in range(max(end - _SNAP, least), end) if text[at].isspace()]
    return spaces[-1] if spaces else end
