"""The time of day: it says when a commit was made, and nothing relies on its being right."""

from __future__ import annotations

import time

# The end of the year 9999: where a clock is wrong, commits are possible all the same.
LAST_TIME = 253_402_300_799_999


def now() -> int:
    """Return the time: milliseconds since 1970 (UTC)."""
    return min(max(0, time.time_ns() // 1_000_000), LAST_TIME)


def iso_time(milliseconds: int) -> str:
    """Return a time as an ISO date."""
    from datetime import UTC, datetime, timedelta

    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (epoch + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
