"""The client of an index that actors serve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from bm25rag.common.caller import warn
from bm25rag.common.checks import (
    check_count,
    check_flag,
    check_id,
    check_ids,
    check_real,
    check_sequence,
)
from bm25rag.common.sparse import Vector, read_vector
from bm25rag.decay import DecayLike, read_decay
from bm25rag.distributed.asking import DEADLINE, Answers, ask
from bm25rag.distributed.engine import cause_of, load
from bm25rag.distributed.host import HostState, Restriction
from bm25rag.distributed.operations import OPERATIONS, Found
from bm25rag.distributed.results import (
    Page,
    RayBatch,
    RayVectors,
    find_members,
    fuse_hits,
    read_page,
)
from bm25rag.documents import Document, Hit
from bm25rag.errors import (
    ClusterError,
    DocumentNotFoundError,
    IncompleteWarning,
    ShardUnavailableError,
)
from bm25rag.filters import And, parse_filter
from bm25rag.filters.parse import check_rejecting
from bm25rag.fusion import FusionMethod, check_fusion
from bm25rag.search.known_fields import check_demands
from bm25rag.search.query import OVER

if TYPE_CHECKING:
    from bm25rag.analysis import Analyzer
    from bm25rag.filters import FilterSpec
    from bm25rag.search.explain import Explanation
    from bm25rag.search.query_terms import QueryLike


class RayIndex:
    """An index that actors of a Ray cluster serve; ``serve`` and ``connect`` return it.

    Its methods are those of ``BM25Index`` that read, with the same ids, order and scores. Each
    call has a ``deadline`` in seconds, 10 by default. It asks one replica of each part of the
    shards. If that is gone, it asks another at once, and if that is slow, another too after a
    quarter of the deadline. All of an answer is from one commit. What the method of ``BM25Index``
    raises, this one does, too, and ``ShardUnavailableError`` if no replica of a shard has answered
    within the deadline. It is safe to use from many threads, and can be sent to tasks and actors
    of the cluster.
    """

    def __init__(self, name: str, parts: Sequence[Sequence[Any]]) -> None:
        self._name, self._parts, self._shards = name, parts, len(parts)
        # Replicas that were gone or slow, and until when others are asked first.
        self._avoided: dict[Any, float] = {}
        self._analyzer: Analyzer | None = None
        self._within: Restriction | None = None

    # --- searching ---------------------------------------------------------------------

    def search(
        self,
        query: QueryLike,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        deadline: float = DEADLINE,
    ) -> list[Hit]:
        """Find the best k documents that contain a query term.

        Parameters
        ----------
        query, k, filter, min_score, offset, group, per_group, decay
            As for ``BM25Index.search``. A callable is sent to the cluster. Shards send
            ``offset + k`` hits each, the best of each group, and are then asked for the others of
            the best groups. These cannot be ``"$text"`` with more than one hit each.
        deadline
            Seconds until the answer must be there, > 0.
        """
        limits = (k, filter, min_score, offset, True, deadline, False)
        return self._search("search", [query], *limits, group, per_group, decay).hits()[0]

    def search_batch(
        self,
        queries: Iterable[QueryLike],
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        offset: int = 0,
        group: str | None = None,
        per_group: int = 1,
        decay: DecayLike | None = None,
        contents: bool = True,
        deadline: float = DEADLINE,
        partial: bool = False,
    ) -> RayBatch:
        """Search for many queries at once.

        Parameters
        ----------
        queries
            As for ``BM25Index.search_batch``.
        k, filter, min_score, offset, group, per_group, decay, deadline
            As for ``search``.
        contents
            Whether to send texts, metadata and payloads, so that the batch has ``hits()``;
            ids and scores alone are quicker.
        partial
            Whether the answer may lack shards that did not answer in time; its ``missing`` says
            which.
        """
        batch = list(check_sequence("queries", queries, "queries"))
        check_flag("contents", contents)
        limits = (k, filter, min_score, offset, contents, deadline, partial)
        return self._search("search", batch, *limits, group, per_group, decay)

    @property
    def vectors(self) -> RayVectors:
        """The sparse vectors of the documents: to search by them."""
        return RayVectors(lambda *arguments: self._search("search_vectors", *arguments))

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
        deadline: float = DEADLINE,
    ) -> list[Hit]:
        """Find the best k documents by BM25 and by their sparse vectors, fused.

        Parameters
        ----------
        query, vector, k, filter, fetch_k, method, weights, rank_constant, offset, group, \
        per_group, decay
            As for ``BM25Index.search_hybrid``.
        deadline
            As for ``search``.
        """
        check_fusion(method, weights, rank_constant)
        page = read_page(k, offset, group, per_group, decay)
        depth = max(page.k, check_count("fetch_k", fetch_k))
        arguments = (query, read_vector(vector, "vector"), depth, filter)
        results = self._answer("search_hybrid", arguments, filter, deadline)
        _warn_of_cut(results)
        both = [one.items[0] for one in results]
        return fuse_hits(both, method, weights, rank_constant, page)

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
        deadline: float = DEADLINE,
    ) -> list[Hit]:
        """Find the best k documents by their ranks in the searches for several queries.

        Parameters
        ----------
        queries, k, filter, fetch_k, weights, rank_constant, offset, group, per_group, decay
            As for ``BM25Index.search_fused``.
        deadline
            As for ``search``.
        """
        batch = list(check_sequence("queries", queries, "queries"))
        check_fusion("rrf", weights, rank_constant, len(batch))
        page = read_page(k, offset, group, per_group, decay)
        depth = max(page.k, check_count("fetch_k", fetch_k))
        results = self.search_batch(batch, depth, filter, deadline=deadline)
        return fuse_hits(results.hits(), "rrf", weights, rank_constant, page)

    def _search(
        self,
        operation: str,
        queries: list[Any],
        k: int,
        filter: FilterSpec | None,
        min_score: float | None,
        offset: int,
        contents: bool,
        deadline: float,
        partial: bool,
        group: str | None,
        per_group: int,
        decay: DecayLike | None,
    ) -> RayBatch:
        page = read_page(k, offset, group, per_group, decay)
        check_flag("partial", partial)
        self._check_fields(filter, deadline)

        def best(
            queries: list[Any], page: Page, filter: FilterSpec | None, deadline: float
        ) -> tuple[Answers, Found]:
            arguments = (queries, page.depth, filter, min_score, contents, page.shaping)
            answers = self._ask(operation, arguments, deadline, partial)
            return answers, _merged(operation, answers, arguments)

        if page.per_group > 1 and page.k:
            answers, result = find_members(best, queries, page, filter, deadline)
        else:
            answers, result = best(queries, page, filter, deadline)
            result = result.behind(page.offset)
        _warn_of_cut([result])
        commit = answers.commit.number
        return RayBatch(*result.ranking, commit, answers.missing, result.cut, result.items)

    def explain(
        self,
        query: QueryLike,
        id: str,
        filter: FilterSpec | None = None,
        *,
        decay: DecayLike | None = None,
        deadline: float = DEADLINE,
    ) -> Explanation:
        """Explain the score of a document, as ``BM25Index.explain`` does."""
        started = None if decay is None else read_decay(decay)
        arguments = (query, check_id("id", id), filter, started)
        explanation: Explanation | None = self._answer("explain", arguments, filter, deadline)
        if explanation is None:
            passing = "" if filter is None else " that the filter passes"
            raise DocumentNotFoundError(f"there is no document with the id {id!r}{passing}")
        return explanation

    def get(
        self, ids: Iterable[str], filter: FilterSpec | None = None, *, deadline: float = DEADLINE
    ) -> list[Document]:
        """Return documents by id, in the order asked; those that are not there are left out."""
        wanted = check_ids(ids)
        documents = self._answer("get", (wanted, filter), filter, deadline)
        return [documents[id] for id in wanted if id in documents]

    def count(self, filter: FilterSpec | None = None, *, deadline: float = DEADLINE) -> int:
        """Count the documents that the filter passes, as ``BM25Index.count`` does."""
        total: int = self._answer("count", (filter,), filter, deadline)
        return total

    def __len__(self) -> int:
        return self.count()

    def restricted(self, filter: FilterSpec) -> Self:
        """Return a view of the documents that pass a filter, as ``BM25Index.restricted`` does.

        Actors restrict what they answer from, and evaluate the filter once in each commit; they
        keep 64 views. Scores are those of ``search`` with the filter; rows count what passes.

        Parameters
        ----------
        filter
            As for ``BM25Index.restricted``.
        """
        parsed = check_rejecting("restricted needs a filter", filter, parse_filter(filter))
        self._check_fields(parsed, DEADLINE)
        view, outer = copy(self), self._within
        both = parsed if outer is None else And((outer.filter, parsed))
        view._within = Restriction(uuid4().hex, both)
        return view

    @property
    def analyzer(self) -> Analyzer:
        """How texts and queries become terms."""
        if self._analyzer is None:
            self._analyzer = self._settings()[0]
        return self._analyzer

    @property
    def fields(self) -> dict[str, float] | None:
        """The weight of each field; ``None`` if documents have no fields."""
        return self._settings()[1]

    def _settings(self) -> tuple[Analyzer, dict[str, float] | None]:
        # Whoever serves any part knows them.
        hosts = [host for part in self._parts for host in part]
        answers = self._ask("settings", (), DEADLINE, True, [hosts])
        settings: tuple[Analyzer, dict[str, float] | None] | None
        settings = _merged("settings", answers, ())
        if settings is None:
            reason = next(iter(answers.missing.values()))
            raise ShardUnavailableError(f"no actor of {self._name!r} answered ({reason})")
        return settings

    # --- the service -------------------------------------------------------------------

    def refresh(self, *, timeout: float = 60.0) -> int:
        """Let all actors go to the last commit of the folder; return its number.

        Searches go on meanwhile, each in one commit. Actors that are gone go there when they
        are back.

        Parameters
        ----------
        timeout
            Seconds that it may take; ``ClusterError`` if no actor of a part could be asked by then.
            After a ``StorageError``, a damaged file, what was opened is still served.
        """
        seconds, ray = check_real("timeout", timeout, 0.0, TIMEOUT_MAX), load()
        refs = {
            host.refresh.remote(): part for part, hosts in enumerate(self._parts) for host in hosts
        }
        ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=seconds)
        commits: dict[int, int] = {}
        for ref in ready:
            try:
                state: HostState = ray.get(ref, timeout=seconds)
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            except ray.exceptions.RayError:
                continue
            commits[refs[ref]] = state.check().commit.number
        if len(commits) < len(self._parts):
            raise ClusterError(
                f"only actors of {len(commits)} of {len(self._parts)} parts of {self._name!r} "
                f"could be asked within {seconds:g} seconds; call refresh again when they are back"
            )
        return max(commits.values())

    def search_dataset(
        self,
        dataset: Any,
        k: int = 10,
        filter: FilterSpec | None = None,
        *,
        min_score: float | None = None,
        column: str = "query",
        batch_size: int = 256,
        num_cpus: float = 1.0,
        deadline: float = 60.0,
    ) -> Any:
        """Search for the queries of a ``ray.data.Dataset``.

        Parameters
        ----------
        dataset
            Its rows are queries, with the text in ``column``.
        k, filter, min_score
            As for ``search``.
        column, batch_size
            The column with the texts, and how many of them are sent at once.
        num_cpus, deadline
            What Ray reserves for each task that asks, and seconds for each batch.

        Returns
        -------
        dataset
            A ``Dataset`` of the same rows with the columns ``ids`` and ``scores``: lists, of up
            to k strings and float64. Ray computes it when it is read.
        """

        def search(table: Any) -> Any:
            import pyarrow  # Ray Data is made of it

            queries = table.column(column).to_pylist()
            batch = self.search_batch(
                queries, k, filter, min_score=min_score, contents=False, deadline=deadline
            )
            counted = zip(batch.scores.tolist(), batch.counts.tolist(), strict=True)
            ids = pyarrow.array(batch.ids(), pyarrow.list_(pyarrow.string()))
            scores = [row[:count] for row, count in counted]
            table = table.append_column("ids", ids)
            return table.append_column(
                "scores", pyarrow.array(scores, pyarrow.list_(pyarrow.float64()))
            )

        return dataset.map_batches(
            search, batch_format="pyarrow", batch_size=batch_size, num_cpus=num_cpus
        )

    def _answer(
        self, operation: str, arguments: tuple[Any, ...], filter: FilterSpec | None, deadline: float
    ) -> Any:
        """Return what all shards answer together; the filter is checked first."""
        self._check_fields(filter, deadline)
        return _merged(operation, self._ask(operation, arguments, deadline, False), arguments)

    def _check_fields(self, filter: FilterSpec | None, deadline: float) -> None:
        """Check that documents of any shard have the fields that a filter relies on."""
        parsed = None if filter is None else parse_filter(filter)
        if parsed is None or not parsed.demands or not self.count(deadline=deadline):
            return

        def fields(paths: Sequence[tuple[str | None, ...]] | None) -> set[tuple[Any, ...]]:
            held: set[tuple[Any, ...]] = self._answer("fields", (paths,), None, deadline)
            return held

        check_demands(parsed.demands, lambda path: bool(fields([path])), lambda: fields(None))

    def _ask(
        self,
        operation: str,
        arguments: tuple[Any, ...],
        deadline: float,
        partial: bool,
        parts: Sequence[Sequence[Any]] | None = None,
    ) -> Answers:
        seconds = check_real("deadline", deadline, 0.0, TIMEOUT_MAX)
        known = (self._shards, self._avoided, self._within)
        answers = ask(parts or self._parts, operation, arguments, seconds, *known)
        self._shards = answers.shards
        if answers.missing and not partial:
            numbers = sorted(answers.missing)
            named = ", ".join(map(str, numbers[:10])) + (" ..." if len(numbers) > 10 else "")
            raise ShardUnavailableError(
                f"shards {named} of {answers.shards} in {self._name!r} did not answer within "
                f"{seconds:g} seconds ({answers.missing[numbers[0]]}); partial=True searches "
                "without them",
                tuple(numbers),
            )
        return answers

    def __repr__(self) -> str:
        replicas = max(map(len, self._parts))
        return f"RayIndex({self._name!r}, {len(self._parts)} parts, {replicas} replicas)"


def _merged(operation: str, answers: Answers, arguments: tuple[Any, ...]) -> Any:
    values = [answer.value for answer in answers.each if answer.value is not None]
    return OPERATIONS[operation].merge(values, *arguments)


def _warn_of_cut(results: Sequence[Found]) -> None:
    if any(one.cut for one in results):
        warn(OVER, IncompleteWarning)
