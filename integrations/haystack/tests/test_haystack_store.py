"""The store keeps whole documents, and answers as its users would want."""

from __future__ import annotations

import copy
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import haystack
import numpy as np
import pytest
from haystack import Document
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Analyzer, BM25Index

HAYSTACK = tuple(map(int, haystack.__version__.split(".")[:2]))
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
    (found,) = store.filter_documents()
    assert found == document
    assert found is not document


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


# --- duplicates -----------------------------------------------------------------------

OLD, NEW, OTHER = (Document(id=id, content=text) for id, text in ["1a", "1b", "2c"])


@pytest.mark.parametrize("policy", [DuplicatePolicy.FAIL, DuplicatePolicy.NONE])
def test_a_duplicate_fails_by_name_and_nothing_is_written(
    store: BM25DocumentStore, policy: DuplicatePolicy
) -> None:
    store.write_documents([OLD])
    with pytest.raises(DuplicateDocumentError, match="'1'"):
        store.write_documents([OTHER, NEW], policy)
    with pytest.raises(DuplicateDocumentError, match="'2'"):
        store.write_documents([OTHER, OTHER], policy)
    assert store.filter_documents() == [OLD]


def test_skip_keeps_the_first_and_counts_what_is_written(store: BM25DocumentStore) -> None:
    assert store.write_documents([OLD, NEW, OTHER], DuplicatePolicy.SKIP) == 2
    assert store.write_documents([NEW], DuplicatePolicy.SKIP) == 0
    assert store.filter_documents() == [OLD, OTHER]


def test_overwrite_keeps_the_last_and_counts_what_is_given(store: BM25DocumentStore) -> None:
    assert store.write_documents([OLD, OTHER, NEW], DuplicatePolicy.OVERWRITE) == 3
    assert sorted(document.content or "" for document in store.filter_documents()) == ["b", "c"]
    assert not store.bm25_retrieval("a1")


# --- search -----------------------------------------------------------------------------


def test_only_what_contains_a_term_is_found_best_first(filled: BM25DocumentStore) -> None:
    assert ids(filled.bm25_retrieval("cats on a mat")) == ["cat", "dog", "hund"]
    assert filled.bm25_retrieval("unheard of") == []
    assert filled.bm25_retrieval("the") == []
    assert filled.bm25_retrieval("   ") == []


def test_an_empty_query_is_a_value_error(filled: BM25DocumentStore) -> None:
    with pytest.raises(ValueError, match="query must not be empty"):
        filled.bm25_retrieval("")


def test_an_empty_store_answers(store: BM25DocumentStore) -> None:
    assert store.bm25_retrieval("cat") == []
    assert store.filter_documents() == []
    assert store.delete_by_filter(EN) == store.update_by_filter(EN, {"a": 1}) == 0


def test_documents_without_terms_are_kept_and_never_found(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id="none"), Document(id="blank", content=" ")])
    assert store.bm25_retrieval("cat") == []
    assert store.count_documents() == 2


def test_top_k_is_the_most_that_is_found(filled: BM25DocumentStore) -> None:
    found = [ids(filled.bm25_retrieval("cat", top_k=k)) for k in (0, 1, np.int64(2), 99)]
    assert list(map(len, found)) == [0, 1, 2, 3]
    assert found[3][:2] == found[2]


def test_scaled_scores_lie_between_0_and_1_in_the_same_order(filled: BM25DocumentStore) -> None:
    plain = filled.bm25_retrieval("cat mat")
    scaled = filled.bm25_retrieval("cat mat", scale_score=True)
    assert ids(plain) == ids(scaled)
    for one, other in zip(plain, scaled, strict=True):
        assert other.score == pytest.approx(1 / (1 + np.exp(-(one.score or 0) / 8)))
        assert type(other.score) is float


def test_matches_that_score_nothing_or_less_are_found() -> None:
    store = BM25DocumentStore(variant="tfldp", delta=0.4)
    store.write_documents([Document(id=str(n), content="a cat") for n in range(99)])
    store.write_documents([Document(id="long", content="cat " + "dog " * 4000)])
    last = store.bm25_retrieval("cat", top_k=200)[99]
    assert last.id == "long"
    assert (last.score or 0) < 0
    atire = BM25DocumentStore(variant="atire")
    atire.write_documents([Document(content="a cat"), Document(content="cat cat")])
    assert [document.score for document in atire.bm25_retrieval("cat")] == [0.0, 0.0]


def test_chinese_words_are_found(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id="zh", content="我喜欢机器学习"), Document(content="cat")])
    assert ids(store.bm25_retrieval("机器")) == ["zh"]


def test_results_are_those_of_the_core(documents: list[Document], store: BM25DocumentStore) -> None:
    store.write_documents(documents)
    index = BM25Index.from_texts([one.content or "" for one in documents], ids(documents))
    found = [(one.id, one.score) for one in store.bm25_retrieval("cats chase dogs")]
    assert found == [(hit.id, hit.score) for hit in index.search("cats chase dogs")]


@pytest.mark.skipif(HAYSTACK < (3, 4), reason="its BM25L has been right for absent words since 3.4")
def test_the_old_scores_can_be_had(documents: list[Document]) -> None:
    words = Analyzer(language=None, token_pattern=r"\w+")
    ours = BM25DocumentStore(analyzer=words, variant="bm25l", k1=1.5, b=0.75, delta_on="matched")
    theirs = InMemoryDocumentStore()
    for store in (ours, theirs):
        store.write_documents(documents)
    for query in ("the cat", "Dogs and cats", "der hund sat", "swim", "unheard of"):
        new, old = ours.bm25_retrieval(query), theirs.bm25_retrieval(query)
        assert {one.id: one.score for one in new} == pytest.approx(
            {one.id: one.score for one in old}, rel=1e-6
        )


# --- changes ------------------------------------------------------------------------------


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


def test_nested_values_are_counted_once(store: BM25DocumentStore) -> None:
    values = [
        ["a", {"b": 1}],
        ["a", {"b": 1}],
        ["a", {"b": 1.0}],
        {"x": 1, "y": 2},
        {"y": 2, "x": 1},
    ]
    store.write_documents([Document(id=str(n), meta={"v": v}) for n, v in enumerate(values)])
    found, count = store.get_metadata_field_unique_values("v")
    assert count == 3
    assert json.dumps(found) == json.dumps([values[2], values[1], values[4]])
    assert store.count_unique_metadata_by_filter({}, ["meta.v"]) == {"v": 3}


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [True, 1.0, "1", None, [1]])
def test_top_k_of_the_wrong_type_names_itself(filled: BM25DocumentStore, top_k: Any) -> None:
    with pytest.raises(TypeError, match="top_k must be an integer >= 0, got"):
        filled.bm25_retrieval("cat", top_k=top_k)


def test_a_negative_top_k_names_itself(filled: BM25DocumentStore) -> None:
    with pytest.raises(ValueError, match="top_k must be an integer >= 0, got -1"):
        filled.bm25_retrieval("cat", top_k=-1)


@pytest.mark.parametrize("query", [None, 1, b"cat", ["cat"]])
def test_a_query_of_the_wrong_type_names_itself(filled: BM25DocumentStore, query: Any) -> None:
    with pytest.raises(TypeError, match="query must be a str, got"):
        filled.bm25_retrieval(query)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1, 2), "document '1' at 'a.b': a tuple"),
        (np.float32(1), "document '1' at 'a.b': a float32; call .item()"),
        (float("nan"), "document '1' at 'a.b': nan"),
        ({1: 2}, "document '1' at 'a.b': the key 1 is a int"),
        (b"bytes", "document '1' at 'a.b': a bytes"),
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
    with pytest.raises(ValueError, match=r"document 'cat' at 'a\.b'"):
        filled.update_by_filter(EN, {"a": {"b": value}})
    assert ids(filled.filter_documents()) == ["cat", "dog", "hund", "fish"]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (Document(id="1", embedding=["a"]), "'embedding'"),
        (Document(id="1", embedding=[[1.0], [2.0]]), "'embedding'"),
        (
            Document(id="1", sparse_embedding=SparseEmbedding([1], ["a"])),
            "'sparse_embedding.values'",
        ),
        (Document(id="1", blob=ByteStream(b"", meta={"a": (1,)})), "'blob.meta.a'"),
    ],
)
def test_what_else_cannot_be_stored_names_document_and_place(
    store: BM25DocumentStore, document: Document, place: str
) -> None:
    with pytest.raises(ValueError, match=f"document '1' at {place}"):
        store.write_documents([document])
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
    with pytest.raises(TypeError, match="ids must be"):
        filled.delete_documents("cat")
    with pytest.raises(TypeError, match="metadata_fields must be a list of str"):
        filled.count_unique_metadata_by_filter({}, "lang")
    with pytest.raises(TypeError, match="metadata_field must be a str"):
        filled.get_metadata_field_min_max(1)
