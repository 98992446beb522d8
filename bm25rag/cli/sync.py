"""``sync``: makes an index match a folder."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

import click

from bm25rag import BM25Index, Document
from bm25rag.cli.indexing import exit_if_skipped, reporting
from bm25rag.cli.options import PATH, examples, index_argument
from bm25rag.cli.sources import Sources, reading_options
from bm25rag.cli.terminal import counted, one_line, shows_progress, write_message
from bm25rag.index import Mode

__all__ = ["sync_command"]

# Documents compared with the index at once.
_BATCH = 1000


class _Changes:
    """The differences between a folder and an index, and their counts."""

    def __init__(self, index: BM25Index, documents: Sources) -> None:
        self._index, self._documents = index, documents
        self._seen: set[str] = set()
        self.added, self.replaced, self.unchanged = 0, 0, 0

    def _new(self) -> Iterator[Document]:
        """Yield the documents that are not in the index, or differ there.

        Raises
        ------
        ValueError
            If an id occurs twice.
        """
        documents = iter(self._documents)
        while batch := list(islice(documents, _BATCH)):
            present = {old.id: old for old in self._index.get([new.id for new in batch])}
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

    def write(self) -> int:
        """Write the changes; return how many documents were deleted.

        Without changes, nothing is committed, so readers have nothing to refresh.
        """
        index = self._index
        index.add_documents(self._new(), on_duplicate="replace", progress=shows_progress())
        deleted = index.delete(self._gone())
        if not (self.added or self.replaced or deleted):
            index.close()
        return deleted

    def _gone(self) -> list[str]:
        """Return the ids in the index that are no longer in the folder; call it last.

        Documents that could not be read may still exist, and stay as they are.
        """
        gone = [id for id in self._index.ids() if id not in self._seen]
        if not self._documents.skipped:
            return gone
        return [old.id for old in self._index.get(gone) if not self._may_be_there(old)]

    def _may_be_there(self, old: Document) -> bool:
        """Tell whether a document comes from a skipped file, or from below a skipped folder."""
        skipped, source = self._documents.skipped, old.metadata.get("source")
        if isinstance(source, str) and f"{old.id}#".startswith(f"{source}#"):
            parents = PurePosixPath(source).parents
            return source in skipped or any(str(parent) in skipped for parent in parents)
        # A record may have its own source field; its id still begins with the file.
        return old.id.startswith(tuple(f"{name}{end}" for name in skipped for end in "#/"))


def _same(old: Document, new: Document) -> bool:
    # As JSON: in Python, 1, 1.0 and True are equal.
    return old.text == new.text and _canonical(old.metadata) == _canonical(new.metadata)


def _canonical(metadata: dict[str, Any]) -> str:
    return json.dumps(metadata, sort_keys=True, default=repr)


@click.command(
    "sync",
    epilog=examples(
        "bm25rag sync docs/ docs.bm25",
        "bm25rag sync docs/ docs.bm25 --dry-run",
    ),
)
@click.argument("folder", type=PATH)
@index_argument
@reading_options
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
def sync_command(
    folder: Path, index_path: Path | str, untrusted: bool, dry_run: bool, **options: Any
) -> None:
    """Add, replace and delete documents until INDEX matches FOLDER.

    INDEX was made by 'bm25rag index'; give the same options for reading files.
    Unchanged documents are left alone, and documents that are not from FOLDER are
    deleted. All changes become visible at once, at the end.

    Documents of a file that exists but cannot be read stay as they are. If no file
    can be read at all, nothing changes.
    """
    start = perf_counter()
    if not folder.is_dir():
        code = errno.ENOTDIR if folder.exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), str(folder))
    documents = Sources((folder,), options, Path(index_path))
    mode: Mode = "r" if dry_run else "w"
    with (
        reporting(documents),
        BM25Index.open(index_path, mode=mode, untrusted=untrusted) as index,
    ):
        changes = _Changes(index, documents)
        deleted = changes.count() if dry_run else changes.write()
    write_message(
        f"{'Would change' if dry_run else 'Synced'} {one_line(index_path)} "
        f"in {perf_counter() - start:.1f} s: {changes.added:,} added, "
        f"{changes.replaced:,} replaced, {changes.unchanged:,} unchanged, {deleted:,} deleted, "
        f"{counted(len(documents.skipped), 'file')} skipped"
    )
    exit_if_skipped(documents)
