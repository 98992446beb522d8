"""The progress of reading: how much of the files, and how long the rest will take."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bm25rag import Document

# Bytes of a file that are read, and counted, at once.
_BUFFER = 1 << 17


class _CountedFile(io.FileIO):
    """A file that counts the bytes that are read of it, which are fewer than those unpacked."""

    count = 0

    def readinto(self, buffer: Any) -> int | None:
        read = super().readinto(buffer)
        self.count += read or 0
        return read


# Path itself has no subclasses before Python 3.12.
class _CountedPath(type(Path())):  # type: ignore[misc]
    """A path that knows how much of its file was read."""

    file: _CountedFile | None = None

    def open(self, *_: Any) -> io.BufferedReader:
        self.file = _CountedFile(self)
        return io.BufferedReader(self.file, _BUFFER)


class ReadingBar:
    """A progress bar on standard error."""

    def __init__(self, total: int | None) -> None:
        from tqdm import tqdm

        bytes_of_all: dict[str, Any] = {"total": total, "unit": "B", "unit_scale": True}
        unit = {"unit": " docs"} if total is None else bytes_of_all
        self._bar = tqdm(desc="indexing", **unit)
        self._counts_bytes = total is not None
        self._documents, self._read_before = 0, 0.0

    def follow(
        self, path: Path, read: Callable[[Path], Iterator[Document]], share: float = 1.0
    ) -> Iterator[Document]:
        """Read the documents of a file, and show how far that is.

        ``share`` is how much of the file's part of the bar this reading is: one half, if the file
        is read twice.
        """
        if not self._counts_bytes:
            yield from read(path)
            return
        counted, size, given = _CountedPath(path), path.stat().st_size, 0
        try:
            for document in read(counted):
                yield document
                given += len(document.text or "")
                if counted.file is not None:
                    # Of a file that is read whole, what was taken out of it counts.
                    whole = counted.file.count >= size
                    done = given if whole else counted.file.count
                    self._move_to(min(done, size) * share)
        finally:
            # Columns that nobody asked for are not read, nor is the rest of a damaged file.
            self._move_to(size * share)
            self._read_before += size * share

    def add_document(self) -> None:
        """Count a document."""
        self._documents += 1
        if not self._counts_bytes:
            self._bar.update()

    def close(self) -> None:
        """Show the last figures, and leave them there."""
        self._show_documents()
        self._bar.close()

    def _move_to(self, read: float) -> None:
        new = int(self._read_before + read) - int(self._bar.n)
        if new > 0:
            self._show_documents()
            self._bar.update(new)

    def _show_documents(self) -> None:
        if self._counts_bytes:
            self._bar.set_postfix_str(f"{self._documents:,} docs", refresh=False)
