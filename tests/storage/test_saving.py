"""What ``save`` keeps besides the documents, and what it leaves alone."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from bm25rag import BM25Index


def test_extra_comes_back_and_stays_until_it_is_replaced(tmp_path: Path) -> None:
    index = BM25Index.from_texts(["tea"])
    index.save(tmp_path / "a", extra={"k": 3, "name": "höhe", "deep": [None, True, {"x": 1.5}]})
    opened = BM25Index.open(tmp_path / "a")
    assert opened.extra == {"k": 3, "name": "höhe", "deep": [None, True, {"x": 1.5}]}
    opened.extra["k"] = 4
    assert opened.extra["k"] == 3
    opened.save(tmp_path / "b")
    assert BM25Index.open(tmp_path / "b").extra["k"] == 3
    opened.save(tmp_path / "b", extra={})
    assert BM25Index.open(tmp_path / "b").extra == {}


@pytest.mark.parametrize("extra", [{"x": {1, 2}}, {"x": float("nan")}, {"x": b"bytes"}])
def test_extra_that_is_not_json_is_refused_and_nothing_is_written(
    tmp_path: Path, extra: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match="extra must be a dict of JSON values"):
        BM25Index().save(tmp_path / "index", extra=extra)
    assert not (tmp_path / "index").exists()


def test_extra_must_be_a_dict(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="extra must be a dict"):
        BM25Index().save(tmp_path / "index", extra=[1])  # type: ignore[arg-type]


def test_an_index_is_kept_when_overwriting_is_not_allowed(tmp_path: Path) -> None:
    BM25Index.from_texts(["tea"]).save(tmp_path / "index", overwrite=False)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        BM25Index().save(tmp_path / "index", overwrite=False)
    assert len(BM25Index.open(tmp_path / "index")) == 1


def test_what_is_not_saved_is_not_kept_for_the_next_time(tmp_path: Path) -> None:
    BM25Index.from_texts(["red"]).save(tmp_path / "index")
    index = BM25Index()
    with pytest.raises(FileExistsError):
        index.save(tmp_path / "index", extra={"new": 1}, overwrite=False)
    assert index.extra == {}


# --- saving again in the same folder ------------------------------------------------------


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> BM25Index:
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)
    return BM25Index.from_texts(f"word{n} filler" for n in range(1000))


def segments(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("segment-*.bin")}


def test_saving_again_writes_only_what_is_new(large: BM25Index, tmp_path: Path) -> None:
    large.save(tmp_path)
    before = segments(tmp_path)
    large.add(["one more"])
    large.save(tmp_path)
    after = segments(tmp_path)
    assert before.items() < after.items(), "the large segment was written again"
    assert len(after) == 2
    large.save(tmp_path)
    assert segments(tmp_path) == after
    again = BM25Index.open(tmp_path, verify=True)
    assert again.ids() == large.ids()
    assert again.search("more word7") == large.search("more word7")


def test_a_copy_of_a_reader_saves_only_what_is_new(large: BM25Index, tmp_path: Path) -> None:
    large.save(tmp_path)
    before = segments(tmp_path)
    changed = copy.copy(BM25Index.open(tmp_path))
    changed.add(["one more"])
    changed.delete(["3"])
    changed.save(tmp_path)
    assert before.items() < segments(tmp_path).items()
    again = BM25Index.open(tmp_path, verify=True)
    assert again.ids() == changed.ids()
    assert "3" not in again


@pytest.mark.parametrize(
    "what", ["another commit", "a file is missing", "a file is damaged", "another folder"]
)
def test_all_is_written_where_the_folder_is_not_as_it_was_left(
    large: BM25Index, tmp_path: Path, what: str
) -> None:
    large.save(tmp_path)
    folder = tmp_path
    if what == "another commit":
        BM25Index.from_texts(["other"]).save(tmp_path)
    elif what == "a file is missing":
        next(tmp_path.glob("segment-*.bin")).unlink()
    elif what == "a file is damaged":
        path = next(tmp_path.glob("segment-*.bin"))
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    else:
        folder = tmp_path / "another"
    large.save(folder)
    again = BM25Index.open(folder, verify=True)
    assert again.search("word7") == large.search("word7")
    assert len(segments(folder)) == 1
