"""Finds the files in a folder: which can be read, and which are left out."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from bm25rag.common.strings import is_unicode
from bm25rag.readers.ignoring import Ignored, compile_patterns
from bm25rag.readers.kinds import kind_of
from bm25rag.readers.lines import NOT_REGULAR

_GENERATED = ("node_modules", "__pycache__")
# What the system shows as folders: reading it could block for ever, and changes while it is read.
_OF_THE_SYSTEM = ("/proc", "/sys", "/dev")
_LEADS_OUT = "a link that leads out of the folder"
_MADE_UP = "a file system that the system makes up, without files to be searched"


class Selection(NamedTuple):
    """Which files of a folder are wanted.

    ``include`` and ``exclude`` are patterns as in a ``.gitignore`` file: ``"*.py"`` for any
    depth, ``"/docs/*.md"`` or ``"docs/**/*.md"`` from the folder on, ``"tests/"`` for all in a
    folder. With ``include``, other files are left out; ``exclude`` counts more.
    ``gitignore``: whether what ``.gitignore`` files name is left out. In a Git repository, those
    above the folder count too.
    ``hidden``: whether names that begin with a dot are read; ``.git`` never is.
    ``follow_links``: whether links may lead out of the folder, and links to folders are followed.
    ``pattern``: one more pattern that files must match.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    gitignore: bool = True
    hidden: bool = False
    follow_links: bool = False
    pattern: str | None = None


EVERYTHING = Selection()


class Found(NamedTuple):
    """A file or folder, its path within the folder that was walked, and what is wrong with it.

    ``problem`` is None for a file that can be read. ``expected`` is True for what should have
    been read and could not be, and False for what is left out on purpose.
    """

    path: Path
    name: str
    problem: str | None = None
    expected: bool = False

    @property
    def kind(self) -> str | None:
        """How the file is read, by its name: a key of ``FORMATS``; None if no reader is known."""
        return kind_of(self.path)


def find_files(
    folder: Path, without: Path | None = None, selection: Selection = EVERYTHING
) -> Iterator[Found]:
    """Walk a folder: first its files, then its folders, each sorted by name.

    What can be read has no ``problem``::

        for file in find_files(Path("docs")):
            if file.problem is None and file.kind == "passages":
                text = file_text(file.path)  # bm25rag.readers.file_text
            elif file.expected:
                print(f"{file.name}: {file.problem}")

    ``without`` is a folder inside it to leave out: the index itself. The walk yields every file,
    and what is left out: hidden entries, ``node_modules``, ``__pycache__``, virtual environments,
    what ``.gitignore`` files name, links that lead out of the folder or to a folder, what is
    neither a file nor a folder, file systems that the system makes up (``/proc``), and what cannot
    be read. An ``OSError`` says that the folder itself cannot be read, or is one that the system
    makes up.
    """
    yield from _Walk(folder, without, selection).found()


class _Walk:
    """One walk over a folder; see ``find_files``."""

    def __init__(self, folder: Path, without: Path | None, selection: Selection) -> None:
        self._folder, self._selection = folder, selection
        self._root = os.path.realpath(folder)
        self._without = None if without is None else os.path.realpath(without)
        patterns = (selection.include, [selection.pattern] if selection.pattern else [])
        self._includes = [compile_patterns(wanted) for wanted in patterns if wanted]
        self._exclude = compile_patterns(selection.exclude) if selection.exclude else None
        self._followed: set[tuple[int, int]] = set()
        made_up = [one for one in _OF_THE_SYSTEM if os.path.ismount(one)]
        self._made_up = {os.stat(one).st_dev for one in made_up}

    def found(self) -> Iterator[Found]:
        if self._folder.stat().st_dev in self._made_up:
            raise OSError(errno.EINVAL, _MADE_UP, str(self._folder))
        ignored = Ignored.above(self._folder) if self._selection.gitignore else Ignored()
        left = [(self._folder, "", ignored)]
        while left:
            where, below, ignored = left.pop()
            inner = []
            for entry, is_folder, inside in self._entries(where, below, ignored):
                if is_folder and entry.problem is None:
                    inner.append((entry.path, f"{entry.name}/", inside))
                else:
                    yield entry
            left += reversed(inner)

    def _entries(
        self, where: Path, below: str, ignored: Ignored
    ) -> Iterator[tuple[Found, bool, Ignored]]:
        """Yield the entries, files first, whether each is a folder, and what is ignored there."""
        try:
            with os.scandir(where) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError as error:
            if not below:
                raise
            yield Found(where, below.rstrip("/"), error.strerror, expected=True), False, ignored
            return
        names = {entry.name for entry in entries}
        if below and "pyvenv.cfg" in names:
            yield Found(where, below.rstrip("/"), "a virtual environment"), False, ignored
            return
        if self._selection.gitignore and ".gitignore" in names:
            ignored = ignored.entering(where, below)
        folders = []
        for entry in entries:
            item, is_folder = self._look_at(entry, below + entry.name, ignored)
            if is_folder:
                folders.append(item)
            else:
                yield item, False, ignored
        for folder in folders:
            yield folder, True, ignored

    def _look_at(self, entry: os.DirEntry[str], name: str, ignored: Ignored) -> tuple[Found, bool]:
        """Return what an entry is, and whether it is a folder."""
        path, is_folder = Path(entry.path), False
        try:
            is_folder = entry.is_dir()
            problem = self._unwanted(entry, name, is_folder, ignored)
            if problem is None:
                problem = self._of_link(entry, is_folder) if entry.is_symlink() else None
            if problem is None and is_folder:
                problem = self._of_folder(entry)
            elif problem is None and not S_ISREG(entry.stat().st_mode):
                problem = NOT_REGULAR  # reading a pipe could block for ever
        except OSError as error:
            expected = kind_of(path) is not None
            return Found(path, name, error.strerror, expected=expected), is_folder
        if problem is None and not is_unicode(name):
            expected = is_folder or kind_of(path) is not None
            return Found(path, name, "its name is not UTF-8: rename it", expected), is_folder
        return Found(path, name, problem), is_folder

    def _unwanted(
        self, entry: os.DirEntry[str], name: str, is_folder: bool, ignored: Ignored
    ) -> str | None:
        """Return why an entry is left out by its name."""
        if entry.name == ".git" or (entry.name[0] == "." and not self._selection.hidden):
            return "hidden"
        if is_folder and entry.name in _GENERATED:
            return entry.name
        as_path = f"{name}/" if is_folder else name
        if self._exclude is not None and self._exclude.match_file(as_path):
            return "excluded"
        if not is_folder and not all(wanted.match_file(name) for wanted in self._includes):
            return "not included"
        return "in .gitignore" if ignored.matches(name, is_folder) else None

    def _of_link(self, entry: os.DirEntry[str], is_folder: bool) -> str | None:
        """Return why a link is not followed."""
        target = os.path.realpath(entry.path)
        inside = target == self._root or target.startswith(os.path.join(self._root, ""))
        if not inside and not self._selection.follow_links:
            return _LEADS_OUT
        if not is_folder:
            return None
        if inside:
            return "a link to a folder"  # whose files are read where they are
        status = entry.stat()
        known = (status.st_dev, status.st_ino) in self._followed
        self._followed.add((status.st_dev, status.st_ino))
        return "a link to a folder that another link leads to" if known else None

    def _of_folder(self, entry: os.DirEntry[str]) -> str | None:
        without = self._without or ""
        # Names are cheap to compare.
        if os.path.basename(without) == entry.name and os.path.realpath(entry.path) == without:
            return "the index itself"
        return _MADE_UP if entry.stat().st_dev in self._made_up else None
