"""What the checks of the wheel and of the adapters share: building, and running commands."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path = ROOT, code: int = 0) -> str:
    """Run a command, return its output; exit with all it said if its code is another."""
    # The checkout must not be importable by accident.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
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


def build(folder: Path, target: Path, *options: str) -> Path:
    """Build the distribution of a folder and return its wheel."""
    run(sys.executable, "-m", "build", *options, "--outdir", target, folder)
    (wheel,) = target.glob("*.whl")
    return wheel


def new_environment(folder: Path) -> Path:
    """Make a virtual environment and return its interpreter."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def pip(python: Path, *arguments: str | Path) -> None:
    """Run pip for an interpreter."""
    run(python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)
