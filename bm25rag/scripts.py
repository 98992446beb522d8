"""What the analyzer knows of scripts: CJK runs, widths, combining marks, the Turkish i."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

# Han with its marks and compatibility forms, Hiragana, Katakana (half-width forms
# are folded before), Bopomofo, Hangul syllables and letters: what Lucene cuts into bigrams.
_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\U00020000-\U0003ffff"
)
_CJK_RUNS = re.compile(f"([{_CJK}]+)")
_WIDTH_FORMS = re.compile("[\uff01-\uff5e\uff65-\uff9f]+")
_JOINERS = "\u200c\u200d"  # zero-width, between the parts of an Indic conjunct
TURKISH = str.maketrans({"İ": "i", "I": "ı"})


def fold_widths(text: str) -> str:
    """Make full-width ASCII and half-width katakana what they usually are, as Lucene does."""
    return _WIDTH_FORMS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


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
    if "\u200d" in text or "\u200c" in text:
        # After a combining mark they shape an Indic word and do not end it.
        kept = [
            char
            for before, char in pairwise(" " + text)
            if char not in _JOINERS or unicodedata.category(before)[0] != "M"
        ]
        text = "".join(kept)
    return _marked_words().findall(text)


@lru_cache(maxsize=1)
def _marked_words() -> re.Pattern[str]:
    """Two or more word characters, of which all but the first may be combining marks."""
    planes = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))  # no marks elsewhere; saves 0.1 s
    marks = [n for plane in planes for n in plane if unicodedata.category(chr(n))[0] == "M"]
    ranges: list[list[int]] = []
    for mark in marks:
        if ranges and ranges[-1][1] == mark - 1:
            ranges[-1][1] = mark
        else:
            ranges.append([mark, mark])
    marked = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
    return re.compile(rf"\w[\w{marked}]+")
