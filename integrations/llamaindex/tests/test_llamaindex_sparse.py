"""BM25VectorStore with learned sparse vectors: what it encodes, finds, fuses, saves and refuses."""

from __future__ import annotations

import asyncio
import math
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base_sparse import BaseSparseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, MetadataMode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index.vector_stores.bm25rag import BM25VectorStore, NoEmbedding, SparseEncoderError
from llamaindex_dense import Dense, embed
from llamaindex_nodes import node

from bm25rag import BM25Index
from bm25rag.fusion import fuse

Batch = tuple[list[list[int]], list[list[float]]]

# What such a model learns: words that mean the same have the same number.
MEANINGS = {"kitten": "cat", "puppy": "dog", "feline": "cat", "cattle": "cow"}


def weigh(text: str) -> dict[int, float]:
    """Return the weight of each word's number, that of its singular and of what it means."""
    weights: dict[int, float] = {}
    for word in text.lower().replace(".", " ").split():
        singular = word.rstrip("s")
        number = crc32(MEANINGS.get(singular, singular).encode()) % 1000
        weights[number] = weights.get(number, 0.0) + 1 / len(word)
    return weights


def encode(texts: list[str]) -> Batch:
    weights = [weigh(text) for text in texts]
    return [list(each) for each in weights], [list(each.values()) for each in weights]


class Recording:
    """Remembers what it was asked, and by which thread."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.threads: set[int] = set()

    def __call__(self, texts: list[str]) -> Batch:
        self.calls.append(texts)
        self.threads.add(threading.get_ident())
        return encode(texts)


def store_of(nodes: list[TextNode], **more: Any) -> BM25VectorStore:
    store = BM25VectorStore(
        **{"sparse_doc_fn": encode, "sparse_query_fn": encode, "metadata_mode": MetadataMode.NONE}
        | more
    )
    store.add(nodes)
    return store


def question(text: str, mode: str = "sparse", **more: Any) -> VectorStoreQuery:
    given = {"similarity_top_k": 10, **more}
    return VectorStoreQuery(query_str=text, mode=VectorStoreQueryMode(mode), **given)


def ask(store: BM25VectorStore, text: str, mode: str = "sparse", **more: Any) -> list[str]:
    result = store.query(question(text, mode, **more))
    assert result.nodes is not None
    assert [each.node_id for each in result.nodes] == result.ids
    assert asyncio.run(store.aquery(question(text, mode, **more))) == result
    return result.ids


def scored(store: BM25VectorStore, query: VectorStoreQuery) -> list[tuple[str, float]]:
    result = store.query(query)
    return list(zip(result.ids or [], result.similarities or [], strict=True))


def where(key: str, value: Any, operator: str = "==") -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


# --- searching --------------------------------------------------------------------


words = st.sampled_from(["cat", "kitten", "dogs", "cow", "cattle", "hen"])
sentences = st.lists(words, max_size=6).map(" ".join)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(sentences, max_size=8), sentences)
def test_the_scores_are_dot_products(texts: list[str], query: str) -> None:
    store = store_of([node(str(number), text) for number, text in enumerate(texts)])
    expected = {}
    for number, text in enumerate(texts):
        stored = {term: float(np.float32(weight)) for term, weight in weigh(text).items()}
        asked = [(term, weight) for term, weight in weigh(query).items() if term in stored]
        total = 0.0
        for term, weight in asked:
            total += weight * stored[term]
        if asked:
            expected[str(number)] = total
    best = sorted(expected.items(), key=lambda pair: -pair[1])
    assert scored(store, question(query)) == best


def test_what_an_encoder_knows_is_found_and_words_stay_words(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert set(ask(store, "kittens")) == {"cat", "dog"}
    assert ask(store, "kittens", "text_search") == []
    assert ask(store, "kittens", "default") == []
    assert ask(store, "cats", "text_search") == ask(BM25VectorStore(store.bm25), "cats", "default")
    assert ask(store, "zebra") == []


def test_nodes_come_back_as_they_were_added(nodes: list[TextNode]) -> None:
    returned = store_of(nodes).query(question("feline cattle hens")).nodes
    assert sorted(returned or [], key=nodes.index) == nodes


def test_the_numbers_of_nodes(nodes: list[TextNode]) -> None:
    store = store_of(nodes, fetch_k=3)
    assert len(ask(store, "a", similarity_top_k=2)) == 2
    assert len(ask(store, "a", sparse_top_k=1)) == 1
    assert ask(store, "a", similarity_top_k=0) == []
    assert len(ask(store, "a", "hybrid", similarity_top_k=1)) == 1
    assert len(ask(store, "a kitten", "hybrid", similarity_top_k=1, hybrid_top_k=2)) == 2
    assert ask(store, "kitten", "hybrid", sparse_top_k=0) == []


def test_filters_and_ids_hold(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    for mode in ("sparse", "hybrid"):
        text = "a kitten or cattle"
        assert set(ask(store, text, mode, filters=where("year", 2020, ">"))) == {"dog", "cow"}
        assert set(ask(store, text, mode, node_ids=["cow", "cat", "?"])) == {"cow", "cat"}
        assert set(ask(store, text, mode, doc_ids=["farm"])) == {"cow", "hen"}
        assert ask(store, text, mode, doc_ids=["farm"], filters=where("year", 2021)) == []


# --- fusing -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["minmax", "zscore", "rrf"])
@pytest.mark.parametrize("alpha", [None, 0.3])
def test_words_and_vectors_are_fused_as_by_the_index(
    method: Any, alpha: float | None, nodes: list[TextNode]
) -> None:
    store = store_of(nodes, method=method, alpha=0.7, rank_constant=3)
    weight = 0.7 if alpha is None else alpha
    text = "a kitten chases cats"
    expected = store.bm25.search_hybrid(
        text, weigh(text), method=method, weights=[1 - weight, weight], rank_constant=3
    )
    assert len(expected) == 4
    ranking = scored(store, question(text, "hybrid", alpha=alpha))
    assert ranking == [(hit.id, hit.score) for hit in expected]


def test_alpha_at_its_ends_is_one_of_them(nodes: list[TextNode]) -> None:
    asked = Recording()
    store = store_of(nodes, sparse_query_fn=asked)
    assert ask(store, "kitten", "hybrid", alpha=0) == []
    assert ask(store, "cats", "hybrid", alpha=0) == ask(store, "cats", "text_search")
    assert asked.calls == []
    assert ask(store, "kitten", "hybrid", alpha=1) == ask(store, "kitten")


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_a_dense_store_is_a_third_of_them(alpha: float, nodes: list[TextNode]) -> None:
    embedded = [each.model_copy(update={"embedding": embed(each.text)}) for each in nodes]
    store = store_of(embedded, dense=Dense())
    asked = {"query_embedding": embed("a kitten")}
    modes = ("text_search", "sparse", "default")
    rankings = [scored(store, question("a kitten chases", mode, **asked)) for mode in modes]
    assert [len(ranking) for ranking in rankings] == [1, 4, 4]
    weights = [(1 - alpha) / 2, (1 - alpha) / 2, alpha]
    expected = fuse(
        [leg if w else [] for leg, w in zip(rankings, weights, strict=True)], "minmax", weights
    )
    assert scored(store, question("a kitten chases", "hybrid", alpha=alpha, **asked)) == expected
    with pytest.raises(
        ValueError, match=r"leave the sparse vectors .* out: give .*sparse_query_fn="
    ):
        BM25VectorStore(store.bm25, dense=store.dense).query(question("a kitten", "hybrid"))
    without = BM25VectorStore(store.bm25, dense=store.dense, sparse_query_fn=None)
    both = fuse([rankings[0], rankings[2]], "minmax", [0.5, 0.5])
    assert scored(without, question("a kitten chases", "hybrid", **asked)) == both


# --- writing ----------------------------------------------------------------------


def test_the_indexed_text_is_encoded_in_one_call() -> None:
    asked = Recording()
    given = [node("a", "A cat", kind="feline"), node("b", "A cow")]
    for mode in (MetadataMode.NONE, MetadataMode.EMBED):
        store = store_of(given, sparse_doc_fn=asked, metadata_mode=mode)
        assert asked.calls.pop() == [document.text for document in store.bm25.get(["a", "b"])]
        assert store.bm25.vectors.get(["b"]) == [
            {str(term): np.float32(weight) for term, weight in weigh("A cow").items()}
        ]
        store.add([])
    assert asked.calls == []


def test_vectors_are_replaced_and_deleted_with_their_nodes(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    store.add([node("cat", "A kitten"), node("cat", "A zebra", "pets")])
    assert ask(store, "feline") == ["dog"]
    assert ask(store, "zebras") == ["cat"]
    store.delete_nodes(["dog"])
    assert ask(store, "feline puppy") == []
    store.delete("pets")
    assert ask(store, "zebras") == []
    assert ask(store, "cattle") == ["cow"]
    store.clear()
    assert store.bm25.vectors.vocabulary() == []
    assert ask(store, "cattle") == []


@pytest.mark.parametrize("awaited", [False, True])
def test_a_pipeline_upserts_and_stale_vectors_vanish(awaited: bool) -> None:
    store = store_of([])
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=32, chunk_overlap=8), NoEmbedding()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        vector_store=store,
    )

    def ingest(**documents: str) -> None:
        given = [Document(id_=id, text=text) for id, text in documents.items()]
        if awaited:
            asyncio.run(pipeline.arun(documents=given))
        else:
            pipeline.run(documents=given)

    ingest(pets="The cat sat on the mat. " * 20, farm="A cow eats grass.")
    assert len(ask(store, "kitten")) == len(store.bm25) - 1 > 2
    ingest(pets="A dog barks.", farm="A cow eats grass.")
    assert ask(store, "kitten") == []
    assert len(ask(store, "puppy")) == len(ask(store, "cattle")) == 1
    ingest(pets="A dog barks.")
    assert ask(store, "cattle") == []


@pytest.mark.parametrize("mode", ["sparse", "hybrid"])
def test_the_retriever_of_an_index(mode: str, nodes: list[TextNode]) -> None:
    store = store_of([])
    index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
    index.insert_nodes(nodes)
    retriever = index.as_retriever(
        vector_store_query_mode=mode, similarity_top_k=2, filters=where("year", 2020, "<")
    )
    (scored_node,) = retriever.retrieve("A kitten")
    assert scored_node.node == nodes[0]
    assert scored_node.score == store.query(question("A kitten", mode)).similarities[0]
    assert asyncio.run(retriever.aretrieve("A kitten")) == [scored_node]


def test_awaited_calls_encode_in_another_thread(nodes: list[TextNode]) -> None:
    async def use() -> None:
        asked = Recording()
        store = store_of([], sparse_doc_fn=asked, sparse_query_fn=asked)
        assert await store.async_add(nodes) == ["cat", "dog", "cow", "hen"]
        result = await store.aquery(question("cattle"))
        assert result.ids == ["cow"]
        assert len(asked.calls) == 2
        assert threading.get_ident() not in asked.threads

    asyncio.run(use())


# --- what functions may return ----------------------------------------------------


class Listed(NamedTuple):
    indices: Any
    values: Any


FORMS: dict[str, Callable[[list[str]], Any]] = {
    "numbers": lambda texts: [weigh(text) for text in texts],
    "tokens": lambda texts: [{f"t{id}": w for id, w in weigh(text).items()} for text in texts],
    "pinecone": lambda texts: [
        {"indices": list(weigh(text)), "values": list(weigh(text).values())} for text in texts
    ],
    "arrays": lambda texts: (
        Listed(np.array(list(weigh(text))), np.array(list(weigh(text).values()))) for text in texts
    ),
    "a tuple": lambda texts: tuple(Listed(*column) for column in zip(*encode(texts), strict=True)),
    "tuples": lambda texts: tuple(tuple(map(np.array, column)) for column in encode(texts)),
}


@pytest.mark.parametrize("form", FORMS)
def test_functions_may_return_what_others_take(form: str) -> None:
    given = [node("cat", "cat cat cat"), node("dog", "dog dog")]
    store = store_of(given, sparse_doc_fn=FORMS[form], sparse_query_fn=FORMS[form])
    plain = store_of(given)
    for text in ("kitten", "puppies dog cat", "kitten"):
        assert scored(store, question(text)) == scored(plain, question(text))


def test_rows_of_scipy_are_vectors_also_if_they_are_two() -> None:
    """Two in a tuple are not the indices and the values."""
    coo_array = pytest.importorskip("scipy.sparse").coo_array

    def rows(texts: list[str]) -> Any:
        return tuple(coo_array(([0.5], ([0], [len(text)])), shape=(1, 9)) for text in texts)

    store = store_of([node("a", "x"), node("b", "xy")], sparse_doc_fn=rows)
    assert store.bm25.vectors.get(["a", "b"]) == [{"1": 0.5}, {"2": 0.5}]


def test_indices_and_values_may_be_words() -> None:
    store = store_of([node("a", "x")], sparse_doc_fn=lambda _: [{"indices": 0.5, "values": 2.0}])
    assert store.bm25.vectors.get(["a"]) == [{"indices": 0.5, "values": 2.0}]


class Model(BaseSparseEmbedding):
    """A sparse embedding model of LlamaIndex."""

    def _get_query_embedding(self, query: str) -> dict[int, float]:
        return weigh(query)

    _get_text_embedding = _get_query_embedding

    async def _aget_query_embedding(self, query: str) -> dict[int, float]:
        return weigh(query)

    _aget_text_embedding = _aget_query_embedding


def test_a_sparse_embedding_of_llamaindex(nodes: list[TextNode]) -> None:
    model = Model()
    store = store_of(
        nodes,
        sparse_doc_fn=model.get_text_embedding_batch,
        sparse_query_fn=lambda texts: [model.get_query_embedding(text) for text in texts],
    )
    assert scored(store, question("kitten")) == scored(store_of(nodes), question("kitten"))


# --- saving -----------------------------------------------------------------------


def test_the_folder_holds_the_vectors_and_not_the_functions(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    store = store_of(nodes)
    StorageContext.from_defaults(vector_store=store).persist(str(tmp_path))
    path = str(tmp_path / "default__vector_store.json")
    again = BM25VectorStore.from_persist_dir(
        str(tmp_path), sparse_doc_fn=encode, sparse_query_fn=encode
    )
    for mode in ("sparse", "hybrid", "text_search"):
        query = question("kittens chase cats", mode)
        assert again.query(query) == store.query(query)
    again.add([node("new", "A kitten")])
    assert set(ask(again, "feline")) == {"cat", "dog", "new"}

    for missing in ("sparse_doc_fn", "sparse_query_fn"):
        given = {"sparse_doc_fn": encode, "sparse_query_fn": encode}
        del given[missing]
        with pytest.raises(ValueError, match=f"^{missing} must be given"):
            BM25VectorStore.from_persist_path(path, **given)
    without = BM25VectorStore.from_persist_path(path, sparse_doc_fn=None, sparse_query_fn=None)
    assert ask(without, "cats", "text_search") == ask(without, "cats", "default") == ["cat", "dog"]
    with pytest.raises(ValueError, match=r"'sparse' needs .* give .*\(sparse_query_fn=\.\.\.\)"):
        without.query(question("cats"))
    with pytest.raises(ValueError, match=r"'hybrid' needs .*dense=\.\.\.\) or \(sparse_query_fn="):
        without.query(question("cats", "hybrid"))
    with pytest.raises(ValueError, match=r"\(sparse_doc_fn=\.\.\.\) is needed to add nodes"):
        without.add([node("new", "A kitten")])
    without.delete_nodes(["cat"])
    without.clear()
    assert without.add(nodes) == ["cat", "dog", "cow", "hen"]
    assert ask(without, "cats") == ["cat", "dog"]


def test_a_folder_is_written_and_read_by_others(nodes: list[TextNode], tmp_path: Path) -> None:
    BM25Index().save(tmp_path)
    with BM25Index.open(tmp_path, mode="w") as writer:
        store_of(nodes, existing_bm25=writer)
    reader = BM25VectorStore(BM25Index.open(tmp_path), sparse_query_fn=encode)
    assert set(ask(reader, "kittens")) == {"cat", "dog"}


def test_a_pickled_store_has_everything(nodes: list[TextNode]) -> None:
    again = pickle.loads(pickle.dumps(store_of(nodes)))
    assert set(ask(again, "kitten")) == {"cat", "dog"}


# --- faults -----------------------------------------------------------------------


def fail(texts: list[str]) -> Batch:
    raise OSError("the model is gone")


def fail_late(texts: list[str]) -> Any:
    yield from encode(texts)[0][:0]
    raise TimeoutError


FAULTS: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "raises": (fail, r" \(fail\) failed: OSError: the model is gone"),
    "raises late": (fail_late, r" \(fail_late\) failed: TimeoutError"),
    "none": (lambda texts: None, "failed: TypeError: 'NoneType' object is not iterable"),
    "too few": (
        lambda texts: encode(texts[1:]),
        r" \(<lambda>\) must return a vector for each of (4|1) texts, got (3|0)",
    ),
    "too many": (lambda texts: encode([*texts, "more"]), r"of (4|1) texts, got (5|2)"),
    "ragged": (
        lambda texts: (encode(texts)[0], [*encode(texts)[1], [1.0]]),
        r"as many lists of indices as of values, got (4 and 5|1 and 2)",
    ),
    "ragged inside": (
        lambda texts: ([[1, 2]] * len(texts), [[0.5]] * len(texts)),
        r"is wrong: the vector of texts\[0\] has 2 indices and 1 values",
    ),
    "nan": (
        lambda texts: ([[1]] * len(texts), [*[[0.5]] * (len(texts) - 1), [math.nan]]),
        r"is wrong: the vector of texts\[(3|0)\]\['1'\] must be a number .*, got nan",
    ),
    "embeddings": (lambda texts: [[0.1, 0.2]] * len(texts), r"of texts\[0\] must map terms"),
    "pinecone, ragged": (
        lambda texts: [{"indices": [1], "values": []}] * len(texts),
        r"of texts\[0\] has 1 indices and 0 values",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_function_that_fails_is_named_and_nothing_is_written(
    fault: str, nodes: list[TextNode]
) -> None:
    function, message = FAULTS[fault]
    dense = Dense()
    embedded = [each.model_copy(update={"embedding": embed(each.text)}) for each in nodes]
    store = BM25VectorStore(dense=dense, sparse_doc_fn=function, sparse_query_fn=function)
    for attempt in (lambda: store.add(embedded), lambda: asyncio.run(store.async_add(embedded))):
        with pytest.raises(SparseEncoderError, match=f"^sparse_doc_fn.*{message}"):
            attempt()
    assert len(store.bm25) == 0
    assert dense.data.embedding_dict == {}
    for mode in ("sparse", "hybrid"):
        query = question("cats", mode, query_embedding=embed("cats"))
        with pytest.raises(SparseEncoderError, match=f"^sparse_query_fn.*{message}"):
            store.query(query)
        with pytest.raises(SparseEncoderError, match=f"^sparse_query_fn.*{message}"):
            asyncio.run(store.aquery(query))
    assert dense._asked == []


def test_a_fault_of_a_function_is_the_cause(nodes: list[TextNode]) -> None:
    with pytest.raises(SparseEncoderError) as caught:
        store_of(nodes, sparse_doc_fn=fail)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("argument", ["sparse_doc_fn", "sparse_query_fn"])
def test_what_is_no_function_is_named(argument: str) -> None:
    wrong: dict[str, Any] = {argument: Model()}
    with pytest.raises(TypeError, match=f"{argument} must be a function of texts .* got Model;"):
        BM25VectorStore(**wrong)


def test_what_is_missing_is_named(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    with pytest.raises(ValueError, match="'sparse' needs query_str"):
        store.query(VectorStoreQuery(mode=VectorStoreQueryMode.SPARSE))
    with pytest.raises(ValueError, match=r"'mmr' needs vectors: give BM25VectorStore\(dense="):
        store.query(question("cats", "mmr"))
    with pytest.raises(ValueError, match=r"\(sparse_doc_fn=\.\.\.\) is needed to add nodes"):
        BM25VectorStore(sparse_query_fn=encode).add(nodes)
    assert BM25VectorStore(sparse_query_fn=encode).add([]) == []


def test_a_store_sees_the_vectors_that_another_has_added_to_its_index() -> None:
    """It adds nodes without vectors until then, and none after."""
    words = BM25VectorStore()
    words.add([node("cat", "A cat")])
    BM25VectorStore(words.bm25, sparse_doc_fn=encode).add([node("dog", "A dog")])
    with pytest.raises(ValueError, match=r"\(sparse_doc_fn=\.\.\.\) is needed to add nodes"):
        words.add([node("cow", "A cow")])
