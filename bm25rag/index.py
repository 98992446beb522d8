"""BM25Index: an exact BM25 index that can be searched, changed, filtered, tuned and saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, Self, overload

from bm25rag import maintenance
from bm25rag.analysis import Analyzer, Tokenizer
from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.checks import check_count, check_flag, check_id, check_ids, check_sequence
from bm25rag.common.urls import is_url
from bm25rag.documents import Document, Hit, Text
from bm25rag.live.index import LiveIndex, Mode, OnDuplicate, new_state
from bm25rag.opening import local_folder, open_index
from bm25rag.scoring.variants import UNCHANGED, DeltaOn, VariantName
from bm25rag.search.finding import check_threads, check_wanted, find, find_one, parse_filter
from bm25rag.search.query_terms import QueryLike, terms_of, terms_of_each, warn_of_texts
from bm25rag.search.ranking import score_all
from bm25rag.search.results import BatchResult, batch_result, totals_of
from bm25rag.search.snapshot import Snapshot
from bm25rag.storage.attachment import MEMORY, SNAPSHOT, TUNED

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from bm25rag.common.sparse import Vector
    from bm25rag.decay import DecayLike, Span
    from bm25rag.filters import FilterSpec
    from bm25rag.fusion import FusionMethod
    from bm25rag.search.correction import Correction
    from bm25rag.search.explain import Explanation
    from bm25rag.search.query import Query
    from bm25rag.vectors import Vectors

__all__ = ["BM25Index", "Mode", "OnDuplicate"]

# What a process that opens an index and searches it does not need is imported where it is used:
# that halves the time until its first answer.


class BM25Index:
    """An exact BM25 index that can be updated, filtered, tuned and saved.

    Many threads may read while one writes: a reader sees the state before or after a write,
    never between. A copy is an index of its own, in memory, which can be changed. So are deep
    copies and pickles, unless the index was opened for reading: then they read the same folder,
    and the pickle is small.

    Every method raises ``TypeError`` or ``ValueError`` for an argument of a wrong type or value,
    ``FilterError`` for a malformed filter, ``NotAnIndexError`` or ``FormatVersionError`` for a
    folder that it cannot read, and ``ReadOnlyError`` if it writes and the index is a view or was
    opened for reading. Its own page says what else it raises.

    Parameters
    ----------
    analyzer
        How texts and queries become terms; ``None`` for ``Analyzer()``, English.
    variant
        ``"lucene"``, ``"robertson"``, ``"atire"``, ``"bm25l"``, ``"bm25+"``,
        ``"tfldp"`` or ``"tfidf"``; see ``bm25rag.scoring.variants``.
    k1
        Saturation of the term frequency, ``0 <= k1 <= 1e30``.
    b
        Strength of the length normalisation, ``0 <= b <= 1``.
    delta
        Lower bound of BM25L, BM25+ and TF_l∘δ∘p; ``None`` for the variant's default.
    delta_on
        ``"all"`` adds the lower bound for every query term, as BM25S does;
        ``"matched"`` for those that the document contains, as Lv & Zhai do.
    fields
        The weight of each field of a document, such as ``{"title": 3.0, "text": 1.0}``; a plain
        text is the field ``text``, whose weight is 1 unless it is given. The words of a field of
        weight 0 match nothing. ``None``: documents have no fields. See ``docs/fields.md``.

    Examples
    --------
    >>> index = BM25Index.from_texts(["A cat sat.", "Dogs run.", "Cats and dogs."])
    >>> [hit.id for hit in index.search("cats")]
    ['0', '2']
    """

    def __init__(
        self,
        analyzer: Analyzer | None = None,
        *,
        variant: VariantName = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: DeltaOn = "all",
        fields: Mapping[str, float] | None = None,
    ) -> None:
        settings = new_state(
            analyzer, variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on, fields=fields
        )
        self._live: LiveIndex = LiveIndex(settings, MEMORY)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[Text],
        ids: Iterable[str | int] | None = None,
        metadata: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        payloads: Iterable[bytes | None] | None = None,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
        vectors: Iterable[Vector | None] | None = None,
        analyzer: Analyzer | None = None,
        variant: VariantName = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: DeltaOn = "all",
        fields: Mapping[str, float] | None = None,
    ) -> Self:
        """Make an index and add texts to it, in one call.

        Parameters
        ----------
        texts, ids, metadata, payloads, store_text, on_duplicate, progress, threads, vectors
            As in ``add``.
        analyzer, variant, k1, b, delta, delta_on, fields
            As in the constructor.
        """
        from bm25rag.additions import NewDocuments

        index = cls(
            analyzer, variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on, fields=fields
        )
        given = texts, ids, metadata, payloads, vectors, store_text, progress
        documents = NewDocuments(*given, index._live.state.names)
        index._live.add(documents, on_duplicate, threads, wants_ids=False)
        return index

    @classmethod
    def build(
        cls,
        documents: Iterable[Document | Text],
        folder: str | PathLike[str],
        *,
        shards: int | None = None,
        memory: str | int = "2GiB",
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
        extra: dict[str, Any] | None = None,
        analyzer: Analyzer | None = None,
        variant: VariantName = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: DeltaOn = "all",
        fields: Mapping[str, float] | None = None,
    ) -> Self:
        """Build an index in a folder, perhaps a larger one than memory, and open it for reading.

        The folder gets the files that ``add`` and ``save`` would write. After an interruption, call
        it again with the same documents and settings: it continues. See ``docs/building.md``. It
        raises as ``add``, and as ``save`` without ``overwrite``.

        Parameters
        ----------
        documents
            Any iterable: ``Document`` records, or texts, which get decimal numbers as ids.
        folder
            The folder; made if it is missing. On the way it takes up to two and a half times
            the size of the index.
        shards
            How many shards to divide the index into, >= 1, each with as many consecutive documents
            as the others or one more; ``None``: none. See ``docs/sharding.md``.
        memory
            By how much the resident memory of the process may grow, without mapped files and what
            ``documents`` holds: ``"512MiB"``, ``"2GiB"``, ``"1.5GB"`` or a number of bytes.
        store_text, on_duplicate, progress, threads
            As in ``add``.
        extra
            JSON values to keep with the index, as in ``save``.
        analyzer, variant, k1, b, delta, delta_on, fields
            As in the constructor.

        Raises
        ------
        ValueError
            If ``memory`` is too little, or an interrupted build had other documents or settings.
        OSError
            If the disk is full; with more room, the same call goes on.
        """
        from bm25rag.building.plan import check_plan

        empty = cls(
            analyzer, variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on, fields=fields
        )
        state = empty._live.state.stored()
        plan = check_plan(state, memory, store_text, on_duplicate, progress, threads, extra)
        if shards is None:
            from bm25rag.building.build import build_index

            build_index(documents, folder, plan)
        else:
            from bm25rag.building.shards import build_sharded

            build_sharded(documents, folder, shards, plan)
        return cls.open(folder, tokenizer=empty.analyzer.any_tokenizer)

    # --- searching ---------------------------------------------------------------------

    def search(
        self,
        query: QueryLike,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        correct: bool = False,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[Hit]:
        """Find the best k documents that contain a query term; of equal ones, the earlier first.

        Parameters
        ----------
        query
            A text, a list of strings taken as its terms, a mapping of terms to weights, or a
            ``Query`` with parts that matches must have, or must not have.
        k
            How many at most, >= 0.
        filter
            A filter in bm25rag's language, a set of ids, or a callable on the metadata.
        min_score
            The least score returned.
        correct
            Whether to correct the query first, as ``correct()`` does; hits say how.
        offset
            How many of the best documents to leave out: the next page begins at ``offset + k``.
        group
            A path in the metadata, as in a filter: documents with equal values there are one
            group, and those without a value each its own. Or ``"$text"``: equal texts are one.
            ``k`` and ``offset`` then count groups, ranked by their best documents.
        per_group
            How many of each group's best documents to return at most.
        decay
            What lowers scores by the metadata: a ``bm25rag.Decay`` by age, or a ``bm25rag.Prior``
            by a number, or a dict of the arguments of one. ``min_score`` is on what it leaves.

        Raises
        ------
        ValueError
            If a part of a ``Query`` has no words, or the texts that a phrase must be looked for in
            are not stored.

        Warns
        -----
        UserWarning
            If no term of a list is known and one holds white space: it looks like a text.
        IncompleteWarning
            If the ``timeout`` of a ``Query`` was over.
        """
        snapshot = self._live.snapshot
        wanted = check_wanted(snapshot, k, filter, min_score, offset, group, per_group, decay)
        terms, corrections = terms_of(snapshot.analyzer, query), None
        if correct is not False and check_flag("correct", correct):
            from bm25rag.search.correction import corrected_terms  # most searches need none

            (terms,), (corrections,) = corrected_terms(snapshot, [terms], wanted.filter)
        rows, scores = find_one(snapshot, terms, wanted)
        if not rows and wanted.filter is None:  # or this would tell what rejected documents hold
            warn_of_texts(snapshot, [query])
        return snapshot.hits(rows, scores, corrections, terms, totals_of(snapshot, terms, wanted))

    def search_batch(
        self,
        queries: Iterable[QueryLike],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        threads: int | None = None,
        correct: bool = False,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> BatchResult:
        """Search for many queries at once, with rows, scores and counts as arrays, hits on demand.

        Parameters
        ----------
        queries
            Any kinds of queries, in any mixture; a bare string is not a batch.
        k, filter, min_score
            As in ``search``.
        threads
            How many threads to use at most, >= 1; ``None`` for one a core. The result is the same.
        correct, offset, group, per_group, decay
            As in ``search``.
        """
        allowed = check_threads(threads)
        batch = list(check_sequence("queries", queries, "queries"))
        snapshot = self._live.snapshot
        wanted = check_wanted(snapshot, k, filter, min_score, offset, group, per_group, decay)
        terms, corrections = terms_of_each(snapshot.analyzer, batch), None
        if check_flag("correct", correct):
            from bm25rag.search.correction import corrected_terms

            terms, corrections = corrected_terms(snapshot, terms, wanted.filter)
        matches = find(snapshot, terms, wanted, allowed)
        if wanted.filter is None:  # as in ``search``
            unmatched = (matches.counts == 0).nonzero()[0].tolist()
            warn_of_texts(snapshot, [batch[number] for number in unmatched])
        return batch_result(snapshot, matches, terms, wanted, corrections)

    def scores(self, query: QueryLike) -> Float64:
        """Score every document, in document order: float64 (N,); the shift included.

        Parameters
        ----------
        query
            As in ``search``.
        """
        snapshot = self._live.snapshot
        return score_all(snapshot, terms_of(snapshot.analyzer, query))

    def explain(
        self,
        query: QueryLike,
        id: str | int,
        filter: FilterSpec | None = None,
        *,
        decay: DecayLike | None = None,
    ) -> Explanation:
        """Explain the score of a document, whether or not it matches.

        Parameters
        ----------
        query, id, filter, decay
            As in ``search``; the id of the document.

        Raises
        ------
        DocumentNotFoundError
            If there is no such document, or the filter rejects it.
        """
        from bm25rag.search.explain import explain

        snapshot = self._live.snapshot
        parsed = parse_filter(filter, snapshot)
        return explain(snapshot, terms_of(snapshot.analyzer, query), id, parsed, decay)

    @overload
    def expand(
        self,
        query: Query,
        filter: FilterSpec | None = None,
        *,
        fb_docs: int = ...,
        fb_terms: int = ...,
        original_query_weight: float = ...,
    ) -> Query: ...

    @overload
    def expand(
        self,
        query: str | Sequence[str] | Mapping[str, float],
        filter: FilterSpec | None = None,
        *,
        fb_docs: int = ...,
        fb_terms: int = ...,
        original_query_weight: float = ...,
    ) -> dict[str, float]: ...

    def expand(
        self,
        query: QueryLike,
        filter: FilterSpec | None = None,
        *,
        fb_docs: int = 10,
        fb_terms: int = 20,
        original_query_weight: float = 0.8,
    ) -> dict[str, float] | Query:
        """Expand a query by terms of the documents that answer it best (RM3).

        It helps short questions on collections about one subject, and hurts where words are
        pairs of characters, as in Chinese: measure before you use it. It analyses the stored texts
        of those documents; where none are stored, or a tokenizer made the terms, it reads all
        postings of the index, which takes longer. What it returns is a query for ``search``: terms
        and weights, the query's own first; of a ``Query``, one with these in place of its text.

        Parameters
        ----------
        query, filter
            As in ``search``; only documents that pass are learnt from.
        fb_docs
            How many documents to learn from.
        fb_terms
            How many terms to add, and to take from each document.
        original_query_weight
            The share of the query's own terms in the weights, from 0 to 1.
        """
        from bm25rag.search.expansion import expand

        wanted = fb_docs, fb_terms, original_query_weight
        return expand(self._live.snapshot, query, filter, *wanted)

    def correct(self, query: QueryLike, filter: FilterSpec | None = None) -> Correction:
        """Replace terms of a query that no document has by terms that are spelt alike.

        The most frequent term replaces an unknown one that is one edit away or, of long terms,
        two. ``docs/queries.md`` says what an edit is, and what stays as it is.

        Parameters
        ----------
        query, filter
            As in ``search``. Of a text, stems are replaced; terms are known, and offered, of the
            documents that pass.
        """
        from bm25rag.search.correction import correct

        return correct(self._live.snapshot, query, filter)

    @property
    def vectors(self) -> Vectors:
        """The sparse vectors that documents were added with: to search by them, and read them."""
        from bm25rag.vectors import Vectors

        return Vectors(partial(getattr, self, "_snapshot"))  # which can be pickled

    def search_hybrid(
        self,
        query: QueryLike,
        vector: Vector,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        fetch_k: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[Hit]:
        """Find the best k documents by fused scores of BM25 and of their sparse vectors.

        Parameters
        ----------
        query, vector, k, filter
            As in ``search`` and ``vectors.search``; the filter holds for both, and so does what a
            ``Query`` restricts matches to.
        fetch_k
            How many documents of each ranking are fused, >= 0; at least ``k`` are.
        method, weights, rank_constant
            As in ``bm25rag.fusion.fuse``; the first weight is that of BM25.
        offset, group, per_group, decay
            As in ``search``, of the fused scores. All pages are of one ranking, of the documents
            that are fused: a larger ``fetch_k`` lets them go deeper.
        """
        from bm25rag.search.hybrid_and_fused import search_both
        from bm25rag.vectors import vector_terms

        snapshot = self._live.snapshot
        wanted = check_wanted(snapshot, k, filter, None, offset, group, per_group, decay)
        both = terms_of(snapshot.analyzer, query), vector_terms(vector)
        return search_both(snapshot, *both, wanted, fetch_k, method, weights, rank_constant)

    def search_fused(
        self,
        queries: Iterable[QueryLike],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        fetch_k: int = 100,
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
    ) -> list[Hit]:
        """Find the best k documents by their ranks in the searches for several queries.

        Wordings of one question whose scores can be added are one ``Query``, with ``also``: that
        is exact, and quicker. Ranks are for those whose scores cannot be compared, such as
        questions of very different lengths. Scores are sums of weight / (rank_constant + rank).

        Parameters
        ----------
        queries
            As in ``search_batch``.
        k, filter, fetch_k
            As in ``search_hybrid``.
        weights, rank_constant
            As in ``bm25rag.fusion.fuse``; a weight for each query.
        offset, group, per_group, decay
            As in ``search_hybrid``.
        """
        from bm25rag.search.hybrid_and_fused import search_each

        batch, snapshot = list(check_sequence("queries", queries, "queries")), self._live.snapshot
        wanted = check_wanted(snapshot, k, filter, None, offset, group, per_group, decay)
        terms = terms_of_each(snapshot.analyzer, batch)
        return search_each(snapshot, terms, wanted, fetch_k, weights, rank_constant)

    # --- documents and statistics ------------------------------------------------------

    def get(self, ids: Iterable[str | int], filter: FilterSpec | None = None) -> list[Document]:
        """Return documents by id, in the order asked.

        Parameters
        ----------
        ids, filter
            The documents; those that are unknown, or that the filter rejects, are left out.
        """
        wanted, snapshot = check_ids(ids), self._live.snapshot
        return snapshot.documents(wanted, parse_filter(filter, snapshot))

    def count(self, filter: FilterSpec | None = None) -> int:
        """Count the documents that the filter passes; ``None`` for all.

        Parameters
        ----------
        filter
            As in ``search``.
        """
        snapshot = self._live.snapshot
        return snapshot.count_passing(parse_filter(filter, snapshot))

    def ids(
        self, filter: FilterSpec | None = None, *, k: int | None = None, offset: int = 0
    ) -> list[str]:
        """Return the ids of the documents that the filter passes, in document order.

        Parameters
        ----------
        filter
            As in ``search``; ``None`` for all documents.
        k
            How many at most, >= 0; ``None`` for all.
        offset
            How many of the first to leave out, >= 0.
        """
        first = check_count("offset", offset)
        stop = None if k is None else first + check_count("k", k)
        snapshot = self._live.snapshot
        return snapshot.ids(parse_filter(filter, snapshot), first, stop)

    def __len__(self) -> int:
        return self._live.state.snapshot.count

    def __contains__(self, id: object) -> bool:
        try:
            return self._live.snapshot.find(check_id("id", id)) is not None
        except TypeError:
            return False

    def vocabulary(self) -> list[str]:
        """Return the terms of the living documents, by code point."""
        return self._live.snapshot.frequencies()[0]

    def document_frequencies(self) -> Int64:
        """Return in how many documents each term of ``vocabulary()`` occurs, int64 (V,)."""
        return self._live.snapshot.frequencies()[1]

    def to_scipy(self) -> csc_array:
        """Return the eager scores: float32 (N, V), columns as ``vocabulary()``, without the shift.

        It needs SciPy, which the extra ``scipy`` brings.
        """
        from bm25rag.search.matrix import score_matrix

        return score_matrix(self._live.snapshot)

    def stats(self) -> dict[str, Any]:
        """Return counts and sizes, as JSON values.

        ``documents``, ``terms``, ``postings``, ``tokens`` and ``average_length`` are of the living
        documents, and all that a view made by ``restricted`` has. ``deleted`` counts the documents
        that are still in the ``segments``, ``bytes`` are those of all arrays, in ``bytes_by_kind``
        by what they hold, and about ``compaction_frees`` of them would go with ``compact``.
        ``impact_codes`` and ``shards`` are counts, ``commit_id`` as the attribute, and
        ``committed`` when the last commit was made, an ISO date in UTC; ``None`` in memory.
        """
        return self._live.stats()

    # --- parameters --------------------------------------------------------------------

    @property
    def analyzer(self) -> Analyzer:
        """How texts and queries become terms."""
        return self._live.state.snapshot.analyzer

    @property
    def variant(self) -> str:
        """The member of the BM25 family."""
        return self._live.state.snapshot.parameters.variant

    @property
    def k1(self) -> float:
        """Saturation of the term frequency."""
        return self._live.state.snapshot.parameters.k1

    @property
    def b(self) -> float:
        """Strength of the length normalisation."""
        return self._live.state.snapshot.parameters.b

    @property
    def delta(self) -> float | None:
        """The lower bound in force, ``None`` where the variant has none."""
        return self._live.state.snapshot.parameters.effective_delta

    @property
    def delta_on(self) -> str:
        """Whether the lower bound counts for all query terms or the matched ones."""
        return self._live.state.snapshot.parameters.delta_on

    @property
    def fields(self) -> dict[str, float] | None:
        """The weight of each field; ``None`` if documents have no fields."""
        fields = self._live.state.snapshot.parameters.fields
        return None if fields is None else dict(fields)

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._live.attachment.read_only

    @property
    def commit_id(self) -> str:
        """What tells this state from all others: a key for caches of results.

        An index read from a folder has the number of its commit and a digest, the same in all
        processes, copies of the folder and after opening it again. What is not committed has a
        random id, and so have indexes in memory and ``restricted`` views: that of no other index
        but a ``copy.copy``. A view made by ``tune`` adds a digest of the parameters.
        """
        return self._live.state.commit_id

    @property
    def extra(self) -> dict[str, Any]:
        """What the caller last saved with the index for its own use; a fresh copy."""
        return deepcopy(self._live.state.extra)

    # --- writing -----------------------------------------------------------------------

    def add(
        self,
        texts: Iterable[Text],
        ids: Iterable[str | int] | None = None,
        metadata: Iterable[Mapping[str, Any] | None] | None = None,
        *,
        payloads: Iterable[bytes | None] | None = None,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
        vectors: Iterable[Vector | None] | None = None,
    ) -> list[str]:
        """Add documents; all of them or, if anything is wrong, none. Return the ids written.

        Beyond the index, a build holds about 6 bytes for each posting, 50 MB, 10 MB more for
        each thread, and what ``texts`` holds.

        Parameters
        ----------
        texts
            Any iterable of texts; a list of strings in place of a text is taken as its terms.
            In an index with fields, a text may be a mapping of fields to their texts.
        ids
            Their ids, as many, strings; integers become such. ``None`` for the next decimal
            numbers, never used before.
        metadata
            A dict of JSON values, dates and datetimes for each, or ``None``.
        payloads
            Opaque bytes for each, or ``None``.
        store_text
            Whether to keep the texts, so that ``Hit.text`` and ``get`` return them.
        on_duplicate
            What to do if an id exists already, or occurs twice in the call: ``"error"`` writes
            nothing, ``"skip"`` keeps the first, ``"replace"`` the last, which moves to the end.
        progress
            Whether to show a progress bar.
        threads
            How many threads to use at most, >= 1; ``None`` for one a core, and one less while other
            threads read. The index is the same.
        vectors
            A sparse vector for each, such as a learned encoder makes, or ``None``: weights by
            term, or by the number of a term, or an object with ``indices`` and ``values``; or a
            SciPy array with a row for each. See ``vectors``, the attribute.

        Raises
        ------
        ValueError
            If the iterables differ in length.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        MetadataError
            If metadata cannot be stored; the message names document and key.
        """
        from bm25rag.additions import NewDocuments

        given = texts, ids, metadata, payloads, vectors, store_text, progress
        documents = NewDocuments(*given, self._live.state.names)
        return self._live.add(documents, on_duplicate, threads)

    def add_documents(
        self,
        documents: Iterable[Document | Mapping[str, Any]],
        *,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """Add documents, or the rows of a table; all of them or, if anything is wrong, none.

        This adds what ``get`` returns to another index, without vectors, which ``vectors.get``
        returns. Otherwise it is like ``add``, and raises what that does.

        Parameters
        ----------
        documents
            Any iterable of documents with ids and texts, or of mappings: of a row, ``id`` and
            ``text`` are these, and the others its metadata. So a data frame of pandas or Polars,
            a table of Arrow, and a dataset of Hugging Face are taken whole.
        store_text, on_duplicate, progress, threads
            As in ``add``.

        Raises
        ------
        ValueError
            If a document has no text, or a row no id.
        """
        from bm25rag.additions import NewRecords

        records = NewRecords(documents, store_text, progress, self._live.state.names)
        return self._live.add(records, on_duplicate, threads)

    def delete(
        self, ids: Iterable[str | int] | None = None, filter: FilterSpec | None = None
    ) -> list[str]:
        """Delete documents, by their ids, by a filter or by both; unknown ids are ignored.

        It returns the ids that this call deleted, in the order asked for, or in document order.

        Parameters
        ----------
        ids
            The documents; ``None`` for all that the filter passes.
        filter
            As in ``search``. Documents that it rejects now stay, even if they passed when you
            looked up their ids and another thread has replaced them since.

        Raises
        ------
        TypeError, ValueError
            If nothing is given, or there are no ids and the filter, ``{}``, rejects nothing.
        """
        return self._live.delete(ids, filter)

    def update_metadata(
        self, ids: Iterable[str | int], metadata: Iterable[Mapping[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of documents, which keep their places; unknown ids are ignored.

        It returns the ids of the documents that were changed, in the order asked for.

        Parameters
        ----------
        ids
            The documents.
        metadata
            The whole new metadata of each, as many; otherwise this raises as ``add``.
        """
        return self._live.update_metadata(ids, metadata)

    def maintain(self) -> None:
        """Merge what writes have left unmerged, so that searches look into few segments.

        A write merges at most a sixteenth of the index (or 4 MB), which keeps it quick and
        the number of segments bounded; after this there are at most log3(N) for N documents.
        Searches and writes continue meanwhile, so it may run in your own executor:
        ``executor.submit(index.maintain)``.
        """
        self._live.maintain()

    def compact(self) -> None:
        """Merge everything into one segment, without what was deleted or replaced before this call.

        Texts, metadata and terms of deleted documents are then in no array of the index,
        and in no file of its folder after the next ``commit()``. Searches and writes
        continue meanwhile.
        """
        self._live.compact()

    # --- views -------------------------------------------------------------------------

    def tune(
        self,
        variant: VariantName = UNCHANGED,
        *,
        k1: float = UNCHANGED,
        b: float = UNCHANGED,
        delta: float | None = UNCHANGED,
        delta_on: DeltaOn = UNCHANGED,
        fields: Mapping[str, float] = UNCHANGED,
        also: Iterable[float] = UNCHANGED,
    ) -> Self:
        """Return a read-only view of the same documents under other parameters.

        Parameters that are not given stay; a delta is dropped if the new variant has none.
        The view keeps the documents of this moment, whatever is written later.

        Parameters
        ----------
        variant, k1, b, delta, delta_on
            As in the constructor.
        fields
            New weights of fields of the index; the others stay.
        also
            New weights of the analyzer's further analyses, one for each.
        """
        given: dict[str, Any] = {"variant": variant, "k1": k1, "b": b, "delta": delta}
        given |= {"delta_on": delta_on, "fields": fields}
        return self._from_live(
            LiveIndex(self._live.state.tuned(given, also), TUNED.of(self._live.attachment))
        )

    def snapshot(self) -> Self:
        """Return a read-only index of the documents of this moment, whatever is written later."""
        return self._from_live(LiveIndex(self._live.state, SNAPSHOT.of(self._live.attachment)))

    def restricted(
        self, filter: FilterSpec, *, statistics: Literal["whole", "part"] = "whole"
    ) -> Self:
        """Return a read-only view of the documents that pass a filter, as if there were no others.

        Nothing that the view is asked, with whatever arguments, tells of another document: its id
        is unknown, and its words are not found, offered or counted. The view follows the writes
        and refreshes of this index. What is made of it, such as a copy, a pickle, or what ``save``
        writes, holds its documents alone, and is scored by their statistics.

        Parameters
        ----------
        filter
            As in ``search``, but must reject something; it is evaluated once after each write, a
            callable too.
        statistics
            By which statistics documents are scored: ``"whole"`` for those of this index, so that
            scores are those of ``search`` with the filter, and ``explain`` shows in how many of all
            documents a term occurs; ``"part"`` for those of the documents that pass, so that
            scores are those of an index built of them alone.

        Examples
        --------
        >>> metadata = [{"tenant": "a"}, {"tenant": "b"}]
        >>> index = BM25Index.from_texts(["A cat sat.", "Cats run."], metadata=metadata)
        >>> view = index.restricted({"tenant": "b"})
        >>> [hit.id for hit in view.search("cats")], "0" in view, len(view)
        (['1'], False, 1)
        """
        from bm25rag.live.restricted_index import RestrictedIndex

        return self._from_live(RestrictedIndex(self._live, filter, statistics))

    def reanalyze(self, analyzer: Analyzer | None = None) -> Self:
        """Return a new index of the same documents, analysed anew from their stored texts.

        For a stemmer that has changed since, or another analyzer. Vectors stay as they are.

        Parameters
        ----------
        analyzer
            The new analyzer; ``None`` for the present settings.

        Raises
        ------
        ValueError
            If the text of a document is not stored.
        ReadOnlyError
            If the folder is divided into shards, which the new index, in memory, would not be.
        """
        from bm25rag.live.reanalysis import reanalyzed

        return self._from_live(reanalyzed(self._live, analyzer))

    # --- folders -----------------------------------------------------------------------

    def save(
        self,
        path: str | PathLike[str],
        *,
        extra: dict[str, Any] | None = None,
        overwrite: bool = True,
        storage_options: dict[str, Any] | None = None,
    ) -> None:
        """Save the index in a folder, in one atomic step.

        A folder that holds an index is replaced: until the last moment it opens to the
        old one, then to the new. In the folder that it was last saved in, or that it is a
        copy of, only what is new is written, unless another has written there since.

        Parameters
        ----------
        path
            The folder; made if it is missing. Or the URL of one that fsspec can write, such as
            ``"s3://bucket/index"``.
        extra
            JSON values to keep with the index, in the same atomic step: the settings of
            an adapter, say. ``None`` keeps those of the last time.
        overwrite
            Whether to replace an index that the folder holds.
        storage_options
            As in ``open``.

        Raises
        ------
        FileExistsError, NotAnIndexError
            If the folder holds an index and ``overwrite`` is false, or something else.
        LockedError
            If a writer has the folder open.
        RemoteError, OSError
            As ``open``, or if the disk refuses; what the folder held is still there.
        """
        check_flag("overwrite", overwrite)
        folder = None if is_url(path) else local_folder(path, storage_options=storage_options)
        self._live.save(path, folder, extra, overwrite, storage_options)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        mode: Mode = "r",
        *,
        mmap: bool = True,
        tokenizer: Tokenizer | None = None,
        verify: bool = False,
        untrusted: bool = False,
        timeout: float = 0.0,
        analyzer: Analyzer | None = None,
        variant: VariantName | None = None,
        k1: float | None = None,
        b: float | None = None,
        delta: float | None = None,
        delta_on: DeltaOn | None = None,
        fields: Mapping[str, float] | None = None,
        cache: str | PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        offline: bool = False,
        commit: str | None = None,
        keep: Span | None = None,
    ) -> Self:
        """Open a saved index, or, in mode ``"a"``, make it if there is none.

        Parameters
        ----------
        path
            The folder, or the URL of one that fsspec can read, such as ``"s3://bucket/index"``:
            files that the cache lacks are fetched and checked, and the cache is mapped.
        mode
            ``"r"`` for a reader; ``"w"`` for the one writer, which locks the folder and
            has ``commit``, ``rollback`` and ``close``; ``"a"`` for the writer too, where a
            folder that is missing or empty gets an empty index first, which other processes
            can open from then on.
        mmap
            Whether to map the files, which takes milliseconds and shares memory with
            other processes, or to read them.
        tokenizer
            The callable of an analyzer that was made with one.
        verify
            Whether to check everything now, as ``verify`` does, instead of each part at first use.
        untrusted
            Whether the folder may come from a stranger: an analyzer with a ``token_pattern`` of
            its own is refused, since it could keep a search busy forever, and everything is
            verified, at each ``refresh`` too.
        timeout
            How many seconds a writer waits for another writer to close, >= 0.
        analyzer, variant, k1, b, delta, delta_on, fields
            As in the constructor. Mode ``"a"`` makes an index with them; an index that exists
            must have those that are not ``None``, in every mode.
        cache, storage_options, offline
            For a URL, see ``docs/remote.md``: the folder of caches; credentials, endpoints and time
            limits for fsspec, which are not stored; whether to open what the cache holds without
            asking the store.
        commit
            The ``commit_id`` of the commit to read and to stay at; ``None`` for the last one.
        keep
            For a writer: how long a commit is kept after a later one has replaced it, such as
            ``"7d"``, ``"12h"`` or a ``timedelta``; ``"0"`` for not at all, as at first. The folder
            remembers it with the next commit. ``None``: as it remembers.

        Raises
        ------
        NotAnIndexError, CommitNotFoundError
            If the folder holds no index, or not this commit; in mode ``"a"``, if it holds
            something else.
        FormatVersionError, CorruptIndexError, UntrustedIndexError
            If a newer bm25rag wrote it, a file is damaged, or a stranger could misuse it.
        LockedError, ReadOnlyError
            If ``mode`` is not ``"r"``, and another writer still has the folder open or ``path`` is
            a URL, which nothing can lock.
        ValueError, TokenizerRequiredError
            If the index has other settings than those given, or its analyzer needs ``tokenizer``.
        RemoteError, MissingDependencyError
            If a store refuses or cannot be reached, or a URL needs a package that is missing.

        Warns
        -----
        AnalyzerChangedWarning
            If the installed stemmer gives other stems than those indexed.
        """
        parameters: dict[str, Any] = {"variant": variant, "k1": k1, "b": b, "delta": delta}
        parameters |= {"delta_on": delta_on, "fields": fields}
        live = open_index(
            path,
            mode,
            mmap=mmap,
            tokenizer=tokenizer,
            verify=verify,
            untrusted=untrusted,
            timeout=timeout,
            analyzer=analyzer,
            cache=cache,
            storage_options=storage_options,
            offline=offline,
            commit=commit,
            keep=keep,
            **parameters,
        )
        return cls._from_live(live)

    def refresh(self) -> bool:
        """Go to the last commit of the folder, as another process may have made it.

        Takes milliseconds, and some microseconds if there is none: what is open already
        stays open. Searches in other threads see the state before or after, and a snapshot
        taken earlier keeps its own. An index opened from a URL asks the store, and fetches
        what is new. If this raises, as ``open`` may, what was opened can still be searched. It
        returns whether there was a newer commit, or damage was found since: then its files
        are opened anew, as they may have been restored. An index that was not opened with
        ``mode="r"`` raises a ``StorageError``.
        """
        return self._live.refresh()

    # Those for a folder, whoever has it open.
    verify: Final = staticmethod(maintenance.verify)
    commits: Final = staticmethod(maintenance.commits)
    backup: Final = staticmethod(maintenance.backup)
    restore: Final = staticmethod(maintenance.restore)
    repair: Final = staticmethod(maintenance.repair)

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        If this raises an ``OSError``, the last commit is still there, or, if only the last flush
        failed, the new one. The next commit writes new files.
        """
        self._live.commit()

    def rollback(self) -> None:
        """Go back to the last commit."""
        self._live.rollback()

    def close(self) -> None:
        """Give up the writer's lock, without a commit; without a lock, do nothing.

        An ``UncommittedWarning`` says that changes since the last commit are lost; so it does of a
        writer that is deleted, or still open when the program ends.
        """
        self._live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._live.finish(error is None)

    # --- state and attachment -------------------------------------------------------

    @classmethod
    def _from_live(cls, live: LiveIndex) -> Self:
        index = cls.__new__(cls)
        index._live = live
        return index

    @property
    def _snapshot(self) -> Snapshot:
        """What to read from now."""
        return self._live.snapshot

    def __copy__(self) -> Self:
        return self._from_live(self._live.copy())

    def _repr_html_(self) -> str:
        from bm25rag.common.tables import table

        settings = ("variant", "k1", "b", "delta", "fields", "analyzer", "read_only")
        rows = [*self.stats().items(), *((name, getattr(self, name)) for name in settings)]
        shown = [(name, str(value)) for name, value in rows]
        return table(type(self).__name__, ("", ""), shown, len(shown))

    def __repr__(self) -> str:
        settings = f"variant={self.variant!r}, analyzer={self.analyzer!r}"
        noun = "document" if len(self) == 1 else "documents"
        return f"{type(self).__name__}({len(self)} {noun}, {settings})"
