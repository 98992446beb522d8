"""Words to tokens: contractions, numbers, signs, and the parts of identifiers."""

from __future__ import annotations

import unicodedata
from typing import Literal

from bm25rag.common.patterns import late_pattern
from bm25rag.kernels.boundary import SHORTEST_ASKED

Apostrophe = Literal["ends", "joins", "cuts"]

# What may follow the last apostrophe of an English word without being a word.
_ENDINGS = frozenset({"s", "d", "m", "ll", "re", "ve"})
# Names whose apostrophe cuts off no Turkish ending: Irish ones, since what else follows "o'" is of
# the pronoun; and French ones, since endings of the letters d and l begin with a consonant.
_NAMES = late_pattern(
    r"(?i)o'(?!n[cdlsu]|y|da[kny]|lar)[^\W\d_]{4,}|[dl]'(?=[aeiouâàéèêëîïôœıöüh])[^\W\d_]{3,}"
)
_PART = late_pattern(
    r"(?P<letters>[^\W\d_](?:\.[^\W\d_])+(?![^'.,+#]))"
    r"|[A-Za-z](?:\+\+|#)"
    r"|\.?[^'.,+#]+(?:(?<=\d)[.,](?=\d)[^'.,+#]+)*"
)
_THOUSANDS = late_pattern(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
# Digits of other scripts, and those above and below the line.
_OTHER_DIGIT = late_pattern("[^\\D0-9]|[\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]")
# A number with points, perhaps behind letters; and one whose points are between thousands.
_POINTED = late_pattern(r"(?P<name>[^\W\d_]*)(?P<number>\d+(?:\.\d+)+)")
_POINTED_THOUSANDS = late_pattern(r"\d{1,3}(?:\.\d{3}){2,}")
# A pattern for letters and digits would be compiled in the time of ten questions.
_DIGITS, _ORDINALS = "0123456789", frozenset({"st", "nd", "rd", "th"})
_GROUPED = late_pattern(r"\d{1,3}(?:,\d{3})+(?:\.\w+)?")
_CAMEL = late_pattern(
    r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[a-z])"
)
_SEPARATORS = late_pattern(r"[_.]+")


def split_word(word: str, apostrophe: Apostrophe) -> list[str]:
    """Return the tokens of a word that has other characters than ASCII letters and digits.

    - "John's" is "John", "we'll" is "we", "don't" is "dont", "l'homme" is "homme".
    - "1,000" is "1000", "3.5" stays, "U.S." is "US".
    - "C++" and "C#" stay, ".NET" is ".NET" and "NET".
    - Digits of other scripts become ASCII digits; underscores around a token are removed.

    An apostrophe ``"ends"`` what is before it, as in English; it ``"joins"`` what is around it, as
    in Ukrainian; or it ``"cuts"`` off an ending, as in Turkish, where "O'nun" is of the pronoun,
    and "O'Brien" and "D'Artagnan" are names.
    """
    if word.isalpha() or is_number(word):
        return [word.replace(",", "")]
    if not word.isascii() and _OTHER_DIGIT.search(word):
        word = _with_ascii_digits(word)
    tokens: list[str] = []
    for piece in _around_apostrophes(word, apostrophe) if "'" in word else [word]:
        if piece.isalnum():
            tokens.append(piece)
            continue
        for part in _PART.finditer(piece):
            tokens += [part[0].replace(".", "")] if part["letters"] else _split_part(part[0])
    return tokens


def is_number(word: str) -> bool:
    """Whether a word is a number, and a single token once its commas are removed."""
    if not "0" <= word[:1] <= "9" or not word.isascii():
        return False
    return word.replace(".", "", 1).isdecimal() or _GROUPED.fullmatch(word) is not None


def other_tokens(word: str, tokens: list[str]) -> list[str]:
    """Return tokens that a word has beside those that ``split_word`` finds.

    "O'Brien" is also "obrien", "3.11.4" also "3.11", "v2.0" also "2.0", and "snake_case" also
    "snake" and "case".
    """
    if word[1:2] == "'" and tokens[:1] == [word[2:].partition("'")[0]] and word[0] in "oO":
        return [word[0] + tokens[0]]
    others = [other for token in tokens if "." in token for other in _shorter_numbers(token)]
    return others + [part for token in tokens if "_" in token for part in token.split("_") if part]


def asked_parts(token: str) -> list[str]:
    """Return the letters and the digits of a token such as "covid19" or "16gb", or nothing.

    Of "fy2018" it returns the digits alone; an ordinal such as "19th" is one word.
    """
    letters = token.strip(_DIGITS)
    if not (letters.isascii() and letters.isalpha()):
        return []
    first, _, last = token.partition(letters)
    if bool(first) == bool(last):
        return []
    if first:
        return [first, letters] if len(letters) > 1 and letters not in _ORDINALS else []
    if len(letters) >= SHORTEST_ASKED:
        return [letters, last]
    return [last] if len(last) >= SHORTEST_ASKED else []


def _shorter_numbers(token: str) -> list[str]:
    match = None if is_number(token) else _POINTED.match(token)
    if match is None:
        return []
    number = match["number"]
    shorter = [] if number == token else [number]
    if len(match["name"]) > 1:
        shorter.append(match["name"])
    if _POINTED_THOUSANDS.fullmatch(number) is None:
        parts = number.split(".", 4)
        shorter += [".".join(parts[:size]) for size in range(2, min(len(parts), 4))]
    return shorter


def identifier_parts(token: str) -> list[str]:
    """Return the parts of an identifier or a version number; nothing if it has only one."""
    parts = [part for part in _SEPARATORS.split(_CAMEL.sub("_", token)) if part]
    return parts if len(parts) > 1 else []


def _around_apostrophes(word: str, apostrophe: Apostrophe) -> list[str]:
    pieces = word.split("'")
    if apostrophe == "joins":
        return ["".join(pieces)]
    if apostrophe == "cuts":
        is_name = len(pieces[0]) == 1 and _NAMES.fullmatch("'".join(pieces[:2])) is not None
        del pieces[2 if is_name else 1 :]
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
    # Above and below the line only behind letters: ten squared is no hundred and two.
    is_digit = str.isdigit if word[:1].isalpha() else str.isdecimal
    return "".join(str(unicodedata.digit(one)) if is_digit(one) else one for one in word)
