"""``demo``: indexing and searching real text, with nothing to download."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import click
import numpy as np
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bm25rag import Analyzer, BM25Index, Document, Hit
from bm25rag.cli.docstrings import read_docstrings, standard_library
from bm25rag.cli.marked_text import first_lines
from bm25rag.cli.terminal import counted, result_console

QUESTIONS = (
    "how do I split a string like the shell does",
    "recursively copy a directory tree",
    "read and write gzip files",
    "compare two sequences and show the differences",
    "how do I find the median of a list of numbers",
    "what is the difference between a shallow and a deep copy",
    "parse a date in ISO 8601 format",
    "make a temporary directory that is removed with its contents",
    "pretty print a nested dictionary",
    "cryptographically strong random numbers for a password",
    "longest common prefix of path names",
    "least recently used cache for the results of a function",
)
_FILTERED = "quote special characters in a URL"
_FILTER = {"kind": "function", "module": {"$startswith": "urllib"}}
_CHANGED = QUESTIONS[0]


@click.command("demo")
def demo_command() -> None:
    """Index the docstrings of Python's standard library, and search them.

    Nothing is downloaded, and no files are left behind.
    """
    run_demo(result_console(), standard_library())


def run_demo(console: Console, root: Path) -> None:
    """Show indexing, searching, changing, saving and reopening; raise if a result is wrong."""
    start = perf_counter()
    documents = _read(console, root)
    index = _build(console, documents)
    _ask(console, index)
    _explain(console, index)
    _search_filtered(console, index)
    _change(console, index)
    _save_and_reopen(console, index)
    console.print(Rule())
    console.print(f"All of it in {perf_counter() - start:.1f} s.")


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Rule(Text(title, style="bold"), align="left"))


def _require(condition: bool, promise: str) -> None:
    if not condition:
        raise RuntimeError(f"the demo failed: {promise}")


# --- reading and building -------------------------------------------------------


def _read(console: Console, root: Path) -> list[Document]:
    _heading(console, "Reading the standard library's docstrings (ast, nothing imported)")
    start = perf_counter()
    # A name that is defined twice, such as a property's getter and setter, counts once.
    documents = list({document.id: document for document in read_docstrings(root)}.values())
    if not documents:
        raise ValueError(f"{root}: no Python source with docstrings in this folder")
    modules = len({document.metadata["module"] for document in documents})
    console.print(
        f"{counted(len(documents), 'passage')} from {counted(modules, 'module')} "
        f"in {perf_counter() - start:.1f} s"
    )
    return documents


def _build(console: Console, documents: Sequence[Document]) -> BM25Index:
    _heading(console, "Indexing")
    texts = [document.text or "" for document in documents]
    megabytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
    # What is imported at first use is not timed.
    BM25Index.from_texts(["one text", "another text"]).search_batch(["text", "one"])
    index = BM25Index(analyzer=Analyzer(language="english", stopwords="english_long"))
    start = perf_counter()
    index.add(
        texts,
        ids=[document.id for document in documents],
        metadata=[document.metadata for document in documents],
    )
    seconds = perf_counter() - start
    stats = index.stats()
    console.print(
        f"{counted(len(index), 'document')}, {stats['terms']:,} terms, "
        f"{stats['postings']:,} postings\n"
        f"{megabytes:.1f} MB of text in {seconds:.2f} s: {megabytes / seconds:.1f} MB/s, "
        f"{len(index) / seconds:,.0f} documents/s"
    )
    return index


# --- asking ---------------------------------------------------------------------


def _show_hits(console: Console, question: str, hits: Sequence[Hit]) -> None:
    console.print(Text(question, style="bold"))
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="green", width=7)
    table.add_column()
    for hit in hits:
        line = Text.assemble((hit.id, "cyan"), "  ", _summary(hit))
        line.truncate(console.width - 9, overflow="ellipsis")
        table.add_row(f"{hit.score:.3f}", line)
    console.print(table if hits else "  nothing")


def _summary(hit: Hit) -> str:
    """Return the docstring's first line, without the name above it, which is the id."""
    docstring = (hit.text or "").removeprefix(hit.id).strip()
    return first_lines(docstring.partition("\n")[0])


def _ask(console: Console, index: BM25Index) -> None:
    _heading(console, f"{len(QUESTIONS)} questions")
    start = perf_counter()
    answers = [index.search(question, k=3) for question in QUESTIONS]
    milliseconds = (perf_counter() - start) * 1000 / len(QUESTIONS)
    for question, hits in zip(QUESTIONS, answers, strict=True):
        _show_hits(console, question, hits)
    console.print(f"{milliseconds:.2f} ms a question, one after another")


def _explain(console: Console, index: BM25Index) -> None:
    _heading(console, "Why the first answer is the first")
    hits = index.search(QUESTIONS[0], k=1)
    for hit in hits:
        explanation = index.explain(QUESTIONS[0], hit.id)
        console.print(str(explanation))
        total = 0.0  # from Python 3.12 on, sum() rounds differently
        for term in explanation.terms:
            total += term.contribution
        same = total + explanation.shift == explanation.score == hit.score
        _require(same, "the parts add up to the score")


def _search_filtered(console: Console, index: BM25Index) -> None:
    _heading(console, f"Filtered: {_FILTER}")
    hits = index.search(_FILTERED, k=3, filter=_FILTER)
    _show_hits(console, _FILTERED, hits)
    for hit in hits:
        passes = hit.metadata["kind"] == "function" and hit.metadata["module"].startswith("urllib")
        _require(passes, "a filtered search shows what passes the filter and nothing else")


# --- changing -------------------------------------------------------------------


def _change(console: Console, index: BM25Index) -> None:
    _heading(console, "Changing and deleting: the answers follow at once")
    before = index.search(_CHANGED, k=3)
    if not before:
        console.print("Nothing to change: no document answers.")
        return
    _show_hits(console, _CHANGED, before)
    changed = before[0].id
    index.add(
        [f"{changed}\n\nRewritten: a note on growing tomatoes."],
        ids=[changed],
        metadata=[before[0].metadata],
        on_duplicate="replace",
    )
    console.print(f"\n… after {changed} was rewritten as a note on growing tomatoes")
    after = index.search(_CHANGED, k=3)
    _show_hits(console, _CHANGED, after)
    _show_hits(console, "growing tomatoes", index.search("growing tomatoes", k=1))
    _require(after != before, "a changed document is searched as it is now")
    deleted = after[0].id if after else changed
    index.delete([deleted])
    console.print(f"\n… after {deleted} was deleted")
    rest = index.search(_CHANGED, k=3)
    _show_hits(console, _CHANGED, rest)
    _require(deleted not in index, "a deleted document is gone")
    _require(deleted not in [hit.id for hit in rest], "a deleted document is not found")


# --- saving ---------------------------------------------------------------------


def _save_and_reopen(console: Console, index: BM25Index) -> None:
    _heading(console, "Saving, and opening again memory-mapped")
    # A file that is still mapped cannot be removed on Windows.
    with tempfile.TemporaryDirectory(prefix="bm25rag-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, "stdlib.bm25")
        start = perf_counter()
        index.save(path)
        saved = perf_counter()
        reopened = BM25Index.open(path, mmap=True)
        opened = perf_counter()
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
        console.print(
            f"{size:.1f} MB saved in {saved - start:.2f} s, "
            f"opened in {(opened - saved) * 1000:.1f} ms"
        )
        _require_same_answers(index, reopened)
        del reopened
    console.print(f"The {len(QUESTIONS)} questions have the same answers, to the last bit.")


def _require_same_answers(index: BM25Index, reopened: BM25Index) -> None:
    before, after = (each.search_batch(QUESTIONS, k=100) for each in (index, reopened))
    same = (
        np.array_equal(before.rows, after.rows)
        and np.array_equal(before.scores, after.scores)
        and before.hits() == after.hits()
    )
    _require(same, "a reopened index gives the same answers")
