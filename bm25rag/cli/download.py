"""``download``: BEIR's collections by their public names."""

from __future__ import annotations

from pathlib import Path

import click

from bm25rag.cli.options import PATH, examples
from bm25rag.cli.terminal import one_line, shows_progress, write_message, write_result
from bm25rag.evaluation.beir import BEIR, BEIR_URL, download

__all__ = ["download_command"]

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
@click.option("--url", default=BEIR_URL, show_default=True, help="Where NAME.zip is; a mirror.")
def download_command(name: str, folder: Path, url: str) -> None:
    """Download a judged collection of BEIR into FOLDER/NAME.

    It is checked against the sum that BEIR publishes. An interrupted download is kept and
    continued by the same command. Whether you may use a collection is for its licence to say.
    """
    there = (folder / name).exists()
    made = download(name, folder, url=url, progress=shows_progress())
    write_message("It was there already." if there else f"Downloaded {name}.")
    write_result(one_line(made))
