"""A store that is loaded, copied or read from a dict answers as the one it was made from."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.schema import MetadataMode, TextNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.vector_stores.bm25rag import BM25VectorStore, NoEmbedding
from llamaindex_dense import WordEmbedding, embed
from llamaindex_nodes import node

from bm25rag import BM25Index
from bm25rag.errors import LockedError, NotAnIndexError, ReadOnlyError, TokenizerRequiredError

# Each changes the scores of the question below.
FUSION = {"alpha": 0.9, "method": "zscore", "rank_constant": 7, "fetch_k": 1}
QUESTION = VectorStoreQuery(
    query_str="cats and a cow on grass",
    query_embedding=embed("cats eggs hen"),
    similarity_top_k=1,
    mode=VectorStoreQueryMode.HYBRID,
)


def embedded(nodes: list[TextNode]) -> list[TextNode]:
    return [each.model_copy(update={"embedding": embed(each.text)}) for each in nodes]


def hybrid(nodes: list[TextNode], **more: Any) -> BM25VectorStore:
    store = BM25VectorStore(dense=SimpleVectorStore(), **more)
    store.add(embedded(nodes))
    return store


def encode(texts: list[str]) -> list[dict[str, float]]:
    return [{word[:3].lower(): 1.5 for word in text.split()} for text in texts]


def dense_at(path: Path) -> SimpleVectorStore:
    return SimpleVectorStore.from_persist_path(f"{path}.dense")


def answer(store: BM25VectorStore, query: VectorStoreQuery = QUESTION) -> Any:
    result = store.query(query)
    return result.ids, result.similarities, result.nodes


# --- settings are saved --------------------------------------------------------------


@pytest.mark.parametrize("name", FUSION)
def test_each_setting_of_the_fusion_is_loaded(
    name: str, nodes: list[TextNode], tmp_path: Path
) -> None:
    given: dict[str, Any] = {name: FUSION[name]}
    others: dict[str, Any] = {"method": "rrf"} if name in ("rank_constant", "fetch_k") else {}
    store = hybrid(nodes, **given, **others)
    assert answer(store) != answer(hybrid(nodes, **others)), "the setting changes nothing"
    path = tmp_path / "saved"
    store.persist(str(path))
    again = BM25VectorStore.from_persist_path(str(path), dense=dense_at(path))
    assert answer(again) == answer(store)
    attached = BM25VectorStore(BM25Index.open(path), dense=dense_at(path))
    assert answer(attached) == answer(store)


def test_what_is_given_at_loading_replaces_what_was_saved(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    path = tmp_path / "saved"
    hybrid(nodes, **FUSION).persist(str(path))
    plain = {"alpha": 0.5, "method": "minmax", "rank_constant": 60, "fetch_k": 50}
    again = BM25VectorStore.from_persist_path(str(path), dense=dense_at(path), **plain)
    assert answer(again) == answer(hybrid(nodes))
    again.persist(str(path))
    assert answer(BM25VectorStore.from_persist_path(str(path), dense=dense_at(path))) == (
        answer(again)
    )


def test_another_metadata_mode_at_loading_is_refused_with_the_one_of_the_nodes(
    tmp_path: Path,
) -> None:
    """It was a ``TypeError`` about the keyword."""
    path = str(tmp_path / "saved")
    store = BM25VectorStore()
    store.add([TextNode(text="A cat.")])
    store.persist(path)
    loading: Any = BM25VectorStore.from_persist_path
    assert loading(path, metadata_mode=MetadataMode.EMBED).get_nodes() == store.get_nodes()
    with pytest.raises(ValueError, match="metadata_mode must be 'embed'"):
        loading(path, metadata_mode=MetadataMode.NONE)


def test_a_missing_dense_store_is_named_and_none_does_without(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    path = tmp_path / "saved"
    hybrid(nodes).persist(str(path))
    opening: list[Callable[..., Any]] = [
        lambda **more: BM25VectorStore.from_persist_path(str(path), **more),
        lambda **more: BM25VectorStore(BM25Index.open(path), **more),
        lambda **more: BM25VectorStore(path=path, **more),
    ]
    for load in opening:
        with pytest.raises(ValueError, match=r"^dense must be given: .*\(SimpleVectorStore\)"):
            load()
        result = load(dense=None).query(VectorStoreQuery(query_str="cats", similarity_top_k=5))
        assert result.ids == ["dog", "cat"]


def test_an_empty_dense_store_does_not_pass_for_the_full_one(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    path = tmp_path / "saved"
    hybrid(nodes).persist(str(path))
    message = r"^dense holds 0 vectors, and the index 4 nodes, .*\(SimpleVectorStore\).*dense=None"
    for load in (
        lambda dense: BM25VectorStore.from_persist_path(str(path), dense=dense),
        lambda dense: BM25VectorStore(BM25Index.open(path), dense=dense),
        lambda dense: BM25VectorStore(path=path, dense=dense),
    ):
        with pytest.raises(ValueError, match=message):
            load(SimpleVectorStore())
        filled = SimpleVectorStore()
        filled.add(embedded(nodes))
        assert answer(load(filled)) == answer(hybrid(nodes))
    store = BM25VectorStore.from_persist_path(str(path), dense=dense_at(path))
    store.clear()
    store.persist(str(path))
    assert BM25VectorStore.from_persist_path(str(path), dense=SimpleVectorStore()).get_nodes() == []


def test_a_retriever_keeps_the_settings_of_a_store_and_a_store_those_of_a_retriever(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    path = tmp_path / "saved"
    store = hybrid(nodes, **FUSION)
    store.persist(str(path))
    expected = answer(store)
    settings = {"similarity_top_k": 3, "correct": True, "expand": {"fb_terms": 3}, "min_score": 0.1}
    retriever = BM25Retriever.from_persist_dir(path, **settings)
    retriever.persist(path)
    again = BM25VectorStore.from_persist_path(str(path), dense=dense_at(path))
    assert answer(again) == expected
    again.persist(str(path))
    for more in ({}, {"min_score": 0.0, "correct": False, "expand": False}):
        loaded = BM25Retriever.from_persist_dir(path, **more)
        assert loaded._asking == retriever._asking._replace(**more)
        assert loaded.similarity_top_k == 3


def test_settings_of_a_retriever_are_saved_and_replaced_at_loading(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    retriever = BM25Retriever(nodes, similarity_top_k=3, correct=True, expand=True)
    retriever.persist(tmp_path)
    again = BM25Retriever.from_persist_dir(tmp_path)
    assert again.retrieve("catz grass") == retriever.retrieve("catz grass") != []
    one = BM25Retriever.from_persist_dir(tmp_path, similarity_top_k=1, verbose=True)
    assert len(one.retrieve("catz grass")) == 1
    assert one._verbose


# --- LlamaIndex's own flow -----------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "default", "text_search"])
def test_a_storage_context_goes_round(mode: str, nodes: list[TextNode], tmp_path: Path) -> None:
    model = WordEmbedding()
    store = BM25VectorStore(dense=SimpleVectorStore(), **FUSION)
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=model)
    ask = {"vector_store_query_mode": mode, "similarity_top_k": 3}
    expected = index.as_retriever(**ask).retrieve("cats and a cow")
    context.persist(str(tmp_path))

    path = tmp_path / "default__vector_store.json"
    loaded = StorageContext.from_defaults(
        vector_store=BM25VectorStore.from_persist_dir(str(tmp_path), dense=dense_at(path)),
        persist_dir=str(tmp_path),
    )
    again = load_index_from_storage(loaded, embed_model=model)
    assert again.as_retriever(**ask).retrieve("cats and a cow") == expected
    # And once more, into the same folder.
    again.insert_nodes([node("owl", "An owl and cats")])
    loaded.persist(str(tmp_path))
    last = BM25VectorStore.from_persist_dir(str(tmp_path), dense=dense_at(path))
    assert len(last.get_nodes()) == 5


def test_a_storage_context_is_kept_whole_in_the_home(
    nodes: list[TextNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LlamaIndex's own stores go there, too."""
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.chdir(here)
    store = BM25VectorStore(path="~/own")
    StorageContext.from_defaults(vector_store=store).persist("~/kept")
    store.add(nodes)
    store.persist("~/own")  # its own folder
    kept = {"docstore.json", "default__vector_store.json", "default__vector_store.bm25"}
    assert kept <= {one.name for one in (home / "kept").iterdir()}
    assert not BM25VectorStore.from_persist_dir("~/kept").get_nodes()
    assert len(BM25VectorStore(path=home / "own").get_nodes()) == len(nodes)
    assert not list(here.iterdir())


def test_a_storage_context_without_the_store_says_what_to_do(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    store = BM25VectorStore()
    store.add(nodes)
    StorageContext.from_defaults(vector_store=store).persist(str(tmp_path))
    with pytest.raises(ValueError, match=r"vector_store=BM25VectorStore\.from_persist_dir"):
        StorageContext.from_defaults(persist_dir=str(tmp_path))


# --- a folder of the store's own -----------------------------------------------------


def test_a_path_is_made_and_opened_again_and_every_write_is_there(
    nodes: list[TextNode], tmp_path: Path
) -> None:
    path = tmp_path / "new" / "store"
    store = BM25VectorStore(path=path, language="de", metadata_mode=MetadataMode.NONE)
    assert BM25VectorStore(path=str(path)).get_nodes() == []
    store.add(nodes)
    again = BM25VectorStore(path=path)
    assert again.get_nodes() == nodes
    assert again.bm25.analyzer == store.bm25.analyzer
    assert again._nodes.metadata_mode is MetadataMode.NONE
    again.delete("farm")
    again.update_metadata(["cat"], [{"year": 1}])
    assert [each.metadata["year"] for each in store.get_nodes()] == [1, 2021]
    store.clear()
    assert again.get_nodes() == []
    with pytest.raises(ValueError, match=r"language|analyzer"):
        BM25VectorStore(path=path, language="fr")
    with pytest.raises(ValueError, match="leave existing_bm25 out"):
        BM25VectorStore(BM25Index(), path=path)


def test_a_path_keeps_the_settings(nodes: list[TextNode], tmp_path: Path) -> None:
    path = tmp_path / "store"
    dense = SimpleVectorStore()
    store = BM25VectorStore(path=path, dense=dense, **FUSION)
    store.add(embedded(nodes))
    assert answer(BM25VectorStore(path=path, dense=dense)) == answer(store)
    BM25VectorStore(path=path, dense=None)
    with pytest.raises(ValueError, match=r"^dense must be given"):
        BM25VectorStore(path=path)
    store.persist(str(path))
    assert answer(BM25VectorStore.from_persist_path(str(path), dense=dense_at(path))) == (
        answer(store)
    )


def test_what_fails_leaves_the_last_commit(nodes: list[TextNode], tmp_path: Path) -> None:
    store = BM25VectorStore(path=tmp_path / "store", timeout=0.0)
    store.add(nodes[:2])
    with pytest.raises(TypeError):
        store.add([nodes[2], 3])  # type: ignore[list-item]
    with BM25Index.open(tmp_path / "store", mode="w"), pytest.raises(LockedError):
        store.add(nodes)
    assert store.get_nodes() == nodes[:2]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(NotAnIndexError):
        BM25VectorStore(path=tmp_path / "other")


def test_a_folder_is_read_without_the_lock(nodes: list[TextNode], tmp_path: Path) -> None:
    """As by the workers of a service, while another process writes, or may not write at all."""
    BM25VectorStore(path=tmp_path, language="de", alpha=0.3).add(nodes)
    with BM25Index.open(tmp_path, mode="w"):
        store = BM25VectorStore(path=tmp_path, language="de", timeout=0.0)
        assert store.get_nodes() == nodes
        with pytest.raises(ValueError, match="language"):
            BM25VectorStore(path=tmp_path, language="fr", timeout=0.0)
        with pytest.raises(LockedError):
            store.clear()


def test_processes_and_threads_write_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "store"
    code = (
        "import sys\n"
        "from llama_index.core.schema import TextNode\n"
        "from llama_index.vector_stores.bm25rag import BM25VectorStore\n"
        "store = BM25VectorStore(path=sys.argv[1])\n"
        "for n in range(5):\n"
        "    store.add([TextNode(id_=f'{sys.argv[2]}-{n}', text='a cat')])\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    children = [subprocess.Popen([*command, f"p{n}"], env=environment) for n in range(2)]
    store = BM25VectorStore(path=path)

    def write(name: str) -> None:
        for n in range(5):
            store.add([node(f"{name}-{n}", "a cat")])

    threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.wait(60) for child in children] == [0, 0]
    ids = {each.node_id for each in store.get_nodes()}
    assert ids == {f"{name}-{n}" for name in ("p0", "p1", "t0", "t1") for n in range(5)}


def test_a_storage_context_saves_a_copy_of_a_folder(nodes: list[TextNode], tmp_path: Path) -> None:
    store = BM25VectorStore(path=tmp_path / "store", language="de", alpha=0.3)
    store.add(nodes)
    StorageContext.from_defaults(vector_store=store).persist(str(tmp_path / "storage"))
    again = BM25VectorStore.from_persist_dir(str(tmp_path / "storage"))
    query = VectorStoreQuery(query_str="cats mat", similarity_top_k=5)
    assert answer(again, query) == answer(store, query)
    again.clear()
    store.add([node("owl", "An owl")])
    assert len(BM25VectorStore(path=tmp_path / "store").get_nodes()) == 5


def test_an_empty_path_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"path of an index must not be empty, .*got ''"):
        BM25VectorStore(path="")
    assert not list(tmp_path.iterdir())


def test_a_local_url_is_the_folder_that_it_names(nodes: list[TextNode], tmp_path: Path) -> None:
    BM25VectorStore(path=(tmp_path / "one here").as_uri()).add(nodes)
    assert len(BM25VectorStore(path=tmp_path / "one here").get_nodes()) == len(nodes)


def test_what_is_no_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="path of an index must be a str or a Path, got 3"):
        BM25VectorStore(path=3)  # type: ignore[arg-type]
    with pytest.raises(ReadOnlyError, match="mode='a' needs a folder of this machine"):
        BM25VectorStore(path="memory://somewhere")
    with pytest.raises(ValueError, match="timeout"):
        BM25VectorStore(path=tmp_path, timeout=-1.0)


def test_an_index_over_a_path_goes_on_where_it_was(tmp_path: Path) -> None:
    for number, expected in enumerate((["a"], ["a", "b"])):
        store = BM25VectorStore(path=tmp_path / "store")
        index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
        index.insert_nodes([node("ab"[number], "a cat")])
        nodes = index.as_retriever(similarity_top_k=5).retrieve("cats")
        assert [each.node_id for each in nodes] == expected


# --- dicts, JSON, pickles and copies ---------------------------------------------------


WAYS: dict[str, Callable[[BM25VectorStore], Any]] = {
    "to_dict": lambda store: BM25VectorStore.from_dict(store.to_dict()),
    "to_json": lambda store: BM25VectorStore.from_json(store.to_json()),
    "model_dump": lambda store: BM25VectorStore.model_validate(store.model_dump()),
    "model_dump_json": lambda store: BM25VectorStore.model_validate_json(store.model_dump_json()),
    "json": lambda store: BM25VectorStore(**json.loads(json.dumps(store.to_dict()))),
    "pickle": lambda store: pickle.loads(pickle.dumps(store)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "model_copy": lambda store: store.model_copy(deep=True),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_store_with_a_path_goes_round(way: str, nodes: list[TextNode], tmp_path: Path) -> None:
    given = {"language": "de", "k1": 0.9, "metadata_mode": MetadataMode.NONE, "timeout": 5.0}
    store = BM25VectorStore(path=tmp_path / "store", **given, **FUSION)
    store.add(nodes)
    again = WAYS[way](store)
    assert answer(again, VectorStoreQuery(query_str="cats mat", similarity_top_k=5)) == (
        answer(store, VectorStoreQuery(query_str="cats mat", similarity_top_k=5))
    )
    assert again.to_dict() == store.to_dict()
    again.delete_nodes(["cat"])
    store.add([node("owl", "An owl")])
    assert [each.node_id for each in again.get_nodes()] == ["dog", "cow", "hen", "owl"]


def test_a_dict_holds_the_fields_of_a_subclass(tmp_path: Path) -> None:
    class Scoped(BM25VectorStore):
        tenant: str = "none"

        def __init__(self, tenant: str, **more: Any) -> None:
            super().__init__(**more)
            self.tenant = tenant

    again = Scoped.from_dict(Scoped("a", path=tmp_path / "store").to_dict())
    assert again.tenant == "a"
    assert pickle.loads(pickle.dumps(BM25VectorStore(path=tmp_path / "store"))).get_nodes() == []


def test_a_dict_takes_what_it_cannot_hold(nodes: list[TextNode], tmp_path: Path) -> None:
    dense = SimpleVectorStore()
    functions = {"sparse_doc_fn": encode, "sparse_query_fn": encode, "tokenizer": str.split}
    store = BM25VectorStore(path=tmp_path / "store", dense=dense, **FUSION, **functions)
    store.add(embedded(nodes))
    data = json.loads(store.to_json())
    assert answer(BM25VectorStore.from_dict(data, dense=dense, **functions)) == answer(store)
    with pytest.raises(TokenizerRequiredError):
        BM25VectorStore.from_dict(data)
    with pytest.raises(ValueError, match=r"^dense must be given"):
        BM25VectorStore.from_dict(data, tokenizer=str.split)


@pytest.mark.parametrize("way", ["to_dict", "to_json", "model_dump", "model_dump_json"])
def test_a_store_in_memory_refuses_to_be_a_dict_and_says_how_to_save_it(
    way: str, nodes: list[TextNode]
) -> None:
    store = BM25VectorStore()
    store.add(nodes)
    with pytest.raises(ValueError, match=r"persist\(path\).*BM25VectorStore\(path=\.\.\.\)"):
        getattr(store, way)()


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "model_copy"])
def test_a_store_in_memory_is_copied_whole(way: str, nodes: list[TextNode]) -> None:
    store = hybrid(nodes, **FUSION, sparse_doc_fn=encode, sparse_query_fn=encode)
    again = WAYS[way](store)
    assert answer(again) == answer(store)
    again.delete_nodes(["cat"])
    assert len(store.get_nodes()) == 4
    assert len(store.dense.data.embedding_dict) == 4


def test_what_cannot_be_pickled_is_named(nodes: list[TextNode]) -> None:
    store = BM25VectorStore(sparse_doc_fn=lambda texts: encode(texts))
    with pytest.raises(TypeError, match=r"^sparse_doc_fn of the BM25VectorStore cannot be pickled"):
        pickle.dumps(store)
    assert copy.deepcopy(store).add(nodes) == ["cat", "dog", "cow", "hen"]


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_a_retriever_is_copied_with_its_settings(way: str, nodes: list[TextNode]) -> None:
    retriever = BM25Retriever(nodes, similarity_top_k=3, correct=True, expand=True, min_score=0.01)
    again = WAYS[way](retriever)  # type: ignore[arg-type]
    assert again.retrieve("catz grass") == retriever.retrieve("catz grass") != []
