"""A saved index: a folder of files that are written once, and a manifest that is replaced last.

Whoever reads the manifest sees one commit, whole; whatever it does not name is a
leftover. Nothing is unpickled, nothing named in a file is imported, and no path
leaves the folder.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bm25rag._types import text_of, utf8
from bm25rag.arrays_file import UNREADABLE, Array, ArraysFile, FileRecord, write_arrays
from bm25rag.columns import Column, StringTable, build_column
from bm25rag.errors import CorruptIndexError, FormatVersionError, LockedError, NotAnIndexError
from bm25rag.postings import Fronts, Postings
from bm25rag.segment import Part, Segment

if TYPE_CHECKING:
    from filelock import BaseFileLock

VERSION = 1
MANIFEST = "manifest.json"
LOCK = "lock"

_OURS = re.compile(r"(segment|changes)-[0-9a-f]{16}\.bin|manifest-[0-9a-f]{16}\.tmp")
_RETRIES = 20


@dataclass(frozen=True)
class Stored:
    """Where a part lies on disk: its segment's file, and what has changed since, if anything."""

    segment: FileRecord
    changes: FileRecord | None


@dataclass(frozen=True)
class Manifest:
    """One commit: the settings, and the files of each part in document order.

    ``settings`` are JSON values that the index itself understands; ``tokens`` the total
    length of each segment.
    """

    commit: int
    settings: dict[str, Any]
    stored: tuple[Stored, ...]
    tokens: tuple[int, ...]


# --- reading ---------------------------------------------------------------------


def read_index(folder: Path, mapped: bool) -> tuple[Manifest, list[Part]]:
    """Read the last commit of a folder.

    Raises
    ------
    NotAnIndexError
        If the folder holds no index.
    FormatVersionError
        If a newer bm25rag wrote it.
    CorruptIndexError
        If a file is damaged.
    """
    for attempt in range(_RETRIES):
        manifest = read_manifest(folder)
        try:
            numbers = range(len(manifest.stored))
            return manifest, [_read_part(folder, manifest, number, mapped) for number in numbers]
        except FileNotFoundError as error:
            # A writer has committed and cleaned up in between: read again.
            if read_manifest(folder).commit == manifest.commit or attempt == _RETRIES - 1:
                raise CorruptIndexError(
                    f"{error.filename}: is missing; restore the folder from a copy"
                ) from None
    raise AssertionError("unreachable")


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a folder."""
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotAnIndexError(f"{folder} holds no bm25rag index: there is no {MANIFEST}") from None
    try:
        outer = json.loads(text_of(data))
        body = outer["body"]
        if outer["format"] != "bm25rag":
            raise NotAnIndexError(f"{path} is not the manifest of a bm25rag index")
        if _natural(outer["version"]) > VERSION:
            raise FormatVersionError(
                f"{path} has format version {outer['version']}, newer than {VERSION}: "
                "install a newer bm25rag"
            )
        if outer["checksum"] != zlib.crc32(_canonical(body)):
            raise ValueError("it does not have the recorded checksum")
        return _parse_body(body)
    except (*UNREADABLE, CorruptIndexError) as error:
        raise CorruptIndexError(
            f"{path}: cannot be read ({error}); restore the folder from a copy"
        ) from None


def _canonical(body: object) -> bytes:
    return utf8(json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _parse_body(body: Mapping[str, Any]) -> Manifest:
    stored = []
    tokens = []
    for entry in body["segments"]:
        changes = entry["changes"]
        stored.append(
            Stored(_parse_record(entry), None if changes is None else _parse_record(changes))
        )
        tokens.append(_natural(entry["tokens"]))
    if not isinstance(body["settings"], dict):
        raise TypeError("settings is no object")
    return Manifest(_natural(body["commit"]), body["settings"], tuple(stored), tuple(tokens))


def _parse_record(entry: Mapping[str, Any]) -> FileRecord:
    name = entry["file"]
    if not isinstance(name, str) or not _OURS.fullmatch(name):
        raise ValueError(f"{name!r} is no file name of an index")
    return FileRecord(name, _natural(entry["size"]), _natural(entry["checksum"]))


def _natural(number: object) -> int:
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise ValueError(f"{number!r} is no size")
    return number


def _read_part(folder: Path, manifest: Manifest, number: int, mapped: bool) -> Part:
    stored = manifest.stored[number]
    file = ArraysFile(folder / stored.segment.name, stored.segment, mapped)
    segment = _read_segment(file, manifest.tokens[number])
    part = Part(segment)
    if stored.changes is not None:
        changes = ArraysFile(folder / stored.changes.name, stored.changes, mapped=False)
        changes.check_all()
        part = Part(segment, *_read_changes(changes, len(segment)))
    if part.tokens < 0:
        raise file.reject("lengths", "does not agree with the manifest")
    return part


def _read_segment(file: ArraysFile, tokens: int) -> Segment:
    lengths = file.array("lengths", "u4")
    count = len(lengths)
    term_keys = file.array("terms.keys", "u4")
    documents = file.array("documents", "u2", "u4")
    code_tf = file.array("code_tf", "u4")
    front_terms = file.array("front.terms", "u4")
    none = np.empty(0, np.uint32)
    postings = Postings(
        StringTable(
            _read_column(file, "terms", len(term_keys), full=True), term_keys, none, file, "terms"
        ),
        file.array("indptr", "u4", "u8", count=len(term_keys) + 1),
        documents,
        file.array("codes", "u2", "u4", count=len(documents)),
        code_tf,
        file.array("code_length", "u4", count=len(code_tf)),
        lengths,
        Fronts(
            front_terms,
            file.array("front.indptr", "u4", count=len(front_terms) + 1),
            file.array("front.codes", "u2", "u4"),
        ),
        file,
    )
    ids = StringTable(
        _read_column(file, "ids", count, full=True),
        file.array("ids.keys", "u4", count=count),
        file.array("ids.order", "u4", count=count),
        file,
        "ids",
    )
    return Segment(
        postings,
        ids,
        _read_column(file, "texts", count),
        _read_column(file, "metadata", count),
        _read_column(file, "payloads", count),
        tokens,
    )


def _read_column(file: ArraysFile, name: str, count: int, full: bool = False) -> Column:
    offsets = file.array(f"{name}.offsets", "u8")
    null = file.array(f"{name}.null", "b1")
    if len(offsets) != count + 1 and (full or len(offsets)):
        raise file.reject(f"{name}.offsets", f"has {len(offsets)} elements, expected {count + 1}")
    if len(null) and (full or len(null) != count or not len(offsets)):
        raise file.reject(f"{name}.null", f"has {len(null)} elements")
    return Column(offsets, file.array(f"{name}.data", "u1"), null, count, file, name)


def _read_changes(file: ArraysFile, count: int) -> tuple[Array, dict[int, bytes]]:
    dead = file.array("dead", "u4")
    numbers = file.array("changed", "u4")
    for name, values in (("dead", dead), ("changed", numbers)):
        if np.any(values[1:] <= values[:-1]) or (len(values) and int(values[-1]) >= count):
            raise file.reject(name, "does not ascend within the documents")
    column = _read_column(file, "metadata", len(numbers))
    return dead, dict(zip(numbers.tolist(), (bytes(data or b"") for data in column), strict=True))


# --- writing ---------------------------------------------------------------------


def check_target(folder: Path) -> None:
    """Refuse a folder that holds something else.

    Raises
    ------
    NotAnIndexError
        If it is a file, or not empty and no index.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotAnIndexError(f"{folder} is a file; choose a folder")
    names = {path.name for path in folder.iterdir()}
    strangers = [name for name in names if name != LOCK and not _OURS.fullmatch(name)]
    if strangers and MANIFEST not in names:
        raise NotAnIndexError(
            f"{folder} is not empty and holds no bm25rag index; choose another folder"
        )


def lock(folder: Path) -> BaseFileLock:
    """Take the writer's lock of a folder, which ends with the process at the latest.

    Raises
    ------
    LockedError
        If another writer holds it.
    """
    from filelock import FileLock, Timeout

    held = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        held.acquire()
    except Timeout:
        raise LockedError(f"another writer has {folder} open; close it first") from None
    return held


def write_commit(
    folder: Path,
    commit: int,
    settings: dict[str, Any],
    parts: Sequence[Part],
    known: Mapping[Segment, FileRecord],
    known_changes: Mapping[Part, FileRecord | None],
) -> Manifest:
    """Write what is not on disk yet, then the manifest. The caller holds the lock.

    Parameters
    ----------
    folder
        An existing folder that ``check_target`` passes.
    commit
        The new commit's number.
    settings
        JSON values for the manifest.
    parts
        The parts, in document order.
    known, known_changes
        Files of the folder that hold a segment, or the changes of a part, already.
    """
    written: list[Path] = []
    stored = []
    try:
        for part in parts:
            segment = known.get(part.segment)
            if segment is None:
                segment = _write(folder, "segment", _segment_arrays(part.segment), written)
            if part in known_changes:
                changes = known_changes[part]
            else:
                changed = bool(len(part.dead) or part.changed)
                changes = (
                    _write(folder, "changes", _change_arrays(part), written) if changed else None
                )
            stored.append(Stored(segment, changes))
        tokens = tuple(part.segment.tokens for part in parts)
        manifest = Manifest(commit, settings, tuple(stored), tokens)
        _flush_folder(folder)
        _replace_manifest(folder, manifest)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        raise
    # From here on the commit is visible: whatever fails now, its files must stay.
    _flush_folder(folder)
    clean(folder, manifest)
    return manifest


def clean(folder: Path, manifest: Manifest) -> None:
    """Remove files of ours that the manifest does not name."""
    named = {
        record.name for pair in manifest.stored for record in (pair.segment, pair.changes) if record
    }
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in named:
            # Windows keeps a file that a reader has mapped; a later commit removes it.
            with suppress(OSError):
                path.unlink()


def _write(folder: Path, kind: str, arrays: dict[str, Array], written: list[Path]) -> FileRecord:
    path = folder / f"{kind}-{secrets.token_hex(8)}.bin"
    written.append(path)
    return write_arrays(path, arrays)


def _segment_arrays(segment: Segment) -> dict[str, Array]:
    segment.check_all()
    postings = segment.postings
    names = ("indptr", "documents", "codes", "code_tf", "code_length", "lengths")
    arrays = {name: getattr(postings, name) for name in names}
    fronts = zip(("terms", "indptr", "codes"), postings.fronts, strict=True)
    arrays |= {f"front.{name}": values for name, values in fronts}
    arrays["terms.keys"] = postings.terms.keys
    arrays["ids.keys"], arrays["ids.order"] = segment.ids.keys, segment.ids.order
    columns = {
        "terms": postings.terms.column,
        "ids": segment.ids.column,
        "texts": segment.texts,
        "metadata": segment.metadata,
        "payloads": segment.payloads,
    }
    for name, column in columns.items():
        arrays |= _column_arrays(name, column)
    return arrays


def _change_arrays(part: Part) -> dict[str, Array]:
    numbers = sorted(part.changed)
    column = build_column(part.changed[number] for number in numbers)
    arrays = {"dead": part.dead, "changed": np.array(numbers, np.uint32)}
    return arrays | _column_arrays("metadata", column)


def _column_arrays(name: str, column: Column) -> dict[str, Array]:
    return {
        f"{name}.offsets": column.offsets,
        f"{name}.data": column.data,
        f"{name}.null": column.null,
    }


def _replace_manifest(folder: Path, manifest: Manifest) -> None:
    body = {
        "commit": manifest.commit,
        "settings": manifest.settings,
        "segments": [
            _record(pair.segment)
            | {"tokens": tokens, "changes": pair.changes and _record(pair.changes)}
            for pair, tokens in zip(manifest.stored, manifest.tokens, strict=True)
        ],
    }
    outer = {
        "format": "bm25rag",
        "version": VERSION,
        "checksum": zlib.crc32(_canonical(body)),
        "body": body,
    }
    new = folder / f"manifest-{secrets.token_hex(8)}.tmp"
    try:
        with new.open("xb") as file:
            file.write(utf8(json.dumps(outer, indent=1, ensure_ascii=False)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / MANIFEST)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def _record(record: FileRecord) -> dict[str, Any]:
    return {"file": record.name, "size": record.size, "checksum": record.checksum}


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be flushed there; NTFS journals the rename
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
