"""The results of an index as a run, and the judgements that apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bm25rag.evaluation.measures import Qrels
from bm25rag.evaluation.retrievers import answering, ranks
from bm25rag.index import BM25Index
from bm25rag.search.results import BatchResult


def run_of(
    retriever: BM25Index | Any,
    queries: Mapping[str, str],
    k: int = 1000,
    threads: int | None = None,
) -> dict[str, dict[str, float]]:
    """Search for queries with an index, or with any retriever that ``answering`` takes.

    Scores of an index are float32, as in trec_eval. Of equal scores, the later one is lowered by
    the smallest step, so that every evaluator keeps the order of the index. Scores of other
    retrievers fall by rank. They are asked one by one, and those of LangChain and LlamaIndex have
    their own k; a ``TypeError`` or ``ValueError`` says that one returns what is not a ranking.
    """
    if not isinstance(retriever, BM25Index):
        answer = answering(retriever)
        return {id: ranks(id, answer(text, k)) for id, text in queries.items()}
    batch = retriever.search_batch(list(queries.values()), k=k, threads=threads)
    rows = zip(queries, batch.ids(), _falling(batch), strict=True)
    return {id: dict(zip(documents, scores, strict=False)) for id, documents, scores in rows}


def _falling(batch: BatchResult) -> list[list[float]]:
    """Return scores that decrease strictly from rank to rank, in float32."""
    scores = batch.scores.astype(np.float32)
    for rank in range(1, scores.shape[1]):
        below = np.nextafter(scores[:, rank - 1], np.float32(-np.inf))
        np.minimum(scores[:, rank], below, out=scores[:, rank])
    falling: list[list[float]] = scores.tolist()
    return falling


class JudgedQueries(NamedTuple):
    """Queries with judgements, and what was left out."""

    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    notes: tuple[str, ...]


def judged_queries(index: BM25Index, queries: Mapping[str, str], qrels: Qrels) -> JudgedQueries:
    """Select the queries that are judged, and report what cannot be evaluated."""
    judged = {id: text for id, text in queries.items() if id in qrels}
    if not judged:
        raise ValueError(
            f"no query is judged: queries are {list(queries)[:3]} ..., "
            f"judged are {list(qrels)[:3]} ..."
        )
    kept = {id: dict(qrels[id]) for id in judged}
    relevant = [id for grades in kept.values() for id, grade in grades.items() if grade > 0]
    absent = [id for id in relevant if id not in index]
    left_out = (
        (len(queries) - len(judged), "queries have no judgements and are left out"),
        (len(qrels) - len(judged), "judged queries have no text and are left out"),
        (len(absent), f"relevant documents are not in the index: {absent[:3]}"),
    )
    notes = tuple(f"{count:,} {what}" for count, what in left_out if count)
    return JudgedQueries(judged, kept, notes)
