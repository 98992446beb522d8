"""The short form of what `make soak` does to processes that are interrupted or lack memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.environment import INTERPRETED, ROOT

STARVED = """
import _testcapi
from bm25rag import BM25Index

index = BM25Index.from_texts([f"red tea {number}" for number in range(60)])
expected = index.scores("red").tolist()
for first in range(200):
    _testcapi.set_nomemory(first)
    try:
        scores = index.scores("red")
    except (MemoryError, SystemError):  # NumPy may raise the latter
        continue
    finally:
        _testcapi.remove_mem_hooks()
    assert scores.tolist() == expected
"""
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
WHY = "AddressSanitizer ends what lacks memory; in kernels/test_errors.py, allocations fail"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
@pytest.mark.skipif(INTERPRETED, reason="the jobs take minutes with interpreted kernels")
@pytest.mark.parametrize(
    "kind", ["interrupts", pytest.param("memory", marks=pytest.mark.skipif(SANITIZED, reason=WHY))]
)
def test_a_process_that_is_interrupted_or_lacks_memory_goes_on_as_if_nothing_had_been(
    kind: str,
) -> None:
    command = [sys.executable, "tools/hardship.py", kind, "--cases", "12"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Interrupt" in done.stdout or "MemoryError" in done.stdout


@pytest.mark.skipif(SANITIZED, reason=WHY)
def test_scores_without_memory_at_any_allocation_end_no_process() -> None:
    """NumPy writes an array at integers that it must convert to where there is no memory."""
    pytest.importorskip("_testcapi")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", STARVED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
