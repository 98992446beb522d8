"""Expansion and correction affect a judged collection as docs/queries.md says."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the checkout only")

from benchmarks import rewriting
from support.environment import collection


def cells(line: str) -> list[float]:
    return list(map(float, line.split("|")[2:-1]))


@pytest.mark.slow
def test_expansion_improves_cranfield_and_correction_recovers_from_typos(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rewriting.main(["cranfield"], collection("cranfield").parent)
    lines = capsys.readouterr().out.splitlines()
    asked, found, expanded, found_expanded, anserini, _ = cells(lines[1])
    assert expanded > asked + 0.5
    assert expanded > anserini
    assert found_expanded > found + 1
    asked, wrong, corrected, mended = cells(lines[3])
    assert corrected > asked - 0.5
    assert wrong < asked - 2
    assert mended > wrong + 2


@pytest.mark.slow
def test_expansion_as_it_is_by_default_does_not_harm_scifact() -> None:
    index, questions, grades = rewriting.load("scifact")
    asked, found, expanded, found_expanded, anserini, _ = rewriting.expansion(
        index, questions, grades
    )
    assert expanded > asked - 0.2 > anserini + 2
    assert found_expanded > found


def test_a_misspelt_question_is_one_edit_away() -> None:
    draw = random.Random(1)
    found = {rewriting.misspell("is abc", draw) for _ in range(2000)}
    assert {"is bac", "is acb", "is ab", "is xabc", "is abxc", "is abx", "is abc"} <= found
    assert all(one.startswith("is ") and 2 <= len(one) - 3 <= 4 for one in found)
    assert rewriting.misspell("?", draw) == "?"
