"""What the checks of the wheel and of the adapters share: building, and running commands."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Where tools/wheels.py leaves a folder for the wheel of each adapter, and these of the core.
WHEELS = Path(sys.prefix) / "wheels"
CORE, EDITABLE = "core", "editable"


# The modules that are compiled, with what they share, and what follows their names.
SUFFIX = ".pyd" if os.name == "nt" else ".abi3.so"
KERNELS = [
    path.stem
    for path in (ROOT / "bm25rag" / "kernels").glob("*.py")
    if "\nimport cython\n" in path.read_text("utf-8")
] + ["shared"]


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
    folder: Path, target: Path, *options: str, settings: Mapping[str, str | None] | None = None
) -> Path:
    """Build the distribution of a folder and return its wheel; ``settings`` as for ``run``."""
    run(sys.executable, "-m", "build", *options, "--outdir", target, folder, settings=settings)
    (wheel,) = target.glob("*.whl")
    return wheel


def new_environment(folder: Path) -> Path:
    """Make a virtual environment and return its interpreter."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def pip(
    python: Path, *arguments: str | Path, settings: Mapping[str, str | None] | None = None
) -> None:
    """Run pip for an interpreter; ``settings`` as for ``run``."""
    quiet = ("--disable-pip-version-check", "--quiet")
    run(python, "-m", "pip", *quiet, *arguments, settings=settings)
