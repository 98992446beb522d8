"""The words of a query that do not count, and why."""

from __future__ import annotations

from bm25rag import Analyzer, Explanation
from bm25rag.analysis.steps import analysis_steps, not_words, why_no_word


def dropped_words(query: str, analyzer: Analyzer, explanation: Explanation) -> dict[str, str]:
    """Return the words of a query that cannot add to any score, in its order, with reasons.

    `explanation` is that of any document.
    """
    parts = [part for part in explanation.terms if not part.analysis]
    unknown = {part.term for part in parts if not part.document_frequency}
    dropped = {run: why_no_word(analyzer) for run in not_words(analyzer, query)}
    for word, term, reason, joined, _ in analysis_steps(analyzer, query, question=True):
        if joined:  # its parts stand beside it
            continue
        if reason is not None:
            dropped[word] = reason
        elif term in unknown:
            stemmed = f" (as {term!r})" if term != word else ""
            dropped[word] = f"in no document of the index{stemmed}"
    return dropped
