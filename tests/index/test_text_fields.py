"""Fields with weights: what users give and get; scores are compared in ``tests/scoring``."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.open_shard import open_shard
from bm25rag.segments.text_fields import number_rows
from support.holding import bits

CATS: list[Any] = [
    {"title": "Cats", "text": "A cat sat."},
    "Dogs and cats run.",
    {"title": "Dogs"},
    {"notes": "A dog and\na cat", "text": ""},
]
FIELDS = {"title": 3.0, "text": 1.0, "notes": 0.5}


@pytest.fixture
def index() -> BM25Index:
    """Make an index of four documents."""
    return BM25Index.from_texts(CATS, fields=FIELDS)


def ids(index: BM25Index, query: Any) -> list[str]:
    """Return the ids that a query finds."""
    return [hit.id for hit in index.search(query)]


def test_texts_of_fields_come_back_as_given(index: BM25Index, tmp_path: Path) -> None:
    given = [CATS[0], {"text": CATS[1]}, CATS[2], CATS[3]]
    index.save(tmp_path)
    sharded = BM25Index.build(CATS, tmp_path / "shards", shards=2, fields=FIELDS)
    compacted = copy.copy(index)
    compacted.add(["more"], ["more"])
    compacted.delete(["more"])
    compacted.compact()
    for one in (
        index,
        BM25Index.open(tmp_path),
        sharded,
        compacted,
        pickle.loads(pickle.dumps(index)),
    ):
        documents = one.get(["0", "1", "2", "3"])
        assert [document.fields for document in documents] == given
        assert [document.text for document in documents] == ["A cat sat.", CATS[1], None, ""]
        assert {hit.id: hit.fields for hit in one.search("cat dog")} == dict(
            zip("0123", given, strict=True)
        )
        assert one.fields == FIELDS
    again = BM25Index(fields=FIELDS)
    again.add_documents(index.get(index.ids()))
    assert again.get(again.ids()) == documents
    assert bits(again.search("cat dog")) == bits(index.search("cat dog"))
    assert BM25Index.from_texts(["x"]).search("x")[0].fields is None


def test_text_is_a_field_of_weight_1_unless_it_is_given() -> None:
    assert BM25Index(fields={"title": 2}).fields == {"title": 2.0, "text": 1.0}
    assert BM25Index(fields={"text": 2}).fields == {"text": 2.0}
    assert BM25Index().fields is None


def test_weights_of_1_are_those_of_the_joined_text() -> None:
    fielded = BM25Index.from_texts(CATS, fields=dict.fromkeys(FIELDS, 1.0))
    joined = BM25Index.from_texts(
        [text if isinstance(text, str) else " ".join(text.values()) for text in CATS]
    )
    assert bits(fielded.search("cat dog")) == bits(joined.search("cat dog"))


def test_words_of_a_field_of_weight_0_match_nothing(index: BM25Index) -> None:
    view = index.tune(fields={"title": 0, "notes": 0})
    assert (ids(view, "dogs"), view.fields) == (["1"], {"title": 0.0, "text": 1.0, "notes": 0.0})
    without = BM25Index.from_texts(["A cat sat.", CATS[1], "", ""])
    assert bits(view.search("cat dog")) == bits(without.search("cat dog"))
    assert view.vocabulary() == without.vocabulary()
    assert view.explain("dogs", "2").matched is False
    assert view.get(["2"])[0].fields == {"title": "Dogs"}
    index = BM25Index(fields={"title": 0.0})
    for text in CATS[:3]:  # each a write
        index.add([text])
    assert bits(index.search("cat dog")) == bits(
        BM25Index.from_texts(["A cat sat.", CATS[1], ""]).search("cat dog")
    )
    assert ids(index.tune(fields={"title": 1.0}), "dogs") == ["2", "1"]


def test_shards_know_weights_of_0(tmp_path: Path) -> None:
    fields = {"title": 0.0, "notes": 2.0}
    plain = BM25Index.from_texts(CATS, fields=fields)
    whole = BM25Index.build(CATS, tmp_path, shards=3, fields=fields)
    for weight in (0.0, 0.3):
        views = [one.tune(fields={"title": weight}) for one in (plain, whole)]
        assert bits(views[0].search("cat dog")) == bits(views[1].search("cat dog"))
    BM25Index.verify(tmp_path)
    shard = open_shard(tmp_path, 0).searcher
    assert bits(shard.tune(fields={"notes": 9.0}).search("cat"))
    with pytest.raises(ValueError, match="a shard alone cannot give or take a weight of 0"):
        shard.tune(fields={"title": 1.0})
    with BM25Index.open(tmp_path, mode="w") as writer:
        writer.add([{"title": "cat", "notes": "dog"}])
    plain.add([{"title": "cat", "notes": "dog"}])
    assert bits(BM25Index.open(tmp_path).search("cat dog")) == bits(plain.search("cat dog"))
    BM25Index.verify(tmp_path)


def test_places_are_those_in_the_field_text_or_in_another(index: BM25Index) -> None:
    hits = {hit.id: hit for hit in index.search("cats")}
    assert hits["0"].spans == [(2, 5, "cat")]
    title = hits["0"].of_field("title")
    assert (title.text, title.spans, title.fields) == ("Cats", [(0, 4, "cat")], CATS[0])
    notes = hits["3"].of_field("notes")
    assert [line.number for line in notes.lines] == [2]
    assert notes.snippet(5).text == "a cat"
    with pytest.raises(KeyError, match=r"'1' has no field 'title', but \['text'\]"):
        hits["1"].of_field("title")


def test_an_explanation_says_which_field_has_a_term_how_often(index: BM25Index) -> None:
    why = index.explain("cats dogs", "0")
    assert [(term.tf, term.fields) for term in why.terms] == [
        (4.0, {"title": 1, "text": 1, "notes": 0}),
        (0, {"title": 0, "text": 0, "notes": 0}),
    ]
    assert "title: 1  text: 1" in str(why)


def test_lists_of_terms_and_texts_that_are_not_stored(tmp_path: Path) -> None:
    index = BM25Index(fields={"title": 2.0})
    index.add([{"title": ["Cats"], "text": ["a", "b"]}])
    index.add([{"title": "Cats"}], store_text=False)
    assert ids(index, ["Cats"]) == ["0"]
    assert ids(index, "cats") == ["1"]
    assert [(one.text, one.fields) for one in index.get(["0", "1"])] == [(None, None)] * 2
    with pytest.raises(ValueError, match="the texts of 2 of 2 documents are not stored"):
        index.reanalyze()


def test_reanalysis_keeps_fields(index: BM25Index) -> None:
    again = index.reanalyze(Analyzer(stemmer=None))
    assert (again.fields, ids(again, "cats")) == (FIELDS, ["0", "1"])
    assert again.get(again.ids()) == index.get(index.ids())


def test_opening_checks_fields(index: BM25Index, tmp_path: Path) -> None:
    index.save(tmp_path)
    assert BM25Index.open(tmp_path, fields={"title": 3}).fields == FIELDS
    with pytest.raises(ValueError, match=r"fields is \{'title': 2.0,.*tune\(fields="):
        BM25Index.open(tmp_path, fields={"title": 2.0})
    with pytest.raises(ValueError, match="there is no field 'body', but title, text, notes"):
        BM25Index.open(tmp_path, fields={"body": 2.0})
    with BM25Index.open(tmp_path / "new", mode="a", fields={"title": 5.0}) as made:
        made.add([{"title": "x"}])
    assert BM25Index.open(tmp_path / "new").fields == {"title": 5.0, "text": 1.0}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({}, ValueError, "must have at least one name"),
        ([("title", 1)], TypeError, "must be a dict of names and weights"),
        ("title", TypeError, "must be a dict of names and weights"),
        ({1: 1.0}, TypeError, "names that are str"),
        ({"": 1.0}, TypeError, "names that are str"),
        ({"title": "3"}, TypeError, r"fields\['title'\] must be a number"),
        ({"title": True}, TypeError, r"fields\['title'\] must be a number"),
        ({"title": -1.0}, ValueError, r"fields\['title'\] must be a number from 0 to 1e\+30"),
        ({"title": float("nan")}, ValueError, "from 0 to"),
        ({"title": float("inf")}, ValueError, "from 0 to"),
        ({"title": 1e-31}, ValueError, "must be 0 or at least 1e-30"),
        ({"text": 0.0}, ValueError, "a weight that is not 0"),
        ({str(number): 1.0 for number in range(64)}, ValueError, "at most 64 names, got 65"),
    ],
)
def test_wrong_fields_are_refused(fields: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BM25Index(fields=fields)
    if fields not in ({}, {"text": 0.0}) and len(fields) < 9:  # weights of some fields only
        with pytest.raises((error, ValueError)):
            BM25Index(fields={"title": 1.0}).tune(fields=fields)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ({}, ValueError, r"texts\[1\] must have a field, one of title, text, got none"),
        ({"body": "x"}, ValueError, r"texts\[1\] has the field 'body', but .* title, text"),
        ({"title": None}, TypeError, r"texts\[1\]\['title'\] must be a str or a list of terms"),
        ({"title": 5, "text": "x"}, TypeError, r"texts\[1\]\['title'\] must be a str"),
        ({"title": {"text": "x"}}, TypeError, r"texts\[1\]\['title'\] must be a str"),
        ({"title": "x", "text": ["x"]}, TypeError, "all texts or all lists of terms"),
        (5, TypeError, r"texts\[1\] must be a str or a list of terms"),
    ],
)
def test_wrong_texts_are_refused(text: Any, error: type[Exception], message: str) -> None:
    index = BM25Index(fields={"title": 2.0})
    with pytest.raises(error, match=message):
        index.add(["fine", text])
    assert len(index) == 0


@pytest.mark.parametrize(
    ("document", "fields", "message"),
    [
        (Document("a"), {"title": 1.0}, "has no text"),
        (
            Document("a", fields={"body": "x"}),
            {"title": 1.0},
            r"documents\[0\].fields has the field",
        ),
        (Document("a", "x", fields={"text": "y"}), {"title": 1.0}, "not fields\\['text'\\]"),
        (Document("a", "x", fields={"title": "y"}), None, "has fields, but the index has none"),
    ],
)
def test_wrong_documents_are_refused(document: Document, fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BM25Index(fields=fields).add_documents([document])


def test_an_index_without_fields_says_how_to_have_them() -> None:
    index = BM25Index()
    with pytest.raises(TypeError, match=r"BM25Index\(fields=\{'title': 3.0\}\)"):
        index.add([{"title": "x"}])
    with pytest.raises(ValueError, match="the documents of this index have no fields"):
        index.tune(fields={"title": 1.0})


@given(
    st.lists(st.lists(st.sampled_from([0, 1, 2, 300, 2**32 - 1]), min_size=3, max_size=3)),
    st.sampled_from([1, 1 << 22]),
)
def test_rows_are_numbered_in_ascending_order(given: list[list[int]], largest: int) -> None:
    rows = np.array(given, np.uint32).reshape(-1, 3)
    distinct, numbers = number_rows(rows, largest)
    assert distinct.tolist() == sorted(map(list, {tuple(row) for row in given}))
    assert np.array_equal(distinct[numbers], rows)
