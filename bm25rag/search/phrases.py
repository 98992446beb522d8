"""How phrases, and words that are no terms, are looked for in the words of stored texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag.common.arrays import Bool

if TYPE_CHECKING:
    from bm25rag.analysis.word_scanner import ScannedWords


class WordsInText:
    """Finds words in those of a text, as ``Analyzer.whole_words`` returns them.

    A word of the text that has several terms, such as a compound or a pair of characters with the
    first of them, is each word whose terms are among them.

    Parameters
    ----------
    words
        The words.
    in_a_row
        Whether they must follow one another.
    """

    words: tuple[str, ...]
    in_a_row: bool

    def __init__(self, words: Sequence[str], in_a_row: bool) -> None:
        self.words, self.in_a_row = tuple(words), in_a_row
        self._places: dict[str, int] = {}  # the bits of the places that a word has
        for place, word in enumerate(words):
            self._places[word] = self._places.get(word, 0) | 1 << place
        self._terms = [(frozenset(word.split("\0")), bits) for word, bits in self._places.items()]
        self._joined = "\0".join(["", *words, ""])
        self._has_several = any("\0" in word for word in words)

    def found_in(self, words: Sequence[str]) -> bool:
        """Whether the words of a text have these."""
        joined = "\0".join(["", *words, ""])
        if self._has_several or joined.count("\0") > len(words) + 1:  # some have several terms
            return self._found(words)
        if self.in_a_row:
            return self._joined in joined
        return self._places.keys() <= set(words)

    def found_in_each(self, scanned: ScannedWords) -> Bool:
        """Say whether each of some texts has them."""
        have = np.zeros(len(scanned.ends), np.bool_)
        if self.in_a_row:
            places, words = scanned.places(self.words[0]), scanned.words
            for distance, word in enumerate(self.words[1:], 1):
                places = places[: np.searchsorted(places, len(words) - distance)]
                places = places[scanned.are(words[places + distance], word)]
            texts = scanned.texts_at(places)
            have[texts[texts == scanned.texts_at(places + len(self.words) - 1)]] = True
            return have
        counts = np.zeros(len(have), np.int64)
        for word in self.words:
            counts[np.unique(scanned.texts_at(scanned.places(word)))] += 1
        return np.equal(counts, len(self.words))

    def _found(self, words: Sequence[str]) -> bool:
        last, matched, seen = 1 << len(self.words) >> 1, 0, 0
        for word in words:
            places = self._places_of(word) if "\0" in word else self._places.get(word, 0)
            # Each bit says that the words up to its place end here: one step for all of them.
            matched, seen = (matched << 1 | 1) & places, seen | places
            if self.in_a_row and matched & last:
                return True
        return not self.in_a_row and seen + 1 == 1 << len(self.words)

    def _places_of(self, word: str) -> int:
        terms, places = frozenset(word.split("\0")), 0
        for own, bits in self._terms:
            if own <= terms:
                places |= bits
        return places
