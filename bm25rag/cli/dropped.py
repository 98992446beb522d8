"""The words of a query that do not count, and why."""

from __future__ import annotations

import unicodedata
from itertools import groupby

from bm25rag import Analyzer, Explanation


def dropped_words(query: str, analyzer: Analyzer, explanation: Explanation) -> dict[str, str]:
    """Return the words of a query that cannot add to any score, in its order, with reasons.

    `explanation` is that of any document.
    """
    parts = [part for part in explanation.terms if not part.analysis]
    unknown = {part.term for part in parts if not part.document_frequency}
    dropped = {run: _not_taken(analyzer) for run in _runs(query) if not analyzer.words(run)}
    words = analyzer.find_words(query, question=True)
    tokens, _ = analyzer.splitter.split_words(words, question=True)
    terms, _, stopped = analyzer.analyze_words(words, question=True)
    asked = set(analyzer.query_terms(query))
    for place, (token, term) in enumerate(zip(tokens, terms, strict=True)):
        if place in stopped and term not in asked:
            dropped[token] = "a stop word"
        elif term not in asked:
            dropped[token] = "a stop word of questions"
        elif term in unknown:
            stemmed = f" (as {term!r})" if term != token else ""
            dropped[token] = f"in no document of the index{stemmed}"
    return dropped


def _not_taken(analyzer: Analyzer) -> str:
    if analyzer.token_pattern == "auto":
        return "not a word: it has no letter or digit"
    return f"too short or otherwise not a word for the token pattern {analyzer.token_pattern!r}"


def _runs(text: str) -> list[str]:
    """Split a text into runs of letters, digits and other characters within words."""
    return ["".join(run) for inside, run in groupby(text, _is_inside) if inside]


def _is_inside(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LMN" or character in "_\u200c\u200d"
