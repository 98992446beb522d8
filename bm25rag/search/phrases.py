"""How phrases, and words that are no terms, are looked for in the words of stored texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.analysis.written import WholeWords
from bm25rag.common.arrays import Bool, Int64

if TYPE_CHECKING:
    from bm25rag.analysis.word_scanner import ScannedWords

# One place in so many is sorted in less time than all are looked at.
_FEW = 16


class WordsInText:
    """Finds words among those of a text; in a row, if they must be.

    A word of the text that has several terms, such as a compound or a pair of characters with the
    first of them, is each word whose terms are among them. In a row, words on either side may
    stand as one, as "e-mail" and "email" do: there is a way through each that has the same words.
    """

    def __init__(self, whole: WholeWords, in_a_row: bool) -> None:
        self.words, self.in_a_row = tuple(whole.words), in_a_row
        self._longer = whole.longer if in_a_row else ()
        self.joins = bool(whole.longer)  # whether some of them are also one word
        # The bits of the places where a longer word begins, by how many words it is.
        self._longer_of: dict[str, dict[int, int]] = {}
        for begin, end, word in self._longer:
            begins = self._longer_of.setdefault(word, {})
            begins[end - begin] = begins.get(end - begin, 0) | 1 << begin
        self._places: dict[str, int] = {}  # the bits of the places that a word has
        for place, word in enumerate(self.words):
            self._places[word] = self._places.get(word, 0) | 1 << place
        self._terms = [(frozenset(word.split("\0")), bits) for word, bits in self._places.items()]
        self._joined = "\0".join(["", *self.words, ""])
        several = any("\0" in word for word in self.words)
        self._is_plain = not (several or self._longer)
        # What words of a text may be as one.
        self.spellings = frozenset({*self.words, *self._longer_of} if in_a_row else ())

    def found_in(self, text: WholeWords) -> bool:
        """Whether the words of a text have these."""
        words = text.words
        longer = [one for one in text.longer if one[2] in self.spellings]
        joined = "\0".join(["", *words, ""])
        # Where each word has one term, and none is joined, a glance tells.
        if not self._is_plain or longer or joined.count("\0") > len(words) + 1:
            return self._is_row(WholeWords(words, longer)) if self.in_a_row else self._are_in(words)
        if self.in_a_row:
            return self._joined in joined
        return self._places.keys() <= set(words)

    def found_in_each(self, scanned: ScannedWords) -> Bool:
        """Say whether each of some texts has them."""
        have = np.zeros(len(scanned.ends), np.bool_)
        if self.in_a_row:
            have[scanned.texts_at(self._row_ends(scanned) - 1)] = True
            for text in scanned.texts_that_join(self.spellings):
                have[text] = have[text] or self.found_in(scanned.whole_words(text, self.spellings))
            return have
        counts = np.zeros(len(have), np.int64)
        for word in self.words:
            counts[np.unique(scanned.texts_at(scanned.places(word)))] += 1
        return np.equal(counts, len(self.words))

    def _row_ends(self, scanned: ScannedWords) -> Int64:
        """Return the places behind these words in a row, but for joined words of the texts."""
        size = len(self.words)
        longer: list[list[tuple[int, str]]] = [[] for _ in range(size)]
        for begin, end, word in self._longer:
            longer[begin].append((end, word))
        behind: list[list[Int64]] = [[] for _ in range(size + 1)]
        for begin, word in enumerate(self.words):
            if begin:
                behind[begin] = [scanned.inside(_together(behind[begin], len(scanned.words)))]
            for end, own in [(begin + 1, word), *longer[begin]]:
                if begin == 0:
                    places = scanned.places(own)
                else:
                    (places,) = behind[begin]
                    places = places[scanned.are(scanned.words[places], own)]
                behind[end].append(places + 1)
            behind[begin] = []
        return _together(behind[size], len(scanned.words))

    def _is_row(self, text: WholeWords) -> bool:
        """Whether the words of a text have these in a row."""
        joined: dict[int, list[tuple[int, str]]] = {}
        for begin, end, word in text.longer:
            joined.setdefault(begin, []).append((end, word))
        # Each bit says that so many of the words end here, or behind a joined word: one step for
        # all of them.
        ways, ahead = 1, dict[int, int]()
        for place, word in enumerate(text.words):
            for end, own in joined.get(place, ()):
                ahead[end] = ahead.get(end, 0) | self._further(ways, own)
            ways = 1 | self._further(ways, word) | ahead.pop(place + 1, 0)
            if ways >> len(self.words):
                return True
        return False

    def _further(self, ways: int, word: str) -> int:
        """Return where the ways lead that the next word of a text continues."""
        places = self._places_of(word) if "\0" in word else self._places.get(word, 0)
        further = (ways & places) << 1
        if self._longer:
            for term in word.split("\0"):
                for size, begins in self._longer_of.get(term, {}).items():
                    further |= (ways & begins) << size
        return further

    def _are_in(self, words: Sequence[str]) -> bool:
        seen = 0
        for word in words:
            seen |= self._places_of(word) if "\0" in word else self._places.get(word, 0)
        return seen + 1 == 1 << len(self.words)

    def _places_of(self, word: str) -> int:
        terms, places = frozenset(word.split("\0")), 0
        for own, bits in self._terms:
            if own <= terms:
                places |= bits
        return places


def _together(places: list[Int64], end: int) -> Int64:
    """Return the places of several lists, which are at most ``end``, each once, ascending."""
    if len(places) == 1:
        return places[0]
    if sum(map(len, places)) < end // _FEW:
        return np.unique(np.concatenate([*places, np.empty(0, np.int64)]))
    here = np.zeros(end + 1, np.bool_)  # to sort many would take longer
    for own in places:
        here[own] = True
    return np.flatnonzero(here)
