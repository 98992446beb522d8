"""BM25VectorStore: LangChain's own suite, and what LangChain builds on a vector store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from conftest import ids
from langchain_bm25rag import BM25Retriever, BM25Translator, BM25VectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.language_models import FakeListChatModel
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from langchain_text_splitters import RecursiveCharacterTextSplitter

from bm25rag import Analyzer, BM25Index
from bm25rag.errors import FilterError, ReadOnlyError

# --- LangChain's suite ------------------------------------------------------------

NEIGHBOURS = (
    "test_add_documents",
    "test_deleting_documents",
    "test_deleting_bulk_documents",
    "test_add_documents_with_ids_is_idempotent",
    "test_add_documents_by_id_with_mutation",
)


class TestStandard(VectorStoreIntegrationTests):
    """The vector store suite."""

    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return BM25VectorStore()


def without_neighbours(name: str) -> Callable[..., Any]:
    """Return a test of the suite, unaltered, that is expected to fail."""
    asked = getattr(VectorStoreIntegrationTests, name)
    copy = FunctionType(asked.__code__, asked.__globals__, name, asked.__defaults__)
    copy.__kwdefaults__ = asked.__kwdefaults__
    reason = "it wants the nearest of documents that share no word with the query"
    return pytest.mark.xfail(reason=reason, raises=AssertionError)(copy)


for _name in NEIGHBOURS:
    for _test in (_name, f"{_name}_async"):
        setattr(TestStandard, _test, without_neighbours(_test))


async def test_what_these_ask_holds_where_documents_share_a_word() -> None:
    """They are added, replaced and deleted, at once and awaited."""
    given = [Document("foo shared", metadata={"id": 1}), Document("bar shared", metadata={"id": 2})]
    for store in (BM25VectorStore(), await BM25VectorStore.afrom_texts([])):
        made = await store.aadd_documents(given)
        assert ids(store.similarity_search("bar shared", k=2)) == made[::-1]
        assert given[0].id is None
        assert store.delete(made[:1])
        assert ids(await store.asimilarity_search("foo shared")) == made[1:]
        assert store.add_documents(given, ids=["1", "2"]) == ["1", "2"]
        assert await store.aadd_documents(given, ids=["1", "2"]) == ["1", "2"]
        changed = Document("new foo shared", metadata={"other": True})
        assert store.add_documents([changed], ids=["1"]) == ["1"]
        assert store.get_by_ids(["1"]) == [
            Document("new foo shared", id="1", metadata={"other": True})
        ]
        assert await store.adelete(["1", "2", *made, "unknown"])
        assert store.similarity_search("shared") == []


# --- searching --------------------------------------------------------------------


@pytest.fixture
def store(index: BM25Index) -> BM25VectorStore:
    return BM25VectorStore(index)


def test_it_finds_what_the_retriever_finds(
    store: BM25VectorStore, retriever: BM25Retriever
) -> None:
    expected = retriever.invoke("cats", k=3)
    assert store.similarity_search("cats", k=3) == expected
    pairs = store.similarity_search_with_score("cats", k=3)
    assert [document for document, _ in pairs] == expected
    scores = [score for _, score in pairs]
    assert scores == [hit.score for hit in store.index.search("cats", 3)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "filter", [{"lang": "en"}, {"cat", "dogs"}, lambda document: document.metadata["lang"] == "en"]
)
async def test_a_filter_holds_for_every_result(store: BM25VectorStore, filter: Any) -> None:
    assert ids(store.similarity_search("cats", filter=filter)) == ["dogs", "cat"]
    asking = store.as_retriever(search_kwargs={"k": 1, "filter": filter, "min_score": 0.1})
    assert ids(asking.invoke("cats")) == ids(await asking.ainvoke("cats")) == ["dogs"]
    assert asking.invoke("cats", filter={"lang": "fr"}) == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda store: store.similarity_search("a", k=-1), ValueError, "k must be"),
        (lambda store: store.similarity_search(["a"]), TypeError, "query must be a str"),
        (lambda store: store.similarity_search("a", fetch_k=9), TypeError, "got fetch_k"),
        (lambda store: store.similarity_search("a", filter={"$no": 1}), FilterError, "no"),
        (lambda store: store.delete(), ValueError, "ids must be given"),
        (lambda store: store.delete(["a"], namespace="b"), TypeError, "not take namespace"),
        (lambda store: store.add_texts(["a"], batch_size=3), TypeError, "not take batch_size"),
        (lambda store: store.add_documents([Document("a")], ids=[]), ValueError, "ids must have"),
        (lambda store: store.add_documents([], ids=["a"]), ValueError, "more than 0"),
        (lambda store: store.add_documents(["a"]), TypeError, "LangChain Document"),
        (lambda store: store.similarity_search_by_vector([1.0]), NotImplementedError, "vectors"),
        (lambda store: store.max_marginal_relevance_search("a"), NotImplementedError, "vectors"),
        (
            lambda store: store.as_retriever(search_type="mmr").invoke("a"),
            NotImplementedError,
            "needs dense vectors",
        ),
        (
            lambda store: store.as_retriever(tags=["a"], k=1, filter={"lang": "en"}),
            TypeError,
            "not take k, filter: .* in search_kwargs",
        ),
        (
            lambda store: store.similarity_search_with_relevance_scores("a"),
            NotImplementedError,
            "Use min_score",
        ),
        (lambda store: BM25VectorStore("index"), TypeError, "must be a BM25Index"),
        (
            lambda store: BM25VectorStore.from_texts(["a"], [{"n": 1}]),
            TypeError,
            "metadatas come after it",
        ),
    ],
)
def test_what_it_cannot_do_is_said(
    store: BM25VectorStore, call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    before = store.index.ids()
    with pytest.raises(error, match=message):
        call(store)
    assert store.index.ids() == before


# --- making and keeping -----------------------------------------------------------


async def test_it_is_made_like_other_stores() -> None:
    embedding = DeterministicFakeEmbedding(size=4)
    texts, documents = ["Viele Häuser."], [Document("Viele Häuser.", id="a")]
    german = {"analyzer": Analyzer("german"), "bm25_params": {"k1": 0.9}}
    for made in (
        BM25VectorStore.from_texts(texts, embedding, [{"n": 1}], ids=["a"], **german),
        BM25VectorStore.from_documents(documents, embedding, **german),
        BM25VectorStore.from_documents(iter(documents), **german),
        await BM25VectorStore.afrom_texts(texts, ids=["a"], **german),
        await BM25VectorStore.afrom_documents(documents, **german),
    ):
        assert ids(made.similarity_search("Haus")) == ["a"]
        assert made.index.k1 == 0.9
    split = BM25VectorStore.from_documents(documents, preprocess_func=str.split)
    assert ids(split.similarity_search("Häuser.")) == ["a"]
    with pytest.raises(TypeError, match="argument 'collection_name'"):
        BM25VectorStore.from_texts(texts, collection_name="x")


def test_it_is_saved_and_opened(store: BM25VectorStore, tmp_path: Path) -> None:
    """As the retriever is: with a writer, readers and a way back."""
    store.save(tmp_path / "saved")
    reader = BM25VectorStore.open(tmp_path / "saved")
    assert reader.similarity_search("cats") == store.similarity_search("cats")
    with pytest.raises(ReadOnlyError):
        reader.add_texts(["a"])
    with BM25VectorStore.open(tmp_path / "saved", mode="w") as writer:
        writer.add_texts(["An owl hoots."], ids=["owl"])
    assert reader.refresh()
    assert ids(reader.similarity_search("owl")) == ["owl"]


# --- what LangChain builds on it --------------------------------------------------


def test_parent_documents_are_found_by_their_parts() -> None:
    """``ParentDocumentRetriever`` splits, stores and finds."""
    from langchain_classic.retrievers import ParentDocumentRetriever

    retriever = ParentDocumentRetriever(
        vectorstore=BM25VectorStore(),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=40, chunk_overlap=0),
        search_kwargs={"k": 2},
    )
    long = Document("A cat sat on the mat. " * 5 + "An owl hoots at night.", metadata={"n": 1})
    retriever.add_documents([long, Document("Dogs bark.", metadata={"n": 2})], ids=["x", "y"])
    assert retriever.invoke("owl") == [long]
    assert [document.metadata["n"] for document in retriever.invoke("dogs")] == [2]


def test_several_representations_lead_to_one_document() -> None:
    """``MultiVectorRetriever`` over summaries and questions."""
    from langchain_classic.retrievers.multi_vector import MultiVectorRetriever

    store = BM25VectorStore.from_texts(
        ["a summary about felines", "which pet purrs?", "a summary about canines"],
        metadatas=[{"doc_id": "cat"}, {"doc_id": "cat"}, {"doc_id": "dog"}],
    )
    retriever = MultiVectorRetriever(vectorstore=store, byte_store=InMemoryByteStore())
    retriever.docstore.mset([("cat", Document("Cats.")), ("dog", Document("Dogs."))])
    assert [document.page_content for document in retriever.invoke("pet felines")] == ["Cats."]


def test_the_indexing_api_keeps_it_in_step() -> None:
    store, records = BM25VectorStore(), InMemoryRecordManager("bm25")
    records.create_schema()

    def run(*texts: str, cleanup: Any = "full") -> tuple[int, int, int]:
        documents = [Document(text, metadata={"source": text[0]}) for text in texts]
        done = index(
            documents, records, store, cleanup=cleanup, source_id_key="source", key_encoder="sha256"
        )
        return done["num_added"], done["num_skipped"], done["num_deleted"]

    assert run("a cat", "b dog") == (2, 0, 0)
    assert run("a cat", "b owl") == (1, 1, 1)
    assert run("a cow", cleanup="incremental") == (1, 0, 1)
    results = store.similarity_search("cat dog owl cow")
    assert sorted(document.page_content for document in results) == ["a cow", "b owl"]


def test_a_model_writes_the_filter() -> None:
    pytest.importorskip("lark", reason="what LangChain parses structured queries with")
    from langchain_classic.chains.query_constructor.schema import AttributeInfo
    from langchain_classic.retrievers.self_query.base import SelfQueryRetriever

    store = BM25VectorStore.from_texts(
        ["old cats", "new cats", "new dogs"],
        metadatas=[{"day": "2019-05-01"}, {"day": date(2024, 5, 1)}, {"day": date(2024, 5, 2)}],
        ids=["old", "new", "dogs"],
    )
    answer = '{"query": "cats", "filter": "and(gt(\\"day\\", \\"2020-01-01\\"), ne(\\"n\\", 3))"}'
    retriever = SelfQueryRetriever.from_llm(
        FakeListChatModel(responses=[f"```json\n{answer}\n```"]),
        store,
        "Pets",
        [AttributeInfo(name=name, description=name, type="date") for name in ("day", "n")],
        structured_query_translator=BM25Translator(),
    )
    assert ids(retriever.invoke("newer cats")) == ["new"]


@pytest.mark.parametrize(
    ("comparator", "value", "expected"),
    [
        (Comparator.EQ, 2, {"n": {"$eq": 2}}),
        (Comparator.NE, "a", {"n": {"$ne": "a"}}),
        (Comparator.IN, ["a", "b"], {"n": {"$in": ["a", "b"]}}),
        (Comparator.NIN, [1], {"n": {"$nin": [1]}}),
        (Comparator.IN, "a", {"n": {"$in": ["a"]}}),  # as models write it, too
        (Comparator.CONTAIN, "a", {"n": {"$contains": "a"}}),
        (Comparator.CONTAIN, ["a", "b"], {"$or": [{"n": {"$contains": one}} for one in "ab"]}),
        (Comparator.CONTAIN, [], {"n": {"$containsAny": []}}),
        (
            Comparator.LTE,
            {"date": "2024-01-02", "type": "date"},
            {"n": {"$date": {"$lte": date(2024, 1, 2)}}},
        ),
        # LangChain's parser takes any text like a date for one, also in quotes.
        (
            Comparator.CONTAIN,
            {"date": "2024-01-02", "type": "date"},
            {"$or": [{"n": {"$contains": one}} for one in ("2024-01-02", date(2024, 1, 2))]},
        ),
        (
            Comparator.CONTAIN,
            [{"date": "2024-01-02", "type": "date"}],
            {"$or": [{"n": {"$contains": one}} for one in ("2024-01-02", date(2024, 1, 2))]},
        ),
        (Comparator.LT, {"date": "2024-02-30", "type": "date"}, {"n": {"$lt": "2024-02-30"}}),
        (Comparator.CONTAIN, {"date": "0000-00-00"}, {"n": {"$contains": "0000-00-00"}}),
        (
            Comparator.IN,
            [{"date": "2024-01-02", "type": "date"}, "soon"],
            {"$or": [{"n": {"$date": {"$in": [date(2024, 1, 2)]}}}, {"n": {"$in": ["soon"]}}]},
        ),
    ],
)
def test_comparisons_are_translated(
    comparator: Comparator, value: Any, expected: dict[str, Any]
) -> None:
    one = Comparison(comparator=comparator, attribute="n", value=value)
    filter = one.accept(BM25Translator())
    assert filter == expected
    assert BM25VectorStore().similarity_search("a", filter=filter) == []
    for operator in Operator:
        arguments = [one] if operator is Operator.NOT else [one, one]
        whole = Operation(operator=operator, arguments=arguments).accept(BM25Translator())
        assert whole == {f"${operator.value}": expected if len(arguments) == 1 else [expected] * 2}
        assert BM25VectorStore().similarity_search("a", filter=whole) == []


@pytest.mark.parametrize("beside", [[], ["soon"], ["never", 3]])
def test_what_is_beside_a_date_in_a_list_does_not_change_what_the_date_is(
    beside: list[Any],
) -> None:
    """Of metadata that hold the instant in any form, none is in the list and passes ``nin``."""
    forms = ["2024-01-02", "2024-01-02T00:00:00Z", date(2024, 1, 2), datetime(2024, 1, 2)]
    metadatas = [{"n": value} for value in [*forms, "soon", None]]
    store = BM25VectorStore.from_texts(["cat"] * 6, metadatas=metadatas, ids=list("012345"))
    values = [{"date": "2024-01-02", "type": "date"}, *beside]
    found = {}
    for comparator in (Comparator.IN, Comparator.NIN):
        one = Comparison(comparator=comparator, attribute="n", value=values)
        filter = one.accept(BM25Translator())
        found[comparator] = "".join(ids(store.similarity_search("cat", k=6, filter=filter)))
    expected = ("01234", "5") if "soon" in beside else ("0123", "45")
    assert (found[Comparator.IN], found[Comparator.NIN]) == expected


@pytest.mark.parametrize(("excluded", "expected"), [("a", "bc"), ("ab", "c"), ("abc", "")])
def test_not_of_several_conditions_passes_what_meets_none(excluded: str, expected: str) -> None:
    """As ``must_not`` of the translators for Elasticsearch, OpenSearch and Qdrant."""
    store = BM25VectorStore.from_texts(["cat"] * 3, metadatas=[{"n": n} for n in "abc"])
    conditions = [Comparison(comparator=Comparator.EQ, attribute="n", value=n) for n in excluded]
    none = Operation(operator=Operator.NOT, arguments=conditions).accept(BM25Translator())
    found = store.similarity_search("cat", filter=none)
    assert "".join(document.metadata["n"] for document in found) == expected


def test_a_text_contains_any_of_several_values() -> None:
    store = BM25VectorStore.from_texts(["cat"], metadatas=[{"n": "a tale"}], ids=["text"])
    store.add_texts(["cat"], [{"n": ["tale"]}], ids=["list"])
    one = Comparison(comparator=Comparator.CONTAIN, attribute="n", value=["tale", "poem"])
    found = store.similarity_search("cat", filter=one.accept(BM25Translator()))
    assert ids(found) == ["text", "list"]


def test_what_filters_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="disallowed"):
        Comparison(comparator=Comparator.LIKE, attribute="n", value="a").accept(BM25Translator())
