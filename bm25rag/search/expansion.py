"""RM3: a query expanded by terms of its best matches.

The relevance model of N. Abdul-Jaleel et al. (UMass at TREC 2004), with the parameters and the
choice of terms of its reproduction in Anserini: the most frequent terms of each feedback document,
as shares of their sum, times the document's score.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from bm25rag.analysis import Analyzer
from bm25rag.common.arrays import Float64, UInt32, as_index
from bm25rag.common.checks import check_count, check_real
from bm25rag.common.strings import text_of
from bm25rag.filters import FilterSpec
from bm25rag.kernels.records import Matches
from bm25rag.search.finding import check_wanted, find
from bm25rag.search.query import Query
from bm25rag.search.query_terms import QueryLike, terms_of
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.doc_blocks import spans
from bm25rag.segments.postings import Postings
from bm25rag.segments.segment import Segment

# Terms in more than one of this many documents are not feedback, nor are very short or long terms.
_COMMON = 10
_SHORTEST, _LONGEST = 2, 20


def expand(
    snapshot: Snapshot,
    query: QueryLike,
    filter: FilterSpec | None,
    fb_docs: int,
    fb_terms: int,
    original_query_weight: float,
) -> dict[str, float] | Query:
    """Interpolate a query with the relevance model of its best matches; see ``BM25Index.expand``.

    ``fb_terms`` are taken from each document, and from the model.
    """
    wanted = check_wanted(snapshot, check_count("fb_docs", fb_docs), filter, None, 0)
    terms = terms_of(snapshot.analyzer, query)
    check_count("fb_terms", fb_terms)
    check_real("original_query_weight", original_query_weight, 0.0, 1.0)
    feedback = find(snapshot, [terms], wanted, 1)
    weights: Mapping[str, float] = terms if isinstance(terms, dict) else Counter(terms)
    original, model = _scaled(weights), _relevance_model(snapshot, feedback, fb_terms)
    rest = 1.0 - original_query_weight
    expanded = {
        term: original_query_weight * weight + rest * model.pop(term, 0.0)
        for term, weight in original.items()
    }
    if rest:
        expanded |= {term: rest * weight for term, weight in model.items()}
    return query.replaced(text=expanded, also=()) if isinstance(query, Query) else expanded


def _relevance_model(snapshot: Snapshot, feedback: Matches, limit: int) -> dict[str, float]:
    count, asked = int(feedback.counts[0]), feedback.rows.shape[1]
    vectors = _vectors(snapshot, feedback.rows[0, :count].tolist(), asked)
    model: dict[str, float] = defaultdict(float)
    for vector, score in zip(vectors, feedback.scores[0, :count].tolist(), strict=True):
        if score <= 0.0:  # a share cannot be negative
            continue
        chosen = _largest(vector, limit)
        length = _total(chosen)
        for term, tf in chosen.items():
            model[term] += tf / length * score
    return _scaled(_largest(model, limit))


def _vectors(snapshot: Snapshot, rows: Sequence[int], least: int) -> list[dict[str, float]]:
    """Return how often each document contains each term that is neither common, short nor long.

    A term in no more than ``least`` documents is never common.
    """
    vectors: list[dict[str, float]] = [{} for _ in rows]
    by_segment: dict[int, dict[int, dict[str, float]]] = defaultdict(dict)
    for row, vector in zip(rows, vectors, strict=True):
        segment_index, number = snapshot.locate(row)
        by_segment[segment_index][number] = vector
    weights = snapshot.parameters.field_weights
    for segment_index, segment_vectors in by_segment.items():
        segment = snapshot.views[segment_index].segment
        unknown = _fill_from_texts(segment, snapshot.analyzer, weights, segment_vectors)
        if unknown:
            _fill(segment.postings, segment.postings.weighted_tf(weights), unknown)
    terms = list(dict.fromkeys(term for vector in vectors for term in vector))
    cache, numbers = snapshot.term_numbers(terms)
    frequencies = dict(zip(terms, cache.frequencies[numbers].tolist(), strict=True))
    limit = max(snapshot.collection_size / _COMMON, least)
    if snapshot.analyzer.also:  # terms of the first analysis alone are feedback
        from bm25rag.analysis.spaces import of_first

        vectors = [{term: one[term] for term in of_first(one)} for one in vectors]
    return [
        {
            term: tf
            for term, tf in vector.items()
            if frequencies[term] <= limit and _SHORTEST <= len(term) <= _LONGEST
        }
        for vector in vectors
    ]


def _fill_from_texts(
    segment: Segment,
    analyzer: Analyzer,
    weights: Sequence[float],
    vectors: dict[int, dict[str, float]],
) -> dict[int, dict[str, float]]:
    """Fill the vectors of documents whose texts are stored; return the others.

    A text has the terms of the postings. A tokenizer may be slow, and is believed by these alone.
    """
    if analyzer.tokenizer is not None:
        return vectors
    unknown, by_field = {}, segment.texts_by_field([*vectors])
    for (number, vector), *texts in zip(vectors.items(), *by_field, strict=True):
        if texts.count(None) == len(texts):  # all fields that there are are stored, or none
            unknown[number] = vector
            continue
        # Added field by field, as ``TextFields.weigh`` does, for the same bits.
        for weight, text in zip(weights, texts, strict=True):
            for term, count in Counter(analyzer.terms(text or "")).items():
                vector[term] = vector.get(term, 0.0) + weight * count
    return unknown


def _fill(postings: Postings, tf: UInt32 | Float64, vectors: dict[int, dict[str, float]]) -> None:
    """Fill the vectors of some documents of a segment, by their numbers, given tf of each code."""
    postings.check_arrays()
    size, indptr = postings.doc_blocks.size, postings.indptr
    # In any block, which few postings are asked about; one for each number that a posting can have.
    is_wanted = np.zeros(1 << 16, np.bool_)
    is_wanted[[number % size for number in vectors]] = True
    for first, last in spans(indptr):
        start = int(indptr[first])
        documents = postings.documents[start : int(indptr[last])]
        places = start + np.flatnonzero(is_wanted.take(as_index(documents)))
        terms = first + np.searchsorted(indptr[first + 1 : last + 1], places, side="right")
        for term in np.unique(terms).tolist():
            own, starts = places[terms == term], postings.doc_blocks.starts(term, indptr.data)
            blocks = np.searchsorted(starts[1:], own, side="right")
            numbers = blocks * size + postings.documents[own]
            counts = tf.take(as_index(postings.codes[own]))
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                if number in vectors:
                    vectors[number][text_of(postings.terms.column[term])] = count


def _largest(values: Mapping[str, float], limit: int) -> dict[str, float]:
    """Return the largest values, largest first; ties go to the first term by code point."""
    ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    return dict(ordered[:limit])


def _scaled(values: Mapping[str, float]) -> dict[str, float]:
    """Return values as shares of the sum of their sizes."""
    total = _total(values)
    return {term: value / total if total else 0.0 for term, value in values.items()}


def _total(values: Mapping[str, float]) -> float:
    """Add sizes in order, for the same bits; ``sum`` compensates for rounding since Python 3.12."""
    total = 0.0
    for value in values.values():
        total += abs(value)
    return total
