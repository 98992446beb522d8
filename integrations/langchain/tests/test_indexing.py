"""LangChain's indexing API with a record manager, and what BM25DocumentIndex refuses."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_bm25rag import BM25DocumentIndex, BM25Retriever
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index


def page(text: str, source: str) -> Document:
    """Make a document."""
    return Document(text, metadata={"source": source})


FIRST = [page("one cat", "a"), page("two cats", "a"), page("three dogs", "b")]
THEN = [page("one cat", "a"), page("four birds", "a")]


@pytest.fixture
def records() -> InMemoryRecordManager:
    """Return a record manager."""
    return InMemoryRecordManager("bm25")


async def run(is_async: bool, *args: Any, **kwargs: Any) -> Any:
    """Index in the sync or the async way."""
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
    found = {one.page_content for one in store.invoke("cats dogs birds")}
    assert found == left
    assert len(store.index) == len(left)


async def test_force_update_and_duplicates(records: InMemoryRecordManager) -> None:
    """A document that is there is replaced, and equal documents are one."""
    store = BM25DocumentIndex()
    await run(False, [*FIRST, *FIRST], records, store)
    result = await run(False, FIRST, records, store, force_update=True)
    assert (result["num_updated"], len(store.index)) == (3, 3)


def test_a_document_index_and_a_retriever_share_one_index(retriever: BM25Retriever) -> None:
    """What one writes the other finds."""
    store = BM25DocumentIndex(index=retriever.index, k=retriever.k)
    store.upsert([Document("an owl", id="owl")])
    assert retriever.invoke("owl") == store.invoke("owl") != []
    assert store.get(["owl"]) == retriever.get_by_ids(["owl"])


def test_a_document_index_searches_as_the_retriever_does(retriever: BM25Retriever) -> None:
    """With the same keywords."""
    store = BM25DocumentIndex.from_index(retriever.index, min_score=0.0)
    assert store.invoke("cats", k=1, filter={"lang": "en"}) == retriever.invoke(
        "cats", k=1, filter={"lang": "en"}
    )


def test_a_saved_document_index_opens_again(tmp_path: Any) -> None:
    """As a document index or as a retriever."""
    store = BM25DocumentIndex()
    store.upsert([Document("an owl", id="owl", metadata={"n": 1})])
    store.save(tmp_path)
    for cls in (BM25DocumentIndex, BM25Retriever):
        assert cls.open(tmp_path).invoke("owl") == store.invoke("owl")


def test_delete_reports_each_document_once(retriever: BM25Retriever) -> None:
    """A missing id is no failure."""
    store = BM25DocumentIndex(index=retriever.index)
    assert store.delete(["cat", "nobody", "cat"]) == {
        "succeeded": ["cat"],
        "num_deleted": 1,
        "failed": [],
        "num_failed": 0,
    }
    assert store.delete([])["num_deleted"] == 0


def test_keywords_that_mean_nothing_are_refused() -> None:
    """And not swallowed."""
    store = BM25DocumentIndex()
    for call in (
        lambda: store.upsert([], batch_size=1),
        lambda: store.get([], filter={}),
        lambda: store.delete([], force=True),
    ):
        with pytest.raises(TypeError, match=r"takes no keywords, got (batch_size|filter|force)"):
            call()


def test_bad_ids_are_refused() -> None:
    """A bare string is no list of ids."""
    store: Any = BM25DocumentIndex()
    for call in (store.get, store.delete):
        with pytest.raises(TypeError, match=r"^ids must be an iterable"):
            call("abc")
