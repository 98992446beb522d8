"""The only way to the terminal: text from documents, names or errors cannot control it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import IO, Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from bm25rag.common.visible import BIDI, CONTROLS, UNSAFE, one_line, visible

_CONTROL, _BIDI_CONTROL = re.compile(f"[{CONTROLS}]"), re.compile(f"[{BIDI}]")

# In fewer columns, COLUMNS=0 among them, rich leaves whole columns of a table of hits out.
_NARROWEST = 32


def readable(text: str) -> str:
    """Return prose for reading: white space collapsed, controls as U+FFFD, bidi controls removed.

    Right-to-left marks are common in Arabic and Hebrew, and their escapes would be noise.
    """
    return _BIDI_CONTROL.sub("", _CONTROL.sub("\ufffd", re.sub(r"\s+", " ", text)))


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render, and escape whatever was not escaped before the layout."""
        for segment in super().render(renderable, options):
            # Segments marked as control move the cursor for rich itself.
            if segment.control or not UNSAFE.search(segment.text):
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave it to the command group, which knows the exit code."""
        raise BrokenPipeError


def result_console(stream: IO[str] | None = None) -> Console:
    """Return a console for results; texts are never read as markup."""
    console = _Console(file=stream or _stdout(), markup=False, emoji=False, highlight=False)
    console.width = max(console.width, _NARROWEST)
    return console


def write_result(text: str) -> None:
    """Write a result to standard output."""
    click.echo(visible(text), file=_stdout())


def _stdout() -> IO[Any]:
    # In UTF-8 whatever the locale: documents may be in any script.
    return click.open_file("-", "w", encoding="utf-8")


def write_message(text: str) -> None:
    """Write a message to standard error."""
    click.echo(visible(text), err=True)


def shows_progress() -> bool:
    """Tell whether messages go to a terminal, which can show a progress bar."""
    return Console(stderr=True).is_terminal


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: 1 document, 2 documents."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return the first three names: a, b, c and 2 more."""
    shown, more = ", ".join(map(one_line, names[:3])), len(names) - 3
    return f"{shown} and {more:,} more" if more > 0 else shown
