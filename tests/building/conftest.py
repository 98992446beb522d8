"""Fixtures of the tests of builds on disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def without_flushes() -> Iterator[None]:
    """Write hundreds of small indexes without waiting for the disk: nobody cuts the power here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield
