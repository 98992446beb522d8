"""What the tests of the Haystack adapter share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when Haystack is imported

from haystack import Document
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BM25DocumentStore:
    return BM25DocumentStore(tmp_path / "index" if request.param == "folder" else None)


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(id="cat", content="A cat sat on the mat.", meta={"lang": "en", "year": 2021}),
        Document(id="dog", content="Dogs chase the cat.", meta={"lang": "en", "year": 1999}),
        Document(id="hund", content="Der Hund jagt die cat.", meta={"lang": "de"}),
        Document(id="fish", content="Fish swim."),
    ]


@pytest.fixture
def filled(store: BM25DocumentStore, documents: list[Document]) -> BM25DocumentStore:
    store.write_documents(documents)
    return store
