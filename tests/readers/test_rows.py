"""Rows that are mappings to documents."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.readers import Fields, read_rows


class Rows:
    """What Hugging Face's ``Dataset`` is to a reader: dicts, one by one, as often as asked."""

    def __init__(self, *rows: Any) -> None:
        self.rows, self.given = rows, 0

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.given += 1
            yield row


ROWS = Rows(
    {"id": 7, "title": "One", "text": "first", "year": 2020},
    {"id": None, "title": None, "text": "second", "year": None},
    MappingProxyType({"text": "third"}),
)


def test_a_row_is_a_document() -> None:
    rows = Rows(ROWS.rows[0], *ROWS.rows[2:])
    for _ in range(2):
        assert list(read_rows(rows, name="squad")) == [
            Document("7", "One first", {"year": 2020}),
            Document("squad#2", "third"),
        ]
    (document,) = read_rows([{"url": "u", "body": "b", "a": 1}], Fields("url", ("body",), ()))
    assert document == Document("u", "b")


def test_an_object_named_metadata_is_the_metadata_with_what_is_beside_it() -> None:
    row = {"id": "a", "text": "b", "year": 2020, "metadata": {"year": 1999, "lang": "en", "id": 7}}

    def read(row: dict[str, Any], *kept: str) -> dict[str, Any]:
        (document,) = read_rows([row], Fields(metadata=kept or None))
        return dict(document.metadata)

    assert read(row) == {"year": 2020, "lang": "en", "id": 7}
    assert read(row | {"metadata": {}}) == {"year": 2020}
    assert read(row | {"metadata": "none"}) == {"year": 2020, "metadata": "none"}
    assert read(row, "metadata") == {"metadata": row["metadata"]}


def test_rows_are_asked_for_one_by_one() -> None:
    rows = Rows(*ROWS.rows)
    assert next(read_rows(rows)).id == "7"
    assert rows.given == 1


def test_a_data_frame_gives_its_records() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": ["a", "b"], "text": ["x", "y"], "at": pd.to_datetime(["2024"] * 2)})
    index = BM25Index()
    index.add_documents(read_rows(frame.to_dict("records")))
    assert index.get(["b"])[0].metadata["at"].year == 2024


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{"text": "x"}, ["text"]], "^rows: row 2: expected a mapping of fields to values, got li"),
        (["text"], "^rows: row 1: expected a mapping of .*, got str"),
        ([{"size": "x"}], r"^rows: row 1: no text field 'title' or 'text'; fields are \['size'\]"),
        ([{"text": 7}], "^rows: row 1: text field 'text': expected a string, got int"),
        (Rows(*ROWS.rows), "^rows: row 2: id field 'id': expected a string or an integer"),
    ],
)
def test_a_wrong_row_is_named_by_its_number(rows: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        list(read_rows(rows))


def test_splits_are_not_rows() -> None:
    splits = {"train": ROWS, "test": ROWS}
    with pytest.raises(TypeError, match="got dict of 'train', 'test': give one of its values"):
        list(read_rows(splits))  # type: ignore[arg-type]
