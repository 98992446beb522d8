"""Finds the files in a folder: which can be read, and which are left out."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from bm25rag.readers.lines import suffix_of

__all__ = ["KINDS", "Found", "find_files", "find_matches", "kind_of"]

# How a file is read, by the suffix of its name; .gz or .zst may follow.
KINDS = {
    ".md": "passages",
    ".markdown": "passages",
    ".rst": "passages",
    ".txt": "passages",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
}
_GENERATED = ("node_modules", "__pycache__")


class Found(NamedTuple):
    """A file or folder, its path within the folder that was walked, and what is wrong with it.

    ``problem`` is None for a file that can be read. ``expected`` is True for what should have
    been read and could not be, and False for what is left out on purpose.
    """

    path: Path
    name: str
    problem: str | None = None
    expected: bool = False


def kind_of(path: Path) -> str | None:
    """Return how a file is read, by its name; None if the name does not tell."""
    return KINDS.get(suffix_of(path))


def find_matches(source: Path) -> list[Path]:
    """Return a file or folder or, if it is a pattern, all that match, sorted by name.

    Parameters
    ----------
    source
        A path; the pattern is one of ``glob``, where ``**`` stands for any folders. A name that
        exists is no pattern. ``-`` is left as it is.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    if str(source) == "-" or source.exists():
        return [source]
    found = sorted(glob.glob(str(source), recursive=True))  # noqa: PTH207 (may be absolute)
    if not found:
        is_pattern = glob.has_magic(str(source))
        problem = "no file matches" if is_pattern else os.strerror(errno.ENOENT)
        raise FileNotFoundError(errno.ENOENT, problem, str(source))
    return list(map(Path, found))


def find_files(folder: Path, without: Path | None = None) -> Iterator[Found]:
    """Walk a folder: first its files, then its folders, each sorted by name.

    Parameters
    ----------
    folder
        The folder. Links to folders are not followed.
    without
        A folder inside it to leave out: the index itself.

    Yields
    ------
    Found
        Every file, and what is left out: hidden entries, ``node_modules``, what is neither a
        file nor a folder, and what the system does not allow to read.

    Raises
    ------
    OSError
        If the system does not allow to read the folder itself.
    """
    refused: list[OSError] = []
    for where, folders, files in os.walk(folder, onerror=refused.append):
        yield from _refused(refused, folder)
        for name in sorted(files):
            yield _look_at(Path(where, name), folder)
        kept = []
        for name in sorted(folders):
            found = _look_into(Path(where, name), folder, without)
            if found.problem is None:
                kept.append(name)
            else:
                yield found
        folders[:] = kept
    yield from _refused(refused, folder)


def _refused(errors: list[OSError], folder: Path) -> Iterator[Found]:
    for error in errors:
        path = Path(error.filename)
        if path == folder:
            raise error
        yield Found(path, _name(path, folder), error.strerror, expected=True)
    errors.clear()


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _look_at(path: Path, folder: Path) -> Found:
    name = _name(path, folder)
    if path.name.startswith("."):
        return Found(path, name, "hidden")
    try:
        regular = S_ISREG(path.stat().st_mode)
    except OSError as error:
        return Found(path, name, error.strerror, expected=kind_of(path) is not None)
    # Reading a pipe could block forever.
    return Found(path, name, None if regular else "not a regular file")


def _look_into(path: Path, folder: Path, without: Path | None) -> Found:
    if path.name.startswith("."):
        problem: str | None = "hidden"
    elif path.name in _GENERATED:
        problem = path.name
    elif path.is_symlink():
        problem = "a link to a folder"
    elif without is not None and path.resolve() == without.resolve():
        problem = "the index itself"
    else:
        problem = None
    return Found(path, _name(path, folder), problem)
