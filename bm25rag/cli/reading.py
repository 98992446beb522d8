"""The SOURCE arguments of the command line, and the options for reading them."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

import click

from bm25rag.building.memory import check_size
from bm25rag.cli.options import PATH_OR_DASH, together, usage_errors
from bm25rag.readers import FORMATS, PASSAGE_SIZE, Fields, Selection, size_limit

SOURCES_HELP = """\b
SOURCE is one of
  a file of JSON lines         one document per line (.jsonl, .ndjson)
  a JSON array of objects      one document each (.json)
  a CSV or TSV file            one document per row; the header names the fields
  a Parquet or Arrow file      one document per row (.parquet, .arrow, .feather;
                               needs bm25rag[arrow])
  an HTML page                 split into passages (.html)
  a PDF file                   split into passages (.pdf; needs bm25rag[pdf])
  a Word document, a notebook  split into passages (.docx, .ipynb)
  a BEIR folder                its corpus.jsonl, title and text joined
  another folder               all such files in it, and its Markdown, text,
                               source code and settings, split into passages
  any other file               one document of plain text
  -                            JSON lines from standard input
or a pattern in quotes, as in 'src/**/*.py': all that match, as in a folder.
If the name of a file does not show its kind, use --format. Files may be gzipped
(.gz), or packed by zstd (.zst; before Python 3.14 with bm25rag[zstd]).

In a folder, ids are FILE#NUMBER or FILE#ID, where FILE is the path below the
folder, or below the root that all SOURCEs have in common; for a single file,
FILE is its name. Left out are hidden files, what .gitignore names,
node_modules, virtual environments, and links that lead out of the folder."""


def _check_encoding(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    try:
        if value is not None:
            "".encode(value)
            value = codecs.lookup(value).name
    except (LookupError, ValueError) as error:
        message = f"{value!r} is no encoding of texts that Python knows, such as utf-8 or cp1252"
        raise click.BadParameter(message) from error
    return value


def _limit_size(context: click.Context, parameter: click.Parameter, value: str) -> None:
    with usage_errors():
        before = size_limit(check_size("--max-size", value))  # the process is ours
    context.call_on_close(lambda: size_limit(before))


reading_options = together(
    click.option(
        "--format",
        "format_",
        type=click.Choice(["auto", "beir", *FORMATS]),
        default="auto",
        help="What SOURCE is; lines: one document per line of text.",
    ),
    click.option(
        "--id-field",
        metavar="NAME",
        help="Field or column with the id.  [default: _id, id, or else FILE#LINE]",
    ),
    click.option(
        "--text-field",
        "text_fields",
        multiple=True,
        metavar="NAME",
        help="Field or column with text; repeatable, joined by a space.  [default: title and"
        " text; without a field text, those called title, body, content, description ...,"
        " and those that hold prose]",
    ),
    click.option(
        "--metadata-field",
        "metadata_fields",
        multiple=True,
        metavar="NAME",
        help="Field or column to keep as metadata; repeatable.  [default: all others]",
    ),
    click.option(
        "--vector-field",
        metavar="NAME",
        help="""Field or column with a sparse vector, as {"dog": 1.5} or {"indices": [7],"""
        """ "values": [1.5]}; null for none.""",
    ),
    click.option(
        "--passage-size",
        type=click.IntRange(min=1),
        default=PASSAGE_SIZE,
        metavar="CHARACTERS",
        help="Maximum length of a passage.",
    ),
    click.option(
        "--max-size",
        metavar="SIZE",
        default="64MiB",
        callback=_limit_size,
        expose_value=False,
        help="The largest line, table row, or file that is read whole, unpacked; larger ones"
        " cannot be read.",
    ),
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Read only these files of a folder, as in '*.py', 'docs/' or '/src/**/*.md';"
        " repeatable.",
    ),
    click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        help="Leave these files and folders out, as a line of .gitignore would; repeatable.",
    ),
    click.option(
        "--gitignore/--no-gitignore", default=True, help="Leave out what .gitignore files name."
    ),
    click.option("--hidden", is_flag=True, help="Read hidden files and folders, but .git."),
    click.option(
        "--follow-links",
        is_flag=True,
        help="Follow links that lead out of the folder, and links to folders.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        callback=_check_encoding,
        help="Encoding of all texts.  [default: UTF-8, or that of the byte order mark; what is"
        " neither is read as UTF-16 or cp1252, and reported]",
    ),
    click.option(
        "--on-error",
        type=click.Choice(["skip", "stop"]),
        default="skip",
        help="skip: files, lines and records that cannot be read are reported, and the exit"
        " code is 4. stop: nothing is written; so it is if SOURCE is one file that cannot be"
        " read.",
    ),
)
# SOURCE... and how it is read.
source_options = together(
    click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=PATH_OR_DASH),
    reading_options,
    click.option(
        "--on-duplicate",
        type=click.Choice(["error", "skip", "replace"]),
        default="error",
        help="What to do if an id occurs again.",
    ),
)


def fields_of(options: Mapping[str, Any]) -> Fields:
    """Return which fields of a record make a document, by the values of ``reading_options``."""
    texts, kept = options["text_fields"] or None, options["metadata_fields"] or None
    return Fields(options["id_field"], texts, kept, options["vector_field"])


def selection_of(options: Mapping[str, Any]) -> Selection:
    """Return which files of a folder are wanted, by the values of ``reading_options``."""
    names = ("include", "exclude", "gitignore", "hidden", "follow_links")
    return Selection(**{name: options[name] for name in names if name in options})
