"""Documents and questions with the statistics of real text, as many as wanted.

Terms follow Zipf and Mandelbrot's law. A document draws some of its terms from its topic's and
repeats some that it has already (bursts), and lengths are log-normal. A question takes its terms
from one document. The constants were fitted to enwiki-150k; ``statistics`` says how near they come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.corpora import WORK, Queries, of_lengths, write_queries

_CHUNK = 20_000  # documents drawn at a time
_QUERIES = 600
Ints = npt.NDArray[np.int64]


class Recipe(NamedTuple):
    """What a corpus is drawn from.

    Parameters
    ----------
    name
        Of its folder.
    documents
        How many.
    median, sigma
        Of the log-normal lengths.
    terms, offset, head, bend, tail
        Of Zipf and Mandelbrot's law, with an exponent for the rare terms of its own: a term's
        weight is (rank + offset) ** -head * (1 + rank / bend) ** (head - tail).
    topics, topic_terms, topical
        How many topics there are, the terms of each, and the share of tokens drawn from them.
    repeated
        The share of tokens that repeat one of the same document.
    common
        A term of a question is drawn in proportion to weight ** common.
    """

    name: str
    documents: int
    median: float = 68.0
    sigma: float = 0.17
    terms: int = 3_000_000
    offset: float = 1.87
    head: float = 0.54
    bend: float = 2350.0
    tail: float = 1.93
    topics: int = 3000
    topic_terms: int = 300
    topical: float = 0.25
    repeated: float = 0.18
    common: float = 0.13

    @property
    def folder(self) -> Path:
        """Where the prepared terms are."""
        return WORK / self.name

    def prepare(self) -> None:
        """Draw documents and questions, unless that was done before."""
        if (self.folder / "queries.json").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        chance = np.random.default_rng(4)
        names = np.array([f"t{number}" for number in range(self.terms)], object)
        questions: Queries = []
        with (self.folder / "terms.txt").open("w", encoding="ascii") as file:
            for tokens, lengths in self._chunks(chance):
                documents = np.split(names[tokens], np.cumsum(lengths)[:-1])
                file.writelines(" ".join(document) + "\n" for document in documents)
                if not questions:  # of the first documents, which every smaller corpus has too
                    questions = self._questions(chance, tokens, lengths)
        write_queries(self.folder, {"questions": questions, **of_lengths(questions)})

    def _weights(self) -> npt.NDArray[np.float64]:
        ranks = np.arange(1.0, self.terms + 1)
        weights = (ranks + self.offset) ** -self.head
        weights *= (1 + ranks / self.bend) ** (self.head - self.tail)
        weights /= weights.sum()
        return weights

    def _chunks(self, chance: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
        ends = np.cumsum(self._weights())
        topics = np.searchsorted(ends, chance.random((self.topics, self.topic_terms)))
        for start in range(0, self.documents, _CHUNK):
            count = min(_CHUNK, self.documents - start)
            drawn = chance.lognormal(np.log(self.median), self.sigma, count)
            lengths = np.maximum(drawn.round().astype(np.int64), 1)
            of = np.repeat(np.arange(count), lengths)
            tokens = np.searchsorted(ends, chance.random(of.size))
            topical = chance.random(of.size) < self.topical
            about = chance.integers(0, self.topics, count)[of[topical]]
            tokens[topical] = topics[about, chance.integers(0, self.topic_terms, about.size)]
            yield self._repeat(chance, tokens, lengths), lengths

    def _repeat(self, chance: np.random.Generator, tokens: Ints, lengths: Ints) -> Ints:
        """Let some tokens be copies of one before them in their document."""
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        place = np.arange(tokens.size) - first
        copies = np.flatnonzero((chance.random(tokens.size) < self.repeated) & (place > 0))
        sources = first[copies] + (chance.random(copies.size) * place[copies]).astype(np.int64)
        tokens[copies] = tokens[sources]
        return tokens

    def _questions(self, chance: np.random.Generator, tokens: Ints, lengths: Ints) -> Queries:
        weights = self._weights() ** self.common
        ends = np.cumsum(lengths)
        sizes = 3 + chance.poisson(3.3, _QUERIES)
        asked = []
        for document, size in zip(chance.integers(0, len(lengths), _QUERIES), sizes, strict=True):
            own = np.unique(tokens[ends[document] - lengths[document] : ends[document]])
            share = weights[own] / weights[own].sum()
            drawn = chance.choice(own, min(size, own.size), replace=False, p=share)
            asked.append([f"t{number}" for number in drawn])
        return asked


PASSAGES = Recipe("synthetic-1m", 1_000_000)
QUICK = Recipe("synthetic-100k", 100_000)
UNLIKE = Recipe("synthetic-unlike", 60_000, median=300.0, sigma=1.0)


def statistics(folder: Path, queries: Queries, documents: int) -> dict[str, float]:
    """Count what the speed of a search depends on."""
    tokens: Counter[str] = Counter()
    holding: Counter[str] = Counter()
    pairs: set[tuple[int, int]] = set()
    lengths = []
    with (folder / "terms.txt").open(encoding="ascii") as file:
        for line in islice(file, documents):
            counted = Counter(line.split())
            size = counted.total()
            tokens.update(counted)
            holding.update(counted.keys())
            pairs.update((count, size) for count in counted.values())
            lengths.append(size)
    common = np.sort(np.fromiter(tokens.values(), np.int64))[::-1]
    asked = [[holding[term] for term in set(query)] for query in queries]
    walked = float(np.mean([sum(one) for one in asked]))
    typical = float(np.median([count for one in asked for count in one]))
    return {
        "tokens a document": float(np.mean(lengths)),
        "spread of log length": float(np.std(np.log(np.maximum(lengths, 1)))),
        "postings a document": holding.total() / len(lengths),
        "distinct terms": float(len(tokens)),
        "impact codes": float(len(pairs)),
        **{f"share of the top {n:,} terms": _share(common, n) for n in (10, 100, 1000, 10_000)},
        "terms a query": float(np.mean([len(one) for one in asked])),
        "postings a query, per document": walked / len(lengths),
        "median df of a query's terms, per document": typical / len(lengths),
    }


def _share(common: Ints, count: int) -> float:
    return float(common[:count].sum() / common.sum())
