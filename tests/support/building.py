"""What the tests of builds share: documents, and the files that a build must end with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bm25rag import BM25Index, Document
from bm25rag.storage.manifest import read_manifest


def documents(count: int = 40) -> Iterator[Document]:
    """Yield documents one by one."""
    for number in range(count):
        text = f"boat {number % 3} {'sea ' * (number % 4)} word{number}"
        yield Document(f"d{number}", text, {"n": number}, bytes([number % 256]))


def segment_of(folder: Path) -> bytes | None:
    """Return the one segment file of an index; ``None`` if it has no documents."""
    files = [path.read_bytes() for path in folder.glob("segment-*.bin")]
    assert len(files) <= 1
    return files[0] if files else None


def segment_in_memory(
    folder: Path, given: Iterable[Document | Any], add: dict[str, Any], settings: dict[str, Any]
) -> bytes | None:
    """Return the segment file of an index of documents or texts that was built in memory."""
    index, given = BM25Index(**settings), list(given)
    if given and isinstance(given[0], Document):
        index.add_documents(given, **add)
    else:
        index.add(given, **add)
    index.save(folder)
    return segment_of(folder)


def segment_of_shard(folder: Path, number: int) -> Path:
    """Return the file of the only segment of a shard."""
    ((record, _),) = read_manifest(str(folder)).only(number, "").stored
    return folder / record.name


def documents_of_shards(folder: Path) -> list[int]:
    """Return how many documents each shard has."""
    shards = read_manifest(str(folder)).shards
    assert shards is not None
    return list(shards.documents)


def contents(folder: Path) -> list[bytes]:
    """Return the bytes of every segment and of the statistics, in order."""
    return [(folder / name).read_bytes() for name in read_manifest(str(folder)).names()]
