"""Measure everything, or some groups of rows; write tables and pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.corpora import ENWIKI, SCIFACT, WORK
from benchmarks.plots import draw
from benchmarks.report import Report, Results, details
from benchmarks.rows import adapters, asking, building, growth, searching, serving, systems, updates
from benchmarks.summary import publish

_ROOT = Path(__file__).parents[1]
_RESULTS = _ROOT / "benchmarks" / "results"
GROUPS: dict[str, Callable[[Report, bool], None]] = {
    "searching": searching.measure,
    "building": building.measure,
    "asking": asking.measure,
    "serving": serving.measure,
    "adapters": adapters.measure,
    "growth": growth.measure,
    "updates": updates.measure,
    "systems": systems.measure,
}


def main() -> None:
    """Run the groups, each replacing what was measured of it before; then write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="minutes: fewer rows, less data")
    parser.add_argument("--report", action="store_true", help="write what was measured before")
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, metavar="GROUP", help=f"some of {', '.join(GROUPS)}"
    )
    options = parser.parse_args()
    needed = [SCIFACT] if options.only == ["systems"] else [SCIFACT, ENWIKI]
    if not (options.report or all(one.present() for one in needed)):
        parser.exit(
            1,
            "cannot measure: the collections are not in ../shared/collections; for --only systems "
            "this is enough: bm25rag download scifact ../shared/collections\n",
        )
    folder = WORK if options.quick else _RESULTS
    kept = folder / ("quick.json" if options.quick else "full.json")
    if not options.report:
        _measure(options.only or list(GROUPS), options.quick, kept)
    if not kept.exists():
        parser.exit(1, "nothing to report: measure first, without --report\n")
    _publish(Results.read(kept), folder, quick=options.quick)


def _measure(names: Sequence[str], quick: bool, kept: Path) -> None:
    """Measure groups; each is kept when it is done, beside those that are not measured now."""
    for name in names:
        start = perf_counter()
        print(name, file=sys.stderr)
        report = Report()
        report.describe()
        GROUPS[name](report, quick)
        measured = {**Results.read(kept).groups, name: report}
        Results({one: measured[one] for one in GROUPS if one in measured}).write(kept)
        print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr)


def _publish(results: Results, folder: Path, quick: bool) -> None:
    """Write tables and pictures, into the documentation too if all was measured."""
    text = details(results)
    print(text)
    (folder / "measured.md").write_text(text, encoding="utf-8")
    pictures = draw(results, folder)
    if not quick:
        publish(results, pictures, _ROOT)


if __name__ == "__main__":
    main()
