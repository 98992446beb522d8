"""What the analyzer knows of scripts: CJK runs, widths, combining marks, the Turkish i."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

from bm25rag.turns import in_turns

# Han with its marks and compatibility forms, Hiragana, Katakana (half-width forms
# are folded before), Bopomofo, Hangul syllables and letters: what Lucene cuts into bigrams.
_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\U00020000-\U0003ffff"
)


class _Pattern:
    """A regular expression that is compiled on its first use: those here would take 4 ms."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._pattern), name)
        setattr(self, name, value)
        return value


def _pattern(pattern: str) -> re.Pattern[str]:
    return cast("re.Pattern[str]", _Pattern(pattern))


JOINER = _pattern("[\u200c\u200d]")
# Anything but characters that NFC leaves alone wherever they stand: Latin, Greek, Cyrillic,
# letters of Hebrew and Arabic, punctuation, currencies, arrows, mathematics, Han, kana and
# Hangul syllables. Asking this is five times as fast.
NOT_SURELY_NFC = _pattern(
    "[^\u0000-\u02ff\u0370-\u0373\u0375-\u0377\u037a-\u037d\u037f\u0384-\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u0482\u048a-\u052f\u05d0-\u05ea\u0620-\u064a\u0660-\u066f\u0671-\u06d3"
    "\u1e00-\u1eff\u2002-\u205e\u2074-\u208e\u20a0-\u20bf\u2100-\u2125\u2127-\u2129\u212c-\u218b"
    "\u2190-\u2328\u232b-\u23ff\u2460-\u2adb\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u4e00-\u9fff"
    "\uac00-\ud7a3\uff01-\uff60]"
)
NOT_ASCII = _pattern("[^\u0000-\u007f]")
CJK = _pattern(f"[{_CJK}]")
WORD = _pattern(r"\w")
_CJK_RUNS = _pattern(f"([{_CJK}]+)")
WIDTH_FORMS = _pattern("[\uff01-\uff5e\uff65-\uff9f]+")
_TURKISH = str.maketrans({"İ": "i", "I": "ı"})
_DOTTED_I = "I\u0307"


def lower(text: str, turkish: bool) -> str:
    """Return the lower case, of I and İ as Turkish has it."""
    if turkish:
        text = text.replace(_DOTTED_I, "i").translate(_TURKISH)
    return text.lower()


def is_surely_nfc(text: str) -> bool:
    """Whether a glance is enough to know that NFC would change nothing."""
    return NOT_SURELY_NFC.search(text) is None


def fold_widths(text: str) -> str:
    """Make full-width ASCII and half-width katakana what they usually are, as Lucene does."""
    return WIDTH_FORMS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


def has_cjk(text: str) -> bool:
    """Whether a Chinese, Japanese or Korean character occurs."""
    return _CJK_RUNS.search(text) is not None


def cut_cjk(text: str, find: Callable[[str], list[str]]) -> list[str]:
    """Cut CJK runs into overlapping bigrams, and find the words of what lies between.

    A character that stands alone is a term of its own.
    """
    words: list[str] = []
    for number, run in enumerate(_CJK_RUNS.split(text)):
        if number % 2 == 0:
            words += find(run)
        elif len(run) == 1:
            words.append(run)
        else:
            words += [first + second for first, second in pairwise(run)]
    return words


def find_marked_words(text: str) -> list[str]:
    """Find words as the paper's pattern does, with combining marks inside them."""
    return _marked_words().findall(join_conjuncts(text))


def join_conjuncts(text: str) -> str:
    """Drop zero-width joiners after a combining mark, where they shape an Indic word."""
    if "\u200d" not in text and "\u200c" not in text:
        return text
    return JOINER.sub(lambda joiner: "" if _follows_mark(joiner) else joiner[0], text)


def _follows_mark(joiner: re.Match[str]) -> bool:
    start = joiner.start()
    return start > 0 and unicodedata.category(joiner.string[start - 1])[0] == "M"


@lru_cache(maxsize=1)
def _marked_words() -> re.Pattern[str]:
    """Two or more word characters, of which all but the first may be combining marks."""
    return re.compile(rf"\w[\w{_mark_ranges()}]+")


def _mark_ranges() -> str:
    ranges: list[list[int]] = []
    for mark in marks():
        if ranges and ranges[-1][1] == mark - 1:
            ranges[-1][1] = mark
        else:
            ranges.append([mark, mark])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@lru_cache(maxsize=1)
def marks() -> tuple[int, ...]:
    """Return the code points of all combining marks."""
    planes = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))  # none elsewhere; saves 0.1 s
    return tuple(
        point
        for plane in planes
        for point in in_turns(plane)
        if unicodedata.category(chr(point))[0] == "M"
    )
