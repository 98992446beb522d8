"""LangChain's own suites, unaltered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_bm25rag import BM25DocumentIndex, BM25HybridRetriever, BM25Retriever
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing.base import DocumentIndex
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)

from bm25rag import BM25Index


class TestRetriever(RetrieversIntegrationTests):
    """The retriever suite, on ``BM25Retriever``."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return BM25Retriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": BM25Index.from_texts(["a cat", "two cats", "my cat", "cat and dog"])}

    @property
    def retriever_query_example(self) -> str:
        return "cats"


class TestDocumentIndexAsRetriever(TestRetriever):
    """The retriever suite, on ``BM25DocumentIndex``."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return BM25DocumentIndex


class TestHybridRetriever(TestRetriever):
    """The retriever suite, on ``BM25HybridRetriever``."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return BM25HybridRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        index = super().retriever_constructor_params["index"]
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        documents = index.get(index.ids())
        store.add_texts([one.text for one in documents], ids=[one.id for one in documents])
        return {"index": index, "vector_store": store}


class TestDocumentIndex(DocumentIndexerTestSuite):
    """The document index suite."""

    @pytest.fixture
    def index(self) -> DocumentIndex:
        return BM25DocumentIndex()


class TestAsyncDocumentIndex(AsyncDocumentIndexTestSuite):
    """The async document index suite."""

    @pytest.fixture
    def index(self) -> DocumentIndex:
        return BM25DocumentIndex()


def hybrid() -> BM25HybridRetriever:
    """Return an empty hybrid retriever, which is a document index, too."""
    return BM25HybridRetriever(vector_store=InMemoryVectorStore(DeterministicFakeEmbedding(size=8)))


class TestHybridIndex(DocumentIndexerTestSuite):
    """The document index suite, on ``BM25HybridRetriever``."""

    @pytest.fixture
    def index(self) -> DocumentIndex:
        return hybrid()


class TestAsyncHybridIndex(AsyncDocumentIndexTestSuite):
    """The async document index suite, on ``BM25HybridRetriever``."""

    @pytest.fixture
    def index(self) -> DocumentIndex:
        return hybrid()


SUITES = {
    TestRetriever: RetrieversIntegrationTests,
    TestDocumentIndexAsRetriever: RetrieversIntegrationTests,
    TestHybridRetriever: RetrieversIntegrationTests,
    TestDocumentIndex: DocumentIndexerTestSuite,
    TestAsyncDocumentIndex: AsyncDocumentIndexTestSuite,
    TestHybridIndex: DocumentIndexerTestSuite,
    TestAsyncHybridIndex: AsyncDocumentIndexTestSuite,
}


def test_the_collected_tests_are_the_frameworks_own_and_none_is_expected_to_fail() -> None:
    """What pytest collects here is LangChain's list, whole, and nothing is marked xfail or skip."""
    here = Path(__file__)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    listed = subprocess.run([*command, here], capture_output=True, text=True, check=True).stdout
    for ours, theirs in SUITES.items():
        expected = {name for name in dir(theirs) if name.startswith("test_")}
        parts = (line.split("::") for line in listed.splitlines() if "::" in line)
        collected = {names[2] for names in parts if names[1:-1] == [ours.__name__]}
        assert collected == expected
        assert not getattr(ours, "pytestmark", [])
        for name in expected:
            assert getattr(ours, name) is getattr(theirs, name)
            assert not hasattr(getattr(ours, name), "pytestmark")


def test_no_suite_of_langchain_tests_for_our_kinds_is_left_out() -> None:
    """Every suite for retrievers and document indexes that langchain-tests has is run here."""
    from langchain_tests.integration_tests import indexer, retrievers

    known = {
        suite
        for module in (indexer, retrievers)
        for suite in vars(module).values()
        if isinstance(suite, type) and suite.__module__ == module.__name__
    }
    assert known == set(SUITES.values())
