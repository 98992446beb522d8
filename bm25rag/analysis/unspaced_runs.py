"""Runs without spaces between words, cut into overlapping pairs of characters or clusters.

Chinese, Japanese and Korean are cut into pairs of characters; Thai, Lao, Khmer and Burmese into
pairs of clusters, which are letters with their marks.

In questions with such a run, each other word counts three times: a run asks for a word of two
characters by their pair and what is next to it or within it, and so by about three terms. Without
this, a name or a year in Latin letters or digits hardly counts beside the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, pairwise, repeat
from typing import NamedTuple

import numpy as np

from bm25rag.analysis.scripts import (
    CJK,
    HAN,
    NO_PAGES,
    PATTERNS,
    SINGLES,
    SOUTHEAST_ASIAN,
    mark_pages,
    mark_ranges,
)
from bm25rag.common.arrays import Index, UInt8, as_index
from bm25rag.kernels.scanner_interface import Scanned

# Thai is the first script in Unicode that is cut.
FIRST_LETTER = "\u0e01"
_FIRST_BYTE = 0xE0  # of its UTF-8
# How often a question counts words beside runs; docs/languages.md has what that gains.
TIMES = 3


class BigramRules(NamedTuple):
    """Which runs are cut, and which characters are terms beside the bigrams."""

    cjk: bool  # Chinese, Japanese and Korean are cut
    southeast_asian: bool  # Thai, Lao, Khmer and Burmese
    singles: bool  # characters of Han and Hangul are terms, too


def find_words_and_bigrams(
    text: str, find_words: Callable[[str], list[str]], rules: BigramRules, question: bool
) -> list[str]:
    """Return the bigrams of runs and the words between the runs, in order.

    A character or cluster that stands alone is a word. The last one of a run is also a word if
    it is to be a term beside the bigrams (see ``is_single``); the others begin a bigram, from
    which ``split_bigram`` takes them.
    """
    words: list[str] = []
    end = 0
    pages = mark_pages(text) if rules.southeast_asian else NO_PAGES
    for run in _runs(rules.cjk, rules.southeast_asian, pages).finditer(text):
        if run.start() > end:
            words += find_words(text[end : run.start()])
        end = run.end()
        units = list(run[1]) if run[1] else _clusters(pages).findall(run[2])
        words += [first + second for first, second in pairwise(units)] or units
        if len(units) > 1 and is_single(units[-1], rules, question):
            words.append(units[-1])
    return words + find_words(text[end:]) if end < len(text) else words


def is_single(unit: str, rules: BigramRules, question: bool) -> bool:
    """Whether a character or cluster is a term beside the bigrams that contain it."""
    kinds = _LETTERS[unit[0]]
    if rules.southeast_asian and kinds & _CLUSTER:
        return not question
    return rules.singles and kinds & (_HAN if question else _SINGLE) > 0


def is_cut(letter: str, rules: BigramRules, cluster: bool = False) -> bool:
    """Return whether a letter is in runs that are cut; if ``cluster``, in runs of clusters."""
    kinds = _LETTERS[letter]
    is_cluster = rules.southeast_asian and kinds & _CLUSTER > 0
    return is_cluster or (not cluster and rules.cjk and kinds & _CJK > 0)


def weigh(words: list[str], rules: BigramRules) -> list[str]:
    """Return the words of a question, each of the others ``TIMES`` if there are parts of runs."""
    if not words or max(words) < FIRST_LETTER:
        return words
    if _only_parts(rules).fullmatch("\n".join(words)):  # as most questions with a run
        return words
    parts = _cut_kinds(rules)
    are_parts = [_LETTERS[word[0]] & parts > 0 for word in words]
    if not any(are_parts):
        return words
    times = (1 if is_part else TIMES for is_part in are_parts)
    return [*chain.from_iterable(map(repeat, words, times))]


@lru_cache(maxsize=4)
def _only_parts(rules: BigramRules) -> re.Pattern[str]:
    """Return what matches words, each on a line, if all of them are parts of runs."""
    letters = CJK.ranges * rules.cjk + SOUTHEAST_ASIAN.ranges * rules.southeast_asian
    return re.compile(f"(?:[{letters}][^\n]*+\n?)*+" if letters else "(?!)")


def weigh_each(scanned: Scanned, rules: BigramRules) -> Scanned:
    """Do as ``weigh`` for each of many questions."""
    tokens, counts, entries, pool = scanned
    starts = as_index(entries[:, 2])
    if not len(starts) or pool.take(starts).max() < _FIRST_BYTE:
        return scanned
    parts = _cut_kinds(rules)
    letters = _first_letters(pool, starts)
    are_parts = np.zeros(int(letters.max()) + 1, np.bool_)
    are_parts[letters] = True
    some = np.flatnonzero(are_parts)  # to sort the letters takes longer
    are_parts[some] = [_LETTERS[chr(letter)] & parts > 0 for letter in some.tolist()]
    if not are_parts.any():  # as in Vietnamese and Hindi
        return scanned
    is_part = are_parts.take(letters).take(as_index(tokens))
    texts = np.repeat(np.arange(len(counts)), as_index(counts))
    has_run = np.zeros(len(counts), np.bool_)
    has_run[texts[is_part]] = True
    times = np.where(has_run.take(texts) & ~is_part, TIMES, 1)
    more = np.bincount(texts, times, len(counts)).astype(np.uint32)
    return Scanned(np.repeat(tokens, as_index(times)), more, entries, pool)


def _first_letters(pool: UInt8, starts: Index) -> Index:
    """Return the first code points of words in UTF-8; of those before ``FIRST_LETTER``, 0."""
    lead = pool.take(starts).astype(np.intp)
    # Behind each word there is a line feed, and behind the last one there may be nothing.
    second, third, fourth = (
        pool.take(np.minimum(starts + n, len(pool) - 1)).astype(np.intp) & 0x3F for n in (1, 2, 3)
    )
    of_three = (lead & 0xF) << 12 | second << 6 | third
    of_four = (lead & 0x7) << 18 | second << 12 | third << 6 | fourth
    return as_index(np.where(lead < _FIRST_BYTE, 0, np.where(lead < 0xF0, of_three, of_four)))


def _cut_kinds(rules: BigramRules) -> int:
    return rules.cjk * _CJK | rules.southeast_asian * _CLUSTER


def cut_letters(words: Iterable[str], rules: BigramRules) -> set[str]:
    """Return with which letters words begin that are parts of runs."""
    parts = _cut_kinds(rules)
    letters = {word[0] for word in words if word >= FIRST_LETTER}
    return {letter for letter in letters if _LETTERS[letter] & parts}


def split_bigram(word: str, rules: BigramRules, question: bool) -> list[str] | None:
    """Return the tokens of a bigram, or of a cluster; ``None`` if the word is neither."""
    kinds = _LETTERS[word[0]]
    if rules.southeast_asian and kinds & _CLUSTER:
        second = 0 if question else second_of_bigram(word, rules)
        return [word, word[:second]] if second else [word]
    if rules.cjk and len(word) == 2 and kinds & _CJK:
        single = rules.singles and kinds & (_HAN if question else _SINGLE)
        return [word, word[0]] if single else [word]
    return None


def second_of_bigram(word: str, rules: BigramRules) -> int:
    """Return where the second character or cluster of a bigram begins, 0 if the word is none."""
    kinds = _LETTERS[word[0]]
    if rules.southeast_asian and kinds & _CLUSTER:
        for place in range(1, len(word)):  # the pattern of clusters takes 50 ms to make
            if _LETTERS[word[place]] & _CLUSTER:
                return place
        return 0
    return int(rules.cjk and len(word) == 2 and kinds & _CJK > 0)


class _Kinds(dict[str, int]):
    """What characters are, each looked up once."""

    def __missing__(self, letter: str) -> int:
        if len(self) > _MOST:
            self.clear()
        scripts = ((CJK, _CJK), (SOUTHEAST_ASIAN, _CLUSTER), (HAN, _HAN), (SINGLES, _SINGLE))
        self[letter] = kinds = sum(kind for letters, kind in scripts if letter in letters)
        return kinds


_CJK, _CLUSTER, _HAN, _SINGLE = 1, 2, 4, 8
_LETTERS = _Kinds()
_MOST = 1 << 15  # of the characters looked up


@lru_cache(maxsize=PATTERNS)
def _runs(cjk: bool, southeast_asian: bool, pages: frozenset[int]) -> re.Pattern[str]:
    """Return a pattern of runs: of CJK in its first group, of clusters in its second."""
    first = f"[{CJK.ranges}]+" if cjk else "(?!)"
    second = f"(?:{_cluster(pages)})+" if southeast_asian else "(?!)"
    return re.compile(f"({first})|({second})")


def _cluster(pages: frozenset[int]) -> str:
    marks = mark_ranges(pages)
    return f"[{SOUTHEAST_ASIAN.ranges}]" + (f"[{marks}]*" if marks else "")


@lru_cache(maxsize=PATTERNS)
def _clusters(pages: frozenset[int]) -> re.Pattern[str]:
    return re.compile(_cluster(pages))
