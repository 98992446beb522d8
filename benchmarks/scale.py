"""Builds and serves ever more passages with each engine; writes the tables of docs/scale.md.

    python -m benchmarks.scale 100000 1000000 8841823
    python -m benchmarks.scale --engine ours --engine tantivy 8841823
    python -m benchmarks.scale --report

Every build and every server is a process of its own (``benchmarks.large``), one after the other,
and replaces what was measured of it before in ``results/scale.json``. What they wrote is removed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.large import ENGINES, recipe_of
from benchmarks.report import machine, put_into, table, versions

_ROOT = Path(__file__).parents[1]
KEPT = _ROOT / "benchmarks" / "results" / "scale.json"
_PAGE = _ROOT / "docs" / "scale.md"
#: GiB that a process may have for itself; only ours is held to what the target says.
LIMITS = {"ours": 4.0}
_NO_LIMIT = 22.0
_LONGEST = 3600  # seconds
Measured = dict[str, Any]


def measure(engine: str, passages: int) -> Measured:
    """Build and serve, each in a new process; what failed has its reason."""
    found: Measured = {"engine": engine, "passages": passages, "date": _today()}
    found["load before"] = round(os.getloadavg()[0], 1)
    try:
        for what in ("build", "serve"):
            found[what] = _run(what, engine, passages)
    except RuntimeError as error:
        found["error"] = str(error)
    finally:
        shutil.rmtree(recipe_of(passages).folder / engine, ignore_errors=True)
    return found


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _run(what: str, engine: str, passages: int) -> Measured:
    limit = str(LIMITS.get(engine, _NO_LIMIT))
    command = [sys.executable, "-m", "benchmarks.large", what, engine, str(passages)]
    try:
        done = subprocess.run(
            [*command, "--limit", limit], capture_output=True, text=True, timeout=_LONGEST
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{what}: not done in {_LONGEST // 60} minutes") from None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise RuntimeError(f"{what}: {last} (exit code {done.returncode})")
    found: Measured = json.loads(lines[-1])
    return found


def keep(rows: Sequence[Measured]) -> None:
    """Put rows in the place of those of the same engine and size."""
    before = json.loads(KEPT.read_text("utf-8"))["rows"] if KEPT.exists() else []
    new = {(row["passages"], row["engine"]): row for row in [*before, *rows]}
    order = list(ENGINES)
    kept = sorted(new.values(), key=lambda row: (row["passages"], order.index(row["engine"])))
    written = {"machine": machine(), "versions": versions(), "rows": kept}
    KEPT.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


# --- tables -----------------------------------------------------------------------------


def measured_table(rows: Sequence[Measured]) -> str:
    """Write a line for each size and engine."""
    head = ("passages", "engine", "build s", "CPU s", "build MiB", "disk MiB", "open ms")
    lines = []
    for row in rows:
        named = [f"{row['passages']:,}", "bm25rag" if row["engine"] == "ours" else row["engine"]]
        if "error" in row:
            lines.append([*named, row["error"], *[""] * 10])
            continue
        build, serve = row["build"], row["serve"]
        figures = [build["seconds"], build["CPU seconds"], build["most, MiB"]["RssAnon"]]
        figures += [build["index, MiB"], serve["open, ms"]]
        figures += [serve["most, MiB"][kind] for kind in ("RssAnon", "RssFile")]
        first, *warm = zip(serve["mean, ms"], serve["p99, ms"], serve["CPU, ms"], strict=True)
        shown = [f"{one:,.0f}" for one in figures]
        lines.append([*named, *shown, *(f"{one:.2f}" for one in (first[0], *min(warm)))])
    served = ("serve MiB", "mapped MiB", "first ms", "mean ms", "p99 ms", "CPU ms")
    return table((*head, *served), lines)


def plan_snippet(rows: Sequence[Measured]) -> str:
    """Write the program that plans larger ones, with what was measured and what it prints."""
    row = max((row for row in rows if row["engine"] == "ours"), key=lambda row: row["passages"])
    build, serve = row["build"], row["serve"]
    code = _PLAN.format(
        passages=f"{row['passages']:_}",
        seconds=f"{build['CPU seconds']:.0f}",
        disk=f"{build['index, MiB'] / 1024:.2f}",
        own=f"{serve['most, MiB']['RssAnon'] / 1024:.2f}",
        query=f"{min(serve['CPU, ms'][1:]):.2f}",
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "plan", "exec"), {})
    lines = "".join(f"# {line}\n" for line in printed.getvalue().splitlines())
    return f"```python\n{code}{lines}```"


_PLAN = """\
from math import ceil

from bm25rag.evaluation import PRICES, cost_by_throughput

# From the table above: one index of so many passages, and what a core needs to build and search it.
passages, build_seconds, query_ms = {passages}, {seconds}, {query}
disk_gib, own_gib = {disk}, {own}

node = {{machine.name: machine for machine in PRICES}}["r7g.4xlarge"]
most = int(0.9 * node.memory / (disk_gib + own_gib))  # shards that stay in memory, texts included
lines = ["passages  shards nodes  disk GiB memory GiB  build h  queries/s    ms  $ a million"]
for wanted in (100e6, 1e9, 10e9):
    shards = ceil(wanted / passages)
    nodes = ceil(shards / most)
    held = ceil(shards / nodes)  # by the fullest node, which decides
    hours = held * build_seconds / node.cpus / 3600
    rate = node.cpus / (held * query_ms / 1000)  # every query is searched in every shard
    latency = ceil(held / node.cpus) * query_ms  # without the network
    dollars = nodes * cost_by_throughput(node, rate)
    lines.append(
        f"{{wanted:8.0e}} {{shards:7,}} {{nodes:5}} {{shards * disk_gib:9,.0f}}"
        f" {{nodes * node.memory:10,.0f}} {{hours:8.2f}} {{rate:10,.0f}}"
        f" {{latency:5.1f}} {{dollars:12.2f}}"
    )
print("\\n".join(lines))
"""


def report() -> None:
    """Write the tables into the page."""
    kept = json.loads(KEPT.read_text("utf-8"))
    where, used = kept["machine"], kept["versions"]
    dates = sorted({row["date"] for row in kept["rows"]})
    loads = [row["load before"] for row in kept["rows"]]
    about = (
        f"Measured by `python -m benchmarks.scale` on {' and '.join(dates)}, on "
        f"{where['processor']}, {where['cores']} cores, {where['memory']}, {where['system']}; "
        f"bm25s {used['bm25s']}, tantivy {used['tantivy']}, pyterrier_pisa "
        f"{used['pyterrier_pisa']}. Before each, the load of the machine was "
        f"{min(loads)} to {max(loads)}."
    )
    put_into(_PAGE, "measured", [about, measured_table(kept["rows"])])
    put_into(_PAGE, "plan", [plan_snippet(kept["rows"])])


def main() -> None:
    """Measure what is asked for, then write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("passages", nargs="*", type=int)
    parser.add_argument("--engine", action="append", choices=ENGINES, help="repeatable")
    parser.add_argument("--report", action="store_true", help="only write what was measured")
    given = parser.parse_args()
    for passages in given.passages:
        recipe_of(passages).prepare()
        for engine in given.engine or ENGINES:
            row = measure(engine, passages)
            print(json.dumps(row), flush=True)
            keep([row])
    if given.report:
        report()


if __name__ == "__main__":
    main()
