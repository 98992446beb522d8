"""The store keeps whole documents, and answers as its users would want."""

from __future__ import annotations

import copy
import json
import math
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

EN = {"field": "meta.lang", "operator": "==", "value": "en"}


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


# --- whole documents ------------------------------------------------------------------

WHOLE = [
    Document(id="bare"),
    Document(id="none", content=None, meta={"a": 1}),
    Document(id="empty", content=""),
    Document(id="text", content="A cat.", meta={"nested": {"list": [1, None, "x"]}, "$k": "v"}),
    Document(id="dates", meta={"d": date(2024, 1, 1), "t": datetime(2024, 1, 1, tzinfo=UTC)}),
    Document(id="blob", blob=ByteStream(b"\x00\xff", meta={"a": [1]}, mime_type="image/png")),
    Document(id="blank blob", content="both", blob=ByteStream(b"")),
    Document(id="dense", content="cat", embedding=[0.1, -2.5, 1e-300, float("inf")]),
    Document(id="ints", embedding=[1, 2]),
    Document(id="no numbers", embedding=[]),
    Document(id="sparse", sparse_embedding=SparseEmbedding([1, 7], [0.5, 0.25])),
    Document(id="no sparse numbers", sparse_embedding=SparseEmbedding([], [])),
    Document(id="scored", content="cat", score=0.75),
    Document(id="numpy score", content="cat", score=np.float64(0.1)),
    Document(id="Ünïcode 🐈", content="猫 und Kätzchen", meta={"ключ": "значение"}),
]


@pytest.mark.parametrize("document", WHOLE, ids=lambda document: document.id)
def test_a_document_comes_back_as_it_was_written(
    store: BM25DocumentStore, document: Document
) -> None:
    store.write_documents([document])
    (returned,) = store.filter_documents()
    assert returned == document
    assert returned is not document


def test_a_folder_keeps_whole_documents(tmp_path: Path) -> None:
    BM25DocumentStore(tmp_path).write_documents(WHOLE)
    assert BM25DocumentStore(tmp_path).filter_documents() == WHOLE


def test_an_edit_of_a_returned_document_never_reaches_the_store(filled: BM25DocumentStore) -> None:
    before = copy.deepcopy(filled.filter_documents())
    for document in [*filled.filter_documents(), *filled.bm25_retrieval("cat")]:
        document.meta["lang"] = "changed"
        document.meta["new"] = [1]
    assert filled.filter_documents() == before


def test_an_edit_of_a_written_document_never_reaches_the_store(store: BM25DocumentStore) -> None:
    document = Document(id="1", content="cat", meta={"tags": ["a"]})
    store.write_documents([document])
    document.meta["tags"].append("b")
    assert store.filter_documents()[0].meta == {"tags": ["a"]}


def test_a_found_document_has_its_score_and_all_else(store: BM25DocumentStore) -> None:
    store.write_documents([WHOLE[7], WHOLE[12]])
    dense, scored = store.bm25_retrieval("cat")
    assert dense.embedding == WHOLE[7].embedding
    assert type(dense.score) is float
    assert scored.score == dense.score != 0.75


def test_meta_of_other_types_comes_back_in_its_one_obvious_form(store: BM25DocumentStore) -> None:
    meta = {
        "range": (0, 5),
        "count": np.int64(3),
        "weights": np.array([0.5, 1.0]),
        "source": Path("a.md"),
        "nested": OrderedDict(a=(1, (2,))),
        "nan": float("nan"),
    }
    blob = ByteStream(b"a", meta={"size": (1, 2)})
    store.write_documents([Document(id="1", content="cat", meta=meta, blob=blob)])
    (document,) = store.bm25_retrieval("cat")
    assert math.isnan(document.meta.pop("nan"))
    assert document.meta == {
        "range": [0, 5],
        "count": 3,
        "weights": [0.5, 1.0],
        "source": "a.md",
        "nested": {"a": [1, [2]]},
    }
    assert type(document.meta["count"]) is int
    assert document.blob == ByteStream(b"a", meta={"size": [1, 2]})


# --- duplicates -----------------------------------------------------------------------

OLD, NEW, OTHER = (Document(id=id, content=text) for id, text in ["1a", "1b", "2c"])


@pytest.mark.parametrize("policy", [DuplicatePolicy.FAIL, DuplicatePolicy.NONE])
def test_a_duplicate_fails_by_name_and_nothing_is_written(
    store: BM25DocumentStore, policy: DuplicatePolicy
) -> None:
    store.write_documents([OLD])
    with pytest.raises(DuplicateDocumentError, match="ID '1' is in the store already"):
        store.write_documents([OTHER, NEW], policy)
    with pytest.raises(DuplicateDocumentError, match="ID '2' occurs twice in documents") as caught:
        store.write_documents([OTHER, OTHER], policy)
    assert "policy=DuplicatePolicy.SKIP" in str(caught.value)
    assert "on_duplicate" not in str(caught.value)
    assert caught.value.__suppress_context__  # or the core's own words would be shown, too
    assert store.filter_documents() == [OLD]


def test_skip_keeps_the_first_and_counts_what_is_written(store: BM25DocumentStore) -> None:
    assert store.write_documents([OLD, NEW, OTHER], DuplicatePolicy.SKIP) == 2
    assert store.write_documents([NEW], DuplicatePolicy.SKIP) == 0
    assert store.filter_documents() == [OLD, OTHER]


def test_skip_logs_as_haystacks_own_store_does(
    store: BM25DocumentStore, caplog: pytest.LogCaptureFixture
) -> None:
    logged = []
    for each in (store, InMemoryDocumentStore()):
        caplog.clear()
        each.write_documents([OLD])
        each.write_documents([NEW, OTHER, OTHER, OLD], DuplicatePolicy.SKIP)
        logged.append([(one.levelname, one.getMessage()) for one in caplog.records])
    assert logged[0] == logged[1]
    assert [message for _, message in logged[0]] == [
        "ID '1' already exists",
        "ID '2' already exists",
        "ID '1' already exists",
    ]


def test_overwrite_keeps_the_last_and_counts_what_is_given(store: BM25DocumentStore) -> None:
    assert store.write_documents([OLD, OTHER, NEW], DuplicatePolicy.OVERWRITE) == 3
    assert sorted(document.content or "" for document in store.filter_documents()) == ["b", "c"]
    assert not store.bm25_retrieval("a1")


# --- changes ------------------------------------------------------------------------------


def test_threads_that_delete_the_same_documents_report_each_once(store: BM25DocumentStore) -> None:
    everything = {"field": "meta.n", "operator": ">=", "value": 0}
    for _ in range(5):
        store.write_documents(
            [Document(id=str(n), content="cat", meta={"n": n}) for n in range(50)]
        )
        start = threading.Barrier(4)

        def delete(start: threading.Barrier = start) -> int:
            start.wait(timeout=30)
            return store.delete_by_filter(everything)

        with ThreadPoolExecutor(4) as pool:
            counts = [future.result() for future in [pool.submit(delete) for _ in range(4)]]
        assert sorted(counts) == [0, 0, 0, 50]
        assert {type(count) for count in counts} == {int}


def test_an_update_merges_meta_and_keeps_content_place_and_scores(
    filled: BM25DocumentStore,
) -> None:
    before = filled.bm25_retrieval("cat")
    assert filled.update_by_filter(EN, {"lang": "en-GB", "seen": {"at": date(2024, 1, 1)}}) == 2
    after = filled.bm25_retrieval("cat")
    assert [(one.id, one.content, one.score) for one in after] == [
        (one.id, one.content, one.score) for one in before
    ]
    assert filled.filter_documents()[0].meta == {
        "lang": "en-GB",
        "year": 2021,
        "seen": {"at": date(2024, 1, 1)},
    }


@pytest.mark.parametrize("filters", [{}, None])
def test_a_change_by_filter_needs_a_filter(filled: BM25DocumentStore, filters: Any) -> None:
    with pytest.raises(FilterError, match="filters must have a condition"):
        filled.delete_by_filter(filters)
    with pytest.raises(FilterError, match="filters must have a condition"):
        filled.update_by_filter(filters, {"a": 1})
    assert filled.count_documents() == 4


def test_unknown_ids_are_not_deleted(filled: BM25DocumentStore) -> None:
    filled.delete_documents(["cat", "unknown", "cat"])
    assert ids(filled.filter_documents()) == ["dog", "hund", "fish"]


# --- fields of meta -------------------------------------------------------------------------


def test_fields_are_described_as_haystack_does(filled: BM25DocumentStore) -> None:
    filled.write_documents([Document(meta={"ok": True, "rate": 0.5, "tags": ["a"], "no": None})])
    assert filled.get_metadata_fields_info() == {
        "lang": {"type": "keyword"},
        "year": {"type": "int"},
        "ok": {"type": "boolean"},
        "rate": {"type": "float"},
        "tags": {"type": "keyword"},
    }
    assert filled.get_metadata_field_min_max("meta.year") == {"min": 1999, "max": 2021}
    assert filled.get_metadata_field_min_max("lang") == {"min": "de", "max": "en"}
    assert filled.get_metadata_field_min_max("tags") == {"min": None, "max": None}


def test_unlike_values_have_no_least(store: BM25DocumentStore) -> None:
    store.write_documents([Document(meta={"a": 1}), Document(meta={"a": "b"})])
    assert store.get_metadata_field_min_max("a") == {"min": None, "max": None}


def test_nan_is_neither_least_nor_greatest(store: BM25DocumentStore) -> None:
    values = [float("nan"), 2.0, float("nan"), 1]
    store.write_documents([Document(id=str(n), meta={"a": one}) for n, one in enumerate(values)])
    assert store.get_metadata_field_min_max("a") == {"min": 1, "max": 2.0}
    assert store.get_metadata_field_unique_values("a")[1] == 3


def test_nested_values_are_counted_once(store: BM25DocumentStore) -> None:
    values = [
        ["a", {"b": 1}],
        ["a", {"b": 1}],
        ["a", {"b": 1.0}],
        {"x": 1, "y": 2},
        {"y": 2, "x": 1},
    ]
    store.write_documents([Document(id=str(n), meta={"v": v}) for n, v in enumerate(values)])
    page, count = store.get_metadata_field_unique_values("v")
    assert count == 3
    assert json.dumps(page) == json.dumps([values[2], values[1], values[4]])
    assert store.count_unique_metadata_by_filter({}, ["meta.v"]) == {"v": 3}


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, "document '1' at 'a.b': expected str, int"),
        ({1: 2}, "document '1' at 'a.b'"),
        (b"bytes", "document '1' at 'a.b'"),
        (object(), "document '1' at 'a.b'"),
    ],
)
def test_meta_that_cannot_be_stored_names_document_and_key(
    filled: BM25DocumentStore, value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match="metadata of document") as caught:
        filled.write_documents(
            [Document(content="fine"), Document(id="1", meta={"a": {"b": value}})]
        )
    assert message in str(caught.value)
    assert "documents[1]" in str(caught.value)
    with pytest.raises(ValueError, match=r"document 'cat' at 'a\.b'"):
        filled.update_by_filter(EN, {"a": {"b": value}})
    assert ids(filled.filter_documents()) == ["cat", "dog", "hund", "fish"]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (Document(id="1", score="high"), "'score'"),
        (Document(id="1", embedding=["a"]), "'embedding'"),
        (Document(id="1", embedding=[[1.0], [2.0]]), "'embedding'"),
        (
            Document(id="1", sparse_embedding=SparseEmbedding([1], ["a"])),
            "'sparse_embedding.values'",
        ),
        (Document(id="1", blob=ByteStream(b"", meta={"a": {1}})), "'blob.meta.a'"),
    ],
)
def test_what_else_cannot_be_stored_names_document_and_place(
    store: BM25DocumentStore, document: Document, place: str
) -> None:
    with pytest.raises(ValueError, match=rf"documents\[1\]: .* document '1' at {place}"):
        store.write_documents([Document(content="fine"), document])
    assert store.count_documents() == 0


@pytest.mark.parametrize("given", ["text", b"bytes", None, 3, {"a": 1}])
def test_what_is_no_list_of_documents_is_a_value_error(
    store: BM25DocumentStore, given: Any
) -> None:
    with pytest.raises(ValueError, match="documents must be a list of Documents, got"):
        store.write_documents(given)


def test_what_is_no_document_is_pointed_at(store: BM25DocumentStore) -> None:
    with pytest.raises(ValueError, match=r"got dict at documents\[1\]"):
        store.write_documents([Document(content="a"), {"content": "b"}])
    assert store.count_documents() == 0


def test_other_arguments_of_the_wrong_type_name_themselves(filled: BM25DocumentStore) -> None:
    with pytest.raises(TypeError, match="policy must be a DuplicatePolicy, got 'skip'"):
        filled.write_documents([], "skip")
    with pytest.raises(TypeError, match="meta must be a dict, got list"):
        filled.update_by_filter(EN, ["a"])
    with pytest.raises(TypeError, match="document_ids must be an iterable of str, got str"):
        filled.delete_documents("cat")
    with pytest.raises(TypeError, match=r"document_ids\[1\] must be a str, got 3"):
        filled.delete_documents(["cat", 3])
    with pytest.raises(TypeError, match="scale_score must be True or False, got 'no'"):
        filled.bm25_retrieval("cat", scale_score="no")
    with pytest.raises(TypeError, match="min_score must be a number, got '1'"):
        filled.bm25_retrieval("cat", min_score="1")
    with pytest.raises(ValueError, match="min_score must be a number, got nan"):
        filled.bm25_retrieval("cat", scale_score=True, min_score=float("nan"))
    with pytest.raises(TypeError, match="search_term must be a str or None, got 5"):
        filled.get_metadata_field_unique_values("lang", search_term=5)
    with pytest.raises(ValueError, match="from_ must be an integer >= 0, got -1"):
        filled.get_metadata_field_unique_values("lang", from_=-1)
    with pytest.raises(TypeError, match="size must be an integer >= 0, got '3'"):
        filled.get_metadata_field_unique_values("lang", size="3")
    assert filled.count_documents() == 4
    with pytest.raises(TypeError, match="metadata_fields must be an iterable of str"):
        filled.count_unique_metadata_by_filter({}, "lang")
    with pytest.raises(TypeError, match="metadata_field must be a str"):
        filled.get_metadata_field_min_max(1)
