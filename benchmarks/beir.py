"""The table of speeds of the BM25S paper (Table 1), with columns measured by this machine.

    python -m benchmarks.beir --folder beir
    python -m benchmarks.beir --folder beir scifact nfcorpus --system rank_bm25 --system bm25-pt

A collection that is not in the folder is downloaded. Each system is measured by
``bm25rag bench``, in a process of its own, and replaces what was measured of it before in
``results/beir.json``; the table in docs/evaluation.md is written from that file.

The paper counts queries a second of one thread and a batch of all queries, k = 1000. For bm25s and
bm25-pt it leaves out the time in which queries are cut into words; here all start from texts.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import COLLECTIONS, WORK, read_records
from benchmarks.report import put_into, table
from bm25rag.evaluation import download
from bm25rag.evaluation.beir import BEIR
from bm25rag.evaluation.bench import benchmark

_ROOT = Path(__file__).parents[1]
KEPT = _ROOT / "benchmarks" / "results" / "beir.json"
_PAGE = _ROOT / "docs" / "evaluation.md"
SYSTEMS = ("bm25rag lucene", "bm25s numba", "rank_bm25", "bm25-pt", "Elasticsearch", "OpenSearch")
_MEMORY = 30.0  # GiB, as the paper's machine has
_LONGEST = 12 * 3600.0  # seconds for a system, as in the paper
_SPLITS = {"msmarco": "dev"}


class Published(NamedTuple):
    """Queries a second of Lu 2024 (arXiv 2407.03618), Table 1.

    The README of github.com/xhluca/bm25-benchmarks has them at commit 315c7505: one core of an
    Intel Xeon at 2.2 GHz, 30 GB, in notebooks of Kaggle. ``None`` where memory did not suffice.
    """

    rank_bm25: float
    bm25_pt: float | None
    elasticsearch: float
    bm25s: float


PUBLISHED = {
    "arguana": Published(2, 110.51, 13.67, 573.91),
    "climate-fever": Published(0.03, None, 4.02, 13.09),
    "cqadupstack": Published(0.77, None, 13.38, 170.91),
    "dbpedia-entity": Published(0.11, None, 10.68, 13.44),
    "fever": Published(0.06, None, 7.45, 20.19),
    "fiqa": Published(4.46, 20.52, 16.96, 717.78),
    "hotpotqa": Published(0.04, None, 7.11, 20.88),
    "msmarco": Published(0.07, None, 11.88, 12.2),
    "nfcorpus": Published(224.66, 256.67, 45.84, 1196.16),
    "nq": Published(0.1, None, 12.16, 41.85),
    "quora": Published(1.18, 6.49, 21.8, 272.04),
    "scidocs": Published(9.01, 41.34, 17.93, 767.05),
    "scifact": Published(47.6, 184.3, 20.81, 1317.12),
    "trec-covid": Published(1.48, 3.73, 7.34, 85.64),
    "webis-touche2020": Published(1.1, None, 13.53, 60.59),
}


def folder_of(name: str, folder: Path) -> Path:
    """Return the folder of a collection, which is downloaded unless it is there."""
    there = folder / name
    if not there.is_dir():
        print(f"downloading {name}", flush=True)
        download(name, folder, progress=True)
    return joined(there) if name == "cqadupstack" else there


def joined(folder: Path) -> Path:
    """Join the forums of CQADupStack into one collection, as the paper does."""
    whole = folder.with_name(f"{folder.name}-joined")
    if (whole / "done").exists():
        return whole
    (whole / "qrels").mkdir(parents=True, exist_ok=True)
    forums = sorted(path.parent for path in folder.glob("*/corpus.jsonl"))
    for file in ("corpus.jsonl", "queries.jsonl"):
        with (whole / file).open("w", encoding="utf-8") as out:
            for forum in forums:
                for one in read_records(forum / file):
                    out.write(json.dumps(one | {"_id": f"{forum.name}-{one['_id']}"}) + "\n")
    with (whole / "qrels" / "test.tsv").open("w", encoding="utf-8") as out:
        out.write("query-id\tcorpus-id\tscore\n")
        for forum in forums:
            lines = (forum / "qrels" / "test.tsv").read_text("utf-8").splitlines()
            out.writelines(
                f"{forum.name}-{query}\t{forum.name}-{document}\t{grade}\n"
                for query, document, grade in (line.split("\t") for line in lines[1:])
            )
    (whole / "done").touch()
    return whole


def measure(name: str, folder: Path, systems: Sequence[str], work: Path = WORK) -> dict[str, Any]:
    """Measure systems on a collection; what failed, or is not there, has its reason."""
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    report = benchmark(
        str(folder_of(name, folder)),
        work / "beir" / name,
        systems,
        split=_SPLITS.get(name, "test"),
        k=1000,
        measures=("nDCG@10",),
        memory=_MEMORY,
        trials=1,
        timeout=_LONGEST,
        log=lambda line: print(f"{name}: {line}", flush=True),
    )
    rows = {
        row["system"]: {"date": row["date"][:10]}
        | (
            {"error": row["error"]}
            if "error" in row
            else {
                "queries a second": round(row["throughput"]["1"], 2),
                "nDCG@10": round(row["measures"]["nDCG@10"], 4),
                "version": row["version"],
                "limits": row["limits"],
            }
        )
        for row in report["rows"]
    }
    setting = {name: report["setting"][name] for name in ("documents", "queries")}
    setting["load before"] = load
    return {**setting, "machine": report["machine"], "rows": rows}


def keep(name: str, found: dict[str, Any], at: Path = KEPT) -> None:
    """Put what was measured in the place of what was before, unless that was another machine."""
    kept = json.loads(at.read_text("utf-8")) if at.exists() else {}
    before = kept.get(name, {})
    if before.get("machine") == found["machine"]:
        found = found | {"rows": before["rows"] | found["rows"]}
    kept[name] = found
    at.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")


# --- the table --------------------------------------------------------------------------------


def speeds_table(kept: dict[str, Any]) -> str:
    """Write the published columns, and those of the systems that were measured here."""
    systems = [
        system
        for system in SYSTEMS
        if any("error" not in one["rows"].get(system, {"error": ""}) for one in kept.values())
    ]
    head = ["collection", "documents", "queries", "rank_bm25", "bm25-pt", "Elasticsearch", "bm25s"]
    lines = []
    for name, published in PUBLISHED.items():
        sizes = BEIR[name].documents, BEIR[name].queries
        if name in kept:
            sizes = f"{kept[name]['documents']:,}", f"{kept[name]['queries']:,}"
        rows = kept.get(name, {"rows": {}})["rows"]
        here = (rows.get(system, {}).get("queries a second") for system in systems)
        shown = [*("no memory" if one is None else f"{one:,.4g}" for one in published)]
        lines.append(
            [name, *sizes, *shown, *("" if one is None else f"{one:,.0f}" for one in here)]
        )
    return table([*head, *(f"{system}, here" for system in systems)], lines)


def about(kept: dict[str, Any]) -> str:
    """Say where and when the columns of this machine were measured, and what was not."""
    said = []
    for name, found in kept.items():
        machine, rows = found["machine"], found["rows"].items()
        done = [(system, row) for system, row in rows if "error" not in row]
        dates = sorted({row["date"] for _, row in done})
        versions = (f"{system} {row['version']}" for system, row in done if row["version"])
        missing = [f"{system}: {row['error']}" for system, row in rows if "error" in row]
        said.append(
            f"{name} was measured by `python -m benchmarks.beir {name}` on {' and '.join(dates)}, "
            f"on {machine['processor']}, {machine['cores']} cores, {machine['memory']}, "
            f"one of them used ({', '.join(versions)}); "
            f"the load of the machine was {found['load before']} before."
            + (f" Not measured: {'; '.join(missing)}." if missing else "")
        )
    return "\n".join(said)


def report(at: Path = KEPT, page: Path = _PAGE) -> None:
    """Write the table into the page."""
    kept = json.loads(at.read_text("utf-8"))
    put_into(page, "table 1", [speeds_table(kept), about(kept)])


def main(
    arguments: Iterable[str] | None = None, at: Path = KEPT, page: Path = _PAGE, work: Path = WORK
) -> None:
    """Measure what is asked for, then write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beir", description=__doc__)
    parser.add_argument("collections", nargs="*", help=f"of {', '.join(PUBLISHED)}; all by default")
    parser.add_argument("--folder", type=Path, default=COLLECTIONS, help="where collections are")
    parser.add_argument("--system", action="append", help="repeatable; all of the table by default")
    parser.add_argument("--report", action="store_true", help="only write what was measured")
    given = parser.parse_args(None if arguments is None else list(arguments))
    if unknown := set(given.collections) - PUBLISHED.keys():
        parser.error(f"not in the table: {', '.join(sorted(unknown))}")
    if not given.report:
        for name in given.collections or PUBLISHED:
            keep(name, measure(name, given.folder, given.system or SYSTEMS, work), at)
    report(at, page)


if __name__ == "__main__":
    main()
