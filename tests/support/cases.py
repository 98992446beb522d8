"""Cases of a test that only ``make check`` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(number: int, cases: Iterable[Any]) -> list[Any]:
    """Mark all cases but the first few as ``further``: ``make test`` leaves those out."""
    few, more = [*cases][:number], [*cases][number:]
    values = (case if isinstance(case, tuple) else (case,) for case in more)
    return few + [pytest.param(*each, marks=pytest.mark.further) for each in values]
