"""``ray build``, ``serve``, ``search``, ``refresh`` and ``stop``: an index on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from bm25rag import Analyzer
from bm25rag.cli.indexing import index_command, report
from bm25rag.cli.options import (
    PATH,
    SCORING,
    examples,
    scoring_parameters,
    together,
    untrusted_option,
    usage_errors,
)
from bm25rag.cli.output import WRITERS, Answers
from bm25rag.cli.reading import fields_of
from bm25rag.cli.search import check_rankings, each_batch, format_of, queries_of, search_command
from bm25rag.cli.sources import SKIPPED
from bm25rag.cli.terminal import counted, write_message
from bm25rag.common.visible import one_line
from bm25rag.errors import DuplicateIdError

_FIELDS = ("id_field", "text_fields", "metadata_fields", "vector_field")
_READING = ("format_", *_FIELDS, "max_size", "passage_size")
_ANALYZER = ("language", "stopwords", "stemmer", "also")
_OUTPUT = ("format_", "as_json", "output")
_PAGE = ("k", "offset", "group", "per_group", "decay", "min_score")
_SEARCHING = ("query", "queries_path", *_OUTPUT, *_PAGE, "filter_", "syntax", "also", "by_rank")


def _options_of(command: click.Command, names: Sequence[str]) -> list[click.Parameter]:
    """Return some of another command's options, which mean the same here."""
    return [option for option in command.params if option.name in names]


_cluster_options = together(
    click.option("--name", default="bm25rag", help="The name that it is served by."),
    click.option(
        "--address",
        metavar="ADDRESS",
        help="The cluster.  [default: RAY_ADDRESS, or the one that runs on this machine]",
    ),
)


def _connect(address: str | None) -> None:
    from bm25rag.distributed.engine import load

    ray = load()
    if not ray.is_initialized():
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)


@click.group("ray", epilog=examples("bm25rag ray search 'how do I install it'"))
def ray_command() -> None:
    """Build and serve an index in shards on a Ray cluster (needs bm25rag[ray])."""


@ray_command.command(
    "build",
    params=_options_of(index_command, (*_READING, *_ANALYZER, *SCORING)),
    epilog=examples("bm25rag ray build 'corpus/*.jsonl' -o /shared/corpus.bm25 --shards 8"),
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--output", "-o", required=True, metavar="FOLDER", type=PATH, help="Where to save.")
@click.option("--shards", required=True, type=click.IntRange(min=1), help="How many shards.")
@click.option("--num-cpus", default=1.0, help="CPUs of each task.")
@click.option("--memory", default="2GiB", help="What each task may use.")
@click.option("--address", metavar="ADDRESS", help="The cluster.  [default: as Ray's]")
def build_command(
    sources: tuple[str, ...],
    output: Path,
    shards: int,
    num_cpus: float,
    memory: str,
    address: str | None,
    **options: Any,
) -> None:
    """Build an index in shards from SOURCE..., by tasks of a cluster.

    SOURCE is a file, a folder or a pattern; ids and order are those of 'bm25rag
    index'. All nodes must see the files and FOLDER by these paths. A shard has
    whole files. An interrupted run goes on where it was.
    """
    from bm25rag.distributed.ray import build

    start = perf_counter()
    with usage_errors():
        analyzer = Analyzer(**{name: options[name] for name in _ANALYZER})
    format_ = "auto" if options["format_"] == "beir" else options["format_"]
    parameters = scoring_parameters(options)
    _connect(address)
    try:
        index = build(
            sources[0] if len(sources) == 1 else sources,
            output,
            shards,
            format=format_,
            fields=fields_of(options),
            passage_size=options["passage_size"],
            num_cpus=num_cpus,
            memory=memory,
            analyzer=analyzer,
            field_weights=parameters.pop("fields", None),
            **parameters,
        )
    except DuplicateIdError as error:  # there is no --on-duplicate here
        raise ValueError(str(error)) from error
    report("Indexed", len(index), perf_counter() - start, output)


@ray_command.command("serve", epilog=examples("bm25rag ray serve /shared/corpus.bm25 --replicas 2"))
@click.argument("index_path", metavar="INDEX", type=PATH)
@click.option("--replicas", default=1, type=click.IntRange(min=1), help="How many copies.")
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Nodes that each copy is divided among.  [default: all]",
)
@click.option("--num-cpus", default=1.0, help="CPUs of each actor.")
@click.option("--timeout", default=60.0, help="Seconds until all must have started.")
@untrusted_option
@_cluster_options
def serve_command(index_path: Path, name: str, address: str | None, **options: Any) -> None:
    """Serve INDEX on the nodes of a cluster, until 'bm25rag ray stop'."""
    from bm25rag.distributed.ray import serve

    _connect(address or "auto")
    index = serve(index_path, name, **options)
    documents = counted(len(index), "document")
    write_message(f"Serving {documents} as {one_line(name)}: {one_line(index_path)}")


@ray_command.command(
    "search",
    params=_options_of(search_command, _SEARCHING),
    epilog=examples("bm25rag ray search 'how do I install it' -k 3"),
)
@click.option("--deadline", default=10.0, help="Seconds for an answer.")
@click.option(
    "--partial", is_flag=True, help="Answer without shards that are missing; the exit code is 4."
)
@_cluster_options
def ray_search_command(
    query: str | None,
    queries_path: Path | None,
    format_: str | None,
    as_json: bool,
    output: Path | None,
    name: str,
    address: str | None,
    **options: Any,
) -> None:
    """Search a served index for one QUERY, or for a file of queries."""
    from bm25rag.distributed.ray import RayBatch, connect

    queries, write = queries_of(query, queries_path), WRITERS[format_of(format_, as_json)]
    check_rankings(query, None, options)
    if options["by_rank"] and options["partial"]:
        raise click.UsageError("give either --by-rank or --partial")
    _connect(address or "auto")
    index = connect(name)
    missing: dict[int, str] = {}
    with click.open_file(output or "-", "w", encoding="utf-8", lazy=True) as stream:
        for block, found in each_batch(index, queries, query, None, options):
            missing |= found.missing if isinstance(found, RayBatch) else {}
            write(stream, Answers(block, found, query is None, options["k"], options["offset"] + 1))
        stream.flush()
    for number, reason in sorted(missing.items()):
        write_message(f"Warning: without shard {number}: {one_line(reason)}")
    if missing:
        click.get_current_context().exit(SKIPPED)


@ray_command.command("refresh")
@_cluster_options
def refresh_command(name: str, address: str | None) -> None:
    """Let a served index go to the last commit of its folder."""
    from bm25rag.distributed.ray import connect

    _connect(address or "auto")
    write_message(f"Serving commit {connect(name).refresh()} as {one_line(name)}.")


@ray_command.command("stop")
@_cluster_options
def stop_command(name: str, address: str | None) -> None:
    """End a served index."""
    from bm25rag.distributed.ray import stop

    _connect(address or "auto")
    stop(name)
