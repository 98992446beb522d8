"""``index``, ``add``, ``delete`` and ``compact``: the commands that change an index."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from bm25rag import Analyzer, BM25Index
from bm25rag.building.memory import check_memory
from bm25rag.cli.options import (
    INDEX_PATH,
    examples,
    filter_option,
    index_argument,
    scoring_options,
    scoring_parameters,
    usage_errors,
)
from bm25rag.cli.reading import SOURCES_HELP, source_options
from bm25rag.cli.sources import SKIPPED, Sources
from bm25rag.cli.terminal import counted, write_message
from bm25rag.common.urls import is_url
from bm25rag.common.visible import one_line
from bm25rag.storage.file_identity import FileMark
from bm25rag.storage.folder_lock import check_target
from bm25rag.storage.manifest import BUILDING, MANIFEST, manifest_path
from bm25rag.storage.remote import RemoteStore
from bm25rag.storage.remote_writer import check_remote_target


def _option_or_none(name: str, default: str, help: str) -> Callable[[Any], Any]:
    def read(context: click.Context, parameter: click.Parameter, value: str) -> str | None:
        return None if value == "none" else value

    return click.option(name, default=default, callback=read, help=help)


def _parse_also(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> list[tuple[Analyzer, float]]:
    also = []
    for one in value:
        name, _, weight = one.rpartition("=")
        runs = re.fullmatch(r"(\d+)-grams", name)
        try:
            own = Analyzer(None, ngrams=int(runs[1])) if runs else Analyzer(name)
            also.append((own, float(weight)))
        except ValueError as error:
            message = f"expected NAME=WEIGHT, such as 4-grams=0.1, got {one!r}: {one_line(error)}"
            raise click.BadParameter(message) from error
    return also


@click.command(
    "index",
    help=f"""Index SOURCE... and save the index in a folder.

{SOURCES_HELP}

By default, scores use the variant lucene with k1=1.2 and b=0.75.
""",
    epilog=examples(
        "bm25rag index docs/ --output docs.bm25",
        "bm25rag index scifact/ -o scifact.bm25 --variant bm25+ --k1 0.9 --b 0.4",
        "bm25rag index pages.jsonl.gz -o pages.bm25 --id-field url --text-field body",
        "bm25rag index 'parts/*.parquet' -o pages.bm25 --memory 2GiB --on-error stop",
        "bm25rag index pages.jsonl.gz -o pages.bm25 --shards 4",
        "bm25rag index scifact/ -o scifact.bm25 --field title=3",
        "bm25rag index faq.txt -o faq.bm25 --format lines --language german --also 4-grams=0.1",
    ),
)
@source_options
@click.option(
    "--output", "-o", required=True, metavar="FOLDER", type=INDEX_PATH, help="Where to save."
)
@click.option("--force", is_flag=True, help="Replace an existing index.")
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    metavar="N",
    help="Divide the index into N shards; an interrupted run goes on where it was.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    help="Build in the folder, in about as much memory, such as 512MiB or 2GiB, however many"
    " documents there are; an interrupted run goes on where it was. By default, an index"
    " without shards is built in memory.",
)
@_option_or_none(
    "--language", "english", "Name or ISO code, which selects stop words and stemmer; or 'none'."
)
@_option_or_none("--stopwords", "auto", "Name of a list, 'auto' for the language's, or 'none'.")
@_option_or_none("--stemmer", "auto", "Snowball algorithm, 'auto' for the language's, or 'none'.")
@click.option(
    "--also",
    multiple=True,
    metavar="NAME=WEIGHT",
    callback=_parse_also,
    help="A further analysis of the same texts, whose score is added with a weight: 4-grams=0.1 for"
    " runs of 4 characters, or a language; repeatable.",
)
@scoring_options
def index_command(
    sources: tuple[Path, ...],
    output: Path | str,
    force: bool,
    shards: int | None,
    memory: str | None,
    language: str | None,
    stopwords: str | None,
    stemmer: str | None,
    also: list[tuple[Analyzer, float]],
    **options: Any,
) -> None:
    """Index SOURCE... and save the index in a folder."""
    start = perf_counter()
    if force and (shards is not None or memory is not None):
        name = "--memory" if shards is None else "--shards"
        message = f"{name} makes a new folder: remove the old one, and leave out --force"
        raise click.UsageError(message)
    with usage_errors():
        size = check_memory("--memory", memory) if memory is not None else None
        analyzer = Analyzer(language=language, stopwords=stopwords, stemmer=stemmer, also=also)
        settings = {"analyzer": analyzer, **scoring_parameters(options)}
        index = BM25Index(**settings)
    documents = Sources(sources, options, Path(output))
    documents.fields = index.fields
    in_memory = shards is None and size is None
    if in_memory:
        check_output(output, force)
    with reporting(documents, output):
        if in_memory:
            index.add_documents(documents, on_duplicate=options["on_duplicate"])
            index.save(output)
        else:
            settings |= {"on_duplicate": options["on_duplicate"]}
            settings |= {} if size is None else {"memory": size}
            index = BM25Index.build(documents, output, shards=shards, **settings)
    report("Indexed", len(index), perf_counter() - start, output)
    exit_if_skipped(documents)


@click.command(
    "add",
    help=f"""Add SOURCE... to an index, with the analyzer of the index.

{SOURCES_HELP}

All documents become visible at once, at the end. Documents that are no longer in
a file or a folder stay in the index; 'bm25rag sync' follows a folder that changes.
""",
    epilog=examples(
        "bm25rag add docs.bm25 news/ --on-duplicate replace",
        "generate | bm25rag add docs.bm25 -",
    ),
)
@index_argument
@source_options
def add_command(
    index_path: Path | str, untrusted: bool, sources: tuple[Path, ...], **options: Any
) -> None:
    """Add SOURCE... to an index."""
    start = perf_counter()
    documents = Sources(sources, options, Path(index_path))
    with (
        reporting(documents, index_path),
        BM25Index.open(index_path, mode="w", untrusted=untrusted) as index,
    ):
        documents.fields = index.fields
        written = index.add_documents(documents, on_duplicate=options["on_duplicate"])
    report("Added", len(written), perf_counter() - start, index_path)
    exit_if_skipped(documents)


@click.command(
    "delete",
    epilog=examples(
        "bm25rag delete docs.bm25 old.md#1 old.md#2",
        "bm25rag delete docs.bm25 --source guide/old.md --source archive/",
        """bm25rag delete docs.bm25 --filter '{"year": {"$lt": 2020}}'""",
        "bm25rag delete docs.bm25 -- -id-that-begins-with-a-dash",
    ),
)
@index_argument
@click.argument("ids", metavar="[ID...]", nargs=-1)
@filter_option
@click.option(
    "--source",
    "sources",
    metavar="PATH",
    multiple=True,
    help="Documents from this file or folder, by the path in the field source of their"
    " metadata; repeatable.",
)
def delete_command(
    index_path: Path | str,
    untrusted: bool,
    ids: tuple[str, ...],
    filter_: dict[str, Any] | None,
    sources: tuple[str, ...],
) -> None:
    """Delete documents from an index, by ID, --filter or --source.

    Unknown ids are ignored.
    """
    if bool(ids) + (filter_ is not None) + bool(sources) != 1:
        raise click.UsageError("give either ID... or --filter JSON or --source PATH")
    if filter_ == {}:
        raise click.UsageError(
            "--filter {} would delete every document; say which, as in "
            """'{"year": {"$lt": 2020}}', or start over with 'bm25rag index --force'"""
        )
    if "" in sources:
        raise click.UsageError("--source must not be empty")
    with BM25Index.open(index_path, mode="w", untrusted=untrusted) as index:
        if sources:
            filter_ = _filter_of(sources)
        with usage_errors():
            wanted = list(ids) or index.ids(filter_)
        deleted = len(index.delete(wanted))
    asked = f"of {len(ids):,} " if ids else ""
    noun = counted(len(ids) if ids else deleted, "document").partition(" ")[2]
    write_message(f"Deleted {deleted:,} {asked}{noun} from {one_line(index_path)}.")
    if sources and not deleted:
        write_message("Sources are paths below the indexed folder, as search shows them.")


def _filter_of(sources: Sequence[str]) -> dict[str, Any]:
    # Also as they were given: a source may be a URL, or come from another tool.
    paths = [posixpath.normpath(Path(source).as_posix()) for source in sources]
    names = list(dict.fromkeys([*paths, *sources]))
    below = [{"source": {"$startswith": f"{name.rstrip('/')}/"}} for name in names]
    return {"$or": [{"source": {"$in": names}}, *below]}


@click.command("compact", epilog=examples("bm25rag compact docs.bm25 && bm25rag verify docs.bm25"))
@index_argument
def compact_command(index_path: Path | str, untrusted: bool) -> None:
    """Rewrite an index as one segment, without deleted and replaced documents.

    Until then the texts of deleted documents are still in its files.
    """
    start = perf_counter()
    with BM25Index.open(index_path, mode="w", untrusted=untrusted) as index:
        index.compact()
    report("Compacted", len(index), perf_counter() - start, index_path)


def check_output(output: Path | str, force: bool) -> None:
    """Refuse a folder with other contents, and without ``force`` one with an index."""
    if is_url(output):
        there = check_remote_target(RemoteStore(str(output), None), overwrite=True)[0] is not None
    else:
        check_target(str(output))
        there = Path(output, MANIFEST).exists()
    if there and not force:
        message = f"{output}: is an index already; --force replaces it, 'bm25rag add' adds to it"
        raise FileExistsError(message)


@contextmanager
def reporting(
    documents: Sources, path: Path | str, before: Sources | None = None
) -> Iterator[None]:
    """Report what was left out and skipped, even if the command fails; not what ``before`` has.

    At Ctrl-C, it says what is kept of the index at ``path``, and how to go on.
    """
    known = None if before is None else before.findings
    mark = FileMark(manifest_path(str(path)))
    try:
        yield
    except KeyboardInterrupt:
        write_message(f"Interrupted: {one_line(_kept(path, mark))}")
        raise
    except Exception:
        documents.findings.report(known)
        raise
    documents.findings.report(known)


def _kept(path: Path | str, before: FileMark) -> str:
    """Return what is kept of an index when a change of it is interrupted, and how to go on.

    ``before`` is the mark of its manifest when the change began.
    """
    there = Path(path, MANIFEST).exists()
    if there and not before.is_current():
        return f"{path} had been written already; 'bm25rag stats' tells what it holds"
    if is_url(path) or there:
        return f"{path} is as it was; run the same command again"
    if Path(path, BUILDING).exists():
        return f"{path} keeps the documents that are done; the same command goes on from there"
    return f"nothing was written to {path}; run the same command again"


def exit_if_skipped(documents: Sources) -> None:
    """Exit with a special code if something was skipped that should have been read."""
    if documents.findings.incomplete:
        click.get_current_context().exit(SKIPPED)


def report(done: str, count: int, seconds: float, path: Path | str) -> None:
    """Report what was done with how many documents."""
    write_message(f"{done} {counted(count, 'document')} in {seconds:.1f} s: {one_line(path)}")
