"""Stores and retrievers are copied and pickled, and paths come from the environment."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.utils import Secret
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag import Analyzer

WAYS: list[Callable[[Any], Any]] = [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
CAT, DOG = Document(id="cat", content="A cat."), Document(id="dog", content="A dog.")


@pytest.mark.parametrize("way", WAYS)
def test_the_copy_of_a_store_with_a_path_is_one_of_the_same_folder(
    tmp_path: Path, way: Callable[[Any], Any]
) -> None:
    store = BM25DocumentStore(tmp_path, k1=2.0, analyzer=Analyzer("german"), lock_timeout=5)
    store.write_documents([CAT])
    again = way(store)
    assert again.to_dict() == store.to_dict()
    again.write_documents([DOG])
    assert store.filter_documents() == again.filter_documents() == [CAT, DOG]


@pytest.mark.parametrize("way", [*WAYS, copy.copy])
def test_the_copy_of_a_store_in_memory_has_documents_of_its_own(way: Callable[[Any], Any]) -> None:
    store = BM25DocumentStore(b=0.5)
    store.write_documents([CAT])
    again = way(store)
    again.write_documents([DOG])
    assert (store.count_documents(), again.count_documents()) == (1, 2)
    assert again.to_dict()["init_parameters"]["b"] == 0.5


def test_a_name_stands_for_the_same_documents_in_a_copy_too() -> None:
    store = BM25DocumentStore(index="shared by copies")
    store.write_documents([CAT])
    pickled = pickle.dumps(store)
    again = copy.deepcopy(store)
    again.write_documents([DOG])
    assert store.count_documents() == 2
    del store, again
    assert pickle.loads(pickled).filter_documents() == [CAT]  # nobody had the documents any more


@pytest.mark.parametrize("way", WAYS)
def test_a_retriever_and_a_pipeline_are_copied_with_their_store(
    store: BM25DocumentStore, way: Callable[[Any], Any]
) -> None:
    store.write_documents([CAT])
    retriever = way(BM25Retriever(store, top_k=3, correct=True))
    assert [one.id for one in retriever.run("cat")["documents"]] == ["cat"]
    assert retriever.to_dict()["init_parameters"]["correct"] is True
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store))
    pipeline.add_component("writer", DocumentWriter(store))
    copied = copy.deepcopy(pipeline)
    copied.run({"retriever": {"query": "cat"}, "writer": {"documents": [DOG]}})
    output = copied.run({"retriever": {"query": "dog"}, "writer": {"documents": []}})
    assert [one.id for one in output["retriever"]["documents"]] == ["dog"]


def test_a_store_goes_to_another_process(tmp_path: Path) -> None:
    stores = [BM25DocumentStore(tmp_path), BM25DocumentStore()]
    for store in stores:
        store.write_documents([CAT])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answers = pool.map(BM25DocumentStore.filter_documents, stores)
    assert answers == [[CAT], [CAT]]


def test_a_path_comes_from_the_environment_and_stays_out_of_the_dump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BM25_PATH", str(tmp_path / "secret-place"))
    store = BM25DocumentStore(Secret.from_env_var("BM25_PATH"))
    store.write_documents([CAT])
    assert store.path == tmp_path / "secret-place"
    pipeline = Pipeline()
    pipeline.add_component("retriever", BM25Retriever(store))
    dumped = pipeline.dumps()
    assert "secret-place" not in dumped
    monkeypatch.setenv("BM25_PATH", str(tmp_path / "another"))
    loaded = Pipeline.loads(dumped).get_component("retriever").document_store
    assert loaded.path == tmp_path / "another"
    assert loaded.to_dict() == store.to_dict()
    assert BM25DocumentStore.from_dict(store.to_dict()).count_documents() == 0


def test_a_variable_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BM25_PATH", raising=False)
    for strict in (True, False):
        with pytest.raises(ValueError, match="BM25_PATH"):
            BM25DocumentStore(Secret.from_env_var("BM25_PATH", strict=strict))


def test_a_secret_that_is_written_out_is_not_dumped(tmp_path: Path) -> None:
    store = BM25DocumentStore(Secret.from_token(str(tmp_path)))
    with pytest.raises(ValueError, match="serialize"):
        store.to_dict()
