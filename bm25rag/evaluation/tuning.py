"""Finds the best variant, parameters and analyzer for a corpus, by cross-validation over queries.

A setting costs only its searches: an index with other parameters is a view of the same postings.
Only another analyzer needs a new index.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Float64
from bm25rag.common.checks import check_count
from bm25rag.evaluation.measures import Evaluation, Evaluator, Qrels
from bm25rag.evaluation.notation import parse_measure
from bm25rag.evaluation.runs import judged_queries, run_of
from bm25rag.evaluation.significance import Comparison, compare
from bm25rag.index import BM25Index
from bm25rag.scoring.variants import VARIANTS

K1 = (0.6, 0.9, 1.2, 1.5, 2.0, 3.0)
B = (0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0)
_DEPTH = 1000


class Settings(NamedTuple):
    """The settings that tuning chooses; ``fields`` are ``None`` if the index has none."""

    variant: str
    k1: float
    b: float
    analyzer: Analyzer
    fields: dict[str, float] | None = None

    def __str__(self) -> str:
        weights = "".join(f", {name}={weight:g}" for name, weight in (self.fields or {}).items())
        return f"{self.variant}, k1={self.k1:g}, b={self.b:g}{weights}, {self.analyzer!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values, ``fields`` only if the index has any."""
        values = self._asdict() | {"analyzer": self.analyzer.to_dict()}
        return {name: value for name, value in values.items() if value is not None}


class Tuned:
    """What the results of both tunings have in common."""

    points: tuple[tuple[Any, float], ...]
    best: Any

    @property
    def best_mean(self) -> float:
        """The mean of the best settings over the queries that were used to choose them."""
        return next(mean for settings, mean in self.points if settings == self.best)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        points = [settings.to_dict() | {"mean": mean} for settings, mean in self.points]
        fields = {name: _as_json(value) for name, value in vars(self).items() if name != "points"}
        return fields | {"best_mean": self.best_mean, "points": points}


def _as_json(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return [_as_json(one) for one in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Tuning(Tuned):
    """The result of tuning.

    Parameters
    ----------
    present, best
        The settings of the given index, and those with the highest mean over all queries; of equal
        ones, those tried first. The present settings come first.
    points
        All settings tried, with their means over all queries.
    held_out
        The gain on held-out queries: each fold's queries with the settings that are best on the
        other folds, compared with the present settings.
    chosen, notes
        The settings chosen for each fold, and which queries and judgements were left out.
    """

    measure: str
    present: Settings
    best: Settings
    points: tuple[tuple[Settings, float], ...]
    held_out: Comparison
    chosen: tuple[Settings, ...]
    notes: tuple[str, ...]

    def apply(self, index: BM25Index) -> BM25Index:
        """Return the index that was tuned with the best settings: a view, which ``save`` writes.

        If another analyzer is best, its documents are reindexed from their stored texts; a
        ``ValueError`` says that one is not stored.
        """
        return _under(_analyzed(index, self.best.analyzer), self.best)

    def __str__(self) -> str:
        return f"present: {self.present}\nbest:    {self.best}\n{describe_held_out(self.held_out)}"


def tune(
    index: BM25Index,
    queries: Mapping[str, str],
    qrels: Qrels,
    measure: str = "nDCG@10",
    *,
    variants: Sequence[str] = (*VARIANTS,),
    k1: Sequence[float] = K1,
    b: Sequence[float] = B,
    analyzers: Sequence[Analyzer] = (),
    fields: Sequence[Mapping[str, float]] = (),
    folds: int = 5,
    seed: int = 0,
    progress: bool = False,
) -> Tuning:
    """Try all combinations, and measure by cross-validation what the best one gains.

    Parameters
    ----------
    index
        The index; it does not change.
    queries, qrels
        Texts by query id, and grades by query id and document id.
    measure
        The measure to maximize, in the notation of ir-measures.
    variants, k1, b
        Values to try; a variant without k1 or b is tried without them.
    analyzers
        Analyzers to try besides that of the index; ``other_analyzers`` makes some. For each, the
        documents are reindexed in memory from their stored texts, unless only the weights of
        further analyses differ, as in ``index.analyzer.weighing([0.2])``.
    fields
        Weights of fields to try besides those of the index, as in ``BM25Index.tune``.
    folds, seed
        The number of parts for cross-validation, at most that of queries, and the seed for
        assigning queries to them.

    Raises
    ------
    MissingDependencyError
        If the extra ``eval`` is not installed.
    ValueError
        If fewer than two queries are judged, or a value is wrong.
    """
    parse_measure(measure)
    judged = judged_queries(index, queries, qrels)
    check_count("folds", folds, least=2)
    if len(judged.queries) < 2:
        raise ValueError("tuning needs at least two judged queries, one to choose by, one to test")
    present = Settings(index.variant, index.k1, index.b, index.analyzer, index.fields)
    weights = [index.tune(fields=one).fields for one in fields]
    grid = list(_grid(present, variants, k1, b, analyzers, [present.fields, *weights]))
    evaluator = Evaluator(judged.qrels, measure)
    evaluations = _evaluate_all(index, grid, judged.queries, evaluator, measure, progress)
    values = np.array([one.values(measure) for one in evaluations])
    chosen, held_out = cross_validate(values, folds, seed)
    return Tuning(
        measure,
        present,
        grid[_best_mean(values)],
        tuple((one, float(mean)) for one, mean in zip(grid, values.mean(axis=1), strict=True)),
        compare_held_out(evaluations[0], held_out, measure, seed),
        tuple(grid[point] for point in chosen),
        judged.notes,
    )


def other_analyzers(analyzer: Analyzer) -> list[Analyzer]:
    """Return the same analyzer without stop words, without stemmer, and without both.

    One with a tokenizer has no such variations, and is a ``ValueError``.
    """
    if analyzer.any_tokenizer is not None:
        raise ValueError("an analyzer with a tokenizer has no stop words or stemmer to leave out")
    settings = analyzer.to_dict()
    changes: list[dict[str, Any]] = [
        {"stopwords": []},
        {"stemmer": None},
        {"stopwords": [], "stemmer": None},
    ]
    others: list[Analyzer] = []
    for change in changes:
        other = Analyzer.from_dict(settings | change)
        if other != analyzer and other not in others:
            others.append(other)
    return others


def _grid(
    present: Settings,
    variants: Sequence[str],
    k1: Sequence[float],
    b: Sequence[float],
    analyzers: Sequence[Analyzer],
    fields: Sequence[dict[str, float] | None],
) -> Iterator[Settings]:
    """Yield the present settings, then all others once, analyzer by analyzer."""
    yield present
    for analyzer, weights in product((present.analyzer, *analyzers), fields):
        for variant in variants:
            # Parameters that the formula does not have keep their values.
            for k1_value in [present.k1] if variant in ("tfldp", "tfidf") else k1:
                for b_value in [present.b] if variant == "tfidf" else b:
                    numbers = float(k1_value), float(b_value)
                    settings = Settings(variant, *numbers, analyzer, weights)
                    if settings != present:
                        yield settings


def _evaluate_all(
    index: BM25Index,
    grid: Sequence[Settings],
    queries: Mapping[str, str],
    evaluator: Evaluator,
    measure: str,
    progress: bool,
) -> list[Evaluation]:
    depth = parse_measure(measure).cutoff or _DEPTH
    analyzed = index.snapshot()
    evaluations = []
    for settings in tqdm(grid, desc="tuning", unit=" points", disable=not progress):
        if settings.analyzer != analyzed.analyzer:
            analyzed = _analyzed(index, settings.analyzer)
        run = run_of(_under(analyzed, settings), queries, depth)
        evaluations.append(evaluator.evaluate(run))
    return evaluations


def _analyzed(index: BM25Index, analyzer: Analyzer) -> BM25Index:
    own, weights = index.analyzer, [weight for _, weight in analyzer.also]
    if own == analyzer:
        return index
    if len(weights) == len(own.also) and own.weighing(weights) == analyzer:
        return index.tune(also=weights)
    return index.reanalyze(analyzer)


def _under(index: BM25Index, settings: Settings) -> BM25Index:
    variant: Any = settings.variant  # tune checks the name
    fields: Any = {} if settings.fields is None else {"fields": settings.fields}
    return index.tune(variant=variant, k1=settings.k1, b=settings.b, **fields)


def _best_mean(values: Float64) -> int:
    return int(values.mean(axis=1).argmax())


def cross_validate(
    values: Float64, folds: int, seed: int, choose: Callable[[Float64], int] = _best_mean
) -> tuple[list[int], Float64]:
    """Choose a setting for each fold by the other folds.

    It returns the number of a setting for each fold, and the value of each query with the setting
    that was chosen for its fold, float64 (q,).
    """
    order = list(range(values.shape[1]))
    random.Random(seed).shuffle(order)
    held_out = np.empty(len(order))
    chosen = []
    for fold in range(min(folds, len(order))):
        tested = order[fold :: min(folds, len(order))]
        rest = np.setdiff1d(order, tested)
        point = choose(values[:, rest])
        held_out[tested] = values[point, tested]
        chosen.append(point)
    return chosen, held_out


def compare_held_out(before: Evaluation, held_out: Float64, measure: str, seed: int) -> Comparison:
    """Compare the values of held-out queries, float64 (q,), with those of an evaluation."""
    per_query = {
        query: {measure: value}
        for query, value in zip(before.per_query, held_out.tolist(), strict=True)
    }
    after = Evaluation({measure: fmean(held_out.tolist())}, per_query)
    return compare(after, before, measure, seed)


def describe_held_out(gain: Comparison, against: str = "") -> str:
    """Return a line that says what was gained on held-out queries, and whether by chance."""
    p_value = "" if gain.p_value is None else f" (p = {gain.p_value:.4f})"
    verdict = (
        f"a significant {'gain' if gain.difference > 0 else 'loss'}"
        if gain.significant
        else "not significant: chance may explain it"
    )
    return (
        f"{gain.measure} on held-out queries{against}: {gain.baseline:.4f} to {gain.mean:.4f}, "
        f"{gain.difference:+.4f}{p_value}, {verdict}"
    )
