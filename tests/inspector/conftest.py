"""An index to look at, and inspectors that run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # without the extra, each test module skips itself
    from support.inspected import Inspected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from support.inspected import small

    small().save(tmp_path / "small.bm25")
    return tmp_path / "small.bm25"


@pytest.fixture
def start() -> Iterator[Callable[..., Inspected]]:
    """Return what starts inspectors, which end with the test."""
    from support.inspected import inspecting

    with ExitStack() as stack:

        def started(folder: Path, **options: Any) -> Inspected:
            return stack.enter_context(inspecting(folder, **options))

        yield started


@pytest.fixture
def inspected(folder: Path, tmp_path: Path, start: Callable[..., Inspected]) -> Inspected:
    return start(folder, qrels=tmp_path / "judged.tsv")
