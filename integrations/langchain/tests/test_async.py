"""Async methods: the same answers, and the event loop stays free."""

from __future__ import annotations

import asyncio
import threading

from conftest import ids
from langchain_bm25rag import (
    BM25DocumentIndex,
    BM25HybridRetriever,
    BM25Retriever,
    BM25VectorStore,
)
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore


async def test_async_methods_answer_as_their_twins_do(documents: list[Document]) -> None:
    made = await BM25Retriever.afrom_documents(documents, bm25_params={"b": 0.3}, k=2)
    assert (made.index.b, made.k) == (0.3, 2)
    texts = await BM25Retriever.afrom_texts(["Red Fish"], [{}], ["a"], None, str.split, k=1)
    assert ids(await texts.ainvoke("Fish")) == ["a"]
    for keywords in ({}, {"k": 1}, {"filter": {"lang": "en"}}, {"min_score": 1e9}):
        assert await made.ainvoke("cats", **keywords) == made.invoke("cats", **keywords)
    assert await made.abatch(["cats", "bird"], k=1) == made.batch(["cats", "bird"], k=1)
    assert await made.bind(k=1).ainvoke("cats") == made.invoke("cats", k=1)
    assert await made.aadd_documents([Document("owl", id="owl")]) == ["owl"]
    assert await made.aget_by_ids(["owl"]) == made.get_by_ids(["owl"])
    assert await made.adelete(["owl", "nobody"]) == ["owl"]


async def test_the_event_loop_stays_free() -> None:
    """Analysis and filters run in another thread while the loop goes on."""
    ran_in: set[str] = set()
    started, release = threading.Event(), threading.Event()

    def split(text: str) -> list[str]:
        ran_in.add(threading.current_thread().name)
        started.set()
        assert release.wait(60)
        return text.split()

    async def meanwhile() -> None:
        while not started.is_set():
            await asyncio.sleep(0.001)
        release.set()  # from the loop: were it blocked, split would wait in vain

    async def check(task: object) -> object:
        started.clear()
        release.clear()
        return (await asyncio.gather(task, meanwhile()))[0]  # type: ignore[call-overload]

    document = Document("cat", id="a")
    retriever = await check(BM25Retriever.afrom_documents([document], preprocess_func=split))
    assert isinstance(retriever, BM25Retriever)
    await check(retriever.ainvoke("cat"))
    await check(retriever.aadd_documents([document]))
    await check(BM25DocumentIndex(index=retriever.index).aupsert([document]))
    await check(retriever.ainvoke("cat", filter=lambda document: split("judged")))
    assert threading.current_thread().name not in ran_in


async def test_after_a_write_a_restricted_view_is_made_anew_off_the_event_loop(
    retriever: BM25Retriever,
) -> None:
    ran_in: set[str] = set()

    def english(metadata: dict[str, object]) -> bool:
        ran_in.add(threading.current_thread().name)
        return metadata.get("lang") == "en"

    view = retriever.index.restricted(english)
    vectors = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    hybrid = BM25HybridRetriever(index=view, vector_store=vectors)
    for ask in (
        BM25Retriever(index=view).ainvoke("bird"),
        hybrid.ainvoke("bird"),
        BM25VectorStore(view).asimilarity_search("+bird", parse_query=True),
    ):
        retriever.add_documents([Document("A bird sings.", metadata={"lang": "en"})])
        ran_in.clear()
        assert [document.metadata for document in await ask]
        assert ran_in
        assert threading.current_thread().name not in ran_in


async def test_context_reaches_the_thread(retriever: BM25Retriever) -> None:
    """Context variables, which tracing relies on, are there."""
    from contextvars import ContextVar

    tenant: ContextVar[str] = ContextVar("tenant")
    tenant.set("de")
    documents = await retriever.ainvoke(
        "cats", filter=lambda document: document.metadata.get("lang") == tenant.get()
    )
    assert ids(documents) == ["cats"]
