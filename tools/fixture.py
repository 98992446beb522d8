"""Write the small index that the tests keep of a version, and what it must answer for ever.

``fixture.py`` makes ``tests/data/index-<version>``, a folder as this version of bm25rag
writes it, and ``tests/data/index-<version>.json`` beside it; once for every release
whose format is new. ``tests/storage/test_formats.py`` opens all of them.
"""

from __future__ import annotations

import datetime
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bm25rag import BM25Index
from bm25rag.merging import policy

DATA = Path(__file__).parents[1] / "tests" / "data"
QUERIES = [["boat"], ["red", "boat", "red"], ["sea", "海"], ["unknown"], []]
FILTERS: list[dict[str, Any] | None] = [None, {"n": {"$gte": 2}}, {"lang": "en"}]
TUNED: list[dict[str, Any]] = [{}, {"variant": "bm25+", "b": 0.3}, {"variant": "tfldp"}]


def write(folder: Path) -> None:
    """Save an index that has all that the format knows: parts, deletions, changes, odd values."""
    policy.LEAST = 0  # so that there are several parts
    when = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    index = BM25Index()
    index.add(
        ["A red boat", "The sea, the sea", "Red red boats", "", "海の船 boat", "ß \ud800 sea"],
        metadata=[
            {"n": 1, "lang": "en"},
            {"n": 2.5, "lang": "en", "tags": ["a", "b"], "deep": {"er": None}},
            {"n": True, "day": datetime.date(2024, 5, 1), "at": when},
            None,
            {"n": 2**70, "lang": "ja", "$dollar": "x", "ключ": "значение"},
            {"n": "2"},
        ],
        payloads=[b"", b"\x00\xff", None, None, b"payload", None],
    )
    index.add(["boat " * 300, "sea boat"], ids=["", "long-id" * 40], store_text=False)
    index.save(folder, extra={"kept": [1, "two"]})
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["0"])
        writer.commit()
        writer.add([["red", "boat", "terms"]], metadata=[{"n": 3}])
        writer.update_metadata(["1", "4"], [{"n": 7, "lang": "fr"}, {}])
        writer.commit()
        writer.delete(["3"])


def answers(index: BM25Index) -> dict[str, Any]:
    """Return what an index answers, as JSON values, without the help of its analyzer."""
    documents = index.get(index.ids())
    return {
        "documents": [
            [one.id, one.text, repr(sorted(one.metadata.items())), repr(one.payload)]
            for one in documents
        ],
        "vocabulary": index.vocabulary(),
        "frequencies": index.document_frequencies().tolist(),
        "extra": index.extra,
        "analyzer": index.analyzer.to_dict(),
        "hits": [
            [[hit.id, hit.score.hex()] for hit in index.tune(**tuned).search(query, filter=chosen)]
            for tuned in TUNED
            for query in QUERIES
            for chosen in FILTERS
        ],
    }


def main() -> None:
    """Write both; refuse if they are there."""
    folder = DATA / f"index-{version('bm25rag')}"
    if folder.exists():
        sys.exit(f"{folder} is there already; what has been released must not change")
    write(folder)
    (folder / "lock").unlink(missing_ok=True)
    text = json.dumps(answers(BM25Index.open(folder)), indent=1)
    folder.with_name(f"{folder.name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"wrote {folder}")


if __name__ == "__main__":
    main()
