"""Indexes to look at, and inspectors that run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

for module in ("jinja2", "starlette", "uvicorn"):
    pytest.importorskip(module, reason="the extra inspect is not installed")

from support.inspected import Inspected, inspecting, small


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small().save(tmp_path / "small.bm25")
    return tmp_path / "small.bm25"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Inspected]]:
    """Return what starts inspectors, which end with the test."""
    with ExitStack() as stack:

        def started(folder: Path, **options: Any) -> Inspected:
            return stack.enter_context(inspecting(folder, **options))

        yield started


@pytest.fixture
def inspected(folder: Path, tmp_path: Path, start: Callable[..., Inspected]) -> Inspected:
    return start(folder, qrels=tmp_path / "judged.tsv")
