"""``index``, ``add``, ``delete`` and ``compact``: what changes an index on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.cli.options import (
    PATH,
    examples,
    index_argument,
    scoring_options,
    scoring_parameters,
    usage_errors,
)
from bm25rag.cli.output import message_console
from bm25rag.cli.sources import SOURCES_HELP, check_sources, read_sources, source_options
from bm25rag.manifest import MANIFEST, check_target
from bm25rag.writer import OnDuplicate

__all__ = ["add_command", "check_output", "compact_command", "delete_command", "index_command"]


def _none_for_none(context: click.Context, parameter: click.Parameter, value: str) -> str | None:
    return None if value == "none" else value


@click.command(
    "index",
    help=f"""Index SOURCE... and save the index in a folder.

{SOURCES_HELP}

Unless said otherwise, scores are by the variant lucene with k1=1.2 and b=0.75.
""",
    epilog=examples(
        "bm25rag index docs/ --output docs.bm25",
        "bm25rag index scifact/ -o scifact.bm25 --variant bm25+ --k1 0.9 --b 0.4",
        "bm25rag index pages.jsonl.gz -o pages.bm25 --id-field url --text-field body",
        "bm25rag index faq.txt -o faq.bm25 --format lines --language german",
    ),
)
@source_options
@click.option("--output", "-o", required=True, metavar="FOLDER", type=PATH, help="Where to save.")
@click.option("--force", is_flag=True, help="Replace the index that is there.")
@click.option(
    "--language",
    default="english",
    show_default=True,
    callback=_none_for_none,
    help="Name or ISO code: chooses stop words and stemmer; or 'none'.",
)
@click.option(
    "--stopwords",
    default="auto",
    show_default=True,
    callback=_none_for_none,
    help="Name of a list, 'auto' for the language's, or 'none'.",
)
@click.option(
    "--stemmer",
    default="auto",
    show_default=True,
    callback=_none_for_none,
    help="Snowball algorithm, 'auto' for the language's, or 'none'.",
)
@scoring_options
def index_command(
    sources: tuple[Path, ...],
    output: Path,
    force: bool,
    language: str | None,
    stopwords: str | None,
    stemmer: str | None,
    **options: Any,
) -> None:
    """Index SOURCE... and save the index in a folder."""
    start = perf_counter()
    with usage_errors():
        analyzer = Analyzer(language=language, stopwords=stopwords, stemmer=stemmer)
        index = BM25Index(analyzer=analyzer, **scoring_parameters(options))
    check_sources(sources)
    check_output(output, force)
    _fill(index, read_sources(sources, options), options["on_duplicate"])
    index.save(output)
    _report("Indexed", len(index), perf_counter() - start, output)


@click.command(
    "add",
    help=f"""Add SOURCE... to an index, with the analyzer it was made with.

{SOURCES_HELP}

Nothing is added when anything is wrong.
""",
    epilog=examples(
        "bm25rag add docs.bm25 news/ --on-duplicate replace",
        "generate | bm25rag add docs.bm25 -",
    ),
)
@index_argument
@source_options
def add_command(index_path: Path, sources: tuple[Path, ...], **options: Any) -> None:
    """Add SOURCE... to an index."""
    start = perf_counter()
    check_sources(sources)
    with BM25Index.open(index_path, mode="w") as index:
        written = _fill(index, read_sources(sources, options), options["on_duplicate"])
    _report("Added", written, perf_counter() - start, index_path)


@click.command(
    "delete",
    epilog=examples(
        "bm25rag delete docs.bm25 docs/old.md#1 docs/old.md#2",
        "bm25rag delete docs.bm25 -- -id-that-begins-with-a-dash",
    ),
)
@index_argument
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
def delete_command(index_path: Path, ids: tuple[str, ...]) -> None:
    """Delete documents from an index; ids that it does not have are ignored."""
    with BM25Index.open(index_path, mode="w") as index:
        deleted = index.delete(list(ids))
    message_console().print(f"Deleted {deleted:,} of {len(ids):,} documents from {index_path}.")


@click.command(
    "compact",
    epilog=examples("bm25rag compact docs.bm25 && bm25rag verify docs.bm25"),
)
@index_argument
def compact_command(index_path: Path) -> None:
    """Write an index anew as one part, without what was deleted or replaced.

    Until then the texts of deleted documents are still in its files.
    """
    start = perf_counter()
    with BM25Index.open(index_path, mode="w") as index:
        index.compact()
    _report("Compacted", len(index), perf_counter() - start, index_path)


def check_output(output: Path, force: bool) -> None:
    """Refuse to write where something else is; an index is replaced only when asked."""
    check_target(output)
    if (output / MANIFEST).exists() and not force:
        message = f"{output}: is an index already; --force replaces it, 'bm25rag add' adds to it"
        raise FileExistsError(message)


def _fill(index: BM25Index, documents: Iterator[Document], on_duplicate: OnDuplicate) -> int:
    """Add all or, if anything is wrong, none; return how many documents were written."""
    written = index.add_documents(
        documents, on_duplicate=on_duplicate, progress=message_console().is_terminal
    )
    return len(written)


def _report(done: str, count: int, seconds: float, path: Path) -> None:
    message_console().print(f"{done} {count:,} documents in {seconds:.1f} s: {path}")
