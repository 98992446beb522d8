"""The steps of a build from files, each of which can be done anywhere, again and twice.

In the folder ``building`` are, until the manifest of the sharded index is written,

::

    plan.json               the files of each shard, the settings, how the files are read
    shard-0003-<random>/    what one attempt to build a shard has made, an index folder
    shard-0003.json         the receipt: which attempt counts, and what its files were

Attempts never write to the same file, so one that a cluster took for dead does no harm.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from bm25rag.building.build import build_index
from bm25rag.building.plan import Plan as ShardPlan
from bm25rag.building.shards import publish
from bm25rag.columns.column import select_strings
from bm25rag.columns.merge import JoinedTerms
from bm25rag.columns.string_table import StringTable
from bm25rag.common.arrays import as_index
from bm25rag.distributed.sources import Fingerprint, Reading, SourceFile, fingerprint, read_source
from bm25rag.documents import Document
from bm25rag.errors import CorruptIndexError, DuplicateIdError, NotAnIndexError
from bm25rag.index import BM25Index
from bm25rag.segments.view import add_tokens
from bm25rag.storage.fs import make_folder
from bm25rag.storage.leftovers import remove
from bm25rag.storage.manifest import BUILDING, manifest_path, read_sealed, replace_sealed
from bm25rag.storage.segment_files import read_index
from bm25rag.storage.shard_statistics import (
    LocalStatistics,
    TermCounts,
    join_partitions,
    merge_counts,
    partition_of,
)
from bm25rag.storage.state import parse_settings

_PLAN = "plan.json"
_PLAN_FORMAT, _RECEIPT_FORMAT = "bm25rag-build-plan", "bm25rag-shard-receipt"


class Plan(NamedTuple):
    """A build of all shards: of which files, read how, and how each is built."""

    folder: str
    shards: list[list[SourceFile]]
    reading: Reading
    each: ShardPlan

    def body(self) -> dict[str, Any]:
        """Return what must be the same for a build to go on, as JSON values."""
        state = self.each.empty
        settings: dict[str, Any] = json.loads(
            json.dumps(
                {
                    "analyzer": state.analyzer.to_dict(),
                    "parameters": state.parameters.to_dict(),
                    "reading": self.reading._replace(largest=None),
                    "store_text": self.each.store_text,
                    "shards": len(self.shards),
                }
            )
        )
        return settings | {"files": [[list(file) for file in files] for files in self.shards]}

    def digest(self) -> str:
        """Return what tells this build from one of other files or settings."""
        body = json.dumps(self.body(), sort_keys=True).encode()
        return blake2b(body, digest_size=16).hexdigest()


class Receipt(NamedTuple):
    """What is left by a shard that was built: a folder's name, the files, documents of each."""

    attempt: str
    files: list[Fingerprint]
    documents: list[int]


class Counts(NamedTuple):
    """A partition of one shard: how often terms occur, for each segment, and its ids."""

    terms: list[TermCounts]
    ids: list[StringTable]


class Merged(NamedTuple):
    """A partition of all shards; ``twice`` are ids that more than one shard has."""

    terms: TermCounts
    twice: list[str]


# --- the plan ---------------------------------------------------------------------------


def begin(plan: Plan) -> None:
    """Write the plan, or check that it is that of the build that was interrupted in its folder.

    If that had other files or settings, a ``ValueError`` says which.
    """
    building = os.path.join(plan.folder, BUILDING)
    body = plan.body()
    try:
        begun = read_sealed(building, _PLAN, _PLAN_FORMAT, dict)
    except (NotAnIndexError, CorruptIndexError):
        if os.path.exists(manifest_path(building)):
            raise _differing(plan.folder, "its documents did not come from files") from None
        remove(building)
        make_folder(building)
        replace_sealed(building, _PLAN, _PLAN_FORMAT, body)
        return
    if begun != body:
        raise _differing(plan.folder, _difference(begun, body))
    receipts = (_read_receipt(plan, number) for number in range(len(plan.shards)))
    attempts = {receipt.attempt for receipt in receipts if receipt is not None}
    for name in os.listdir(building):
        if "-" in name and not name.endswith(".json") and name not in attempts:
            remove(os.path.join(building, name))


def _difference(begun: dict[str, Any], body: dict[str, Any]) -> str:
    for name, value in body.items():
        if name != "files" and begun.get(name) != value:
            return f"{name} was {begun.get(name)!r:.200}, is {value!r:.200}"
    before, now = ({file[0]: file for file in chain(*one["files"])} for one in (begun, body))
    for path in before.keys() | now.keys():
        if before.get(path) != now.get(path):
            return f"{path} was added, removed or changed"
    return "the files are in another order"


def _differing(folder: str, difference: str) -> ValueError:
    return ValueError(
        f"this is not the build that was interrupted in {folder}: {difference}; "
        f"build with the same files and settings, or remove {os.path.join(folder, BUILDING)} "
        "to begin anew"
    )


def _read_receipt(plan: Plan, number: int) -> Receipt | None:
    """Return the receipt of a shard that is built; None if there is none of this plan.

    A task of a build that was given up may end, and leave one, when another has begun there.
    """
    folder = plan.folder
    with suppress(NotAnIndexError, CorruptIndexError):
        building = os.path.join(folder, BUILDING)
        body = read_sealed(building, _receipt_name(number), _RECEIPT_FORMAT, dict)
        if body.get("plan") != plan.digest():
            return None
        receipt = Receipt(
            body["attempt"], [Fingerprint(*file) for file in body["files"]], body["documents"]
        )
        if os.path.exists(manifest_path(built_folder(folder, receipt))):
            return receipt
    return None


def _receipt_name(number: int) -> str:
    return f"shard-{number:04d}.json"


def built_folder(folder: str, receipt: Receipt) -> str:
    """Return where a shard was built."""
    return os.path.join(folder, BUILDING, receipt.attempt)


# --- shards -----------------------------------------------------------------------------


def build_shard(plan: Plan, number: int) -> Receipt:
    """Build a shard from its files, unless it is there.

    If a file is not what it was when the shard was built, that is a ``ValueError``. If an id occurs
    twice, the message of the ``DuplicateIdError`` names the files.
    """
    files = [fingerprint(file.path) for file in plan.shards[number]]
    receipt = _read_receipt(plan, number)
    if receipt is not None:
        _check_same(receipt.files, files, plan.folder)
        return receipt
    counts: list[int] = []

    def documents() -> Iterator[Document]:
        for file in plan.shards[number]:
            counts.append(0)
            for document in read_source(file, plan.reading):
                counts[-1] += 1
                yield document

    try:
        receipt = write_shard(plan, number, documents(), files, counts)
    except DuplicateIdError:
        raise _duplicate_in(plan.shards[number], plan.reading) from None
    _check_same(files, [fingerprint(file.path) for file in plan.shards[number]], plan.folder)
    body = receipt._asdict() | {"plan": plan.digest()}
    building = os.path.join(plan.folder, BUILDING)
    replace_sealed(building, _receipt_name(number), _RECEIPT_FORMAT, body)
    return receipt


def write_shard(
    plan: Plan,
    number: int,
    documents: Iterable[Document],
    files: list[Fingerprint],
    counts: list[int],
) -> Receipt:
    """Write a shard into a folder of its own; ``counts`` are read when that is done."""
    attempt = f"shard-{number:04d}-{os.urandom(8).hex()}"
    build_index(documents, os.path.join(plan.folder, BUILDING, attempt), plan.each)
    return Receipt(attempt, files, counts)


def _check_same(before: list[Fingerprint], now: list[Fingerprint], folder: str) -> None:
    for old, new in zip(before, now, strict=True):
        if old != new:
            raise _differing(folder, f"{new.path} has changed since its shard was built")


def _duplicate_in(files: Sequence[SourceFile], reading: Reading) -> DuplicateIdError:
    seen: dict[str, str] = {}
    for file in files:
        for document in read_source(file, reading):
            if document.id in seen:
                return _duplicate(document.id, seen[document.id], file.path)
            seen[document.id] = file.path
    return DuplicateIdError("an id occurred twice in files that have changed since")


def _duplicate(id: str, one: str, other: str) -> DuplicateIdError:
    where = f"twice in {one}" if one == other else f"in {one} and in {other}"
    return DuplicateIdError(f"the id {id!r} occurs {where}; ids must differ")


# --- statistics -------------------------------------------------------------------------


def count_shard(folder: str, receipt: Receipt, partitions: int) -> list[Any]:
    """Return the documents and tokens of a shard that is built, and each partition's ``Counts``."""
    path = built_folder(folder, receipt)
    manifest, views, _ = read_index(path, mapped=True, known={})
    local = LocalStatistics(views, parse_settings(path, manifest.settings).parameters)
    for view in views:
        view.segment.ids.check_all()
    tables = [view.segment.ids for view in views]
    counts = [
        Counts(local.partition(n, partitions), [_ids_of(ids, n, partitions) for ids in tables])
        for n in range(partitions)
    ]
    return [(local.documents, local.tokens), *counts]


def _ids_of(ids: StringTable, number: int, of: int) -> StringTable:
    part = partition_of(ids.keys, number, of)
    column = select_strings(ids.column, ids.order[part].astype(np.int64))
    return StringTable(column, np.array(ids.keys[part]), np.empty(0, np.uint32))


def merge_partition(*shards: Counts) -> Merged:
    """Merge a partition of all shards, in their order."""
    tables = [ids for counts in shards for ids in counts.ids]
    joined = JoinedTerms(tables)
    occurrences = np.zeros(len(joined), np.int64)
    for numbers in joined.numbers:
        occurrences[as_index(numbers)] += 1
    twice, _ = joined.table(np.flatnonzero(occurrences > 1))
    names = [id or "" for id in twice.column.texts(range(len(twice)))]
    return Merged(merge_counts([part for counts in shards for part in counts.terms]), names)


def check_unique(plan: Plan, receipts: Sequence[Receipt], merged: Sequence[Merged]) -> None:
    """Raise ``DuplicateIdError``, which names the files, if two shards have an id."""
    for id in chain.from_iterable(one.twice for one in merged):
        places = []
        for number, receipt in enumerate(receipts):
            shard = BM25Index.open(
                built_folder(plan.folder, receipt),
                tokenizer=plan.each.empty.analyzer.any_tokenizer,
            )
            place = shard._snapshot.find(id)
            if place is not None:
                edges = [*accumulate(receipt.documents)]
                files = [file.path for file in receipt.files] or [f"shard {number}"]
                places.append(files[bisect_right(edges, place[1]) if len(edges) > 1 else 0])
        raise _duplicate(id, *places[:2])


# --- the end ----------------------------------------------------------------------------


def finish(
    plan: Plan,
    receipts: Sequence[Receipt],
    totals: Sequence[tuple[int, tuple[int, ...]]],
    merged: Sequence[TermCounts],
) -> None:
    """Commit the shards as an index.

    ``totals`` are the documents and tokens of each shard, ``merged`` all merged partitions, in
    order.
    """
    documents = sum(of_shard for of_shard, _ in totals)
    tokens = add_tokens(of_shard for _, of_shard in totals)
    empty = plan.each.empty
    state = empty._replace(extra=plan.each.extra, probe=empty.analyzer.probe())
    shards = [built_folder(plan.folder, receipt) for receipt in receipts]
    publish(plan.folder, shards, state, join_partitions(documents, tokens, merged))
    remove(os.path.join(plan.folder, BUILDING))
