"""Random sparse vectors of passages on topics, of the shape of SPLADE's.

A passage has 106 entries on average of 30,522 terms, BERT's vocabulary, and a question 30. Few
entries hold most of the weight, as in learned vectors ("concentration of importance": Bruch et al.,
"Efficient Inverted Indexes for Approximate Retrieval over Learned Sparse Representations", 2024):
the largest 42 % of a passage's hold 77 %, and the largest 25 % of a question's 64 %. A question and
a passage have 1.2 terms in common on average, what the papers on SPLADE call FLOPS.

Each topic has 30 passages, in three runs of ten somewhere in the collection: its forty terms have
a strength each, with which a passage has them or lacks them. A topic belongs to one of 2,000
subjects, whose 250 terms it shares. The rest are drawn from all terms by a power law. A question
is about one topic. Without topics, all terms are drawn from the power law: the worst case, in which
bounds say nothing about where the best documents are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

Array: TypeAlias = np.ndarray[Any, Any]

TERMS = 30_522
QUESTION_ENTRIES = 30
_SUBJECTS, _SUBJECT_TERMS, _CORE = 2_000, 250, 40
_OF_SUBJECT, _OF_ALL = 35, 55
_PER_TOPIC, _RUN = 30, 10
# One less the exponent of the power law of terms.
_POWER = 0.3
_AT_ONCE = 1 << 14


def _by_power_law(uniform: Array) -> Array:
    """Return terms, given numbers between 0 and 1."""
    terms = (uniform * ((TERMS + 1.0) ** _POWER - 1) + 1) ** (1 / _POWER)
    drawn: Array = np.minimum(terms.astype(np.int64) - 1, TERMS - 1)
    return drawn


class Topics:
    """A collection of so many passages; the same for each seed.

    Parameters
    ----------
    count
        How many passages there are.
    correlated
        Whether there are topics.
    """

    def __init__(self, count: int, correlated: bool = True, seed: int = 0) -> None:
        self.count, self.correlated, self._seed = count, correlated, seed
        rng = np.random.default_rng(seed)
        self._topics = max(1, count // _PER_TOPIC)
        self._subjects = _by_power_law(rng.random((_SUBJECTS, _SUBJECT_TERMS)))
        self._subject_of = rng.integers(0, _SUBJECTS, self._topics)
        runs = np.resize(np.arange(self._topics), -(-count // _RUN))
        self._topic_of_run = rng.permutation(runs)

    def _cores(self, topics: Array) -> tuple[Array, Array]:
        """Return the terms of topics, and how strong each is, the strongest first."""
        keys = topics[:, None].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        keys = keys + np.arange(3 * _CORE, dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)
        keys ^= keys >> np.uint64(31)
        keys *= np.uint64(0xBF58476D1CE4E5B9)
        keys ^= keys >> np.uint64(27)
        keys *= np.uint64(0x94D049BB133111EB)
        uniform = (keys >> np.uint64(11)).astype(np.float64) / 2**53
        which, whose, strength = np.split(uniform, 3, axis=1)
        subjects = self._subjects[self._subject_of[topics]]
        rows = np.arange(len(topics))[:, None]
        own = subjects[rows, (which * _SUBJECT_TERMS).astype(np.int64)]
        terms = np.where(whose < 0.6, own, _by_power_law(which))
        return terms, -np.sort(np.log(1 - 0.999 * strength) * 0.45 - 0.15, axis=1)

    def passages(self) -> Iterator[Any]:
        """Yield the vectors of passages, some thousands at a time, (n, TERMS)."""
        rng = np.random.default_rng(self._seed + 1)
        for first in range(0, self.count, _AT_ONCE):
            yield self._draw(rng, first, min(first + _AT_ONCE, self.count))

    def _draw(self, rng: np.random.Generator, first: int, last: int) -> Any:
        count = last - first
        common = _by_power_law(rng.random((count, _OF_ALL)))
        weights: Any = rng.gamma(1.1, 0.3, common.shape)
        kept = np.ones(common.shape, np.bool_)
        if self.correlated:
            topics = self._topic_of_run[np.arange(first, last) // _RUN]
            core, strength = self._cores(topics)
            has = rng.random(core.shape) < np.minimum(0.91 * strength / (strength + 0.25), 0.95)
            strength = strength * rng.lognormal(0, 0.35, core.shape)
            columns = rng.integers(0, _SUBJECT_TERMS, (count, _OF_SUBJECT))
            shared = self._subjects[self._subject_of[topics][:, None], columns]
            of_subject = rng.gamma(1.1, 0.33, shared.shape)
            terms = np.concatenate((core, shared, common), 1)
            weights = np.concatenate((strength, of_subject, weights), 1)
            kept = np.concatenate((has, np.ones(shared.shape, np.bool_), kept), 1)
        else:
            more = _by_power_law(rng.random((count, _CORE + _OF_SUBJECT)))
            terms = np.concatenate((more, common), 1)
            weights = rng.gamma(1.1, 0.42, terms.shape)
            kept = np.ones(terms.shape, np.bool_)
        documents = np.repeat(np.arange(count), terms.shape[1])[kept.ravel()]
        drawn = sparse.coo_array(
            (np.minimum(weights[kept], 3.5), (documents, terms[kept])), (count, TERMS)
        ).tocsr()
        drawn.data = drawn.data.astype(np.float32)
        return drawn

    def questions(self, count: int, entries: int = QUESTION_ENTRIES) -> list[dict[str, float]]:
        """Return the vectors of questions."""
        rng = np.random.default_rng(self._seed + 2)
        topics = rng.integers(0, self._topics, count)
        core, strength = self._cores(topics)
        questions = []
        for row in range(count):
            question: dict[int, float] = {}
            if self.correlated:
                own = strength[row]
                asked = rng.random(_CORE) < np.minimum(0.75 * own / (own + 0.4), 1)
                noise = rng.lognormal(0, 0.4, _CORE)
                pairs = zip(core[row][asked], (own * noise)[asked], strict=True)
                question.update((int(term), float(weight)) for term, weight in pairs)
                subject = self._subjects[self._subject_of[topics[row]]]
                for term in subject[rng.integers(0, _SUBJECT_TERMS, 6)].tolist():
                    question.setdefault(term, float(rng.gamma(0.8, 0.25)) + 0.01)
            scale = 0.22 if self.correlated else 0.5
            while len(question) < entries:
                (term,) = _by_power_law(rng.random(1)).tolist()
                question.setdefault(term, float(rng.gamma(0.8, scale)) + 0.01)
            questions.append({str(term): weight for term, weight in question.items()})
        return questions
