"""BM25VectorStore without a dense store: all that LlamaIndex does with a vector store."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import (
    DocumentSummaryIndex,
    MockEmbedding,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter
from llama_index.core.schema import (
    Document,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryMode
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.vector_stores.bm25rag import BM25VectorStore, NoEmbedding
from llamaindex_nodes import NODES, node
from test_llamaindex_filters import metadata, nested

from bm25rag import BM25Index
from bm25rag.errors import LockedError, NotAnIndexError, ReadOnlyError

PETS = "The cat sat on the mat. " * 20
FARM = "A cow eats grass."


def store_of(nodes: Any, **settings: Any) -> BM25VectorStore:
    store = BM25VectorStore(**settings)
    store.add(nodes)
    return store


def ask(store: BM25VectorStore, text: str, mode: str = "text_search", **more: Any) -> list[str]:
    query = VectorStoreQuery(
        query_str=text, mode=VectorStoreQueryMode(mode), **{"similarity_top_k": 10, **more}
    )
    result = store.query(query)
    assert result.nodes is not None
    assert [each.node_id for each in result.nodes] == result.ids
    assert asyncio.run(store.aquery(query)) == result
    return result.ids


def where(key: str, value: Any, operator: str = "==") -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def texts(store: BM25VectorStore) -> set[str]:
    return {each.get_content(MetadataMode.NONE) for each in store.get_nodes()}


# --- the base class ---------------------------------------------------------------


def test_every_method_of_the_base_class_is_ours_with_its_parameters() -> None:
    """The base class does not implement some, and runs others in the event loop."""
    for name, method in vars(BasePydanticVectorStore).items():
        if inspect.isfunction(method) and name != "__annotate_func__":  # Python 3.14's own
            theirs, ours = (
                inspect.signature(each) for each in (method, vars(BM25VectorStore)[name])
            )
            assert list(ours.parameters)[: len(theirs.parameters)] == list(theirs.parameters)


def test_it_is_what_the_base_class_promises(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert store.stores_text
    assert not store.is_embedding_query
    assert store.client is store.bm25
    assert store.dense is None
    assert store.class_name() == "BM25VectorStore"
    assert store  # LlamaIndex replaces a store that is false


def test_an_empty_store_is_true_too() -> None:
    store = BM25VectorStore()
    assert StorageContext.from_defaults(vector_store=store).vector_store is store
    assert ask(store, "cat") == []


def test_a_pickled_store_has_everything(nodes: list[TextNode]) -> None:
    again = pickle.loads(pickle.dumps(store_of(nodes)))
    assert ask(again, "cats") == ["dog", "cat"]


# --- adding, deleting, reading ----------------------------------------------------


def test_nodes_come_back_equal() -> None:
    store = BM25VectorStore()
    assert store.add(list(NODES.values())) == [each.node_id for each in NODES.values()]
    assert store.get_nodes() == list(NODES.values())
    by_id = {each.node.node_id: each.node for each in retriever_of(store, 100).retrieve("find")}
    assert by_id
    assert all(by_id[each.node_id] == each for each in NODES.values() if each.node_id in by_id)


def test_embeddings_are_not_kept(nodes: list[TextNode]) -> None:
    nodes[0].embedding = [0.5]
    assert store_of(nodes).get_nodes(["cat"])[0].embedding is None
    assert nodes[0].embedding == [0.5]


def test_a_node_replaces_one_with_its_id(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert store.add([node("cat", "A zebra"), node("cat", "A tiger")]) == ["cat", "cat"]
    assert ask(store, "tiger") == ["cat"]
    assert ask(store, "zebra mat") == []


def test_nodes_are_deleted_by_source_id_and_filter(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    store.delete("farm")
    assert [each.node_id for each in store.get_nodes()] == ["cat", "dog"]
    store.delete("unknown")
    store.delete_nodes(["dog", "cat", "unknown"], where("year", 2020, ">"))
    assert [each.node_id for each in store.get_nodes()] == ["cat"]
    store.delete_nodes(filters=where("year", 2019))
    assert store.get_nodes() == []
    store.add(nodes)
    store.clear()
    assert len(store.bm25) == 0


def test_nodes_are_read_by_id_and_filter(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert store.get_nodes(["hen", "cat"]) == [nodes[3], nodes[0]]
    assert store.get_nodes(filters=where("year", 2020, ">")) == [nodes[1], nodes[2]]
    assert asyncio.run(store.aget_nodes(["hen"])) == [nodes[3]]


def test_everything_can_be_awaited(nodes: list[TextNode]) -> None:
    async def use() -> None:
        store = BM25VectorStore()
        assert await store.async_add(nodes) == ["cat", "dog", "cow", "hen"]
        await store.adelete("farm")
        assert [each.node_id for each in await store.aget_nodes()] == ["cat", "dog"]
        await store.adelete_nodes(["dog"])
        assert [each.node_id for each in await store.aget_nodes()] == ["cat"]
        await store.aclear()
        assert await store.aget_nodes() == []

    asyncio.run(use())


def test_the_event_loop_looks_for_no_commit_of_a_folder(
    nodes: list[TextNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait while a thread loads one."""
    threads: set[threading.Thread] = set()
    refresh = BM25Index.refresh

    def noted(index: BM25Index) -> bool:
        threads.add(threading.current_thread())
        return refresh(index)

    async def use() -> None:
        await store.async_add(nodes)
        await store.aupdate_metadata(["cat"], [{"year": 1999}])
        await store.adelete("farm")
        await store.adelete_nodes(["dog"])
        assert [each.node_id for each in await store.aget_nodes()] == ["cat"]
        await store.aquery(VectorStoreQuery(query_str="cat"))
        await store.aclear()

    store = BM25VectorStore(path=tmp_path / "nodes")
    monkeypatch.setattr(BM25Index, "refresh", noted)
    asyncio.run(use())
    assert threads
    assert threading.current_thread() not in threads


# --- querying ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["text_search", "sparse", "default"])
def test_modes_that_need_no_vector(mode: str, nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert ask(store, "cats", mode) == ["dog", "cat"]
    assert ask(store, "cats", mode, similarity_top_k=1) == ["dog"]
    assert ask(store, "cats", mode, similarity_top_k=0) == []
    assert ask(store, "zebra", mode) == []
    expected = BM25Retriever(nodes, similarity_top_k=10).retrieve("cats")
    query = VectorStoreQuery(query_str="cats", similarity_top_k=10, mode=VectorStoreQueryMode(mode))
    assert store.query(query).similarities == [each.score for each in expected]


def test_sparse_top_k_is_the_number_of_nodes(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert ask(store, "cats", "sparse", sparse_top_k=1) == ["dog"]
    assert ask(store, "cats", "default", sparse_top_k=1) == ["dog", "cat"]


def test_ids_restrict_a_query_and_empty_node_ids_do_not(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    assert ask(store, "cats", node_ids=["dog", "hen"]) == ["dog"]
    assert ask(store, "cats cow hen", doc_ids=["farm"]) == ["hen", "cow"]
    assert ask(store, "cow hen", doc_ids=["farm"], filters=where("year", 2024)) == ["cow"]
    assert ask(store, "cow", doc_ids=["farm"], node_ids=["cat"]) == []
    assert ask(store, "cats", node_ids=[]) == ["dog", "cat"]  # as LlamaIndex's retriever asks
    assert ask(store, "cats", doc_ids=[]) == ask(store, "", doc_ids=[]) == []


def test_who_asks_with_an_embedding_alone_needs_a_dense_store() -> None:
    def find(store: BM25VectorStore) -> list[str]:
        index = DocumentSummaryIndex.from_documents(
            [Document(id_="cat", text="A cat.")],
            llm=MockLLM(),
            embed_model=MockEmbedding(embed_dim=2),
            storage_context=StorageContext.from_defaults(vector_store=store),
        )
        found = index.as_retriever(retriever_mode="embedding").retrieve("cats")
        return [each.text for each in found]

    assert find(BM25VectorStore(dense=SimpleVectorStore())) == ["A cat."]
    with pytest.raises(ValueError, match="needs query_str"):
        find(BM25VectorStore())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(metadata, min_size=1, max_size=4), nested)
def test_filters_mean_what_they_mean_in_the_retriever(
    metadatas: list[dict[str, Any]], filters: MetadataFilters
) -> None:
    nodes = [  # the retriever returns one of several with the same content
        TextNode(id_=str(number), text=f"word {number}", metadata=each)
        for number, each in enumerate(metadatas)
    ]
    retriever = BM25Retriever(nodes, similarity_top_k=9, metadata_mode=MetadataMode.NONE)
    retriever.filters = filters
    store = BM25VectorStore(retriever.bm25)
    query = VectorStoreQuery(query_str="word", similarity_top_k=9, filters=filters)
    try:
        expected = [each.node.node_id for each in retriever.retrieve("word")]
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            store.query(query)
    else:
        assert store.query(query).ids == expected


# --- LlamaIndex's index and retriever -----------------------------------------------


def retriever_of(store: BM25VectorStore, k: int = 10, **more: Any) -> VectorIndexRetriever:
    index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
    retriever = index.as_retriever(
        similarity_top_k=k, vector_store_query_mode="text_search", **more
    )
    assert isinstance(retriever, VectorIndexRetriever)
    return retriever


class Unwanted(NoEmbedding):
    """Fails if anything is embedded."""

    def _get_text_embedding(self, text: str) -> list[float]:
        raise AssertionError(text)

    _get_query_embedding = _get_text_embedding


@pytest.mark.parametrize("mode", ["text_search", "sparse", "default"])
def test_the_retriever_of_an_index_embeds_nothing(mode: str, nodes: list[TextNode]) -> None:
    index = VectorStoreIndex.from_vector_store(store_of(nodes), embed_model=Unwanted())
    retriever = index.as_retriever(vector_store_query_mode=mode)
    assert [each.node for each in retriever.retrieve("cats")] == [nodes[1], nodes[0]]
    assert asyncio.run(retriever.aretrieve("cats")) == retriever.retrieve("cats")
    assert retriever.retrieve("zebra") == []


def test_the_retriever_filters(nodes: list[TextNode]) -> None:
    store = store_of(nodes)
    results = retriever_of(store, filters=where("year", 2020, ">")).retrieve("cats")
    assert [each.node.node_id for each in results] == ["dog"]


def test_documents_are_inserted_updated_and_deleted_through_an_index() -> None:
    store = BM25VectorStore()
    index = VectorStoreIndex.from_documents(
        [Document(id_="pets", text=PETS), Document(id_="farm", text=FARM)],
        storage_context=StorageContext.from_defaults(vector_store=store),
        transformations=[SentenceSplitter(chunk_size=32, chunk_overlap=8)],
        embed_model=NoEmbedding(),
    )
    assert len(store.bm25) > 2
    index.insert(Document(id_="zoo", text="A zebra."))
    assert "A zebra." in texts(store)
    index.delete_ref_doc("pets", delete_from_docstore=True)
    assert texts(store) == {FARM, "A zebra."}
    index.update_ref_doc(Document(id_="zoo", text="A tiger."))
    assert texts(store) == {FARM, "A tiger."}
    same, changed, new = (
        Document(id_="zoo", text="A tiger."),
        Document(id_="farm", text="A hen."),
        Document(id_="pets", text="A dog."),
    )
    assert index.refresh_ref_docs([same, changed, new]) == [False, True, True]
    assert texts(store) == {"A tiger.", "A hen.", "A dog."}
    (hen,) = store.get_nodes(filters=where("ref_doc_id", "farm"))
    index.delete_nodes([hen.node_id])
    assert texts(store) == {"A tiger.", "A dog."}


def test_an_index_is_built_and_changed_asynchronously() -> None:
    async def use() -> set[str]:
        store = BM25VectorStore()
        index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
        await index.ainsert_nodes([node("a", "A cat", "pets"), node("b", "A cow", "farm")])
        await index.adelete_ref_doc("pets")
        return texts(store)

    assert asyncio.run(use()) == {"A cow"}


def test_index_nodes_lead_to_their_objects() -> None:
    inner = BM25Retriever([node("deep", "A cat sleeps")])
    outer = IndexNode(id_="outer", text="About cats", index_id="cats", obj=inner)
    store = BM25VectorStore()
    index = VectorStoreIndex(
        objects=[outer],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=NoEmbedding(),
    )
    retriever = index.as_retriever(vector_store_query_mode="text_search")
    assert [each.node.node_id for each in retriever.retrieve("cats")] == ["deep"]


# --- pipelines --------------------------------------------------------------------


def pipeline_of(
    store: BM25VectorStore, strategy: DocstoreStrategy, **more: Any
) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=32, chunk_overlap=8), NoEmbedding()],
        docstore=SimpleDocumentStore(),
        docstore_strategy=strategy,
        vector_store=store,
        **more,
    )


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    "strategy", [DocstoreStrategy.UPSERTS, DocstoreStrategy.UPSERTS_AND_DELETE]
)
def test_a_pipeline_upserts_and_stale_nodes_vanish(
    strategy: DocstoreStrategy, awaited: bool
) -> None:
    store = BM25VectorStore()
    pipeline = pipeline_of(store, strategy)

    def ingest(**documents: str) -> int:
        given = [Document(id_=id, text=text) for id, text in documents.items()]
        if awaited:
            return len(asyncio.run(pipeline.arun(documents=given)))
        return len(pipeline.run(documents=given))

    assert ingest(pets=PETS, farm=FARM) == len(store.bm25) > 3
    assert ingest(pets=PETS, farm=FARM) == 0
    assert ingest(pets="A dog.", farm=FARM) == 1
    assert texts(store) == {"A dog.", FARM}
    assert ask(store, "cats") == []
    ingest(pets="A dog.")
    gone = strategy is DocstoreStrategy.UPSERTS_AND_DELETE
    assert texts(store) == ({"A dog."} if gone else {"A dog.", FARM})


@pytest.mark.parametrize("dense", [None, SimpleVectorStore()])
def test_a_pipeline_without_a_splitter_deletes_documents(dense: SimpleVectorStore | None) -> None:
    store = BM25VectorStore(dense=dense)
    pipeline = pipeline_of(store, DocstoreStrategy.UPSERTS_AND_DELETE)
    pipeline.transformations = [NoEmbedding() if dense is None else MockEmbedding(embed_dim=2)]
    pipeline.run(documents=[Document(id_="pets", text=PETS), Document(id_="farm", text=FARM)])
    pipeline.run(documents=[Document(id_="pets", text="A dog."), Document(id_="zoo", text=FARM)])
    assert set(store.bm25.ids()) == {"pets", "zoo"}
    assert texts(store) == {"A dog.", FARM}
    assert dense is None or set(dense.data.embedding_dict) == {"pets", "zoo"}


def test_a_node_of_a_source_outlives_a_source_of_the_same_id() -> None:
    store = BM25VectorStore()
    part = TextNode(id_="a", text="A part.")
    part.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="b")
    store.add([part])
    store.delete("a")
    assert store.bm25.ids() == ["a"]


def test_a_pipeline_goes_on_after_its_state_was_loaded(tmp_path: Path) -> None:
    first = BM25VectorStore()
    pipeline = pipeline_of(first, DocstoreStrategy.UPSERTS_AND_DELETE)
    pipeline.run(documents=[Document(id_="pets", text=PETS), Document(id_="farm", text=FARM)])
    pipeline.persist(str(tmp_path / "pipeline"))
    first.persist(str(tmp_path / "store"))

    store = BM25VectorStore.from_persist_path(str(tmp_path / "store"))
    again = pipeline_of(store, DocstoreStrategy.UPSERTS_AND_DELETE)
    again.load(str(tmp_path / "pipeline"))
    again.run(documents=[Document(id_="pets", text="A dog.")])
    assert texts(store) == {"A dog."}


def test_a_pipelines_cache_keeps_the_mark() -> None:
    cache = IngestionCache()
    for _ in range(2):
        store = BM25VectorStore()
        pipeline = pipeline_of(store, DocstoreStrategy.UPSERTS, cache=cache)
        pipeline.run(documents=[Document(id_="farm", text=FARM)])
        assert texts(store) == {FARM}


def test_a_hierarchy_of_nodes_is_kept() -> None:
    parser = HierarchicalNodeParser.from_defaults([64, 32])
    store = BM25VectorStore()
    pipeline = IngestionPipeline(transformations=[parser, NoEmbedding()], vector_store=store)
    made = pipeline.run(documents=[Document(id_="pets", text=PETS)])
    for each in made:
        each.embedding = None
    assert store.get_nodes() == made


# --- saving -----------------------------------------------------------------------


def test_a_storage_context_saves_and_loads(tmp_path: Path) -> None:
    store = BM25VectorStore(language="de", metadata_mode=MetadataMode.NONE)
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex([], storage_context=context, embed_model=NoEmbedding())
    index.insert_nodes([node("a", "Die Katzen", "haus", year=1)])
    context.persist(str(tmp_path))

    again = BM25VectorStore.from_persist_dir(str(tmp_path))
    assert again.bm25.analyzer == store.bm25.analyzer
    loaded = StorageContext.from_defaults(vector_store=again, persist_dir=str(tmp_path))
    retriever = load_index_from_storage(loaded, embed_model=NoEmbedding()).as_retriever(
        vector_store_query_mode="text_search"
    )
    assert [each.node for each in retriever.retrieve("Katze")] == store.get_nodes()
    with pytest.raises(ValueError, match="metadata_mode must be 'none'"):
        BM25VectorStore(again.bm25, metadata_mode=MetadataMode.EMBED)


def test_retrievers_and_stores_load_what_the_other_saved(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    retriever = BM25Retriever(nodes, similarity_top_k=3, filters=where("year", 2019))
    retriever.persist(tmp_path)
    store = BM25VectorStore.from_persist_path(str(tmp_path))
    assert ask(store, "cats") == ["dog", "cat"]
    store.delete_nodes(["hen"])
    store.persist(str(tmp_path))
    again = BM25Retriever.from_persist_dir(tmp_path)
    assert (len(again), again.similarity_top_k) == (3, 3)
    assert [each.node.node_id for each in again.retrieve("cats")] == ["cat"]


def test_a_folder_has_one_writer_and_readers_refresh(nodes: list[TextNode], tmp_path: Path) -> None:
    BM25Index().save(tmp_path)
    reading = BM25VectorStore(BM25Index.open(tmp_path))
    with BM25Index.open(tmp_path, mode="w") as index:
        BM25VectorStore(index).add(nodes)
        with pytest.raises(LockedError):
            BM25Index.open(tmp_path, mode="w")
        assert ask(reading, "cats") == []
    assert reading.bm25.refresh()
    assert ask(reading, "cats") == ["dog", "cat"]
    for write in (reading.clear, lambda: reading.add(nodes), lambda: reading.delete("farm")):
        with pytest.raises(ReadOnlyError):
            write()


# --- bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda s: s.add("cat"), TypeError, "nodes must be an iterable of nodes"),
        (lambda s: s.add([node("a", "b")], batch=1), TypeError, "add takes batch only for a dense"),
        (lambda s: s.delete(3), TypeError, "ref_doc_id must be a str, got int"),
        (lambda s: s.delete_nodes(), ValueError, "node_ids or filters must be given"),
        (lambda s: s.delete_nodes("cat"), TypeError, "node_ids must be an iterable"),
        (lambda s: s.delete_nodes(filters={}), TypeError, "filters must be MetadataFilters"),
        (lambda s: ask(s, "a", "hybrid"), ValueError, r"'hybrid' needs vectors: give BM25VectorSt"),
        (lambda s: ask(s, "a", "mmr"), ValueError, "'mmr' needs vectors"),
        (lambda s: ask(s, "a", filters={}), TypeError, "filters must be MetadataFilters"),
        (lambda s: ask(s, "a", node_ids="cat"), TypeError, "node_ids must be an iterable"),
        (lambda s: ask(s, "a", doc_ids=[1]), TypeError, r"doc_ids\[0\] must be a str"),
        (lambda s: ask(s, "a", similarity_top_k=-1), ValueError, "similarity_top_k must be"),
        (lambda s: ask(s, "a", sparse_top_k=1.5), TypeError, "sparse_top_k must be an integer"),
        (lambda s: ask(s, "a", filters=where("year", 1, "in")), TypeError, "filter on 'year'"),
        (
            lambda s: s.query(VectorStoreQuery(query_embedding=[1.0])),
            ValueError,
            "query mode 'default' needs query_str",
        ),
        (
            lambda s: s.query(VectorStoreQuery(query_embedding=[1.0], filters=where("year", 2024))),
            ValueError,
            "query mode 'default' needs query_str",
        ),
        (
            lambda s: s.query(VectorStoreQuery(query_str="a"), timeout=1),
            TypeError,
            "query takes timeout only for a dense store",
        ),
        (lambda s: BM25VectorStore(3), TypeError, "existing_bm25 must be a bm25rag.BM25Index"),
        (lambda s: BM25VectorStore(s.bm25, k1=2), ValueError, "existing_bm25 has parameters"),
        (lambda s: BM25VectorStore(dense=s.bm25), TypeError, "dense must be a vector store"),
        (lambda s: BM25VectorStore(alpha=2), ValueError, "alpha must be a number"),
        (lambda s: BM25VectorStore(method="sum"), ValueError, "method must be"),
        (lambda s: BM25VectorStore(fetch_k=-1), ValueError, "fetch_k must be an integer"),
    ],
)
def test_wrong_use_is_named(
    use: Any, error: type[Exception], message: str, nodes: list[TextNode]
) -> None:
    store = store_of(nodes)
    with pytest.raises(error, match=message):
        use(store)
    assert store.get_nodes() == nodes


def test_what_cannot_be_saved_or_loaded_is_named(nodes: list[TextNode], tmp_path: Path) -> None:
    import fsspec

    store = store_of(nodes)
    with pytest.raises(ValueError, match="fs must be a local file system or None"):
        store.persist("anywhere", fsspec.filesystem("memory"))
    store.persist(str(tmp_path / "store"), fsspec.filesystem("file"))
    with pytest.raises(ValueError, match="fs must be a local file system or None"):
        BM25VectorStore.from_persist_path("anywhere", fsspec.filesystem("memory"))
    with pytest.raises(NotAnIndexError):
        BM25VectorStore.from_persist_dir(str(tmp_path))
    own = store_of(nodes, stemmer=lambda word: word[:3])
    with pytest.raises(ValueError, match="stemmer cannot be saved"):
        own.persist(str(tmp_path / "own"))
