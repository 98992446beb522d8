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
from bm25rag.errors import FormatVersionError
from bm25rag.storage.manifest import LOCK, MANIFEST
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


def version(folder: Path) -> int:
    """Return the format version of a folder."""
    found = json.loads((folder / MANIFEST).read_bytes())["version"]
    assert isinstance(found, int)
    return found


def test_only_a_folder_with_vectors_needs_a_reader_that_knows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    BM25Index.from_texts(["red"], vectors=[{}]).save(folder)
    assert version(folder) == 2
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["green"], ["green"], vectors=[{"a": 1.0}])
    assert version(folder) == 3
    with monkeypatch.context() as patch:
        patch.setattr("bm25rag.storage.manifest.VERSION", 2)  # as an older bm25rag
        with pytest.raises(FormatVersionError, match="version 3, newer than 2"):
            BM25Index.open(folder)
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["green"])
        writer.commit()
        assert version(folder) == 3
        writer.compact()
    assert version(folder) == 2


def test_vectors_are_added_to_an_index_of_the_first_release(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(RELEASED[0].with_suffix(""), tmp_path / "index"))
    with BM25Index.open(folder, mode="w") as writer:
        before = [(hit.id, hit.score) for hit in writer.search("brandnew", k=99)]
        writer.add(["brandnew"], ["last"], vectors=[{"a": 1.0}])
        writer.delete(["last"])
        writer.add([""], ["empty"], vectors=[{"a": 0.5}])
    index = BM25Index.open(folder, verify=True)
    assert [(hit.id, hit.score) for hit in index.vectors.search({"a": 2})] == [("empty", 1.0)]
    assert [(hit.id, hit.score) for hit in index.search("brandnew", k=99)] == before
    assert not any(index.vectors.get(index.ids()[:-1]))
