"""The manifest of a folder, which names the files of a commit.

A reader of the manifest sees one whole commit; files that it does not name are leftovers.
It is replaced in one step, after everything that it names is on disk.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, TypeVar

from bm25rag.common.clock import LAST_TIME
from bm25rag.common.patterns import late_pattern
from bm25rag.common.strings import text_of, utf8
from bm25rag.common.version import __version__
from bm25rag.errors import CorruptIndexError, FormatVersionError, NotAnIndexError
from bm25rag.storage.checksummed_file import UNREADABLE, FileRecord, open_regular, refuse
from bm25rag.storage.fs import new_file, replacing

try:
    from _blake2 import blake2b  # as ``random`` does: ``hashlib`` loads OpenSSL, 6 ms and 3.6 MiB
except ImportError:
    from hashlib import blake2b

VERSION = 1
# What a folder may need beyond this version that we know; see "Later versions" in docs/format.md.
KNOWN: frozenset[str] = frozenset()
MANIFEST = "manifest.json"
LOCK = "lock"
# While an index is built in a folder, where its documents are gathered; see ``bm25rag.building``.
BUILDING = "building"

_OURS = late_pattern(
    r"(segment|changes|statistics)-[0-9a-f]{16}\.bin|(manifest|download)-[0-9a-f]{16}\.tmp"
)
# Far larger than any real manifest; a larger one is not read.
LARGEST_MANIFEST = 1 << 26
# No size or count is larger.
_LARGEST = (1 << 62) - 1

_Parsed = TypeVar("_Parsed")


class Stored(NamedTuple):
    """The files of one segment: its own, and those of its changes."""

    segment: FileRecord
    changes: tuple[FileRecord, ...]


class Shards(NamedTuple):
    """How an index is divided into shards, of some consecutive segments each.

    ``segments`` and ``documents`` are how many each has. When the last has ``capacity`` documents,
    the next ones go to a new one. ``statistics`` is the file of those of the whole index; they
    are of as many documents, and ``tokens`` is the sum of the lengths of these, by field.
    """

    segments: tuple[int, ...]
    documents: tuple[int, ...]
    capacity: int
    tokens: tuple[int, ...]
    statistics: FileRecord

    @property
    def edges(self) -> list[int]:
        """Where the segments of each shard begin, and where those of the last end."""
        return [*accumulate(self.segments, initial=0)]

    @property
    def first_rows(self) -> list[int]:
        """The row of the first document of each shard in the whole index."""
        return [*accumulate(self.documents, initial=0)][:-1]


class Manifest(NamedTuple):
    """One commit: the settings, and the files of each segment in document order.

    ``settings`` are JSON values, see ``State.settings``; ``tokens`` is the total length of
    the documents of each segment, by field; ``time`` is when it was made, as ``now`` says it.
    ``shards`` is ``None`` if the index is not sharded.
    """

    commit: int
    settings: dict[str, Any]
    stored: tuple[Stored, ...]
    tokens: tuple[tuple[int, ...], ...]
    time: int = 0
    shards: Shards | None = None

    @property
    def commit_id(self) -> str:
        """The number of the commit, and a digest of what it is: files have random names."""
        return f"{self.commit}-{digest(self[1:])}"

    @property
    def shard_count(self) -> int:
        """How many shards there are; 0 if the index is not sharded."""
        return 0 if self.shards is None else len(self.shards.segments)

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [record.name for record in self.records()]

    def records(self) -> list[FileRecord]:
        """Return what is said about all files."""
        statistics = [] if self.shards is None else [self.shards.statistics]
        return [
            *chain.from_iterable((one.segment, *one.changes) for one in self.stored),
            *statistics,
        ]

    def some(self, numbers: Sequence[int]) -> Manifest:
        """Return the manifest of some of the segments, in their order."""
        stored, tokens, shards = self.stored, self.tokens, self.shards
        if shards is not None:
            places = [bisect_left(numbers, edge) for edge in shards.edges]
            counts = tuple(last - first for first, last in pairwise(places))
            shards = shards._replace(segments=counts)
        return self._replace(
            stored=tuple(stored[number] for number in numbers),
            tokens=tuple(tokens[number] for number in numbers),
            shards=shards,
        )

    def only(self, shard: int | None, folder: str) -> Manifest:
        """Return the manifest of the segments of one shard; ``None``: of all.

        It raises ``NotAnIndexError`` if there are no shards in ``folder``, ``ValueError`` if it
        has not this one.
        """
        if shard is None:
            return self
        if self.shards is None:
            raise NotAnIndexError(
                f"{folder} holds an index that is not sharded: use BM25Index.open"
            )
        if shard >= self.shard_count:
            raise ValueError(
                f"number must be less than {self.shard_count}, the shards, got {shard}"
            )
        return self.some(range(*self.shards.edges[shard : shard + 2]))


NO_COMMIT = Manifest(0, {}, (), ())
"""What stands for the manifest where there is none yet."""


def digest(contents: object) -> str:
    """Return a digest of JSON values, 16 hexadecimal digits."""
    return blake2b(_canonical(contents), digest_size=8).hexdigest()


def manifest_path(folder: str) -> str:
    """Return where the manifest of a folder is."""
    return os.path.join(folder, MANIFEST)


def read_manifest(folder: str, *, writing: bool = False, name: str | None = None) -> Manifest:
    """Read and check the manifest of a folder, to read it or to write to it too.

    ``name`` is that of the file; ``None`` for that of the last commit.
    """
    return read_sealed(folder, name or MANIFEST, "bm25rag", _parse_body, writing=writing)


def read_sharded(folder: str) -> Manifest:
    """Read the manifest of a folder; raise ``NotAnIndexError`` if its index is not sharded."""
    manifest = read_manifest(folder)
    manifest.only(0, folder)
    return manifest


def read_sealed(
    folder: str,
    name: str,
    format: str,
    parse: Callable[[Mapping[str, Any]], _Parsed],
    *,
    writing: bool = False,
) -> _Parsed:
    """Read a file that ``replace_sealed`` wrote, and parse its body.

    Raise ``NotAnIndexError`` if it is missing, perhaps because a build has not ended, or of another
    format; ``FormatVersionError`` if only a newer bm25rag can read it, or, with ``writing``, write
    to its folder; ``CorruptIndexError`` if it is damaged, or ``parse`` raises an ``UNREADABLE``.
    """
    path = os.path.join(folder, name)
    try:
        with open_regular(path) as file:
            # A larger one is cut off, and so refused.
            data = file.read(min(os.fstat(file.fileno()).st_size, LARGEST_MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        if os.path.exists(os.path.join(folder, BUILDING)):
            raise NotAnIndexError(unfinished(folder)) from None
        raise NotAnIndexError(f"{folder} holds no bm25rag index: there is no {name}") from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotAnIndexError(f"{folder} is a link to itself; name another folder") from None
    return parse_sealed(path, data, format, parse, writing=writing)


def unfinished(folder: str) -> str:
    """Return what to say of a folder in which a build has not ended."""
    return f"the build in {folder} has not ended: call build again with its arguments"


def parse_manifest(path: str, data: bytes, *, writing: bool = False) -> Manifest:
    """Check the contents of a manifest, which ``path`` names for messages."""
    return parse_sealed(path, data, "bm25rag", _parse_body, writing=writing)


def parse_sealed(
    path: str,
    data: bytes,
    format: str,
    parse: Callable[[Mapping[str, Any]], _Parsed],
    *,
    writing: bool = False,
) -> _Parsed:
    """Parse what ``read_sealed`` has read; raise as it does."""
    try:
        outer = json.loads(text_of(data))
        if not isinstance(outer, dict) or outer.get("format") != format:
            raise NotAnIndexError(f"{path} is not the manifest of a {format} index")
        if natural(outer["version"]) > VERSION:
            raise FormatVersionError(
                f"{path} has format version {outer['version']}, newer than {VERSION}: "
                f"install {_writer_of(outer)}"
            )
        body = outer["body"]
        if outer["checksum"] != zlib.crc32(_canonical(body)):
            raise ValueError("it does not have the recorded checksum")
        needs = body.pop("needs")
        if unknown := sorted({*needs["read"]} - KNOWN):
            raise FormatVersionError(
                f"{path} needs a reader that knows {', '.join(unknown):.100}, which this bm25rag "
                f"does not: install {_writer_of(outer)}"
            )
        if writing and (unknown := sorted({*needs["write"]} - KNOWN)):
            raise FormatVersionError(
                f"{path} needs a writer that knows {', '.join(unknown):.100}, which this bm25rag "
                f"does not: open it with mode='r', or install {_writer_of(outer)}"
            )
        return parse(body)
    except (*UNREADABLE, CorruptIndexError) as error:
        raise refuse(f"{path}: cannot be read ({error}); restore the folder from a copy") from None


def _writer_of(outer: Mapping[str, Any]) -> str:
    """Name the bm25rag that wrote a manifest, as far as it says so."""
    version = outer.get("written_by")
    return f"bm25rag {version:.40} or newer" if isinstance(version, str) else "a newer bm25rag"


def _canonical(body: object) -> bytes:
    return utf8(json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _parse_body(body: Mapping[str, Any]) -> Manifest:
    stored = []
    tokens = []
    for entry in body["segments"]:
        changes = tuple(_parse_record(change) for change in entry["changes"])
        stored.append(Stored(_parse_record(entry), changes))
        tokens.append(_parse_tokens(entry["tokens"]))
    if not isinstance(body["settings"], dict):
        raise TypeError("settings is not an object")
    manifest = Manifest(
        natural(body["commit"]),
        body["settings"],
        tuple(stored),
        tuple(tokens),
        _parse_time(body["time"]),
        _parse_shards(body["shards"], len(stored)) if "shards" in body else None,
    )
    names = manifest.names()
    if len(set(names)) != len(names):
        raise ValueError("a file is named twice")
    return manifest


def _parse_shards(entry: Mapping[str, Any], segments: int) -> Shards:
    shards = Shards(
        tuple(map(natural, entry["segments"])),
        tuple(map(natural, entry["documents"])),
        natural(entry["capacity"]),
        _parse_tokens(entry["tokens"]),
        _parse_record(entry["statistics"]),
    )
    if not shards.segments or len(shards.segments) != len(shards.documents):
        raise ValueError("there are no shards, or not the documents of each")
    natural(sum(shards.documents))
    if sum(shards.segments) != segments:
        raise ValueError("the segments of the shards do not add up")
    return shards


def _parse_record(entry: Mapping[str, Any]) -> FileRecord:
    name = entry["file"]
    if not isinstance(name, str) or not is_ours(name):
        raise ValueError(f"{name!r} is not a file name of an index")
    return FileRecord(name, natural(entry["size"]), natural(entry["checksum"]))


def natural(number: object) -> int:
    """Return a number if it can be a size or a count; raise ``ValueError`` otherwise."""
    if type(number) is not int or not 0 <= number <= _LARGEST:
        raise ValueError(f"{number!r} is not a size")
    return number


def _parse_time(entry: object) -> int:
    """Return a time; raise ``ValueError`` for what no calendar has."""
    if natural(entry) > LAST_TIME:
        raise ValueError(f"{entry!r} is not a time")
    return natural(entry)


def _parse_tokens(entry: object) -> tuple[int, ...]:
    """Return lengths by field; raise ``ValueError`` for what cannot be such."""
    if not isinstance(entry, list) or not entry:
        raise ValueError(f"{entry!r:.100} are not lengths by field")
    return tuple(map(natural, entry))


def is_ours(name: str) -> bool:
    """Whether a file of this name is one that a commit writes, beside its manifest."""
    return _OURS.fullmatch(name) is not None


def clean(folder: str, *manifests: Manifest) -> None:
    """Remove our files that no manifest names."""
    named = {name for manifest in manifests for name in manifest.names()}
    # Windows keeps a file that a reader has mapped; a later commit removes what remains.
    with suppress(OSError):
        for name in os.listdir(folder):
            if is_ours(name) and name not in named:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def replace_manifest(folder: str, manifest: Manifest) -> None:
    """Make a commit visible, all at once; ``flush_folder`` makes it durable."""
    body = {
        "commit": manifest.commit,
        "time": manifest.time,
        "settings": manifest.settings,
        "segments": [
            record_entry(stored.segment)
            | {"tokens": tokens, "changes": list(map(record_entry, stored.changes))}
            for stored, tokens in zip(manifest.stored, manifest.tokens, strict=True)
        ],
    }
    counts = (manifest.commit, *chain(*manifest.tokens))
    if (shards := manifest.shards) is not None:
        body["shards"] = shards._asdict() | {"statistics": record_entry(shards.statistics)}
        counts = (*counts, *shards.tokens)
    replace_sealed(folder, MANIFEST, "bm25rag", body, counts)


def replace_sealed(
    folder: str, name: str, format: str, body: dict[str, Any], counts: Sequence[int] = ()
) -> None:
    """Replace a file by JSON values with a checksum, all at once.

    ``format`` is what ``read_sealed`` expects; ``counts`` are numbers in ``body`` that have been
    counted up. What could not be read again is refused.
    """
    path = os.path.join(folder, name)
    body = {"needs": {"read": [], "write": []}} | body
    outer = {
        "format": format,
        "version": VERSION,
        "written_by": __version__,
        "checksum": zlib.crc32(_canonical(body)),
        "body": body,
    }
    data = utf8(json.dumps(outer, indent=1, ensure_ascii=False))
    if len(data) > LARGEST_MANIFEST:
        raise ValueError(
            f"the settings of {folder} take {len(data):,} bytes, of which there "
            f"may be {LARGEST_MANIFEST:,}; keep less in extra"
        )
    for number in counts:
        if number > _LARGEST:
            raise CorruptIndexError(
                f"{path}: has counted to {number:,}, beyond what can be stored; "
                "save the index in another folder"
            )
    with replacing(path, os.path.join(folder, "manifest")) as new, new_file(new) as file:
        file.write(data)


def record_entry(record: FileRecord) -> dict[str, Any]:
    """Return what a manifest says about a file."""
    return {"file": record.name, "size": record.size, "checksum": record.checksum}
