"""CRC-32 is that of zlib, for whatever bytes, wherever they lie and whatever they follow."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from bm25rag.kernels import backend

pytestmark = pytest.mark.usefixtures("backend")

BYTES = np.random.default_rng(1).integers(0, 256, (1 << 20) + 99, np.uint8).tobytes()


def test_it_is_that_of_zlib_for_each_short_length_wherever_the_bytes_lie() -> None:
    crc32 = backend.current().crc32
    for start in range(16):
        for size in range(300):
            some = memoryview(BYTES)[start : start + size]
            assert crc32(some) == zlib.crc32(some)


@pytest.mark.parametrize("size", [1 << 10, 4095, 65_535, 1 << 16, 65_537, 1 << 20])
def test_it_is_that_of_zlib_for_many_bytes(size: int) -> None:
    crc32 = backend.current().crc32
    for some in (BYTES[:size], BYTES[99:][:size], bytes(size), b"\xff" * size):
        assert crc32(some) == zlib.crc32(some)


@pytest.mark.parametrize("before", [0, 1, 0xDEADBEEF, 0xFFFFFFFF])
def test_it_continues_that_of_earlier_bytes(before: int) -> None:
    crc32 = backend.current().crc32
    for size in (0, 1, 15, 63, 64, 65, 127, 128, 300, 70_000):
        assert crc32(BYTES[:size], before) == zlib.crc32(BYTES[:size], before)


def test_it_is_the_same_in_pieces() -> None:
    crc32, edges = backend.current().crc32, np.random.default_rng(2).integers(0, 1 << 18, 99)
    ends, running = sorted(edges.tolist()), 0
    for start, stop in zip([0, *ends], [*ends, len(BYTES)], strict=True):
        running = crc32(BYTES[start:stop], running)
    assert running == zlib.crc32(BYTES)
