"""What the store says of the meta of all documents, from a few of them."""

from __future__ import annotations

from datetime import date
from random import Random
from typing import Any

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore
from haystack_integrations.document_stores.bm25rag.fields import (
    least_and_greatest,
    types_of_fields,
    unique_values,
)

from bm25rag.common.codec import decode_each

META_VALUES: list[Any] = [
    None, 1, 1.0, 2, 2.5, True, False, "a", "b", "2024-01-01", [1], [2], {"a": 1}, {"a": 2},
    float("nan"), float("inf"), 2**70, date(2024, 1, 1), -3, -3.0,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_what_the_store_says_of_meta_is_what_all_documents_say(
    store: BM25DocumentStore, seed: int
) -> None:
    random = Random(seed)

    def meta() -> dict[str, Any]:
        pool = random.choice([META_VALUES, [1, 1.0, 2, 0.5], ["a", "b", "c"]])
        return {key: random.choice(pool) for key in random.sample(["x", "y", "$z", "a.b"], 3)}

    for batch in range(2):
        store.write_documents([Document(id=f"{batch}-{n}", meta=meta()) for n in range(80)])
    changed = {"field": "meta.x", "operator": "in", "value": [1, "a", None]}
    store.update_by_filter(changed, {"y": random.choice(META_VALUES)})
    store.delete_documents([f"0-{n}" for n in random.sample(range(80), 20)])
    some = {"field": "meta.y", "operator": "!=", "value": 1}
    for filters in (None, some):
        metas = [document.meta for document in store.filter_documents(filters)]
        for field in ("x", "y", "$z", "a.b", "none"):
            values, count = store.get_metadata_field_unique_values(field, size=99, filters=filters)
            assert repr(values) == repr(unique_values(metas, field))
            assert store.count_unique_metadata_by_filter(filters, [field]) == {field: count}
    metas = [document.meta for document in store.filter_documents()]
    assert list(store.get_metadata_fields_info().items()) == list(types_of_fields(metas).items())
    for field in ("x", "y", "$z", "a.b", "none"):
        answer = store.get_metadata_field_min_max(field)
        assert repr(answer) == repr(least_and_greatest(metas, field))


def test_the_page_on_moving_says_where_statistics_of_meta_differ(store: BM25DocumentStore) -> None:
    theirs = InMemoryDocumentStore()
    for each in (theirs, store):
        metas = [{"x": 1, "n": 2.0}, {"x": 1.0, "n": float("nan")}, {"x": True, "n": 1.0}]
        each.write_documents([Document(id=str(n), meta=meta) for n, meta in enumerate(metas)])
        assert each.get_metadata_field_unique_values("x")[1] == 3
    assert theirs.count_unique_metadata_by_filter({}, ["x"]) == {"x": 1}
    assert store.count_unique_metadata_by_filter({}, ["x"]) == {"x": 3}
    assert store.get_metadata_field_min_max("n") == {"min": 1.0, "max": 2.0}


def test_the_statistics_of_meta_read_few_documents(
    store: BM25DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    metas = [{"n": n, "kind": "ab"[n % 2]} for n in range(200)]
    store.write_documents([Document(id=str(n), meta=meta) for n, meta in enumerate(metas)])
    read: list[object] = []
    monkeypatch.setattr(
        "bm25rag.metadata_samples.decode_each",
        lambda stored: read.extend(stored) or decode_each(stored),
    )
    assert store.get_metadata_fields_info() == {"n": {"type": "int"}, "kind": {"type": "keyword"}}
    assert store.get_metadata_field_min_max("n") == {"min": 0, "max": 199}
    assert store.get_metadata_field_unique_values("kind") == (["a", "b"], 2)
    assert len(read) == 6
