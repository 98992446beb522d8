"""What the views of the inspector show is what the index says, for every kind of index."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.inspector.views import VIEWS as VIEW_FUNCTIONS
from bm25rag.inspector.views.health import remarks_on
from support.cases import first
from support.inspected import KINDS, VIEWS, Elements, Inspected, save_kind, small

Start = Callable[..., Inspected]
ASKED = {"q": "red sea", "id": "boat", "t": "red", "size": 3}


@pytest.mark.parametrize("kind", first(3, KINDS))
def test_every_view_of_every_kind_of_index_is_a_page_and_json(
    kind: str, tmp_path: Path, start: Start
) -> None:
    save_kind(kind, tmp_path / "index")
    inspected = start(tmp_path / "index", qrels=tmp_path / "judged.tsv")
    for view in VIEWS:
        for given in (ASKED, {}, {**ASKED, "k1": 0.5, "b_b": 0.1}):
            assert "<main>" in inspected.page(view, **given)
            assert inspected.json(view, **given)["view"] == view
    hits = inspected.json("search", q="red sea")["hits"]
    found = BM25Index.open(tmp_path / "index").search("red sea")
    assert [(hit["id"], hit["score"]) for hit in hits] == [(hit.id, hit.score) for hit in found]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["lucene", "bm25l", "tfldp"])
def test_the_parts_of_a_bar_add_up_to_the_score(
    kind: str, variant: str, tmp_path: Path, start: Start
) -> None:
    save_kind(kind, tmp_path / "index")
    for hit in start(tmp_path / "index").json("search", q="red red sea", variant=variant)["hits"]:
        assert sum(part["score"] for part in hit["shares"]) == pytest.approx(hit["score"])


def test_a_page_of_hits_is_that_page_of_the_search(tmp_path: Path, start: Start) -> None:
    texts = [f"word {'word ' * (n % 7)} {n}" for n in range(10_000)]
    index = BM25Index.from_texts(texts)
    index.save(tmp_path / "index")
    inspected = start(tmp_path / "index")
    data = inspected.json("search", q="word", page=499, size=20)
    assert (data["total"], data["pages"]) == (10_000, 500)
    expected = index.search("word", 20, offset=498 * 20)
    assert [hit["id"] for hit in data["hits"]] == [hit.id for hit in expected]
    assert [hit["rank"] for hit in data["hits"]] == list(range(9961, 9981))
    page = Elements(inspected.page("search", q="word", page=499, size=20))
    assert len(page.all("li", **{"class": "hit"})) == 20
    (following,) = page.all("a", rel="next")
    assert "page=500" in following["href"]
    assert (
        Elements(inspected.page("search", q="word", page=500, size=20)).all("a", rel="next") == []
    )
    assert "no such page" in inspected.page("search", q="word", page=501, size=20)


def test_values_of_the_metadata_are_counted_and_each_leads_to_its_documents(
    inspected: Inspected,
) -> None:
    data = inspected.json("search", q="red sea bird")
    counts = {
        facet["path"]: {str(one["value"]): one["count"] for one in facet["values"]}
        for facet in data["facets"]
    }
    assert counts["kind"] == {"vehicle": 2, "place": 1, "animal": 1}
    assert counts["year"] == {"2020": 2, "2021": 1}
    assert counts["tags"] == {"water": 1, "red": 1, "road": 1}
    assert counts[r"a\.b.\$c"] == {"True": 1}
    for facet in data["facets"]:
        for one in facet["values"]:
            again = inspected.json("search", q="red sea bird", filter=json.dumps(one["filter"]))
            assert again["total"] == one["count"]


def test_a_value_is_chosen_beside_the_present_filter(inspected: Inspected) -> None:
    data = inspected.json("search", q="red", filter='{"kind": "vehicle"}')
    filters = {
        (facet["path"], str(one["value"])): one["filter"]
        for facet in data["facets"]
        for one in facet["values"]
    }
    assert filters["year", "2020"] == {"kind": "vehicle", "year": 2020}
    assert filters["kind", "vehicle"] == {"$and": [{"kind": "vehicle"}, {"kind": "vehicle"}]} or (
        filters["kind", "vehicle"] == {"kind": "vehicle"}
    )


def test_a_document_has_the_rank_that_the_search_gives_it(tmp_path: Path, start: Start) -> None:
    texts = [f"{'red ' * (n % 5 + 1)} {'sea' if n % 3 else 'road'} {n % 4}" for n in range(60)]
    index = BM25Index.from_texts(texts, metadata=[{"even": n % 2 == 0} for n in range(60)])
    index.save(tmp_path / "index")
    inspected = start(tmp_path / "index")
    for filter in (None, {"even": True}):
        given = {} if filter is None else {"filter": '{"even": true}'}
        for rank, hit in enumerate(index.search("red sea", 60, filter), 1):
            data = inspected.json("document", q="red sea", id=hit.id, **given)
            assert (data["rank"], data["score"]) == (rank, hit.score)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"q": "red sea", "id": "sea"}, "Found at rank 1 of 3"),
        ({"q": "red sea", "id": "car"}, "It lacks 'sea'"),
        ({"q": "red sea", "id": "bird"}, "it has none of the terms 'red', 'sea'"),
        ({"q": "rde", "id": "bird"}, "no document has 'rde'"),
        ({"q": "red", "id": "car", "filter": '{"year": 2020}'}, "the filter rejects it"),
        ({"q": "red", "id": "nope"}, "There is no document with the id 'nope'"),
        ({"q": "?!", "id": "car"}, "no word of the question is left"),
        ({"q": "the of", "id": "car"}, "no document has 'the', 'of'"),
        ({"q": "", "id": "car"}, "no question yet"),
        ({"q": "red -road", "id": "car", "syntax": 1}, "must_not"),
        ({"q": '"red boat"', "id": "car", "syntax": 1}, "phrases"),
    ],
)
def test_it_is_said_why_a_document_is_found_or_not(
    given: dict[str, object], verdict: str, inspected: Inspected
) -> None:
    data = inspected.json("document", **given)
    assert verdict in data["verdict"]
    assert verdict.replace("'", "&#39;") in inspected.page("document", **given)


def test_the_analysis_shows_every_word_and_why_some_are_dropped(inspected: Inspected) -> None:
    data = inspected.json("analysis", q="How deep are the SEAS, or whales? ///", id="sea")
    (analysis,) = data["analyses"]
    steps = {step["word"]: (step["term"], step["reason"]) for step in analysis["question"]["steps"]}
    assert steps["how"] == (None, "a stop word of questions")
    assert steps["the"] == (None, "a stop word")
    assert steps["seas"] == ("sea", None)
    assert steps["whales"] == ("whale", "in no document of the index")
    assert analysis["shared"] == ["deep", "sea"]
    document = [step["term"] for step in analysis["documents"]["text"]["steps"]]
    assert [term for term in document if term] == small().analyzer.terms(
        "The sea is deep, the sea is blue, and red at night."
    )


def test_a_pasted_text_is_analysed_like_a_document(inspected: Inspected) -> None:
    data = inspected.json("analysis", q="boats", text="Two boats")
    assert data["analyses"][0]["shared"] == ["boat"]


def test_ranks_under_other_settings_are_shown_beside_those_of_the_index(
    inspected: Inspected, folder: Path
) -> None:
    index = BM25Index.open(folder)
    before = {hit.id: rank for rank, hit in enumerate(index.search("red sea"), 1)}
    tuned = index.tune("tfidf", b=0.1)
    data = inspected.json("search", q="red sea", variant="tfidf", b=0.1)
    assert [hit["id"] for hit in data["hits"]] == [hit.id for hit in tuned.search("red sea")]
    assert {hit["id"]: hit["before"] for hit in data["hits"]} == before
    assert "before" not in inspected.json("search", q="red sea")["hits"][0]


def test_weights_of_fields_and_of_further_analyses_can_be_tried(
    tmp_path: Path, start: Start
) -> None:
    save_kind("fields", tmp_path / "fields")
    index = BM25Index.open(tmp_path / "fields").tune(fields={"title": 9.0})
    (hit, *_) = start(tmp_path / "fields").json("search", q="sea", w_title=9)["hits"]
    assert hit["score"] == index.search("sea")[0].score
    save_kind("analyses", tmp_path / "analyses")
    index = BM25Index.open(tmp_path / "analyses").tune(also=[2.0])
    (hit, *_) = start(tmp_path / "analyses").json("search", q="sea", **{"also.1": 2})["hits"]
    assert hit["score"] == index.search("sea")[0].score


def test_two_settings_are_compared_by_what_was_gained_and_lost(
    tmp_path: Path, start: Start
) -> None:
    texts = ["red " * n + "blue " * (20 - n) + "grey " * (n * n) for n in range(1, 20)]
    index = BM25Index.from_texts(texts)
    index.save(tmp_path / "index")
    data = start(tmp_path / "index").json("compare", q="red", size=5, b_b=0, b_k1=3)
    before = [hit.id for hit in index.search("red", 5)]
    after = [hit.id for hit in index.tune(b=0.0, k1=3.0).search("red", 5)]
    assert before != after
    assert data["gained"] == [id for id in after if id not in before]
    assert data["lost"] == [id for id in before if id not in after]
    assert [hit["id"] for hit in data["b"]["hits"]] == after


def test_two_commits_are_compared(folder: Path, start: Start) -> None:
    with BM25Index.open(folder, mode="w", keep="1d") as index:
        index.add(["red red sea sea"], ids=["new"])
        index.delete(["boat"])
    first, last = (commit.id for commit in BM25Index.commits(folder))
    inspected = start(folder)
    data = inspected.json("compare", q="red sea", commit=first)
    assert (data["gained"], data["lost"]) == (["new"], ["boat"])
    assert [one["id"] for one in data["commits"]] == [last, first]
    assert inspected.json("search", q="boat", commit=first)["hits"][0]["id"] == "boat"
    assert "commit" in inspected.json("search", 404, q="red", commit="9-9c110871ccf2b11b")["error"]


def test_a_baseline_keeps_what_was_found_whatever_is_written_later(
    folder: Path, inspected: Inspected
) -> None:
    before = inspected.json("search", q="red sea", k1=0.3)["hits"]
    answer = inspected.post("baseline", q="red sea", k1=0.3)
    assert answer.status == 303
    assert answer.headers["location"] == "/compare?q=red%20sea&b_k1=0.3&commit=baseline"
    with BM25Index.open(folder, mode="w") as index:
        index.delete(["boat"])
        index.compact()
    data = inspected.json("compare", q="red sea", commit="baseline", b_k1=0.3)
    assert [(hit["id"], hit["score"]) for hit in data["a"]["hits"]] == [
        (hit["id"], hit["score"]) for hit in before
    ]
    assert data["lost"] == ["boat"]
    assert "no baseline" in start_error(inspected)


def start_error(inspected: Inspected) -> str:
    inspected.desk.baseline = None
    error: str = inspected.json("search", 400, q="red", commit="baseline")["error"]
    return error


def test_a_term_is_shown_with_its_neighbours(inspected: Inspected, folder: Path) -> None:
    index = BM25Index.open(folder)
    data = inspected.json("term", t="red")
    assert (data["df"], data["documents"], data["known"]) == (3, 5, True)
    assert data["idf"] == index.explain(["red"], "boat").terms[0].idf
    assert [hit["id"] for hit in data["hits"]] == [hit.id for hit in index.search(["red"])]
    vocabulary = index.vocabulary()
    assert [one["term"] for one in data["beside"]] == [
        term for place, term in enumerate(vocabulary) if abs(place - vocabulary.index("red")) <= 8
    ]
    unknown = inspected.json("term", t="saeb")
    assert not unknown["known"]
    assert ("sea", 2) in [(one["term"], one["edits"]) for one in unknown["spelt"]]
    assert inspected.json("term", t="Flies")["becomes"] == ["fli"]


def test_terms_that_look_wrong_are_listed(tmp_path: Path, start: Start) -> None:
    texts = [f"common number{n}" for n in range(40)]
    BM25Index.from_texts([*texts, "x" * 60, "cafÃ© is cafe"]).save(tmp_path / "index")
    data = start(tmp_path / "index").json("terms", prefix="number1")
    assert [one["term"] for one in data["frequent"]["terms"]] == ["common"]
    assert [one["term"] for one in data["long"]["terms"]] == ["x" * 60]
    assert len(data["beginning"]) == 11
    assert data["count"] == data["once"] + 1


def test_health_is_what_the_statistics_say(tmp_path: Path, start: Start) -> None:
    save_kind("sharded", tmp_path / "index")
    data = start(tmp_path / "index").json("health")
    assert data["stats"] == BM25Index.open(tmp_path / "index").stats()
    assert data["stats"]["shards"] == 3
    assert sum(one["documents"] for one in data["segments"]) == 5
    assert sum(one["bytes"] for one in data["segments"]) <= data["stats"]["bytes"]


def test_deleted_documents_are_remarked_on(folder: Path, start: Start) -> None:
    with BM25Index.open(folder, mode="w") as index:
        index.delete(["boat", "car"])
    (remark,) = start(folder).json("health")["remarks"]
    assert "2 of 5 documents in the segments are deleted" in remark


def test_the_cost_is_told_by_stage(inspected: Inspected) -> None:
    data = inspected.json("cost", q="red sea", filter='{"kind": "vehicle"}')
    assert [stage["name"] for stage in data["stages"]] == [
        "analysis",
        "filter",
        "search",
        "reading",
    ]
    assert sum(stage["share"] for stage in data["stages"]) == pytest.approx(1)
    assert all(0 < stage["least"] <= stage["median"] for stage in data["stages"])
    assert (data["terms"], data["postings"], data["hits"]) == (2, 5, 2)


@pytest.mark.parametrize("kind", ["plain", "fields", "sharded", "changed"])
def test_the_python_of_a_view_does_what_the_view_shows(
    kind: str, tmp_path: Path, start: Start
) -> None:
    pytest.importorskip("pytrec_eval")
    save_kind(kind, tmp_path / "index")
    inspected = start(tmp_path / "index", qrels=tmp_path / "judged.tsv")
    inspected.judge(1, q="red sea", id=inspected.json("search", q="red sea")["hits"][0]["id"])
    given = {**ASKED, "k1": 0.5, "variant": "bm25+", "b_b": 0.2, "page": 1}
    for view in VIEWS:
        assert printed(inspected.json(view, **given)["python"])
    hits = inspected.json("search", q="red +sea", syntax=1, k1=0.5)
    expected = [f"{hit['rank']} {hit['id']} {hit['score']}" for hit in hits["hits"]]
    assert printed(hits["python"]).splitlines() == expected
    filtered = inspected.json("search", q="red", filter='{"year": 2020}', size=1, page=2)
    expected = [f"{hit['rank']} {hit['id']} {hit['score']}" for hit in filtered["hits"]]
    assert printed(filtered["python"]).splitlines() == expected


def printed(program: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(program, "python", "exec"), {})
    return output.getvalue()


def test_a_restricted_index_tells_nothing_of_other_documents(folder: Path, start: Start) -> None:
    inspected = start(folder, restrict={"kind": "vehicle"})
    for view in VIEWS:
        given = {"q": "deep sea bird", "id": "sea", "t": "deep", "prefix": "de"}
        shown: dict[str, Any] = inspected.json(view, **given)
        shown.pop("python")
        page = inspected.page(view, **given)
        assert "blue" not in page
        assert "flies" not in page
        assert "blue" not in str(shown)
        assert "dee" not in [one["name"] for one in shown.get("beginning", ())]
    assert inspected.json("term", t="deep")["known"] is False
    assert inspected.json("term", t="deap")["spelt"] == []
    assert inspected.json("terms")["documents"] == 2


def test_a_restricted_index_is_scored_by_the_statistics_that_are_chosen(
    folder: Path, start: Start
) -> None:
    only, scores = {"kind": "vehicle"}, []
    for statistics in ("whole", "part"):
        view = BM25Index.open(folder).restricted(only, statistics=statistics)  # type: ignore[arg-type]
        expected = [(hit.id, hit.score) for hit in view.search("red road")]
        shown = start(folder, restrict=only, statistics=statistics).json("search", q="red road")
        assert [(hit["id"], hit["score"]) for hit in shown["hits"]] == expected
        assert [line.split()[1:] for line in printed(shown["python"]).splitlines()] == [
            [id, str(score)] for id, score in expected
        ]
        scores.append(expected)
    assert scores[0] != scores[1]


def test_a_question_with_signs_is_read_as_such_and_its_time_is_limited(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"red sea {n}" if n % 2 else f"sea red {n}" for n in range(2_000)]
    BM25Index.from_texts(texts).save(tmp_path / "index")
    inspected = start(tmp_path / "index")
    data = inspected.json("search", q='"red sea" -7', syntax=1)
    assert (data["total"], data["notes"]) == (999, [])
    assert inspected.json("search", q='"red sea" -7')["total"] == 2_000
    monkeypatch.setattr("bm25rag.inspector.asked.PATIENCE", 1e-9)
    for view in ("search", "document", "compare", "cost"):
        data = inspected.json(view, q='"red sea"', id="1", syntax=1)
        assert "timeout" in data["notes"][0]


def test_values_that_json_lacks_are_shown_and_are_no_filters(tmp_path: Path, start: Start) -> None:
    metadata = {"day": date(2024, 2, 3), "at": datetime(2024, 2, 3, 4, tzinfo=UTC)}
    metadata |= {"long": "x" * 300, "nan": float("nan"), "deep": {"a": {"b": {"c": {"d": 1}}}}}
    BM25Index.from_texts(["red"], metadata=[metadata]).save(tmp_path / "index")
    inspected = start(tmp_path / "index")
    data = inspected.json("search", q="red")
    shown = data["hits"][0]["metadata"]
    assert (shown["day"], shown["nan"]) == ("2024-02-03", None)
    values = {facet["path"]: facet["values"][0] for facet in data["facets"]}
    assert [values[path]["filter"] for path in ("day", "at", "long")] == [None, None, None]
    assert values["day"]["value"] == "2024-02-03"
    assert values["deep.a.b.c.d"]["filter"] == {"deep.a.b.c.d": 1}
    page = inspected.page("search", q="red")
    assert "2024-02-03" in page
    assert "2024-02-03" in inspected.page("document", q="red", id="0")


def test_more_than_ten_terms_share_a_colour_and_still_add_up(tmp_path: Path, start: Start) -> None:
    words = [f"q{chr(97 + n % 26)}{chr(97 + n // 26)}x" for n in range(30)]
    index = BM25Index.from_texts([" ".join(words), f"{words[3]} {words[20]}"])
    index.save(tmp_path / "index")
    (hit, _) = start(tmp_path / "index").json("search", q=" ".join(words))["hits"]
    assert [part["term"] for part in hit["shares"]] == [*words[:10], "other terms"]
    assert sum(part["score"] for part in hit["shares"]) == pytest.approx(hit["score"])


def test_many_commits_can_be_looked_at_in_turn(folder: Path, start: Start) -> None:
    for n in range(7):
        with BM25Index.open(folder, mode="w", keep="1d") as index:
            index.add([f"red {n}"], ids=[f"new{n}"])
    commits = [commit.id for commit in BM25Index.commits(folder)]
    inspected = start(folder)
    for _ in range(2):
        for n, commit in enumerate(commits):
            assert inspected.json("health", commit=commit)["stats"]["documents"] == 5 + n
            assert inspected.json("terms", commit=commit)["documents"] == 5 + n
    pinned = start(folder, commit=commits[2])
    assert pinned.json("search", q="red")["total"] == 5
    with BM25Index.open(folder, mode="w") as index:
        index.delete(["new0"])
    assert pinned.json("search", q="red")["total"] == 5


def test_a_bug_in_a_view_is_told_as_such_and_logged(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(desk: Any, asked: Any) -> Any:
        raise KeyError("<b>broken</b>")

    monkeypatch.setitem(VIEW_FUNCTIONS, "terms", broken)
    assert "This is a bug" in inspected.json("terms", 500)["error"]
    page = inspected.page("terms", 500)
    assert "<b>broken" not in page
    assert "This is a bug" in page
    assert "broken" in caplog.text
    assert inspected.page("search", q="red")


def test_an_index_of_many_segments_or_without_compiled_code_is_remarked_on(
    folder: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.kernels.backend.chosen", lambda: "numpy")
    (slow,) = start(folder).json("health")["remarks"]
    many, _ = remarks_on({"documents": 9, "segments": 13})
    assert "There are 13 segments; maintain() merges them" in many
    assert remarks_on({"documents": 9, "segments": 13, "shards": 2}) == [slow]
    assert "NumPy answers" in slow
