"""Quality of rankings: trec_eval's measures, for each query and on average.

The values come from trec_eval itself, through ``pytrec_eval``. Documents are ranked by score as
float32; of equal scores, the larger id comes first. Rank columns are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index as to_int
from statistics import fmean
from typing import Any, TypeAlias

from bm25rag.common.optional import load
from bm25rag.common.strings import is_unicode
from bm25rag.evaluation.notation import Measure, parse_measure

Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""Scores by query id and document id."""
Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""Grades by query id and document id; 1 and higher means relevant."""

MEASURES = ("nDCG@10", "RR@10", "Success@10", "P@10", "R@100", "AP")
# trec_eval counts documents by grade, up to the largest: a grade of a million breaks it, and a
# negative one makes it write before the start of its array.
_LARGEST_GRADE = 1000


@dataclass(frozen=True)
class Evaluation:
    """The quality of a run.

    Parameters
    ----------
    mean, per_query
        The mean of each measure over the judged queries, and its value by query id and measure.
    missing, without_relevant
        Judged queries without results in the run, or without relevant documents; they count as 0.
    unjudged
        Queries of the run that have no judgements; they do not count.
    """

    mean: dict[str, float]
    per_query: dict[str, dict[str, float]]
    missing: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    without_relevant: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, or counts as 0."""
        left_out = (
            (self.missing, "judged queries have no results and count as 0"),
            (self.unjudged, "queries have no judgements and do not count"),
            (self.without_relevant, "judged queries have no relevant document and count as 0"),
        )
        return tuple(f"{len(ids)} {why}: {_few(ids)}" for ids, why in left_out if ids)

    def values(self, measure: str) -> list[float]:
        """Return the values of a measure that was evaluated, in the order of ``per_query``."""
        if measure not in self.mean:
            raise ValueError(f"{measure!r} was not evaluated; measures are {list(self.mean)}")
        return [values[measure] for values in self.per_query.values()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        values = vars(self).items()
        lists = {name: [*one] if isinstance(one, tuple) else one for name, one in values}
        return {"queries": len(self.per_query), **lists}


def _few(ids: Sequence[str]) -> str:
    shown = ", ".join(map(repr, ids[:3]))
    return shown if len(ids) <= 3 else f"{shown} ..."


def evaluate(run: Run, qrels: Qrels, measures: str | Iterable[str] = MEASURES) -> Evaluation:
    """Evaluate a run against judgements, as trec_eval does; a query without results counts as 0.

    Parameters
    ----------
    run, qrels
        Scores, and grades (integers; 1 and higher means relevant), by query id and document id.
    measures
        In the notation of ir-measures: ``nDCG@10``, ``Success@5``, ``RR@10``, ``P@5``,
        ``R@100``, ``F1@10``, ``AP``, ``AP@100``, ``Rprec``; and ``P(rel=2)@5``, where 2 is the
        lowest grade that counts as relevant.

    Raises
    ------
    MissingDependencyError
        If ``pytrec_eval`` is not installed.
    TypeError
        If an id is not a string, a score not a number, or a grade not an integer.
    ValueError
        If a measure is unknown, nothing is judged, no query of the run is judged, a score is NaN
        or infinite, or trec_eval cannot take a grade or an id.

    Examples
    --------
    >>> run = {"q1": {"d1": 2.0, "d2": 1.0}}
    >>> evaluate(run, {"q1": {"d2": 1}}, "RR@10").mean
    {'RR@10': 0.5}
    """
    return Evaluator(qrels, measures).evaluate(run)


class Evaluator:
    """Judgements, to evaluate many runs against; arguments and errors as of ``evaluate``."""

    def __init__(self, qrels: Qrels, measures: str | Iterable[str] = MEASURES) -> None:
        names = [measures] if isinstance(measures, str) else list(measures)
        if not names:
            raise ValueError("measures is empty; give at least one, such as 'nDCG@10'")
        self.measures: dict[str, Measure] = {name: parse_measure(name) for name in names}
        self.qrels: dict[str, dict[str, int]] = _check_qrels(qrels)
        pytrec_eval = load("pytrec_eval", "evaluation needs pytrec_eval-terrier", "eval")
        judged = {query: grades for query, grades in self.qrels.items() if grades}
        wanted: dict[int, set[str]] = {}
        for measure in self.measures.values():
            wanted.setdefault(measure.level, set()).update(_needed(measure))
        # One for each lowest relevant grade.
        self._engines = {
            level: pytrec_eval.RelevanceEvaluator(judged, names, relevance_level=level)
            for level, names in wanted.items()
        }

    def evaluate(self, run: Run) -> Evaluation:
        """Evaluate a run; see ``evaluate``."""
        scores = _check_run(run)
        if self.qrels.keys().isdisjoint(scores):
            raise ValueError(
                f"no query of the run is judged: the run has {_few(list(scores)) or 'no queries'}, "
                f"the qrels have {_few(list(self.qrels))}"
            )
        results = {level: engine.evaluate(scores) for level, engine in self._engines.items()}
        per_query = {
            query: {
                name: _value(measure, results[measure.level].get(query, {}))
                for name, measure in self.measures.items()
            }
            for query in self.qrels
        }
        return Evaluation(
            {name: fmean(values[name] for values in per_query.values()) for name in self.measures},
            per_query,
            tuple(query for query in self.qrels if not scores.get(query)),
            tuple(query for query in scores if query not in self.qrels),
            tuple(query for query, grades in self.qrels.items() if not any(grades.values())),
        )


def _needed(measure: Measure) -> set[str]:
    """Return the names of what trec_eval must compute."""
    if measure.kind == "F1":
        return {f"P_{measure.cutoff}", f"recall_{measure.cutoff}"}
    return {measure.trec_name}


def _value(measure: Measure, results: Mapping[str, float]) -> float:
    """Return the value of a measure from trec_eval's results; 0 if there are none."""
    if measure.kind == "F1":
        precision = results.get(f"P_{measure.cutoff}", 0.0)
        recall = results.get(f"recall_{measure.cutoff}", 0.0)
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    value = results.get(measure.trec_name, 0.0)
    if measure.kind == "RR" and measure.cutoff is not None and value < 1 / measure.cutoff:
        return 0.0
    return value


# --- checks of input --------------------------------------------------------------------


def _check_id(name: str, id: object) -> str:
    if not isinstance(id, str):
        raise TypeError(f"{name} must be a str, got {id!r} ({type(id).__name__}); write str(...)")
    if "\0" in id or not is_unicode(id):
        raise ValueError(f"{name} {id!r} has NUL or a lone surrogate, which trec_eval cannot take")
    return id


def _check_outer(name: str, value: object) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        message = f"{name} must be a dict of dicts by query id and document id"
        raise TypeError(f"{message}, got {type(value).__name__}")
    for query, inner in value.items():
        _check_id(f"a query id of {name}", query)
        if not isinstance(inner, Mapping):
            got = type(inner).__name__
            raise TypeError(f"{name}[{query!r}] must be a dict by document id, got {got}")
    return value


def _check_qrels(qrels: Qrels) -> dict[str, dict[str, int]]:
    checked = {
        query: {
            _check_id(f"a document id of qrels[{query!r}]", id): _grade(query, id, grade)
            for id, grade in grades.items()
        }
        for query, grades in _check_outer("qrels", qrels).items()
    }
    if not any(checked.values()):
        raise ValueError("qrels is empty: no document is judged for any query")
    return checked


def _grade(query: str, id: str, grade: object) -> int:
    """Return a grade; negative grades, which also mean 'not relevant', become 0."""
    name = f"qrels[{query!r}][{id!r}]"
    try:
        value = to_int(grade)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an int, got {grade!r} ({type(grade).__name__})") from None
    if abs(value) > _LARGEST_GRADE:
        raise ValueError(f"{name} must be a grade up to {_LARGEST_GRADE}, got {value}")
    return max(value, 0)


def _check_run(run: Run) -> dict[str, dict[str, float]]:
    return {
        query: {
            _check_id(f"a document id of run[{query!r}]", id): _score(query, id, score)
            for id, score in scores.items()
        }
        for query, scores in _check_outer("run", run).items()
    }


def _score(query: str, id: str, score: object) -> float:
    if type(score) is not float:
        try:
            if isinstance(score, (str, bool)):
                raise TypeError
            score = float(score)  # type: ignore[arg-type]
        except TypeError:
            got = f"{score!r} ({type(score).__name__})"
            raise TypeError(f"run[{query!r}][{id!r}] must be a number, got {got}") from None
        except OverflowError:
            score = math.inf
    if wrong := unrankable(score):
        raise ValueError(f"run[{query!r}][{id!r}] {wrong}")
    return score


def unrankable(score: float) -> str | None:
    """Return what is wrong about a score that is NaN or infinite; ``None`` if it is finite.

    trec_eval takes both: it puts NaN anywhere, and orders infinite scores by document id.
    """
    if math.isfinite(score):
        return None
    return f"is {'NaN' if math.isnan(score) else 'infinite'}, which cannot be ranked"
