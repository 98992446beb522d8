"""The SOURCE arguments of the command line, as a stream of documents."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from bm25rag import Document
from bm25rag.building.memory import check_size
from bm25rag.cli.options import usage_errors
from bm25rag.cli.progress import ReadingBar
from bm25rag.cli.terminal import counted, listed, one_line, shows_progress, write_message
from bm25rag.cli.wording import describe
from bm25rag.common.storable import plain_metadata
from bm25rag.errors import MetadataError, MissingDependencyError
from bm25rag.readers import (
    FORMATS,
    KINDS,
    PASSAGE_SIZE,
    TEXT_FIELDS,
    Fields,
    OtherContentError,
    find_beir_corpus,
    find_files,
    find_matches,
    kind_of,
    read_file,
    size_limit,
)

__all__ = ["SKIPPED", "SOURCES_HELP", "Sources", "fields_of", "reading_options", "source_options"]

SOURCES_HELP = """\b
SOURCE is one of
  a file of JSON lines         one document per line (.jsonl, .ndjson)
  a JSON array of objects      one document each (.json)
  a CSV or TSV file            one document per row; the header names the fields
  a Parquet or Arrow file      one document per row (.parquet, .arrow, .feather;
                               needs bm25rag[arrow])
  an HTML page                 split into passages (.html)
  a BEIR folder                its corpus.jsonl, title and text joined
  another folder               all such files in it, and its Markdown and text
                               files, split into passages
  any other file               one document of plain text
  -                            JSON lines from standard input
or a pattern in quotes, as in 'parts/*.parquet': all that match, sorted by name.
If the name of a file does not show its kind, use --format. Files may be gzipped
(.gz), or packed by zstd (.zst; before Python 3.14 with bm25rag[zstd]).

In a folder, ids are FILE#NUMBER or FILE#ID, where FILE is the path below the
folder; for a single file, FILE is its name. Hidden files, hidden folders and
node_modules are left out, and links to folders are not followed."""

# The exit code if files were skipped that should have been read.
SKIPPED = 4
# A file that is skipped if it cannot be read is in memory until then, or, if it has more bytes than
# this, is read twice.
_MOST_HELD = 16 << 20

# Cells may hold whole articles, beyond the csv module's limit. The process is ours.
csv.field_size_limit(2**31 - 1)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _limit_size(context: click.Context, parameter: click.Parameter, value: str) -> None:
    with usage_errors():
        before = size_limit(check_size("--max-size", value))  # the process is ours
    context.call_on_close(lambda: size_limit(before))


def reading_options(function: _Function) -> _Function:
    """Add the options for reading files."""
    for decorate in (
        click.option(
            "--on-error",
            type=click.Choice(["skip", "stop"]),
            default="skip",
            show_default=True,
            help="skip: files that cannot be read are reported, and the exit code is 4. stop:"
            " nothing is written, as always if SOURCE is one file.",
        ),
        click.option(
            "--max-size",
            metavar="SIZE",
            default="64MiB",
            show_default=True,
            callback=_limit_size,
            expose_value=False,
            help="The largest line, table row, or file that is read whole, unpacked; larger ones"
            " cannot be read.",
        ),
        click.option(
            "--passage-size",
            type=click.IntRange(min=1),
            default=PASSAGE_SIZE,
            show_default=True,
            metavar="CHARACTERS",
            help="Maximum length of a passage.",
        ),
        click.option(
            "--vector-field",
            metavar="NAME",
            help="""Field or column with a sparse vector, as {"dog": 1.5} or {"indices": [7],"""
            """ "values": [1.5]}; null for none.""",
        ),
        click.option(
            "--metadata-field",
            "metadata_fields",
            multiple=True,
            metavar="NAME",
            help="Field or column to keep as metadata; repeatable.  [default: all others]",
        ),
        click.option(
            "--text-field",
            "text_fields",
            multiple=True,
            metavar="NAME",
            default=TEXT_FIELDS,
            show_default=True,
            help="Field or column with text; repeatable, joined by a space.",
        ),
        click.option(
            "--id-field",
            metavar="NAME",
            help="Field or column with the id.  [default: _id, id, or else FILE#LINE]",
        ),
        click.option(
            "--format",
            "format_",
            type=click.Choice(["auto", "beir", *FORMATS]),
            default="auto",
            show_default=True,
            help="What SOURCE is; lines: one document per line of text.",
        ),
    ):
        function = decorate(function)
    return function


def source_options(function: _Function) -> _Function:
    """Add SOURCE... and the options for reading it."""
    duplicates = click.option(
        "--on-duplicate",
        type=click.Choice(["error", "skip", "replace"]),
        default="error",
        show_default=True,
        help="What to do if an id occurs again.",
    )
    sources = click.argument(
        "sources",
        metavar="SOURCE...",
        nargs=-1,
        required=True,
        type=click.Path(path_type=Path, allow_dash=True),
    )
    return sources(reading_options(duplicates(function)))


class _File(NamedTuple):
    """A file to be read; ``name`` is its name in ids, the path in its folder if it has one."""

    path: Path
    name: str
    kind: str
    in_folder: bool


class Sources:
    """The documents of all sources, and a record of what was left out.

    Parameters
    ----------
    sources
        The arguments of the command line.
    options
        The values of ``reading_options``.
    index_path
        A folder to leave out: the index itself.
    progress
        Whether a terminal is shown how much has been read.

    Attributes
    ----------
    skipped
        Files that could not be read: the error by name.

    Raises
    ------
    FileNotFoundError
        If a source does not exist, or no file matches a pattern.
    """

    def __init__(
        self,
        sources: Sequence[Path],
        options: Mapping[str, Any],
        index_path: Path,
        progress: bool = True,
    ) -> None:
        sources = [found for source in sources for found in find_matches(source)]
        self._sources, self._options, self._index_path = sources, options, index_path
        alone = len(sources) == 1 and self._kind(sources[0]) != "folder"
        self._stops = alone or options["on_error"] == "stop"
        self._progress = progress and shows_progress()
        self._bar: ReadingBar | None = None
        self._left_out: dict[str, list[str]] = {}
        self.skipped: dict[str, str] = {}

    def __iter__(self) -> Iterator[Document]:
        """Read the documents.

        Raises
        ------
        ValueError
            If a file cannot be read and that stops the command, or if none could be read.
        """
        if not self._progress:
            yield from self._all_documents()
            return
        with closing(ReadingBar(self._total_bytes())) as self._bar:
            for document in self._all_documents():
                self._bar.add_document()
                yield document

    def _all_documents(self) -> Iterator[Document]:
        read = False
        for source in self._sources:
            for file in self._files(source):
                documents = self._documents(file)
                if documents is not None:
                    read = True
                    yield from documents
        if not read:
            names = ", ".join(_name_of(source) for source in self._sources)
            ends = " ".join(KINDS)
            tried = "could be read" if self.skipped else f"is of a kind that is read ({ends})"
            message = f"{names}: no file {tried}; nothing was written"
            raise ValueError(message)

    def report(self, before: Sources | None = None) -> None:
        """Report what was left out and skipped, with the reasons, but not what ``before`` has."""
        for reason, left_out in self._left_out.items():
            known = set() if before is None else set(before._left_out.get(reason, ()))
            names = [name for name in left_out if name not in known]
            if names:
                write_message(f"Left out {counted(len(names), 'path')} ({reason}): {listed(names)}")
        by_complaint: dict[str, list[str]] = {}
        for name, complaint in self.skipped.items():
            if before is None or before.skipped.get(name) != complaint:
                by_complaint.setdefault(complaint, []).append(name)
        for complaint, names in by_complaint.items():
            if len(names) > 1:
                complaint = f"{counted(len(names), 'file')} ({listed(names)}): {complaint}"
            elif names[0] not in complaint:
                complaint = f"{names[0]}: {complaint}"
            write_message(f"Skipped {one_line(complaint)}")

    # --- files ------------------------------------------------------------------

    def _kind(self, source: Path) -> str:
        """Return how a source is read; "folder" if each of its files is."""
        format_: str = self._options["format_"]
        if format_ == "auto":
            format_ = _guess(source)
        return "folder" if format_ != "beir" and source.is_dir() else format_

    def _files(self, source: Path) -> Iterator[_File]:
        kind = self._kind(source)
        if kind == "folder":
            yield from self._files_of_folder(source)
        elif kind == "beir":
            corpus = find_beir_corpus(source)
            if corpus is None:
                message = f"{source}: not a BEIR folder, there is no corpus.jsonl in it"
                raise ValueError(message)
            for found in find_files(source, self._index_path):
                if found.path != corpus:
                    reason = "beside the corpus.jsonl of a BEIR folder"
                    self._leave_out(found.problem or reason, found.name)
            yield _File(corpus, corpus.name, kind, False)
        else:
            yield _File(source, _name_of(source), kind, False)

    def _files_of_folder(self, folder: Path) -> Iterator[_File]:
        for found in find_files(folder, self._index_path):
            kind = _kind_in_folder(found.path, self._options["format_"])
            if found.problem is not None and found.expected:
                self._skip(found.name, f"{found.path}: {found.problem}", None)
            elif found.problem is not None:
                self._leave_out(found.problem, found.name)
            elif kind is None:
                self._leave_out("not of a kind that is read", found.name)
            else:
                yield _File(found.path, found.name, kind, True)

    def _leave_out(self, reason: str, name: str) -> None:
        self._left_out.setdefault(reason, []).append(name)

    def _skip(self, name: str, complaint: str, error: Exception | None) -> None:
        if self._options["on_error"] == "stop":
            raise ValueError(complaint) from error
        self.skipped[name] = complaint

    def _total_bytes(self) -> int | None:
        """Return how many bytes will be read; None if that is not known."""
        files = [file for source in self._sources for file in self._files(source)]
        # Walking the folders again will say what is left out.
        self._left_out.clear()
        self.skipped.clear()
        if not all(file.path.is_file() for file in files):
            return None
        twice = () if self._stops else filter(self._is_large, files)
        return sum(file.path.stat().st_size for file in chain(files, twice))

    # --- documents --------------------------------------------------------------

    def _documents(self, file: _File) -> Iterator[Document] | None:
        """Return the documents of a file; None if it is skipped, always as a whole."""
        if self._stops and not file.in_folder:
            return self._read(file)
        try:
            documents = self._checked(file)
            if self._stops:
                return chain(list(islice(documents, 1)), documents)
            if not self._is_large(file):
                return iter(list(documents))
            for _ in documents:
                pass
            return self._read(file)
        except (OSError, ValueError, MissingDependencyError) as error:
            if isinstance(error, OtherContentError) and file.in_folder:
                self._leave_out(str(error).partition(": ")[2], file.name)
            else:
                self._skip(file.name, describe(error), error)
        return None

    def _checked(self, file: _File) -> Iterator[Document]:
        """Read, and raise ``ValueError`` for what the index would refuse later, with all files."""
        seen: set[str] = set()
        unique = self._options.get("on_duplicate", "error") == "error" and not self._is_large(file)
        for document in self._read(file):
            try:
                plain_metadata(document.metadata, document.id)
            except MetadataError as error:
                message = f"{file.path}: {describe(error)}"
                raise ValueError(message) from error
            if unique and document.id in seen:
                message = (
                    f"{file.path}: the id {document.id!r} occurs twice; ids must differ "
                    "(--id-field names their field)"
                )
                raise ValueError(message)
            if unique:
                seen.add(document.id)
            yield document

    def _is_large(self, file: _File) -> bool:
        return file.path.is_file() and file.path.stat().st_size > _MOST_HELD

    def _read(self, file: _File) -> Iterator[Document]:
        if self._bar is None:
            return self._read_from(file.path, file)
        return self._bar.follow(file.path, lambda path: self._read_from(path, file))

    def _read_from(self, path: Path, file: _File) -> Iterator[Document]:
        options = self._options
        fields = fields_of(options)
        kind = "jsonl" if file.kind == "beir" else file.kind
        size = options["passage_size"]
        return read_file(path, kind, file.name, file.in_folder, fields, size)


def fields_of(options: Mapping[str, Any]) -> Fields:
    """Return which fields of a record make a document, by the values of ``reading_options``."""
    kept = options["metadata_fields"] or None
    return Fields(options["id_field"], options["text_fields"], kept, options["vector_field"])


def _name_of(source: Path) -> str:
    """Return the name in ids of a file given by itself: without its path."""
    return "<stdin>" if str(source) == "-" else source.name or str(source)


def _guess(source: Path) -> str:
    if str(source) == "-":
        return "jsonl"
    if source.is_dir():
        return "folder" if find_beir_corpus(source) is None else "beir"
    kind = kind_of(source) or "text"
    return "text" if kind == "passages" else kind


def _kind_in_folder(path: Path, format_: str) -> str | None:
    kind = kind_of(path)
    if format_ in ("text", "lines"):
        return format_ if kind == "passages" else None
    if format_ == "auto" or kind == format_ or (format_ == "passages" and kind == "html"):
        return kind
    return None
