"""BM25Index: an exact BM25 index that can be searched, changed, filtered, tuned and saved."""

from __future__ import annotations

import atexit
import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from sys import is_finalizing
from threading import TIMEOUT_MAX
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    cast,
    get_args,
)
from weakref import WeakSet

import numpy as np

from bm25rag.analysis import Analyzer, Tokenizer
from bm25rag.attachment import CLOSED, MEMORY, SNAPSHOT, TUNED, Attachment
from bm25rag.common.arrays import Float64, Int64
from bm25rag.common.caller import warn
from bm25rag.common.checks import (
    check_choice,
    check_count,
    check_flag,
    check_ids,
    check_real,
    check_sequence,
)
from bm25rag.common.gil import note_read, others_read, releasing_gil
from bm25rag.common.urls import is_url, local_path
from bm25rag.documents import Document, Hit, Text
from bm25rag.errors import MetadataError, ReadOnlyError, StorageError, UncommittedWarning
from bm25rag.kernels.backend import cores
from bm25rag.scoring.variants import DeltaOn, Parameters, VariantName
from bm25rag.search.arguments import check_search, parse_filter
from bm25rag.search.filtered_search import search_filtered, search_one
from bm25rag.search.queries import Query, Terms, terms_of, terms_of_each, warn_of_texts
from bm25rag.search.ranking import score_all
from bm25rag.search.results import BatchResult
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.view import SegmentView
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.folder_writer import FolderWriter
from bm25rag.storage.manifest import is_sharded
from bm25rag.storage.saved_copy import SavedCopy
from bm25rag.storage.state import State as StoredState
from bm25rag.storage.state import check_extra, check_settings
from bm25rag.write_lock import WriteLock

if TYPE_CHECKING:
    from scipy.sparse import csc_array

    from bm25rag.additions import Source
    from bm25rag.common.sparse import Vector
    from bm25rag.filters import Filter, FilterSpec
    from bm25rag.fusion import FusionMethod
    from bm25rag.search.correction import Correction
    from bm25rag.search.explain import Explanation
    from bm25rag.segments.segment import Segment
    from bm25rag.storage.remote_mirror import Mirror
    from bm25rag.vectors import Vectors

# What a process that opens an index and searches it does not need is imported where it is used:
# that halves the time until its first answer.

Mode: TypeAlias = Literal["r", "w", "a"]
"""How a folder is opened."""

OnDuplicate: TypeAlias = Literal["error", "skip", "replace"]
"""What ``add`` does with an id that is there already."""


class _Unchanged:
    """Stands for an argument of ``tune`` that is not given."""

    def __repr__(self) -> str:
        return "<unchanged>"


_KEEP: Any = _Unchanged()


class _State(NamedTuple):
    """All there is to an index at one moment; a write replaces it as a whole.

    ``probe`` holds words and their stems at the time they were indexed, ``extra`` what a
    caller keeps with the index.
    """

    snapshot: Snapshot
    next_id: int
    probe: dict[str, str]
    extra: dict[str, Any]

    @classmethod
    def of(cls, stored: StoredState) -> _State:
        """Return the state that was stored."""
        snapshot = Snapshot(stored.views, stored.parameters, stored.analyzer, stored.statistics)
        return cls(snapshot, stored.next_id, stored.probe, stored.extra)

    def stored(self) -> StoredState:
        """Return the state as it is stored."""
        snapshot, next_id, probe, extra = self
        views = list(snapshot.views)
        settings = snapshot.analyzer, snapshot.parameters
        return StoredState(*settings, views, next_id, probe, extra, snapshot.statistics)


class BM25Index:
    """An exact BM25 index that can be updated, filtered, tuned and saved.

    Reading is safe from many threads while one writes: a reader sees the state before
    or after a write, never between. A copy is an index of its own, in memory, which can be
    changed; so are deep copies and pickles, except those of a reader of a folder: they are
    readers of that folder, and such a pickle is small.

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

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If a parameter is outside its formula's domain.

    Examples
    --------
    >>> index = BM25Index.from_texts(["A cat sat.", "Dogs run.", "Cats and dogs."])
    >>> [hit.id for hit in index.search("cats")]
    ['0', '2']
    """

    _state: _State
    _attachment: Attachment
    # What was last saved in a folder that this is not the writer of.
    _saved: SavedCopy | None
    _lock: WriteLock
    # Whether it was said at exit that changes are lost.
    _warned = False

    # What opens a folder; a sharded index has its own.
    _reader_type: ClassVar[type[FolderReader]] = FolderReader
    _writer_type: ClassVar[type[FolderWriter]] = FolderWriter

    def __init__(
        self,
        analyzer: Analyzer | None = None,
        *,
        variant: VariantName = "lucene",
        k1: float = 1.2,
        b: float = 0.75,
        delta: float | None = None,
        delta_on: DeltaOn = "all",
    ) -> None:
        _check_analyzer(analyzer)
        parameters = Parameters(variant, k1, b, delta, delta_on)
        snapshot = Snapshot((), parameters, Analyzer() if analyzer is None else analyzer)
        self._begin(_State(snapshot, 0, {}, {}), MEMORY)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[Text],
        ids: Iterable[str] | None = None,
        metadata: Iterable[dict[str, Any] | None] | None = None,
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
    ) -> Self:
        """Make an index and add texts to it, in one call.

        Parameters
        ----------
        texts, ids, metadata, payloads, store_text, on_duplicate, progress, threads, vectors
            As in ``add``.
        analyzer, variant, k1, b, delta, delta_on
            As in the constructor.
        """
        index = cls(analyzer, variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on)
        index.add(
            texts,
            ids,
            metadata,
            payloads=payloads,
            store_text=store_text,
            on_duplicate=on_duplicate,
            progress=progress,
            threads=threads,
            vectors=vectors,
        )
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
    ) -> Self:
        """Build an index in a folder, perhaps a larger one than memory, and open it for reading.

        The folder gets the files that ``add`` and ``save`` would write. Documents are read
        once, gathered part by part in the folder, and merged. If that is interrupted, call it
        again with the same documents and settings: it goes on where it was.

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
            How much memory to use, ``"512MiB"``, ``"2GiB"``, ``"1.5GB"`` or a number of bytes:
            the most that the resident memory of the process grows by, without pages of mapped
            files, which the system takes back when it needs them, and without what
            ``documents`` itself holds.
        store_text, on_duplicate, progress, threads
            As in ``add``.
        extra
            JSON values to keep with the index, as in ``save``.
        analyzer, variant, k1, b, delta, delta_on
            As in the constructor.

        Raises
        ------
        TypeError
            If an argument or a document has the wrong type; the message says which.
        ValueError
            If ``shards`` is less than 1, ``memory`` is too little, or an interrupted build had
            other documents or settings.
        FileExistsError
            If the folder holds an index.
        NotAnIndexError
            If the folder holds something else.
        DuplicateIdError, MetadataError
            As ``add``.
        LockedError
            If another process builds there.
        OSError
            If the disk is full; with more room, the same call goes on.
        """
        from bm25rag.building.build import build_index
        from bm25rag.building.plan import check_plan

        empty = cls(analyzer, variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on)
        if shards is not None:
            from bm25rag.sharded import build

            sharded = build(
                documents,
                folder,
                shards,
                memory=memory,
                store_text=store_text,
                on_duplicate=on_duplicate,
                progress=progress,
                threads=threads,
                extra=extra,
                analyzer=empty.analyzer,
                **empty._state.snapshot.parameters.to_dict(),
            )
            return cast("Self", sharded)
        plan = check_plan(empty, memory, store_text, on_duplicate, progress, threads, extra)
        build_index(documents, folder, plan)
        return cls.open(folder, tokenizer=empty.analyzer.tokenizer)

    # --- searching ---------------------------------------------------------------------

    def search(
        self,
        query: Query,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        correct: bool = False,
        offset: int = 0,
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
        offset
            How many of the best documents to leave out: the next page begins at ``offset + k``.

        Returns
        -------
        hits
            By score descending, then in document order.

        Raises
        ------
        TypeError
            If an argument has the wrong type.
        ValueError
            If ``k`` or ``offset`` is negative, ``min_score`` NaN, or a weight NaN, infinite or
            beyond 1e30.
        FilterError
            If the filter is malformed.

        Warns
        -----
        UserWarning
            If no term of a list is known and one holds white space: it looks like a text.
        """
        snapshot = self._snapshot
        most, parsed, floor, first = check_search(snapshot, k, filter, min_score, offset)
        terms, corrections = terms_of(snapshot.analyzer, query), None
        if check_flag("correct", correct):
            (corrected,) = _correct(snapshot, [terms], parsed)
            terms, corrections = corrected.terms, corrected.corrections
        rows, scores = search_one(snapshot, terms, most, parsed, floor, first)
        if not rows and parsed is None:  # or a warning would tell what rejected documents hold
            warn_of_texts(snapshot, [query], [0])
        return snapshot.hits(rows, scores, corrections)

    def search_batch(
        self,
        queries: Iterable[Query],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        threads: int | None = None,
        correct: bool = False,
        offset: int = 0,
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
        correct, offset
            As in ``search``.

        Returns
        -------
        result
            Rows, scores and counts as arrays; ``ids()`` and ``hits()`` on demand.

        Raises
        ------
        TypeError
            If an argument has the wrong type; a bare string is not a batch.
        ValueError
            If ``k`` or ``offset`` is negative, ``threads`` less than 1, ``min_score`` NaN or a
            weight wrong.
        FilterError
            If the filter is malformed.
        """
        batch = list(check_sequence("queries", queries, "queries"))
        workers = None if threads is None else check_count("threads", threads, least=1)
        snapshot = self._snapshot
        most, parsed, floor, first = check_search(snapshot, k, filter, min_score, offset)
        terms = terms_of_each(snapshot.analyzer, batch)
        corrections = []
        if check_flag("correct", correct):
            corrected = _correct(snapshot, terms, parsed)
            terms = [one.terms for one in corrected]
            corrections = [one.corrections for one in corrected]
        result = search_filtered(snapshot, terms, most, parsed, floor, first, workers)
        result.corrections = corrections
        if parsed is None:  # as in ``search``
            warn_of_texts(snapshot, batch, result.counts.tolist())
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
        snapshot = self._snapshot
        return score_all(snapshot, terms_of(snapshot.analyzer, query))

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
        snapshot = self._snapshot
        parsed = parse_filter(filter, snapshot)
        terms = terms_of(snapshot.analyzer, query)
        from bm25rag.search.explain import explain

        return explain(snapshot, terms, id, parsed)

    def expand(
        self,
        query: Query,
        filter: FilterSpec | None = None,
        *,
        fb_docs: int = 10,
        fb_terms: int = 20,
        original_query_weight: float = 0.8,
    ) -> dict[str, float]:
        """Expand a query by terms of the documents that answer it best (RM3).

        It finds more where questions are short and collections of one subject, and less
        where words are pairs of characters, as in Chinese: measure before you use it. It
        reads all postings of the index, which takes longer than a search.

        Parameters
        ----------
        query
            As in ``search``.
        filter
            As in ``search``; only documents that pass are learnt from.
        fb_docs
            How many documents to learn from.
        fb_terms
            How many terms to add, and to take from each document.
        original_query_weight
            The share of the query's own terms in the weights, from 0 to 1.

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
        snapshot = self._snapshot
        parsed = parse_filter(filter, snapshot)
        terms = terms_of(snapshot.analyzer, query)
        feedback = search_filtered(snapshot, [terms], documents, parsed, None, 0, 1)
        from bm25rag.search.expansion import expand

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
        snapshot = self._snapshot
        parsed = parse_filter(filter, snapshot)
        return _correct(snapshot, [terms_of(snapshot.analyzer, query)], parsed)[0]

    @property
    def vectors(self) -> Vectors:
        """The sparse vectors that documents were added with: to search by them, and read them."""
        from bm25rag.vectors import Vectors

        return Vectors(partial(getattr, self, "_snapshot"))  # which can be pickled

    def search_hybrid(
        self,
        query: Query,
        vector: Vector,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        fetch_k: int = 100,
        method: FusionMethod = "minmax",
        weights: Sequence[float] | None = None,
        rank_constant: int = 60,
        offset: int = 0,
    ) -> list[Hit]:
        """Find the best k documents by BM25 and by their sparse vectors, fused.

        Parameters
        ----------
        query
            As in ``search``.
        vector
            As in ``vectors.search``.
        k, filter
            As in ``search``; the filter holds for both.
        fetch_k
            How many documents of each ranking are fused, >= 0; at least ``k`` are.
        method, weights, rank_constant
            As in ``bm25rag.fusion.fuse``; the first weight is that of BM25.
        offset
            As in ``search``. All pages are of one ranking, of the documents that are fused: a
            larger ``fetch_k`` lets them go deeper.

        Returns
        -------
        hits
            With their fused scores, best first.

        Raises
        ------
        TypeError, ValueError, FilterError
            If an argument is wrong.
        """
        from bm25rag.fusion import fuse
        from bm25rag.vectors import vector_terms

        snapshot = self._snapshot
        most, parsed, _, first = check_search(snapshot, k, filter, None, offset)
        depth = max(most, check_count("fetch_k", fetch_k))
        terms, weighted = terms_of(snapshot.analyzer, query), vector_terms(vector)
        rankings = [
            [(str(row), score) for row, score in zip(*found, strict=True)]
            for found in (
                search_one(snapshot, terms, depth, parsed, None, 0),
                search_one(snapshot.by_vectors, weighted, depth, parsed, None, 0),
            )
        ]
        fused = fuse(rankings, method, weights, first + most if most else 0, rank_constant)[first:]
        return snapshot.hits([int(row) for row, _ in fused], [score for _, score in fused])

    # --- documents and statistics ------------------------------------------------------

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
        wanted, snapshot = check_ids(ids), self._snapshot
        parsed = parse_filter(filter, snapshot)
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
        snapshot = self._snapshot
        parsed = parse_filter(filter, snapshot)
        if parsed is None:
            return snapshot.count
        masks = snapshot.masks(parsed)
        return sum(int(np.count_nonzero(mask)) for mask in masks if mask is not None)

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

        Raises
        ------
        TypeError, ValueError, FilterError
            If an argument is wrong.
        """
        first = check_count("offset", offset)
        stop = None if k is None else first + check_count("k", k)
        snapshot = self._snapshot
        return snapshot.ids(parse_filter(filter, snapshot), first, stop)

    def __len__(self) -> int:
        return self._state.snapshot.count

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._snapshot.find(id) is not None

    def vocabulary(self) -> list[str]:
        """Return the terms of the living documents, by code point."""
        return self._snapshot.frequencies()[0]

    def document_frequencies(self) -> Int64:
        """Return in how many documents each term of ``vocabulary()`` occurs, int64 (V,)."""
        return self._snapshot.frequencies()[1]

    def to_scipy(self) -> csc_array:
        """Return the eager scores: float32 (N, V), columns as ``vocabulary()``, without the shift.

        Raises
        ------
        MissingDependencyError
            If SciPy is not installed, which the extra ``scipy`` brings.
        """
        from bm25rag.search.matrix import score_matrix

        return score_matrix(self._snapshot)

    def stats(self) -> dict[str, int | float]:
        """Return counts and sizes: documents, terms, postings, tokens, average_length, ..."""
        snapshot = self._snapshot
        frequencies = snapshot.frequencies()[1]
        return {
            "documents": snapshot.count,
            "terms": len(frequencies),
            "postings": int(frequencies.sum()),
            "tokens": snapshot.tokens,
            "average_length": snapshot.average_length,
            "segments": len(snapshot.views),
            "impact_codes": sum(len(view.segment.postings.code_tf) for view in snapshot.views),
            "bytes": sum(view.segment.nbytes for view in snapshot.views),
        }

    # --- parameters --------------------------------------------------------------------

    @property
    def analyzer(self) -> Analyzer:
        """How texts and queries become terms."""
        return self._state.snapshot.analyzer

    @property
    def variant(self) -> str:
        """The member of the BM25 family."""
        return self._state.snapshot.parameters.variant

    @property
    def k1(self) -> float:
        """Saturation of the term frequency."""
        return self._state.snapshot.parameters.k1

    @property
    def b(self) -> float:
        """Strength of the length normalisation."""
        return self._state.snapshot.parameters.b

    @property
    def delta(self) -> float | None:
        """The lower bound in force, ``None`` where the variant has none."""
        return self._state.snapshot.parameters.effective_delta

    @property
    def delta_on(self) -> str:
        """Whether the lower bound counts for all query terms or the matched ones."""
        return self._state.snapshot.parameters.delta_on

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._attachment.read_only

    @property
    def extra(self) -> dict[str, Any]:
        """What the caller last saved with the index for its own use; a fresh copy."""
        from bm25rag.filters.values import fresh

        extra: dict[str, Any] = fresh(self._state.extra)
        return extra

    # --- writing -----------------------------------------------------------------------

    def add(
        self,
        texts: Iterable[Text],
        ids: Iterable[str] | None = None,
        metadata: Iterable[dict[str, Any] | None] | None = None,
        *,
        payloads: Iterable[bytes | None] | None = None,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
        vectors: Iterable[Vector | None] | None = None,
    ) -> list[str]:
        """Add documents; all of them or, if anything is wrong, none.

        Beyond the index, a build holds about 6 bytes for each posting, 50 MB, 10 MB more for
        each thread, and what ``texts`` holds.

        Parameters
        ----------
        texts
            Any iterable of texts; a list of strings in place of a text is taken as its terms.
        ids
            Their ids, as many; ``None`` for the next decimal numbers, never used before.
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
            How many threads to use at most; ``None`` for one a core, and one less while other
            threads read. The index is the same.
        vectors
            A sparse vector for each, such as a learned encoder makes, or ``None``: weights by
            term, or by the number of a term, or an object with ``indices`` and ``values``; or a
            SciPy array with a row for each. See ``vectors``, the attribute.

        Returns
        -------
        ids
            The ids written, in document order.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type; the message says which.
        ValueError
            If the iterables differ in length, or ``threads`` is less than 1.
        DuplicateIdError
            If an id is there already and ``on_duplicate`` is ``"error"``.
        MetadataError
            If metadata cannot be stored; the message names document and key.
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        from bm25rag.additions import NewDocuments

        documents = NewDocuments(texts, ids, metadata, payloads, vectors, store_text, progress)
        return self._add(documents, on_duplicate, threads)

    def add_documents(
        self,
        documents: Iterable[Document],
        *,
        store_text: bool = True,
        on_duplicate: OnDuplicate = "error",
        progress: bool = False,
        threads: int | None = None,
    ) -> list[str]:
        """Add ``Document`` records; all of them or, if anything is wrong, none.

        This adds what ``get`` returns to another index, without vectors, which ``vectors.get``
        returns. Otherwise it is like ``add``.

        Parameters
        ----------
        documents
            Any iterable of documents with ids and texts.
        store_text, on_duplicate, progress, threads
            As in ``add``.

        Returns
        -------
        ids
            The ids written, in document order.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type; the message says which.
        ValueError
            If a document has no text, or ``threads`` is less than 1.
        DuplicateIdError, MetadataError, ReadOnlyError
            As ``add``.
        """
        from bm25rag.additions import NewRecords

        return self._add(NewRecords(documents, store_text, progress), on_duplicate, threads)

    def _add(self, documents: Source, on_duplicate: str, threads: int | None) -> list[str]:
        from bm25rag.additions import analyse_documents

        check_choice("on_duplicate", on_duplicate, get_args(OnDuplicate))
        most = (
            max(1, cores() - others_read())
            if threads is None
            else check_count("threads", threads, least=1)
        )
        with self._lock.taken():
            snapshot = self._changeable()
            new = analyse_documents(
                documents, snapshot.analyzer, snapshot, self._state.next_id, on_duplicate, most
            )
            if new.ids:
                views = [*_without(snapshot, new.replaced), SegmentView(new.segment)]
                probe = self._state.probe or snapshot.analyzer.probe()
                self._install(views, next_id=new.next_id, probe=probe)
        return new.ids

    def delete(
        self, ids: Iterable[str] | None = None, filter: FilterSpec | None = None
    ) -> list[str]:
        """Delete documents, by their ids, by a filter or by both; unknown ids are ignored.

        Parameters
        ----------
        ids
            The documents; ``None`` for all that the filter passes.
        filter
            As in ``search``: documents that it rejects at this moment stay, also those that
            another thread has replaced since their ids were looked up.

        Returns
        -------
        ids
            The ids that this very call deleted, in the order asked for, or in document order.

        Raises
        ------
        TypeError
            If ``ids`` is a bare string or holds anything but strings, or nothing is given.
        ValueError
            If there are no ids and the filter, ``{}``, rejects nothing.
        FilterError
            If the filter is malformed.
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        wanted = None if ids is None else check_ids(ids)
        parsed = parse_filter(filter, self._state.snapshot)
        if wanted is None and (parsed is None or parsed.rejects_nothing):
            kind = TypeError if filter is None else ValueError
            raise kind(
                "delete needs ids, or a filter that rejects something, got "
                f"ids=None, filter={filter!r}; delete(index.ids()) deletes all documents"
            )
        with self._lock.taken():
            snapshot = self._changeable()
            if wanted is None:
                found = {
                    snapshot.views[place].segment.id_of(number): (place, number)
                    for place, number in releasing_gil(snapshot.passing(parsed))
                }
            else:
                places = ((id, snapshot.find(id)) for id in releasing_gil(wanted))
                found = {
                    id: place
                    for id, place in places
                    if place is not None and snapshot.passes(*place, parsed)
                }
            if found:
                self._install(_without(snapshot, found.values()))
        return list(found)

    def update_metadata(
        self, ids: Iterable[str], metadata: Iterable[dict[str, Any] | None]
    ) -> list[str]:
        """Replace the metadata of documents, which keep their places; unknown ids are ignored.

        Parameters
        ----------
        ids
            The documents.
        metadata
            The whole new metadata of each.

        Returns
        -------
        ids
            The ids of the documents that were changed, in the order asked for.

        Raises
        ------
        TypeError
            If an argument or an element has the wrong type.
        ValueError
            If the two differ in length.
        MetadataError
            If metadata cannot be stored.
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        from bm25rag.common.codec import encode_metadata

        wanted = check_ids(ids)
        given = list(check_sequence("metadata", metadata, "dicts"))
        if len(given) != len(wanted):
            raise ValueError(
                f"metadata must be one dict for each of {len(wanted)} ids, got {len(given)}"
            )
        encoded: dict[str, bytes] = {}
        for row, (id, one) in enumerate(releasing_gil(zip(wanted, given, strict=True))):
            try:
                encoded[id] = encode_metadata(one, id)
            except MetadataError as error:
                raise error.at(f"metadata[{row}]") from None
        with self._lock.taken():
            snapshot = self._changeable()
            changed: list[str] = []
            changes: dict[int, dict[int, bytes]] = {}
            for id, data in releasing_gil(encoded.items()):
                if (found := snapshot.find(id)) is not None:
                    changed.append(id)
                    changes.setdefault(found[0], {})[found[1]] = data
            if changes:
                self._install(
                    view.with_metadata(changes[place]) if place in changes else view
                    for place, view in enumerate(snapshot.views)
                )
        return changed

    def maintain(self) -> None:
        """Merge what writes have left unmerged, so that searches look into few segments.

        A write merges at most a sixteenth of the index (or 4 MB), which keeps it quick and
        the number of segments bounded; after this there are at most log3(N) for N documents.
        Searches and writes continue meanwhile, so it may run in your own executor:
        ``executor.submit(index.maintain)``.

        Raises
        ------
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        from bm25rag.merging.policy import plan

        self._merge(lambda views: [group.views for group in plan(views) if group.due])

    def compact(self) -> None:
        """Merge everything into one segment, without what was deleted or replaced before this call.

        Texts, metadata and terms of deleted documents are then in no array of the index,
        and in no file of its folder after the next ``commit()``. Searches and writes
        continue meanwhile.

        Raises
        ------
        ReadOnlyError
            If the index is a view or was opened for reading.
        """
        self._merge(lambda views: [views] if _is_scattered(views) else [])

    def _merge(
        self, choose: Callable[[Sequence[SegmentView]], Sequence[Sequence[SegmentView]]]
    ) -> None:
        from bm25rag.merging.policy import carry

        lock = self._lock
        with lock.taken():
            self._changeable()  # who may not write is told at once, without waiting below
        with lock.merging:
            try:
                with lock.taken():
                    groups = choose(self._changeable().views)
                    lock.held = {view.segment for group in groups for view in group}
                for group in groups:
                    merged = self._merged(group)
                    with lock.taken():
                        snapshot = self._changeable()
                        lock.held -= {view.segment for view in group}
                        if (views := carry(merged, group, snapshot.views)) is not None:
                            self._install(views)
            finally:
                lock.held = set()

    def _merged(self, group: Sequence[SegmentView]) -> Segment:
        """Merge consecutive segments."""
        from bm25rag.merging.merge import merge_segments

        return merge_segments(group)

    # --- views -------------------------------------------------------------------------

    def tune(
        self,
        variant: VariantName = _KEEP,
        *,
        k1: float = _KEEP,
        b: float = _KEEP,
        delta: float | None = _KEEP,
        delta_on: DeltaOn = _KEEP,
    ) -> Self:
        """Return a read-only view of the same documents under other parameters.

        Parameters that are not given stay; a delta is dropped if the new variant has none.
        The view keeps the documents of this moment, whatever is written later.

        Parameters
        ----------
        variant, k1, b, delta, delta_on
            As in the constructor.

        Raises
        ------
        TypeError
            If a value has the wrong type.
        ValueError
            If a value is outside its formula's domain.
        """
        given = {"variant": variant, "k1": k1, "b": b, "delta": delta, "delta_on": delta_on}
        given = {name: value for name, value in given.items() if value is not _KEEP}
        state = self._state
        snapshot = state.snapshot
        parameters = snapshot.parameters.changed(given)
        tuned = Snapshot(snapshot.views, parameters, snapshot.analyzer, snapshot.statistics)
        return self._made(state._replace(snapshot=tuned), TUNED)

    def snapshot(self) -> Self:
        """Return a read-only index of the documents of this moment, whatever is written later."""
        return self._made(self._state, SNAPSHOT)

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
        """
        state = self._state
        parameters, snapshot = state.snapshot.parameters, state.snapshot
        analyzer = snapshot.analyzer if analyzer is None else analyzer
        index = type(self)(analyzer, **parameters.to_dict())
        documents = [snapshot.document(*place) for place in snapshot.passing(None)]
        bare = [document.id for document in documents if document.text is None]
        if bare:
            raise ValueError(
                f"the texts of {len(bare)} of {len(documents)} documents are not stored "
                f"({bare[0]!r} ...): index them again from their source"
            )
        from bm25rag.vectors import Vectors

        vectors = Vectors(lambda: snapshot).get([document.id for document in documents])
        for document, vector in zip(documents, vectors, strict=True):
            document.vector = vector or None
        index.add_documents(documents)
        index._state = index._state._replace(next_id=state.next_id)
        return index

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
            For a URL: credentials, endpoints and time limits for fsspec; not stored.

        Raises
        ------
        FileExistsError
            If the folder holds an index and ``overwrite`` is false.
        NotAnIndexError
            If the folder holds something else.
        LockedError
            If a writer has the folder open.
        RemoteError
            If a remote store refuses or cannot be reached; what it held is still there.
        MissingDependencyError
            If a URL needs a package that is not installed.
        OSError
            If the disk refuses; what the folder held is still there.
        """
        folder = None if is_url(path) else local_folder(path, storage_options=storage_options)
        attachment = self._attachment
        given = self._state.extra if extra is None else check_extra(extra)
        if folder and isinstance(attachment, FolderWriter) and attachment.holds(folder):
            with self._lock.taken():
                self._changeable()
                self._commit(attachment, given)
            return
        with self._lock.taken():
            state = self._state._replace(extra=given)
            if folder:
                self._saved = FolderWriter.write(folder, state.stored(), overwrite, self._saved)
            else:
                from bm25rag.storage.remote_writer import write_remote

                self._saved = write_remote(
                    str(path), state.stored(), overwrite, self._saved, storage_options
                )
            self._state = state

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
        cache: str | PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        offline: bool = False,
    ) -> Self:
        """Open a saved index, or, in mode ``"a"``, make it if there is none.

        Parameters
        ----------
        path
            The folder. If it is divided into shards, this opens a ``ShardedIndex``.
            Or the URL of a folder that fsspec can read, such as ``"s3://bucket/index"``: files
            that the cache lacks are fetched and checked, and the cache is mapped.
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
            Whether to check all now, as ``verify`` does, and not each part before its first use.
        untrusted
            Whether the folder may come from a stranger: refuses an analyzer with a
            ``token_pattern`` of its own, which could keep a search busy without end, and
            verifies; also at every ``refresh``.
        timeout
            How many seconds a writer waits for another one to close, also for one that has just
            made the index, >= 0.
        analyzer, variant, k1, b, delta, delta_on
            As in the constructor, for an index that mode ``"a"`` makes. Those given, an index
            that is there must have, in every mode; ``None``: it may have any.
        cache
            For a URL: the folder that holds the cache of each URL; ``None`` for
            ``$BM25RAG_CACHE``, or ``bm25rag`` in the user's folder of caches.
        storage_options
            For a URL: credentials, endpoints and time limits for fsspec; not stored.
        offline
            For a URL: whether to open what the cache holds and not ask the store, which may
            hold a newer index. Caches of two endpoints are not the same.

        Raises
        ------
        NotAnIndexError
            If the folder holds no index; in mode ``"a"``, if it holds something else.
        FormatVersionError
            If a newer bm25rag wrote it.
        CorruptIndexError
            If a file is damaged.
        LockedError
            If ``mode`` is not ``"r"`` and another writer still has the folder open.
        ReadOnlyError
            If ``mode`` is not ``"r"`` and ``path`` a URL, which nothing can lock.
        ValueError
            If the index has other settings than those given.
        RemoteError
            If a remote store refuses or cannot be reached.
        MissingDependencyError
            If a URL needs a package that is not installed.
        UntrustedIndexError
            If ``untrusted`` and the folder holds what a stranger could misuse.
        TokenizerRequiredError
            If the analyzer was made with a callable and ``tokenizer`` is missing.

        Warns
        -----
        AnalyzerChangedWarning
            If the installed stemmer gives other stems than those indexed.
        """
        check_choice("mode", mode, get_args(Mode))
        seconds = check_real("timeout", timeout, 0.0, TIMEOUT_MAX)
        given = _given(variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on)
        tokenizer = _tokenizer_of(analyzer, tokenizer)
        if is_url(path):
            if mode != "r":
                raise ReadOnlyError(
                    f"mode={mode!r} needs a folder of this machine, which it can lock: open a URL "
                    "for reading, change a copy (copy.copy(index)) and save() it to the URL, which "
                    "uploads what is new"
                )
            cls, mirror = cls._find_mirror(str(path), cache, storage_options, offline)
            folder = mirror.folder
        else:
            mirror = None
            folder = local_folder(path, cache, storage_options, offline)
            if cls is BM25Index and is_sharded(folder):
                cls = cls._sharded()
        writer = None
        if mode == "w":
            writer = cls._writer_type.lock(folder, seconds)
        elif mode == "a":

            def empty() -> StoredState:
                settled = Analyzer(tokenizer=tokenizer) if tokenizer and not analyzer else analyzer
                return cls(settled, **given)._state.stored()

            writer = cls._writer_type.lock(folder, seconds, empty)
        reader = cls._reader_type(folder, mmap, tokenizer, untrusted)
        if not offline:
            reader.mirror = mirror
        try:
            with reader.synced():
                stored = reader.read()
                check_settings(str(path), stored, analyzer, given)
                if verify:
                    reader.verify(stored)
        except BaseException:
            if writer is not None:
                writer.close()
            raise
        if writer is not None:
            writer.take_over(reader, stored)
            index = cls._made(_State.of(stored), writer)
            _WRITERS.add(index)
            return index
        reader.opened_by = {
            "path": folder if mirror is None else str(path),
            "mmap": mmap,
            "tokenizer": tokenizer,
            "untrusted": untrusted,
            "cache": cache,
            "storage_options": storage_options,
            "offline": offline,
        }
        return cls._made(_State.of(stored), reader)

    def refresh(self) -> bool:
        """Go to the last commit of the folder, as another process may have made it.

        Takes milliseconds, and some microseconds if there is none: what is open already
        stays open. Searches in other threads see the state before or after, and a snapshot
        taken earlier keeps its own. An index opened from a URL asks the store, and fetches
        what is new.

        Returns
        -------
        changed
            Whether there was a newer commit.

        Raises
        ------
        StorageError
            If this index was not opened with ``mode="r"``.
        NotAnIndexError
            If the folder holds no index any more; what was opened can still be searched.
        CorruptIndexError, RemoteError
            If a file is damaged, or a store refuses; what was opened can still be searched.
        """
        with self._lock.taken():
            reader = self._attachment
            if not isinstance(reader, FolderReader):
                who = reader.description
                raise StorageError(f"refresh needs an index opened with mode='r'; this is {who}")
            with reader.synced():
                moved = reader.has_moved()
                if moved:
                    self._state = _State.of(reader.read())
        return moved

    @classmethod
    def verify(
        cls,
        path: str | PathLike[str],
        *,
        cache: str | PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
    ) -> None:
        """Check every byte of a saved index, and that its files say what bm25rag would write.

        It reads the whole index. ``docs/format.md`` lists what is checked.

        Parameters
        ----------
        path
            The folder, or the URL of one, which is fetched into the cache.
        cache, storage_options
            As in ``open``.

        Raises
        ------
        NotAnIndexError
            If the folder holds no index.
        FormatVersionError
            If a newer bm25rag wrote it.
        CorruptIndexError
            If a file is damaged; the message names it.
        RemoteError, MissingDependencyError
            As from ``open``.
        """
        if is_url(path):
            cls, mirror = cls._find_mirror(str(path), cache, storage_options, offline=False)
            with mirror.synced():
                return cls._verify(mirror.folder)
        folder = local_folder(path, cache, storage_options)
        if cls is BM25Index and is_sharded(folder):
            cls = cls._sharded()
        return cls._verify(folder)

    @classmethod
    def _verify(cls, folder: str) -> None:
        from bm25rag.storage.verify import verify_folder

        verify_folder(folder)

    @classmethod
    def _find_mirror(
        cls,
        url: str,
        cache: str | PathLike[str] | None,
        options: dict[str, Any] | None,
        offline: bool,
    ) -> tuple[type[Self], Mirror]:
        """Return the kind of index behind a URL, and its cache, which may be out of date."""
        mirror = cls._mirror(url, cache, options)
        if cls is BM25Index and (is_sharded(mirror.folder) if offline else mirror.is_sharded()):
            cls = cls._sharded()
            mirror = cls._mirror(url, cache, options)
        if offline:
            mirror.check_cached()
        return cls, mirror

    @classmethod
    def _mirror(
        cls, url: str, cache: str | PathLike[str] | None, options: dict[str, Any] | None
    ) -> Mirror:
        from bm25rag.storage.remote_mirror import Mirror

        return Mirror(url, cache, options)

    @classmethod
    def _sharded(cls) -> type[Self]:
        from bm25rag.sharded import ShardedIndex

        return cast("type[Self]", ShardedIndex)

    def commit(self) -> None:
        """Make the changes since the last commit durable, in one atomic step.

        Raises
        ------
        ReadOnlyError
            If the index was not opened with ``mode="w"``.
        OSError
            If the disk refuses or a flush fails; the last commit is still there, or, if
            only the last flush failed, the new one. The next commit writes new files.
        """
        with self._lock.taken():
            self._changeable()
            self._commit(self._writer(), self._state.extra)

    def _commit(self, writer: FolderWriter, extra: dict[str, Any]) -> None:
        state = self._state._replace(extra=extra)
        writer.commit(state.stored())
        self._state = state

    def rollback(self) -> None:
        """Go back to the last commit.

        Raises
        ------
        ReadOnlyError
            If the index was not opened with ``mode="w"``.
        """
        with self._lock.taken():
            self._changeable()
            self._state = _State.of(self._writer().last)

    def close(self) -> None:
        """Give up the writer's lock, without a commit; without a lock, do nothing.

        Warns
        -----
        UncommittedWarning
            If there are changes since the last commit, which are lost. A writer that is deleted,
            or still open when the program ends, warns too.
        """
        with self._lock.taken():
            folder = self._loses()
            self._release()
        if folder is not None:
            _warn_of_loss(folder)

    def _release(self) -> None:
        writer = self._attachment
        if isinstance(writer, FolderWriter):
            self._attachment = CLOSED  # first: without its lock, nobody may write
            writer.close()

    def _loses(self) -> str | None:
        """Return the folder if there are changes that were not committed, nor saved elsewhere."""
        writer, saved = self._attachment, self._saved
        if not isinstance(writer, FolderWriter) or not writer.ours:
            return None
        views = list(self._state.snapshot.views)
        lost = views != writer.last.views and (saved is None or views != saved.views)
        return writer.folder if lost else None

    def __del__(self) -> None:
        # When the program ends, that was said before modules are gone.
        if isinstance(getattr(self, "_attachment", None), FolderWriter) and not self._warned:
            folder = None if is_finalizing() else self._loses()
            if folder is not None:
                _warn_of_loss(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if isinstance(self._attachment, FolderWriter):
                self.commit() if error is None else self.rollback()
        finally:
            with self._lock.taken():
                self._release()

    def _writer(self) -> FolderWriter:
        if not isinstance(self._attachment, FolderWriter):
            raise ReadOnlyError(
                "commit and rollback need an index opened with mode='w'; use save(path)"
            )
        return self._attachment

    # --- state and attachment -------------------------------------------------------

    def _begin(self, state: _State, attachment: Attachment) -> None:
        self._state = state
        self._attachment = attachment
        self._saved = None
        self._lock = WriteLock()

    @classmethod
    def _made(cls, state: _State, attachment: Attachment) -> Self:
        index = cls.__new__(cls)
        index._begin(state, attachment)
        return index

    @property
    def _snapshot(self) -> Snapshot:
        """What to read from now; those who write are told that somebody does."""
        note_read()
        return self._state.snapshot

    def _changeable(self) -> Snapshot:
        """Return what to change, while the lock is held; raise if that is not allowed."""
        if self._attachment.read_only:
            who, advice = self._attachment.description, self._attachment.advice
            raise ReadOnlyError(f"this is {who}; it cannot be changed: {advice}")
        return self._state.snapshot

    def _install(self, views: Iterable[SegmentView], **changes: Any) -> None:
        before = self._state.snapshot
        snapshot = Snapshot(self._tidied(list(views)), before.parameters, before.analyzer)
        self._state = self._state._replace(snapshot=snapshot, **changes)

    def _tidied(self, views: Sequence[SegmentView]) -> Sequence[SegmentView]:
        """Merge as much as one write may."""
        from bm25rag.merging.policy import tidy

        return tidy(views, self._lock.held)

    def __copy__(self) -> Self:
        made = self._made(self._state, MEMORY)
        attachment = self._attachment
        made._saved = (
            attachment.saved_copy() if isinstance(attachment, FolderReader) else self._saved
        )
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> BM25Index:
        if isinstance(self._attachment, FolderReader):
            return self._made(self._state, copy.copy(self._attachment))
        restore, arguments = self.__reduce__()
        return restore(*copy.deepcopy(arguments, memo))

    def __reduce__(self) -> tuple[Callable[..., BM25Index], tuple[Any, ...]]:
        attachment = self._attachment
        if isinstance(attachment, FolderReader):
            return _open_again, (type(self), attachment.opened_by)
        # What a writer has not committed, or a view shows, is in no folder.
        return _restore, (type(self), self._state.stored())

    def __repr__(self) -> str:
        settings = f"variant={self.variant!r}, analyzer={self.analyzer!r}"
        noun = "document" if len(self) == 1 else "documents"
        return f"{type(self).__name__}({len(self)} {noun}, {settings})"


def _open_again(kind: type[BM25Index], opened_by: dict[str, Any]) -> BM25Index:
    return kind.open(**opened_by)


def _restore(kind: type[BM25Index], state: StoredState) -> BM25Index:
    return kind._made(_State.of(state), MEMORY)


# The open writers, to be looked at when the program ends.
_WRITERS: WeakSet[BM25Index] = WeakSet()


@atexit.register
def _warn_at_exit() -> None:
    for index in list(_WRITERS):
        folder = index._loses()
        if folder is not None:
            index._warned = True
            _warn_of_loss(folder)


def _warn_of_loss(folder: str) -> None:
    warn(
        f"the changes to {folder} since the last commit() are lost: call commit() before close() "
        'and before the program ends, or write within \'with BM25Index.open(path, mode="w") as '
        "index:'; rollback() drops them on purpose",
        UncommittedWarning,
    )


def _correct(
    snapshot: Snapshot, queries: Sequence[Terms], filter: Filter | None
) -> list[Correction]:
    from bm25rag.search.correction import correct_queries  # most searches do not correct

    return correct_queries(snapshot, queries, filter)


def _without(snapshot: Snapshot, places: Iterable[tuple[int, int]]) -> list[SegmentView]:
    deleted: dict[int, list[int]] = {}
    for place, number in places:
        deleted.setdefault(place, []).append(number)
    return [
        view.without(deleted[place]) if place in deleted else view
        for place, view in enumerate(snapshot.views)
    ]


def local_folder(
    path: str | PathLike[str],
    cache: object = None,
    storage_options: object = None,
    offline: object = False,
) -> str:
    """Return the real path of a folder of this machine, which arguments for a URL do not fit."""
    given = {"cache": cache, "storage_options": storage_options, "offline": offline or None}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is for URLs such as 's3://bucket/index', got a folder's path")
    return local_path(path)


def _check_analyzer(analyzer: object) -> None:
    if analyzer is not None and not isinstance(analyzer, Analyzer):
        hint = f" {analyzer!r}: write Analyzer({analyzer!r})" if isinstance(analyzer, str) else ""
        raise TypeError(
            f"analyzer must be an Analyzer or None, got {type(analyzer).__name__}{hint}"
        )


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _tokenizer_of(analyzer: Analyzer | None, tokenizer: Tokenizer | None) -> Tokenizer | None:
    """Return the callable that ``open`` is given, as ``tokenizer`` or within ``analyzer``."""
    _check_analyzer(analyzer)
    if analyzer is None:
        return tokenizer
    if tokenizer not in (None, analyzer.tokenizer):
        raise ValueError("tokenizer is another than that of analyzer: give one of the two")
    return analyzer.tokenizer


def _is_scattered(views: Sequence[SegmentView]) -> bool:
    return len(views) > 1 or any(view.changes for view in views)
