"""Regular expressions that are compiled on their first use.

A process that opens an index and answers questions in ASCII needs none of the analysis's;
compiling all of them takes 5 ms.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern  # which needs no compiling

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern), name)
        setattr(self, name, value)
        return value


def late_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern that is compiled when one of its methods is first asked for."""
    return cast("re.Pattern[str]", _Pattern(pattern))
