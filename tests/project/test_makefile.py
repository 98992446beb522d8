"""What make finds in a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.environment import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "Makefile").exists() or shutil.which("make") is None, reason="needs make"
)


def test_environments_of_a_checkout_that_was_moved_or_copied_are_made_anew_when_they_are_needed(
    tmp_path: Path,
) -> None:
    here = tmp_path / "a checkout with ü"
    stamps = [here / ".venv" / ".installed", here / ".venv-demo" / ".installed"]
    for stamp, made_in in zip(stamps, [here, tmp_path], strict=True):
        stamp.parent.mkdir(parents=True)
        stamp.write_text(f"{made_in.resolve()}\n", "utf-8")
    (here / "tools").mkdir()
    for name in ("pyproject.toml", "setup.py", "tools/build_backend.py"):
        (here / name).touch()
    shutil.copy(ROOT / "Makefile", here)

    # As of a make that no other one runs.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MF"))}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            ["make", *arguments], cwd=here, env=own, capture_output=True, text=True
        )
        return done.stdout

    run("help")
    assert "rm -rf .venv-demo\n" in run("-n", ".venv-demo/.installed")
    assert [stamp.exists() for stamp in stamps] == [True, True]
    # Nothing is installed here: this Python ends at once.
    said = run("PYTHON=false", ".venv-demo/.installed")
    assert said == ".venv-demo was made in another folder, and is made anew\n"
    assert [stamp.parent.exists() for stamp in stamps] == [True, False]


def test_every_environment_says_where_it_was_made() -> None:
    rules = (ROOT / "Makefile").read_text("utf-8").split("\n\n")
    makers = [rule for rule in rules if "$(new_venv)" in rule or "$(new_uv)" in rule]
    assert len(makers) > 5
    assert all("@pwd -P > $@" in rule for rule in makers)
