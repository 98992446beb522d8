"""Measure everything, or some groups of rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks.corpora import COLLECTIONS, WORK
from benchmarks.plots import draw
from benchmarks.report import Report, about, details, put_into, targets_table
from benchmarks.rows import adapters, building, growth, searching, serving, updates

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "benchmarks" / "results"
GROUPS: dict[str, Callable[[Report, bool], None]] = {
    "searching": searching.measure,
    "building": building.measure,
    "serving": serving.measure,
    "adapters": adapters.measure,
    "growth": growth.measure,
    "updates": updates.measure,
}


def main() -> None:
    """Run the groups; write JSON, and in a full run the README's tables too."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes: fewer rounds and rows")
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, metavar="GROUP", help=f"some of {', '.join(GROUPS)}"
    )
    options = parser.parse_args()
    if not COLLECTIONS.is_dir():
        parser.exit(1, "cannot measure: ../shared/collections is missing\n")
    report = Report("quick" if options.quick else "full")
    report.describe()
    for name in options.only or GROUPS:
        start = perf_counter()
        print(name, file=sys.stderr)
        GROUPS[name](report, options.quick)
        print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr)
    print(details(report))
    if options.only:
        report.write(WORK / "some.json")
        return
    report.write(_RESULTS / f"{report.mode}.json")
    (_RESULTS / f"{report.mode}.md").write_text(details(report), encoding="utf-8")
    if not options.quick:
        pictures = draw(report, _RESULTS)
        put_into(_ROOT / "README.md", [about(report), targets_table(report.rows), *pictures])


if __name__ == "__main__":
    main()
