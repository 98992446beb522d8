"""An index saved by any released version opens and gives the same answers."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.storage.manifest import LOCK
from support.environment import DATA, ROOT

RELEASED = sorted(DATA.glob("index-*.json"))

pytestmark = pytest.mark.filterwarnings("ignore::bm25rag.errors.AnalyzerChangedWarning")


@pytest.fixture(scope="module")
def fixture() -> ModuleType:
    """Load the script that writes these folders."""
    spec = importlib.util.spec_from_file_location("fixture", ROOT / "tools" / "fixture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(fixture: ModuleType, folder: Path, expected: Any) -> None:
    """Read, refresh, write, compact: the answers stay the same."""
    for mmap in (True, False):
        assert fixture.answers(BM25Index.open(folder, mmap=mmap, verify=True)) == expected
    reader = BM25Index.open(folder)
    with BM25Index.open(folder, mode="w") as writer:
        assert fixture.answers(writer) == expected
        writer.add(["brandnew"], ids=["brandnew"])
        writer.delete(["brandnew"])
        writer.compact()
        assert fixture.answers(writer) == expected
    assert reader.refresh()
    assert fixture.answers(reader) == expected


@pytest.mark.parametrize("answers", RELEASED, ids=lambda path: path.stem)
def test_an_index_of_every_release_opens_and_answers_as_it_did(
    answers: Path, fixture: ModuleType, tmp_path: Path
) -> None:
    shutil.copytree(answers.with_suffix(""), tmp_path / "index")
    check(fixture, tmp_path / "index", json.loads(answers.read_text("utf-8")))


def test_an_index_of_this_version_does_so_too(
    fixture: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)  # as the script does
    fixture.write(tmp_path / "index")
    kinds = {path.name.partition("-")[0] for path in (tmp_path / "index").iterdir()} - {LOCK}
    assert kinds == {"manifest.json", "segment", "changes"}
    expected = json.loads(json.dumps(fixture.answers(BM25Index.open(tmp_path / "index"))))
    assert len(expected["documents"]) == 7
    assert sum(map(len, expected["hits"])) > 20
    check(fixture, tmp_path / "index", expected)
