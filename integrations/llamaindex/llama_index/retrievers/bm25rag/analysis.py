"""The index of a retriever or a store: an existing one, or a new one of the given analysis."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import Stemmer

from bm25rag import Analyzer, BM25Index
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
Analysis = tuple[str | None, StemmerLike | None, bool, str, Tokenizer | None]


class Stemming:
    """A tokenizer that splits by an analyzer and stems with the user's object."""

    def __init__(self, analyzer: Analyzer, stemmer: WordStemmer | Callable[[str], str]) -> None:
        self.analyzer = analyzer
        self.stemmer = stemmer
        self._stem = _stem_function(stemmer)
        self._lock = threading.Lock()  # PyStemmer's objects must not be used from two threads

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a text."""
        words = self.analyzer.terms(text)
        with self._lock:
            return list(self._stem(words))

    def __reduce__(self) -> tuple[type[Stemming], tuple[Any, ...]]:
        return Stemming, (self.analyzer, self.stemmer)


def choose_index(
    existing: BM25Index | None, analysis: Analysis, parameters: dict[str, Any]
) -> BM25Index:
    """Return the existing index, or an empty one of the analysis and the given parameters."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if existing is None:
        return BM25Index(make_analyzer(*analysis), **given)
    if not isinstance(existing, BM25Index):
        got = f"{type(existing).__module__}.{type(existing).__qualname__}"
        raise TypeError(f"existing_bm25 must be a bm25rag.BM25Index or None, got {got}")
    if analysis != NO_ANALYSIS:
        raise ValueError(
            "existing_bm25 has an analyzer; leave language, stemmer, skip_stemming, "
            "token_pattern and tokenizer out"
        )
    if given:
        raise ValueError(
            f"existing_bm25 has parameters; leave {', '.join(given)} out, or give "
            "BM25Index(k1=..., b=..., variant=...)"
        )
    return existing


def make_analyzer(
    language: str | None,
    stemmer: StemmerLike | None,
    skip_stemming: bool,
    token_pattern: str,
    tokenizer: Tokenizer | None,
) -> Analyzer:
    """Return the analyzer that the arguments of ``BM25Retriever`` describe."""
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
    algorithm = _algorithm_of(_stem_function(stemmer))
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
    for probe in (words[::100], words):  # a few words tell most of them apart
        stems = list(stem(probe))
        candidates = [
            name for name in candidates if Stemmer.Stemmer(name, 0).stemWords(probe) == stems
        ]
        if not candidates:
            return None
    return candidates[0]


@cache
def _probe_words() -> list[str]:
    """Return words of many languages; no two algorithms stem all of them alike."""
    return sorted(set().union(*map(load_stopwords, STOPWORD_LISTS)))
