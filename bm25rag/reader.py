"""Reader: all that can be asked of an index without changing it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bm25rag._types import Float64, Int64, check_count, check_flag, check_real, check_sequence
from bm25rag.analysis import Analyzer
from bm25rag.correction import Correction, correct_queries
from bm25rag.documents import Document, Hit
from bm25rag.errors import DocumentNotFoundError
from bm25rag.expansion import expand
from bm25rag.explain import Explanation, explain
from bm25rag.filtered import search_filtered
from bm25rag.filters import FilterSpec, parse_filter
from bm25rag.queries import Query, terms_of, warn_of_texts
from bm25rag.search import BatchResult, score_all
from bm25rag.snapshot import Snapshot
from bm25rag.turns import reading

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Text = str | Sequence[str]


def check_ids(ids: Iterable[str]) -> list[str]:
    """Return ids as a list; refuse a bare string and anything but strings."""
    return [check_id(f"ids[{n}]", id) for n, id in enumerate(check_sequence("ids", ids, "str"))]


def check_id(name: str, id: object) -> str:
    """Return an id, which is a string."""
    if not isinstance(id, str):
        hint = f"; write str({id})" if isinstance(id, (int, np.integer)) else ""
        raise TypeError(f"{name} must be a str, got {type(id).__name__}{hint}")
    return str(id)  # of a subclass, NumPy's too, the plain string


class Reader:
    """What ``BM25Index`` inherits: searching and looking, from one snapshot a call."""

    _snapshot: Snapshot
    _why_read_only: str | None

    @property
    def _current(self) -> Snapshot:
        """What to read from now; those who write are told that somebody does."""
        reading()
        return self._snapshot

    # --- searching ----------------------------------------------------------------

    def search(
        self,
        query: Query,
        k: int = 10,
        filter: FilterSpec | None = None,
        min_score: float | None = None,
        correct: bool = False,
    ) -> list[Hit]:
        """Find the best k documents that contain a query term.

        Parameters
        ----------
        query
            A text, a list of strings taken as its terms, or a mapping of terms to weights.
        k
            How many at most, >= 0.
        filter
            A filter in bm25rag's language, a set of ids, or a callable on the metadata.
        min_score
            The least score returned.
        correct
            Whether to correct the query first, as ``correct()`` does; hits say how.

        Returns
        -------
        hits
            By score descending, then in document order.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If ``k`` is negative, ``min_score`` NaN, or a weight NaN, infinite or beyond 1e30.
        FilterError
            If the filter is malformed.

        Warns
        -----
        UserWarning
            If no term of a list is known and one holds white space: it looks like a text.
        """
        return self._search([query], k, filter, min_score, 1, correct, "query").hits()[0]

    def search_batch(
        self,
        queries: Iterable[Query],
        k: int = 10,
        filter: FilterSpec | None = None,
        min_score: float | None = None,
        threads: int | None = None,
        correct: bool = False,
    ) -> BatchResult:
        """Search for many queries at once.

        Parameters
        ----------
        queries
            Texts, lists of terms, and mappings of terms to weights, in any mixture.
        k, filter, min_score
            As in ``search``.
        threads
            How many threads to use at most; ``None`` for one a core. The result is the same.
        correct
            As in ``search``.

        Returns
        -------
        result
            Rows, scores and counts as arrays; ``ids()`` and ``hits()`` on demand.

        Raises
        ------
        TypeError
            If an argument has the wrong type; a bare string is no batch.
        ValueError
            If ``k`` is negative, ``threads`` less than 1, ``min_score`` NaN or a weight wrong.
        FilterError
            If the filter is malformed.
        """
        batch = list(check_sequence("queries", queries, "queries"))
        workers = None if threads is None else check_count("threads", threads, least=1)
        return self._search(batch, k, filter, min_score, workers, correct, "queries[{}]")

    def _search(
        self,
        queries: Sequence[Query],
        k: int,
        filter: FilterSpec | None,
        min_score: float | None,
        threads: int | None,
        correct: bool,
        name: str,
    ) -> BatchResult:
        most = check_count("k", k)
        floor = None if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
        parsed = parse_filter(filter)
        snapshot = self._current
        terms = terms_of(snapshot.analyzer, queries, name)
        corrections = []
        if check_flag("correct", correct):
            corrected = correct_queries(snapshot, terms, parsed)
            terms = [one.terms for one in corrected]
            corrections = [one.corrections for one in corrected]
        result = search_filtered(snapshot, terms, most, parsed, floor, threads)
        result.corrections = corrections
        if parsed is None:  # or a warning would tell what rejected documents hold
            warn_of_texts(snapshot, queries, result.counts)
        return result

    def scores(self, query: Query) -> Float64:
        """Score every document, those that do not match too; the shift included.

        Parameters
        ----------
        query
            As in ``search``.

        Returns
        -------
        scores
            In document order, float64 (N,).
        """
        snapshot = self._current
        return score_all(snapshot, terms_of(snapshot.analyzer, [query], "query")[0])

    def explain(self, query: Query, id: str, filter: FilterSpec | None = None) -> Explanation:
        """Explain the score of a document, whether or not it matches.

        Parameters
        ----------
        query
            As in ``search``.
        id
            The document.
        filter
            As in ``search``.

        Raises
        ------
        DocumentNotFoundError
            If there is no such document, or the filter rejects it.
        """
        parsed, snapshot = parse_filter(filter), self._current
        terms = terms_of(snapshot.analyzer, [query], "query")[0]
        found = snapshot.find(check_id("id", id))
        if found is None or not snapshot.passes(*found, parsed):
            passing = "" if parsed is None else " that the filter passes"
            raise DocumentNotFoundError(f"there is no document with the id {id!r}{passing}")
        return explain(snapshot, terms, *found)

    def expand(
        self,
        query: Query,
        fb_docs: int = 10,
        fb_terms: int = 10,
        original_query_weight: float = 0.5,
        filter: FilterSpec | None = None,
    ) -> dict[str, float]:
        """Expand a query by terms of the documents that answer it best (RM3).

        It finds more where questions are short and collections of one subject, and less
        where the first documents are wrong: measure before you use it. It reads all
        postings of the index, which takes longer than a search.

        Parameters
        ----------
        query
            As in ``search``.
        fb_docs
            How many documents to learn from.
        fb_terms
            How many terms to add, and to take from each document.
        original_query_weight
            The share of the query's own terms in the weights, from 0 to 1.
        filter
            As in ``search``; only documents that pass are learnt from.

        Returns
        -------
        expanded
            Terms and their weights, the query's own first: a query for ``search``.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If a number is out of its range.
        FilterError
            If the filter is malformed.
        """
        documents, most = check_count("fb_docs", fb_docs), check_count("fb_terms", fb_terms)
        share = check_real("original_query_weight", original_query_weight, 0.0, 1.0)
        parsed, snapshot = parse_filter(filter), self._current
        terms = terms_of(snapshot.analyzer, [query], "query")[0]
        feedback = search_filtered(snapshot, [terms], documents, parsed, None, 1)
        return expand(terms, feedback, most, share)

    def correct(self, query: Query, filter: FilterSpec | None = None) -> Correction:
        """Replace terms of a query that no document has by terms that are spelt alike.

        Of the terms that one edit makes of an unknown one, the most frequent stands for it;
        if there is none and it has 8 characters or more, of those that two edits make and
        that have the same first character. An edit inserts, deletes or replaces a character,
        or swaps two. Terms of less than 4 or more than 40 characters, or with digits, stay
        as they are, as do unknown terms of a query after the first thirty.

        Parameters
        ----------
        query
            As in ``search``. A text is analysed first, so what is replaced are stems.
        filter
            As in ``search``; only documents that pass have their terms known and offered.

        Returns
        -------
        correction
            The query to search for, and what was replaced in it.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If a weight is wrong.
        FilterError
            If the filter is malformed.
        """
        parsed, snapshot = parse_filter(filter), self._current
        return correct_queries(snapshot, terms_of(snapshot.analyzer, [query], "query"), parsed)[0]

    # --- looking ------------------------------------------------------------------

    def get(self, ids: Iterable[str], filter: FilterSpec | None = None) -> list[Document]:
        """Return documents by id, in the order asked.

        Ids that are unknown, or whose documents the filter rejects, are left out.

        Parameters
        ----------
        ids
            The documents.
        filter
            As in ``search``.
        """
        wanted, parsed, snapshot = check_ids(ids), parse_filter(filter), self._current
        found = (snapshot.find(id) for id in wanted)
        return [
            snapshot.document(*place)
            for place in found
            if place is not None and snapshot.passes(*place, parsed)
        ]

    def count(self, filter: FilterSpec | None = None) -> int:
        """Count the documents that the filter passes.

        Parameters
        ----------
        filter
            As in ``search``; ``None`` for all documents.
        """
        parsed, snapshot = parse_filter(filter), self._current
        if parsed is None:
            return snapshot.count
        masks = snapshot.masks(parsed)
        return sum(int(np.count_nonzero(mask)) for mask in masks if mask is not None)

    def ids(self, filter: FilterSpec | None = None) -> list[str]:
        """Return the ids of the documents that the filter passes, in document order.

        Parameters
        ----------
        filter
            As in ``search``; ``None`` for all documents.
        """
        parsed, snapshot = parse_filter(filter), self._current
        return [snapshot.parts[place].segment.id_of(n) for place, n in snapshot.passing(parsed)]

    def __len__(self) -> int:
        return self._snapshot.count

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._current.find(id) is not None

    @property
    def vocabulary(self) -> list[str]:
        """The terms of the living documents, by code point."""
        return self._current.frequencies()[0]

    def document_frequencies(self) -> Int64:
        """Return in how many documents each term of ``vocabulary`` occurs, int64 (V,)."""
        return self._current.frequencies()[1]

    def to_scipy(self) -> csc_array:
        """Return the eager scores: float32 (N, V), columns as ``vocabulary``, without the shift.

        Raises
        ------
        MissingDependencyError
            If SciPy is not installed, which the extra ``scipy`` brings.
        """
        from bm25rag.matrix import score_matrix

        return score_matrix(self._current)

    def stats(self) -> dict[str, int | float]:
        """Return counts and sizes: documents, terms, postings, tokens, average_length, ..."""
        snapshot = self._current
        frequencies = snapshot.frequencies()[1]
        return {
            "documents": snapshot.count,
            "terms": len(frequencies),
            "postings": int(frequencies.sum()),
            "tokens": snapshot.tokens,
            "average_length": snapshot.average_length,
            "segments": len(snapshot.parts),
            "impact_codes": sum(len(part.segment.postings.code_tf) for part in snapshot.parts),
            "bytes": sum(part.segment.nbytes for part in snapshot.parts),
        }

    # --- parameters ---------------------------------------------------------------

    @property
    def analyzer(self) -> Analyzer:
        """How texts and queries become terms."""
        return self._snapshot.analyzer

    @property
    def variant(self) -> str:
        """The member of the BM25 family."""
        return self._snapshot.parameters.variant

    @property
    def k1(self) -> float:
        """Saturation of the term frequency."""
        return self._snapshot.parameters.k1

    @property
    def b(self) -> float:
        """Strength of the length normalisation."""
        return self._snapshot.parameters.b

    @property
    def delta(self) -> float | None:
        """The lower bound in force, ``None`` where the variant has none."""
        return self._snapshot.parameters.effective_delta

    @property
    def delta_on(self) -> str:
        """Whether the lower bound counts for all query terms or the matched ones."""
        return self._snapshot.parameters.delta_on

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._why_read_only is not None
