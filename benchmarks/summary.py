"""What the README and docs/performance.md show of the figures: who is how many times as fast."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.engines import OURS
from benchmarks.report import SMALL_GROUP, Results, Row, about, number, put_into, table
from benchmarks.workers import Figure
from bm25rag.evaluation.report import about as about_systems
from bm25rag.evaluation.report import to_markdown

RIVALS = ("bm25s numba", "tantivy", "PISA", "Lucene")
_SPEED_GROUPS = {
    "batch search": "A batch of queries, one thread",
    SMALL_GROUP: "The same on small corpora",
    "batch search, stop words kept": "The same with stop words kept",
    "one question at a time": "One question at a time, from its text",
    "new questions": "Questions that are new, in new processes, one by one and in one call",
    "building from raw text": "Indexing raw text",
    "building from terms": "Indexing what needs no analysis; bm25s takes lists of terms",
    "growth, synthetic passages": "Synthetic passages, indexed from terms and searched",
}
_COST_GROUPS = ("serving", "adapters", "updates", "filters")
_MEMORY = "peak memory"
_SPEED = (
    "How many times as fast bm25rag is as each engine; below 1 the other one is faster.\n"
    "Of several corpora, the lowest and the highest are shown."
)
_BEHIND = (
    "How many times as much time or memory bm25rag needs as the other engine.\n"
    "Haystack's in-memory store holds 30,000 documents here, and what it adds is not searched.\n"
    "[Phrases](queries.md#how-long-phrases-take) are measured apart: tantivy and Lucene, which "
    "store positions, are ahead there."
)
_SYSTEMS = (
    "Each with its own analysis, raw questions in, ids and scores out; "
    "[what the columns mean](evaluation.md#which-system-for-my-data).\n"
    "`python -m benchmarks --only systems` writes this. Anybody's collection is measured alike: "
    "`bm25rag bench scifact/ --output measured/`."
)
_COST = "Everything else that was measured; the last column has other engines, or what is compared."


_IS, _NEEDS = "is {} times as fast", "is behind: it needs {} times as much"


class Headline(NamedTuple):
    """A row of the README: which figures it compares, and in which words."""

    work: str
    against: str
    what: str
    how: str


HEADLINES = (
    Headline(
        "enwiki-150k, k=10",
        "bm25s numba",
        "Find the best 10 of 150,000 Wikipedia passages, one thread",
        _IS,
    ),
    Headline("enwiki-150k, k=10", "tantivy", "The same", _IS),
    Headline(
        "build enwiki-150k, 1 thread",
        "tantivy",
        "Index these passages from raw text, one thread",
        _IS,
    ),
    Headline(
        "1,000,000 documents, peak memory",
        "tantivy",
        "Peak memory while a million passages are indexed",
        _NEEDS,
    ),
)


def publish(results: Results, pictures: Mapping[str, Path], root: Path) -> None:
    """Write pictures and tables into the README and docs/performance.md."""
    readme, page = root / "README.md", root / "docs" / "performance.md"
    if "throughput" in pictures:
        caption = (
            f"*{_caption(results)} [All figures, and how they were measured](docs/performance.md).*"
        )
        put_into(readme, "picture", [_shown(pictures["throughput"], readme), caption])
    if rows := headlines(results.rows):
        below = [f"{_shown(pictures['systems'], readme)} {_READERS}"] if results.systems else []
        put_into(readme, "speed", [rows, *below])
    parts = [about(results)]
    if rows := behind_table(results.rows):
        parts += ["### Where others are ahead", _BEHIND, rows]
    parts += ["### Speed", _SPEED]
    for group, title in _SPEED_GROUPS.items():
        if rows := speed_table(row for row in results.rows if row.group == group):
            parts += [f"#### {title}", rows]
    parts += [_shown(path, page) for name, path in pictures.items() if name in _ALONE]
    parts += ["### Memory, disk, starting, changes, filters", _COST, cost_table(results.rows)]
    if results.systems:
        name = results.systems["setting"]["collection"]
        parts += [f"### Systems on {name}, from their own analysis to the dollar", _SYSTEMS]
        parts += [_shown(pictures["systems"], page), to_markdown(results.systems).strip()]
        parts += ["\n".join(about_systems(results.systems))]
    put_into(page, "benchmarks", parts)


_ALONE = ("latency", "speed-up")
_READERS = (
    "*Retrievers and their own analysis on SciFact: `bm25rag bench scifact/ --output measured/` "
    "([the table](docs/performance.md#figures), [yours](docs/evaluation.md)).*"
)
_ALT = {
    "systems": "nDCG@10 of each retriever against its mean time for a query",
    "throughput": "Queries per second of bm25rag, bm25s and tantivy for k = 10, 100 and 1000",
    "latency": "Time per query of each engine against the number of documents",
    "speed-up": "How many times as long as bm25rag each engine takes",
}


def _shown(picture: Path, page: Path) -> str:
    path = Path(os.path.relpath(picture, page.parent)).as_posix()
    return f"![{_ALT[picture.stem]}]({path})"


def _caption(results: Results) -> str:
    known = results.groups["searching"].about
    host, used = known["machine"], known["versions"]
    engines = ", ".join(f"{name} {used[name]}" for name in ("bm25rag", "bm25s", "tantivy"))
    return (
        "Questions answered per second by one thread on 150,000 passages of English Wikipedia; "
        f"{engines}.\nMeasured on {known['date']} on {host['processor']}, {host['cores']} cores, "
        f"Python {host['python']}."
    )


def headlines(rows: Sequence[Row]) -> str:
    """Write the README's rows: what, against whom, how many times."""
    lines = []
    for one in HEADLINES:
        ratios = [
            times(row, one.against)
            for row in rows
            if row.work == one.work and isinstance(row.figures.get(one.against), Figure)
        ]
        if ratios and ratios[0] is not None:
            ratio = 1 / ratios[0] if one.how == _NEEDS else ratios[0]
            lines.append([one.what, one.against.split()[0], one.how.format(_rounded(ratio))])
    return table(("What", "Against", "bm25rag"), lines) if lines else ""


def times(row: Row, rival: str) -> float | None:
    """Return how many times ours a rival's figure is; of paired rounds, the median ratio."""
    ours, theirs = row.figures.get(OURS), row.figures.get(rival)
    if not (isinstance(ours, Figure) and isinstance(theirs, Figure)):
        return None
    if len(ours.rounds) == len(theirs.rounds):
        return median(b / a for a, b in zip(ours.rounds, theirs.rounds, strict=True))
    return theirs.median / ours.median


def speed_table(rows: Iterable[Row]) -> str:
    """Write a line for each work and a column for each rival; all small corpora share lines."""
    lines: dict[str, dict[str, list[float]]] = {}
    corpora: dict[str, int] = {}
    for row in rows:
        if _MEMORY in row.work:
            continue
        work = row.work
        if row.group == SMALL_GROUP:
            work = work.rpartition(", ")[2]
            corpora[work] = corpora.get(work, 0) + 1
        line = lines.setdefault(work, {})
        for name in RIVALS:
            # Without Numba where that makes no difference.
            ratio = times(row, name) or times(row, name.removesuffix(" numba"))
            if ratio is not None:
                line.setdefault(name, []).append(ratio)
    rivals = [name for name in RIVALS if any(name in line for line in lines.values())]
    written = [
        [f"{corpora[work]} corpora, {work}" if work in corpora else work]
        + [_range(line.get(name, ())) for name in rivals]
        for work, line in lines.items()
        if line
    ]
    head = ("", *(name.removesuffix(" numba") for name in rivals))
    return table(head, written) if written else ""


def _range(ratios: Sequence[float]) -> str:
    low, high = (_rounded(one) for one in (min(ratios), max(ratios))) if ratios else ("", "")
    return low if low == high else f"{low} to {high}"


def _rounded(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def behind_table(rows: Iterable[Row]) -> str:
    """Write where a rival needs less time or memory."""
    lines = []
    for row in rows:
        for name in (*RIVALS, "Haystack"):
            ratio = times(row, name)
            if ratio is not None and ratio < 1:
                lines.append([row.work, name.removesuffix(" numba"), _rounded(1 / ratio)])
    return table(("", "ahead", "times as much"), lines) if lines else ""


def cost_table(rows: Iterable[Row]) -> str:
    """Write what ours needs, and what else was measured for that row."""
    lines = []
    for row in rows:
        if row.group not in _COST_GROUPS and _MEMORY not in row.work:
            continue
        ours = row.figures.get(OURS)
        if row.judged is not None:
            said = number(row.judged, row.judged_unit)
        elif isinstance(ours, Figure):
            said = number(ours.median, row.unit)
        else:
            continue
        beside = ", ".join(
            f"{name} {number(one.median, row.unit)}"
            for name, one in row.figures.items()
            if isinstance(one, Figure) and name != OURS
        )
        lines.append([row.work, said, beside])
    return table(("", "bm25rag", "other figures"), lines)
