"""A question with its options, as adapters ask it."""

from __future__ import annotations

from typing import Any

import pytest

from bm25rag import BM25Index, Decay, Document, Query
from bm25rag.asking import Asking, Question, is_blank, with_fields
from bm25rag.filters import parse_filter

TEXTS = ["a red cat", "a red dog and a cat", "a blue bird"]


@pytest.fixture
def index() -> BM25Index:
    metadata = [{"n": n, "kind": "pet" if n < 2 else "wild"} for n in range(3)]
    return BM25Index.from_texts(TEXTS, ids=["a", "b", "c"], metadata=metadata)


@pytest.mark.parametrize(
    ("asking", "question", "expected"),
    [
        (Asking(), "red cat", {}),
        (Asking(min_score=0.2, offset=1), "red cat", {"min_score": 0.2, "offset": 1}),
        (Asking(correct=True), "redd catt", {"correct": True}),
        (Asking(group="kind"), ["red", "bird"], {"group": "kind"}),
    ],
)
def test_a_question_is_answered_as_the_index_answers_it(
    index: BM25Index, asking: Asking, question: Question, expected: dict[str, Any]
) -> None:
    found = asking.find(index, question, 5)
    assert [(hit.id, hit.score, hit.corrections) for hit in found] == [
        (hit.id, hit.score, hit.corrections) for hit in index.search(question, 5, **expected)
    ]
    assert [hit.text for hit in found] == [TEXTS["abc".index(hit.id)] for hit in found]


def test_a_question_is_corrected_before_it_is_expanded(index: BM25Index) -> None:
    expanded = index.expand(index.correct("redd").terms, fb_terms=2)
    asking = Asking(correct=True, expand={"fb_terms": 2}).checked()
    found = asking.find(index, "redd", 5)
    assert [(hit.id, hit.score) for hit in found] == [
        (hit.id, hit.score) for hit in index.search(expanded, 5)
    ]


@pytest.mark.parametrize("blank", ["", " \n", [], {}, Query(), Query([], timeout=1.0)])
def test_a_blank_question_lists_what_passes_a_filter(index: BM25Index, blank: Question) -> None:
    passing = parse_filter({"kind": "pet"})
    found = Asking(min_score=9.0, offset=1).find(index, blank, 5, passing)
    assert [(hit.id, hit.score, hit.text) for hit in found] == [("b", 0.0, TEXTS[1])]
    assert Asking().find(index, blank, 5) == []
    assert is_blank(blank)
    with pytest.raises(ValueError, match="the index has no fields, so nothing is in 'text'"):
        Asking().find(index, Query(field="text"), 5, passing)


@pytest.mark.parametrize("part", ["also", "must", "must_not", "phrases", "not_phrases"])
def test_a_query_that_only_restricts_is_not_blank(index: BM25Index, part: str) -> None:
    asked = Query(**{part: ["dog"]})  # type: ignore[arg-type]
    assert not is_blank(asked)
    passing = parse_filter({"kind": "pet"})
    assert Asking().find(index, asked, 5, passing) == index.search(asked, 5, passing)


def test_a_text_is_parsed_if_that_is_asked_for(index: BM25Index) -> None:
    assert Asking(parse_query=True).read("+red -dog", index) == Query.parse("+red -dog")
    assert [hit.id for hit in Asking(parse_query=True).find(index, "+red -dog", 5)] == ["a"]
    for left in (Asking().read("+red", index), Asking(parse_query=True).read(" ", index)):
        assert isinstance(left, str)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"correct": 1}, TypeError, "correct must be True or False, got 1"),
        ({"expand": "yes"}, TypeError, "expand must be True or False"),
        ({"expand": {"docs": 3}}, ValueError, "some of fb_docs, .* got 'docs'"),
        ({"expand": {"fb_docs": -3}}, ValueError, "fb_docs"),
        ({"min_score": float("nan")}, ValueError, "min_score"),
        ({"offset": -1}, ValueError, "offset"),
        ({"parse_query": "no"}, TypeError, "parse_query"),
        ({"per_group": 0, "group": "kind"}, ValueError, "per_group"),
        ({"decay": "30d"}, TypeError, "decay"),
    ],
)
def test_a_wrong_option_is_named_before_there_is_a_question(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Asking(**options).checked()


def test_checked_options_are_values_that_can_be_saved() -> None:
    decay = Decay("date", half_life="30d")
    assert Asking(decay=decay).checked().decay == decay.to_dict()


def test_options_are_taken_out_of_other_arguments() -> None:
    given = {"offset": 2, "other": 1}
    assert Asking.taken_from(given) == Asking(offset=2)
    assert given == {"other": 1}


def test_documents_get_the_fields_that_their_metadata_hold() -> None:
    index = BM25Index(fields={"title": 2.0, "text": 1.0})
    index.add_documents(with_fields(index, [Document("a", "red", {"title": "cat"})]))
    assert [hit.id for hit in index.search("cat")] == ["a"]
    documents = [Document("b", "red")]
    assert with_fields(BM25Index(), documents) is documents
