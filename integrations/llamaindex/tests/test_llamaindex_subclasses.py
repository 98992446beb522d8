"""What a subclass makes of a method holds when it is awaited, too."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
    VectorStoreQuery,
)
from llama_index.retrievers.bm25rag import BM25Retriever
from llama_index.retrievers.bm25rag.twins import pairs_of
from llama_index.vector_stores.bm25rag import BM25VectorStore, NoEmbedding

PETS = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value="pets")])


class Scoped(BM25VectorStore):
    """Shows pets alone, and marks what is added."""

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> Any:
        query.filters = PETS
        return super().query(query, **kwargs)

    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        return super().add([each.model_copy(update={"text": f"{each.text} new"}) for each in nodes])

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        if ref_doc_id != "farm":
            super().delete(ref_doc_id, **delete_kwargs)


def test_a_tenants_filter_holds_for_awaited_queries(nodes: list[TextNode]) -> None:
    async def use() -> None:
        store = Scoped()
        await store.async_add(nodes)
        index = VectorStoreIndex.from_vector_store(store, embed_model=NoEmbedding())
        retriever = index.as_retriever(similarity_top_k=10)
        for question in ("new", "grass"):
            expected = retriever.retrieve(question)
            assert await retriever.aretrieve(question) == expected
            assert {each.node.ref_doc_id for each in expected} <= {"pets"}
        assert len(await retriever.aretrieve("new")) == 2
        await store.adelete("farm")
        assert len(store.get_nodes()) == 4

    asyncio.run(use())


def test_a_filter_in_any_method_of_retrieval_holds_for_awaited_questions(
    nodes: list[TextNode],
) -> None:
    class Within(BM25Retriever):
        def _retrieve(self, query_bundle: QueryBundle) -> Any:
            self.filters = PETS
            return super()._retrieve(query_bundle)

    class Above(BM25Retriever):
        def retrieve(self, str_or_query_bundle: Any) -> Any:
            self.filters = PETS
            return super().retrieve(str_or_query_bundle)

    class Search(BM25Retriever):
        def search(self, query: Any, **kwargs: Any) -> Any:
            return super().search(query, **{**kwargs, "filters": PETS})

    for kind, ask in ((Within, "aretrieve"), (Above, "aretrieve"), (Search, "asearch")):
        retriever = kind(nodes, similarity_top_k=9)
        results = asyncio.run(getattr(retriever, ask)("cat cow hen"))
        assert [each.node_id for each in results] == ["dog", "cat"]


# --- every pair --------------------------------------------------------------------------

CLASSES: list[type] = [BM25Retriever, BM25VectorStore]
PAIRS = [(kind, *pair) for kind in CLASSES for pair in pairs_of(kind)]


def test_every_asynchronous_method_has_its_pair() -> None:
    """None is forgotten by the names that pairs are found by."""
    for kind in CLASSES:
        paired = {name for _, name in pairs_of(kind)}
        methods = {
            name
            for name in dir(kind)
            if inspect.iscoroutinefunction(inspect.unwrap(getattr(kind, name)))
        }
        assert methods == paired


@pytest.mark.parametrize(("kind", "name", "asynchronous"), PAIRS)
@pytest.mark.parametrize("how", ["subclass", "of a subclass", "mixin"])
def test_an_override_is_what_is_awaited(how: str, kind: type, name: str, asynchronous: str) -> None:
    def override(self: Any, *args: Any, **kwargs: Any) -> Any:
        return "overridden", args, kwargs

    override.__name__ = name
    if how == "mixin":
        made: Any = type("Made", (type("Mixin", (), {name: override}), kind), {})
    else:
        made = type("Made", (kind,), {name: override})
    if how == "of a subclass":
        made = type("Last", (made,), {})
    one = made([]) if kind is BM25Retriever else made()
    expected = ("overridden", (1,), {"a": 2})
    assert asyncio.run(getattr(one, asynchronous)(1, a=2)) == expected


@pytest.mark.parametrize(("kind", "name", "asynchronous"), PAIRS)
def test_a_class_that_overrides_both_is_asked_for_each(
    kind: type, name: str, asynchronous: str
) -> None:
    async def awaited(self: Any, *args: Any) -> Any:
        return "awaited"

    made: Any = type("Made", (kind,), {name: lambda self, *args: "called", asynchronous: awaited})
    one = made([]) if kind is BM25Retriever else made()
    assert asyncio.run(getattr(one, asynchronous)(1)) == "awaited"


def test_each_override_is_run_once(nodes: list[TextNode]) -> None:
    class Counting(BM25VectorStore):
        def add(self, nodes: Any, **kwargs: Any) -> list[str]:
            calls.append("add")
            return super().add(nodes, **kwargs)

    class Logging(Counting):
        async def async_add(self, nodes: Any, **kwargs: Any) -> list[str]:
            calls.append("async_add")
            return await super().async_add(nodes, **kwargs)

    calls: list[str] = []
    store = Logging(dense=SimpleVectorStore())
    asyncio.run(store.async_add([nodes[0].model_copy(update={"embedding": [1.0]})]))
    assert calls == ["async_add", "add"]
    assert len(store.dense.data.embedding_dict) == 1


def test_what_a_class_makes_of_both_is_done_when_it_awaits_ours(nodes: list[TextNode]) -> None:
    class Tagging(BM25Retriever):
        def add_nodes(self, nodes: Any, *args: Any, **kwargs: Any) -> list[str]:
            tagged = [each.model_copy(update={"metadata": {"tenant": 1}}) for each in nodes]
            return super().add_nodes(tagged, *args, **kwargs)

        async def aadd_nodes(self, nodes: Any, *args: Any, **kwargs: Any) -> list[str]:
            return await super().aadd_nodes(nodes, *args, **kwargs)

    retriever = Tagging([])
    asyncio.run(retriever.aadd_nodes(nodes))
    assert [each.metadata for each in retriever.get_nodes()] == [{"tenant": 1}] * 4


def test_an_overridden_sync_is_awaited(nodes: list[TextNode]) -> None:
    class Quiet(BM25Retriever):
        def sync(self, docstore: Any, **kwargs: Any) -> Any:
            return "nothing"

    assert asyncio.run(Quiet(nodes).async_sync(SimpleDocumentStore())) == "nothing"
