"""What a search finds, and how it is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from haystack import Document
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import BM25Index

EN = {"field": "meta.lang", "operator": "==", "value": "en"}


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


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
    by_k = [ids(filled.bm25_retrieval("cat", top_k=k)) for k in (0, 1, np.int64(2), 99)]
    assert list(map(len, by_k)) == [0, 1, 2, 3]
    assert by_k[3][:2] == by_k[2]


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


def test_a_least_score_cuts_what_is_returned_scaled_scores_too(filled: BM25DocumentStore) -> None:
    for scaled in (False, True):
        results = filled.bm25_retrieval("cat mat", scale_score=scaled)
        least = results[1].score
        cut = filled.bm25_retrieval("cat mat", scale_score=scaled, min_score=least)
        assert [(one.id, one.score) for one in cut] == [
            (one.id, one.score) for one in results if one.score >= least
        ]
        assert 0 < len(cut) < len(results)
        assert filled.bm25_retrieval("cat mat", scale_score=scaled, min_score=99) == []


@pytest.mark.parametrize("scaled", [False, True])
def test_a_least_score_does_not_apply_to_a_filter_alone_which_has_no_scores(
    filled: BM25DocumentStore, scaled: bool
) -> None:
    passed = filled.bm25_retrieval(" ", EN, scale_score=scaled, min_score=99)
    assert passed == filled.filter_documents(EN) != []
    assert filled.bm25_retrieval_batch(["", "cat"], EN, min_score=99) == [passed, []]


def test_a_batch_is_what_one_query_after_the_other_finds(filled: BM25DocumentStore) -> None:
    queries = ["cat mat", "swim", "unheard of", "the"]
    for options in (
        {},
        {"filters": EN, "top_k": 1},
        {"scale_score": True, "min_score": 0.52},
        {"min_score": 0.3},
    ):
        expected = [filled.bm25_retrieval(query, **options) for query in queries]
        assert filled.bm25_retrieval_batch(queries, **options) == expected
        assert any(expected)
    assert filled.bm25_retrieval_batch([]) == []
    with pytest.raises(ValueError, match=r"queries\[1\] must not be empty"):
        filled.bm25_retrieval_batch(["cat", ""])
    with pytest.raises(TypeError, match=r"queries\[0\] must be a str, got int"):
        filled.bm25_retrieval_batch([3])
    with pytest.raises(TypeError, match="queries must be a list of str, got 'cat'"):
        filled.bm25_retrieval_batch("cat")


def test_embeddings_stay_out_of_results_if_that_is_asked(tmp_path: Path) -> None:
    document = Document(id="1", content="cat", embedding=[0.5] * 8, meta={"a": 1})
    sparse = Document(id="2", content="cat", sparse_embedding=SparseEmbedding([1], [0.5]))
    store = BM25DocumentStore(tmp_path, return_embedding=False)
    store.write_documents([document, sparse])
    theirs = InMemoryDocumentStore(return_embedding=False)
    theirs.write_documents([document, sparse])
    assert store.filter_documents() == theirs.filter_documents()
    for one in store.bm25_retrieval("cat") + store.bm25_retrieval_batch(["cat"])[0]:
        assert one.embedding is None
    with_one = {"field": "embedding", "operator": "!=", "value": None}
    assert ids(store.filter_documents(with_one)) == ids(store.bm25_retrieval("cat", with_one))
    assert ids(store.filter_documents(with_one)) == ["1"]
    assert BM25DocumentStore(tmp_path).filter_documents() == [document, sparse]


def test_chinese_words_are_found(store: BM25DocumentStore) -> None:
    store.write_documents([Document(id="zh", content="我喜欢机器学习"), Document(content="cat")])
    assert ids(store.bm25_retrieval("机器")) == ["zh"]


def test_results_are_those_of_the_core(documents: list[Document], store: BM25DocumentStore) -> None:
    store.write_documents(documents)
    index = BM25Index.from_texts([one.content or "" for one in documents], ids(documents))
    pairs = [(one.id, one.score) for one in store.bm25_retrieval("cats chase dogs")]
    assert pairs == [(hit.id, hit.score) for hit in index.search("cats chase dogs")]


@pytest.mark.parametrize("top_k", [True, 1.0, "1", None, [1]])
def test_top_k_of_the_wrong_type_names_itself(filled: BM25DocumentStore, top_k: Any) -> None:
    with pytest.raises(TypeError, match="top_k must be an integer >= 0, got"):
        filled.bm25_retrieval("cat", top_k=top_k)


def test_a_negative_top_k_names_itself(filled: BM25DocumentStore) -> None:
    with pytest.raises(ValueError, match="top_k must be an integer >= 0, got -1"):
        filled.bm25_retrieval("cat", top_k=-1)


@pytest.mark.parametrize("query", [None, 1, b"cat", {"cat"}, [1], {"cat": "much"}])
def test_a_query_of_the_wrong_type_names_itself(filled: BM25DocumentStore, query: Any) -> None:
    with pytest.raises(TypeError, match="query"):
        filled.bm25_retrieval(query)


def test_words_that_match_stand_in_the_meta_where_a_key_is_named(tmp_path: Path) -> None:
    store = BM25DocumentStore(tmp_path / "store", spans_key="spans")
    written = [Document(id="a", content="A cat sat.\nCats!"), Document(id="b", content="Dogs run.")]
    store.write_documents(written)
    (document,) = store.bm25_retrieval("cats")
    assert document.meta["spans"] == [
        {"start": 2, "end": 5, "term": "cat"},
        {"start": 11, "end": 15, "term": "cat"},
    ]
    search = store.hybrid_search("cats", None, 2)
    search.take([("b", 1.0), ("a", 0.5)])
    fused = {one.id: one.meta["spans"] for one in store.hybrid_documents(search)}
    assert fused == {"a": document.meta["spans"], "b": []}
    a = {"field": "id", "operator": "==", "value": "a"}
    assert [one.meta for one in store.bm25_retrieval("", a)] == [{"spans": []}]  # nothing matches
    assert store.filter_documents() == written
    again = BM25DocumentStore.from_dict(store.to_dict())
    assert again.bm25_retrieval("cats") == [document]
    with pytest.raises(TypeError, match="spans_key must be a str or None, got 7"):
        BM25DocumentStore(spans_key=7)  # type: ignore[arg-type]
