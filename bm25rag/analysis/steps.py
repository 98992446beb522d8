"""How a text becomes terms, word by word: what becomes of each, and why some are dropped."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection
from itertools import groupby
from typing import NamedTuple

from bm25rag.analysis.analyzer import Analyzer

STOP_WORD, QUESTION_STOP_WORD = "a stop word", "a stop word of questions"
QUESTION_GRAMMAR = "grammar, which questions are without"


class Step(NamedTuple):
    """What becomes of a word of a text."""

    word: str  # folded
    term: str | None  # ``None`` if it is dropped
    reason: str | None = None  # why it is dropped
    joined: bool = False  # whether it is what is also one word, as "email" is in "e-mail"
    times: int = 1  # as how many it counts in a question


def analysis_steps(analyzer: Analyzer, text: str, question: bool = False) -> list[Step]:
    """Return what becomes of the words of a text, by the first analysis, in order."""
    words = analyzer._find_words(text, question=question)
    if analyzer.tokenizer is not None:
        return [Step(word, word) for word in words]
    splitter = analyzer.splitter
    joined = splitter.joined_words(text)
    if question and splitter.joins_words:
        joined = splitter.find_otherwise(text, analyzer.unwanted)
    beside = _tokens(analyzer, joined)
    kept = Counter(analyzer.query_terms(text)) if question else None
    tokens = _tokens(analyzer, words, question)
    # A text of nothing but stop words keeps them.
    stops = not all(token.is_stopped for token in (tokens if question else tokens + beside))
    is_cut = splitter.cut_question is not None
    lost = QUESTION_GRAMMAR if is_cut else QUESTION_STOP_WORD
    steps = [_step(token, kept, stops, lost) for token in tokens]
    if kept is not None:  # words beside runs without spaces count several times
        there = Counter(step.term for step in steps)
        steps = [
            step if step.term is None else step._replace(times=kept[step.term] // there[step.term])
            for step in steps
        ]
    return steps + [_step(token, None, stops or question, joined=True) for token in beside]


class _Token(NamedTuple):
    word: str
    term: str
    is_stopped: bool


def _tokens(analyzer: Analyzer, words: list[str], question: bool = False) -> list[_Token]:
    tokens, _ = analyzer.splitter.split_words(words, question=question)
    stopped = map(analyzer.stopwords.__contains__, tokens)
    return list(map(_Token, tokens, analyzer.stems(tokens), stopped))


def _step(
    token: _Token,
    kept: Collection[str] | None,
    stops: bool,
    lost: str = QUESTION_STOP_WORD,
    joined: bool = False,
) -> Step:
    if stops and token.is_stopped:
        return Step(token.word, None, STOP_WORD, joined)
    # A question loses more, unless nothing else is left.
    if kept is not None and token.term not in kept:
        return Step(token.word, None, lost, joined)
    return Step(token.word, token.term, None, joined)


def not_words(analyzer: Analyzer, text: str) -> list[str]:
    """Return the runs of letters, digits and other characters in a text that are no words."""
    runs = ["".join(run) for inside, run in groupby(text, _is_inside) if inside]
    return [run for run in dict.fromkeys(runs) if not analyzer.words(run)]


def why_no_word(analyzer: Analyzer) -> str:
    """Say why such a run is no word."""
    if analyzer.token_pattern == "auto":
        return "not a word: it has no letter or digit"
    return f"too short or otherwise not a word for the token pattern {analyzer.token_pattern!r}"


def _is_inside(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LMN" or character in "_\u200c\u200d"
