"""A sharded index built by tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any

from bm25rag.analysis import Analyzer
from bm25rag.building.folder import check_new
from bm25rag.building.plan import check_plan
from bm25rag.common.checks import check_choice, check_count, check_real
from bm25rag.common.urls import local_path
from bm25rag.distributed.engine import SMALLEST, start, wait_for_all
from bm25rag.distributed.sources import Reading, divide, find_sources
from bm25rag.distributed.steps import (
    Plan,
    Receipt,
    begin,
    build_shard,
    check_unique,
    count_shard,
    finish,
    merge_partition,
    write_shard,
)
from bm25rag.documents import Document
from bm25rag.index import BM25Index
from bm25rag.live.index import new_state
from bm25rag.readers import FORMATS, PASSAGE_SIZE, Fields, size_limit
from bm25rag.readers.records import Records
from bm25rag.scoring.variants import DeltaOn, VariantName
from bm25rag.storage.folder_lock import locked_folder
from bm25rag.storage.fs import make_folder
from bm25rag.storage.leftovers import remove
from bm25rag.storage.manifest import BUILDING

_DAY = 86_400.0
# Most partitions of terms and ids; each of so many results of every shard is known to the program.
_PARTITIONS = 256
_FORMATS = ("auto", *FORMATS)


def build(
    files: str | PathLike[str] | Iterable[str | PathLike[str]] | Any,
    folder: str | PathLike[str],
    shards: int,
    *,
    format: str = "auto",
    fields: Fields | None = None,
    passage_size: int = PASSAGE_SIZE,
    store_text: bool = True,
    extra: dict[str, Any] | None = None,
    num_cpus: float = 1.0,
    memory: str | int = "2GiB",
    max_retries: int = 3,
    timeout: float = _DAY,
    analyzer: Analyzer | None = None,
    variant: VariantName = "lucene",
    k1: float = 1.2,
    b: float = 0.75,
    delta: float | None = None,
    delta_on: DeltaOn = "all",
    field_weights: Mapping[str, float] | None = None,
) -> BM25Index:
    """Build a sharded index by tasks of a Ray cluster, and open it for reading.

    Each shard is made of consecutive whole files, about as many bytes as the others, by one
    task. Documents are in the order of the files. If the build is interrupted, call it again
    with the same arguments: shards that are there are not built again, and the result is the
    same.

    Parameters
    ----------
    files
        A file, a folder, a pattern such as ``"corpus/*.jsonl"``, or an iterable of files, in
        any format that ``bm25rag index`` reads. All nodes must see them by these paths. Or a
        ``ray.data.Dataset``, of which each row is a document, in this order: it is materialised,
        and a build that was interrupted begins anew.
    folder
        The folder; made if it is missing. All nodes must see it by this path.
    shards
        How many, at most as many as files; of a dataset, some may be empty.
    format, fields, passage_size
        How files are read, as by ``bm25rag index``: by their names, or ``"jsonl"``, ``"csv"``, ...;
        which fields of records make a document; maximum characters of a passage.
        Of a dataset, only the fields count, ``Fields("id", ("text",))`` if they are not given;
        there must be ids.
    store_text, extra
        As for ``BM25Index.build``.
    num_cpus
        CPUs that Ray reserves for each task, which are also its threads.
    memory
        How much each task may use, as for ``BM25Index.build``; Ray reserves as much for it.
    max_retries
        How often Ray runs a task again whose worker or node died.
    timeout
        Seconds that each of the three steps may take: shards, statistics, their merging.
    analyzer, variant, k1, b, delta, delta_on
        As for ``BM25Index``.
    field_weights
        The ``fields`` of ``BM25Index``; those of a document are its metadata by their names.

    Raises
    ------
    ValueError
        If a file cannot be read, there are fewer files than shards, or an interrupted build had
        other files or settings; the message says which. Otherwise as ``BM25Index.build``.
    DuplicateIdError
        If two documents have an id; the message names their files.
    ClusterError
        If workers died beyond the retries, of too little memory for example, or time is up.
    """
    count, kind = check_count("shards", shards, least=1), check_choice("format", format, _FORMATS)
    size = check_count("passage_size", passage_size, least=1)
    dataset, divided = None, list[Any]()
    if hasattr(files, "materialize"):
        dataset, fields = files, Fields("id", ("text",)) if fields is None else fields
        if fields.id is None:
            raise ValueError("fields must name the column with the ids: Fields(id='id')")
        reading, divided = Reading("rows", fields), [[] for _ in range(count)]
    else:
        reading = Reading(kind, Fields() if fields is None else fields, size, size_limit())
        divided = divide(find_sources(files, kind), count)
    empty = new_state(
        analyzer, variant=variant, k1=k1, b=b, delta=delta, delta_on=delta_on, fields=field_weights
    ).stored()
    fields = reading.fields._replace(weighted=empty.parameters.names)
    threads = max(1, round(check_real("num_cpus", num_cpus, SMALLEST, float("inf"))))
    path = local_path(folder)
    check_new(path)
    each = check_plan(empty, memory, store_text, "error", False, threads, extra)
    plan = Plan(path, divided, reading._replace(fields=fields), each)
    check_count("max_retries", max_retries)
    check_real("timeout", timeout, 0.0, TIMEOUT_MAX)
    options = {"num_cpus": num_cpus, "memory": each.memory, "max_retries": max_retries}
    return _build(plan, dataset, options, timeout)


def _parts_of(plan: Plan, dataset: Any) -> list[Any]:
    """Begin anew, and return the rows of each shard, in their order."""
    remove(os.path.join(plan.folder, BUILDING))
    make_folder(os.path.join(plan.folder, BUILDING))
    ordered = dataset.context.execution_options
    before, ordered.preserve_order = ordered.preserve_order, True
    try:
        return [*dataset.materialize().split(len(plan.shards))]
    finally:
        ordered.preserve_order = before


def _build_rows(plan: Plan, number: int, part: Any) -> Receipt:
    counts = [0]
    records = Records(Path(f"shard {number} of the dataset"), plan.reading.fields, None)

    def documents() -> Iterator[Document]:
        for row in part.iter_rows():
            counts[0] += 1
            yield records.document(row, counts[0], counts[0])

    return write_shard(plan, number, documents(), [], counts)


def _build(plan: Plan, dataset: Any, options: dict[str, Any], timeout: float) -> BM25Index:
    ray, folder, count = start(), plan.folder, len(plan.shards)
    partitions = min(count, _PARTITIONS)
    make_folder(folder)
    with locked_folder(folder):
        check_new(folder)
        if dataset is None:
            begin(plan)
        sent, build_one = ray.put(plan), ray.remote(build_shard if dataset is None else _build_rows)
        each = [()] * count if dataset is None else [(part,) for part in _parts_of(plan, dataset)]
        building = build_one.options(**options)
        refs = [building.remote(sent, number, *part) for number, part in enumerate(each)]
        receipts: list[Receipt] = wait_for_all(refs, timeout, "shard")
        counting = ray.remote(count_shard).options(**options, num_returns=partitions + 1)
        counted = [counting.remote(folder, receipt, partitions) for receipt in receipts]
        totals = wait_for_all([refs[0] for refs in counted], timeout, "statistics of shard")
        merging = ray.remote(merge_partition).options(**options)
        refs = [
            merging.remote(*parts) for parts in zip(*(refs[1:] for refs in counted), strict=True)
        ]
        merged = wait_for_all(refs, timeout, "partition")
        check_unique(plan, receipts, merged)
        finish(plan, receipts, totals, [one.terms for one in merged])
    return BM25Index.open(folder, tokenizer=plan.each.empty.analyzer.any_tokenizer)
