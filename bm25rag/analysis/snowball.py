"""The one place that chooses who runs Snowball: PyStemmer, or ``snowballstemmer`` in its stead.

Both are made from the same algorithms, PyStemmer in C. The other is pure Python, for where
PyStemmer has no wheel, as in a browser; it takes about 50 times as long for a word.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Protocol

from bm25rag.errors import MissingDependencyError


class WordStemmer(Protocol):
    """What both libraries have; two threads must not use one object."""

    # ruff: noqa: N802 - the names are theirs
    def stemWord(self, word: str) -> str:
        """Return the stem of a word."""

    def stemWords(self, words: list[str]) -> list[str]:
        """Return the stem of each word."""


def new_stemmer(algorithm: str) -> WordStemmer:
    """Make a stemmer for one thread, of one of ``algorithms()``."""
    library = _library()
    if library.__name__ != "Stemmer":
        return _PureStemmer(library.stemmer(algorithm))
    try:
        stemmer: WordStemmer = library.Stemmer(algorithm, 0)  # with no cache
    except KeyError as error:  # PyStemmer tells an algorithm that is missing from nothing else
        raise MemoryError(f"there is no memory for PyStemmer's {algorithm}") from error
    return stemmer


class _PureStemmer:
    """A stemmer of ``snowballstemmer``, which refuses what PyStemmer does: lone surrogates."""

    def __init__(self, stemmer: WordStemmer) -> None:
        self._stemmer = stemmer

    def stemWord(self, word: str) -> str:
        word.encode("utf-8")  # raises UnicodeEncodeError
        return self._stemmer.stemWord(word)

    def stemWords(self, words: list[str]) -> list[str]:
        "".join(words).encode("utf-8")
        return self._stemmer.stemWords(words)


def algorithms() -> list[str]:
    """Return the names of the algorithms that are installed."""
    names: list[str] = _library().algorithms()
    return names


def library_name() -> str:
    """Return the name of the distribution that stems here."""
    return "PyStemmer" if _library().__name__ == "Stemmer" else "snowballstemmer"


def snowball_version() -> str:
    """Return the version of that distribution, which is Snowball's."""
    library = _library()
    if library.__name__ == "Stemmer":
        version: str = library.version()
        return version
    from importlib.metadata import version as version_of  # half a millisecond, which few need

    return version_of("snowballstemmer")


def _library() -> ModuleType:
    try:
        return importlib.import_module("Stemmer")
    except ImportError as error:
        try:
            return importlib.import_module("snowballstemmer")
        except ImportError:
            raise MissingDependencyError(
                f"stemming needs PyStemmer, which cannot be imported here ({error}): "
                "pip install PyStemmer, or snowballstemmer, which is pure Python; "
                "Analyzer(stemmer=None) does without"
            ) from error
