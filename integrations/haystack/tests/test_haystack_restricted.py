"""``restrict``: whatever a store is asked, it is as if the other documents were not there."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from haystack import Document
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.bm25rag import BM25Retriever
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore

from bm25rag.errors import ReadOnlyError

DOCUMENTS = [
    Document(id=str(n), content=f"a red boat {n}", meta={"tenant": "ab"[n % 2], "n": n})
    for n in range(6)
]
ONLY_B = {"field": "meta.tenant", "operator": "==", "value": "b"}
ONLY_A = {"field": "meta.tenant", "operator": "==", "value": "a"}
WIDER: list[dict[str, Any] | None] = [
    None,
    ONLY_A,
    {"operator": "NOT", "conditions": [ONLY_B]},
    {"field": "id", "operator": "in", "value": ["0", "1"]},
]


@pytest.fixture(params=["path", "index"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BM25DocumentStore:
    where: Any = {"path": tmp_path} if request.param == "path" else {"index": str(tmp_path)}
    whole = BM25DocumentStore(**where)
    whole.write_documents(DOCUMENTS)
    restricted = BM25DocumentStore(**where, restrict=ONLY_B)
    restricted.whole = whole  # type: ignore[attr-defined]  # lives as long
    return restricted


def test_no_call_finds_more(store: BM25DocumentStore) -> None:
    whole = store.__dict__.pop("whole")
    dumped = BM25DocumentStore.from_dict(store.to_dict())
    for each in (store, dumped, copy.deepcopy(store), pickle.loads(pickle.dumps(store))):
        retriever = BM25Retriever(each, top_k=9)
        for filters in WIDER:
            documents = retriever.run("boat", filters, correct=True, expand=True)["documents"]
            documents += retriever.run_batch(["boat", "red"], filters)["documents"][1]
            documents += each.filter_documents(filters)
            assert {document.meta["tenant"] for document in documents} <= {"b"}
            assert each.count_documents_by_filter(filters) <= 3
        assert each.count_documents() == 3
        assert each.count_documents_by_filter(ONLY_A) == 0
        assert each.get_metadata_field_min_max("n") == {"min": 1, "max": 5}
        assert each.get_metadata_field_unique_values("tenant") == (["b"], 1)
    assert b"boat 0" not in pickle.dumps(store)
    whole.write_documents([Document(id="7", content="a new boat", meta={"tenant": "b"})])
    assert store.count_documents() == 4


def test_nothing_can_be_written(store: BM25DocumentStore) -> None:
    for write in (
        lambda: store.write_documents([Document(content="new")]),
        lambda: store.delete_documents(["1"]),
        store.delete_all_documents,
        lambda: store.update_by_filter(ONLY_B, {"n": 0}),
    ):
        with pytest.raises(ReadOnlyError, match="restrict"):
            write()


def test_a_wrong_restriction_is_an_error() -> None:
    for wrong in ({}, {"field": "meta.x"}):
        with pytest.raises(FilterError):
            BM25DocumentStore(restrict=wrong)
    for wrong_name, error in ((3, TypeError), ("half", ValueError)):
        with pytest.raises(error, match="restrict_statistics must be one of 'whole', 'part'"):
            BM25DocumentStore(restrict_statistics=wrong_name)  # type: ignore[arg-type]


def test_scores_are_by_the_statistics_of_all_or_of_the_part(tmp_path: Path) -> None:
    whole, part = BM25DocumentStore(path=tmp_path), BM25DocumentStore(index="part")
    whole.write_documents(DOCUMENTS)
    part.write_documents([one for one in DOCUMENTS if one.meta["tenant"] == "b"])

    def scores(store: BM25DocumentStore, filters: dict[str, Any] | None = None) -> list[Any]:
        documents = BM25Retriever(store).run("red boat", filters)["documents"]
        return [(document.id, document.score) for document in documents]

    given: Any = {"path": tmp_path, "restrict": ONLY_B}
    assert scores(BM25DocumentStore(**given)) == scores(whole, ONLY_B) != scores(part)
    of_part = BM25DocumentStore(**given, restrict_statistics="part")
    assert scores(of_part) == scores(part)
    assert scores(BM25DocumentStore.from_dict(of_part.to_dict())) == scores(part)
