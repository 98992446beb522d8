"""Beside the class this one replaces; skipped where langchain-community is not installed."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from conftest import arguments
from langchain_bm25rag import BM25Retriever
from langchain_core.documents import Document

pytest.importorskip("rank_bm25")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    community = pytest.importorskip("langchain_community.retrievers.bm25")

TEXTS = [
    "the cat sat on the mat",
    "a dog and a cat",
    "birds sing in the tree",
    "the tree is green",
    "a mat is not a carpet",
    "dogs bark at night",
]


def test_every_argument_of_the_community_class_is_known() -> None:
    for name in ("from_texts", "from_documents"):
        theirs = inspect.signature(getattr(community.BM25Retriever, name)).parameters
        ours = arguments(getattr(BM25Retriever, name))
        positional = [one.name for one in theirs.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        assert ours[: len(positional)] == positional
        assert theirs.keys() - {"kwargs"} <= set(ours)


@pytest.mark.parametrize("query", ["cat mat", "the tree", "dogs bark", "green birds"])
def test_the_old_ranking_can_be_had(query: str) -> None:
    """By its split, k1 and floored idf: scores differ by the constant k1 + 1 alone."""
    params = {"k1": 1.5, "b": 0.75}
    theirs = community.BM25Retriever.from_texts(
        TEXTS, bm25_params={**params, "epsilon": 0}, preprocess_func=str.split
    )
    ours = BM25Retriever.from_texts(
        TEXTS,
        bm25_params={**params, "variant": "robertson"},
        preprocess_func=str.split,
        k=9,
        score_key="score",
    )
    scores = theirs.vectorizer.get_scores(query.split())
    by_text = {one.page_content: one.metadata["score"] for one in ours.invoke(query)}
    for text, score in zip(TEXTS, scores, strict=True):
        assert by_text.get(text, 0.0) * 2.5 == pytest.approx(score, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(
    "given",
    [
        {"ids": [1, 2, 3, 4, 5, 6]},
        {"ids": [], "metadatas": []},
        {"metadatas": [{"n": n} for n in range(6)]},
        {"preprocess_func": lambda text: tuple(text.split())},
    ],
)
def test_what_the_community_class_takes_is_taken_alike(given: dict[str, Any]) -> None:
    """Numbers as ids, empty lists, tuples of words: to the same documents."""
    answers = []
    for cls in (community.BM25Retriever, BM25Retriever):
        documents = cls.from_texts(TEXTS, k=1, **given).invoke("carpet")
        answers.append([(one.page_content, one.metadata) for one in documents])
        if given.get("ids"):
            assert [one.id for one in documents] == ["5"]
    assert answers[0] == answers[1]


def test_what_the_community_class_did_wrong() -> None:
    """The cases of the migration page, so that it stays true."""
    documents = [Document(text, id=str(n)) for n, text in enumerate(TEXTS)]
    old = community.BM25Retriever.from_documents(documents, k=2)
    new = BM25Retriever.from_documents(documents, k=2)
    assert (len(old.invoke("zebra")), len(new.invoke("zebra"))) == (2, 0)
    assert (len(old.invoke("cat", k=1)), len(new.invoke("cat", k=1))) == (2, 1)
    assert old.invoke("cat")[0] in documents
    assert old.invoke("Cat") != old.invoke("cat")
    assert new.invoke("Cat") == new.invoke("cat")
    with pytest.raises(ValueError, match="unpack"):
        community.BM25Retriever.from_documents([])
    with pytest.raises(ZeroDivisionError):
        community.BM25Retriever.from_texts([])
    old.k = -1
    assert len(old.invoke("cat")) == len(TEXTS) - 1
