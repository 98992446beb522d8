"""Sparse vectors in records: which forms are read, and what is wrong with others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from bm25rag import BM25Index, Document
from bm25rag.readers import (
    Fields,
    parse_vector,
    read_arrow,
    read_csv,
    read_json,
    read_jsonl,
    read_parquet,
    read_rows,
)
from support.commands import write

FIELDS = Fields(texts=("contents",), vector="vector")
ANSERINI = (
    '{"id": "a", "contents": "A dog.", "vector": {"dog": 150, "pet": 0.5}}\n'
    '{"id": "b", "contents": "", "vector": {}, "year": 2020}\n'
    '{"id": "c", "contents": "Nothing.", "vector": null}\n'
)
DOCUMENTS = [
    Document("a", "A dog.", vector={"dog": 150.0, "pet": 0.5}),
    Document("b", "", {"year": 2020}, vector={}),
    Document("c", "Nothing."),
]


def test_a_vector_is_read_from_the_field_named_and_is_no_metadata() -> None:
    lines = write("c.jsonl", ANSERINI)
    array = write("c.json", json.dumps([json.loads(line) for line in ANSERINI.splitlines()]))
    assert list(read_jsonl(lines, FIELDS)) == list(read_json(array, FIELDS)) == DOCUMENTS
    assert list(read_jsonl(lines, FIELDS._replace(metadata=()))) == [
        DOCUMENTS[0],
        Document("b", "", vector={}),
        DOCUMENTS[2],
    ]


def test_without_a_vector_field_it_is_metadata() -> None:
    (document, *_) = read_jsonl(write("c.jsonl", ANSERINI), Fields(texts=("contents",)))
    assert document == Document("a", "A dog.", {"vector": {"dog": 150, "pet": 0.5}})


def test_a_vector_may_be_numbers_of_terms_and_their_weights() -> None:
    line = '{"text": "x", "v": {"indices": [7, 12], "values": [1.5, -2]}}'
    (document,) = read_jsonl(write("c.jsonl", line), Fields(vector="v"))
    assert document.vector == {"7": 1.5, "12": -2.0}
    words = {"indices": 1.0, "values": 2.0}  # are terms as any
    assert parse_vector(words, "vector") == words


def test_rows_may_hold_whatever_the_index_takes() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    given = [
        {"indices": np.array([3]), "values": np.array([0.5], np.float32)},
        {3: 0.5},
        sparse.csr_array(([0.5], ([0], [3])), (1, 9)),
    ]
    rows = [{"text": "x", "v": vector} for vector in given]
    vectors = [document.vector for document in read_rows(rows, Fields(vector="v"))]
    assert vectors == [{"3": 0.5}] * 3


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"dog": 1.5}, {"cat": 2.0}, None]),  # a struct of both, with nulls
        pa.array([[("dog", 1.5)], [("cat", 2.0)], None], pa.map_(pa.string(), pa.float32())),
    ],
)
def test_a_column_may_be_structs_or_maps_of_weights(column: pa.Array) -> None:
    table = pa.table({"id": ["a", "b", "c"], "text": ["x", "y", "z"], "v": column})
    parquet.write_table(table, "t.parquet")
    feather.write_feather(table, "t.arrow")
    expected = [
        Document("a", "x", vector={"dog": 1.5}),
        Document("b", "y", vector={"cat": 2.0}),
        Document("c", "z"),
    ]
    for fields in (Fields(vector="v"), Fields(metadata=(), vector="v")):
        assert list(read_parquet(Path("t.parquet"), fields)) == expected
        assert list(read_arrow(Path("t.arrow"), fields)) == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[(7, 1.5), (12, 2.0)]], pa.map_(pa.int32(), pa.float32())),
        pa.array([{"indices": [7, 12], "values": [1.5, 2.0]}]),
    ],
)
def test_a_column_may_have_numbers_of_terms(column: pa.Array) -> None:
    parquet.write_table(pa.table({"text": ["x"], "v": column}), "t.parquet")
    (document,) = read_parquet(Path("t.parquet"), Fields(vector="v"))
    assert document.vector == {"7": 1.5, "12": 2.0}


@pytest.mark.parametrize(
    ("vector", "complaint"),
    [
        ('"v": [0.1, 0.2]', "vector field 'v' must map terms to weights, or have indices and"),
        ('"v": "dog"', "vector field 'v' must map terms to weights"),
        ('"v": {"dog": "1"}', "vector field 'v'['dog'] must be a number"),
        ('"v": {"dog": 1e31}', "vector field 'v'['dog'] must be a number"),
        ('"v": {"indices": [1, 2], "values": [1]}', "vector field 'v' has 2 indices and 1 values"),
        ('"v": {"indices": [1, 1], "values": [1, 2]}', "vector field 'v' has the term '1' twice"),
        ('"v": {"indices": [-1], "values": [1]}', "vector field 'v' must have numbers of terms >="),
        ('"w": {}', "no vector field 'v'; fields are ['text', 'w']; null stands for no vector"),
    ],
)
def test_a_wrong_vector_is_named_by_file_and_line(vector: str, complaint: str) -> None:
    path = write("c.jsonl", f'{{"text": "x", "v": null}}\n{{"text": "y", {vector}}}')
    with pytest.raises(ValueError, match="^" + re.escape(f"c.jsonl:2: {complaint}")):
        list(read_jsonl(path, Fields(vector="v")))


def test_a_wrong_column_or_row_is_named() -> None:
    def read(**columns: Any) -> None:
        parquet.write_table(pa.table({"text": ["x"], **columns}), "t")
        list(read_parquet(Path("t"), Fields(vector="v")))

    with pytest.raises(ValueError, match=r"^t: schema: no vector field 'v'; fields are"):
        read()
    with pytest.raises(ValueError, match=r"^t: row group 0: row 1: vector field 'v' must map"):
        read(v=[b"x"])
    twice = pa.array([[("a", 1.0), ("a", 2.0)]], pa.map_(pa.string(), pa.float64()))
    with pytest.raises(ValueError, match=r"^t: row group 0: 'v': not a value that Python has"):
        read(v=twice)
    path = write("c.csv", "text,v\nx,1\n")
    with pytest.raises(ValueError, match=r"^c\.csv:2: vector field 'v' must map terms to weights"):
        list(read_csv(path, Fields(vector="v")))


def test_what_json_can_say_can_be_indexed() -> None:
    line = r'{"text": "x", "v": {"": 1, "\ud800": 2, "a\u0000b": 1e-60, "é": 1e30}}'
    index = BM25Index()
    index.add_documents(read_jsonl(write("c.jsonl", line), Fields(vector="v")))
    (stored,) = index.vectors.get(index.ids())
    assert stored == {"": 1.0, "\ud800": 2.0, "é": float(np.float32(1e30))}
