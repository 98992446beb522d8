"""Index folders: reading and rewriting manifests, checking for leftovers."""

from __future__ import annotations

import copy
import json
import zlib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from bm25rag import BM25Index
from bm25rag.storage.manifest import LOCK, MANIFEST, read_manifest

# Queries for hostile folders.
QUERIES = ["red", "green boat", "red sea word7", "word3 word4 word5", "unknown"]


def body_of(folder: Path) -> Any:
    """Read the body of the manifest."""
    return json.loads((folder / MANIFEST).read_bytes())["body"]


def replaced(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Copy a tree with one value replaced."""
    if not path:
        return value
    changed = copy.deepcopy(tree)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def write_manifest(folder: Path, body: Any) -> None:
    """Write a manifest with a valid checksum."""
    path = folder / MANIFEST
    outer = json.loads(path.read_bytes())
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")
    outer |= {"body": body, "checksum": zlib.crc32(canonical)}
    path.unlink()  # ext4 flushes a file that is written over, which takes thirty times as long
    path.write_text(json.dumps(outer))


def no_leftovers(folder: Path) -> bool:
    """Whether the folder holds what the manifest names and nothing else."""
    names = {path.name for path in folder.iterdir()} - {LOCK}
    return names == {MANIFEST, *read_manifest(folder).names()}


def _metadata(number: int) -> dict[str, Any]:
    """Make metadata that needs every array of the fields."""
    some = {"tags": ["x", number % 3, 1.5 * number], "day": date(2024, 1, 1 + number)}
    return {"n": number, "text": f"t{number % 7}", **(some if number % 4 else {})}


@cache
def thirty_documents(fields: bool = False) -> BM25Index:
    """Make an index of thirty documents, to be shared and never changed."""
    texts = [f"red boat word{number % 9} " * (1 + number % 5) for number in range(30)]
    return BM25Index.from_texts(
        [{"title": text[:8], "text": text} for text in texts] if fields else texts,
        fields={"title": 3.0} if fields else None,
        metadata=[_metadata(number) for number in range(30)],
        payloads=[bytes([number]) for number in range(30)],
        vectors=[{"red": number - 9.5, f"word{number % 9}": 1 / 3} for number in range(30)],
    )
