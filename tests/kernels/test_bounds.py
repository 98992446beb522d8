"""No kernel reaches beyond its arrays: all are compiled again with bounds checks."""

from __future__ import annotations

import os
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


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="interpreted kernels check bounds anyway")
@pytest.mark.skipif("compiled" not in backends.available(), reason="nothing was compiled")
@pytest.mark.parametrize(
    "tests",
    [
        ["analysis/test_scanner.py", _THREADS],
        [
            "kernels/test_selecting.py",
            "search/test_unknown_terms.py",
            "scoring/test_small_constants.py",
            _WINDOWS,
            _WEIGHTED,
            _WEIGHTS,
        ],
    ],
    ids=["building", "searching"],
)
def test_no_kernel_reaches_beyond_its_arrays(tests: list[str], tmp_path: Path) -> None:
    """Kernels compiled this way must not end up in the usual cache."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    options = ["-q", "-m", "not slow", "--hypothesis-profile=quick", "-p", "no:cacheprovider"]
    paths = [str(ROOT / "tests" / test) for test in tests]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *paths], env=os.environ | checked, check=True
    )
