"""The command line; click and rich are imported when it runs, not before."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bm25rag.errors import MissingDependencyError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``bm25rag`` with these arguments, or the process's own, and exit.

    0 is success; ``bm25rag --help`` lists the other codes.
    """
    _replace_closed_streams()
    try:
        _load_commands()(arguments, prog_name="bm25rag")
    except MissingDependencyError as error:
        print(f"bm25rag: {error}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        # Ctrl-C during imports.
        sys.exit(130)
    except Exception:
        # Python would write the message to the terminal unescaped.
        from bm25rag.cli.terminal import write_message

        write_message(traceback.format_exc())
        sys.exit(1)


def _replace_closed_streams() -> None:
    """Discard output where a shell's ``>&-`` or a service left no stream."""
    # By name: their types do not say that they can be None.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)


def _load_commands() -> Callable[..., Any]:
    try:
        from bm25rag.cli.app import commands
    except ModuleNotFoundError as cause:
        missing = (cause.name or "").partition(".")[0]
        if missing not in {"click", "rich"}:
            raise
        message = f"the command line needs {missing}: pip install 'bm25rag[cli]'"
        raise MissingDependencyError(message) from cause
    return commands
