"""Forks and interrupts while modules are imported."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest

import bm25rag
from bm25rag import BM25Index
from bm25rag.forks import LAZY_MODULES
from bm25rag.kernels import backend
from support.cases import first

PACKAGE = Path(bm25rag.__file__).parent
LIMIT = 60  # seconds after which a process counts as stuck
# Nobody forks in the middle of a command, and it says itself what it imports.
NOT_SERVED = {"cli", "inspector", "evaluation", "readers"}

# A module whose import takes half a second, which a thread begins, and a fork meanwhile.
FORK = """
import os, sys, threading, time, warnings

warnings.simplefilter("ignore")  # Python 3.12 and newer warn of any fork beside threads
slow, early, work = sys.argv[1:]
begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == slow:
            begun.set()
            time.sleep(0.5)

def run():
    exec(work, {})

exec(early, {})
sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=run)
thread.start()
assert begun.wait(60)
if child := os.fork():
    thread.join()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
run()
os._exit(0)
"""
# Terms, not texts: the first text of a process takes half a second.
INDEX = "from bm25rag import BM25Index; index = BM25Index.from_texts([['red', 'tea'], ['sea']])\n"
SAVE = """from tempfile import TemporaryDirectory
with TemporaryDirectory() as folder:
    index.save(folder + "/index")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.parametrize(
    ("slow", "early", "work"),
    first(
        2,
        [
            ("bm25rag.index", "", INDEX),
            ("bm25rag.kernels.compiled", "import bm25rag", f"{INDEX}index.search('tea')"),
            ("bm25rag.additions", "import bm25rag", INDEX),
            ("bm25rag.filters.parse", "import bm25rag", f"{INDEX}index.search('tea', filter={{}})"),
            ("bm25rag.search.correction", "import bm25rag", "from bm25rag import Correction"),
            ("filelock", "import bm25rag", f"{INDEX}{SAVE}"),
        ],
    ),
)
def test_a_child_forked_while_a_thread_imports_is_not_stuck(
    slow: str, early: str, work: str
) -> None:
    command = [sys.executable, "-c", FORK, slow, early, work]
    assert subprocess.run(command, timeout=LIMIT, check=False).returncode == 0


# Forks while a thread searches with several for the first time; says what goes wrong in either.
FIRST_BATCH = """
import os, random, threading, time, warnings

warnings.simplefilter("ignore")
from bm25rag import BM25Index

index = BM25Index.from_texts([["red", "tea"], ["sea"]] * 200)
index.search("tea")
begin = threading.Barrier(2)

def search():
    begin.wait()
    for _ in range(10):
        index.search_batch([["tea"]] * 400, threads=2)

thread = threading.Thread(target=search)
thread.start()
begin.wait()
time.sleep(random.random() * 0.004)
for _ in range(3):
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
thread.join()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_fork_disturbs_no_thread_that_searches_with_others_for_the_first_time() -> None:
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_BATCH], capture_output=True, text=True, timeout=LIMIT
        )
        assert (done.returncode, done.stderr) == (0, "")


def imported_late() -> set[str]:
    """Find what functions of the library import from it."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] in NOT_SERVED:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = (one for one in ast.walk(node) if isinstance(one, ast.ImportFrom))
                found |= {str(one.module) for one in inner}
    return {name for name in found if name.startswith("bm25rag")}


def test_before_a_fork_everything_is_imported_that_functions_import() -> None:
    assert imported_late() == set(LAZY_MODULES) - {"bm25rag"}


def test_opening_and_searching_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    BM25Index.from_texts(["red tea", "sea"]).save(tmp_path / "index")
    code = (
        "import sys, numpy; before = {*sys.modules}; from bm25rag import BM25Index; "
        "assert len(BM25Index.open(sys.argv[1]).search('tea')) == 1; "
        "print(*{*sys.modules} - before)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "index")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    needed = {"bm25rag", "bm25rag.kernels.compiled", "bm25rag.common.codec"}
    if backend.chosen() == "numpy":
        needed |= {"bm25rag.kernels.numpy_twin", "bm25rag.analysis.links"}
    large = {"concurrent.futures", "filelock", "hashlib", "numpy.typing", "shutil"}
    assert loaded & {*LAZY_MODULES, *large} <= needed
    # Of them 24 are of the kernels, or 25 with NumPy alone, which also joins words by patterns.
    most = 99 if backend.chosen() == "numpy" else 97
    assert sum(name.startswith("bm25rag.") for name in loaded) <= most


# Until it has told the test so, Ctrl-C ends the process; from then on it is raised wherever it is,
# and afterwards everything works.
INTERRUPTED = """
import signal, sys
work = sys.argv[1]
try:
    print("ready", flush=True)
    exec(work, {})
    for _ in range(10 ** 9):
        exec(work, {})
except KeyboardInterrupt:
    pass
except RuntimeError as error:  # which Python 3.11 makes of it while a class gets its fields
    if not isinstance(error.__cause__, KeyboardInterrupt):
        raise
signal.signal(signal.SIGINT, signal.SIG_IGN)
from bm25rag import BM25Index
index = BM25Index.from_texts([["red", "tea"], ["sea"], ["red", "sea"]])
assert [hit.id for hit in index.search("red", filter={"2"})] == ["2"]
assert index.search_batch(["sea"] * 100).ids() == [["1", "2"]] * 100
print("works")
"""


@pytest.mark.skipif(os.name == "nt", reason="a process cannot be interrupted alone on Windows")
@pytest.mark.parametrize("milliseconds", first(2, [0, 20, 10, 40, 150]))
@pytest.mark.parametrize(
    "work", [f"{INDEX}index.search('tea')", f"{INDEX}index.search_batch(['tea'] * 500, threads=2)"]
)
def test_after_ctrl_c_at_any_moment_the_process_works(milliseconds: int, work: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", f"import numpy\n{INTERRUPTED}", work],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with process:
        sleep(milliseconds / 1000)
        # Python forgets an interrupt within a callback, so it may need more; not so soon that a
        # second comes before the first has been dealt with.
        for _ in range(6):
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                out, said = process.communicate(timeout=LIMIT / 6)
                break
    assert out == "works\n", said
