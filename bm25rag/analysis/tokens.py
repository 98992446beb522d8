"""Words to tokens: contractions, numbers, signs, and the parts of identifiers."""

from __future__ import annotations

import unicodedata
from typing import Literal

from bm25rag.common.patterns import late_pattern

Apostrophe = Literal["ends", "joins", "cuts"]

# What may follow the last apostrophe of an English word without being a word.
_ENDINGS = frozenset({"s", "d", "m", "ll", "re", "ve"})
_PART = late_pattern(
    r"(?P<letters>[^\W\d_](?:\.[^\W\d_])+(?![^'.,+#]))"
    r"|[A-Za-z](?:\+\+|#)"
    r"|\.?[^'.,+#]+(?:(?<=\d)[.,](?=\d)[^'.,+#]+)*"
)
_THOUSANDS = late_pattern(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_OTHER_DIGIT = late_pattern(r"[^\D0-9]")
_GROUPED = late_pattern(r"\d{1,3}(?:,\d{3})+(?:\.\w+)?")
_CAMEL = late_pattern(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = late_pattern(r"[_.]+")


def split_word(word: str, apostrophe: Apostrophe) -> list[str]:
    """Return the tokens of a word that has other characters than ASCII letters and digits.

    - "John's" is "John", "we'll" is "we", "don't" is "dont", "l'homme" is "homme".
    - "1,000" is "1000", "3.5" stays, "U.S." is "US".
    - "C++" and "C#" stay, ".NET" is ".NET" and "NET".
    - Digits of other scripts become ASCII digits; underscores around a token are removed.

    Parameters
    ----------
    word
        A word, as ``scripts.word_pattern`` finds it.
    apostrophe
        What an apostrophe does: it ``"ends"`` what is before it, as in English; it ``"joins"``
        what is around it, as in Ukrainian; or it ``"cuts"`` off an ending, as in Turkish.
    """
    if word.isalpha() or (word.isascii() and word[:1].isdigit() and _is_number(word)):
        return [word.replace(",", "")]
    if _OTHER_DIGIT.search(word):
        word = _with_ascii_digits(word)
    tokens: list[str] = []
    for piece in _around_apostrophes(word, apostrophe) if "'" in word else [word]:
        if piece.isalnum():
            tokens.append(piece)
            continue
        for part in _PART.finditer(piece):
            tokens += [part[0].replace(".", "")] if part["letters"] else _split_part(part[0])
    return tokens


def _is_number(word: str) -> bool:
    """Whether a word that begins with a digit is a single token once its commas are removed."""
    if not word.replace(".", "").replace(",", "").isalnum():
        return False
    return "," not in word or _GROUPED.fullmatch(word) is not None


def identifier_parts(token: str) -> list[str]:
    """Return the parts of an identifier or a version number; nothing if it has only one."""
    found = [part for part in _SEPARATORS.split(_CAMEL.sub("_", token)) if part]
    return found if len(found) > 1 else []


def _around_apostrophes(word: str, apostrophe: Apostrophe) -> list[str]:
    pieces = word.split("'")
    if apostrophe == "joins":
        return ["".join(pieces)]
    if apostrophe == "cuts":
        del pieces[1:]
    while len(pieces) > 1 and pieces[-1].lower() in _ENDINGS:  # the scanner may have cut one off
        pieces.pop()
    if len(pieces) > 1 and pieces[-1].lower() == "t" and pieces[-2][-1:].lower() == "n":
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    # An elision leaves no word of its own: the l of "l'homme", the O of "O'Brien".
    return [piece for piece in pieces if len(piece) > 1 or piece.isdecimal()] or pieces


def _split_part(part: str) -> list[str]:
    if "," in part:
        part = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), part)
        return [token for piece in part.split(",") for token in _split_part(piece)]
    if part[0] == "." and len(part) > 1:
        return [part, *_split_part(part[1:])]
    token = part.strip("_")
    return [token] if token else []


def _with_ascii_digits(word: str) -> str:
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in word)
