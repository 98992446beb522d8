"""The folder of a sharded index, and the manifest that names its last commit.

::

    sharded.json            the manifest, replaced last: the commit, its settings, its shards
    lock                    the lock of the one writer
    commit-3/
        statistics.bin      terms and document frequencies of the whole collection
        shard-0000/         an ordinary index folder
        shard-0001/
    building/               while documents are gathered, an ordinary index folder
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple

from bm25rag.building.folder import remove
from bm25rag.errors import CorruptIndexError, NotAnIndexError
from bm25rag.storage.checksummed_file import FileRecord, open_regular
from bm25rag.storage.fs import flush_folder
from bm25rag.storage.manifest import (
    MANIFEST,
    SHARDED,
    digest,
    manifest_path,
    natural,
    parse_sealed,
    parse_time,
    parse_tokens,
    read_sealed,
    record_entry,
    replace_sealed,
    sealed,
)

STATISTICS = "statistics.bin"

_FORMAT = "bm25rag-sharded"
_OURS = re.compile(r"commit-\d+|building|manifest-[0-9a-f]{16}\.tmp")


class ShardRecord(NamedTuple):
    """What the manifest says about a shard: its documents, and the CRC-32 of its manifest."""

    documents: int
    checksum: int


class ShardedManifest(NamedTuple):
    """One commit of a sharded index.

    ``settings`` are those of ``State.settings``; ``statistics`` is the id that all shards
    must carry, ``file`` holds these statistics. When the last shard has ``capacity``
    documents, the next ones go to a new shard. ``time`` is as in ``Manifest``.
    """

    commit: int
    settings: dict[str, Any]
    statistics: str
    documents: int
    tokens: tuple[int, ...]
    file: FileRecord
    shards: tuple[ShardRecord, ...]
    capacity: int
    time: int

    @property
    def commit_id(self) -> str:
        """The number of the commit, and a digest of what it is."""
        return f"{self.commit}-{digest(self[1:])}"

    def numbers(self, only: int | None) -> Sequence[int]:
        """Return the numbers of all shards, or of one; raise ``ValueError`` if it is not there."""
        count = len(self.shards)
        if only is not None and only >= count:
            raise ValueError(f"number must be less than {count}, the shards, got {only}")
        return range(count) if only is None else [only]

    @property
    def first_rows(self) -> list[int]:
        """The row of the first document of each shard in the whole index."""
        return [*accumulate((shard.documents for shard in self.shards), initial=0)][:-1]


def commit_folder(folder: str, commit: int) -> str:
    """Return where the files of a commit are."""
    return os.path.join(folder, f"commit-{commit}")


def shard_folder(folder: str, commit: int, number: int) -> str:
    """Return where a shard of a commit is."""
    return os.path.join(commit_folder(folder, commit), f"shard-{number:04d}")


def shard_receipt(number: int, statistics: str | None) -> dict[str, Any]:
    """Return what a shard's ``extra`` says: its number, and the id of its statistics."""
    return {"shard": number, "statistics": statistics}


def check_shard(folder: str, number: int, settings: Mapping[str, Any], of: ShardedManifest) -> None:
    """Check that a shard, whose manifest has been read, is one of a commit.

    A ``CorruptIndexError`` says that it has another number, statistics id or settings, or another
    manifest.
    """
    receipt, expected = settings.get("extra"), shard_receipt(number, of.statistics)
    problem = None
    if receipt != expected:
        problem = f"carries {receipt!r:.200}, but this index has {expected!r}"
    elif any(settings.get(name) != of.settings.get(name) for name in ("analyzer", "parameters")):
        problem = "has another analyzer or other parameters than the index"
    elif manifest_checksum(folder) != of.shards[number].checksum:
        problem = f"has another {MANIFEST} than was committed"
    if problem is not None:
        raise CorruptIndexError(
            f"{folder}: {problem}; shards of two builds cannot be mixed: "
            "restore the whole folder from one copy"
        )


def manifest_checksum(folder: str) -> int:
    """Return the CRC-32 of the manifest of a shard."""
    with open_regular(manifest_path(folder)) as file:
        return zlib.crc32(file.read())


def read_sharded(folder: str, *, writing: bool = False, name: str | None = None) -> ShardedManifest:
    """Read the manifest of a sharded index, as ``read_manifest`` does its own."""
    try:
        return read_sealed(folder, name or SHARDED, _FORMAT, _parse, writing=writing)
    except NotAnIndexError:
        if name is None and os.path.exists(manifest_path(folder)):
            message = f"{folder} holds an index that is not sharded: use BM25Index.open"
            raise NotAnIndexError(message) from None
        raise


def parse_sharded(path: str, data: bytes) -> ShardedManifest:
    """Check the contents of a manifest, which ``path`` names for messages."""
    return parse_sealed(path, data, _FORMAT, _parse)


def _parse(body: Mapping[str, Any]) -> ShardedManifest:
    shards = [
        ShardRecord(natural(shard["documents"]), natural(shard["checksum"]))
        for shard in body["shards"]
    ]
    if not shards or not isinstance(body["settings"], dict):
        raise ValueError("there are no shards or settings")
    if not isinstance(body["statistics"], str):
        raise TypeError("statistics is not a string")
    documents = natural(body["documents"])
    if sum(shard.documents for shard in shards) != documents:
        raise ValueError("the documents of the shards do not add up")
    file = FileRecord(STATISTICS, natural(body["size"]), natural(body["checksum"]))
    return ShardedManifest(
        natural(body["commit"]),
        body["settings"],
        body["statistics"],
        documents,
        parse_tokens(body["tokens"]),
        file,
        tuple(shards),
        natural(body["capacity"]),
        parse_time(body["time"]),
    )


def replace_sharded(folder: str, manifest: ShardedManifest) -> None:
    """Make a commit visible, all at once, when its files and their names are on disk."""
    flush_folder(commit_folder(folder, manifest.commit))
    flush_folder(folder)
    replace_sealed(folder, SHARDED, _FORMAT, *_entry(manifest))


def sealed_sharded(folder: str, manifest: ShardedManifest) -> bytes:
    """Return what the file of a manifest holds; ``folder`` is for messages."""
    return sealed(f"{folder}/{SHARDED}", _FORMAT, *_entry(manifest))


def _entry(manifest: ShardedManifest) -> tuple[dict[str, Any], Sequence[int]]:
    """Return a manifest as JSON values, and the numbers in it that have been counted up."""
    record = record_entry(manifest.file)
    body = {
        "commit": manifest.commit,
        "settings": manifest.settings,
        "statistics": manifest.statistics,
        "documents": manifest.documents,
        "tokens": manifest.tokens,
        "size": record["size"],
        "checksum": record["checksum"],
        "shards": [shard._asdict() for shard in manifest.shards],
        "capacity": manifest.capacity,
        "time": manifest.time,
    }
    return body, (manifest.commit, manifest.documents, *manifest.tokens)


def clean_sharded(folder: str, *commits: int) -> None:
    """Remove what belongs to other commits, once these are on disk."""
    flush_folder(folder)
    kept = {os.path.basename(commit_folder(folder, commit)) for commit in commits}
    # Windows keeps a file that a reader has mapped; a later commit removes what remains.
    with suppress(OSError):
        for name in os.listdir(folder):
            if _OURS.fullmatch(name) and name not in kept:
                remove(os.path.join(folder, name))
