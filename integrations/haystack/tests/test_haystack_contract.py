"""Haystack's own suites for document stores, unaltered, in memory and in a folder.

``test_write_documents`` must be overridden: what no policy means is the store's to say.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from haystack import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites
from haystack_integrations.document_stores.bm25rag import BM25DocumentStore


class _Suites(
    suites.DocumentStoreBaseExtendedTests,
    suites.CountDocumentsByFilterTest,
    suites.CountUniqueMetadataByFilterTest,
    suites.GetMetadataFieldsInfoTest,
    suites.GetMetadataFieldMinMaxTest,
    suites.GetMetadataFieldUniqueValuesTest,
):
    def test_write_documents(self, document_store: BM25DocumentStore) -> None:
        """Without a policy, a duplicate is an error and nothing is written."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([Document(content="another"), document])
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


class _AsyncSuites(
    async_suites.CountDocumentsAsyncTest,
    async_suites.WriteDocumentsAsyncTest,
    async_suites.DeleteDocumentsAsyncTest,
    async_suites.FilterDocumentsAsyncTest,
    async_suites.DeleteAllAsyncTest,
    async_suites.DeleteByFilterAsyncTest,
    async_suites.UpdateByFilterAsyncTest,
    async_suites.CountDocumentsByFilterAsyncTest,
    async_suites.CountUniqueMetadataByFilterAsyncTest,
    async_suites.GetMetadataFieldsInfoAsyncTest,
    async_suites.GetMetadataFieldMinMaxAsyncTest,
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,
):
    @pytest.mark.asyncio
    async def test_write_documents_async(self, document_store: BM25DocumentStore) -> None:
        """Without a policy, a duplicate is an error and nothing is written."""
        document = Document(content="test doc")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([Document(content="another"), document])
        self.assert_documents_are_equal(await document_store.filter_documents_async(), [document])


class _InMemory:
    @pytest.fixture
    def document_store(self) -> BM25DocumentStore:
        return BM25DocumentStore()


class _InFolder:
    @pytest.fixture
    def document_store(self, tmp_path: Path) -> BM25DocumentStore:
        return BM25DocumentStore(tmp_path / "index")


class TestInMemory(_InMemory, _Suites):
    pass


class TestInFolder(_InFolder, _Suites):
    pass


class TestAsyncInMemory(_InMemory, _AsyncSuites):
    pass


class TestAsyncInFolder(_InFolder, _AsyncSuites):
    pass
