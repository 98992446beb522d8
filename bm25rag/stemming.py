"""Snowball stemmers, as PyStemmer has them, for any thread and any word."""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import Protocol

from bm25rag._types import check_choice

# Snowball takes quadratic time for some words; longer ones are no words of a language.
_LONGEST = 255


class Stemmer:
    """A Snowball stemmer that threads may share.

    Parameters
    ----------
    algorithm
        Its name; see ``check_algorithm``.
    """

    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        self._local = threading.local()

    def stems(self, words: list[str]) -> list[str]:
        """Return the stem of each word; the word itself where Snowball leaves nothing of it.

        That is so for a few words of Nepali, Tamil and Irish, and for words of more than
        255 characters or with a lone surrogate, which it is not given.
        """
        stemmer = self._own()
        fit = words
        if max(map(len, words), default=0) > _LONGEST:
            fit = [word if len(word) <= _LONGEST else "" for word in words]
        try:
            stems = stemmer.stemWords(fit)
        except UnicodeEncodeError:
            stems = [stemmer.stemWord(word) if _is_unicode(word) else "" for word in fit]
        return stems if all(stems) else [a or b for a, b in zip(stems, words, strict=True)]

    def _own(self) -> _PyStemmer:
        # A PyStemmer object must not be used from two threads: one each.
        try:
            own: _PyStemmer = self._local.stemmer
        except AttributeError:
            own = _pystemmer().Stemmer(self._algorithm, 0)  # remembers nothing
            self._local.stemmer = own
        return own


def check_algorithm(name: object) -> str:
    """Return the name of a Snowball algorithm that is installed.

    Raises
    ------
    TypeError
        If it is no string.
    ValueError
        If the installed PyStemmer does not have it.
    """
    try:
        return check_choice("stemmer", name, _pystemmer().algorithms())
    except ValueError as error:
        raise ValueError(
            f"{error}; the installed PyStemmer is {snowball_version()}: "
            "a newer one may have it, and stemmer=None does without"
        ) from None


def snowball_version() -> str:
    """Return the version of the installed PyStemmer."""
    version: str = _pystemmer().version()
    return version


class _PyStemmer(Protocol):
    # ruff: noqa: N802 - the names are PyStemmer's
    def stemWord(self, word: str) -> str: ...
    def stemWords(self, words: list[str]) -> list[str]: ...


def _pystemmer() -> ModuleType:
    return importlib.import_module("Stemmer")


def _is_unicode(word: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in word)
