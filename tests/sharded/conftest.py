"""Fixtures of the tests of sharded indexes."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _without_flushes(without_flushes: None) -> None:
    """None of these tests waits for the disk."""
