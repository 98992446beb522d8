"""BM25VectorStore with learned sparse vectors: stored beside the texts, searched, fused."""

from __future__ import annotations

import asyncio
import math
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ids
from langchain_bm25rag import BM25Retriever, BM25VectorStore, SparseEmbeddings
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests
from pydantic import BaseModel

from bm25rag import BM25Index
from bm25rag.errors import FilterError, MetadataError, ReadOnlyError
from bm25rag.fusion import fuse

# What a learned encoder knows and BM25 does not: words that mean about the same.
MEANINGS = {"kitten": "cat", "feline": "cat", "hound": "dog", "puppy": "dog", "robin": "bird"}


class SparseVector(BaseModel):
    """A vector as langchain-qdrant has it."""

    indices: list[int]
    values: list[float]


class Encoder:
    """Stands in for a learned encoder: a number for each meaning, and one that all texts have."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def weights(self, text: str) -> dict[int, float]:
        weights = {0: 0.01}
        for word in text.lower().replace(".", "").replace(";", "").split():
            number = zlib.crc32(MEANINGS.get(word, word.rstrip("s")).encode()) % 30000
            weights[number] = math.sqrt(weights.get(number, 0) ** 2 + 1.1)
        return {number: weight / len(weights) for number, weight in weights.items()}

    def form(self, weights: dict[int, float]) -> Any:
        return SparseVector(indices=[*weights], values=[*weights.values()])

    def embed_documents(self, texts: list[str]) -> list[Any]:
        self.asked += texts
        return [self.form(self.weights(text)) for text in texts]

    def embed_query(self, text: str) -> Any:
        return self.form(self.weights(text))


class Numbers(Encoder):
    """Returns dicts, as the functions for langchain-milvus do, with NumPy's numbers."""

    def form(self, weights: dict[int, float]) -> Any:
        return {np.int32(number): np.float64(weight) for number, weight in weights.items()}


class Terms(Encoder):
    """Returns dicts by term."""

    def form(self, weights: dict[int, float]) -> Any:
        return {str(number): weight for number, weight in weights.items()}


class Lists(Encoder):
    """Returns dicts of two lists, as Pinecone's encoders do."""

    def form(self, weights: dict[int, float]) -> Any:
        return {"indices": [*weights], "values": [*weights.values()]}


class Rows(Encoder):
    """Returns the rows of a SciPy array."""

    def __init__(self) -> None:
        super().__init__()
        self.scipy = pytest.importorskip("scipy.sparse", reason="a form of vectors")

    def form(self, weights: dict[int, float]) -> Any:
        numbers = sorted(weights)
        row = ([weights[number] for number in numbers], ([0] * len(numbers), numbers))
        return self.scipy.csr_array(row, shape=(1, 30000))


class Awaited(Encoder):
    """Has asynchronous methods, and notes that they were awaited."""

    awaited = 0

    async def aembed_documents(self, texts: list[str]) -> list[Any]:
        await asyncio.sleep(0)
        self.awaited += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> Any:
        await asyncio.sleep(0)
        self.awaited += 1
        return self.embed_query(text)


@pytest.fixture(params=[Encoder, Numbers, Terms, Lists, Rows, Awaited])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    made: Encoder = request.param()
    return made


@pytest.fixture
def store(documents: list[Document], encoder: Encoder) -> BM25VectorStore:
    """Return a store of the documents of ``conftest`` with vectors."""
    return BM25VectorStore.from_documents(documents, sparse_embedding=encoder)


@pytest.fixture
def plain(documents: list[Document]) -> BM25VectorStore:
    return BM25VectorStore.from_documents(documents, sparse_embedding=Encoder())


def naive(documents: list[Document], query: str) -> list[tuple[str, float]]:
    encoder, scored = Encoder(), []
    for document in documents:
        weights, score = encoder.weights(document.page_content), 0.0
        for number, weight in encoder.weights(query).items():
            score += weight * float(np.float32(weights.get(number, 0.0)))
        scored.append((document.id or "", score))
    return sorted(scored, key=lambda pair: -pair[1])


def ask(store: BM25VectorStore, query: str, **keywords: Any) -> list[tuple[str, float]]:
    pairs = store.similarity_search_with_score(query, **keywords)
    assert asyncio.run(store.asimilarity_search_with_score(query, **keywords)) == pairs
    documents = store.similarity_search(query, **keywords)
    assert documents == [document for document, _ in pairs]
    assert asyncio.run(store.asimilarity_search(query, **keywords)) == documents
    return [(document.id or "", score) for document, score in pairs]


# --- LangChain's suite --------------------------------------------------------------


class TestStandard(VectorStoreIntegrationTests):
    """The vector store suite, whole: every vector has a term of every query's."""

    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return BM25VectorStore(sparse_embedding=Encoder())


# --- searching ----------------------------------------------------------------------


@pytest.mark.parametrize("query", ["kittens", "a puppy and kittens", "dogs chase", "", "nothing"])
def test_sparse_scores_are_dot_products(
    store: BM25VectorStore, documents: list[Document], query: str
) -> None:
    """To the bit, for every form of vectors, at once and awaited."""
    assert ask(store, query, k=9, retrieval_mode="sparse") == naive(documents, query)
    assert ask(store, query, k=2, retrieval_mode="sparse") == naive(documents, query)[:2]


@pytest.mark.parametrize("method", ["minmax", "zscore", "rrf"])
@pytest.mark.parametrize("filter", [None, {"lang": "en"}, {"cat", "bird", "dogs"}])
def test_hybrid_results_are_the_fusion_of_both(
    plain: BM25VectorStore, documents: list[Document], method: Any, filter: Any
) -> None:
    """With the method, the weights and the depth of the constructor, under the filter."""
    settings = {"method": method, "weights": [0.7, 0.3], "rank_constant": 5, "fetch_k": 3}
    hybrid = BM25VectorStore(plain.index, sparse_embedding=Encoder(), **settings)
    query = "the kitten and the cats"
    lexical = [(hit.id, hit.score) for hit in plain.index.search(query, 3, filter)]
    passing = plain.index.ids(filter)
    sparse = [pair for pair in naive(documents, query) if pair[0] in passing][:3]
    expected = fuse([lexical, sparse], method, [0.7, 0.3], rank_constant=5)
    assert ask(hybrid, query, k=2, filter=filter) == expected[:2]
    deeper = fuse([lexical, sparse], method, [0.7, 0.3], 3, 5)
    assert ask(hybrid, query, k=3, filter=filter) == deeper


def test_the_mode_is_that_of_the_call_or_the_constructor(
    plain: BM25VectorStore, retriever: BM25Retriever
) -> None:
    assert plain.retrieval_mode == "hybrid"
    assert BM25VectorStore().retrieval_mode == "bm25"
    by_words = BM25VectorStore(plain.index, sparse_embedding=Encoder(), retrieval_mode="bm25")
    for store, keywords in ((by_words, {}), (plain, {"retrieval_mode": "bm25"})):
        assert store.similarity_search("cats", **keywords) == retriever.invoke("cats")
        assert store.similarity_search("kitten", **keywords) == []
    by_vectors = BM25VectorStore(plain.index, sparse_embedding=Encoder(), retrieval_mode="sparse")
    assert ask(by_vectors, "kitten") == ask(plain, "kitten", retrieval_mode="sparse")
    assert ids(plain.similarity_search("kitten", k=2)) == ["cats", "dogs"]


@pytest.mark.parametrize("mode", ["bm25", "sparse", "hybrid"])
@pytest.mark.parametrize(
    "filter",
    [{"lang": "en"}, {"cat", "dogs"}, lambda document: document.metadata.get("lang") == "en"],
)
def test_filter_and_min_score_hold_in_every_mode(
    plain: BM25VectorStore, mode: Any, filter: Any
) -> None:
    pairs = ask(plain, "cats", k=2, filter=filter, retrieval_mode=mode)
    assert {id for id, _ in pairs} == {"cat", "dogs"}
    keywords = {"filter": filter, "retrieval_mode": mode}
    assert ask(plain, "cats", min_score=pairs[0][1], **keywords) == pairs[:1]
    assert ask(plain, "cats", min_score=math.inf, **keywords) == []
    assert ask(plain, "cats", k=0, **keywords) == []


def test_only_hybrid_by_minmax_has_relevance_scores(plain: BM25VectorStore) -> None:
    """Its scores, by their largest: 1 is the best by words and by vectors."""
    for weights in (None, [3, 5], np.array([0.1, 0.2])):
        store = BM25VectorStore(plain.index, sparse_embedding=Encoder(), weights=weights)
        total = 2 if weights is None else float(sum(weights))
        scored = store.similarity_search_with_relevance_scores("cats dream", k=9)
        pairs = store.similarity_search_with_score("cats dream", k=9)
        assert scored == [(document, score / total) for document, score in pairs]
        assert [score for _, score in scored][:1] == [1.0]
        assert min(score for _, score in scored) == 0.0
        asked = store.asimilarity_search_with_relevance_scores("cats dream", k=9)
        assert asyncio.run(asked) == scored
    best = plain.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9}
    )
    assert ids(best.invoke("cats dream")) == ["cats"]
    fused = BM25VectorStore(plain.index, sparse_embedding=Encoder(), method="rrf")
    for store, mode in ((plain, "bm25"), (plain, "sparse"), (fused, None)):
        with pytest.raises(NotImplementedError, match="only in retrieval_mode 'hybrid' with"):
            store.similarity_search_with_relevance_scores("cats", retrieval_mode=mode)


async def test_it_is_a_retriever_in_chains(plain: BM25VectorStore) -> None:
    """By search_kwargs, which a call may change, and as a part of a chain."""
    retriever = plain.as_retriever(search_kwargs={"k": 1, "retrieval_mode": "sparse"})
    assert ids(retriever.invoke("robin")) == ids(await retriever.ainvoke("robin")) == ["bird"]
    assert retriever.invoke("robin", retrieval_mode="bm25") == []
    assert ids(retriever.batch(["hound", "feline"])[0]) == ["dogs"]
    chain = (
        {"context": retriever, "question": RunnablePassthrough()}
        | RunnableLambda(lambda given: f"{given['question']}: {given['context'][0].page_content}")
        | StrOutputParser()
    )
    assert chain.invoke("robin") == "robin: A bird sings in the tree."
    assert await chain.ainvoke("hound") == "hound: Dogs chase the cats."


# --- writing ------------------------------------------------------------------------


def stored(store: BM25VectorStore) -> dict[str, dict[str, float]]:
    held = store.index.ids()
    return dict(zip(held, store.index.vectors.get(held), strict=True))


def expected(texts: dict[str, str]) -> dict[str, dict[str, float]]:
    encoder = Encoder()
    return {
        id: {str(number): float(np.float32(one)) for number, one in encoder.weights(text).items()}
        for id, text in texts.items()
    }


async def test_every_way_of_adding_stores_vectors(encoder: Encoder) -> None:
    """Texts and documents, at once and awaited, anew and in place of others."""
    texts, made = {"a": "A cat.", "b": "Dogs run."}, [Document("A cat."), Document("Dogs run.")]
    options: dict[str, Any] = {"sparse_embedding": encoder}
    embedding = DeterministicFakeEmbedding(size=4)
    for store in (
        BM25VectorStore.from_texts([*texts.values()], embedding, ids=[*texts], **options),
        BM25VectorStore.from_documents(iter(made), ids=iter(texts), **options),
        await BM25VectorStore.afrom_texts([*texts.values()], ids=[*texts], **options),
        await BM25VectorStore.afrom_documents(made, ids=[*texts], **options),
    ):
        assert stored(store) == expected(texts)
        assert store.add_texts(["Robin."], [{"n": 1}], ids=["c"]) == ["c"]
        assert store.add_documents([Document("New cat.", id="a")]) == ["a"]
        assert await store.aadd_texts(iter(["Hound."]), ids=iter(["d"])) == ["d"]
        assert await store.aadd_documents([Document("Puppy.", metadata={"n": 2})], ids=["b"]) == [
            "b"
        ]
        assert stored(store) == expected(
            {"c": "Robin.", "a": "New cat.", "d": "Hound.", "b": "Puppy."}
        )
        assert store.get_by_ids(["b"]) == [Document("Puppy.", id="b", metadata={"n": 2})]
        assert store.delete(["a"])
        assert await store.adelete(["d"])
        documents = store.similarity_search("kitten hound", retrieval_mode="sparse")
        assert ids(documents) == ["b", "c"]
        assert store.add_texts([]) == await store.aadd_documents([]) == []
    if isinstance(encoder, Awaited):
        assert encoder.awaited == 4 * 2


async def test_texts_are_encoded_at_once_and_only_if_there_are_any() -> None:
    """Some encoders fail on no texts, and all are slow one by one."""
    calls: list[int] = []

    class Counting(Awaited):
        def embed_documents(self, texts: list[str]) -> list[Any]:
            calls.append(len(texts))
            return super().embed_documents(texts)

    store = BM25VectorStore.from_texts([], sparse_embedding=Counting())
    store.add_texts(map(str, range(500)))
    await store.aadd_texts(map(str, range(300)))
    assert (store.add_documents([]), await store.aadd_documents(iter([])), calls) == (
        [],
        [],
        [500, 300],
    )


async def test_a_write_needs_no_thread_of_asyncio() -> None:
    """It goes on while the application has taken the only one."""
    release = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    taken = asyncio.create_task(asyncio.to_thread(release.wait, 120))
    await asyncio.sleep(0)  # it is handed over
    try:
        async with asyncio.timeout(60):
            for encoder in (Encoder(), Awaited()):
                store = await BM25VectorStore.afrom_texts(["a"], sparse_embedding=encoder)
                assert await store.aadd_documents([Document("b", id="b")]) == ["b"]
    finally:
        release.set()
        assert await taken


async def test_the_indexing_api_keeps_vectors_in_step() -> None:
    """``index()`` and ``aindex()`` encode what is new, and skip what is not."""
    encoder = Awaited()
    store, records = BM25VectorStore(sparse_embedding=encoder), InMemoryRecordManager("bm25")
    keywords: dict[str, Any] = {"cleanup": "full", "key_encoder": "sha256", "batch_size": 1}
    index([Document("a kitten"), Document("a hound")], records, store, **keywords)
    done = await aindex([Document("a kitten"), Document("a robin")], records, store, **keywords)
    assert (done["num_added"], done["num_skipped"], done["num_deleted"]) == (1, 1, 1)
    assert encoder.asked == ["a kitten", "a hound", "a robin"]
    documents = store.similarity_search("feline bird", retrieval_mode="sparse")
    assert sorted(one.page_content for one in documents) == ["a kitten", "a robin"]


def test_documents_that_others_added_are_found_by_their_words(plain: BM25VectorStore) -> None:
    """They have no vectors, and replacing a document drops its own."""
    BM25Retriever.from_index(plain.index).add_documents(
        [Document("An owl hoots.", id="owl"), Document("A purring cat.", id="cats")]
    )
    assert stored(plain)["owl"] == stored(plain)["cats"] == {}
    assert "owl" in ids(plain.similarity_search("owl"))
    assert "owl" not in ids(plain.similarity_search("owl", k=9, retrieval_mode="sparse"))


# --- keeping ------------------------------------------------------------------------


def test_vectors_are_saved_and_the_encoder_is_given_again(
    plain: BM25VectorStore, tmp_path: Path
) -> None:
    plain.save(tmp_path / "saved")
    again = BM25VectorStore.open(tmp_path / "saved", sparse_embedding=Encoder())
    for mode in ("bm25", "sparse", "hybrid", None):
        keywords = {"k": 9, "retrieval_mode": mode}
        assert ask(again, "kitten cats", **keywords) == ask(plain, "kitten cats", **keywords)
    with pytest.raises(ReadOnlyError):
        again.add_texts(["a"])
    words = BM25VectorStore.open(tmp_path / "saved")
    assert ask(words, "cats") == ask(plain, "cats", retrieval_mode="bm25")
    for mode in ("sparse", "hybrid"):
        message = f"retrieval_mode '{mode}' needs sparse_embedding"
        with pytest.raises(ValueError, match=message):
            words.similarity_search("cats", retrieval_mode=mode)
        with pytest.raises(ValueError, match=message):
            BM25VectorStore.open(tmp_path / "saved", mode="w", retrieval_mode=mode)
    options: dict[str, Any] = {"sparse_embedding": Encoder(), "weights": [1, 2]}
    with BM25VectorStore.open(tmp_path / "saved", mode="w", **options) as writer:
        writer.add_texts(["A puppy."], ids=["puppy"])
    assert again.refresh()
    assert ids(again.similarity_search("hound", k=2)) == ["puppy", "dogs"]


# --- bad input ----------------------------------------------------------------------


class Broken(Encoder):
    """Returns what it was given in place of the vector of the second text, and of queries."""

    def __init__(self, vector: Any) -> None:
        super().__init__()
        self.vector = vector

    def embed_documents(self, texts: list[str]) -> list[Any]:
        return [*super().embed_documents(texts[:1]), self.vector, *texts[2:]]

    def embed_query(self, text: str) -> Any:
        return self.vector


class Says(Encoder):
    """Returns or raises something in place of all vectors."""

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said

    def embed_documents(self, texts: list[str]) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    async def aembed_documents(self, texts: list[str]) -> Any:
        return self.embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])

    async def aembed_query(self, text: str) -> Any:
        return self.embed_documents([text])


FAULTS: dict[str, tuple[Encoder, str]] = {
    "it raises": (Says(ConnectionError("no route")), "Says, failed: ConnectionError: no route"),
    "too few": (Says([{1: 1.0}]), "Says, failed: ValueError: it returned 1 vectors for 2 texts"),
    "too many": (Says([{1: 1.0}] * 3), "it returned 3 vectors for 2 texts"),
    "nothing": (Says(None), "must be an iterable of vectors, got NoneType"),
    "one for all": (Says({1: 1.0}), "must be an iterable of vectors, got dict"),
    "ragged": (
        Broken(SparseVector(indices=[1, 2], values=[0.5])),
        r"\[1\] has 2 indices and 1 values",
    ),
    "NaN": (Broken({7: math.nan}), r"Broken, failed: ValueError: vectors\[1\]\['7'\] must be"),
    "none": (Broken(None), r"vectors\[1\] must map terms to weights"),
}


@pytest.mark.parametrize(("encoder", "message"), FAULTS.values(), ids=FAULTS)
def test_an_encoder_that_fails_is_named_and_nothing_is_written(
    encoder: Encoder, message: str, index: BM25Index
) -> None:
    """Whichever way the documents come; what is replaced stays."""
    store, before = BM25VectorStore(index, sparse_embedding=encoder), index.get(index.ids())
    made = [Document("New text.", id="cat"), Document("Another.", id="new")]
    texts = [document.page_content for document in made]
    for call in (
        lambda: store.add_documents(made),
        lambda: store.add_texts(texts, ids=["cat", "new"]),
        lambda: asyncio.run(store.aadd_documents(made)),
        lambda: asyncio.run(store.aadd_texts(texts, ids=["cat", "new"])),
        lambda: BM25VectorStore.from_texts(texts, sparse_embedding=encoder),
    ):
        with pytest.raises(RuntimeError, match=f"^sparse_embedding, .*{message}"):
            call()
    assert index.get(index.ids()) == before
    assert not any(stored(store).values())


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (Says(ConnectionError("no route")), "Says, failed: ConnectionError: no route"),
        (Says(None), "TypeError: its vector must map terms to weights"),
        (Broken({7: math.nan}), r"Broken, failed: ValueError: its vector\['7'\] must be"),
        (
            Broken(SparseVector(indices=[1, 2], values=[0.5])),
            "its vector has 2 indices and 1 values",
        ),
    ],
)
def test_an_encoder_that_fails_on_a_query_is_named(
    encoder: Encoder, message: str, index: BM25Index
) -> None:
    store = BM25VectorStore(index, sparse_embedding=encoder)
    for call in (
        lambda: store.similarity_search("cats"),
        lambda: store.as_retriever(search_kwargs={"retrieval_mode": "sparse"}).invoke("cats"),
        lambda: asyncio.run(store.asimilarity_search("cats")),
    ):
        with pytest.raises(RuntimeError, match=f"^sparse_embedding, .*{message}"):
            call()
    assert store.similarity_search("cats", retrieval_mode="bm25") != []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sparse_embedding": "splade"}, TypeError, "embed_documents and embed_query"),
        ({"sparse_embedding": Encoder}, TypeError, "embed_documents and embed_query"),
        ({"retrieval_mode": "sparse"}, ValueError, "needs sparse_embedding"),
        ({"retrieval_mode": "dense"}, ValueError, "one of bm25, sparse, hybrid, got 'dense'"),
        ({"method": "sum"}, ValueError, "method"),
        ({"weights": [1]}, ValueError, "weights must have one for each of 2"),
        ({"fetch_k": -1}, ValueError, "fetch_k must be"),
        ({"rank_constant": -1}, ValueError, "rank_constant must be"),
    ],
)
def test_wrong_settings_are_refused_at_once(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    for make in (BM25VectorStore, lambda **them: BM25VectorStore.from_texts(["a"], **them)):
        with pytest.raises(error, match=message):
            make(**arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda store: store.similarity_search("a", k=-1), ValueError, "k must be"),
        (lambda store: store.similarity_search("a", min_score=math.nan), ValueError, "min_score"),
        (lambda store: store.similarity_search("a", weights=[1, 1]), TypeError, "got weights"),
        (lambda store: store.similarity_search(["a"]), TypeError, "query must be a str"),
        (lambda store: store.similarity_search("a", filter={"$no": 1}), FilterError, "no"),
        (
            lambda store: store.similarity_search("a", retrieval_mode="dense"),
            ValueError,
            "one of bm25, sparse, hybrid",
        ),
        (lambda store: asyncio.run(store.aadd_texts(["a"], n=3)), TypeError, "not take n"),
        (lambda store: store.add_texts(["a"], [{"x": object()}]), MetadataError, "metadatas"),
        (
            lambda store: asyncio.run(store.aadd_texts(["a"], [{"x": object()}])),
            MetadataError,
            "metadatas",
        ),
        (
            lambda store: BM25VectorStore.from_texts(["a"], Encoder()),
            TypeError,
            "what makes sparse vectors is sparse_embedding",
        ),
    ],
)
def test_wrong_calls_are_refused(
    call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    store = BM25VectorStore(sparse_embedding=Awaited())
    with pytest.raises(error, match=message):
        call(store)
    assert len(store.index) == 0


def test_the_protocol_is_what_the_frameworks_have() -> None:
    assert isinstance(Encoder(), SparseEmbeddings)
    assert not isinstance("splade", SparseEmbeddings)


def test_an_encoder_may_be_wrapped(documents: list[Document]) -> None:
    class Wrapped:
        def __getattr__(self, name: str) -> Any:
            return getattr(encoder, name)

    encoder, wrapped = Encoder(), Wrapped()
    store = BM25VectorStore.from_documents(documents, sparse_embedding=wrapped)  # type: ignore[arg-type]
    assert store.sparse_embedding is wrapped
    assert encoder.asked == [document.page_content for document in documents]
