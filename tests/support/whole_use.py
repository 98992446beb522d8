"""A small use of everything that must work where little is there, printed as JSON.

With ``bare``, what a browser's Python lacks is taken away first. ``make pyodide`` runs this in one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

TEXTS = [
    "Die Katzen schlafen auf dem warmen Ofen.",
    "Ein Hund bellt; die Katze läuft davon.",
    "Hunde und Katzen vertragen sich selten.",
    "Der Zug nach Köln fährt um acht Uhr ab.",
]


def take_away() -> None:
    """Leave this process what Pyodide has: no threads, locks or maps of files, no compiled code."""
    import _thread

    def refuse(*_: object, **__: object) -> int:
        raise RuntimeError("can't start new thread")

    for name in ("Stemmer", "fcntl", "mmap", "resource", "sqlite3", "_sqlite3", "ssl"):
        sys.modules[name] = None  # type: ignore[assignment]
    _thread.start_new_thread = refuse
    os.environ["BM25RAG_KERNELS"] = "numpy"
    if hasattr(os, "sched_getaffinity"):
        del os.sched_getaffinity


def use() -> dict[str, Any]:
    """Build, search, filter, update, save and open; return what came, scores to the bit."""
    from bm25rag import Analyzer, BM25Index, Query
    from bm25rag.errors import LockedError

    def shown(hits: list[Any]) -> list[tuple[str, str]]:
        return [(hit.id, hit.score.hex()) for hit in hits]

    index = BM25Index(analyzer=Analyzer(language="german"))
    metadata = [{"jahr": 2020 + n, "tags": ["a", "b"][: n % 3]} for n in range(len(TEXTS))]
    index.add(TEXTS, metadata=metadata)
    found = {
        "search": shown(index.search("Katze")),
        "snippet": index.search("schlafende Katzen")[0].snippet(20).text,
        "filter": shown(index.search("katzen", filter={"jahr": {"$gte": 2021}})),
        "lists": shown(index.search("katzen", filter={"tags": {"$containsAll": ["a", "b"]}})),
        "phrase": shown(index.search(Query("hund", phrases=["Katzen vertragen"]))),
        "batch": index.search_batch(["Katze", "Hund", "Zug"], threads=4).rows.tolist(),
        "types": [str(index.search_batch(["Katze"]).rows.dtype), str(index.scores("Zug").dtype)],
        "explain": index.explain("Katze", "0").score.hex(),
        "tuned": shown(index.tune(variant="bm25+", k1=0.9).search("Hunde")),
    }
    many = [" ".join(f"wort{(n * k) % 97}" for k in range(1, 40)) for n in range(700)]
    index.add(many, threads=4)
    index.delete([str(n) for n in range(4, 300)])
    index.update_metadata(["3"], [{"jahr": 1999}])
    found["updated"] = shown(index.search("wort3 wort5 Zug", k=20, filter={"jahr": 1999}))
    found["many"] = shown(index.search("wort3 wort5 wort7", k=20))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index.save(folder / "saved")
        reader = BM25Index.open(folder / "saved", verify=True)
        found["saved"] = shown(reader.search("wort3 Zug", k=5))
        with BM25Index.open(folder / "saved", mode="w") as writer:
            try:
                BM25Index.open(folder / "saved", mode="w")
            except LockedError:
                found["locked"] = True
            writer.add(["Noch eine Katze"], ids=["neu"])
        with BM25Index.open(folder / "saved", mode="w") as writer:
            writer.delete(["0"])
            writer.compact()
        reader.refresh()
        found["reopened"] = shown(reader.search("Katze"))
        BM25Index.build(many, folder / "built", memory="256MiB", threads=2)
        found["built"] = shown(BM25Index.open(folder / "built").search("wort3 wort5"))
    return found


if __name__ == "__main__":
    if "bare" in sys.argv:
        take_away()
    warnings.simplefilter("error")
    sys.stdout.write(json.dumps(use(), indent=1) + "\n")
