"""The files that a build reads: which, how, and in which shard each goes."""

from __future__ import annotations

import csv
import hashlib
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from bm25rag.documents import Document
from bm25rag.readers import (
    PASSAGE_SIZE,
    Fields,
    Source,
    find_beir_corpus,
    kind_alone,
    kind_among,
    read_file,
    size_limit,
)
from bm25rag.readers import find_sources as find_named


class Reading(NamedTuple):
    """How files are read.

    ``format`` is one of ``bm25rag.readers.FORMATS``, or "auto": by the file's name. ``fields``
    are for files of records, and ``passage_size`` is for those that are split into passages.
    ``largest`` is the ``size_limit`` of the process that reads.
    """

    format: str = "auto"
    fields: Fields = Fields()
    passage_size: int = PASSAGE_SIZE
    largest: int | None = None


class SourceFile(NamedTuple):
    """A file to read; ``name`` is what ids call it, with ``in_folder`` those of its records too."""

    path: str
    kind: str
    name: str
    in_folder: bool
    size: int


class Fingerprint(NamedTuple):
    """What a file was when it was read: its size in bytes, and the BLAKE2b digest of them."""

    path: str
    size: int
    digest: str


def find_sources(
    files: str | PathLike[str] | Iterable[str | PathLike[str]], format: str
) -> list[SourceFile]:
    """Find the files to read, in the order of their documents.

    They are a file, a folder, a pattern such as ``"corpus/*.jsonl"``, or an iterable of files;
    those of a folder or a pattern are in the order of their names. ``format`` is as in ``Reading``.
    A ``ValueError`` says that the kind of a file is not known.
    """
    if not isinstance(files, (str, PathLike)):
        files = list(files)
        named = find_named(files) if files else []
        return [_alone(source.path, format, source.prefix) for source in named]
    (source,) = find_named([files])
    is_beir = source.pattern is None and format == "auto"
    if is_beir and (corpus := find_beir_corpus(source.path)) is not None:
        return [_alone(corpus, format, corpus.name)]
    if source.pattern is None and not source.path.is_dir():
        return [_alone(source.path, format, source.prefix)]
    return list(_in_folder(source, format))


def _in_folder(source: Source, format: str) -> Iterator[SourceFile]:
    by_pattern = source.pattern is not None
    for file in source.files():
        kind = kind_among(file.path, format, by_pattern) or ("passages" if by_pattern else None)
        if file.problem is None and kind is not None:
            yield _file(file.path, kind, file.name, not by_pattern)
        elif file.expected:
            raise OSError(f"{file.path}: {file.problem}")


def _alone(path: Path, format: str, name: str) -> SourceFile:
    kind = kind_alone(path) if format == "auto" else format
    if kind is None:
        raise ValueError(f"{path}: its name does not show its kind; pass format=")
    return _file(path, kind, name, False)


def _file(path: Path, kind: str, name: str, in_folder: bool) -> SourceFile:
    return SourceFile(os.path.abspath(path), kind, name, in_folder, path.stat().st_size)


def read_source(file: SourceFile, reading: Reading) -> Iterator[Document]:
    """Read the documents of a file; ids are those that ``bm25rag index`` gives them."""
    # Cells may hold whole articles; this process is a worker of ours.
    csv.field_size_limit(2**31 - 1)
    size_limit(reading.largest)
    path, fields, size = Path(file.path), reading.fields, reading.passage_size
    return read_file(path, file.kind, file.name, file.in_folder, fields, size)


def divide(files: list[SourceFile], shards: int) -> list[list[SourceFile]]:
    """Divide files, which stay in order, into shards of about as many bytes, none empty."""
    if len(files) < shards:
        raise ValueError(
            f"shards must be at most {len(files)}, the files, got {shards}: a shard has whole "
            "files; divide the files, or ask for fewer shards"
        )
    sums = [*accumulate((file.size for file in files), initial=0)]
    edges = [0]
    for shard in range(1, shards):
        wanted = sums[-1] * shard / shards
        edge = bisect_left(sums, wanted)
        if edge and wanted - sums[edge - 1] < sums[edge] - wanted:
            edge -= 1
        edges.append(min(max(edge, edges[-1] + 1), len(files) - (shards - shard)))
    return [files[first:last] for first, last in pairwise([*edges, len(files)])]


def fingerprint(path: str) -> Fingerprint:
    """Read a whole file for its fingerprint; raise ``OSError`` if it cannot be read."""
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        return Fingerprint(path, file.tell(), digest.hexdigest())
