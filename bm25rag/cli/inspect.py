"""``inspect``: an index looked at in a browser."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click

from bm25rag.cli.options import PATH, examples, reading_argument, usage_errors
from bm25rag.cli.terminal import counted, write_message
from bm25rag.common.listening import serve
from bm25rag.common.optional import load
from bm25rag.common.visible import one_line
from bm25rag.readers import read_queries


@click.command(
    "inspect",
    epilog=examples(
        "bm25rag inspect docs.bm25",
        "bm25rag inspect docs.bm25 --qrels judged.tsv",
        "bm25rag inspect docs.bm25 --port 0",
    ),
)
@reading_argument
@click.option(
    "--qrels",
    type=PATH,
    metavar="FILE.tsv",
    help="Where judgements are kept, in BEIR's format; without it nothing can be judged.",
)
@click.option(
    "--queries",
    type=PATH,
    metavar="FILE",
    help="Questions with ids: judgements then have these, and otherwise the question itself.",
)
@click.option("--host", default="127.0.0.1", help="Where to listen.")
@click.option("--port", default=8777, type=click.IntRange(0, 65535), help="0 for any that is free.")
@click.option("--open", "open_", is_flag=True, help="Open the page in your browser.")
def inspect_command(
    index_path: Path | str,
    qrels: Path | None,
    queries: Path | None,
    host: str,
    port: int,
    open_: bool,
    **options: Any,
) -> None:
    """Look at INDEX in a browser: why a search finds what it does.

    Nothing is written but --qrels. There is no password: whoever can connect to the port,
    on this machine unless --host is another, can read what INDEX holds.
    """
    for module in ("jinja2", "starlette", "uvicorn"):
        load(module, f"bm25rag inspect needs {module}", "inspect")
    from bm25rag.inspector.app import make_server
    from bm25rag.inspector.desk import Desk
    from bm25rag.inspector.judgements import Judgements
    from bm25rag.inspector.opened import OpenedIndex

    if not host:  # of a variable that is not set; sockets take it for all addresses
        raise click.UsageError("--host must not be empty; 0.0.0.0 is every address of this machine")
    if queries is not None and qrels is None:
        raise click.UsageError("--queries gives ids to judgements, and needs --qrels FILE.tsv")
    texts = {} if queries is None else {query.id: query.text for query in read_queries(queries)}
    judgements = None if qrels is None else Judgements(qrels, texts)
    with usage_errors():
        opened = OpenedIndex(index_path, **options)
    for warned in opened.warned:
        write_message(f"Warning: {one_line(warned)}")
    count = counted(len(opened.at()), "document")
    if not _is_loopback(host):
        write_message(f"Whoever can reach {one_line(host)} can read this index, and judge.")

    def tell(address: str) -> None:
        write_message(f"{count} of {one_line(opened.place)} at {address} (Ctrl-C ends it)")
        if open_:
            click.launch(address)

    serve(make_server(Desk(opened, judgements), host), host, port, tell)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
