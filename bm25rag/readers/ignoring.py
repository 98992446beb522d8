"""What the patterns of ``.gitignore`` files, ``--include`` and ``--exclude`` name.

pathspec has matched such patterns as Git does since 2013; it is typed, pure Python and under the
Mozilla Public License 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bm25rag.common.optional import load
from bm25rag.readers.lines import require_regular

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# A .gitignore that is longer is not one.
_LONGEST = 1 << 20


def compile_patterns(patterns: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches patterns of the syntax of ``.gitignore``; broken ones match nothing."""
    pathspec = load("pathspec", "patterns and .gitignore files need pathspec", "cli")
    compiled: list[Any] = []
    for pattern in patterns:
        with suppress(ValueError):
            read = pathspec.GitIgnoreSpec.from_lines([pattern.removeprefix("./")])
            compiled += read.patterns
    spec: GitIgnoreSpec = pathspec.GitIgnoreSpec(compiled)
    return spec


class _Rules(NamedTuple):
    """The patterns of one ``.gitignore``, and its folder: from the top on, ending in ``/``."""

    below: str
    spec: GitIgnoreSpec


class Ignored(NamedTuple):
    """The ``.gitignore`` files from the top down to a folder; of all matches the last decides.

    ``base`` is the folder that is walked, from the top on: that of its repository.
    """

    rules: tuple[_Rules, ...] = ()
    base: str = ""

    @classmethod
    def above(cls, folder: Path) -> Ignored:
        """Return what the folders above say, up to that of the repository, if there is one.

        Nothing, if they ignore the folder itself: whoever names it wants it.
        """
        folder = folder.resolve()
        top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
        ignored, inside = cls(), folder.relative_to(top).parts
        for depth, _ in enumerate(inside):
            ignored = ignored.entering(Path(top, *inside[:depth]), _join(inside[:depth]))
            if ignored.matches(_join(inside[: depth + 1])[:-1], is_folder=True):
                return cls()
        return Ignored(ignored.rules, _join(inside))

    def entering(self, folder: Path, below: str) -> Ignored:
        """Return the same with the ``.gitignore`` of a folder, if it has one."""
        path = folder / ".gitignore"
        try:
            require_regular(path)
            with path.open("rb") as file:
                lines = file.read(_LONGEST).decode("utf-8", "replace").splitlines()
        except OSError:
            return self
        rules = _Rules(self.base + below, compile_patterns(lines))
        return Ignored((*self.rules, rules), self.base)

    def matches(self, name: str, is_folder: bool) -> bool:
        """Tell whether a path in the folder is ignored."""
        path = f"{self.base}{name}/" if is_folder else self.base + name
        for below, spec in reversed(self.rules):
            included = spec.check_file(path[len(below) :]).include
            if included is not None:
                return included
        return False


def _join(parts: tuple[str, ...]) -> str:
    return "".join(f"{part}/" for part in parts)
