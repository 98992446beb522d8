"""What the tests share."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_bm25rag import BM25Retriever
from langchain_core.documents import Document

from bm25rag import BM25Index

ROOT = Path(__file__).parents[3]


@pytest.fixture
def documents() -> list[Document]:
    return [
        Document(
            "The cat sat on the mat all day.", id="cat", metadata={"lang": "en", "year": 2020}
        ),
        Document("Dogs chase the cats.", id="dogs", metadata={"lang": "en", "year": 2021}),
        Document("A bird sings in the tree.", id="bird", metadata={"lang": "en", "year": 2022}),
        Document("Cats sleep; a cat dreams of cats.", id="cats", metadata={"lang": "de"}),
        Document("", id="empty"),
    ]


@pytest.fixture
def retriever(documents: list[Document]) -> BM25Retriever:
    return BM25Retriever.from_documents(documents)


@pytest.fixture
def index(retriever: BM25Retriever) -> BM25Index:
    return retriever.index


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def arguments(method: Any) -> list[str]:
    """Return the names of a method's parameters, those in the ``TypedDict`` of keywords, too."""
    names: list[str] = []
    for name, parameter in inspect.signature(method, eval_str=True).parameters.items():
        spelt = get_args(parameter.annotation) if parameter.kind is parameter.VAR_KEYWORD else ()
        names += spelt[0].__annotations__ if spelt else [name]
    return names
