"""Expansion and correction affect a judged collection as docs/queries.md says."""

from __future__ import annotations

import random
import sys

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the checkout only")

from benchmarks import rewriting
from support.environment import collection


def test_expansion_improves_cranfield_and_correction_recovers_from_typos(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rewriting, "COLLECTIONS", collection("cranfield").parent)
    monkeypatch.setattr(sys, "argv", ["rewriting", "cranfield"])
    rewriting.main()
    cells = capsys.readouterr().out.splitlines()[-1].split("|")[2:-1]
    asked, expanded, corrected, wrong, mended = map(float, cells)
    assert expanded > asked + 0.5
    assert corrected > asked - 0.5
    assert wrong < asked - 2
    assert mended > wrong + 2


def test_a_misspelt_question_is_one_edit_away() -> None:
    draw = random.Random(1)
    found = {rewriting.misspell("is abc", draw) for _ in range(2000)}
    assert {"is bac", "is acb", "is ab", "is xabc", "is abxc", "is abx", "is abc"} <= found
    assert all(one.startswith("is ") and 2 <= len(one) - 3 <= 4 for one in found)
    assert rewriting.misspell("?", draw) == "?"
