"""Tests on a cluster: a corpus in files, and the one index that all must agree with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.readers import Fields, read_jsonl

# What Ray's own code warns of differs from version to version.
ON_A_CLUSTER = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SIZES = (60, 5, 90, 1, 44)
QUERIES: list[Any] = [
    "boat 3",
    "sea word17",
    ["boat", "sea"],
    {"boat": 2.5, "sea": -1.0},
    "harbour",
    "nothing at all",
    "",
]
WITH_VECTORS = Fields(vector="vector")
VECTORS = [{"t3": 2.0, "all": 1.0}, {"t1": -1.5, "t4": 0.25}, {"t9": 1.0}, {}]


def write_corpus(folder: Path, sizes: tuple[int, ...] = SIZES) -> list[Path]:
    """Write files of documents, in which scores are often equal."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, first = [], 0
    for place, size in enumerate(sizes):
        path = folder / f"part-{place}.jsonl"
        lines = []
        for number in range(first, first + size):
            text = f"boat {number % 3} {'sea ' * (number % 4)} word{number}"
            if place == 2:
                text += " harbour"
            lines.append(json.dumps({"_id": f"d{number}", "text": text, "n": number}))
        first += size
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return paths


def write_vectors(paths: list[Path]) -> list[Path]:
    """Write vectors into the files of a corpus, to be read with ``WITH_VECTORS``."""
    for path in paths:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for record in records:
            n = record["n"]
            vector = {f"t{n % 7}": 0.5 + n % 3, "all": 0.1} if n % 5 else None
            record["vector"] = vector
        path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return paths


def plain_index(paths: list[Path], read: Fields | None = None, **settings: Any) -> BM25Index:
    """Return one index of all files."""
    index = BM25Index(**settings)
    index.add_documents(document for path in paths for document in read_jsonl(path, read))
    return index
