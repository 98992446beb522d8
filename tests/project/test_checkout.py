"""What a build leaves in the checkout that it is run in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.environment import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="there is no checkout"),
]

IMPORT = "import bm25rag.kernels.backend as backend; print(backend.current().name)"


def built(folder: Path, **settings: str) -> list[str]:
    """Build in a copy of the checkout, as installing does; return what was compiled there."""
    pytest.importorskip("Cython")
    pytest.importorskip("ziglang")
    for name in ("LICENSE", "NOTICE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, folder)
    unwanted = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "bm25rag", folder / "bm25rag", ignore=unwanted)
    command = [sys.executable, "setup.py", "--quiet", "bdist_wheel"]
    subprocess.run(command, cwd=folder, env=os.environ | settings, capture_output=True, check=True)
    assert list((folder / "dist").glob("*.whl"))
    kernels = folder / "bm25rag" / "kernels"
    return [path.name for path in kernels.iterdir() if path.suffix in {".so", ".pyd"}]


def test_python_in_the_folder_of_a_build_runs_compiled_and_says_nothing(tmp_path: Path) -> None:
    assert built(tmp_path)
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "BM25RAG_KERNELS")
    }
    command = [sys.executable, "-W", "error", "-c", IMPORT]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "compiled\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other Linuxes are compiled for on Linux")
def test_a_wheel_for_another_machine_leaves_nothing_foreign(tmp_path: Path) -> None:
    assert built(tmp_path, BM25RAG_TARGET="aarch64-linux-gnu.2.17") == []
