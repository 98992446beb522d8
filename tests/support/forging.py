"""Folders taken apart and put together again, with valid checksums for whatever they hold."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bm25rag.columns.column import build_column
from bm25rag.storage.checksummed_file import write_arrays

Arrays = dict[str, np.ndarray]


@dataclass(eq=False)
class Piece:
    """A segment, its number of tokens, of each field, and its changes."""

    segment: Arrays
    tokens: list[int]
    changes: list[Arrays]

    def add_tokens(self, more: int) -> None:
        """Count more tokens, of the first field."""
        self.tokens = [self.tokens[0] + more, *self.tokens[1:]]


@dataclass
class Folder:
    """A saved index: the contents of its manifest, and its pieces."""

    commit: Any
    settings: dict[str, Any]
    pieces: list[Piece]

    @classmethod
    def read(cls, folder: Path) -> Folder:
        """Take a folder apart."""
        body = json.loads((folder / "manifest.json").read_bytes())["body"]
        pieces = [
            Piece(
                read_arrays(folder / entry["file"]),
                entry["tokens"],
                [read_arrays(folder / change["file"]) for change in entry["changes"]],
            )
            for entry in body["segments"]
        ]
        return cls(body["commit"], body["settings"], pieces)

    def copy(self) -> Folder:
        """Copy the folder but not its arrays, which are replaced and never changed."""
        pieces = [
            Piece(dict(piece.segment), piece.tokens, [dict(one) for one in piece.changes])
            for piece in self.pieces
        ]
        return Folder(self.commit, json.loads(json.dumps(self.settings)), pieces)

    def write(self, folder: Path) -> None:
        """Write the folder as bm25rag would, whatever it holds."""
        folder.mkdir()
        number = iter(range(1000))

        def write(kind: str, arrays: Arrays) -> dict[str, Any]:
            record = write_arrays(folder / f"{kind}-{next(number):016x}.bin", arrays)
            return {"file": record.name, "size": record.size, "checksum": record.checksum}

        segments = [
            write("segment", piece.segment)
            | {"tokens": piece.tokens, "changes": [write("changes", one) for one in piece.changes]}
            for piece in self.pieces
        ]
        needs: dict[str, list[str]] = {"read": [], "write": []}
        body = {
            "needs": needs,
            "commit": self.commit,
            "time": 0,
            "settings": self.settings,
            "segments": segments,
        }
        spelled = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        checksum = zlib.crc32(spelled.encode("utf-8", "surrogatepass"))
        outer = {"format": "bm25rag", "version": 1, "checksum": checksum, "body": body}
        written = json.dumps(outer, ensure_ascii=False).encode("utf-8", "surrogatepass")
        (folder / "manifest.json").write_bytes(written)


def read_arrays(path: Path) -> Arrays:
    """Read a file of arrays, as docs/format.md describes it."""
    data = path.read_bytes()
    start = 16 + int.from_bytes(data[8:16], "little")
    header = json.loads(data[16:start])
    return {
        name: np.frombuffer(data, np.dtype(kind), count, start + offset)
        for name, (kind, count, offset) in header["arrays"].items()
    }


def forgeries(values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Change an array in every way that a forger could give a valid checksum."""
    yield "empty", values[:0]
    yield "twice as long", np.concatenate([values, values])
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64, np.bool_, np.float64, np.int64):
        if values.dtype != kind:
            yield f"of {np.dtype(kind)}", values.astype(kind)
    if not len(values):
        return
    yield "one shorter", values[:-1]
    yield "one longer", np.append(values, values[-1:])
    yield "reversed", values[::-1].copy()
    if values.dtype == np.bool_:
        yield "negated", ~values
        return
    for place in (0, len(values) // 2, len(values) - 1):
        for value in (0, 1, np.iinfo(values.dtype).max, np.iinfo(values.dtype).max // 2 + 1):
            changed = values.copy()
            changed[place] = value
            yield f"{value} at {place}", changed
    yield "all zero", np.zeros_like(values)
    yield "all the largest", np.full_like(values, np.iinfo(values.dtype).max)


# --- columns and tables -------------------------------------------------------------------------


def strings(arrays: Arrays, name: str, count: int) -> list[bytes | None]:
    """Return the strings of a column."""
    offsets, null = arrays[f"{name}.offsets"].tolist(), arrays[f"{name}.null"].tolist()
    if not offsets:
        return [None] * count
    data = arrays[f"{name}.data"].tobytes()
    found = [data[offsets[place] : offsets[place + 1]] for place in range(count)]
    return [None if null and null[place] else one for place, one in enumerate(found)]


def put_strings(arrays: Arrays, name: str, values: Sequence[bytes | None]) -> None:
    """Replace a column."""
    column = build_column(values)
    arrays[f"{name}.offsets"], arrays[f"{name}.data"] = column.offsets, column.data
    arrays[f"{name}.null"] = column.null


def size(arrays: Arrays, name: str) -> int:
    """Return how many strings a column of a segment has."""
    if name in ("terms", "vectors.terms"):
        return len(arrays[f"{name}.keys"])
    if name.startswith("fields."):
        return max(len(arrays[f"{name}.offsets"]) - 1, 0)
    return len(arrays["lengths"])


def change_string(arrays: Arrays, name: str, random: Random, new: bytes | None) -> None:
    """Replace one string of a column, and nothing else."""
    values = strings(arrays, name, size(arrays, name))
    if values:
        values[random.randrange(len(values))] = new
        put_strings(arrays, name, values)


def repeat_string(arrays: Arrays, name: str, random: Random) -> None:
    """Make two strings of a column equal."""
    values = strings(arrays, name, size(arrays, name))
    if values:
        change_string(arrays, name, random, random.choice(values))


def put_terms(
    arrays: Arrays, values: Sequence[bytes], ordered: bool = True, name: str = "terms"
) -> None:
    """Replace the terms, with their keys, in the table's order or as given."""
    if ordered:
        values = sorted(values, key=lambda value: (zlib.crc32(value), value))
    put_strings(arrays, name, values)
    arrays[f"{name}.keys"] = np.array(list(map(zlib.crc32, values)), np.uint32)


def put_ids(arrays: Arrays, values: Sequence[bytes]) -> None:
    """Replace the ids, with matching keys and order."""
    order = sorted(range(len(values)), key=lambda place: (zlib.crc32(values[place]), values[place]))
    put_strings(arrays, "ids", values)
    arrays["ids.keys"] = np.array([zlib.crc32(values[place]) for place in order], np.uint32)
    arrays["ids.order"] = np.array(order, np.uint32)


def empty(piece: Piece) -> None:
    """Remove all documents of a segment, and everything that belongs to them."""
    piece.segment = {
        name: values[:0]
        for name, values in piece.segment.items()
        if not name.startswith(("fields.", "vectors.", "text_fields."))
    }
    piece.segment["indptr"] = np.zeros(1, np.uint32)
    for name in ("terms", "ids"):
        piece.segment[f"{name}.offsets"] = np.zeros(1, np.uint64)
    piece.tokens, piece.changes = [0], []
