"""A process that ends in the middle of something, as far as the disk is concerned."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest


class Killed(BaseException):
    """The process ends here."""


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Let nothing change on the disk from the n-th change on; return whether it came to that."""
    left = number

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def change(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return call(*args, **kwargs)

        return change

    with pytest.MonkeyPatch.context() as patch:
        for name in ("replace", "fsync", "link", "mkdir", "unlink", "rmdir"):
            patch.setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        except Killed:
            return True
    return False
