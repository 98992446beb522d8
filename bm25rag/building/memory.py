"""How much memory a build may take, and what for."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = "kmgt"

# What a build takes beyond its documents, and each thread for the texts that it reads.
_FIXED, _OF_THREAD = 48 << 20, 24 << 20
# Threads share so much memory each at least.
_PER_THREAD = 64 << 20
# The least that leaves parts of a useful size.
LEAST = 256 << 20


def check_memory(name: str, value: object) -> int:
    """Return how many bytes a build may take; see ``check_size``, and not too few."""
    size = check_size(name, value)
    if size < LEAST:
        raise ValueError(f"{name} must be {LEAST >> 20}MiB or more, got {value!r:.100}")
    return size


def check_size(name: str, value: object) -> int:
    """Return a number of bytes, given as such or as in ``"512MiB"``, ``"2GiB"`` or ``"1.5GB"``."""
    expected = f"{name} must be a size like '512MiB' or '2GB', or a number of bytes"
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError(f"{expected}, got {value!r:.100}")
    size = value if isinstance(value, int) else _parse(value)
    if size is None or size < 1:
        raise ValueError(f"{expected}, got {value!r:.100}")
    return size


def _parse(text: str) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, prefix, binary = match.groups()
    power = _POWERS.index(prefix.lower()) + 1 if prefix else 0
    return int(float(number) * (1024 if binary else 1000) ** power)


def most_threads(memory: int) -> int:
    """Return how many threads there is memory for."""
    return memory // _PER_THREAD


def part_room(memory: int, threads: int) -> int:
    """Return about how many bytes the documents of a part may take."""
    return memory - _FIXED - _OF_THREAD * threads


def merge_room(memory: int) -> int:
    """Return about how many bytes may be merged at a time, by all threads together."""
    return (memory - _FIXED) // 2
