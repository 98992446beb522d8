"""Translates the analysis parameters that LlamaIndex's users know into the core's Analyzer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import Stemmer

from bm25rag import Analyzer
from bm25rag.adapters import STOPWORD_LISTS, Tokenizer, load_stopwords

DEFAULT_LANGUAGE = "en"
DEFAULT_PATTERN = "auto"
# The defaults of language, stemmer, skip_stemming, token_pattern and tokenizer.
NO_ANALYSIS = (DEFAULT_LANGUAGE, None, False, DEFAULT_PATTERN, None)


class WordStemmer(Protocol):
    """What ``PyStemmer`` and similar packages provide."""

    def stemWords(self, words: list[str]) -> list[str]:  # noqa: N802 - the name is PyStemmer's
        """Return the stem of each word."""
        ...


StemmerLike = WordStemmer | Callable[[str], str] | str


class Stemming:
    """A tokenizer that stems with the user's object, one thread at a time.

    Parameters
    ----------
    analyzer
        Splits texts into words; it has no stemmer.
    stemmer
        Stems the words.
    """

    def __init__(self, analyzer: Analyzer, stemmer: WordStemmer | Callable[[str], str]) -> None:
        self.analyzer = analyzer
        self.stemmer = stemmer
        self._prepare()

    def _prepare(self) -> None:
        self._stem = _stem_function(self.stemmer)
        self._lock = threading.Lock()  # PyStemmer's objects must not be used from two threads

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text."""
        words = self.analyzer.terms(text)
        with self._lock:
            return list(self._stem(words))

    def __getstate__(self) -> tuple[Analyzer, WordStemmer | Callable[[str], str]]:
        return self.analyzer, self.stemmer

    def __setstate__(self, state: tuple[Analyzer, WordStemmer | Callable[[str], str]]) -> None:
        self.analyzer, self.stemmer = state
        self._prepare()


def make_analyzer(
    language: str | None,
    stemmer: StemmerLike | None,
    skip_stemming: bool,
    token_pattern: str,
    tokenizer: Tokenizer | None,
) -> Analyzer:
    """Return the analyzer that the arguments describe.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a language or a stemmer is unknown, or ``tokenizer`` is given with what it replaces.
    """
    if tokenizer is not None:
        if stemmer is not None or skip_stemming or token_pattern != DEFAULT_PATTERN:
            raise ValueError("tokenizer replaces stemmer, skip_stemming and token_pattern")
        return Analyzer(tokenizer=tokenizer)
    if isinstance(language, (list, tuple, set, frozenset)):  # bm25s takes lists of stop words
        raise TypeError(
            f"language must be a name, an ISO 639 code or None, got {type(language).__name__}; "
            "for your own stop words, give existing_bm25=BM25Index(Analyzer(stopwords=words))"
        )
    # The user's pattern applies to Chinese, Japanese and Korean too.
    cjk: bool | str = "auto" if token_pattern == DEFAULT_PATTERN else False

    def analyzer(algorithm: str | None) -> Analyzer:
        return Analyzer(language, token_pattern=token_pattern, stemmer=algorithm, cjk=cjk)

    if skip_stemming:
        return analyzer(None)
    if stemmer is None:
        try:
            return analyzer("auto")
        except ValueError as error:
            error.add_note("BM25Retriever(skip_stemming=True) uses no stemmer")
            raise
    if isinstance(stemmer, str):
        return analyzer(stemmer)
    stem = _stem_function(stemmer)
    algorithm = _algorithm_of(stem)
    if algorithm is not None:
        return analyzer(algorithm)
    return Analyzer(tokenizer=Stemming(analyzer(None), stemmer))


def _stem_function(stemmer: Any) -> Callable[[list[str]], Sequence[str]]:
    if hasattr(stemmer, "stemWords"):
        stem: Callable[[list[str]], Sequence[str]] = stemmer.stemWords
        return stem
    if callable(stemmer):
        return lambda words: [stemmer(word) for word in words]
    raise TypeError(
        "stemmer must be a Stemmer.Stemmer, the name of an algorithm or a callable from word "
        f"to stem, got {type(stemmer).__name__}"
    )


def _algorithm_of(stem: Callable[[list[str]], Sequence[str]]) -> str | None:
    """Return the algorithm that gives the same stems: a stemmer does not know its own name."""
    candidates: list[str] = Stemmer.algorithms()
    words = _probe_words()
    for probe in (list(words[::100]), list(words)):  # a few words tell most of them apart
        stems = list(stem(probe))
        candidates = [
            name for name in candidates if Stemmer.Stemmer(name, 0).stemWords(probe) == stems
        ]
        if not candidates:
            return None
    return candidates[0]


@cache
def _probe_words() -> tuple[str, ...]:
    """Return words of many languages; no two algorithms stem all of them alike."""
    words = set().union(*map(load_stopwords, STOPWORD_LISTS))
    return tuple(sorted(words))
