"""The terms of words, and of texts by their words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeAlias, overload

import numpy as np

from bm25rag.common.arrays import Int64, UInt32

# The terms of a word: one is a ``str``, so that most need no tuple; others are in one.
WordTerms: TypeAlias = "str | tuple[str, ...]"


def all_terms(of_words: Iterable[WordTerms]) -> list[str]:
    """Return the terms of words, one after another."""
    return [*chain.from_iterable((own,) if isinstance(own, str) else own for own in of_words)]


class TermLists(Sequence[list[str]]):
    """The terms of each of some texts; a list is made when asked for.

    A search looks up the terms of each word once, and needs no lists.
    ``of_words`` are the terms of the distinct words of all texts, ``tokens`` the words of the texts
    by their numbers, uint32, ``counts`` how many each text has, uint32 (n,), and ``more`` the
    further terms of texts that have any, by the number of the text.
    """

    __slots__ = ("_ends", "counts", "more", "of_words", "tokens")

    def __init__(
        self,
        of_words: list[WordTerms],
        tokens: UInt32,
        counts: UInt32,
        more: dict[int, list[str]],
    ) -> None:
        self.of_words, self.tokens, self.counts, self.more = of_words, tokens, counts, more
        self._ends: Int64 | None = None

    @classmethod
    def joined(cls, parts: Sequence[Sequence[list[str]]]) -> TermLists:
        """Return the lists of all parts, one after another."""
        of_words: list[WordTerms] = []
        tokens: list[UInt32] = []
        counts: list[UInt32] = []
        more: dict[int, list[str]] = {}
        first = 0
        for part in parts:
            if isinstance(part, TermLists):
                tokens.append(part.tokens + np.uint32(len(of_words)))
                counts.append(part.counts)
                of_words += part.of_words
                more |= {first + number: terms for number, terms in part.more.items()}
            else:
                counts.append(np.zeros(len(part), np.uint32))
                more |= dict(enumerate(part, first))
            first += len(part)
        none = np.empty(0, np.uint32)
        return cls(of_words, np.concatenate([none, *tokens]), np.concatenate([none, *counts]), more)

    @property
    def most_terms(self) -> int:
        """At most how many distinct terms there are."""
        several = sum(len(own) - 1 for own in self.of_words if type(own) is tuple)
        return len(self.of_words) + several + sum(map(len, self.more.values()))

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, index: int) -> list[str]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[str]]: ...

    def __getitem__(self, index: int | slice) -> list[str] | list[list[str]]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        if self._ends is None:
            self._ends = np.cumsum(self.counts, dtype=np.int64)
        end = int(self._ends[numbers])
        words = self.tokens[end - int(self.counts[numbers]) : end].tolist()
        return all_terms(self.of_words[word] for word in words) + self.more.get(numbers, [])
