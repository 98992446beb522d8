"""Where Python has no threads, no locks or maps of files, and no PyStemmer, as in a browser.

`make pyodide` compares the same with what Pyodide prints.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import whole_use

pytest.importorskip("snowballstemmer")


def printed(*arguments: str) -> Any:
    command = [sys.executable, "-P", str(Path(whole_use.__file__)), *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_bare_python_finds_the_same_with_the_same_bits_and_says_nothing() -> None:
    whole, bare = printed(), printed("bare")
    assert bare == whole
    assert bare["locked"]
    assert bare["types"] == ["int64", "float64"]
    assert all(bare.values())
