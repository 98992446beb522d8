"""A sharded index: its design, and how it is built step by step.

(1) A score needs its posting's tf and |d|, which a shard has, and N, avgdl and df of all documents:
``Statistics``, merged once, stored beside the shards, and given to a ``Snapshot``, which otherwise
counts its own. So one shard gives the scores, to the bit, that the whole index gives.
(2) A shard is some consecutive segments of the folder; the manifest says how many each has. So
whatever works on a folder works on one of shards: commits, readers, backups, repair. Document
order, which breaks ties, is the order of the shards. New documents go to the last shard and, when
it is full, to a new one behind it; ``FolderWriter.group`` keeps segments of two apart.
(3) Within a process no answers are merged: a ``BM25Index`` has the segments of all shards, one
after another. ``bm25rag.open_shard`` opens one shard, and merges answers, for a cluster.
(4) df is summed by partitions of the terms' CRC-32, in whose order term tables are; terms are
equal if their bytes are.
(5) A build gathers parts, makes each shard an index folder in ``building``, merges the statistics
and, last, links the files of all into the folder and replaces its manifest. What each step has
written tells that it need not be done again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, pairwise

import numpy as np

from bm25rag.building.build import write_merged
from bm25rag.building.folder import locked_to_build
from bm25rag.building.gathering import gather
from bm25rag.building.plan import Plan
from bm25rag.common.checks import check_count, check_sequence
from bm25rag.common.clock import now
from bm25rag.documents import Document, Text
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.segments.statistics import Statistics
from bm25rag.segments.view import SegmentView
from bm25rag.storage.folder_lock import locked_folder
from bm25rag.storage.fs import flush_folder, link_file, make_folder
from bm25rag.storage.leftovers import remove
from bm25rag.storage.manifest import BUILDING, Manifest, clean, read_manifest, replace_manifest
from bm25rag.storage.segment_files import read_index
from bm25rag.storage.shard_statistics import count_shards
from bm25rag.storage.state import State

# A new shard begins when the last has twice as many documents as one had at first, or this many.
SMALLEST_CAPACITY = 1 << 16


def build_sharded(
    documents: Iterable[Document | Text], folder: str | os.PathLike[str], shards: int, plan: Plan
) -> None:
    """Build a sharded index in a folder, or go on where that was interrupted; see ``gather``."""
    count = check_count("shards", shards, least=1)
    check_sequence("documents", documents, "bm25rag.Document or texts")
    with locked_to_build(folder) as (path, _):
        building = os.path.join(path, BUILDING)
        each = [os.path.join(building, f"shard-{number:04d}") for number in range(count)]
        receipt = _receipt(building)
        if not (isinstance(receipt, dict) and receipt.get("read")):
            for shard in each:  # of documents that this build's are not compared with
                remove(shard)
        state = gather(documents, path, plan, count)
        write_shards(state, each, even_edges(sum(view.count for view in state.views), count), plan)
        publish(path, each, state)
        del state  # or Windows would keep the files of the parts
        remove(building)


def even_edges(documents: int, shards: int) -> list[int]:
    """Return where each of some shards begins, and where the last ends."""
    return [documents * number // shards for number in range(shards + 1)]


def write_shards(state: State, folders: Sequence[str], edges: Sequence[int], plan: Plan) -> None:
    """Write each shard that is not there yet: the rows from one edge to before the next."""
    for folder, (first, last) in zip(folders, pairwise(edges), strict=True):
        receipt = {"rows": [first, last]}
        if _receipt(folder) == receipt:
            continue
        remove(folder)
        make_folder(folder)
        part = state._replace(views=_between(state.views, first, last), extra=receipt)
        with locked_folder(folder) as held:
            write_merged(folder, held, part, plan, os.path.dirname(folder))


def _receipt(folder: str) -> object:
    with suppress(NotAnIndexError, CorruptIndexError):
        return read_manifest(folder).settings.get("extra")
    return None


def _between(views: Sequence[SegmentView], first: int, last: int) -> list[SegmentView]:
    """Return the segments with the rows from ``first`` to before ``last``, without others."""
    pieces, base = [], 0
    for view in views:
        low, high = max(first - base, 0), min(last - base, view.count)
        if low < high:
            numbers = np.asarray(view.numbers())
            others = np.concatenate((numbers[:low], numbers[high:]))
            pieces.append(view.without(others) if len(others) else view)
        base += view.count
    return pieces


def publish(
    folder: str, shards: Sequence[str], state: State, statistics: Statistics | None = None
) -> None:
    """Commit shards, which are index folders, as one index.

    The settings are those of ``state``. ``statistics`` are those of all shards; ``None`` counts
    them.
    """
    clean(folder)  # what an interrupted step has left
    commits = [read_index(shard, mapped=True, known={}) for shard in shards]
    for shard, (manifest, _, _) in zip(shards, commits, strict=True):
        for name in manifest.names():
            link_file(os.path.join(shard, name), os.path.join(folder, name))
    views = [*chain.from_iterable(commit.views for commit in commits)]
    stored = tuple(chain.from_iterable(commit.manifest.stored for commit in commits))
    tokens = tuple(chain.from_iterable(commit.manifest.tokens for commit in commits))
    segments = tuple(len(commit.views) for commit in commits)
    documents = sum(view.count for view in views)
    capacity = max(SMALLEST_CAPACITY, 2 * -(-documents // len(shards)))
    counted = count_shards(folder, state._replace(views=views), segments, capacity, statistics)
    flush_folder(folder)
    replace_manifest(folder, Manifest(1, state.settings(), stored, tokens, now(), counted))
    flush_folder(folder)
