"""The SOURCE arguments of the command line, as a stream of documents."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from bm25rag import Document
from bm25rag.cli.findings import Findings
from bm25rag.cli.progress import ReadingBar
from bm25rag.cli.reading import fields_of, selection_of
from bm25rag.cli.terminal import shows_progress
from bm25rag.cli.wording import describe
from bm25rag.common.storable import plain_metadata
from bm25rag.errors import MetadataError, MissingDependencyError
from bm25rag.readers import (
    OtherContentError,
    Source,
    Tolerance,
    find_beir_corpus,
    find_sources,
    kind_alone,
    kind_among,
    read_file,
)
from bm25rag.readers.lines import name_of

_SOME = "(.md .txt .rst .html .pdf .docx .csv .jsonl .parquet, source code and more)"
# The exit code if files were skipped that should have been read.
SKIPPED = 4
# A file that is skipped if it cannot be read is in memory until then, or, if it has more bytes than
# this, is read twice.
_MOST_HELD = 16 << 20

# Cells may hold whole articles, beyond the csv module's limit. The process is ours.
csv.field_size_limit(2**31 - 1)


class _File(NamedTuple):
    """A file to be read; ``name`` is its name in ids."""

    path: Path
    name: str
    kind: str
    in_folder: bool
    alone: bool = False  # not one of a folder or pattern, whose other files are read if it is not


class Sources:
    """The documents of all sources, and a record of what was left out.

    The sources are what the command line names, by the values of ``reading_options``, without the
    folder of the index itself. ``progress`` says whether a terminal is shown how much has been
    read, ``fields`` are those of the index, as ``BM25Index.fields``.
    """

    fields: Mapping[str, float] | None = None

    def __init__(
        self,
        sources: Sequence[Path],
        options: Mapping[str, Any],
        index_path: Path,
        progress: bool = True,
    ) -> None:
        self._selection = selection_of(options)
        self._sources = find_sources(sources, self._selection)
        self._options, self._index_path = options, index_path
        alone = len(self._sources) == 1 and self._kind(self._sources[0]) != "folder"
        self._stops = alone or options["on_error"] == "stop"
        self._progress = progress and shows_progress()
        self._bar: ReadingBar | None = None
        self.findings: Findings = Findings()

    def __iter__(self) -> Iterator[Document]:
        """Read the documents."""
        if not self._progress:
            yield from self._all_documents()
            return
        with closing(ReadingBar(self._total_bytes())) as self._bar:
            for document in self._all_documents():
                self._bar.add_document()
                yield document

    def _all_documents(self) -> Iterator[Document]:
        for source in self._sources:
            for file in self._files(source):
                documents = self._documents(file)
                if documents is not None:
                    self.findings.read += 1
                    yield from documents
        if not self.findings.read:
            names = ", ".join(str(source.path.name or source.path) for source in self._sources)
            tried = (
                "could be read" if self.findings.skipped else f"is of a kind that is read {_SOME}"
            )
            raise ValueError(f"{names}: no file {tried}; nothing was written")

    # --- files ------------------------------------------------------------------

    def _kind(self, source: Source) -> str:
        """Return how a source is read; "folder" if each of its files is."""
        format_: str = self._options["format_"]
        if source.pattern is not None:
            return "folder"
        if format_ == "auto":
            format_ = _guess(source.path)
        return "folder" if format_ != "beir" and source.path.is_dir() else format_

    def _files(self, source: Source) -> Iterator[_File]:
        kind = self._kind(source)
        if kind == "folder":
            yield from self._files_of_folder(source)
        elif kind == "beir":
            corpus = find_beir_corpus(source.path)
            if corpus is None:
                message = f"{source.path}: not a BEIR folder, there is no corpus.jsonl in it"
                raise ValueError(message)
            for file in source.files(self._index_path, self._selection):
                if file.path != corpus:
                    reason = "beside the corpus.jsonl of a BEIR folder"
                    self.findings.leave_out(file.problem or reason, file.name)
            yield _File(corpus, corpus.name, kind, False, True)
        else:
            yield _File(source.path, source.prefix, kind, False, True)

    def _files_of_folder(self, source: Source) -> Iterator[_File]:
        for file in source.files(self._index_path, self._selection):
            kind = self._kind_in_folder(source, file.path)
            if file.problem is not None and file.expected:
                self._skip(file.name, f"{file.path}: {file.problem}", None)
            elif file.problem is not None:
                self.findings.leave_out(file.problem, file.name)
            elif kind is None:
                self.findings.leave_out("not of a kind that is read", file.name)
            else:
                yield _File(file.path, file.name, kind, source.pattern is None)

    def _kind_in_folder(self, source: Source, path: Path) -> str | None:
        format_: str = self._options["format_"]
        by_pattern = source.pattern is not None  # whoever names files wants them
        is_wanted = by_pattern or bool(self._selection.include)
        kind = kind_among(path, "auto" if format_ == "beir" else format_, is_wanted)
        return kind or ("passages" if by_pattern else None)

    def _skip(self, name: str, complaint: str, error: Exception | None) -> None:
        if self._options["on_error"] == "stop":
            raise ValueError(complaint) from error
        self.findings.skipped[name] = complaint

    def _total_bytes(self) -> int | None:
        """Return how many bytes will be read; None if that is not known."""
        files = [file for source in self._sources for file in self._files(source)]
        # Walking the folders again will say what is left out.
        self.findings = Findings()
        if not all(file.path.is_file() for file in files if file.alone):
            return None
        return sum(map(_size, files))

    # --- documents --------------------------------------------------------------

    def _documents(self, file: _File) -> Iterator[Document] | None:
        """Return the documents of a file; None if it is skipped."""
        if self._stops and file.alone:
            return self._read(file)
        try:
            if self._stops:
                documents = self._checked(file)
                return chain(list(islice(documents, 1)), documents)
            if _size(file) <= _MOST_HELD:
                return iter(list(self._checked(file)))
            for _ in self._checked(file, share=0.5):
                pass
            return self._again(file)
        except (OSError, ValueError, MissingDependencyError) as error:
            self.findings.forget(file.name)
            if isinstance(error, OtherContentError) and file.in_folder:
                self.findings.leave_out(str(error).partition(": ")[2], file.name)
            else:
                self._skip(file.name, describe(error), error)
        return None

    def _again(self, file: _File) -> Iterator[Document]:
        """Read a large file that could be read; what it was may have changed since."""
        try:
            yield from self._read(file, share=0.5, telling=False)
        except (OSError, ValueError) as error:
            self._skip(file.name, f"{describe(error)}; it has changed while it was read", error)

    def _checked(self, file: _File, share: float = 1.0) -> Iterator[Document]:
        """Read, and raise ``ValueError`` for what the index would refuse later, with all files."""
        seen: set[str] = set()
        unique = self._options.get("on_duplicate", "error") == "error" and share == 1.0
        for document in self._read(file, share):
            if unique and document.id in seen:
                raise ValueError(
                    f"{file.path}: the id {document.id!r} occurs twice; ids must differ "
                    "(--id-field names their field)"
                )
            if unique:
                seen.add(document.id)
            yield document

    def _read(self, file: _File, share: float = 1.0, telling: bool = True) -> Iterator[Document]:
        """Read the documents of a file that can be stored; ``share`` of the bar is this reading."""
        tolerance = Tolerance(
            self._options.get("encoding"),
            self.findings.listener(file.name) if telling else lambda note: None,
            lenient=self._options["on_error"] != "stop",
        )
        is_empty = True
        for document in self._followed(file, tolerance, share):
            try:
                plain_metadata(document.metadata, document.id)
            except MetadataError as error:
                complaint = f"{name_of(file.path)}: {describe(error)}"
                tolerance.refuse(file.path, ValueError(complaint))
                continue
            is_empty = False
            yield document
        if is_empty and file.name in self.findings.lines:
            complaint = self.findings.lines[file.name]
            self.findings.forget(file.name)
            raise ValueError(complaint)

    def _followed(self, file: _File, tolerance: Tolerance, share: float) -> Iterator[Document]:
        def read(path: Path) -> Iterator[Document]:
            kind = "jsonl" if file.kind == "beir" else file.kind
            fields = fields_of(self._options)._replace(weighted=self.fields)
            size = self._options["passage_size"]
            return read_file(path, kind, file.name, file.in_folder, fields, size, tolerance)

        return read(file.path) if self._bar is None else self._bar.follow(file.path, read, share)


def _size(file: _File) -> int:
    """Return the bytes of a file; 0 if it has gone, or is a pipe."""
    try:
        return file.path.stat().st_size if file.path.is_file() else 0
    except OSError:
        return 0


def _guess(source: Path) -> str:
    if str(source) == "-":
        return "jsonl"
    if source.is_dir():
        return "folder" if find_beir_corpus(source) is None else "beir"
    return kind_alone(source) or "text"
