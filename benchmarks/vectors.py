"""Sparse vectors of a learned encoder's shape: built and searched, beside SciPy and NumPy.

``python -m benchmarks.vectors`` measures and writes the table of ``docs/sparse-vectors.md``. The
vectors are random: terms by a power law, weights by a gamma distribution. SciPy multiplies the
vectors of all passages by that of a question; NumPy adds up the postings of its terms, as a careful
user would write it. Both then look for the ten largest sums, in float32.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.report import put_into, table
from bm25rag import BM25Index

TERMS, ENTRIES, QUESTION_ENTRIES = 30_522, 120, 30
K = 10
PAGE = Path(__file__).parents[1] / "docs" / "sparse-vectors.md"


def draw(rng: np.random.Generator, count: int, entries: int) -> Any:
    """Return random vectors, (count, TERMS)."""
    likely = 1 / np.arange(1, TERMS + 1) ** 0.7
    terms = np.searchsorted(np.cumsum(likely / likely.sum()), rng.random(count * entries))
    weights = rng.gamma(2, 0.4, count * entries).astype(np.float32)
    starts = np.arange(0, len(terms) + 1, entries)
    drawn = sparse.csr_array((weights, terms.clip(0, TERMS - 1), starts), (count, TERMS))
    drawn.sum_duplicates()
    return drawn


def best(sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    top = np.argpartition(-sums, K)[:K]
    return top[np.argsort(-sums[top], kind="stable")]


def by_scipy(passages: Any) -> Callable[[Any], object]:
    return lambda question: best((passages @ question.T).toarray().ravel())


def by_numpy(passages: Any) -> Callable[[Any], object]:
    postings = passages.tocsc()

    def search(question: Any) -> object:
        sums = np.zeros(passages.shape[0], np.float32)
        for term, weight in zip(question.indices, question.data, strict=True):
            span = slice(postings.indptr[term], postings.indptr[term + 1])
            sums[postings.indices[span]] += weight * postings.data[span]
        return best(sums)

    return search


def milliseconds(search: Callable[[Any], object], questions: list[Any], rounds: int) -> float:
    """Return the time of one question: the mean, in the best round."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for question in questions:
            search(question)
        times.append((time.perf_counter() - start) / len(questions) * 1000)
    return min(times)


def rows(count: int, number: int = 300, rounds: int = 5) -> Iterator[list[str]]:
    rng = np.random.default_rng(0)
    vectors, questions = draw(rng, count, ENTRIES), draw(rng, number, QUESTION_ENTRIES)
    each = [questions[[row]] for row in range(number)]
    asked = [dict(zip(one.indices.tolist(), one.data.tolist(), strict=True)) for one in each]
    rounded = vectors.copy()
    rounded.data = rounded.data.astype(np.float16).astype(np.float32)
    for name, passages in (("16 bits", rounded), ("32 bits", vectors)):
        with tempfile.TemporaryDirectory() as folder:
            index = BM25Index()
            start = time.perf_counter()
            index.add([[]] * count, vectors=passages)
            built = time.perf_counter() - start
            index.save(folder)
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            searched = BM25Index.open(folder).vectors
            took = milliseconds(partial(searched.search, k=K), asked, rounds)
            seconds, mebibytes = f"{built:.1f} s", f"{size / (1 << 20):.0f} MiB"
            yield [f"bm25rag, weights of {name}", seconds, mebibytes, f"{took:.2f} ms"]
    numpy = milliseconds(by_numpy(vectors), each, rounds)
    yield ["NumPy, postings", "", "", f"{numpy:.2f} ms"]
    scipy = milliseconds(by_scipy(vectors), each[:20], rounds)
    yield ["SciPy, product", "", "", f"{scipy:.2f} ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, metavar="N", help="so many vectors; print, not write")
    only = parser.parse_args().only
    heads = ["", "add", "folder", f"a question, k={K}"]
    lines = []
    for cells in rows(only or 100_000):
        lines.append(cells)
        print(*cells, sep=" | ", flush=True)
    if only is None:
        put_into(PAGE, "vectors", [table(heads, lines)])


if __name__ == "__main__":
    main()
