"""A collection in BEIR's layout, of four documents and four queries."""

from __future__ import annotations

import json
from pathlib import Path

TEXTS = {
    "apple": "A red apple hangs on the tree.",
    "boat": "A red boat sails on the deep sea.",
    "car": "A green car drives on the road to the sea.",
    "pear": "A green pear hangs on the tree by the road.",
}
QUERIES = {"1": "red apple", "2": "boat on the sea", "3": "green car", "4": "tree by the road"}
RELEVANT = {"1": "apple", "2": "boat", "3": "pear", "4": "pear"}


def write_tiny_collection() -> str:
    """Write it to a folder within the current one; its name."""
    folder = Path("tiny")
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": id, "text": text} for id, text in TEXTS.items()]
    queries = [{"_id": id, "text": text} for id, text in QUERIES.items()]
    for name, records in (("corpus", corpus), ("queries", queries)):
        lines = "\n".join(map(json.dumps, records))
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    rows = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t1" for q, d in RELEVANT.items())]
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows), encoding="utf-8")
    return str(folder)
