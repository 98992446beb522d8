"""What expanding and correcting queries does to judged collections: the tables of docs/queries.md.

Run as ``python -m benchmarks.rewriting [COLLECTION ...]``. Figures are NDCG@10 times 100. A
typo is one edit (a letter inserted, deleted, replaced or swapped with the next) at a random
place of the longest word of each question; figures with typos are means of three draws.
"""

from __future__ import annotations

import csv
import json
import math
import random
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.corpora import COLLECTIONS
from bm25rag import Analyzer, BM25Index
from bm25rag.analysis.languages import find_language

JUDGED = ("scifact", "cranfield", "xquad-en", "xquad-de", "xquad-es", "xquad-ru")
DRAWS = (7, 8, 9)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Grades = dict[str, dict[str, int]]


def load(name: str) -> tuple[BM25Index, dict[str, str], Grades]:
    """Index a collection in BEIR's layout; return its judged questions, too."""
    folder = COLLECTIONS / name
    documents = _records(folder / "corpus.jsonl")
    language = name.partition("-")[2] or "english"
    index = BM25Index.from_texts(
        [f"{one.get('title') or ''} {one['text']}".strip() for one in documents],
        [one["_id"] for one in documents],
        analyzer=Analyzer(find_language(language).name),
    )
    grades: Grades = {}
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    questions = {one["_id"]: one["text"] for one in _records(folder / "queries.jsonl")}
    return index, {key: questions[key] for key in grades}, grades


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ndcg(index: BM25Index, queries: Mapping[str, Any], grades: Grades, correct: bool) -> float:
    """Return the mean NDCG@10 times 100."""
    found = index.search_batch(queries.values(), 10, correct=correct).ids()
    each = []
    for key, ids in zip(queries, found, strict=True):
        ideal = sorted(grades[key].values(), reverse=True)[:10]
        gained = [grades[key].get(id, 0) for id in ids]
        each.append(_discounted(gained) / (_discounted(ideal) or 1.0))
    return 100 * mean(each)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


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


def main() -> None:
    """Print both tables."""
    print("| collection | as asked | expanded | corrected | with typos | typos corrected |")
    print("|---|---|---|---|---|---|")
    for name in sys.argv[1:] or JUDGED:
        index, questions, grades = load(name)
        expanded = {key: index.expand(text) for key, text in questions.items()}
        draws = [random.Random(seed) for seed in DRAWS]
        wrong = [{key: misspell(text, one) for key, text in questions.items()} for one in draws]
        figures = (
            ndcg(index, questions, grades, False),
            ndcg(index, expanded, grades, False),
            ndcg(index, questions, grades, True),
            mean(ndcg(index, one, grades, False) for one in wrong),
            mean(ndcg(index, one, grades, True) for one in wrong),
        )
        print(f"| {name} | {' | '.join(f'{figure:.1f}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main()
