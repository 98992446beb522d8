"""The index and the vector store of a hybrid retriever stay in step, whatever happens."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import ids
from langchain_bm25rag import BM25HybridRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer
from langchain_core.vectorstores import InMemoryVectorStore

from bm25rag import Query
from bm25rag.errors import DuplicateIdError, UncommittedWarning

A, B, C = (Document(f"a cat {id}", id=id, metadata={"n": id}) for id in "abc")


class Store(InMemoryVectorStore):
    """Counts what it embeds, and may fail."""

    def __init__(self) -> None:
        super().__init__(DeterministicFakeEmbedding(size=8))
        self.fails, self.awaits = False, False
        self.embedded = 0

    def _check(self, awaited: bool = False) -> None:
        if self.fails:
            raise ConnectionError("no route")
        if self.awaits and not awaited:
            raise NotImplementedError("asynchronous only")

    def add_documents(self, documents: list[Document], ids: Any = None, **keywords: Any) -> Any:
        self._check()
        self.embedded += len(documents)
        return super().add_documents(documents, ids, **keywords)

    async def aadd_documents(self, documents: list[Document], ids: Any = None, **_: Any) -> Any:
        self._check(awaited=True)
        self.embedded += len(documents)
        return super().add_documents(documents, ids)

    def delete(self, ids: Any = None, **keywords: Any) -> None:
        self._check()
        super().delete(ids)

    async def adelete(self, ids: Any = None, **_: Any) -> None:
        self._check(awaited=True)
        super().delete(ids)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def folder(tmp_path: Path, store: Store) -> Path:
    """Return a folder with two documents, which the vector store has, too."""
    with BM25HybridRetriever.open(tmp_path / "it", mode="w", vector_store=store) as writer:
        writer.add_documents([A, B])
    return tmp_path / "it"


def held(store: Store) -> dict[str, tuple[str, Any]]:
    return {id: (one["text"], one["metadata"].get("n")) for id, one in store.store.items()}


BEFORE = {"a": ("a cat a", "a"), "b": ("a cat b", "b")}


def change(writer: BM25HybridRetriever) -> None:
    writer.add_documents([C, Document("a new cat", id="a")])
    writer.delete(["b"])
    writer.update_metadata(["c"], [{"n": 9}])


async def achange(writer: BM25HybridRetriever) -> None:
    await writer.aadd_documents([C, Document("a new cat", id="a")])
    await writer.adelete(["b"])
    await writer.aupdate_metadata(["c"], [{"n": 9}])


@pytest.mark.parametrize(
    ("way", "awaits"),
    [
        ("with", False),
        ("rollback", False),
        ("async with", False),
        ("async with", True),
        ("arollback", False),
        ("arollback", True),
    ],
)
async def test_what_is_rolled_back_is_undone_in_both(
    folder: Path, store: Store, way: str, awaits: bool
) -> None:
    """Also where the vector store has asynchronous methods alone."""
    store.awaits = awaits
    writer = BM25HybridRetriever.open(folder, mode="w", vector_store=store)

    async def fail() -> None:
        if way == "with":
            with writer:
                change(writer)
                raise ZeroDivisionError
        async with writer:
            await achange(writer)
            raise ZeroDivisionError

    if "with" in way:
        with pytest.raises(ZeroDivisionError):
            await fail()
    else:
        await achange(writer)
        assert set(held(store)) == {"a", "c"}
        if way == "rollback":
            writer.rollback()
        else:
            await writer.arollback()
        writer.close()
    assert held(store) == BEFORE
    reader = BM25HybridRetriever.open(folder, vector_store=store, k=9)
    assert set(ids(reader.invoke("cat"))) == {"a", "b"}
    assert set(ids(await reader.ainvoke("cat"))) == {"a", "b"}


def test_closing_without_a_commit_undoes_and_says_so(folder: Path, store: Store) -> None:
    writer = BM25HybridRetriever.open(folder, mode="w", vector_store=store)
    change(writer)
    with pytest.warns(UncommittedWarning, match=r"call commit\(\)"):
        writer.close()
    assert held(store) == BEFORE
    writer.close()


def test_what_was_committed_stays(folder: Path, store: Store) -> None:
    """What came after the commit goes; nothing is embedded again that need not be."""
    writer = BM25HybridRetriever.open(folder, mode="w", vector_store=store)
    writer.add_documents([C])
    writer.commit()
    writer.delete(["a"])
    before = store.embedded
    writer.rollback()
    assert store.embedded == before + 1
    writer.rollback()
    assert store.embedded == before + 1
    writer.close()
    assert set(held(store)) == {"a", "b", "c"}


def test_a_commit_that_fails_undoes_both(
    folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> None:
        with BM25HybridRetriever.open(folder, mode="w", vector_store=store) as writer:
            change(writer)
            monkeypatch.setattr("bm25rag.storage.folder_writer.write_files", full)

    with pytest.raises(OSError, match="full"):
        write()
    monkeypatch.undo()
    assert held(store) == BEFORE
    with BM25HybridRetriever.open(folder, mode="w", vector_store=store) as writer:
        assert set(writer.index.ids()) == {"a", "b"}


def full(*_: Any) -> Any:
    raise OSError("the disk is full")


def test_a_vector_store_that_cannot_go_back_is_named_and_align_does_it_later(
    folder: Path, store: Store
) -> None:
    writer = BM25HybridRetriever.open(folder, mode="w", vector_store=store)
    change(writer)
    store.fails = True
    with pytest.raises(RuntimeError, match=r"no route; once it works, align\(\)"):
        writer.rollback()
    assert set(writer.index.ids()) == {"a", "b"}
    with pytest.raises(RuntimeError, match="Store, failed: ConnectionError"):
        writer.close()
    store.fails = False
    with BM25HybridRetriever.open(folder, mode="w", vector_store=store) as again:
        with pytest.raises(ValueError, match=r"not in the BM25 index.*align\(\) of this retriever"):
            again.invoke("cat", k=9)
        aligned = again.align()
    assert (set(aligned.added), aligned.deleted) == ({"a", "b"}, ["c"])
    assert held(store) == BEFORE


@pytest.mark.parametrize("awaited", [False, True])
async def test_documents_without_ids_are_not_doubled_if_the_error_is_heeded(
    store: Store, awaited: bool
) -> None:
    """As where a model that embeds has its limits: the obvious retry would give them new ids."""
    hybrid = BM25HybridRetriever(vector_store=store)
    store.fails = True
    add = hybrid.aadd_documents if awaited else partial(asyncio.to_thread, hybrid.add_documents)
    with pytest.raises(RuntimeError, match=r"no route; the index has .* align\(\) gives them"):
        await add([Document("a cat")])
    store.fails = False
    aligned = await hybrid.aalign() if awaited else hybrid.align()
    assert aligned == (hybrid.index.ids(), [])
    assert len(hybrid.invoke("cat")) == 1


@pytest.mark.parametrize("awaited", [False, True])
async def test_after_a_crash_align_makes_the_vector_store_hold_what_the_index_holds(
    folder: Path, store: Store, awaited: bool
) -> None:
    """The process died between the two: the vector store is ahead in every way."""
    store.delete(["b"])
    store.add_documents([C, Document("another cat", id="a", metadata={"n": "a"})])
    again = BM25HybridRetriever.open(folder, mode="w", vector_store=store)
    aligned = await again.aalign() if awaited else again.align()
    assert (set(aligned.added), aligned.deleted) == ({"a", "b"}, ["c"])
    assert held(store) == BEFORE
    before = store.embedded
    assert again.align() == ([], [])
    assert store.embedded == before
    store.add_documents([Document("a cat a", id="a", metadata={"n": "old"})])
    assert again.align() == (["a"], [])
    again.index.delete(["a", "b"])
    assert set(again.align().deleted) == {"a", "b"}
    assert held(store) == {}
    again.index.rollback()
    again.align()
    assert held(store) == BEFORE
    again.close()


def test_an_index_in_memory_is_left_alone(store: Store) -> None:
    with BM25HybridRetriever.from_documents([A, B], store) as hybrid:
        hybrid.delete(["b"])
    assert set(held(store)) == {"a"}
    with pytest.raises(ZeroDivisionError), hybrid:
        raise ZeroDivisionError
    hybrid.close()
    assert set(held(store)) == {"a"}


def test_many_documents_are_aligned_in_batches(store: Store) -> None:
    hybrid = BM25HybridRetriever(vector_store=store)
    hybrid.index.add([f"text {n}" for n in range(1500)])
    store.add_documents([Document("x", id=f"x{n}") for n in range(6000)])
    aligned = hybrid.align()
    assert (len(aligned.added), len(aligned.deleted), len(store.store)) == (1500, 6000, 1500)


# --- writing --------------------------------------------------------------------------


async def test_deleting_by_a_filter_reaches_both(folder: Path, store: Store) -> None:
    """Alone, with ids, and as a callable; without either it is refused."""
    with BM25HybridRetriever.open(folder, mode="w", vector_store=store) as writer:
        with pytest.raises(ValueError, match="ids must be given"):
            writer.delete()
        with pytest.raises(ValueError, match="ids must be given"):
            writer.delete(filter={})
        writer.add_documents([C])
        assert writer.delete(["a", "b"], filter={"n": "a"})["succeeded"] == ["a"]
        deleted = await writer.adelete(filter=lambda document: document.id == "c")
        assert deleted["succeeded"] == ["c"]
        assert set(held(store)) == set(writer.index.ids()) == {"b"}


async def test_what_is_there_already_is_skipped_or_refused(folder: Path, store: Store) -> None:
    new = [Document("other", id="a"), C]
    with BM25HybridRetriever.open(folder, mode="w", vector_store=store) as writer:
        with pytest.raises(DuplicateIdError):
            writer.add_documents(new, on_duplicate="error")
        assert set(held(store)) == {"a", "b"}
        assert await writer.aadd_documents(new, on_duplicate="skip") == ["c"]
        assert held(store)["a"] == BEFORE["a"]
        assert held(store)["c"] == ("a cat c", "c")
        assert writer.upsert(new, on_duplicate="skip")["succeeded"] == []


async def test_metadata_are_replaced_in_both(folder: Path, store: Store) -> None:
    with BM25HybridRetriever.open(folder, mode="w", vector_store=store) as writer:
        assert await writer.aupdate_metadata(["a", "nobody"], [{"n": 7}, {}]) == ["a"]
        assert held(store) == {**BEFORE, "a": ("a cat a", 7)}
        assert ids(writer.invoke("cat", filter={"n": 7})) == ["a"]


# --- LangChain's index() --------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("cleanup", ["full", "incremental", "scoped_full"])
async def test_the_indexing_api_writes_to_both(store: Store, is_async: bool, cleanup: Any) -> None:
    hybrid, records = BM25HybridRetriever(vector_store=store), InMemoryRecordManager("hybrid")

    async def run(*texts: str) -> tuple[int, int, int]:
        documents = [Document(text, metadata={"source": "s"}) for text in texts]
        keywords: dict[str, Any] = {
            "cleanup": cleanup,
            "source_id_key": "source",
            "key_encoder": "sha256",
        }
        if is_async:
            done = await aindex(documents, records, hybrid, **keywords)
        else:
            done = index(documents, records, hybrid, **keywords)
        return done["num_added"], done["num_skipped"], done["num_deleted"]

    assert await run("a cat", "a dog") == (2, 0, 0)
    assert await run("a cat", "an owl") == (1, 1, 1)
    assert {one["text"] for one in store.store.values()} == {"a cat", "an owl"}
    assert set(store.store) == set(hybrid.index.ids())
    assert hybrid.get(hybrid.index.ids()) == await hybrid.aget_by_ids(hybrid.index.ids())


@pytest.mark.parametrize("awaited", [False, True])
async def test_align_takes_the_record_manager_too(store: Store, awaited: bool) -> None:
    """What it knows and the index has lost is forgotten, what it does not know is deleted."""
    hybrid, records = BM25HybridRetriever.from_documents([A, B], store), InMemoryRecordManager("h")
    records.update(["a", "lost"])
    aligned = await hybrid.aalign(records) if awaited else hybrid.align(records)
    assert aligned == ([], [])
    assert (records.list_keys(), hybrid.index.ids(), set(held(store))) == (["a"], ["a"], {"a"})


# --- what a retriever has ---------------------------------------------------------------


def test_min_score_id_key_and_get_by_ids(store: Store) -> None:
    """As ``BM25Retriever`` has them; the score is the fused one."""
    hybrid = BM25HybridRetriever.from_documents(
        [A, B, Document("dogs", id="d")], store, k=9, score_key="score"
    )
    with_ids = hybrid.model_copy(update={"id_key": "the id"})
    assert [one.metadata["the id"] for one in with_ids.invoke("cat a")] == ids(
        hybrid.invoke("cat a")
    )
    scores = [one.metadata["score"] for one in hybrid.invoke("cat a")]
    documents = hybrid.invoke("cat a", min_score=scores[1])
    assert [one.metadata["score"] for one in documents] == [
        one for one in scores if one >= scores[1]
    ]
    narrow = hybrid.model_copy(update={"min_score": 99.0})
    assert narrow.invoke("cat a") == asyncio.run(narrow.ainvoke("cat a")) == []
    assert ids(hybrid.get_by_ids(["b", "nobody", "a"])) == ["b", "a"]


async def test_pages_are_parts_of_one_ranking(store: Store) -> None:
    """And a filter alone lists what passes, in document order."""
    many = [Document(f"cat {n}", id=str(n), metadata={"even": n % 2 == 0}) for n in range(10)]
    hybrid = BM25HybridRetriever.from_documents(many, store, k=3)
    whole = hybrid.invoke("cat 3", k=10)
    pages = [await hybrid.ainvoke("cat 3", offset=offset) for offset in (0, 3, 6, 9)]
    assert [one for page in pages for one in page] == whole
    even = {"even": True}
    assert ids(hybrid.invoke("", filter=even, offset=1)) == ["2", "4", "6"]
    assert ids(await hybrid.ainvoke(" ", filter=even)) == ["0", "2", "4"]
    assert ids(hybrid.invoke("", filter=even, min_score=0.5)) == ["0", "2", "4"]
    assert hybrid.invoke(Query(), filter=even) == hybrid.invoke("", filter=even)


async def test_the_question_is_corrected_and_expanded_for_bm25(store: Store) -> None:
    texts = ["a kitten purrs", "kitten and whiskers purr", "whiskers", "dogs"]
    hybrid = BM25HybridRetriever.from_documents(
        [Document(text, id=text) for text in texts], store, k=9, weights=[1, 0], min_score=0.01
    )
    assert hybrid.invoke("kiten") == []
    assert len(hybrid.invoke("kiten", correct=True)) == 2 - 1  # the last of a ranking is worth 0
    assert len(await hybrid.ainvoke("kiten", correct=True, expand=True)) >= 2


# --- traces -------------------------------------------------------------------------------


class Tracer(BaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        self.runs.append(run)


class AwaitedTracer(AsyncBaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Any] = []

    async def _persist_run(self, run: Any) -> None:
        self.runs.append(run)


@pytest.mark.parametrize("kind", [Tracer, AwaitedTracer])
async def test_a_trace_has_a_child_run_for_each_side(store: Store, kind: Any) -> None:
    hybrid, tracer = BM25HybridRetriever.from_documents([A, B], store), kind()
    if kind is Tracer:
        hybrid.invoke("cat", {"callbacks": [tracer]})
    await hybrid.ainvoke("cat", {"callbacks": [tracer]})
    assert len(tracer.runs) == 2 if kind is Tracer else 1
    for run in tracer.runs:
        assert {child.name for child in run.child_runs} == {"BM25", "Store"}
        for child in run.child_runs:
            assert (child.run_type, child.inputs) == ("retriever", {"query": "cat"})
            assert {one.id for one in child.outputs["documents"]} == {"a", "b"}
    broken = hybrid.model_copy(update={"search_kwargs": {"filter": 3}})
    with pytest.raises(RuntimeError, match="Store, failed"):
        await broken.ainvoke("cat", {"callbacks": [tracer]})
    failed = {child.name: child.error for child in tracer.runs[-1].child_runs}
    assert failed["BM25"] is None
    assert "not callable" in failed["Store"]
    events = [
        event["name"]
        async for event in hybrid.astream_events("cat", version="v2")
        if event["event"] == "on_retriever_end"
    ]
    assert sorted(events) == ["BM25", "BM25HybridRetriever", "Store"]
