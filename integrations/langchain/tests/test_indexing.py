"""LangChain's indexing API with a record manager, and what BM25DocumentIndex refuses."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_bm25rag import BM25DocumentIndex, BM25Retriever, BM25VectorStore
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index


def page(text: str, source: str) -> Document:
    return Document(text, metadata={"source": source})


FIRST = [page("one cat", "a"), page("two cats", "a"), page("three dogs", "b")]
THEN = [page("one cat", "a"), page("four birds", "a")]


@pytest.fixture
def records() -> InMemoryRecordManager:
    return InMemoryRecordManager("bm25")


async def run(is_async: bool, *args: Any, **kwargs: Any) -> Any:
    kwargs |= {"key_encoder": "sha256"}
    return await aindex(*args, **kwargs) if is_async else index(*args, **kwargs)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("cleanup", "deleted", "left"),
    [
        (None, 0, {"one cat", "two cats", "three dogs", "four birds"}),
        ("incremental", 1, {"one cat", "three dogs", "four birds"}),
        ("scoped_full", 1, {"one cat", "three dogs", "four birds"}),
        ("full", 2, {"one cat", "four birds"}),
    ],
)
async def test_every_kind_of_cleanup_leaves_what_it_should(
    records: InMemoryRecordManager, is_async: bool, cleanup: Any, deleted: int, left: set[str]
) -> None:
    """Documents that went are found no more, and those that stayed are skipped."""
    store = BM25DocumentIndex(k=10)
    keywords = {"cleanup": cleanup, "source_id_key": "source"}
    result = await run(is_async, FIRST, records, store, **keywords)
    assert result == {"num_added": 3, "num_updated": 0, "num_skipped": 0, "num_deleted": 0}
    result = await run(is_async, THEN, records, store, **keywords)
    assert result == {"num_added": 1, "num_updated": 0, "num_skipped": 1, "num_deleted": deleted}
    texts = {one.page_content for one in store.invoke("cats dogs birds")}
    assert texts == left
    assert len(store.index) == len(left)


async def test_force_update_and_duplicates(records: InMemoryRecordManager) -> None:
    """A document that is there is replaced, and equal documents are one."""
    store = BM25DocumentIndex()
    await run(False, [*FIRST, *FIRST], records, store)
    result = await run(False, FIRST, records, store, force_update=True)
    assert (result["num_updated"], len(store.index)) == (3, 3)


def test_a_document_index_and_a_retriever_share_one_index(retriever: BM25Retriever) -> None:
    store = BM25DocumentIndex(index=retriever.index, k=retriever.k)
    store.upsert([Document("an owl", id="owl")])
    assert retriever.invoke("owl") == store.invoke("owl") != []
    assert store.get(["owl"]) == retriever.get_by_ids(["owl"])


def test_a_document_index_searches_as_the_retriever_does(retriever: BM25Retriever) -> None:
    store = BM25DocumentIndex.from_index(retriever.index, min_score=0.0)
    assert store.invoke("cats", k=1, filter={"lang": "en"}) == retriever.invoke(
        "cats", k=1, filter={"lang": "en"}
    )


def test_a_saved_document_index_opens_again(tmp_path: Any) -> None:
    store = BM25DocumentIndex()
    store.upsert([Document("an owl", id="owl", metadata={"n": 1})])
    store.save(tmp_path)
    for cls in (BM25DocumentIndex, BM25Retriever):
        assert cls.open(tmp_path).invoke("owl") == store.invoke("owl")


def test_delete_reports_each_document_once(retriever: BM25Retriever) -> None:
    store = BM25DocumentIndex(index=retriever.index)
    assert store.delete(["cat", "nobody", "cat"]) == {
        "succeeded": ["cat"],
        "num_deleted": 1,
        "failed": [],
        "num_failed": 0,
    }
    assert store.delete([])["num_deleted"] == 0


def test_replies_of_threads_that_delete_the_same_ids_never_contradict(
    documents: list[Document],
) -> None:
    """Each document is in one reply, and the counts are those of the ids."""
    store = BM25DocumentIndex()
    wanted = [f"{number}" for number in range(50)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(100):
            store.upsert([Document("a cat", id=id) for id in wanted])
            replies = list(pool.map(store.delete, [wanted, wanted[::-1], wanted, wanted[::-1]]))
            told = Counter(id for reply in replies for id in reply["succeeded"])
            assert told == Counter(wanted)
            for reply in replies:
                assert reply["num_deleted"] == len(reply["succeeded"])
                assert (reply["num_failed"], reply["failed"]) == (0, [])


# --- a record manager and a folder ---------------------------------------------------

RUN_AND_DIE = """
import os, sys
from langchain_bm25rag import BM25DocumentIndex
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.indexing import index

records = SQLRecordManager("bm25", db_url=sys.argv[2])
records.create_schema()
store = BM25DocumentIndex.open(sys.argv[1], mode="w")
documents = [Document(text) for text in sys.argv[4:]]
index(documents, records, store, cleanup="full", key_encoder="sha256")
if sys.argv[3] == "after":
    store.commit()
os._exit(0)
"""


def align(store: BM25DocumentIndex, records: Any) -> None:
    store.align(records)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SQLRecordManager]:
    records = SQLRecordManager("bm25", db_url=f"sqlite:///{tmp_path / 'records.db'}")
    records.create_schema()
    yield records
    records.engine.dispose()


def die(tmp_path: Path, when: str, *texts: str) -> None:
    """Index texts in a process that dies before or after the commit."""
    paths = [str(tmp_path / "saved"), f"sqlite:///{tmp_path / 'records.db'}"]
    subprocess.run([sys.executable, "-c", RUN_AND_DIE, *paths, when, *texts], check=True)


def test_after_a_crash_before_the_commit_nothing_is_skipped(
    tmp_path: Path, database: SQLRecordManager
) -> None:
    """Added documents are added again, deleted ones deleted again, as the README says."""
    die(tmp_path, "after", "one cat", "two cats", "three dogs")
    die(tmp_path, "before", "one cat", "four birds")
    wanted = [Document("one cat"), Document("four birds"), Document("two cats")]
    keywords: dict[str, Any] = {"cleanup": "full", "key_encoder": "sha256"}
    with BM25DocumentIndex.open(tmp_path / "saved", mode="w", k=9) as store:
        # "four birds" is recorded and lost; "three dogs" is forgotten and still there.
        assert len(store.index) == len(database.list_keys()) + 1 == 3
        align(store, database)
        result = index(wanted, database, store, **keywords)
        assert (result["num_added"], result["num_skipped"]) == (2, 1)
    reader = BM25Retriever.open(tmp_path / "saved", k=9)
    texts = {one.page_content for one in reader.invoke("cat cats dogs birds")}
    assert texts == {one.page_content for one in wanted}
    assert set(database.list_keys()) == set(reader.index.ids())


def test_without_that_a_lost_document_would_be_skipped_for_ever(
    tmp_path: Path, database: SQLRecordManager
) -> None:
    die(tmp_path, "before", "one cat")
    with BM25DocumentIndex.open(tmp_path / "saved", mode="w") as store:
        result = index([Document("one cat")], database, store, key_encoder="sha256")
        assert result["num_skipped"] == 1
        assert store.invoke("cat") == []


def test_what_is_lost_is_forgotten_in_statements_that_databases_take() -> None:
    """SQLite takes 32,766 values in one, and others fewer."""
    sizes = []

    class Records(InMemoryRecordManager):
        def delete_keys(self, keys: Sequence[str]) -> None:
            sizes.append(len(keys))
            super().delete_keys(keys)

    records = Records("bm25")
    records.update([str(number) for number in range(2500)])
    align(BM25DocumentIndex(), records)
    records.update([str(number) for number in range(9)])
    store = BM25VectorStore.from_texts(["kept", "unknown"], ids=["3", "x"])
    asyncio.run(store.aalign(records))
    assert (store.index.ids(), records.list_keys()) == (["3"], ["3"])
    asyncio.run(BM25DocumentIndex().aalign(records))
    sizes = sizes[:3]
    assert (records.list_keys(), sizes) == ([], [1000, 1000, 500])


def test_keywords_that_mean_nothing_are_refused() -> None:
    store = BM25DocumentIndex()
    for call in (
        lambda: store.upsert([], batch_size=1),
        lambda: store.get([], filter={}),
        lambda: store.delete([], force=True),
    ):
        with pytest.raises(TypeError, match=r"does not take (batch_size|filter|force)$"):
            call()


def test_bad_ids_are_refused() -> None:
    store: Any = BM25DocumentIndex()
    for call in (store.get, store.delete):
        with pytest.raises(TypeError, match=r"^ids must be an iterable"):
            call("abc")


@pytest.mark.parametrize("cls", [BM25Retriever, BM25DocumentIndex, BM25VectorStore])
async def test_every_class_adds_documents_under_ids_that_are_given(cls: Any) -> None:
    """A retriever took none, and a document index had ``upsert`` alone."""
    store = cls()
    assert store.add_documents([Document("owl", id="a")], ids=["owl"]) == ["owl"]
    assert await store.aadd_documents([Document("cat", id="b")], ids=[None]) == ["b"]
    assert store.index.ids() == ["owl", "b"]
    with pytest.raises(TypeError, match=r"^add_documents does not take typo$"):
        store.add_documents([], typo=1)
    with pytest.raises(ValueError, match="ids must have one element for each document"):
        store.add_documents([Document("owl")], ids=[])
