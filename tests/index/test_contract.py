"""The public contract: what each call promises, in the smallest example that shows it."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Analyzer, BM25Index, Document, Hit
from bm25rag.errors import DocumentNotFoundError, DuplicateIdError, MissingDependencyError
from bm25rag.search.snapshot import Snapshot
from bm25rag.segments.view import SegmentView

pytestmark = pytest.mark.usefixtures("backend")

TEXTS = ["red apples and green pears", "green tea", "a red boat on the red sea", ""]


@pytest.fixture
def index() -> BM25Index:
    return BM25Index.from_texts(
        TEXTS,
        ids=["fruit", "tea", "boat", "nothing"],
        metadata=[{"n": number, "tags": ["x", {"deep": number}]} for number in range(4)],
        payloads=[b"fruit", b"", None, b"\x00\xff"],
    )


def names(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("add", "texts ids=None metadata=None * payloads=None store_text=True on_duplicate=error "
                "progress=False threads=None vectors=None"),
        ("delete", "ids=None filter=None"),
        ("update_metadata", "ids metadata"),
        ("get", "ids filter=None"),
        ("ids", "filter=None * k=None offset=0"),
        ("count", "filter=None"),
        ("search", "query k=10 filter=None * min_score=None correct=False offset=0 "
                   "group=None per_group=1 decay=None"),
        ("search_batch", "queries k=10 filter=None * min_score=None threads=None "
                         "correct=False offset=0 group=None per_group=1 decay=None"),
        ("explain", "query id filter=None * decay=None"),
        ("scores", "query"),
        ("search_hybrid", "query vector k=10 filter=None * fetch_k=100 method=minmax weights=None "
                          "rank_constant=60 offset=0 group=None per_group=1 decay=None"),
        ("correct", "query filter=None"),
        ("expand", "query filter=None * fb_docs=10 fb_terms=20 original_query_weight=0.8"),
        ("save", "path * extra=None overwrite=True storage_options=None"),
        (
            "open",
            "path mode=r * mmap=True tokenizer=None verify=False untrusted=False timeout=0.0"
            " analyzer=None variant=None k1=None b=None delta=None delta_on=None fields=None"
            " cache=None storage_options=None offline=False commit=None keep=None",
        ),
        (
            "add_documents",
            "documents * store_text=True on_duplicate=error progress=False threads=None",
        ),
    ],
)  # fmt: skip
def test_signatures_are_the_contracts(method: str, expected: str) -> None:
    parameters = inspect.signature(getattr(BM25Index, method)).parameters.values()
    found = [
        p.name if p.default is p.empty else f"{p.name}={p.default}"
        for p in parameters
        if p.name not in ("self", "cls")
    ]
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if by_name:
        found.insert(len(found) - len(by_name), "*")
    assert " ".join(found) == expected


def test_constructor_has_the_contracts_defaults() -> None:
    index = BM25Index()
    assert index.analyzer == Analyzer(language="english")
    assert (index.variant, index.k1, index.b, index.delta) == ("lucene", 1.2, 0.75, None)
    assert (index.delta_on, index.read_only) == ("all", False)


# -- what comes back ------------------------------------------------------------------


def test_hits_are_plain_python_values(index: BM25Index) -> None:
    hit = index.search("red")[0]
    assert [type(getattr(hit, field.name)) for field in dataclasses.fields(hit)] == [
        str,
        float,
        str,
        dict,
        type(None),
        type(None),
        type(None),
    ]
    assert hit == Hit("boat", hit.score, TEXTS[2], {"n": 2, "tags": ["x", {"deep": 2}]}, None)
    assert index.search("tea")[0].payload == b""


def test_documents_come_in_the_order_asked_and_unknown_ids_are_skipped(index: BM25Index) -> None:
    found = index.get(["tea", "never", "fruit", "tea"])
    assert [document.id for document in found] == ["tea", "fruit", "tea"]
    assert found[0] == Document("tea", "green tea", {"n": 1, "tags": ["x", {"deep": 1}]}, b"")
    assert index.get(["tea", "boat"], filter={"n": 2}) == index.get(["boat"])


@pytest.mark.parametrize("how", ["search", "search_batch", "get", "callable filter", "input"])
def test_an_edit_of_a_returned_document_never_reaches_the_store(index: BM25Index, how: str) -> None:
    given: dict[str, Any] = {"n": 9, "tags": []}
    index.update_metadata(["nothing"], [given])
    before = index.get(index.ids())
    if how == "input":
        spoil(given)
    elif how == "callable filter":
        index.count(lambda metadata: spoil(metadata))
    else:
        hits = {
            "search": lambda: index.search("red"),
            "search_batch": lambda: index.search_batch(["red"]).hits()[0],
            "get": lambda: index.get(index.ids()),
        }[how]()
        for hit in hits:
            hit.text = "spoiled"
            spoil(hit.metadata)
    assert index.get(index.ids()) == before
    assert names(index.search("red")) == ["boat", "fruit"]


def spoil(metadata: dict[str, Any]) -> bool:
    metadata["n"] = "spoiled"
    metadata.get("tags", []).append("spoiled")
    for tag in metadata.get("tags", []):
        if isinstance(tag, dict):
            tag["deep"] = "spoiled"
    return True


def test_unused_cells_of_a_batch_are_minus_one_and_minus_infinity(index: BM25Index) -> None:
    batch = index.search_batch(["red", "tea", "unknown", ""], k=3)
    assert batch.rows.tolist() == [[2, 0, -1], [1, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    assert batch.counts.tolist() == [2, 1, 0, 0]
    assert np.isneginf(batch.scores).tolist() == (batch.rows == -1).tolist()
    assert batch.ids() == [["boat", "fruit"], ["tea"], [], []]
    assert batch.hits()[0] == index.search("red", k=3)


@pytest.mark.parametrize("kept", [set(), {"tea"}])
def test_unused_cells_are_filled_whatever_a_filter_rejects(
    index: BM25Index, kept: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Uninitialised memory must never show.
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 77, dtype))
    batch = index.search_batch(["red", "unknown"], k=3, filter=kept)
    assert batch.rows.tolist() == [[-1, -1, -1]] * 2
    assert np.isneginf(batch.scores).all()
    assert batch.counts.tolist() == [0, 0]


def test_a_batch_is_as_wide_as_k_or_the_corpus(index: BM25Index) -> None:
    assert index.search_batch(["red"], k=2).rows.shape == (1, 2)
    assert index.search_batch(["red"], k=100).rows.shape == (1, 4)
    assert index.search_batch(["red"], k=0).rows.shape == (1, 0)
    assert index.search_batch([], k=5).rows.shape == (0, 4)
    assert index.search_batch([], k=5).hits() == []


# -- texts and ids ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple, iter, lambda texts: (text for text in texts)])
def test_texts_ids_metadata_and_payloads_are_any_iterables(kind: Any) -> None:
    index = BM25Index()
    written = index.add(
        kind(["a red car", "a blue car"]),
        ids=kind(["r", "b"]),
        metadata=kind([{}, {"x": 1}]),
        payloads=kind([None, b"p"]),
    )
    assert written == ["r", "b"]
    assert index.get(["b"]) == [Document("b", "a blue car", {"x": 1}, b"p")]
    batch = index.search_batch(kind(["red", "blue"]))
    assert batch.ids() == [["r"], ["b"]]
    assert [document.id for document in index.get(kind(["b", "r"]))] == ["b", "r"]
    assert index.update_metadata(kind(["b"]), kind([{"x": 2}])) == ["b"]
    assert index.delete(kind(["b", "r"])) == ["b", "r"]


def test_texts_and_queries_may_be_lists_of_terms_taken_as_analysed() -> None:
    index = BM25Index.from_texts(["Running the race", ["Running", "the"], ["run"]])
    assert names(index.search(["run"])) == ["2", "0"]
    assert names(index.search("running")) == ["2", "0"]
    assert names(index.search(["Running"])) == ["1"]
    assert names(index.search(["the"])) == ["1"]
    assert index.search_batch(["running", ["the"]]).ids() == [["2", "0"], ["1"]]


def test_texts_are_kept_unless_told_otherwise() -> None:
    index = BM25Index.from_texts(["red"])
    index.add(["blue"], store_text=False)
    assert [document.text for document in index.get(["0", "1"])] == ["red", None]
    assert names(index.search("blue")) == ["1"]


def test_the_counters_ids_are_never_given_twice(tmp_path: Path) -> None:
    index = BM25Index.from_texts(["a", "b"])
    assert index.ids() == ["0", "1"]
    index.delete(["1"])
    assert index.add(["c"]) == ["2"]
    index.add(["d"], ids=["4"])
    assert index.add(["e", "f"]) == ["3", "5"]
    index.delete(index.ids())
    assert index.add(["g"]) == ["6"]
    index.delete(["6"])
    index.save(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        assert writer.add(["h"]) == ["7"]


def test_an_error_on_duplicates_writes_nothing(index: BM25Index) -> None:
    before = index.get(index.ids())
    for ids in (["new", "tea"], ["new", "new"]):
        with pytest.raises(DuplicateIdError, match=ids[-1]):
            index.add(["x", "y"], ids=ids)
    assert index.get(index.ids()) == before


def test_skip_keeps_the_first_within_a_call_too(index: BM25Index) -> None:
    written = index.add(["one", "two", "three"], ids=["n", "tea", "n"], on_duplicate="skip")
    assert written == ["n"]
    assert index.ids() == ["fruit", "tea", "boat", "nothing", "n"]
    assert [document.text for document in index.get(["tea", "n"])] == ["green tea", "one"]


def test_replace_keeps_the_last_and_moves_it_to_the_end(index: BM25Index) -> None:
    written = index.add(["one", "two", "three"], ids=["n", "tea", "n"], on_duplicate="replace")
    assert written == ["tea", "n"]
    assert index.ids() == ["fruit", "boat", "nothing", "tea", "n"]
    assert index.get(["tea", "n"]) == [
        Document("tea", "two", {}, None),
        Document("n", "three", {}, None),
    ]
    assert index.search("green tea", k=5)[0].id == "fruit"


def test_deleting_counts_what_went_and_ignores_the_unknown(index: BM25Index) -> None:
    assert index.delete(["tea", "never", "tea"]) == ["tea"]
    assert "tea" not in index
    assert index.delete([]) == index.delete(["tea"]) == []
    assert index.search("tea") == []
    assert "tea" not in index.vocabulary()
    assert len(index) == len(index.scores("red")) == 3


def test_updating_metadata_replaces_the_dict_and_keeps_place_text_and_payload(
    index: BM25Index,
) -> None:
    before = index.search("red")
    assert index.update_metadata(["boat", "never"], [{"only": 1}, {}]) == ["boat"]
    assert index.get(["boat"])[0].metadata == {"only": 1}
    after = index.search("red")
    assert [(hit.id, hit.score, hit.text) for hit in after] == [
        (hit.id, hit.score, hit.text) for hit in before
    ]
    assert index.get(["fruit"])[0].payload == b"fruit"
    assert names(index.search("red", filter={"only": 1})) == ["boat"]


def test_counting_and_membership(index: BM25Index) -> None:
    assert len(index) == index.count() == 4
    assert index.count({"n": {"$gte": 2}}) == 2
    assert index.ids({"n": {"$gte": 2}}) == ["boat", "nothing"]
    assert "tea" in index
    assert "never" not in index


# -- filters and statistics -----------------------------------------------------------------


def test_none_and_an_empty_dict_filter_nothing_and_an_empty_set_everything(
    index: BM25Index,
) -> None:
    assert index.search("red", filter=None) == index.search("red", filter={})
    assert index.search("red", filter=set()) == []
    assert names(index.search("red", filter={"fruit", "never"})) == ["fruit"]
    assert names(index.search("red", filter=lambda metadata: metadata["n"] > 0)) == ["boat"]


def test_a_callable_is_evaluated_at_every_search(index: BM25Index) -> None:
    wanted = [2]

    def accept(metadata: dict[str, Any]) -> bool:
        return metadata["n"] in wanted

    assert names(index.search("red", filter=accept)) == ["boat"]
    wanted[:] = [0]
    assert names(index.search("red", filter=accept)) == ["fruit"]


def test_statistics_have_the_keys_promised(index: BM25Index) -> None:
    stats = index.stats()
    assert set(stats) == {
        "documents", "terms", "postings", "tokens", "average_length", "segments", "shards",
        "impact_codes", "bytes", "bytes_by_kind", "compaction_frees", "deleted", "commit_id",
        "committed",
    }  # fmt: skip
    assert stats["documents"] == 4
    assert stats["terms"] == len(index.vocabulary()) == len(index.document_frequencies())
    assert stats["postings"] == index.document_frequencies().sum()
    assert stats["average_length"] == stats["tokens"] / 4


def test_statistics_count_each_term_of_living_documents_once_and_read_no_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dashboard asks for them every few seconds; to list 215,000 terms took a second."""
    index = BM25Index.from_texts([["red", f"word{n}"] for n in range(40)])
    everywhere = [index, index.restricted({"7", "8", "c"})]
    expected = []
    for terms, id in [(["red", "new"], "a"), (["word3", "new", "other"], "b"), (["word9"], "c")]:
        index.add([terms], ids=[id])
        index.delete([{"a": "3", "b": "a", "c": "9"}[id]])
    index.save(tmp_path / "saved")
    everywhere += [BM25Index.open(tmp_path / "saved"), BM25Index(), index.tune(k1=0.5)]
    for each in everywhere:
        frequencies = each.document_frequencies()
        expected.append((len(each.vocabulary()), int(frequencies.sum())))
    assert expected[:2] == [(43, 80), (4, 5)]
    monkeypatch.setattr(Snapshot, "frequencies", None)
    counts = [(each.stats()["terms"], each.stats()["postings"]) for each in everywhere]
    assert counts == expected
    monkeypatch.setattr(SegmentView, "frequencies", None)
    assert [(each.stats()["terms"], each.stats()["postings"]) for each in everywhere] == expected


def test_one_numbering_for_rows_scores_ids_and_matrix(index: BM25Index) -> None:
    index.delete(["fruit"])
    index.add(["red wine"], ids=["wine"])
    row = index.search_batch(["wine"]).rows[0, 0]
    assert index.ids()[row] == "wine"
    assert index.scores("wine").argmax() == row
    column = index.vocabulary().index("wine")
    assert index.to_scipy().toarray()[row, column] == index.scores("wine")[row]
    assert index.to_scipy().shape == (4, len(index.vocabulary()))


def test_without_scipy_the_matrix_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    message = r"the score matrix needs SciPy: pip install 'bm25rag\[scipy\]'"
    with pytest.raises(MissingDependencyError, match=message):
        BM25Index.from_texts(["wine"]).to_scipy()


# -- explain ----------------------------------------------------------------------------------


def test_an_explanation_sums_to_the_score_and_reads_as_a_table(index: BM25Index) -> None:
    why = index.explain("red red boat", "boat")
    assert why.matched
    assert why.score == index.search("red red boat")[0].score
    assert [(part.term, part.count, part.tf) for part in why.terms] == [
        ("red", 2, 2),
        ("boat", 1, 1),
    ]
    assert [part.document_frequency for part in why.terms] == [2, 1]
    assert "boat" in str(why)
    assert "red" in str(why)


def test_a_document_that_does_not_match_is_explained_too(index: BM25Index) -> None:
    why = index.explain("red", "tea")
    assert not why.matched
    assert why.score == why.shift == 0.0
    shifted = index.tune(variant="bm25+").explain("red", "tea")
    assert not shifted.matched
    assert shifted.score == shifted.shift == index.tune(variant="bm25+").scores("red")[1] > 0


@pytest.mark.parametrize(("name", "given_filter"), [("never", None), ("tea", {"n": 0})])
def test_an_unknown_or_filtered_id_is_not_explained(
    index: BM25Index, name: str, given_filter: Any
) -> None:
    with pytest.raises(DocumentNotFoundError, match=name):
        index.explain("tea", name, filter=given_filter)


# -- tune -------------------------------------------------------------------------------------


def test_tuning_keeps_parameters_not_given_and_resets_delta() -> None:
    index = BM25Index.from_texts(["a b"], variant="bm25l", k1=2.0, b=0.3, delta=0.9)
    view = index.tune(b=0.5)
    assert (view.variant, view.k1, view.b, view.delta) == ("bm25l", 2.0, 0.5, 0.9)
    assert index.tune(delta=None).delta == 0.5
    assert index.tune(delta_on="matched").delta_on == "matched"
    assert (index.k1, index.b, index.delta) == (2.0, 0.3, 0.9)
    assert index.tune(variant="bm25+", delta=None).delta == 1.0
    assert index.tune(variant="lucene", delta=None).delta is None


def test_saving_a_view_writes_its_parameters(index: BM25Index, tmp_path: Path) -> None:
    view = index.tune(variant="bm25+", k1=0.5, b=0.1, delta=2.0, delta_on="matched")
    view.save(tmp_path / "view")
    opened = BM25Index.open(tmp_path / "view")
    assert (opened.variant, opened.k1, opened.b, opened.delta, opened.delta_on) == (
        "bm25+", 0.5, 0.1, 2.0, "matched",
    )  # fmt: skip
    assert opened.search("red") == view.search("red")
