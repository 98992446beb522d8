"""``download``: BEIR's collections by their public names."""

from __future__ import annotations

from pathlib import Path

import click

from bm25rag.building.memory import check_size
from bm25rag.cli.options import PATH, examples, usage_errors
from bm25rag.cli.terminal import shows_progress, write_message, write_result
from bm25rag.common.visible import one_line
from bm25rag.evaluation.beir import BEIR, BEIR_URL, download

_TABLE = "\n".join(
    [
        "\b",
        "Collections, with their documents and test queries:",
        *(f"  {name:18}{one.documents:>8}{one.queries:>10}" for name, one in BEIR.items()),
    ]
)


@click.command(
    "download",
    epilog=f"{_TABLE}\n\n"
    + examples(
        "bm25rag download scifact beir/",
        "bm25rag bench beir/scifact --output measured/",
        "bm25rag index beir/scifact --output scifact.bm25",
    ),
)
@click.argument("name", metavar="NAME", type=click.Choice(list(BEIR)))
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--url", default=BEIR_URL, help="Where NAME.zip is; a mirror.")
@click.option(
    "--max-size",
    metavar="SIZE",
    help="How large the archive may be, such as 2GB.  [default: twice its known size]",
)
def download_command(name: str, folder: Path, url: str, max_size: str | None) -> None:
    """Download a judged collection of BEIR into FOLDER/NAME.

    It is checked against the sum that BEIR publishes. An interrupted download is kept and
    continued by the same command; what is too large, or not that archive, is removed.
    Whether you may use a collection is for its licence to say.
    """
    there = (folder / name).exists()
    with usage_errors():
        largest = None if max_size is None else check_size("--max-size", max_size)
    part = folder / f"{name}.zip.part"
    try:
        made = download(name, folder, url=url, progress=shows_progress(), max_size=largest)
    except KeyboardInterrupt:
        if part.exists():
            write_message(f"{one_line(part)} is kept; the same command goes on.")
        raise
    write_message("It was there already." if there else f"Downloaded {name}.")
    write_result(one_line(made))
