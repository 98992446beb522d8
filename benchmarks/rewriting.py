"""What expanding and correcting queries does to judged collections: the tables of docs/queries.md.

Run as ``python -m benchmarks.rewriting [COLLECTION ...]``. Figures are NDCG@10 and R@100, times
100. A typo is one edit (a letter inserted, deleted, replaced or swapped with the next) at a random
place of the longest word of each question; figures with typos are means of three draws.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import quality
from benchmarks.corpora import COLLECTIONS
from bm25rag import Analyzer, BM25Index
from bm25rag.evaluation import evaluate

JUDGED = ("scifact", "cranfield", "xquad-en", "xquad-de", "xquad-es", "xquad-ru")
OTHERS = ("xquad-ar", "xquad-zh", "xquad-th-half", "cmrc2018-zh", "jaquad-ja-half")
ANSERINI: dict[str, Any] = {"fb_docs": 10, "fb_terms": 10, "original_query_weight": 0.5}
MEASURES = ("nDCG@10", "R@100")
DRAWS = (7, 8, 9)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Grades = dict[str, dict[str, int]]


def load(name: str, folder: Path = COLLECTIONS) -> tuple[BM25Index, dict[str, str], Grades]:
    """Index a collection in BEIR's layout; return its judged questions, too."""
    read = quality.load(folder / name, quality.LANGUAGES[name])
    index = BM25Index.from_texts(read.texts, read.ids, analyzer=Analyzer(read.language))
    return index, read.questions, read.grades


def measured(
    index: BM25Index, queries: Mapping[str, Any], grades: Grades, correct: bool = False
) -> list[float]:
    """Return the means of the measures, times 100."""
    found = index.search_batch(queries.values(), 100, correct=correct).ids()
    run = {
        key: {id: -float(rank) for rank, id in enumerate(ids)}
        for key, ids in zip(queries, found, strict=True)
    }
    return [100 * one for one in evaluate(run, grades, MEASURES).mean.values()]


def misspell(question: str, draw: random.Random) -> str:
    """Make one edit in the longest word of a question."""
    word = max(re.findall(r"\w+", question), key=len, default="")
    if not word:
        return question
    place, letter = draw.randrange(len(word)), draw.choice(_LETTERS)
    head, tail = word[:place], word[place:]
    made = [letter + tail, tail[1:], letter + tail[1:]]
    if len(tail) > 1:
        made.append(tail[1] + tail[0] + tail[2:])
    return question.replace(word, head + draw.choice(made), 1)


def expansion(index: BM25Index, questions: dict[str, str], grades: Grades) -> Iterator[float]:
    """Yield NDCG@10 and R@100 of queries as asked, expanded, and expanded as Anserini does."""
    yield from measured(index, questions, grades)
    for settings in ({}, ANSERINI):
        expanded = {key: index.expand(text, **settings) for key, text in questions.items()}
        yield from measured(index, expanded, grades)


def correction(index: BM25Index, questions: dict[str, str], grades: Grades) -> Iterator[float]:
    """Yield NDCG@10 of queries as asked and with typos, as they are and corrected."""
    draws = [random.Random(seed) for seed in DRAWS]
    wrong = [{key: misspell(text, one) for key, text in questions.items()} for one in draws]
    for correct in (False, True):
        yield measured(index, questions, grades, correct)[0]
        yield mean(measured(index, one, grades, correct)[0] for one in wrong)


def main(asked: Sequence[str], folder: Path = COLLECTIONS) -> None:
    """Print both tables."""
    names = asked or [*JUDGED, *OTHERS]
    print("| | as asked | R@100 | expanded | R@100 | as Anserini expands | R@100 |")
    for name in names:
        _print(name, expansion(*load(name, folder)))
    print("| | as asked | with typos | corrected | typos corrected |")
    for name in asked or JUDGED:
        _print(name, correction(*load(name, folder)))


def _print(name: str, figures: Iterable[float]) -> None:
    print(f"| {name} | {' | '.join(f'{figure:.1f}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
