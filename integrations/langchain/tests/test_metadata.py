"""Metadata as LangChain's loaders and splitters, and data frames, produce them."""

from __future__ import annotations

import json
import math
import warnings
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain_bm25rag import BM25DocumentIndex, BM25Retriever
from langchain_core.documents import Document
from langchain_text_splitters import (
    MarkdownHeaderTextSplitter,
    RecursiveCharacterTextSplitter,
    RecursiveJsonSplitter,
)


class Kind(Enum):
    """As parsers label what they find."""

    TITLE = "title"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ((1, ("a", 2.5)), [1, ["a", 2.5]]),
        (OrderedDict(a=(1,)), {"a": [1]}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1, 2]]), [[1, 2]]),
        (Kind.TITLE, "title"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=5), str(UUID(int=5))),
        (PurePosixPath("docs/a.md"), "docs/a.md"),
        (math.inf, math.inf),
        (date(2024, 2, 29), date(2024, 2, 29)),
        (datetime(2024, 2, 29, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_what_loaders_produce_is_stored_in_its_plain_form(given: Any, stored: Any) -> None:
    """In every way of adding it, and it is returned as plain Python values."""
    document = Document("a cat", id="a", metadata={"x": given})
    index = BM25DocumentIndex()
    index.upsert([document])
    for retriever in (
        BM25Retriever.from_documents([document]),
        BM25Retriever.from_texts(["a cat"], [{"x": given}], ["a"]),
        BM25Retriever.from_index(index.index),
    ):
        (returned,) = retriever.invoke("cat")
        assert returned == Document("a cat", id="a", metadata={"x": stored})
        assert type(returned.metadata["x"]) is type(stored)


def test_the_page_of_a_splitter_is_filtered_on() -> None:
    """RecursiveCharacterTextSplitter says where a passage begins."""
    text = "Cats sleep. " * 20 + "Dogs bark. " * 20
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=60, chunk_overlap=20, add_start_index=True, separators=[". ", " "]
    )
    passages = splitter.split_documents([Document(text, metadata={"source": Path("pets.txt")})])
    retriever = BM25Retriever.from_documents(passages, k=len(passages))
    parts = retriever.invoke("dogs", filter={"start_index": {"$gte": 300}, "source": "pets.txt"})
    assert parts
    for one in parts:
        start = one.metadata["start_index"]
        assert start >= 300
        assert text[start : start + len(one.page_content)] == one.page_content


def test_the_headings_of_splitters_come_back_as_given() -> None:
    """Markdown and JSON; each passage equals what the splitter made, but for its new id."""
    pages = [
        *MarkdownHeaderTextSplitter([("#", "top"), ("##", "part")]).split_text(
            "# Pets\n\n## Cats\n\nA cat sleeps.\n\n## Dogs\n\nA dog barks."
        ),
        *RecursiveJsonSplitter(max_chunk_size=40).create_documents(
            [{"pets": {"cat": "sleeps", "dog": "barks at a cat"}}]
        ),
    ]
    retriever = BM25Retriever.from_documents(pages)
    results = [one.model_copy(update={"id": None}) for one in retriever.invoke("cat")]
    assert sorted(map(repr, results)) == sorted(repr(one) for one in pages if "cat" in repr(one))


# --- loaders of langchain-community, where it is installed -----------------------------------


@pytest.fixture
def loaders() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its end
        return pytest.importorskip("langchain_community.document_loaders")


def test_a_data_frame_with_gaps_is_indexed(loaders: Any) -> None:
    """NaN stays a float that equals nothing, a missing time is None, the others plain values."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "text": ["a cat", "a dog and a cat"],
            "price": [1.5, math.nan],
            "when": pandas.to_datetime(["2024-01-01 12:00", None]),
            "size": pandas.array([3, None], dtype="Int64"),
            "kind": pandas.Categorical(["pet", "pet"]),
        }
    )
    documents = loaders.DataFrameLoader(frame, page_content_column="text").load()
    retriever = BM25Retriever.from_documents(documents)
    first, second = retriever.invoke("cat")
    assert first.metadata == {
        "price": 1.5,
        "when": datetime(2024, 1, 1, 12),
        "size": 3,
        "kind": "pet",
    }
    assert type(first.metadata["when"]) is datetime
    assert math.isnan(second.metadata.pop("price"))
    assert second.metadata == {"when": None, "size": None, "kind": "pet"}
    for filter in ({"price": {"$lt": 2}}, {"when": {"$gte": datetime(2024, 1, 1)}}, {"size": 3}):
        assert retriever.invoke("cat", filter=filter) == [first]


def test_csv_and_json_loaders_are_indexed(loaders: Any, tmp_path: Path) -> None:
    (tmp_path / "pets.csv").write_text("name,price\ncat,1.5\ndog,\n")
    (tmp_path / "pets.json").write_text(json.dumps([{"text": "a cat", "tags": ["pet", None]}]))
    table = loaders.CSVLoader(str(tmp_path / "pets.csv"), metadata_columns=["price"]).load()
    (document,) = BM25Retriever.from_documents(table).invoke("cat")
    assert (document.metadata["row"], document.metadata["price"]) == (0, "1.5")
    pytest.importorskip("jq")
    loader = loaders.JSONLoader(
        str(tmp_path / "pets.json"),
        ".[]",
        content_key="text",
        metadata_func=lambda record, metadata: {**metadata, "tags": record["tags"]},
    )
    (document,) = BM25Retriever.from_documents(loader.load()).invoke("cat", filter={"seq_num": 1})
    assert document.metadata["tags"] == ["pet", None]
