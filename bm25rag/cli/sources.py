"""What stands on the command line as SOURCE, as a stream of documents."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from bm25rag import Document
from bm25rag.readers import (
    PASSAGE_SIZE,
    TEXT_FIELDS,
    find_beir_corpus,
    is_jsonl,
    read_jsonl,
    read_lines,
    read_passages,
    read_text,
    walk_texts,
)

__all__ = ["SOURCES_HELP", "check_sources", "read_sources", "source_options"]

SOURCES_HELP = """\b
SOURCE is one of
  a file of JSON lines         one document a line (.jsonl, .ndjson)
  a BEIR folder                its corpus.jsonl, title and text joined
  another folder               its Markdown and text files, cut into passages
  any other file               one document of plain text
  -                            JSON lines from the standard input
and --format says so where the name does not. Files may be gzipped (.gz)."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def source_options(function: _Function) -> _Function:
    """Add SOURCE... and the options that say how to read it."""
    for decorate in (
        click.option(
            "--on-duplicate",
            type=click.Choice(["error", "skip", "replace"]),
            default="error",
            show_default=True,
            help="What to do when an id comes again.",
        ),
        click.option(
            "--passage-size",
            type=click.IntRange(min=1),
            default=PASSAGE_SIZE,
            show_default=True,
            metavar="CHARACTERS",
            help="How long passages should be at most.",
        ),
        click.option(
            "--metadata-field",
            "metadata_fields",
            multiple=True,
            metavar="NAME",
            help="Field to keep as metadata; repeatable.  [default: all that are left]",
        ),
        click.option(
            "--text-field",
            "text_fields",
            multiple=True,
            metavar="NAME",
            default=TEXT_FIELDS,
            show_default=True,
            help="Field with text, joined by a space; repeatable.",
        ),
        click.option(
            "--id-field",
            metavar="NAME",
            help="Field with the id.  [default: _id, id, or else FILE#LINE]",
        ),
        click.option(
            "--format",
            "format_",
            type=click.Choice(["auto", "jsonl", "beir", "text", "lines", "passages"]),
            default="auto",
            show_default=True,
            help="What SOURCE is; lines: one document a line of text.",
        ),
        click.argument(
            "sources",
            metavar="SOURCE...",
            nargs=-1,
            required=True,
            type=click.Path(path_type=Path, allow_dash=True),
        ),
    ):
        function = decorate(function)
    return function


def check_sources(sources: Sequence[Path]) -> None:
    """Raise FileNotFoundError before any work is done."""
    for source in sources:
        if str(source) != "-" and not source.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))


def read_sources(sources: Sequence[Path], options: Mapping[str, Any]) -> Iterator[Document]:
    """Yield the documents of all sources, one after the other."""
    for source in sources:
        kind = options["format_"]
        yield from _read_source(source, _guess(source) if kind == "auto" else kind, options)


def _guess(source: Path) -> str:
    if str(source) == "-" or is_jsonl(source):
        return "jsonl"
    if source.is_dir():
        return "passages" if find_beir_corpus(source) is None else "beir"
    return "text"


def _read_source(source: Path, kind: str, options: Mapping[str, Any]) -> Iterator[Document]:
    if kind == "beir":
        corpus = find_beir_corpus(source)
        if corpus is None:
            message = f"{source}: no BEIR folder, there is no corpus.jsonl in it"
            raise ValueError(message)
        source = corpus
    if kind in ("beir", "jsonl"):
        metadata_fields = options["metadata_fields"] or None
        yield from read_jsonl(source, options["id_field"], options["text_fields"], metadata_fields)
        return
    for path in _text_files(source):
        if kind == "passages":
            yield from read_passages(path, options["passage_size"])
        else:
            yield from read_lines(path) if kind == "lines" else read_text(path)


def _text_files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    files = list(walk_texts(source))
    if not files:
        message = f"{source}: no Markdown or text files in this folder"
        raise ValueError(message)
    return files
