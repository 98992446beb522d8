"""What the checks of the wheels share: building, environments, and running commands."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
# It is installed beside the interpreter that runs this.
UV = Path(sys.executable).with_name("uv")
# The modules that are compiled, with what they share, and what follows their names.
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
KERNELS = [
    path.stem
    for path in (ROOT / "bm25rag" / "kernels").glob("*.py")
    if "\nimport cython\n" in path.read_text("utf-8")
] + ["shared"]

# What has the build compile nothing.
PURE = {"BM25RAG_PURE": "1"}


def run(
    *command: str | Path,
    cwd: Path = ROOT,
    code: int = 0,
    settings: Mapping[str, str | None] | None = None,
) -> str:
    """Run a command, return its output; exit with all it said if its code is another.

    ``settings`` change its environment; ``None`` takes a variable out.
    """
    # The checkout must not be importable by accident.
    changed = {**os.environ, "PYTHONPATH": None, **(settings or {})}
    environment = {name: value for name, value in changed.items() if value is not None}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != code:
        said = " ".join(map(str, command))
        sys.exit(f"{done.stdout}\n{said}\nended with {done.returncode}, expected {code}")
    return done.stdout


def build(
    source: Path,
    target: Path,
    *options: str,
    isolated: bool = False,
    settings: Mapping[str, str | None] | None = None,
) -> Path:
    """Build the distributions of a folder or sdist, return the wheel; ``settings`` as for ``run``.

    Unless it is isolated, the build uses what this environment has.
    """
    how = () if isolated else ("--no-build-isolation",)
    command = (UV, "build", "-q", "--python", sys.executable, "--out-dir", target)
    run(*command, *how, *options, source, settings=settings)
    (wheel,) = target.glob("*.whl")
    return wheel


def new_environment(folder: Path) -> Path:
    """Make a virtual environment and return its interpreter."""
    run(UV, "venv", "-q", "--python", sys.executable, folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def install(python: Path, *what: str | Path) -> None:
    """Install wheels, or other words of ``uv pip install``, for an interpreter."""
    run(UV, "pip", "install", "-q", "--python", python, *what)
