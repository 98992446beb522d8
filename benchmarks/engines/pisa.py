"""PISA through pyterrier_pisa: the best of its algorithms that are exact."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from pyterrier_pisa import PisaIndex, _pisathon

from benchmarks.corpora import Queries
from benchmarks.engines import K1, B
from benchmarks.engines.base import Engine, Found, padded

_ALGORITHMS = ("block_max_maxscore", "maxscore", "block_max_wand", "wand")
_TRIED = 60  # queries


class Pisa(Engine):
    """An index on disk, compressed by SIMD-BP128, mapped into memory.

    Its idf is robertson's, floored. The function beneath its data frames is called directly,
    as these would cost more than many a search.
    """

    variant = "robertson"
    scale = 1 / (K1 + 1)

    def build(self, lines: Iterable[str]) -> None:
        folder = self.folder / "pisa"
        shutil.rmtree(folder, ignore_errors=True)
        made = PisaIndex(str(folder), text_field="text", stemmer="none", stops="none", threads=1)
        made.index({"docno": str(row), "text": line} for row, line in enumerate(lines))
        self._context = made.bm25(k1=K1, b=B)._ctxt
        self._fastest: dict[tuple[int, int], str] = {}

    def prepare(self, queries: Queries) -> list[dict[str, float]]:
        self._fastest = {}
        return [{term: float(n) for term, n in Counter(terms).items()} for terms in queries]

    def answer(self, queries: list[dict[str, float]], k: int, threads: int) -> Any:
        return self._retrieve(self._algorithm(k, threads), queries, k, threads)

    def _algorithm(self, k: int, threads: int) -> str:
        """Try all once, when a k is new: in the warm-up."""
        if (k, threads) not in self._fastest:
            times = {}
            for name in _ALGORITHMS * 2:
                start = perf_counter()
                self._retrieve(name, self.ready[:_TRIED], k, threads)
                times[name] = perf_counter() - start
            self._fastest[k, threads] = min(times, key=lambda name: times[name])
        return self._fastest[k, threads]

    def _retrieve(self, name: str, queries: list[dict[str, float]], k: int, threads: int) -> Any:
        size = len(queries) * k
        numbers, ranks = np.empty(size, np.int32), np.empty(size, np.int32)
        names, scores = np.empty(size, object), np.empty(size, np.float32)
        count = _pisathon.retrieve(
            self._context,
            name,
            list(enumerate(queries)),
            k=k,
            threads=threads,
            query_weighted=1,  # or a repeated term would count once
            pretokenised=True,
            result_qidxs=numbers,
            result_docnos=names,
            result_ranks=ranks,
            result_scores=scores,
        )
        return numbers[:count], names[:count], scores[:count]

    def results(self, queries: list[dict[str, float]], k: int) -> Found:
        numbers, names, scores = self.answer(queries, k, 1)
        ends = np.searchsorted(numbers, np.arange(len(queries) + 1))
        return padded(
            [
                (names[start:end].astype(np.int64).tolist(), scores[start:end].tolist())
                for start, end in pairwise(ends)
            ],
            k,
        )
