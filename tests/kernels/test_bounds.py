"""No kernel reaches beyond its arrays: all are compiled again with bounds checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bm25rag.kernels import backend as backends
from support.environment import INTERPRETED, ROOT

_THREADS = "index/test_building.py::test_an_index_is_the_same_on_any_number_of_threads"
_WINDOWS = "kernels/test_backend.py::test_backends_agree_on_many_windows"
_WEIGHTED = "kernels/test_backend.py::test_backends_agree_on_weights_of_every_kind"
_WEIGHTS = "search/test_weights.py"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,  # a minute and a half of a core
    pytest.mark.skipif(INTERPRETED, reason="interpreted kernels check bounds anyway"),
    pytest.mark.skipif("compiled" not in backends.available(), reason="nothing was compiled"),
]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a copy of the package in which every index is checked."""
    pytest.importorskip("Cython")
    pytest.importorskip("ziglang")
    folder = tmp_path_factory.mktemp("checked")
    for name in ("LICENSE", "NOTICE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, folder)
    unwanted = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "bm25rag", folder / "bm25rag", ignore=unwanted)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    environment = os.environ | {"BM25RAG_CHECK_BOUNDS": "1"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return folder


@pytest.mark.parametrize(
    "tests",
    [
        ["analysis/test_scanner.py", _THREADS],
        [
            "kernels/test_analyzing.py",
            "kernels/test_filtered.py",
            "kernels/test_lookup.py",
            "kernels/test_selecting.py",
            "kernels/test_strips.py",
            "storage/test_strip_rows.py",
            "search/test_new_terms.py",
            "search/test_unknown_terms.py",
            "scoring/test_small_constants.py",
            _WINDOWS,
            _WEIGHTED,
            _WEIGHTS,
        ],
    ],
    ids=["building", "searching"],
)
def test_no_kernel_reaches_beyond_its_arrays(tests: list[str], checked: Path) -> None:
    options = ["-q", "-m", "not slow", "--hypothesis-profile=quick", "-p", "no:cacheprovider"]
    options += ["-k", "not numpy"]  # the twin has no kernels
    paths = [str(ROOT / "tests" / test) for test in tests]
    subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *options, *paths],
        env=os.environ | {"PYTHONPATH": str(checked)},
        check=True,
    )


def test_an_index_that_is_out_of_bounds_is_noticed(checked: Path) -> None:
    """Else the test above would not fail if the kernels were compiled as usual."""
    code = (
        "import numpy as np, bm25rag\n"
        "from bm25rag.kernels import selecting\n"
        f"assert bm25rag.__file__.startswith({str(checked)!r})\n"
        "selecting.kth(np.zeros(3), 4, 1, np.zeros(4), np.zeros(300, np.int64))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": str(checked)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "IndexError: Out of bounds on buffer access" in done.stderr
