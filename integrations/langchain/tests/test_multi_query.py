"""LangChain's MultiQueryRetriever over BM25Retriever: several questions, one list of documents."""

from __future__ import annotations

import pytest
from langchain_bm25rag import BM25Retriever
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel


@pytest.fixture
def asked(retriever: BM25Retriever) -> MultiQueryRetriever:
    """Return a retriever whose model makes three questions, which overlap in what they find."""
    model = FakeListChatModel(responses=["sleeping cats\ndogs and cats\nthe cat on the mat"])
    return MultiQueryRetriever.from_llm(retriever, model, include_original=True)


async def test_a_document_that_several_questions_find_is_returned_once(
    asked: MultiQueryRetriever, documents: list[Document]
) -> None:
    """It has another score for each of them, which must not make it another document."""
    cat, dogs, _, cats, _ = documents
    assert asked.invoke("cats") == [cats, dogs, cat]
    assert await asked.ainvoke("cats") == [cats, dogs, cat]


def test_with_a_score_in_the_metadata_they_are_two_documents(
    asked: MultiQueryRetriever, retriever: BM25Retriever
) -> None:
    """As the migration page warns: MultiQueryRetriever compares whole documents."""
    retriever.score_key = "score"
    assert len(asked.invoke("cats")) > 3
