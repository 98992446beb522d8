"""Tells when something in a folder has changed, for ``sync --watch``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from os.path import samestat
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Self

from bm25rag.common.optional import load

# In milliseconds: how long a burst of changes must pause, or has lasted, until it is told of;
# how often there is a sign of life without changes; how often --poll looks at every file.
_PAUSE, _LONGEST, _TICK, _POLL = 100, 1600, 200, 1000


class SameFolder:
    """A folder that must stay the one it is: a disk may go, and leave an empty folder there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._status = path.stat()

    def check(self) -> None:
        """Raise ``OSError`` if the folder has gone, or another one is in its place."""
        try:
            same = samestat(self._status, self.path.stat())
        except OSError:
            same = False
        if not same:
            raise OSError(
                f"{self.path}: the folder has gone, or another has taken its place; "
                "the index stays as it was"
            )


class _Interrupts:
    """Notes that Ctrl-C was pressed: within a callback, as of what is cleaned up, Python drops it.

    ``watchfiles`` takes this for the event that ends a watch.
    """

    def __init__(self) -> None:
        self._before, self._hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
        self._pressed = False

    def is_set(self) -> bool:
        """Whether it was pressed."""
        return self._pressed

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
        if callable(self._before):
            self._before(number, frame)

    def _drop(self, dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            self._hook(dropped)

    def __enter__(self) -> Self:
        if current_thread() is main_thread():  # no other gets signals
            signal.signal(signal.SIGINT, self._note)
            sys.unraisablehook = self._drop
        return self

    def __exit__(self, *_: object) -> None:
        if current_thread() is main_thread() and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            sys.unraisablehook = self._hook


def watch_folder(
    folder: Path, index_path: Path, poll: bool, hidden: bool = False
) -> Iterator[bool]:
    """Watch a folder for ever; nothing is missed between two steps of the iteration."""
    watch = load("watchfiles", "bm25rag sync --watch needs watchfiles", "watch").watch
    root, index = folder.resolve(), index_path.resolve()
    with _Interrupts() as interrupts:
        try:
            for changes in watch(
                root,
                stop_event=interrupts,
                watch_filter=None,  # it would also keep the signs of life back
                debounce=_LONGEST,
                step=_PAUSE,
                rust_timeout=_TICK,
                yield_on_timeout=True,
                force_polling=poll or None,  # or as WATCHFILES_FORCE_POLLING says
                poll_delay_ms=_POLL,
                ignore_permission_denied=True,  # what cannot be read is reported by sync
            ):
                yield any(_counts(Path(path), root, index, hidden) for _, path in changes)
        except (OSError, RuntimeError) as error:
            raise OSError(
                f"{folder}: cannot be watched: {error}; --poll needs no help of the system "
                "(Linux limits it by fs.inotify.max_user_watches and max_user_instances)"
            ) from error
        if interrupts.is_set():
            raise KeyboardInterrupt


def _counts(path: Path, root: Path, index: Path, hidden: bool) -> bool:
    """Tell whether a change may matter: not that of the index or of anything hidden."""
    if path.is_relative_to(index) or not path.is_relative_to(root):
        return False
    parts = path.relative_to(root).parts
    if hidden or path.name == ".gitignore":
        return ".git" not in parts
    return not any(part.startswith(".") for part in parts)
