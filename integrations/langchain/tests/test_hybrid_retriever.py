"""BM25HybridRetriever: k, filter and ids hold for both parts, and faults are named."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ids
from langchain_bm25rag import BM25HybridRetriever, BM25Retriever
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from bm25rag.errors import MetadataError, ReadOnlyError
from bm25rag.fusion import fuse


class Letters(Embeddings):
    """Embeds a text by its groups of three letters, so that "dreamlike" is near "dreams"."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.001] * 64
        for start in range(len(text) - 2):
            vector[zlib.crc32(text[start : start + 3].lower().encode()) % 64] += 1
        return vector


@pytest.fixture
def store() -> InMemoryVectorStore:
    return InMemoryVectorStore(Letters())


@pytest.fixture
def hybrid(documents: list[Document], store: InMemoryVectorStore) -> BM25HybridRetriever:
    return BM25HybridRetriever.from_documents(documents, store)


def ask(retriever: Any, query: str, **keywords: Any) -> list[Document]:
    """Ask in the sync and the async way; the answers must be equal."""
    documents: list[Document] = retriever.invoke(query, **keywords)
    assert asyncio.run(retriever.ainvoke(query, **keywords)) == documents
    return documents


# --- what is found ------------------------------------------------------------------


def rankings(
    hybrid: BM25HybridRetriever, query: str, filter: Any = None
) -> list[list[tuple[str, float]]]:
    lexical = hybrid.index.search(query, 50, filter)
    passing = hybrid.index.ids(filter)
    dense = hybrid.vector_store.similarity_search_with_score(query, k=100)
    scored = [(document.id or "", score) for document, score in dense]
    return [[(hit.id, hit.score) for hit in lexical], [one for one in scored if one[0] in passing]]


@pytest.mark.parametrize("method", ["minmax", "zscore", "rrf"])
@pytest.mark.parametrize("filter", [None, {"lang": "en"}, {"cat", "bird"}])
def test_results_are_the_fusion_of_both_under_the_filter(
    hybrid: BM25HybridRetriever, method: Any, filter: Any
) -> None:
    """With the method and the weights, and k of the call; as they were stored."""
    hybrid = hybrid.model_copy(update={"method": method, "weights": [0.7, 0.3]})
    expected = fuse(rankings(hybrid, "dreamlike cats", filter), method, [0.7, 0.3])
    results = ask(hybrid, "dreamlike cats", k=9, filter=filter)
    assert ids(results) == [id for id, _ in expected]
    assert ids(ask(hybrid, "dreamlike cats", k=2, filter=filter)) == ids(results)[:2]
    stored = BM25Retriever.from_index(hybrid.index).get_by_ids([id for id, _ in expected])
    assert results == stored


def test_what_one_part_misses_is_found(hybrid: BM25HybridRetriever) -> None:
    """BM25 finds no word of the query, and the vector store is not asked for all."""
    assert hybrid.index.search("dreamlike") == []
    assert ids(ask(hybrid, "dreamlike", k=1)) == ["cats"]
    narrow = hybrid.model_copy(update={"fetch_k": 1})
    assert "bird" in ids(ask(narrow, "bird"))


def test_a_callable_filter_takes_documents(hybrid: BM25HybridRetriever) -> None:
    """As in the other retrievers, and it holds for what the vector store finds."""
    documents = ask(
        hybrid, "dreamlike cats", filter=lambda document: "bird" in document.page_content
    )
    assert ids(documents) == ["bird"]


def test_few_that_pass_are_found_however_deep_they_are(store: InMemoryVectorStore) -> None:
    """The vector store knows no filter, and has them last."""
    many = [Document("cats", id=str(n), metadata={"last": n == 99}) for n in range(99)]
    last = Document("nothing alike", id="99", metadata={"last": True})
    hybrid = BM25HybridRetriever.from_documents([*many, last], store, fetch_k=2, k=2)
    assert ids(ask(hybrid, "cats", filter={"last": True})) == ["99"]


def test_a_filter_can_be_translated(hybrid: BM25HybridRetriever) -> None:
    """For the constructor's filter and that of a call; a translation that errs leaks nothing."""
    given: list[Any] = []

    def translate(filter: Any) -> dict[str, Any]:
        given.append(filter)
        return {"filter": lambda document: "year" in document.metadata}

    english = hybrid.model_copy(update={"filter": {"lang": "en"}, "translate_filter": translate})
    expected = ids(ask(hybrid, "cats", filter={"lang": "en"}))
    assert ids(ask(english, "cats")) == expected
    assert ids(ask(english, "dreamlike", filter={"year": 2022})) == ["bird"]
    assert given == [{"lang": "en"}] * 2 + [{"year": 2022}] * 2
    assert len(ask(english, "cats", filter={})) == 4, "an empty filter lifts the constructor's"
    assert ids(ask(english, "cats", filter={"cats"})) == ["cats"], "sets are not translated"
    assert len(given) == 4


def test_other_arguments_reach_the_vector_store(hybrid: BM25HybridRetriever) -> None:
    keywords = {"filter": lambda document: document.id == "bird"}
    narrow = hybrid.model_copy(update={"search_kwargs": keywords})
    assert set(ids(ask(narrow, "cats"))) == {"cats", "cat", "dogs", "bird"}


def test_bound_and_configured_settings_hold(hybrid: BM25HybridRetriever) -> None:
    assert ids(ask(hybrid.bind(k=1, filter={"lang": "de"}), "cats")) == ["cats"]
    fields = {"filter": ConfigurableField(id="only"), "weights": ConfigurableField(id="weights")}
    documents = hybrid.configurable_fields(**fields).invoke(
        "cats", {"configurable": {"only": {"lang": "de"}, "weights": [1, 0]}}
    )
    assert ids(documents) == ["cats"]


def test_the_fused_score_is_given(documents: list[Document], store: InMemoryVectorStore) -> None:
    """Under a key of the metadata; the index keeps its own."""
    hybrid = BM25HybridRetriever.from_documents(documents, store, score_key="score")
    expected = dict(fuse(rankings(hybrid, "cats")))
    for document in ask(hybrid, "cats"):
        assert document.metadata["score"] == expected[document.id or ""]
    assert ask(hybrid, "cats", filter=lambda document: "score" in document.metadata) == []


# --- re-ranking ----------------------------------------------------------------------


class Longest(BaseDocumentCompressor):
    """Ranks by length, and keeps some."""

    top_n: int = 3

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        assert callbacks is not None
        return sorted(documents, key=lambda one: -len(one.page_content))[: self.top_n]


def test_a_reranker_gets_all_that_was_fused(hybrid: BM25HybridRetriever) -> None:
    again = hybrid.model_copy(update={"reranker": Longest()})
    assert ids(ask(again, "dreamlike cats", k=2)) == ["cats", "cat"]
    assert len(ask(again, "dreamlike cats", k=9)) == 3
    assert ids(ask(again, "cats", filter={"lang": "en"}))[0] == "cat"


# --- writing, saving --------------------------------------------------------------------


def test_writes_reach_both(hybrid: BM25HybridRetriever) -> None:
    """Under one id, which documents without one get, too; equal ids are one."""
    (new,) = hybrid.add_documents([Document("An owl hoots.")])
    assert hybrid.vector_store.get_by_ids([new])[0].page_content == "An owl hoots."
    assert ids(ask(hybrid, "hooting", k=1)) == [new]
    twice = [Document("an owl", id="owl"), Document("two owls", id="owl")]
    assert asyncio.run(hybrid.aadd_documents(twice)) == ["owl", "owl"]
    assert [one.page_content for one in ask(hybrid, "owl", filter={"owl"})] == ["two owls"]
    assert hybrid.vector_store.get_by_ids(["owl"])[0].page_content == "two owls"
    assert hybrid.delete([new])["succeeded"] == [new]
    assert asyncio.run(hybrid.adelete(["owl"]))["succeeded"] == ["owl"]
    assert hybrid.vector_store.get_by_ids([new, "owl"]) == []
    assert (hybrid.add_documents([]), hybrid.delete([])["num_deleted"]) == ([], 0)
    assert asyncio.run(hybrid.aadd_documents([])) == []
    assert asyncio.run(hybrid.adelete([]))["num_deleted"] == 0


def test_a_saved_index_is_opened_beside_a_vector_store(
    hybrid: BM25HybridRetriever, tmp_path: Path
) -> None:
    """Where the index lags behind the vector store, it may leave out what it does not know."""
    hybrid.save(tmp_path / "saved")
    fields = {"vector_store": hybrid.vector_store, "k": 2}
    again = BM25HybridRetriever.open(tmp_path / "saved", **fields)
    assert ask(again, "dreamlike cats") == ask(hybrid, "dreamlike cats", k=2)
    hybrid.add_documents([Document("dreamlike", id="new")])
    with pytest.raises(ValueError, match="'new', which is not in the BM25 index"):
        again.invoke("dreamlike")
    behind = BM25HybridRetriever(index=again.index, on_unknown="skip", **fields)
    assert ids(ask(behind, "dreamlike", k=1)) == ["cats"]


def test_documents_can_be_added_without_blocking(documents: list[Document]) -> None:
    """The asynchronous constructor does what the other does."""
    store = InMemoryVectorStore(Letters())
    hybrid = asyncio.run(BM25HybridRetriever.afrom_documents(documents, store, k=1))
    assert ids(ask(hybrid, "dreamlike")) == ["cats"]
    assert len(store.store) == len(documents)


# --- faults ---------------------------------------------------------------------------


class Answering(VectorStore):
    """Answers every search alike."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def add_texts(self, texts: Any, metadatas: Any = None, **_: Any) -> list[str]:
        return ["mine" for _ in texts]

    def delete(self, ids: Any = None, **_: Any) -> bool:
        return False

    def similarity_search(self, query: str, k: int = 4, **_: Any) -> list[Document]:
        raise AssertionError

    def similarity_search_with_score(self, *_: Any, **__: Any) -> list[tuple[Document, float]]:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return list(self.answer)

    @classmethod
    def from_texts(cls, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (TimeoutError("5 s"), RuntimeError, "the vector store, Answering, failed: TimeoutError: 5"),
        (ValueError("3 != 4"), RuntimeError, "the vector store, Answering, failed: ValueError: 3"),
        ([(Document("cats", metadata={"_id": 1}), 1.0)], RuntimeError, r"without id: .*\['_id'\]"),
        ([(Document("x", id="x"), 1.0)], ValueError, "'x', which is not in the BM25 index"),
        ([(Document("c", id="cat"), float("nan"))], ValueError, "score of 'cat' .* nan"),
    ],
)
def test_a_fault_of_the_vector_store_is_named(
    hybrid: BM25HybridRetriever, answer: Any, error: type[Exception], message: str
) -> None:
    """In both ways, with what caused it; what is written goes to the index first."""
    broken = hybrid.model_copy(update={"vector_store": Answering(answer)})
    with pytest.raises(error, match=message) as raised:
        broken.invoke("cats")
    with pytest.raises(error, match=message) as raised_async:
        asyncio.run(broken.ainvoke("cats"))
    if isinstance(answer, Exception):
        assert raised.value.__cause__ is answer
        assert type(raised_async.value.__cause__) is type(answer)
    assert ids(broken.with_fallbacks([BM25Retriever(index=hybrid.index)]).invoke("cats"))


def test_a_write_that_the_vector_store_refuses_loses_nothing(hybrid: BM25HybridRetriever) -> None:
    """An added document stays in the index, a deleted one too."""
    broken = hybrid.model_copy(update={"vector_store": Answering([])})
    for write in (broken.add_documents, lambda it: asyncio.run(broken.aadd_documents(it))):
        with pytest.raises(RuntimeError, match="under ids of its own"):
            write([Document("An owl.", id="owl")])
        assert ids(ask(broken, "owl")) == ["owl"]
    for delete in (broken.delete, lambda ids: asyncio.run(broken.adelete(ids))):
        with pytest.raises(RuntimeError, match="says that it did not delete"):
            delete(["owl"])
        assert "owl" in broken.index
    with pytest.raises(MetadataError):
        hybrid.add_documents([Document("An owl.", id="owl2", metadata={"x": object()})])
    assert hybrid.vector_store.get_by_ids(["owl2"]) == []


def test_nothing_is_deleted_beside_an_index_that_is_only_read(
    hybrid: BM25HybridRetriever, tmp_path: Path
) -> None:
    """Otherwise, the vector store would lack what the index still has."""
    hybrid.save(tmp_path / "saved")
    reader = BM25HybridRetriever.open(tmp_path / "saved", vector_store=hybrid.vector_store)
    for delete in (reader.delete, lambda ids: asyncio.run(reader.adelete(ids))):
        with pytest.raises(ReadOnlyError):
            delete(["cats"])
        assert ids(hybrid.vector_store.get_by_ids(["cats"])) == ["cats"]


class Refusing(InMemoryVectorStore):
    """Takes no id twice, and deletes only what it has, as FAISS does."""

    def add_documents(self, documents: list[Document], ids: Any = None, **keywords: Any) -> Any:
        if self.get_by_ids(ids):
            raise ValueError("ids that already exist")
        return super().add_documents(documents, ids, **keywords)

    async def aadd_documents(self, documents: list[Document], ids: Any = None, **_: Any) -> Any:
        return self.add_documents(documents, ids)

    def delete(self, ids: Any = None, **_: Any) -> None:
        if len(self.get_by_ids(ids)) != len(ids):
            raise ValueError("ids that do not exist")
        super().delete(ids)

    async def adelete(self, ids: Any = None, **_: Any) -> None:
        self.delete(ids)


def test_documents_are_replaced_in_a_store_that_takes_no_id_twice(
    documents: list[Document],
) -> None:
    """Also if it lacks one of them, which a call that failed has left to the index alone."""
    hybrid = BM25HybridRetriever.from_documents(documents, Refusing(Letters()))
    hybrid.index.add(["An owl."], ids=["owl"])
    for add in (hybrid.add_documents, lambda them: asyncio.run(hybrid.aadd_documents(them))):
        add([Document("A new owl.", id="owl"), Document("Owls and cats.", id="cats")])
        stored = hybrid.vector_store.get_by_ids(["owl", "cats"])
        assert [one.page_content for one in stored] == ["A new owl.", "Owls and cats."]
        assert set(ids(ask(hybrid, "owls", k=2))) == {"owl", "cats"}


def test_distances_are_understood(hybrid: BM25HybridRetriever) -> None:
    """Some stores return them, best first, where others return similarities."""
    pairs = hybrid.vector_store.similarity_search_with_score("dreamlike cats", k=100)
    distances = Answering([(document, 1 - score) for document, score in pairs])
    other = hybrid.model_copy(update={"vector_store": distances})
    assert ids(ask(other, "dreamlike cats")) == ids(ask(hybrid, "dreamlike cats"))


def test_ids_may_be_in_the_metadata(hybrid: BM25HybridRetriever) -> None:
    pairs = hybrid.vector_store.similarity_search_with_score("dreamlike cats", k=100)
    answer = [(Document("", metadata={"_id": one.id}), score) for one, score in pairs]
    changed = {"vector_store": Answering(answer), "store_id_key": "_id"}
    other = hybrid.model_copy(update=changed)
    assert ask(other, "dreamlike cats") == ask(hybrid, "dreamlike cats")
    wrong = hybrid.model_copy(update=changed | {"store_id_key": "id"})
    with pytest.raises(RuntimeError, match="without 'id' in its metadata: "):
        wrong.invoke("cats")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"k": -1}, ValueError, "k must be"),
        ({"fetch_k": -1}, ValueError, "fetch_k must be"),
        ({"method": "sum"}, ValueError, "method"),
        ({"weights": [1, 2, 3]}, ValueError, "weights must have one for each of 2"),
        ({"filter": {"lang": {"$no": 1}}}, ValueError, "unknown operator"),
        ({"on_unknown": "raise"}, ValueError, "on_unknown"),
        ({"vector_store": "chroma"}, ValueError, "vector_store"),
        ({"top_k": 3}, ValueError, "top_k"),
    ],
)
def test_wrong_settings_are_refused_at_once(
    hybrid: BM25HybridRetriever, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BM25HybridRetriever(
            **({"index": hybrid.index, "vector_store": hybrid.vector_store} | arguments)
        )


def test_wrong_arguments_of_a_call_are_refused(hybrid: BM25HybridRetriever) -> None:
    with pytest.raises(TypeError, match="takes k, filter and min_score for each call, got top_k"):
        hybrid.invoke("cats", top_k=1)
    with pytest.raises(ValueError, match="k must be"):
        hybrid.invoke("cats", k=-1)
    with pytest.raises(TypeError, match="query must be a str"):
        hybrid.invoke({"question": "cats"})  # type: ignore[arg-type]
