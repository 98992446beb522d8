"""What is written in one word or in two: "e-mail" and "email", "type 2" and "type2".

Words are found as ``scripts.word_pattern`` says; these come beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from re import Match
from string import ascii_letters, digits
from typing import NamedTuple, cast

from bm25rag.analysis import scripts
from bm25rag.analysis.unspaced_runs import BigramRules, is_cut
from bm25rag.common.patterns import late_pattern
from bm25rag.kernels.boundary import LONGEST_JOINED, LONGEST_PAIR, LONGEST_WORD

_ALPHANUMERIC = ascii_letters + digits
_CHAIN = late_pattern(r"[A-Za-z0-9]++(?:[-&.][A-Za-z0-9]++)+")
# It begins with what is seldom: the search for it skips the rest ten times as fast.
_FIRST_LINK = late_pattern("[-&.](?<=[A-Za-z0-9][-&.])(?=[A-Za-z0-9])")
_LINK = late_pattern("[-&.]")
_POINTED = late_pattern(r"\d\.\d")
# A word and a number that follow one another, and a number and what may be a unit; the second may
# be the first of the next pair.
_PAIR = late_pattern(
    r"(?<![^\W_])(?<![^\W_][-&.,'])(?:([A-Za-z]++) (?=([0-9]++)(?![\w&'.+#-]*\w|[+#]))"
    r"|([0-9]++) (?=([A-Za-z]{1,3}+)(?![\w&'.+#-]*\w|[+#])))"
)


class Joined(NamedTuple):
    """Parts of a text that are also one word, and where they are in it."""

    word: str
    start: int
    end: int


def joined_words(text: str, rules: BigramRules) -> Iterator[Joined]:
    """Yield what is also one word, in a folded text: parts of ASCII letters and digits with links.

    - "e-mail" is also "email", "AT&T" "att", "Node.js" "nodejs": two parts, of at most
      ``LONGEST_JOINED`` characters together, because longer ones are not written as one word.
    - "docs.python.org" is also "docspythonorg": of more parts only hosts and files are.
    - "12-15", "3.5-inch" and "U.S." are no more than their words.
    """
    end = 0
    while link := _FIRST_LINK.search(text, end):
        start = end + len(text[end : link.start()].rstrip(_ALPHANUMERIC))
        chain = cast("Match[str]", _CHAIN.match(text, start))
        end = chain.end()
        word = _joined(chain[0])
        if word and not _is_within(text, chain, rules):
            yield Joined(word, start, end)


def _joined(chain: str) -> str:
    """Return the parts of a chain as one word; nothing if they are not written so."""
    parts = _LINK.split(chain)
    word = "".join(parts)
    points = chain.count(".") == len(parts) - 1
    if points and max(map(len, parts)) == 1:
        return ""
    longest = LONGEST_JOINED if len(parts) == 2 else points * LONGEST_WORD
    if len(word) > longest or word.isdecimal() or _POINTED.search(chain):
        return ""
    return word


def _is_within(text: str, chain: Match[str], rules: BigramRules) -> bool:
    """Whether a chain is a part of a longer word, or behind a comma, which may be in a number."""
    before = chain.start() - 1
    if before >= 0 and (text[before] == "," or scripts.is_in_word(text[before])):
        is_mark = scripts.is_mark(text[before])
        while before > 0 and scripts.is_mark(text[before]):
            before -= 1
        if not is_cut(text[before], rules, cluster=is_mark):
            return True
    after = text[chain.end() : chain.end() + 1]
    return after != "" and scripts.is_in_word(after) and not is_cut(after, rules)


def numbered_words(text: str, stopwords: AbstractSet[str]) -> Iterator[Joined]:
    """Yield words and numbers that follow one another, as one word each, but for stop words.

    "Type 2" may be written "type2", and "16 GB" "16GB".
    """
    for pair in _PAIR.finditer(text):
        first, second = (part for part in pair.groups() if part)
        if len(first) + len(second) <= LONGEST_PAIR and stopwords.isdisjoint((first, second)):
            end = pair.end() + len(second)
            yield Joined(first + second, pair.start(), end)
