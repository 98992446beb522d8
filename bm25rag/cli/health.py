"""``stats``, ``verify`` and ``doctor``: inspect a whole index, and the installation."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from bm25rag import BM25Index
from bm25rag.cli.options import examples, index_argument, open_index, reading_argument
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import result_console, write_result
from bm25rag.common.visible import one_line
from bm25rag.kernels import backend

_PACKAGES = ("bm25rag", "numpy", "PyStemmer", "scipy")


@click.command(
    "stats",
    epilog=examples("bm25rag stats docs.bm25", "bm25rag stats docs.bm25 --json | jq .documents"),
)
@reading_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats_command(index_path: Path | str, as_json: bool, **options: Any) -> None:
    """Show what an index holds: counts, bytes, commits, parameters, analyzer.

    Bytes are those of its arrays, by what they hold; about "compaction frees" of them
    are of deleted documents and what else 'bm25rag compact' would drop.
    """
    index = open_index(index_path, options)
    names = ("variant", "k1", "b", "delta", "delta_on")
    facts: dict[str, Any] = index.stats() | {name: getattr(index, name) for name in names}
    facts |= {} if index.fields is None else {"fields": index.fields}
    frequencies = index.vectors.document_frequencies()
    if len(frequencies):
        facts |= {"vector_terms": len(frequencies), "vector_postings": int(frequencies.sum())}
    if as_json:
        write_result(to_json(facts | {"analyzer": index.analyzer.to_dict()}, indent=2))
        return
    if "committed" in facts:  # not with --restrict
        facts["committed"] = _with_age(facts["committed"])
    _print_facts(facts | {"analyzer": repr(index.analyzer)})


def _with_age(time: str) -> str:
    """Return a time, and how long ago that was."""
    age = max(0, int((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()))
    units = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
    name, unit = next(one for one in units if age >= 2 * one[1] or one[1] == 1)
    return f"{time}, {age // unit} {name} ago"


def _print_facts(facts: dict[str, Any]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        table.add_row(Text(name.replace("_", " "), style="bold"), Text(one_line(_show(value))))
    result_console().print(table)


def _show(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}={_show(one)}" for name, one in value.items())
    return "none" if value is None else str(value)


@click.command("verify", epilog=examples("bm25rag verify docs.bm25"))
@index_argument
def verify_command(index_path: Path | str, untrusted: bool) -> None:
    """Check every byte of an index: checksums, sizes and contents.

    A damaged file is named, and the exit code is 3. With --untrusted, so is
    anything unsafe in an index from an untrusted source.
    """
    BM25Index.verify(index_path)
    if untrusted:
        BM25Index.open(index_path, untrusted=True)
    write_result(f"{one_line(index_path)}: no damage found")


@click.command("doctor", epilog=examples("bm25rag doctor"))
def doctor_command() -> None:
    """Show what is installed, and whether compiled code runs.

    Where it does not, the reason is shown: NumPy answers then, many times slower.
    """
    facts = {"Python": f"{platform.python_version()}, {platform.system()}, {platform.machine()}"}
    for package in _PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    reason = backend.why_not_compiled()
    used = "numpy, as BM25RAG_KERNELS asks" if reason is None else f"numpy: {reason}"
    facts["hot loops"] = "compiled" if backend.chosen() == "compiled" else used
    _print_facts(facts)
