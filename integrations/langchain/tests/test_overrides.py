"""What a subclass overrides holds in every way of calling it, also in those that are awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from conftest import ids
from langchain_bm25rag import BM25DocumentIndex, BM25HybridRetriever, BM25Retriever, BM25VectorStore
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore

DOCUMENTS = [
    Document("a cat of red", id="red", metadata={"tenant": "red"}),
    Document("a cat of blue", id="blue", metadata={"tenant": "blue"}),
]


class Encoder:
    """Makes sparse vectors, at once and awaited."""

    def embed_query(self, text: str) -> dict[str, float]:
        return dict.fromkeys(text.split(), 1.0)

    def embed_documents(self, texts: list[str]) -> list[dict[str, float]]:
        return [self.embed_query(text) for text in texts]

    async def aembed_query(self, text: str) -> dict[str, float]:
        return self.embed_query(text)

    async def aembed_documents(self, texts: list[str]) -> list[dict[str, float]]:
        return self.embed_documents(texts)


def beside() -> InMemoryVectorStore:
    return InMemoryVectorStore(DeterministicFakeEmbedding(size=8))


# --- all pairs ------------------------------------------------------------------------

MAKE: dict[type, Any] = {
    BM25Retriever: lambda cls: cls(),
    BM25DocumentIndex: lambda cls: cls(),
    BM25VectorStore: lambda cls: cls(sparse_embedding=Encoder()),
    BM25HybridRetriever: lambda cls: cls(vector_store=beside()),
}


def pairs(cls: type) -> Iterator[tuple[str, str]]:
    """Find the synchronous twin of each asynchronous method, but for those of all runnables."""
    for name in dir(cls):
        if hasattr(Runnable, name) or not inspect.iscoroutinefunction(getattr(cls, name)):
            continue
        if name in ("__aenter__", "__aexit__"):  # Python's protocol, tested below
            continue
        for prefix in ("a", "_a"):
            twin = prefix[:-1] + name.removeprefix(prefix)
            if name.startswith(prefix) and hasattr(cls, twin):
                yield twin, name
                break
        else:
            raise AssertionError(f"{cls.__name__}.{name} has no synchronous twin")


ALL = [(cls, *pair) for cls in MAKE for pair in pairs(cls)]


class CalledError(Exception):
    """Says that the method of the subclass was called."""


def required(method: Any) -> list[Any]:
    parameters = inspect.signature(method).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return ["mmr" for one in parameters if one.kind in kinds and one.default is one.empty]


def test_the_pairs_are_found() -> None:
    names = {name for cls, _, name in ALL if cls is BM25VectorStore}
    assert names >= {"asimilarity_search", "aadd_texts", "adelete", "asearch", "afrom_texts"}
    assert names >= {"amax_marginal_relevance_search_by_vector", "aget_by_ids", "acommit"}
    assert (BM25Retriever, "_get_relevant_documents", "_aget_relevant_documents") in ALL
    assert len(ALL) >= 60


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
@pytest.mark.parametrize(("cls", "name", "awaited"), ALL)
async def test_an_awaited_method_calls_what_a_subclass_overrides(
    cls: Any, name: str, awaited: str
) -> None:
    def method(*_args: Any, **_kwargs: Any) -> Any:
        raise CalledError

    of_class = isinstance(inspect.getattr_static(cls, name), classmethod)
    sub = type("Sub", (cls,), {name: classmethod(method) if of_class else method})
    made = sub if of_class else MAKE[cls](sub)
    arguments = required(getattr(made, awaited))
    with pytest.raises(CalledError):
        await getattr(made, awaited)(*arguments)
    if cls is BM25VectorStore and not of_class:
        store = MAKE[cls](cls)
        with mock.patch.object(store, name, method), pytest.raises(CalledError):
            await getattr(store, awaited)(*arguments)


async def test_async_with_calls_what_a_subclass_overrides(tmp_path: Any) -> None:
    """``commit`` at the end, ``rollback`` after an error."""
    called = []

    class Noted(BM25Retriever):
        def commit(self) -> None:
            called.append("commit")
            super().commit()

        def rollback(self) -> None:
            called.append("rollback")
            super().rollback()

    async with Noted.open(tmp_path, mode="w"):
        pass
    with pytest.raises(ZeroDivisionError):
        async with Noted.open(tmp_path, mode="w"):
            raise ZeroDivisionError
    with Noted.open(tmp_path, mode="w"):
        pass
    assert called == ["commit", "rollback", "commit"]


# --- a tenant's filter --------------------------------------------------------------------


class Scoped(BM25VectorStore):
    """Finds documents of one tenant alone, by the one method that all searches go through."""

    def similarity_search_with_score(self, query: Any, k: int = 4, **kwargs: Any) -> Any:
        return super().similarity_search_with_score(query, k, **kwargs | {"filter": {"red"}})


class Plain(BM25VectorStore):
    """Does the same in ``similarity_search``, as LangChain's documentation overrides it."""

    def similarity_search(self, query: Any, k: int = 4, **kwargs: Any) -> list[Document]:
        return super().similarity_search(query, k, **kwargs | {"filter": {"tenant": "red"}})


@pytest.mark.parametrize("cls", [Scoped, Plain])
@pytest.mark.parametrize("mode", ["bm25", "sparse", "hybrid"])
async def test_no_way_of_searching_gets_around_a_tenants_filter(cls: Any, mode: Any) -> None:
    """At once and awaited, alone and in a batch, with an encoder and without."""
    encoder = None if mode == "bm25" else Encoder()
    store = cls.from_documents(DOCUMENTS, sparse_embedding=encoder, retrieval_mode=mode)
    retriever = store.as_retriever()
    chain = retriever | (lambda documents: documents)
    answers = [
        store.similarity_search("cat"),
        await store.asimilarity_search("cat"),
        await store.asimilarity_search("cat", filter={}),
        store.search("cat", "similarity"),
        await store.asearch("cat", "similarity"),
        await retriever.ainvoke("cat"),
        *(await retriever.abatch(["cat", "cat"])),
        *[documents async for documents in retriever.astream("cat")],
        *[documents async for documents in chain.astream("cat")],
        retriever.invoke("cat", filter={"tenant": "blue"}),
        await retriever.ainvoke("cat", filter={"tenant": "blue"}),
    ]
    if cls is Scoped:
        scored = await store.asimilarity_search_with_score("cat")
        answers += [[document for document, _ in scored]]
        by_words = BM25HybridRetriever(index=store.index, vector_store=store, on_unknown="skip")
        assert set(ids(await by_words.ainvoke("cat", k=9))) == {"red", "blue"}  # the index's own
    if cls is Scoped and mode == "hybrid":
        scored = await store.asimilarity_search_with_relevance_scores("cat")
        answers += [
            [document for document, _ in scored],
            await store.asearch("cat", "similarity_score_threshold"),
        ]
    assert [ids(documents) for documents in answers] == [["red"]] * len(answers)


@pytest.mark.parametrize("cls", [BM25Retriever, BM25DocumentIndex, BM25HybridRetriever])
async def test_a_filter_in_invoke_holds_in_all_that_a_runnable_does(cls: Any) -> None:
    class Asked(cls):  # type: ignore[misc]
        def invoke(self, *arguments: Any, **given: Any) -> list[Document]:
            return super().invoke(*arguments, **given | {"filter": {"red"}})

    retriever = MAKE[cls](Asked)
    retriever.add_documents(DOCUMENTS)
    answers = [
        retriever.invoke("cat"),
        await retriever.ainvoke("cat", config={"tags": ["a"]}),
        await retriever.ainvoke("cat", None, filter={"blue"}),
        *retriever.batch(["cat", "cat"]),
        *(await retriever.abatch(["cat", "cat"])),
        *[documents async for documents in retriever.astream("cat")],
        *[documents async for documents in (retriever | list).astream("cat")],
    ]
    assert [ids(documents) for documents in answers] == [["red"]] * len(answers)


async def test_an_asynchronous_override_alone_holds_too() -> None:
    class Awaited(BM25VectorStore):
        async def asimilarity_search_with_score(self, query: Any, k: int = 4, **kwargs: Any) -> Any:
            return await super().asimilarity_search_with_score(query, k, **kwargs, filter={"red"})

    store = Awaited.from_documents(DOCUMENTS)
    assert ids(await store.asimilarity_search("cat")) == ["red"]
    assert ids(await store.as_retriever().ainvoke("cat")) == ["red"]


async def test_who_overrides_both_and_calls_super_is_called_once() -> None:
    called: list[str] = []

    class Both(BM25VectorStore):
        def similarity_search(self, query: Any, k: int = 4, **kwargs: Any) -> list[Document]:
            called.append("both")
            return super().similarity_search(query, k, filter={"red"}, **kwargs)

        async def asimilarity_search(self, query: Any, k: int = 4, **kwargs: Any) -> list[Document]:
            called.append("both, awaited")
            return await super().asimilarity_search(query, k, filter={"red"}, **kwargs)

        def delete(self, ids: Any = None, **kwargs: Any) -> bool:
            return super().delete([f"{id}!" for id in ids], **kwargs)

        async def adelete(self, ids: Any = None, **kwargs: Any) -> bool:
            return await super().adelete([f"{id}!" for id in ids], **kwargs)

    store = Both.from_documents([*DOCUMENTS, Document("a cat", id="one!")])
    assert ids(await store.asimilarity_search("cat")) == ["red"]
    assert called == ["both, awaited"]
    assert await store.adelete(["one"])
    assert store.index.ids() == ["red", "blue"]

    class Above(Plain):
        async def asimilarity_search(self, query: Any, k: int = 4, **kwargs: Any) -> list[Document]:
            return await super().asimilarity_search(query, k, **kwargs)

    assert ids(await Above.from_documents(DOCUMENTS).asimilarity_search("cat")) == ["red"]


async def test_an_override_of_adding_holds_for_every_way_of_adding() -> None:
    """It may read what it is given twice, and take no more than LangChain's documentation has."""

    class Stamped(BM25VectorStore):
        def add_documents(self, documents: Any, **kwargs: Any) -> list[str]:
            for document in documents:
                document.metadata["tenant"] = "red"
            return super().add_documents(documents, **kwargs)

    async def pages() -> Any:
        for number in range(3):
            yield Document(f"a cat {number}")

    class Mine(BM25Retriever):
        def add_documents(self, documents: Any) -> list[str]:  # type: ignore[override]
            for document in documents:
                document.metadata["tenant"] = "red"
            return super().add_documents(documents)

    for store in (Stamped(sparse_embedding=Encoder()), Stamped(), Mine()):
        await store.aadd_documents([Document("a cat")])
        await store.aadd_documents(pages())
        assert len(store.index) == len(store.index.ids({"tenant": "red"})) == 4
    for made in (await Stamped.afrom_documents(pages()), await Mine.afrom_documents(pages())):
        assert len(made.index) == len(made.index.ids({"tenant": "red"})) == 3


# --- retrievers as LangChain's documentation makes them -----------------------------------


class Documented(BM25Retriever):
    """Takes what LangChain's documentation takes."""

    def _get_relevant_documents(  # type: ignore[override]
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = super()._get_relevant_documents(query, run_manager=run_manager)
        assert isinstance(run_manager, CallbackManagerForRetrieverRun)
        return [one for one in documents if one.metadata["tenant"] == "red"]


class Older(BM25Retriever):
    """Takes what retrievers took before callbacks."""

    def _get_relevant_documents(self, query: str) -> list[Document]:  # type: ignore[override]
        hits = self.index.search(query, 9, {"tenant": "red"})
        return self.get_by_ids([hit.id for hit in hits])


class Beside(BM25HybridRetriever):
    """A hybrid one."""

    def _get_relevant_documents(  # type: ignore[override]
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = super()._get_relevant_documents(query, run_manager=run_manager)
        return [one for one in documents if one.metadata["tenant"] == "red"]


class Index(BM25DocumentIndex):
    """A document index."""

    def _get_relevant_documents(  # type: ignore[override]
        self, query: Any, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        kwargs["filter"] = {"red"}
        return super()._get_relevant_documents(query, run_manager=run_manager, **kwargs)


@pytest.mark.parametrize("cls", [Documented, Older, Beside, Index])
async def test_a_documented_subclass_answers_in_every_way(cls: Any) -> None:
    """``run_manager`` reaches those that take it, and nothing that the call did not give."""
    index = BM25Retriever.from_documents(DOCUMENTS).index
    fields: dict[str, Any] = {"index": index}
    if cls is Beside:
        fields["vector_store"] = beside()
        fields["vector_store"].add_documents(DOCUMENTS)
    retriever = cls(**fields)
    answers = [
        await asyncio.to_thread(retriever.invoke, "cat"),
        await retriever.ainvoke("cat"),
        *(await retriever.abatch(["cat", "cat"])),
        *[documents async for documents in retriever.astream("cat")],
        await (retriever | (lambda documents: documents)).ainvoke("cat"),
    ]
    assert [ids(documents) for documents in answers] == [["red"]] * 6
