"""What make finds in a checkout."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.environment import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "Makefile").exists() or shutil.which("make") is None, reason="needs make"
)


def test_environments_of_a_checkout_that_was_moved_or_copied_are_made_anew(tmp_path: Path) -> None:
    here = tmp_path / "a checkout with ü"
    stamps = [here / ".venv" / ".installed", here / ".venv-demo" / ".installed"]
    for stamp, made_in in zip(stamps, [here, tmp_path], strict=True):
        stamp.parent.mkdir(parents=True)
        stamp.write_text(f"{made_in.resolve()}\n", "utf-8")
    shutil.copy(ROOT / "Makefile", here)
    said = subprocess.run(["make", "help"], cwd=here, capture_output=True, text=True, check=True)
    assert "made in another folder, and so removed: .venv-demo\n" in said.stdout
    assert [stamp.exists() for stamp in stamps] == [True, False]


def test_every_environment_says_where_it_was_made() -> None:
    rules = (ROOT / "Makefile").read_text("utf-8").split("\n\n")
    makers = [rule for rule in rules if "$(new_venv)" in rule or "$(new_uv)" in rule]
    assert len(makers) > 5
    assert all("@pwd -P > $@" in rule for rule in makers)
