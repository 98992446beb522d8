"""Characters and words of the scripts: patterns, widths, combining marks, the Turkish i."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache

import numpy as np

from bm25rag.common.arrays import Bool, Int64
from bm25rag.common.lazy import lazy_property
from bm25rag.common.patterns import late_pattern
from bm25rag.kernels import backend


class Letters:
    """Letters given as ``ranges``, as a class of a regular expression has them.

    A pattern of ranges as large as these takes milliseconds to compile.
    """

    def __init__(self, ranges: str) -> None:
        self.ranges = ranges

    @lazy_property
    def _bounds(self) -> list[int]:
        """At which code points ranges begin, and behind which they end, in turn."""
        ranges = sorted(re.findall("(.)(?:-(.))?", self.ranges))
        return [bound for first, last in ranges for bound in (ord(first), ord(last or first) + 1)]

    def __contains__(self, letter: str) -> bool:
        return bisect_right(self._bounds, ord(letter)) % 2 == 1

    def among(self, points: Int64) -> Bool:
        """Return which code points are such letters."""
        inside: Bool = np.searchsorted(self._bounds, points, side="right") % 2 == 1
        return inside


# Han with its marks and compatibility forms, Hiragana, Katakana (half-width forms have been folded
# by then), Bopomofo, Hangul syllables and letters: the characters that Lucene cuts into bigrams.
CJK = Letters(
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\U00020000-\U0003ffff"
)
# Characters that are terms beside the bigrams: in questions and documents, and in documents only.
HAN = Letters(
    "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
SINGLES = Letters(HAN.ranges + "\uac00-\ud7a3")
# Letters of Thai, Lao, Khmer and Burmese, which put no spaces between words. Their digits are
# ordinary words; their other vowels and tones are combining marks.
SOUTHEAST_ASIAN = Letters(
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec4\u0ec6\u0edc-\u0edf"
    "\u1780-\u17b3\u17d7\u17dc"
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e"
    "\ua9e0-\ua9e4\ua9e6-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a\uaa7e\uaa7f"
)

JOINER = late_pattern("[\u200c\u200d]")
# Characters that NFC never changes: Latin, Greek, Cyrillic, Hebrew, Arabic, the scripts of India
# and Southeast Asia without most marks, punctuation, currencies, arrows, mathematics, Han, kana,
# Hangul syllables and emoji. A search for others is five times as fast as normalising.
_SURELY_NFC = (
    "\u0000-\u02ff\u0370-\u0373\u0375-\u0377\u037a-\u037d\u037f\u0384-\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u0482\u048a-\u052f\u0531-\u0556\u0559-\u058a\u058d-\u058f\u05be\u05c0"
    "\u05c3\u05c6\u05d0-\u05ea\u05ef-\u05f4\u0600-\u060f\u061b-\u064a\u0660-\u066f\u0671-\u06d5"
    "\u06dd\u06de\u06e5\u06e6\u06e9\u06ee-\u06ff\u0900-\u093b\u093d-\u094c\u094e-\u0950"
    "\u0955-\u0957\u0960-\u09bb\u09bd\u09bf-\u09cc\u09ce-\u09d6\u09d8-\u09db\u09de\u09e0-\u09fd"
    "\u09ff-\u0a32\u0a34\u0a35\u0a37-\u0a3b\u0a3d-\u0a4c\u0a4e-\u0a58\u0a5c\u0a5d\u0a5f-\u0abb"
    "\u0abd-\u0acc\u0ace-\u0b3b\u0b3d\u0b3f-\u0b4c\u0b4e-\u0b55\u0b58-\u0b5b\u0b5e-\u0bbd"
    "\u0bbf-\u0bcc\u0bce-\u0bd6\u0bd8-\u0c3b\u0c3d-\u0c4c\u0c4e-\u0c54\u0c57-\u0cbb\u0cbd-\u0cc1"
    "\u0cc3-\u0ccc\u0cce-\u0cd4\u0cd7-\u0d3a\u0d3d\u0d3f-\u0d4c\u0d4e-\u0d56\u0d58-\u0dc9"
    "\u0dcb-\u0dce\u0dd0-\u0dde\u0de0-\u0e37\u0e3b-\u0e47\u0e4c-\u0e7f\u0e81\u0e82\u0e84"
    "\u0e86-\u0e8a\u0e8c-\u0ea3\u0ea5\u0ea7-\u0eb7\u0ebb-\u0ebd\u0ec0-\u0ec4\u0ec6\u0ecc\u0ecd"
    "\u0ed0-\u0ed9\u0edc-\u0edf\u1000-\u102d\u102f-\u1036\u1038\u103b-\u108c\u108e-\u10ff"
    "\u1200-\u135c\u1360-\u137f\u1780-\u17d1\u17d3-\u17dc\u17de-\u17ff\u1e00-\u1eff\u2002-\u205e"
    "\u2074-\u208e\u20a0-\u20bf\u2100-\u2125\u2127-\u2129\u212c-\u218b\u2190-\u2328\u232b-\u23ff"
    "\u2460-\u2adb\u2b00-\u2bff\u3001-\u3029\u3041-\u3096\u309b-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
    "\ufe00-\ufe0f\uff01-\uff60\U0001f000-\U0001faff"
)
NOT_SURELY_NFC = late_pattern(f"[^{_SURELY_NFC}]")
# Marks, and what they are combined with, of which NFC changes nothing unless two are side by side.
_MEETING = (
    "\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u094d\u0951-\u0954\u09bc\u09be\u09c7"
    "\u09cd\u09d7\u09fe\u0a3c\u0a4d\u0abc\u0acd\u0b3c\u0b3e\u0b47\u0b4d\u0b56\u0b57\u0b92\u0bbe"
    "\u0bc6\u0bc7\u0bcd\u0bd7\u0c3c\u0c46\u0c4d\u0c55\u0c56\u0cbc\u0cbf\u0cc2\u0cc6\u0cca\u0ccd"
    "\u0cd5\u0cd6\u0d3b\u0d3c\u0d3e\u0d46\u0d47\u0d4d\u0d57\u0dca\u0dcf\u0dd9\u0ddc\u0ddf"
    "\u0e38-\u0e3a\u0e48-\u0e4b\u0eb8-\u0eba\u0ec8-\u0ecb\u1025\u102e\u1037\u1039\u103a\u108d"
    "\u135d-\u135f\u17d2\u17dd"
)
MEETING = late_pattern(f"[{_MEETING}]")
CHANGED_BY_NFC = late_pattern(f"[^{_SURELY_NFC}{_MEETING}]")
NOT_ASCII = late_pattern("[^\u0000-\u007f]")
LETTER = late_pattern(r"[^\W\d_]")
DIGIT = late_pattern(r"\d")
APOSTROPHES = late_pattern("[\u2019\u02bc]")
HYPHENS = late_pattern("[\u2010\u2011]")
# Links of words that are not ASCII, two hyphens before wide forms, and what they are folded to.
LINKS = (("\u2010", "-"), ("\u2011", "-"), ("\uff0d", "-"), ("\uff06", "&"), ("\uff0e", "."))
# What may become a link between two words, but for NFKC: without any, nothing is joined.
LINK = late_pattern(r"[-&.\u2010\u2011\uff0d\uff06\uff0e](?=\S)")
# Emoji and other pictures: each is a word. None of them is of letters or digits.
EMOJI = late_pattern(
    "[\u231a\u231b\u23e9-\u23fa\u2600-\u2775\u2794-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f1e6-\U0001faff]"
)
# Characters inside words that are not part of them: soft hyphens, word joiners, direction marks,
# and the Hebrew geresh and gershayim of abbreviations.
IGNORED = late_pattern("[\u00ad\u05f3\u05f4\u061c\u200e\u200f\u2060\ufeff]")
WIDTH_FORMS = late_pattern("[\uff01-\uff5e\uff65-\uff9f]+")
_LAST_WITHOUT = "\u02ff"  # no mark comes before it
NO_PAGES: frozenset[int] = frozenset()
# The pages of the marks of all texts so far: with a pattern for each set of pages that some text
# has, texts of many scripts would have one compiled again and again.
_SEEN_PAGES: set[int] = set()
# How many patterns are kept, by the pages of marks that they know: the latest, and without marks.
PATTERNS = 8
_TURKISH = str.maketrans({"İ": "i", "I": "ı"})
_DOTTED_I = "I\u0307"


def lower(text: str, turkish: bool) -> str:
    """Return a text in lower case; I and İ as in Turkish if ``turkish``."""
    if turkish:
        text = text.replace(_DOTTED_I, "i").translate(_TURKISH)
    return text.lower()


def is_surely_nfc(text: str) -> bool:
    """Whether a text has only characters that NFC never changes."""
    return NOT_SURELY_NFC.search(text) is None


def fold_widths(text: str) -> str:
    """Replace full-width ASCII and half-width katakana by the usual forms, as Lucene does."""
    return WIDTH_FORMS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


def join_conjuncts(text: str) -> str:
    """Drop zero-width joiners after combining marks, where they only shape an Indic word."""
    if "\u200d" not in text and "\u200c" not in text:
        return text
    return JOINER.sub(lambda joiner: "" if _follows_mark(joiner) else joiner[0], text)


def _follows_mark(joiner: re.Match[str]) -> bool:
    start = joiner.start()
    return start > 0 and is_mark(joiner.string[start - 1])


def find_words(text: str) -> list[str]:
    """Find words as people write them (see ``word_pattern``), with combining marks inside them."""
    return word_pattern(mark_pages(text)).findall(text)


def find_ascii_words(text: str) -> list[str]:
    """Find words as ``find_words`` does, in a text that is all ASCII."""
    words = backend.current().find_ascii_words(text)
    return word_pattern(NO_PAGES).findall(text) if words is None else words


def is_mark(char: str) -> bool:
    """Whether a character is a combining mark."""
    return unicodedata.category(char)[0] == "M"


def is_in_word(char: str) -> bool:
    """Whether a character is part of words: a letter, digit, underscore or combining mark."""
    return char == "_" or char.isalnum() or is_mark(char)


def drop_ignored(text: str) -> str:
    """Drop characters inside words that are not part of them, zero-width joiners included."""
    return join_conjuncts(IGNORED.sub("", text))


@lru_cache(maxsize=PATTERNS)
def word_pattern(pages: frozenset[int]) -> re.Pattern[str]:
    """Return the pattern of words as people write them, one character or more.

    A word may contain apostrophes; full stops and commas between digits; full stops between
    single letters, as in "U.S."; a full stop before a name, as in ".NET"; and the signs of
    "C++" and "C#", after a single letter. Emoji are words. ``tokens.split_word`` turns words into
    tokens, and ``links.joined_words`` finds what is also one word, such as "e-mail".
    """
    w = rf"\w{mark_ranges(pages)}"
    letter = r"[^\W\d_]"
    signs = (
        r"(?<=\d[.,])(?=\d)",
        rf"(?<=[{w}]')(?=\w)",
        rf"(?<=(?<![{w}]){letter}\.)(?={letter}(?![{w}]))",
        rf"(?<=\.)(?<![{w}.]\.)(?={letter})",
        rf"(?<=(?<![{w}])[A-Za-z]\+)(?=\+(?!\+))",
        rf"(?<=(?<![{w}])[A-Za-z]\+\+)(?!\+)",
        rf"(?<=(?<![{w}])[A-Za-z]#)",
    )
    name = rf"\.(?<![{w}.]\.)(?={letter})"
    words = rf"(?:\w|{name})[{w}]*(?:['.,+#](?:{'|'.join(signs)})[{w}]*)*"
    return re.compile(f"{words}|{EMOJI.pattern}")


def mark_pages(text: str) -> frozenset[int]:
    """Return the pages, of 256 characters, of the combining marks of a text; none if it has none.

    Pages of earlier texts are among them, which change no word. To list all marks takes 20 ms,
    and a pattern of them as long; texts have marks of few pages.
    """
    pages = {ord(char) >> 8 for char in set(text) if char > _LAST_WITHOUT and is_mark(char)}
    if not pages:
        return NO_PAGES
    if not pages <= _SEEN_PAGES:
        _SEEN_PAGES.update(pages)
    return frozenset(_SEEN_PAGES)


def mark_ranges(pages: frozenset[int]) -> str:
    """Return the combining marks of some pages as ranges, for a class of a regular expression."""
    ranges: list[list[int]] = []
    points = (point for page in sorted(pages) for point in range(page << 8, page + 1 << 8))
    for mark in (point for point in points if is_mark(chr(point))):
        if ranges and ranges[-1][1] == mark - 1:
            ranges[-1][1] = mark
        else:
            ranges.append([mark, mark])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
