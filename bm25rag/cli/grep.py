"""``grep``: lines of the texts of an index, as a pattern finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bm25rag.cli.options import examples, filter_option, open_index, reading_argument, usage_errors
from bm25rag.cli.output import to_json
from bm25rag.cli.terminal import write_result
from bm25rag.common.visible import one_line
from bm25rag.grep import Grep, GrepMatch


@click.command(
    "grep",
    epilog=examples(
        'bm25rag grep docs.bm25 "pip install"',
        "bm25rag grep code.bm25 'def \\w+_filter\\(' --regex",
        'bm25rag grep docs.bm25 TODO --filter \'{"source": "guide.md"}\' --json',
    ),
)
@reading_argument
@click.argument("pattern")
@click.option("--regex", "-E", is_flag=True, help="PATTERN is a regular expression (RE2).")
@click.option("--ignore-case", "-i", is_flag=True, help="Capitals and small letters are the same.")
@click.option("-k", type=click.IntRange(min=0), help="Maximum lines.  [default: all]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line that matches.")
@filter_option
def grep_command(
    index_path: Path | str,
    pattern: str,
    regex: bool,
    ignore_case: bool,
    k: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show the lines of stored texts that hold PATTERN as it is written, as id:line:text.

    Words are not analysed; where PATTERN has whole words between others, the index narrows
    down which texts are looked at.
    """
    index = open_index(index_path, options)
    with usage_errors():
        grep = Grep(index, pattern, options["filter_"], regex=regex, ignore_case=ignore_case)
    row, document = -1, None
    for number, match in enumerate(grep.matches()):
        if not isinstance(match, GrepMatch) or number == k:
            break
        if match.row != row or document is None:
            row, document = match.row, match.document
        line = match.line
        if as_json:
            spans = [[one.start, one.end] for one in line.spans]
            shown = {"id": document.id, "line": line.number, "text": line.text, "spans": spans}
            write_result(to_json({**shown, "metadata": document.metadata}))
        else:
            write_result(f"{one_line(document.id)}:{line.number}:{one_line(line.text)}")
