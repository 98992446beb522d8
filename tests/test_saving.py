"""What ``save`` keeps beside the documents, and what it leaves alone."""

from __future__ import annotations

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
