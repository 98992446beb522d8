"""Other homes: several interpreters in one process, and a process that may write nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bm25rag import BM25Index

LIMIT = 60  # seconds after which a process counts as stuck

# NumPy says that it cannot be imported in a second interpreter, or not in one with a GIL of its
# own; older ones can.
INTERPRETERS = """
import sys, warnings

warnings.simplefilter("ignore")
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

SEARCH = '''
import warnings
warnings.simplefilter("ignore")
try:
    import numpy
except Exception:  # NumPy 1.24 raises SystemError
    print("without NumPy", flush=True)
else:
    from bm25rag import BM25Index
    index = BM25Index.from_texts([["red", "tea"], ["sea"]])
    assert [hit.id for hit in index.search(["sea"])] == ["1"]
    print("found", flush=True)
'''

def search_in_another():
    other = interpreters.create(*sys.argv[2:])
    assert interpreters.run_string(other, SEARCH) is None
    interpreters.destroy(other)

if sys.argv[1] == "first":
    search_in_another()
exec(SEARCH)
search_in_another()
exec(SEARCH)
"""


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("kind", [[], ["legacy"]])
def test_a_second_interpreter_works_or_says_why_not(when: str, kind: list[str]) -> None:
    if kind and sys.version_info < (3, 13):
        pytest.skip("this Python has one kind of interpreters")
    if not kind and sys.version_info < (3, 13):
        pytest.importorskip("_xxsubinterpreters")
    if when == "first" and np.__version__.startswith("1."):
        pytest.skip("NumPy 1.24 crashes, by itself, where a second interpreter imports it first")
    command = [sys.executable, "-c", INTERPRETERS, when, *kind]
    run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    assert len(said) == (4 if when == "first" else 3)
    if when == "later":
        assert said[0] == said[-1] == "found"
    assert set(said) <= {"found", "without NumPy"}


# An interpreter with the main one's GIL, which may have threads, and closes at once.
CLOSED = """
import sys, warnings

warnings.simplefilter("ignore")
try:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)

HELP = '''
import warnings
warnings.simplefilter("ignore")
try:
    import numpy
except Exception:  # NumPy 1.24 raises SystemError
    pass
else:
    from bm25rag.common.threads import Helpers
    with Helpers(8) as helpers:
        for wait in [helpers.submit(int) for _ in range(8)]:
            assert wait() == 0
'''

assert interpreters.run_string(other, HELP) is None
interpreters.destroy(other)
"""


def test_an_interpreter_can_be_closed_as_soon_as_helpers_have_done_their_work() -> None:
    if sys.version_info < (3, 13):
        pytest.importorskip("_xxsubinterpreters")
    for _ in range(3):
        command = [sys.executable, "-c", CLOSED]
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert (run.returncode, run.stderr) == (0, "")


NOWHERE = """
import os, sys

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.truncate", "tempfile.mkstemp"}

def refuse(event, arguments):
    if event in CHANGES or (event == "open" and arguments[2] & WRITES):
        raise AssertionError(f"{event} {arguments}")

sys.addaudithook(refuse)
from bm25rag import BM25Index

index = BM25Index.open(sys.argv[1], verify=True)
assert [hit.text for hit in index.search("tea", filter={"n": 1})] == ["red tea"]
assert index.search_batch(["sea"] * 100, threads=2).ids() == [["1"]] * 100
assert not index.refresh()
built = BM25Index.from_texts(["green tea", "sea"], threads=2)
assert [hit.id for hit in built.search("gren", correct=True)] == ["0"]
"""


def test_opening_building_and_searching_writes_no_file_and_needs_no_home(tmp_path: Path) -> None:
    metadata = [{"n": 1}, {}]
    BM25Index.from_texts(["red tea", "sea"], metadata=metadata).save(tmp_path / "index")
    homes = {"HOME", "USERPROFILE", "XDG_CACHE_HOME", "TMPDIR", "TEMP", "TMP"}
    environment = {name: value for name, value in os.environ.items() if name not in homes}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", NOWHERE, str(tmp_path / "index")]
    subprocess.run(command, env=environment, timeout=LIMIT, check=True)
