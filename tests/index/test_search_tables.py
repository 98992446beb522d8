"""Tables of other libraries go in, and results go out, as notebooks show and hold them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index, Document, Query

ROWS: list[dict[str, Any]] = [
    {"id": 7, "text": "A red boat.", "title": "Boats", "year": 2021},
    {"id": 8, "text": "Green tea.", "title": "Tea", "year": 2024},
]
STORED = [
    Document(str(row["id"]), row["text"], {"title": row["title"], "year": row["year"]})
    for row in ROWS
]


def pandas(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def polars(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def arrow(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pylist(rows)


def hugging_face(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(rows)


MAKERS = [
    list,
    iter,
    pandas,
    polars,
    arrow,
    pytest.param(hugging_face, marks=pytest.mark.slow),  # takes seconds to import
]


@pytest.mark.parametrize("make", MAKERS)
def test_rows_of_a_table_are_documents(make: Callable[[Any], Any]) -> None:
    index = BM25Index()
    assert index.add_documents(make(ROWS)) == ["7", "8"]
    assert index.get([7, np.int32(8)]) == STORED
    assert {type(document.metadata["year"]) for document in index.get([7, 8])} == {int}
    nested = [{"id": "9", "text": "red", "year": 1, "metadata": {"year": 2, "tag": "x"}}]
    index.add_documents(make(nested))
    assert index.get(["9"])[0].metadata == {"year": 1, "tag": "x"}


@pytest.mark.parametrize("make", [*MAKERS[2:]])
def test_columns_of_a_table_are_texts_and_ids(make: Callable[[Any], Any]) -> None:
    frame = make(ROWS)
    index = BM25Index.from_texts(frame["text"], ids=frame["id"])
    assert [(one.id, one.text) for one in index.get(frame["id"])] == [
        (one.id, one.text) for one in STORED
    ]
    for call in (lambda: index.add(frame), lambda: index.get(frame)):
        with pytest.raises(TypeError, match=r"^(texts|ids).* must be .*, got"):
            call()


def test_rows_have_the_fields_of_the_index() -> None:
    index = BM25Index(fields={"title": 3.0})
    index.add_documents([*ROWS, {"id": 9, "title": "Boats alone"}])
    assert [hit.id for hit in index.search("boats", k=3)] == ["7", "9"]
    assert index.get([7])[0].fields == {"title": "Boats", "text": "A red boat."}
    index = BM25Index(fields={"context": 1.0})
    index.add_documents([{"id": 1, "text": "It grew.", "context": "Sales of boats", "year": 1}])
    (found,) = index.search("boats")
    assert (found.text, found.metadata) == ("It grew.", {"year": 1})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "red"}, r"documents\[1\] must have an 'id' and a 'text', got the columns \['te"),
        ({"id": 1, "title": "red"}, r"documents\[1\] must have an 'id' and a 'text'"),
        ({"id": 1.0, "text": "red"}, r"documents\[1\]\.id must be a str or an int, got float"),
        ({"id": 1, "text": float("nan")}, r"documents\[1\]\.text must be a str"),
        ({"id": 1, "text": "red", 5: 1}, r"documents\[1\].*the key 5 must be a str, got int"),
    ],
)
def test_a_row_that_is_no_document_is_refused_and_none_is_added(row: Any, message: str) -> None:
    index = BM25Index()
    with pytest.raises((TypeError, ValueError), match=message):
        index.add_documents([ROWS[0], row])
    assert len(index) == 0


def test_an_integer_id_is_the_string_of_it_wherever_ids_are_taken() -> None:
    index = BM25Index.from_texts(["red", "red boat"], ids=[1, np.uint8(2)])
    assert index.ids() == ["1", "2"]
    assert 1 in index
    assert True not in index
    assert index.explain("red", np.int64(1)).id == "1"
    assert index.update_metadata([2], [{"n": 1}]) == ["2"]
    assert index.add_documents([Document(2, "red tea")], on_duplicate="replace")  # type: ignore[arg-type]
    assert index.delete([1, 5]) == ["1"]
    for wrong in (True, 1.0, None, np.float32(1)):
        with pytest.raises(TypeError, match=r"ids\[0\] must be a str or an int, got"):
            index.add(["red"], ids=[wrong])  # type: ignore[list-item]


@pytest.mark.parametrize("query", ["boat tea", "nothing"])
def test_hits_are_a_frame_in_one_line_even_if_there_are_none(query: str) -> None:
    index = BM25Index()
    index.add_documents(ROWS)
    hits = index.search(query)
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = ["id", "score", "text", "metadata"]
    frame = pd.DataFrame(hits, columns=columns)
    assert [*frame.columns] == columns
    assert [*frame["id"]] == [hit.id for hit in hits]
    found = [(hit.id, hit.score, hit.text) for hit in hits]
    schema = {"id": str, "score": float, "text": str}
    assert pl.DataFrame(found, schema, orient="row").rows() == found


class Shown(HTMLParser):
    """What a page shows: its tags, and the text of all of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "mark", "p"}
HOSTILE = "<script>alert('red')</script> & \"red\""


def test_a_notebook_shows_hits_with_marked_words_and_nothing_unescaped() -> None:
    index = BM25Index.from_texts([HOSTILE, "red"], [HOSTILE, "b"], [{HOSTILE: HOSTILE}, None])
    hits = index.search("red")
    shown = Shown(hits._repr_html_())  # type: ignore[attr-defined]
    assert shown.tags.count("mark") == 3
    assert "script" not in shown.tags
    assert HOSTILE in shown.text
    assert isinstance(hits, list)
    assert pickle.loads(pickle.dumps(hits)) == hits == list(hits)
    several = [
        index,
        index.search_batch(["red", "tea"]),
        index.explain(Query("red <b>", must=["<i>"]), HOSTILE),
        index.search_batch(["red"]).hits()[0],
        index.search("tea"),
    ]
    for one in several:
        shown = Shown(one._repr_html_())  # type: ignore[attr-defined]
        assert set(shown.tags) <= TAGS


def test_a_notebook_shows_no_more_than_a_page_can() -> None:
    index = BM25Index.from_texts(["red"] * 10_000)
    hits = index.search("red", k=10_000)
    page = hits._repr_html_()  # type: ignore[attr-defined]
    assert len(page) < 20_000
    assert "and 9,950 more" in page
    batch = index.search_batch(["red"] * 1000, k=100)
    assert "and 950 more" in batch._repr_html_()


def test_a_notebook_shows_contributions_that_add_up() -> None:
    index = BM25Index.from_texts(["red boat", "green tea"], variant="bm25+")
    why = index.explain("red tea", "0", decay={"path": "date", "half_life": "1d", "floor": 0.5})
    text = Shown(why._repr_html_()).text
    for part in why.terms:
        assert part.term in text
        assert f"{part.contribution:.4f}" in text
    assert f"shift{why.shift:.4f}decay0.5000" in text
