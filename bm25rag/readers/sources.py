"""What is named to be read: files, folders and patterns, and how their files are called in ids."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bm25rag.common.urls import from_home
from bm25rag.readers.folders import EVERYTHING, Found, Selection, find_files


class Source(NamedTuple):
    """A file, a folder, or a pattern in a folder.

    ``prefix`` is what the names of files in the folder begin with; for a file it is its name.
    """

    path: Path
    prefix: str
    pattern: str | None = None

    def files(
        self, without: Path | None = None, selection: Selection = EVERYTHING
    ) -> Iterator[Found]:
        """Find the files of a folder or a pattern, see ``find_files``, with their names in ids."""
        wanted = selection._replace(pattern=self.pattern)
        if self.pattern is not None and "/." in self.pattern:
            wanted = wanted._replace(hidden=True)
        for file in find_files(self.path, without, wanted):
            if file.problem != "not included" or self.pattern is None:
                yield file._replace(name=self.prefix + file.name)


def find_sources(
    sources: Iterable[str | os.PathLike[str]], selection: Selection = EVERYTHING
) -> list[Source]:
    """Tell what is named, and where the names of all files begin: at their common root.

    That is the folder that holds all files, folders and fixed parts of patterns that are named:
    ``docs/`` alone and ``docs/**/*.md`` give ``guide.md``, ``docs/`` and ``src/`` together
    ``docs/guide.md``. It depends on neither the current folder nor the files. A name that exists is
    no pattern; ``-`` is standard input. A name or pattern without a file is a
    ``FileNotFoundError``.
    """
    named = [_split(Path(from_home(source)), selection) for source in sources]
    folders = {_folder_of(path) for path, _ in named if str(path) != "-"}
    try:
        root = os.path.commonpath(folders) if folders else ""
    except ValueError:  # on two drives
        root = ""
    return [_source(path, pattern, root) for path, pattern in named]


def _split(source: Path, selection: Selection) -> tuple[Path, str | None]:
    """Return a path or, of a pattern, the folder that it begins with and the rest."""
    if str(source) == "-" or os.path.lexists(source):
        return source, None
    if not glob.has_magic(str(source)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
    fixed = next(at for at, part in enumerate(source.parts) if glob.has_magic(part))
    pattern = "/" + "/".join(source.parts[fixed:])
    folder = Path(*source.parts[:fixed])
    files = Source(folder, "", pattern).files(None, selection) if folder.is_dir() else iter(())
    if not any(one.problem is None or one.expected for one in files):
        raise FileNotFoundError(errno.ENOENT, "no file matches", str(source))
    return folder, pattern


def _folder_of(path: Path) -> str:
    here = os.path.abspath(path)
    return here if path.is_dir() else os.path.dirname(here)


def _source(path: Path, pattern: str | None, root: str) -> Source:
    if str(path) == "-":
        return Source(path, "<stdin>")
    name = os.path.relpath(os.path.abspath(path), root) if root else os.path.abspath(path)
    name = "" if name == "." else Path(name).as_posix()
    return Source(path, f"{name}/" if name and path.is_dir() else name, pattern)
