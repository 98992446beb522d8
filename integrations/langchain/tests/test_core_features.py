"""What the core can, through LangChain: pages, weights, correction, expansion, filters, writes."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import numpy as np
import pytest
from conftest import arguments, ids
from langchain_bm25rag import BM25DocumentIndex, BM25HybridRetriever, BM25Retriever, BM25VectorStore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag.errors import DuplicateIdError, FilterError, MetadataError
from bm25rag.fusion import FusionMethod

MANY = [
    Document(f"cat number {n}" + " cat" * (n % 3), id=str(n), metadata={"even": n % 2 == 0})
    for n in range(10)
]


@pytest.fixture(params=[BM25Retriever, BM25DocumentIndex, BM25VectorStore])
def ask(request: pytest.FixtureRequest) -> Any:
    """Return a function that asks an index in both ways, and compares the answers."""

    def call(documents: list[Document], query: Any, **keywords: Any) -> list[Document]:
        index = BM25Retriever.from_documents(documents).index
        made = request.param(index=index)
        asked = made.as_retriever() if isinstance(made, BM25VectorStore) else made
        results: list[Document] = asked.invoke(query, **keywords)
        assert asyncio.run(asked.ainvoke(query, **keywords)) == results
        assert asked.batch([query], **keywords) == [results]
        return results

    return call


# --- asking ---------------------------------------------------------------------------


def test_pages_follow_one_another(ask: Any) -> None:
    whole = ask(MANY, "cat", k=10)
    assert [one for n in range(0, 12, 3) for one in ask(MANY, "cat", k=3, offset=n)] == whole


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_filter_alone_lists_what_passes_in_document_order(ask: Any, query: str) -> None:
    even = {"even": True}
    assert ids(ask(MANY, query, filter=even, k=3)) == ["0", "2", "4"]
    assert ids(ask(MANY, query, filter=even, k=3, offset=3)) == ["6", "8"]
    assert ids(ask(MANY, query, filter=lambda one: one.id == "7")) == ["7"]
    assert ids(ask(MANY, query, filter={"7", "1"})) == ["1", "7"]
    assert ask(MANY, query, filter=set()) == ask(MANY, query, filter={}) == ask(MANY, query) == []
    assert ids(ask(MANY, query, filter=even, k=3, min_score=0.1)) == ["0", "2", "4"]
    with pytest.raises(ValueError, match="min_score must be"):
        ask(MANY, query, filter=even, min_score=float("nan"))
    with pytest.raises(ValueError, match="k must be"):
        ask(MANY, query, filter=even, k=-1)


def test_a_filter_alone_has_scores_of_0() -> None:
    retriever = BM25Retriever.from_documents(MANY, filter={"even": True}, score_key="s", id_key="i")
    first, *_ = retriever.invoke("")
    assert first.metadata == {"even": True, "s": 0.0, "i": "0"}
    store = BM25VectorStore(retriever.index)
    assert store.similarity_search_with_score("", 1, filter={"5"}) == [(MANY[5], 0.0)]


def test_weights_of_terms_are_a_question_and_other_dicts_are_not(ask: Any) -> None:
    documents = [Document("red cat", id="red"), Document("blue cat", id="blue")]
    assert ids(ask(documents, {"cat": 1, "blue": 0.1})) == ["blue", "red"]
    assert ids(ask(documents, {"cat": 1.0, "red": 2.0}))[0] == "red"
    for wrong in ({"question": "cat"}, {"cat": 1, "question": "x"}, {}):
        with pytest.raises(TypeError, match=r"pick the text first, as in itemgetter\('question'\)"):
            ask(documents, wrong)


def test_misspelt_words_are_corrected(ask: Any) -> None:
    documents = [Document("a kitten", id="k"), Document("a dog", id="d")]
    assert ask(documents, "kiten") == []
    assert ids(ask(documents, "kiten", correct=True)) == ["k"]


def test_a_question_is_expanded(ask: Any) -> None:
    """By words of the documents that answer it, and only of those that pass the filter."""
    documents = [
        Document("kitten whiskers", id="a"),
        Document("whiskers", id="b"),
        Document("dog", id="c"),
    ]
    assert ids(ask(documents, "kitten")) == ["a"]
    assert ids(ask(documents, "kitten", expand=True)) == ["a", "b"]
    assert ids(ask(documents, "kiten", expand=True, correct=True)) == ["a", "b"]
    assert ask(documents, "kitten", expand=True, filter={"b", "c"}) == []


def test_they_are_fields_too() -> None:
    fields = BM25Retriever.from_texts(["kitten whiskers", "whiskers"], correct=True, expand=True)
    assert len(fields.invoke("kiten")) == 2
    assert fields.invoke("kiten", correct=False) == []
    page = fields.configurable_fields(offset=ConfigurableField(id="offset"))
    assert len(page.invoke("kiten", {"configurable": {"offset": 1}})) == 1


def test_what_needs_bm25_alone_says_so() -> None:
    class Encoder:
        def embed_query(self, text: str) -> dict[str, float]:
            return {"x": 1.0}

        def embed_documents(self, texts: list[str]) -> list[dict[str, float]]:
            return [{"x": 1.0} for _ in texts]

    store = BM25VectorStore.from_documents(MANY, sparse_embedding=Encoder())
    for keywords in ({"correct": True}, {"expand": True}):
        with pytest.raises(ValueError, match="needs retrieval_mode='bm25', got 'hybrid'"):
            store.similarity_search("cat", **keywords)
        assert store.similarity_search("cat", retrieval_mode="bm25", **keywords)
    with pytest.raises(ValueError, match="weights or parts needs retrieval_mode='bm25'"):
        store.similarity_search({"cat": 1.0})
    for mode in ("sparse", "hybrid"):
        whole = store.similarity_search("cat", 10, retrieval_mode=mode)
        assert store.similarity_search("cat", 3, offset=2, retrieval_mode=mode) == whole[2:5]
        assert ids(store.similarity_search("", filter={"3"}, retrieval_mode=mode)) == ["3"]


class Kind(StrEnum):
    PET = "pet"


@pytest.mark.parametrize(
    "value",
    [
        Kind.PET,
        UUID(int=7),
        Decimal("1.50"),
        ("a", "b"),
        Path("docs"),
        datetime(2024, 1, 2, tzinfo=UTC),
        np.int64(1),
        True,
    ],
)
def test_a_filter_takes_what_metadata_take(ask: Any, value: Any) -> None:
    documents = [Document("a cat", id="it", metadata={"x": value}), Document("a cat", id="other")]
    for filter in ({"x": value}, {"x": {"$in": [value]}}, {"x": {"$eq": value}}):
        assert ids(ask(documents, "cat", filter=filter)) == ["it"]


def test_lists_of_groups_are_filtered_on(ask: Any) -> None:
    documents = [
        Document("cat", id="a", metadata={"acl": ["x", "y"]}),
        Document("cat", id="b", metadata={"acl": ["z"]}),
    ]
    assert ids(ask(documents, "cat", filter={"acl": {"$containsAny": ("y", "q")}})) == ["a"]
    assert ids(ask(documents, "cat", filter={"acl": {"$containsAll": ["x", "y"]}})) == ["a"]


def test_a_strict_filter_is_strict_beside_a_callable(ask: Any) -> None:
    for strict in ({"evn": True}, {"$and": [{"even": True}, {"evn": True}]}):
        filter = {"$and": [{"$strict": strict}, lambda one: True]}
        with pytest.raises(FilterError, match="evn"):
            ask(MANY, "cat", filter=filter)
        with pytest.raises(FilterError, match="evn"):
            ask(MANY, "cat", filter={"$strict": {"$and": [strict, lambda one: True]}})


# --- writing --------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [BM25Retriever, BM25DocumentIndex, BM25VectorStore])
async def test_deleting_by_filter_updating_and_duplicates(cls: Any) -> None:
    store = cls(index=BM25Retriever.from_documents(MANY).index)
    store.delete(filter={"even": True})
    await store.adelete(["1", "3"], filter=lambda one: one.id == "3")
    assert store.index.ids() == ["1", "5", "7", "9"]
    with pytest.raises((TypeError, ValueError), match="ids must be"):
        store.delete()
    with pytest.raises(ValueError, match=r"filter"):
        store.delete(filter={})
    assert store.update_metadata(["1", "nobody"], [{"n": 1}, None]) == ["1"]
    assert await store.aupdate_metadata(iter(["5"]), iter([{"n": 5}])) == ["5"]
    assert store.get_by_ids(["5"])[0].metadata == {"n": 5}
    with pytest.raises(MetadataError, match=r"^metadatas\[0\]: "):
        store.update_metadata(["1"], [{"x": object()}])
    for wrong in (0, "", [], [("n", 2)]):
        with pytest.raises(TypeError, match="metadata of document '1' must be a dict or None"):
            store.update_metadata(["1"], [wrong])
    add = store.upsert if cls is BM25DocumentIndex else store.add_documents
    new = [Document("other", id="1"), Document("new", id="new")]
    with pytest.raises(DuplicateIdError):
        add(new, on_duplicate="error")
    added = add(new, on_duplicate="skip")
    assert (added["succeeded"] if isinstance(added, dict) else added) == ["new"]
    assert store.get_by_ids(["1"])[0].page_content == MANY[1].page_content


async def test_rolling_back_by_hand(tmp_path: Path) -> None:
    with BM25VectorStore.open(tmp_path, mode="a") as writer:
        writer.add_texts(["a"], ids=["a"])
        writer.rollback()
        await writer.aadd_texts(["b"], ids=["b"])
        await writer.arollback()
    assert BM25Retriever.open(tmp_path).index.ids() == []


# --- async iterables ------------------------------------------------------------------


async def lazily(count: int, seen: list[int] | None = None) -> AsyncIterator[Document]:
    """Yield documents as ``alazy_load`` does."""
    for number in range(count):
        await asyncio.sleep(0)
        if seen is not None:
            seen.append(number)
        yield Document(f"a cat {number}", id=str(number))


async def texts(count: int) -> AsyncIterator[str]:
    async for document in lazily(count):
        yield document.page_content


async def test_async_iterables_are_taken_by_all_that_add() -> None:
    beside = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    stores: list[Any] = [
        await BM25Retriever.afrom_documents(lazily(250)),
        await BM25Retriever.afrom_texts(texts(250), ids=map(str, range(250))),
        await BM25VectorStore.afrom_documents(lazily(250)),
        await BM25VectorStore.afrom_texts(texts(250), None, ids=map(str, range(250))),
        await BM25HybridRetriever.afrom_documents(lazily(250), beside),
        await BM25HybridRetriever.afrom_documents(documents=lazily(250), vector_store=beside),
    ]
    for adding in (BM25Retriever(), BM25VectorStore(), BM25HybridRetriever(vector_store=beside)):
        await adding.aadd_documents(lazily(250))
        stores.append(adding)
    added = BM25VectorStore()
    assert len(await added.aadd_texts(texts(250), ids=map(str, range(250)))) == 250
    for store in (*stores, added):
        assert sorted(store.index.ids()) == sorted(map(str, range(250)))


async def test_async_iterables_are_read_a_few_at_a_time() -> None:
    alive: list[int] = []

    async def pages() -> AsyncIterator[Document]:
        for number in range(3000):
            if number % 500 == 0:
                gc.collect()
                alive.append(sum(type(one) is Document for one in gc.get_objects()))
            yield Document(f"a cat {number}", metadata={"n": number})

    store = await BM25VectorStore.afrom_documents(pages())
    assert len(store.index) == 3000
    assert max(alive) - alive[0] < 2500


async def test_an_error_or_a_cancellation_inside_writes_nothing() -> None:
    store, seen = BM25VectorStore(), list[int]()

    async def broken() -> AsyncIterator[Document]:
        yield Document("a cat")
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        await store.aadd_documents(broken())
    task = asyncio.create_task(store.aadd_documents(lazily(10**9, seen)))
    while len(seen) < 500:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.aadd_texts(["after"], ids=["after"]) == ["after"]
    assert store.index.ids() == ["after"]


def test_a_synchronous_method_says_who_takes_them() -> None:
    for call in (
        lambda: BM25Retriever().add_documents(lazily(1)),  # type: ignore[arg-type]
        lambda: BM25VectorStore.from_texts(texts(1)),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=r"got async_generator: .* such as aadd_documents"):
            call()


# --- messages and signatures ----------------------------------------------------------


def test_one_document_is_to_be_put_in_a_list() -> None:
    one: Any = Document("a")
    beside = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    for call in (
        lambda: BM25Retriever.from_documents(one),
        lambda: BM25VectorStore.from_documents(one),
        lambda: BM25VectorStore().add_documents(one),
        lambda: asyncio.run(BM25VectorStore().aadd_documents(one)),
        lambda: BM25DocumentIndex().upsert(one),
        lambda: BM25HybridRetriever.from_documents(one, beside),
    ):
        with pytest.raises(TypeError, match=r"^documents must be .*, got one Document: put it in "):
            call()


def test_a_store_says_where_fetch_k_belongs() -> None:
    message = r"^BM25VectorStore takes .* got fetch_k: .*fetch_k belong to the store's constructor$"
    with pytest.raises(TypeError, match=message):
        BM25VectorStore().similarity_search("a", fetch_k=3)


def test_metadata_of_documents_without_ids_are_named_by_their_row() -> None:
    bad = Document("a", metadata={"x": object()})
    beside = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    for call in (
        lambda: BM25Retriever.from_documents([Document("a"), bad]),
        lambda: BM25VectorStore().add_documents([Document("a"), bad]),
        lambda: BM25HybridRetriever.from_documents([Document("a"), bad], beside),
    ):
        with pytest.raises(MetadataError, match=r"^documents\[1\]: metadata at 'x': "):
            call()
    with pytest.raises(MetadataError, match=r"^documents\[1\]: metadata of document 'mine' at 'x'"):
        BM25VectorStore().add_documents([Document("a"), bad], ids=[None, "mine"])


COMMON = {"k", "filter", "min_score"}
STORE = {"sparse_embedding", "retrieval_mode", "fetch_k", "method", "weights"}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (BM25Retriever.from_texts, COMMON | {"score_key", "id_key", "correct", "expand"}),
        (BM25Retriever.from_documents, COMMON | {"score_key", "id_key", "correct", "expand"}),
        (BM25Retriever.afrom_documents, COMMON | {"analyzer", "bm25_params"}),
        (BM25Retriever.open, COMMON | {"mode", "score_key"}),
        (BM25DocumentIndex.open, COMMON | {"mode"}),
        (BM25HybridRetriever.from_documents, COMMON | {"vector_store", "method", "weights"}),
        (BM25HybridRetriever.open, COMMON | {"vector_store", "method", "mode"}),
        (BM25VectorStore.from_texts, STORE),
        (BM25VectorStore.from_documents, STORE | {"ids", "analyzer"}),
        (BM25VectorStore.afrom_texts, STORE),
        (BM25VectorStore.open, STORE | {"mode"}),
        (BM25VectorStore.asimilarity_search, COMMON | {"offset", "correct"}),
    ],
)
def test_arguments_are_spelt_out(method: Any, expected: set[str]) -> None:
    """One by one, or in the ``TypedDict`` of the keywords."""
    assert set(arguments(method)) >= expected


def test_methods_are_a_closed_set() -> None:
    assert set(get_args(FusionMethod)) == {"minmax", "zscore", "rrf"}
    for annotation in (
        inspect.signature(BM25VectorStore).parameters["method"].annotation,
        BM25HybridRetriever.__annotations__["method"],
    ):
        assert annotation == "FusionMethod"


def test_a_store_has_a_repr() -> None:
    assert repr(BM25VectorStore.from_texts(["a"])).startswith(
        "BM25VectorStore(index=BM25Index(1 document"
    )


async def test_all_that_support_with_support_async_with(tmp_path: Path) -> None:
    """It commits, or after an error goes back, and gives up the lock."""
    beside = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    for number, (cls, fields) in enumerate(
        [
            (BM25Retriever, {}),
            (BM25DocumentIndex, {}),
            (BM25VectorStore, {}),
            (BM25HybridRetriever, {"vector_store": beside}),
        ]
    ):
        opened: Any = cls
        path = tmp_path / str(number)
        async with opened.open(path, mode="w", **fields) as writer:
            assert type(writer) is cls
            writer.index.add(["a cat"], ids=["a"])

        async def fail(opened: Any = opened, path: Path = path, fields: Any = fields) -> None:
            async with opened.open(path, mode="w", **fields) as writer:
                writer.index.add(["a dog"], ids=["b"])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        async with opened.open(path, **fields) as reader:
            assert reader.index.ids() == ["a"]
