"""Spans, lines and snippets: where the words of a query are in a text, which is analysed again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, compress
from re import Pattern
from re import compile as compile_pattern
from typing import Any, NamedTuple

from bm25rag.analysis import scripts
from bm25rag.analysis.analyzer import Analyzer
from bm25rag.analysis.splitter import WordSplitter
from bm25rag.analysis.written import pairs_of, tokens_and_terms, word_starts
from bm25rag.common.lines import placed_lines
from bm25rag.common.patterns import late_pattern
from bm25rag.documents import Line, Snippet, Span

# How far a cut may move to fall between words.
_SNAP = 24
# Characters analysed at once, and of these how many at the end in which to look for white space.
# Passages are shorter; whole books are longer.
_BLOCK, _BLOCK_END = 50_000, 1000
# What is left out, and what has two characters in lower case.
_CHANGES_PLACES = late_pattern(f"[\u200c\u200dİ{scripts.IGNORED.pattern[1:-1]}]")
# Common characters of which each becomes one, if no other is behind it: NFC changes none, and there
# are no marks.
_PLAIN = (
    "\\0-\\x7f\xa1-\xac\xae-\u012f\u0131-\u024f\u0391-\u03a1\u03a3-\u03c9\u0410-\u044f\u05d0-\u05ea"
    "\u0621-\u063a\u0641-\u064a\u0904-\u0939\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u2010-\u2027"
    "\u3001-\u3029\u3041-\u3096\u30a1-\u30fe\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"
)


class Match(NamedTuple):
    """A word of a text, or a part of one, that becomes a term of the query."""

    start: int  # where it is in the text
    end: int
    term: str
    begin: int  # where it is in the folded text
    stop: int
    folded: str  # what stands there


class _Folded(NamedTuple):
    """A folded text, piece by piece: runs whose characters keep their places, and clusters.

    There are no pieces if all characters keep their places.
    """

    text: str
    are_runs: Sequence[bool]
    begins: Sequence[int]  # where each piece begins, and the last one ends
    bounds: Sequence[int]  # the same before it was folded

    def span(self, begin: int, stop: int) -> tuple[int, int]:
        """Return where a part of it was before it was folded."""
        if not self.are_runs:
            return begin, stop
        first, last = bisect_right(self.begins, begin) - 1, bisect_left(self.begins, stop) - 1
        start, end = self.bounds[first], self.bounds[last + 1]
        if self.are_runs[first]:
            start += begin - self.begins[first]
        if self.are_runs[last]:
            end -= self.begins[last + 1] - stop
        return start, end


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
    near: dict[str, int] = {}
    for number, first in enumerate(matches):
        before = last
        while last < len(matches) and (last == number or matches[last].end - first.start <= width):
            term = matches[last].term
            near[term] = near.get(term, 0) + 1
            last += 1
        if last > before and (score := (len(near), last - number)) > best_score:
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
        matching = _matching({*words, *joined}, analyzer, terms)
        yield _Block(start, block, words, [word for word in joined if word in matching], matching)
        start = end


def _matching(
    words: set[str], analyzer: Analyzer, terms: AbstractSet[str]
) -> dict[str, list[tuple[str, str]]]:
    """Return, by word, the tokens that become one of the terms, each with its term."""
    others = analyzer.splitter.kept_letters_of_runs(words) - {term[:1] for term in terms}
    some = {word for word in words if word[:1] not in others} if others else words
    matching = {
        word: [(token, term) for token, term in pairs_of(own) if term in terms]
        for word, own in tokens_and_terms(analyzer, some).items()
        if not terms.isdisjoint(own)
    }
    tokens = {token for pairs in matching.values() for token, _ in pairs}
    if not tokens.isdisjoint(analyzer.stopwords) and not _are_stopped(words, analyzer):
        matching = {
            word: [pair for pair in pairs if pair[0] not in analyzer.stopwords]
            for word, pairs in matching.items()
        }
    return {word: pairs for word, pairs in matching.items() if pairs}


def _are_stopped(words: set[str], analyzer: Analyzer) -> bool:
    """Whether all words are stop words, which are kept then."""
    each = tokens_and_terms(analyzer, words).values()
    return all(analyzer.stopwords.issuperset(own[::2]) for own in each)


def _locate(block: _Block, analyzer: Analyzer) -> list[Match]:
    """Find the positions of words in the text that they come from; they are in order."""
    matching, words = block.matching, block.words
    matches: list[Match] = []
    if not matching:
        return matches
    folded = _fold(block.text, analyzer)

    def add(term: str, begin: int, stop: int, found: str) -> None:
        start, end = folded.span(begin, stop)
        matches.append(Match(block.start + start, block.start + end, term, begin, stop, found))

    parts = {word: _parts(word, pairs, analyzer.lowercase) for word, pairs in matching.items()}
    placed = zip(words, word_starts(analyzer, words, folded.text), strict=True)
    for word, first in compress(placed, map(matching.__contains__, words)):
        if first >= 0:  # a pattern may match nothing at all
            for term, begin, found in parts[word]:
                add(term, first + begin, first + begin + len(found), found)
    for word, first, last in analyzer.splitter.find_joined(folded.text) if block.joined else ():
        for _, term in matching.get(word, ()):
            add(term, first, last, folded.text[first:last])
    return sorted(matches, key=lambda match: (match.begin, -match.stop))


def _parts(word: str, pairs: list[tuple[str, str]], lowercase: bool) -> list[tuple[str, int, str]]:
    """Return the terms of the tokens of a word, with where each begins and what is there."""
    parts = []
    places: dict[str, list[int]] = {}  # of a token, those that are left
    whole = word.replace("ς", "σ")  # one copy of it: many n-grams may not be found in it
    for token, term in pairs:
        own = places.get(token)
        if own is None:
            own = places[token] = _places_of(token, word, lowercase)
        begin = own[-1] if own else 0
        parts.append((term, begin, whole[begin : begin + len(token)] if own else whole))
        if len(own) > 1:
            own.pop()
    return parts


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
    if token == word:
        return [0]
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


def _fold(text: str, analyzer: Analyzer) -> _Folded:
    """Fold a text. The lower case of a sigma depends on what follows it: both forms become one."""
    splitter, form = analyzer.splitter, analyzer.normalize
    if _keeps_places(text, analyzer):
        return _Folded(splitter.fold(text).replace("ς", "σ"), (), (), ())
    parts = _clusters(scripts.mark_pages(text), form).findall(text)
    runs = splitter.fold("".join([run for run, _ in parts])).replace("ς", "σ")
    pieces, at = list[str](), 0
    for run, cluster in parts:
        pieces.append(_fold_cluster(cluster, splitter) if cluster else runs[at : at + len(run)])
        at += len(run)
    begins = [0, *accumulate(map(len, pieces))]
    bounds = [0, *accumulate(len(run) + len(cluster) for run, cluster in parts)]
    return _Folded("".join(pieces), [run != "" for run, _ in parts], begins, bounds)


def _keeps_places(text: str, analyzer: Analyzer) -> bool:
    """Tell quickly whether each character becomes one character; it takes 1 % of the time."""
    if text.isascii():
        return True
    composed = analyzer.normalize in (None, "NFC") and scripts.is_surely_nfc(text)
    return composed and _CHANGES_PLACES.search(text) is None


@lru_cache(maxsize=10_000)  # equal analyzers would be compared at each call, in 15 microseconds
def _fold_cluster(cluster: str, splitter: WordSplitter) -> str:
    return splitter.fold(cluster).replace("ς", "σ")


@lru_cache(maxsize=scripts.PATTERNS)
def _clusters(pages: frozenset[int], form: str | None) -> Pattern[str]:
    """Return a pattern of runs that keep their places, and of other characters with their marks.

    It has a group for either. The marks are of some pages; behind what is left out, such as a soft
    hyphen, they combine with what is before it.
    """
    plain = _PLAIN if form in (None, "NFC") else r"\0-\x7f"
    marks, left_out = scripts.mark_ranges(pages), scripts.IGNORED.pattern
    mark, behind = f"[{marks}\u200c\u200d\uff9e\uff9f\u1160-\u11ff]", ""
    if form == "NFKC":  # it makes syllables of Hangul's compatibility letters, too:
        # A vowel behind a consonant, and a final one behind that or a syllable.
        skipped, vowels = f"{left_out}{{0,9}}", "\u314f-\u3163\uffc2-\uffdc"
        initial = "\u1100-\u1112\u3131-\u314e\u3260-\u326d\uffa1-\uffbe"
        final = "\u3133\u3135\u3136\u313a-\u313f\uffa3\uffa5\uffa6\uffaa-\uffaf"
        opening = f"\u1161-\u1175\u326e-\u327e\uac00-\ud7a3{vowels}"
        behind = f"|(?<=[{initial}]){skipped}[{vowels}]|(?<=[{opening}]){skipped}[{final}]"
    cluster = f"(?s:.)(?:{left_out}{{0,9}}{mark}{behind})*"
    return compile_pattern(f"([{plain}]+(?![^{plain}]))|({cluster})")


# --- what to show -------------------------------------------------------------------


def _window(text: str, matches: Sequence[Match], width: int) -> tuple[int, int]:
    """Return the part of a text to show, with the matches in the middle if there is room."""
    first, last = matches[0].start, min(matches[-1].end, matches[0].start + width)
    start = max(0, min(first - (width - (last - first)) // 2, len(text) - width))
    if start and not text[start - 1].isspace():
        near = range(start, min(start + _SNAP, first))
        start = next((at + 1 for at in near if text[at].isspace()), start)
    return start, _cut(text, start + width, last)


def _cut(text: str, end: int, least: int) -> int:
    """Return where to cut a text: at ``end`` or, between words, a little before."""
    if end >= len(text) or text[end].isspace():
        return min(end, len(text))
    near = range(end - 1, max(end - _SNAP, least) - 1, -1)
    return next((at for at in near if text[at].isspace()), end)
