"""What the examples take in place of models."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest


def test_the_words_that_make_a_question_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    right = "The crash of a writer leaves some files behind."
    prompt = (
        f"Answer.\n\nWhat filters find does not.\n\n{right}\n\nQuestion: What does a crash leave?"
    )
    assert import_module("offline").answer(prompt) == f'"{right}"'
