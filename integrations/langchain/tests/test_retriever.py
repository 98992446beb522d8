"""BM25Retriever: making one, asking it, changing it, saving it."""

from __future__ import annotations

import inspect
import pickle
import uuid
from copy import deepcopy
from datetime import UTC, date, datetime

import pytest
from conftest import ids
from langchain_bm25rag import BM25DocumentIndex, BM25HybridRetriever, BM25Retriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag import Analyzer, BM25Index
from bm25rag.adapters import Asking
from bm25rag.evaluation import run_of

# --- making -----------------------------------------------------------------------


def test_from_documents_keeps_ids_texts_and_metadata(documents: list[Document]) -> None:
    retriever = BM25Retriever.from_documents(iter(documents))
    assert retriever.get_by_ids([str(document.id) for document in documents]) == documents


def test_found_documents_are_like_those_that_langchain_makes(documents: list[Document]) -> None:
    """In every respect: what is set, pickles, copies, checks of what is assigned, and dumps."""
    retriever = BM25Retriever.from_documents(documents)
    for ours in retriever.invoke("cat dog fish", k=2):
        made = Document(id=ours.id, page_content=ours.page_content, metadata=ours.metadata)
        assert ours == made
        assert repr(ours) == repr(made)
        assert ours.__getstate__() == made.__getstate__()
        assert ours.model_dump() == made.model_dump()
        assert ours.to_json() == made.to_json()
        assert pickle.loads(pickle.dumps(ours)) == deepcopy(ours) == ours.model_copy() == made
    first, second = retriever.invoke("cat dog fish", k=2)
    first.type = "Document"
    assert "type" in first.model_fields_set
    assert "type" not in second.model_fields_set


def test_from_texts_takes_what_the_community_class_takes() -> None:
    keywords = {
        "texts": ["red fish", "blue fish"],
        "metadatas": [{"n": 1}, {"n": 2}],
        "ids": ["red", "blue"],
        "bm25_params": {"k1": 1.5, "b": 0.5},
        "preprocess_func": str.split,
    }
    for retriever in (
        BM25Retriever.from_texts(**keywords, k=1),
        BM25Retriever.from_texts(*keywords.values(), k=1),
    ):
        (fish,) = retriever.invoke("blue")
        assert (fish.id, fish.page_content, fish.metadata["n"]) == ("blue", "blue fish", 2)
        assert (retriever.index.k1, retriever.index.b, retriever.k) == (1.5, 0.5, 1)
        assert retriever.invoke("Blue") == []


def test_the_community_class_names_variants_its_own_way() -> None:
    for name, variant in ((None, "lucene"), ("okapi", "lucene"), ("plus", "bm25+")):
        for made in (
            BM25Retriever.from_texts(["a cat"], bm25_variant=name, bm25_params={"k1": 0.9}),
            BM25Retriever.from_documents([Document("a cat")], bm25_variant=name),
        ):
            assert made.index.variant == variant
    with pytest.raises(ValueError, match="one of 'okapi', 'plus', got 'l'"):
        BM25Retriever.from_texts([], bm25_variant="l")
    with pytest.raises(TypeError, match=r"one of 'okapi', 'plus', got \['l'\]"):
        BM25Retriever.from_texts([], bm25_variant=["l"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give one of them"):
        BM25Retriever.from_texts([], bm25_variant="plus", bm25_params={"variant": "bm25l"})


def test_a_document_without_an_id_gets_a_uuid() -> None:
    """Also where others have ids; an empty string is none, as in LangChain's own stores."""
    retriever = BM25Retriever.from_texts(["cat one", "cat two", "cat three"], ids=["a", None, ""])
    assert retriever.index.ids()[0] == "a"
    assert {uuid.UUID(id).version for id in retriever.index.ids()[1:]} == {4}
    for id in (None, ""):
        bare = BM25Retriever.from_documents([Document("cat", id=id), Document("cat", id=id)])
        assert len({uuid.UUID(id) for id in bare.index.ids()}) == 2


def test_documents_with_empty_ids_get_the_same_in_a_vector_store_beside() -> None:
    beside = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    empty = [Document("one cat", id=""), Document("two cats", id="")]
    retriever = BM25HybridRetriever.from_documents(empty, beside)
    assert set(retriever.index.ids()) == set(beside.store)
    assert len(retriever.invoke("cat")) == 2


def test_of_equal_ids_the_last_document_stays() -> None:
    """LangChain's stores replace by id, within one call too."""
    retriever = BM25Retriever.from_texts(["old cat", "new cat"], ids=["a", "a"])
    assert [one.page_content for one in retriever.invoke("cat")] == ["new cat"]


def test_iterables_are_read_once_and_may_be_generators() -> None:
    retriever = BM25Retriever.from_texts(
        (text for text in ["a cat", "a dog"]),
        metadatas=({"n": n} for n in range(2)),
        ids=(id for id in "xy"),
    )
    assert ids(retriever.invoke("dog")) == ["y"]


def test_an_analyzer_speaks_the_language() -> None:
    retriever = BM25Retriever.from_texts(["viele Häuser"], analyzer=Analyzer("german"))
    assert len(retriever.invoke("Haus")) == 1


def test_variants_are_reached_by_bm25_params() -> None:
    params = {"variant": "bm25+", "delta": 0.5, "delta_on": "matched"}
    index = BM25Retriever.from_texts(["cat"], bm25_params=params).index
    assert (index.variant, index.delta, index.delta_on) == ("bm25+", 0.5, "matched")


def test_from_index_shares_the_index(index: BM25Index) -> None:
    """No copy: what is added to the one is found by the other."""
    retriever = BM25Retriever.from_index(index, k=2)
    index.add(["an owl"], ids=["owl"])
    assert retriever.index is index
    assert ids(retriever.invoke("owl")) == ["owl"]


# --- asking -----------------------------------------------------------------------


def test_results_equal_what_was_stored(retriever: BM25Retriever, documents: list[Document]) -> None:
    stored = {document.id: document for document in documents}
    results = retriever.invoke("cats")
    assert results == [stored["cats"], stored["dogs"], stored["cat"]]
    assert results == BM25DocumentIndex(index=retriever.index).invoke("cats")
    assert results == retriever.get_by_ids(["cats", "dogs", "cat"])


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"score_key": "score", "id_key": "id"}, {"lang", "score", "id"}),
        ({"score_key": "score"}, {"lang", "score"}),
        ({"id_key": "bm25_id"}, {"lang", "bm25_id"}),
        ({"score_key": None, "id_key": None}, {"lang"}),
    ],
)
def test_score_and_id_stand_in_the_metadata_where_a_key_is_named(
    documents: list[Document], keys: dict[str, str | None], expected: set[str]
) -> None:
    retriever = BM25Retriever.from_documents(documents, k=1, **keys)
    (document,), (hit,) = retriever.invoke("cats"), retriever.index.search("cats", 1)
    assert document.metadata.keys() == expected
    assert document.id == hit.id == document.metadata.get(keys.get("id_key"), hit.id)
    score = document.metadata.get(keys.get("score_key"), hit.score)
    assert (score, type(score)) == (hit.score, float)


def test_k_filter_and_min_score_stand_in_the_constructor(documents: list[Document]) -> None:
    assert ids(BM25Retriever.from_documents(documents, k=1).invoke("cats")) == ["cats"]
    german = BM25Retriever.from_documents(documents, filter={"lang": "de"})
    assert ids(german.invoke("cats")) == ["cats"]
    best = german.index.search("cats")[0].score
    choosy = BM25Retriever.from_documents(documents, min_score=best)
    assert ids(choosy.invoke("cats")) == ["cats"]


def test_a_call_has_its_own_k_filter_and_min_score(retriever: BM25Retriever) -> None:
    assert ids(retriever.invoke("cats", k=1)) == ["cats"]
    assert ids(retriever.invoke("cats", None, filter={"lang": "en"})) == ["dogs", "cat"]
    assert retriever.invoke("cats", min_score=1e9) == []
    assert [ids(each) for each in retriever.batch(["cats", "bird"], k=1)] == [["cats"], ["bird"]]
    assert ids(retriever.bind(k=1, filter={"lang": "en"}).invoke("cats")) == ["dogs"]
    assert [ids(each) for each in retriever.stream("cats", k=1)] == [["cats"]]
    assert len(retriever.invoke("cats")) == 3


def test_none_per_call_means_the_constructors(documents: list[Document]) -> None:
    """So that forwarding None cannot lift a restriction; an empty dict does."""
    retriever = BM25Retriever.from_documents(documents, k=1, filter={"lang": "en"})
    assert ids(retriever.invoke("cats", k=None, filter=None, min_score=None)) == ["dogs"]
    assert ids(retriever.invoke("cats", filter={})) == ["cats"]


def test_fields_may_be_set_later(retriever: BM25Retriever) -> None:
    retriever.k = 1
    assert len(retriever.invoke("cats")) == 1
    retriever.k = -1
    with pytest.raises(ValueError, match=r"^k must be an integer >= 0, got -1"):
        retriever.invoke("cats")


@pytest.mark.parametrize("name", ["filter", *Asking._fields])
def test_no_option_that_is_set_later_is_overlooked(retriever: BM25Retriever, name: str) -> None:
    """A question that asks for k alone is answered by a shorter way."""
    assert retriever.invoke("cats")
    setattr(retriever, name, object())
    with pytest.raises((TypeError, ValueError), match=r"must be|must map|filter"):
        retriever.invoke("cats")


def test_edits_of_results_and_sources_never_reach_the_store(documents: list[Document]) -> None:
    documents[0].metadata["tags"] = ["a"]
    retriever = BM25Retriever.from_documents(documents)
    documents[0].metadata["tags"].append("b")
    documents[0].page_content = "changed"
    (document,) = retriever.invoke("mat")
    assert (document.page_content, document.metadata["tags"]) == (
        "The cat sat on the mat all day.",
        ["a"],
    )
    document.metadata["tags"].append("c")
    document.metadata.clear()
    assert retriever.get_by_ids(["cat"])[0].metadata["tags"] == ["a"]


def test_metadata_of_every_storable_kind_come_back_as_given() -> None:
    metadata = {
        "none": None,
        "flag": True,
        "big": 10**30,
        "real": 0.1,
        "list": [1, "a", {"b": []}],
        "day": date(2024, 2, 29),
        "moment": datetime(2024, 2, 29, 12, tzinfo=UTC),
        "naïve key.with $": "\ud800",
    }
    retriever = BM25Retriever.from_texts(["cat"], [metadata], ["1"])
    assert retriever.get_by_ids(["1"])[0].metadata == metadata


# --- changing ---------------------------------------------------------------------


def test_add_documents_replaces_by_id_and_returns_an_id_for_each(retriever: BM25Retriever) -> None:
    added = retriever.add_documents(
        [Document("An owl hoots.", id="cat"), Document("An eagle."), Document("A wren.", id="cat")]
    )
    assert (added[0], added[2], len(added)) == ("cat", "cat", 3)
    assert ids(retriever.invoke("eagle")) == [added[1]]
    assert ids(retriever.invoke("wren")) == ["cat"]
    assert retriever.invoke("owl") == retriever.invoke("mat") == []


def test_delete_ignores_unknown_ids_and_counts(retriever: BM25Retriever) -> None:
    assert retriever.delete(["cat", "nobody", "cat"]) == ["cat"]
    assert retriever.get_by_ids(["cat", "dogs"]) == retriever.get_by_ids(["dogs"])


def test_get_by_ids_answers_in_order_without_scores(retriever: BM25Retriever) -> None:
    results = retriever.get_by_ids(["cats", "nobody", "bird"])
    assert ids(results) == ["cats", "bird"]
    assert results[0].metadata == {"lang": "de"}


def test_results_added_again_change_nothing(
    retriever: BM25Retriever, documents: list[Document]
) -> None:
    """They carry neither score nor id of a search into the index."""
    before = retriever.invoke("cats")
    retriever.add_documents(before)
    assert retriever.invoke("cats") == before
    assert retriever.get_by_ids([str(one.id) for one in documents]) == documents


# --- copying -----------------------------------------------------------------------


def test_a_retriever_can_be_pickled_and_copied(retriever: BM25Retriever) -> None:
    for copy in (pickle.loads(pickle.dumps(retriever)), deepcopy(retriever)):
        assert copy.invoke("cats") == retriever.invoke("cats")
        copy.delete(["cats"])
    assert len(retriever.invoke("cats")) == 3


# --- as a class -------------------------------------------------------------------


def test_sync_and_async_methods_take_the_same_arguments() -> None:
    for cls in (BM25Retriever, BM25DocumentIndex):
        pairs = [(name, f"a{name}") for name in dir(cls) if hasattr(cls, f"a{name}")]
        pairs.append(("_get_relevant_documents", "_aget_relevant_documents"))
        ours = [pair for pair in pairs if "bm25rag" in getattr(cls, pair[0]).__module__]
        assert len(ours) >= 4
        for sync, other in ours:
            theirs = inspect.signature(getattr(cls, other)).parameters
            assert list(inspect.signature(getattr(cls, sync)).parameters) == list(theirs)


def test_the_repr_tells_the_index_and_what_is_set(retriever: BM25Retriever) -> None:
    """On one short line, without the corpus, whatever the filter holds."""
    plain = repr(retriever)
    assert plain.startswith("BM25Retriever(index=BM25Index(5 documents")
    many = BM25Retriever.from_index(retriever.index, k=7, filter={str(n) for n in range(10_000)})
    for shown in (plain, repr(many), str(many), repr(BM25DocumentIndex(index=retriever.index))):
        assert len(shown) < 300
        assert "\n" not in shown
        assert "mat" not in shown
    assert "k=7, filter={" in repr(many)
    assert "k=" not in plain


def test_a_warm_construction_searches_nothing(
    index: BM25Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangChain makes a retriever at every call of a configured one."""
    monkeypatch.setattr(BM25Index, "search", None)
    monkeypatch.setattr(BM25Index, "search_batch", None)
    assert BM25Retriever(index=index, k=2, filter={"lang": "en"}, min_score=0.5).k == 2


def test_words_that_match_stand_in_the_metadata_where_a_key_is_named() -> None:
    """As places in the content, by retrievers and hybrid retrievers."""
    texts = [Document("A cat sat.\nCats!", id="a"), Document("Dogs run.", id="b")]
    retriever = BM25Retriever.from_documents(texts, spans_key="spans")
    (document,) = retriever.invoke("cats")
    assert document.metadata["spans"] == [
        {"start": 2, "end": 5, "term": "cat"},
        {"start": 11, "end": 15, "term": "cat"},
    ]
    assert [
        document.page_content[one["start"] : one["end"]] for one in document.metadata["spans"]
    ] == ["cat", "Cats"]
    assert retriever.get_by_ids(["a"])[0].metadata == {}
    vectors = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    hybrid = BM25HybridRetriever.from_documents(texts, vectors, spans_key="spans")
    places = {one.id: one.metadata["spans"] for one in hybrid.invoke("cats")}
    assert places == {"a": document.metadata["spans"], "b": []}


def test_it_is_evaluated_as_any_retriever_of_langchain(retriever: BM25Retriever) -> None:
    assert [*run_of(retriever, {"1": "cats"}, k=2)["1"]] == ids(retriever.invoke("cats"))[:2]
