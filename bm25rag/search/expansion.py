"""RM3: a query expanded by the terms of the documents that answer it best.

The relevance model of N. Abdul-Jaleel et al. (UMass at TREC 2004), with the parameters
and the choice of terms of its reproduction in Anserini: of each feedback document the
most frequent terms, in shares of their sum, times the document's score.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from bm25rag.common.strings import text_of
from bm25rag.search.queries import Terms
from bm25rag.search.results import BatchResult
from bm25rag.search.snapshot import Snapshot

# Terms in more than one of so many documents are no feedback, nor are very short and long ones.
_COMMON = 10
_SHORTEST, _LONGEST = 2, 20


def expand(
    terms: Terms, feedback: BatchResult, fb_terms: int, original_query_weight: float
) -> dict[str, float]:
    """Interpolate a query with the relevance model of its feedback documents.

    Parameters
    ----------
    terms
        The query.
    feedback
        What it finds, as a batch of one.
    fb_terms
        How many terms to take from each document, and from the model.
    original_query_weight
        The share of the query, from 0 to 1.
    """
    query: Mapping[str, float] = terms if isinstance(terms, dict) else Counter(terms)
    original, model = _scaled(query), _relevance_model(feedback, fb_terms)
    rest = 1.0 - original_query_weight
    expanded = {
        term: original_query_weight * weight + rest * model.pop(term, 0.0)
        for term, weight in original.items()
    }
    if rest:
        expanded |= {term: rest * weight for term, weight in model.items()}
    return expanded


def _relevance_model(feedback: BatchResult, most: int) -> dict[str, float]:
    count, asked = int(feedback.counts[0]), feedback.rows.shape[1]
    vectors = _vectors(feedback.snapshot, feedback.rows[0, :count].tolist(), asked)
    model: dict[str, float] = defaultdict(float)
    for vector, score in zip(vectors, feedback.scores[0, :count].tolist(), strict=True):
        if score <= 0.0:  # which is no share
            continue
        chosen = _largest(vector, most)
        length = sum(chosen.values())
        for term, tf in chosen.items():
            model[term] += tf / length * score
    return _scaled(_largest(model, most))


def _vectors(snapshot: Snapshot, rows: Sequence[int], least: int) -> list[dict[str, int]]:
    """Return how often each document contains each term that is neither common nor odd.

    A term in no more than ``least`` documents is never common.
    """
    vectors: list[dict[str, int]] = [{} for _ in rows]
    wanted: dict[int, dict[int, dict[str, int]]] = defaultdict(dict)
    for row, vector in zip(rows, vectors, strict=True):
        place, number = snapshot.locate(row)
        wanted[place][number] = vector
    for place, own in wanted.items():
        _fill(snapshot, place, own)
    every = list(dict.fromkeys(term for vector in vectors for term in vector))
    cache, numbers = snapshot.term_numbers(every)
    frequencies = dict(zip(every, cache.frequencies[numbers].tolist(), strict=True))
    most = max(snapshot.count / _COMMON, least)
    return [
        {
            term: tf
            for term, tf in vector.items()
            if frequencies[term] <= most and _SHORTEST <= len(term) <= _LONGEST
        }
        for vector in vectors
    ]


def _fill(snapshot: Snapshot, place: int, vectors: dict[int, dict[str, int]]) -> None:
    """Fill the vectors of some documents of a segment, by number, from its postings."""
    postings = snapshot.views[place].segment.postings
    postings.check_all()
    ascending = sorted(vectors)
    own = np.zeros(len(postings.lengths), np.bool_)
    own[ascending] = True
    numbers = np.arange(len(postings.terms), dtype=np.uint32)
    for run in postings.runs(numbers, own, 0):
        found = zip(run.terms.tolist(), run.documents.tolist(), run.tf.tolist(), strict=True)
        for term, document, tf in found:
            vectors[ascending[document]][text_of(postings.terms.column[term])] = tf


def _largest(values: Mapping[str, float], most: int) -> dict[str, float]:
    """Return the largest values, largest first; of equal ones the first terms by code point."""
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:most])


def _scaled(values: Mapping[str, float]) -> dict[str, float]:
    """Return values in shares of the sum of their sizes; added in order, for the same bits."""
    total = 0.0
    for value in values.values():
        total += abs(value)
    return {term: value / total if total else 0.0 for term, value in values.items()}
