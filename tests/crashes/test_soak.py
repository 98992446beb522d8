"""The short form of `make soak`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support.environment import ROOT


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="folders are not flushed on Windows")
def test_writers_readers_and_kills_on_one_folder_lose_nothing() -> None:
    command = [sys.executable, "tools/soak.py", "--seconds", "15"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for what in ("commits", "kills", "checks", "documents in the end, exact"):
        assert what in done.stdout
