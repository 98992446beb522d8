"""The snippets of the page on clusters print what they say."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make distributed")

from project.test_docs import blocks, promised

from support.cluster import ON_A_CLUSTER
from support.environment import ROOT

pytestmark = ON_A_CLUSTER


def test_snippets_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    snippets = blocks(ROOT / "docs" / "distributed.md", "python")
    assert snippets
    for block in snippets:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block, "distributed.md", "exec"), namespace)
        assert output.getvalue().splitlines() == list(promised(block))
