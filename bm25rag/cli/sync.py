"""``sync``: makes an index match a folder."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

import click
import numpy as np

from bm25rag import BM25Index, Document
from bm25rag.cli.export import batch_size, read_stored
from bm25rag.cli.indexing import exit_if_skipped, reporting
from bm25rag.cli.options import PATH, examples, index_argument
from bm25rag.cli.reading import reading_options
from bm25rag.cli.sources import Sources
from bm25rag.cli.terminal import counted, write_message
from bm25rag.cli.watching import SameFolder, watch_folder
from bm25rag.cli.wording import describe
from bm25rag.common.sparse import Vector, read_vector
from bm25rag.common.storable import plain_metadata
from bm25rag.common.visible import one_line
from bm25rag.documents import all_fields
from bm25rag.errors import BM25Error, LockedError
from bm25rag.index import Mode


class _Changes:
    """The differences between a folder and an index, and their counts."""

    def __init__(self, index: BM25Index, documents: Sources) -> None:
        self._index, self._documents = index, documents
        self._has_vectors = bool(index.vectors)
        self._seen: set[str] = set()
        self.added, self.replaced, self.unchanged = 0, 0, 0

    def _new(self) -> Iterator[Document]:
        """Yield the documents that are not in the index, or differ there."""
        documents = iter(self._documents)
        while batch := list(islice(documents, batch_size(self._has_vectors))):
            ids = [new.id for new in batch]
            present = {old.id: old for old in read_stored(self._index, ids, self._has_vectors)}
            for document in batch:
                if document.id in self._seen:
                    message = f"the id {document.id!r} occurs twice in the folder; ids must differ"
                    raise ValueError(message)
                self._seen.add(document.id)
                old = present.get(document.id)
                if old is not None and _same(old, document):
                    self.unchanged += 1
                    continue
                self.added += old is None
                self.replaced += old is not None
                yield document

    def count(self) -> int:
        """Count the changes without writing them; return how many documents would be deleted."""
        for _ in self._new():
            pass
        return len(self._gone())

    def write(self, folder: SameFolder) -> int:
        """Write the changes; return how many documents were deleted.

        Without changes, nothing is committed, so readers have nothing to refresh.
        """
        index = self._index
        index.add_documents(self._new(), on_duplicate="replace")
        folder.check()
        deleted = len(index.delete(self._gone()))
        if not (self.added or self.replaced or deleted):
            index.close()
        return deleted

    def _gone(self) -> list[str]:
        """Return the ids in the index that are no longer in the folder; call it last.

        Documents that could not be read may still exist, and stay as they are.
        """
        gone = [id for id in self._index.ids() if id not in self._seen]
        if not (skipped := self._documents.findings.incomplete):
            return gone
        return [old.id for old in self._index.get(gone) if not _may_be_there(old, skipped)]


def _may_be_there(old: Document, skipped: Collection[str]) -> bool:
    """Tell whether a document comes from a skipped file, or from below a skipped folder."""
    source = old.metadata.get("source")
    if isinstance(source, str) and f"{old.id}#".startswith(f"{source}#"):
        parents = PurePosixPath(source).parents
        return source in skipped or any(str(parent) in skipped for parent in parents)
    # A record may have its own source field; its id still begins with the file.
    return any(old.id[: end.start()] in skipped for end in re.finditer("[#/]", old.id))


def _same(old: Document, new: Document) -> bool:
    # As JSON: in Python, 1, 1.0 and True are equal.
    return (
        old.text == new.text
        and _canonical(old.metadata) == _canonical(new.metadata)
        and _rounded(old.vector) == _rounded(new.vector)
        and all_fields(old) == all_fields(new)
    )


def _canonical(metadata: dict[str, Any]) -> str:
    # As stored: a decimal of a Parquet file is a string in the index.
    return json.dumps(plain_metadata(metadata, ""), sort_keys=True)


def _rounded(vector: Vector | None) -> dict[str, float]:
    """Return a vector as it is stored: float32, without weights of 0."""
    if not vector:
        return {}
    given = read_vector(vector, "vector")
    weights = np.array(list(given.values()), np.float32).tolist()
    return {term: weight for term, weight in zip(given, weights, strict=True) if weight}


class _Sync:
    """Makes an index match a folder, again and again if need be."""

    def __init__(
        self, folder: Path, index_path: Path | str, untrusted: bool, options: dict[str, Any]
    ) -> None:
        if not folder.is_dir():
            code = errno.ENOTDIR if folder.exists() else errno.ENOENT
            raise OSError(code, os.strerror(code), str(folder))
        self._folder, self._index_path = SameFolder(folder), index_path
        self._untrusted, self._options = untrusted, options
        self._last: Sources | None = None

    def run(self, dry_run: bool = False) -> Sources:
        """Synchronise, report it (after the first time what is new), and return what was read."""
        start, before = perf_counter(), self._last
        path, progress = Path(self._index_path), before is None
        documents = Sources((self._folder.path,), self._options, path, progress)
        mode: Mode = "r" if dry_run else "w"
        with (
            reporting(documents, self._index_path, before),
            BM25Index.open(self._index_path, mode=mode, untrusted=self._untrusted) as index,
        ):
            self._last, documents.fields = documents, index.fields
            changes = _Changes(index, documents)
            deleted = changes.count() if dry_run else changes.write(self._folder)
        if before is None or changes.added or changes.replaced or deleted:
            write_message(
                f"{'Would change' if dry_run else 'Synced'} {one_line(self._index_path)} "
                f"in {perf_counter() - start:.1f} s: {changes.added:,} added, "
                f"{changes.replaced:,} replaced, {changes.unchanged:,} unchanged, "
                f"{deleted:,} deleted, {counted(len(documents.findings.skipped), 'file')} skipped"
            )
        return documents

    def watch(self, poll: bool) -> None:
        """Synchronise, and again after every change, until Ctrl-C or an error that would stay."""
        hidden = bool(self._options.get("hidden"))
        signs = watch_folder(self._folder.path, Path(self._index_path), poll, hidden)
        next(signs)  # it is watched from here on, so that nothing is missed
        write_message(f"Watching {one_line(self._folder.path)}; Ctrl-C ends.")
        due, told = True, ""
        for changed in chain([True], signs):
            self._folder.check()
            if due or changed:
                due, complaint = self._try()
                if complaint not in ("", told):
                    write_message(f"Error: {one_line(complaint)}")
                told = complaint

    def _try(self) -> tuple[bool, str]:
        """Synchronise; return whether to try again soon, and what is wrong if that may pass."""
        try:
            self.run()
        except LockedError as error:
            return True, describe(error)
        except BM25Error:
            raise
        except ValueError as error:  # of the files: no change can be made until they are right
            return False, describe(error)
        return False, ""


@click.command(
    "sync",
    epilog=examples(
        "bm25rag sync docs/ docs.bm25",
        "bm25rag sync docs/ docs.bm25 --dry-run",
        "bm25rag sync docs/ docs.bm25 --watch",
    ),
)
@click.argument("folder", type=PATH)
@index_argument
@reading_options
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--watch", is_flag=True, help="Then follow every change of FOLDER, until Ctrl-C.")
@click.option(
    "--poll",
    is_flag=True,
    help="With --watch: look at all files every second, for network drives, whose changes the"
    " system does not tell of.",
)
def sync_command(
    folder: Path,
    index_path: Path | str,
    untrusted: bool,
    dry_run: bool,
    watch: bool,
    poll: bool,
    **options: Any,
) -> None:
    """Add, replace and delete documents until INDEX matches FOLDER.

    INDEX was made by 'bm25rag index'; give the same options for reading files.
    Unchanged documents are left alone, and documents that are not from FOLDER are
    deleted. All changes become visible at once, at the end.

    Documents of a file that exists but cannot be read stay as they are. If no file
    can be read at all, nothing changes.
    """
    if watch and dry_run:
        raise click.UsageError("give either --watch or --dry-run")
    if poll and not watch:
        raise click.UsageError("--poll needs --watch")
    sync = _Sync(folder, index_path, untrusted, options)
    if watch:
        sync.watch(poll)
    else:
        exit_if_skipped(sync.run(dry_run))
