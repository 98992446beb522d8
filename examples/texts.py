"""What ``*_rag.py`` are asked, and the text files of a folder, as ``bm25rag index`` reads them.

Dangling links, pipes and files that are no text are left out, which is said; encodings are guessed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bm25rag.readers import Selection, file_text, find_files

ENDINGS = {".md", ".rst", ".txt"}


class Arguments(NamedTuple):
    """The folder, the question, and where the index is."""

    folder: Path
    question: str
    place: Path


def read_arguments(framework: str) -> Arguments:
    """Read the command line; end with a line of usage if it is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="with .md, .rst and .txt files")
    parser.add_argument("question")
    parser.add_argument("index", nargs="?", help=f"FOLDER.{framework} by default")
    given = parser.parse_args()
    folder = Path(given.folder).resolve()
    if not folder.is_dir():
        parser.error(f"{given.folder} is no folder")
    return Arguments(folder, given.question, Path(given.index or f"{folder.name}.{framework}"))


def read_texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the text files of a folder, and their texts."""
    for found in find_files(folder, selection=Selection(gitignore=False)):
        if found.path.suffix not in ENDINGS and not found.expected:
            continue
        problem: object = found.problem
        if problem is None:
            try:
                yield found.path, file_text(found.path)
                continue
            except (OSError, ValueError) as error:
                problem = error
        print(f"{found.name} is left out: {problem}", file=sys.stderr)
