"""Documents ranked by their best passage, and the price of a date that says nothing.

``python -m benchmarks.passages`` measures both in a few minutes, and writes the tables of
``docs/searching.md``. A passage has 100 or 50 words, one behind another without overlap; where no
spaces stand between words, two characters count as one. "in fives" joins five documents in a row
into one, which is relevant if one of them is: longer documents than the collections have.

No collection has dates. So documents get random ones of ten years, five times: what nDCG loses then
is what a decay costs where age has nothing to do with relevance.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from benchmarks.corpora import COLLECTIONS
from benchmarks.quality import LANGUAGES
from benchmarks.report import put_into, table
from bm25rag import Analyzer, BM25Index, Decay
from bm25rag.evaluation import Evaluation, compare, evaluate, load_beir, run_of

K, MEASURE = 10, "nDCG@10"
SIZES = (100, 50)
TOGETHER = 5
UNSPACED = ("chinese", "japanese", "thai")
DATED, FLOORS, DATINGS, YEARS = ("scifact", "cranfield"), (1.0, 0.9, 0.7, 0.5, 0.1), 5, 10
NOW = "2025-01-01"
PAGE = Path(__file__).parents[1] / "docs" / "searching.md"


class Judged(NamedTuple):
    """Documents by id, questions, and grades."""

    language: str
    texts: dict[str, str]
    questions: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]

    def ranked(self, index: BM25Index, decay: Decay | None = None) -> Evaluation:
        """Rank the documents by the best of their passages, and judge that."""

        def search(query: str, k: int) -> list[str]:
            hits = index.search(query, k, group="document", decay=decay)
            return [hit.metadata["document"] for hit in hits]

        return evaluate(run_of(search, self.questions, K), self.grades, [MEASURE])

    def indexed(self, size: int | None) -> BM25Index:
        """Index passages of so many words, or whole documents."""
        pairs = [
            (passage, id)
            for id, text in self.texts.items()
            for passage in ([text] if size is None else self.cut(text, size))
        ]
        metadata = [{"document": id} for _, id in pairs]
        texts = [text for text, _ in pairs]
        return BM25Index.from_texts(texts, metadata=metadata, analyzer=Analyzer(self.language))

    def cut(self, text: str, size: int) -> list[str]:
        """Cut a text into passages."""
        if self.language in UNSPACED:
            return [text[at : at + 2 * size] for at in range(0, len(text), 2 * size)] or [text]
        words = text.split()
        parts = [words[at : at + size] for at in range(0, len(words), size)]
        return [" ".join(part) for part in parts] or [text]

    def in_fives(self) -> Judged:
        """Return the same with five documents in a row as one."""
        ids = [*self.texts]
        owner = {id: ids[place - place % TOGETHER] for place, id in enumerate(ids)}
        texts: dict[str, list[str]] = {}
        for id, text in self.texts.items():
            texts.setdefault(owner[id], []).append(text)
        grades: dict[str, dict[str, int]] = {}
        for name, own in self.grades.items():
            each = grades.setdefault(name, {})
            for id, grade in own.items():
                if id in owner:  # Cranfield judges one document that it does not have
                    each[owner[id]] = max(grade, each.get(owner[id], 0))
        joined = {id: "\n".join(own) for id, own in texts.items()}
        return self._replace(texts=joined, grades=grades)


def load(name: str) -> Judged:
    """Load a collection."""
    collection = load_beir(COLLECTIONS / name)
    texts = {document.id: document.text or "" for document in collection.read()}
    return Judged(LANGUAGES[name], texts, collection.queries, collection.qrels)


def passages(name: str, judged: Judged) -> list[str]:
    """Return a row: whole documents, and what passages of each size gain."""
    length = median(len(judged.cut(text, 1)) for text in judged.texts.values())
    before = judged.ranked(judged.indexed(None))
    cells = [name, f"{length:,.0f}", f"{100 * before.mean[MEASURE]:.2f}"]
    for size in SIZES:
        found = compare(judged.ranked(judged.indexed(size)), before, MEASURE)
        gained = sum(change.difference > 0 for change in found.changes)
        lost = len(found.changes) - gained
        p_value = "p < 0.001" if (found.p_value or 0) < 0.001 else f"p = {found.p_value:.3f}"
        cells += [f"{100 * found.difference:+.2f} ({p_value})", f"{gained}, {lost}"]
    print(*cells, flush=True)
    return cells


def decays(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each floor, with the mean and the range of nDCG over random dates."""
    columns: list[list[str]] = []
    for name in names:
        judged, draw = load(name), random.Random(0)
        index = judged.indexed(None)
        ids, documents = index.ids(), [*judged.texts]
        before = judged.ranked(index).mean[MEASURE]
        found: dict[float, list[float]] = {floor: [] for floor in FLOORS}
        for _ in range(DATINGS):
            ages = [draw.randrange(365 * YEARS) for _ in ids]
            years = [2024 - age // 365 for age in ages]
            dates = [f"{y}-{age % 365 // 31 + 1:02}-01" for y, age in zip(years, ages, strict=True)]
            dated = zip(documents, dates, strict=True)
            index.update_metadata(ids, [{"document": id, "date": date} for id, date in dated])
            for floor, values in found.items():
                decay = Decay("date", half_life="1y", floor=floor, now=NOW)
                values.append(judged.ranked(index, decay).mean[MEASURE])
        assert found[1.0] == [before] * DATINGS  # nothing is lowered
        columns.append(
            [
                f"{100 * fmean(own):.1f} ({100 * min(own):.1f} to {100 * max(own):.1f})"
                for own in found.values()
            ]
        )
    for floor, *cells in zip(FLOORS, *columns, strict=True):
        yield [f"{floor:g}", *cells]


def rows(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of passages: each collection, and again in fives."""
    for name in names:
        judged = load(name)
        yield passages(name, judged)
        yield passages(f"{name}, in fives", judged.in_fives())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="collections; print, not write")
    names = parser.parse_args().names
    heads = ["", "words", "whole"]
    for size in SIZES:
        heads += [f"{size} words", "questions better, worse"]
    parts = [table(heads, rows(names or [*LANGUAGES]))]
    if not names:
        parts.append(table(["floor", *DATED], decays(DATED)))
    print(*parts, sep="\n\n", flush=True)
    if not names:
        put_into(PAGE, "passages", parts[:1])
        put_into(PAGE, "decay", parts[1:])


if __name__ == "__main__":
    main()
