"""LangChain's MultiQueryRetriever over BM25Retriever: several questions, one list of documents."""

from __future__ import annotations

import pytest
from langchain_bm25rag import BM25Retriever
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel

from bm25rag import Query


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


def test_one_search_for_all_questions_finds_what_the_loop_finds(
    asked: MultiQueryRetriever, retriever: BM25Retriever
) -> None:
    expected = sorted(one.id or "" for one in asked.invoke("cats"))
    retriever.score_key = "score"
    questions = ["cats", "sleeping cats", "dogs and cats", "the cat on the mat"]
    documents = retriever.invoke(Query(questions[0], also=questions[1:]))
    assert sorted(one.id or "" for one in documents) == expected
    totals = sum(retriever.index.scores(question) for question in questions)
    rows = [retriever.index.ids().index(one.id or "") for one in documents]
    assert [one.metadata["score"] for one in documents] == pytest.approx(totals[rows])
