"""Answers keep to their budget, say what they leave out, and cursors lead through all of it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.agents import Answer, IndexTool, answer_schemas, grep, read, schemas, search
from bm25rag.agents.answers import LEAST_BUDGET
from bm25rag.errors import DocumentNotFoundError, FilterWarning

# What takes one character, several as an escape, or none of a budget if it is forgotten.
TEXT = st.text(st.sampled_from('red boat"\\\n\x01é\U0001f600\ud800 \u2028'), max_size=60)
LONG = st.builds(lambda text, times: text * times, TEXT, st.sampled_from([1, 1, 20, 200]))
METADATA = st.dictionaries(TEXT, LONG | st.integers(), max_size=3) | st.fixed_dictionaries(
    {"source": LONG, "line": st.integers(-1, 10**20)}
)
BUDGETS = st.sampled_from([LEAST_BUDGET, 1_001, 1_500, 3_000, 8_000])
Tool = Callable[..., Answer]


jsonschema = pytest.importorskip("jsonschema", reason="the extra mcp is not installed")
VALIDATORS = {
    tool: jsonschema.Draft202012Validator(schema)
    for tool, schema in (
        (search, answer_schemas.SEARCH),
        (grep, answer_schemas.GREP),
        (read, answer_schemas.READ),
    )
}


def within(answer: Answer, budget: int) -> dict[str, Any]:
    shown = json.dumps(answer.content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    shown.encode()
    assert len(shown) <= budget
    assert len(answer.text) <= budget
    return answer.content


def pages(tool: Tool, *arguments: Any, budget: int, **options: Any) -> list[dict[str, Any]]:
    answers, cursor = [], None
    while not answers or cursor is not None:
        content = within(tool(*arguments, budget=budget, cursor=cursor, **options), budget)
        VALIDATORS[tool].validate(content)
        answers.append(content)
        cursor = content.get("cursor")
        assert content["truncated"] or cursor is None
        assert len(answers) < 500
    return answers


def index_of(texts: list[str], metadata: list[dict[str, Any]], names: list[str]) -> BM25Index:
    ids = [f"{number}{name}" for number, name in enumerate(names)]
    return BM25Index.from_texts(texts, ids, metadata)


DOCUMENTS = st.lists(st.tuples(LONG, METADATA, LONG), max_size=7)


@given(documents=DOCUMENTS, budget=BUDGETS, k=st.integers(1, 9))
def test_searches_return_the_whole_ranking_page_by_page(
    documents: list[Any], budget: int, k: int
) -> None:
    texts, metadata, names = zip(*documents, strict=True) if documents else ((), (), ())
    index = index_of(list(texts), list(metadata), list(names))
    hits = index.search("red boat", len(index))
    found = pages(search, index, "red boat", k, budget=budget)
    shown = [hit for page in found for hit in page["hits"]]
    assert [one["score"] for one in shown] == [hit.score for hit in hits]
    for one, hit in zip(shown, hits, strict=True):
        start = one.get("start", 0)
        text = (hit.text or "").encode("utf-8", "replace").decode()
        assert one["text"] == text[start : start + len(one["text"])]
        assert one["lines"] == [
            text.count("\n", 0, end) + 1 for end in (start, start + len(one["text"]))
        ]
        words = {one["text"][first:last].lower() for first, last in one["spans"]}
        assert words <= {"red", "boat", "boats"}
    assert {page["total"] for page in found} == {len(hits)}
    assert sum(page["returned"] for page in found) == len(hits)


GROUPS = st.sampled_from([None, "a", "b", 1, 1.0, True, ["a"], {"a": 1}])


@given(
    documents=st.lists(st.tuples(LONG, GROUPS), max_size=12),
    budget=BUDGETS,
    k=st.integers(1, 4),
    per_group=st.integers(1, 3),
    group=st.sampled_from(["group", "$text"]),
)
def test_groups_come_whole_in_the_order_of_their_best_page_by_page(
    documents: list[tuple[str, Any]], budget: int, k: int, per_group: int, group: str
) -> None:
    texts = [text for text, _ in documents]
    index = BM25Index.from_texts(texts, metadata=[{"group": own} for _, own in documents])
    groups: dict[str, list[str]] = {}
    for hit in index.search("red boat", len(index)):
        key = repr(hit.text) if group == "$text" else json.dumps(hit.metadata["group"])
        key = {"1.0": "1"}.get(key, key)
        groups.setdefault(hit.id if key == "null" else key, []).append(hit.id)
    shape: Any = {"group": group, "per_group": per_group}
    answers = pages(search, index, "red boat", k, budget=budget, **shape)
    found = [hit["id"] for answer in answers for hit in answer["hits"]]
    assert found == [id for members in groups.values() for id in members[:per_group]]
    assert {answer["total"] for answer in answers} == {len(groups)}
    if budget > 3_000 and max(map(len, texts), default=0) < 99:  # there is room for all
        sizes = [min(len(own), per_group) for own in groups.values()]
        assert answers[0]["returned"] == sum(sizes[:k])


def test_models_are_told_how_many_groups_match_and_how_many_documents_are_shown() -> None:
    index = BM25Index.from_texts(["red boat"] * 12, metadata=[{"g": n // 4} for n in range(12)])
    assert search(index, "red", group="g", per_group=3).text.endswith(
        "[9 documents of 3 groups that match]"
    )
    first = search(index, "red", 2, group="g", per_group=3, phrases=["red"])
    assert (first.content["total"], first.content["at_least"]) == (None, 2)
    assert "[6 documents of at least 2 groups that match; the same" in first.text


def test_where_cursors_lead_no_further_an_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.agents.searching._DEEPEST", 3)
    index = BM25Index.from_texts(["red"] * 9)
    first = search(index, "red", 2).content
    middle = search(index, "red", 2, cursor=first["cursor"])
    assert "cursor" not in middle.content
    assert middle.content["truncated"]
    assert middle.text.endswith(
        "[2 of 9 documents that match; cursors lead no further, so ask for less]"
    )


def test_a_query_of_stop_words_is_not_said_to_be_in_no_document() -> None:
    index = BM25Index.from_texts(["the cat that is to be"])
    for query in ("the", "to be", "?!", ""):
        assert search(index, query).text.startswith("No word of the query counts")
    assert search(index, "zebra").text == "No document that may be found has a word of the query."


def test_metadata_are_shown_that_are_called_id_and_say_something_else() -> None:
    index = BM25Index.from_texts(["red", "red"], ["a", "b"], [{"id": "a"}, {"id": "invoice 7"}])
    same, other = search(index, "red").content["hits"]
    assert "metadata" not in same
    assert other["metadata"] == {"id": "invoice 7"}


def test_more_of_a_group_are_refused_without_one_and_beyond_ten() -> None:
    index = BM25Index.from_texts(["red", "red"])
    for wrong in (0, -1, True, 1.5, "2"):
        with pytest.raises((TypeError, ValueError), match="per_group must be"):
            search(index, "red", group="year", per_group=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="per_group is for searches with group"):
        search(index, "red", per_group=2)
    with pytest.raises(ValueError, match="per_group must be at most 10"):
        search(index, "red", group="year", per_group=11)


def test_groups_are_also_those_of_fused_rankings(index: BM25Index) -> None:
    vectors: Any = [{"sea": 1.0 + number} for number in range(6)]
    metadata = [{"year": number % 2} for number in range(6)]
    index = BM25Index.from_texts(["red boat"] * 6, metadata=metadata, vectors=vectors)
    for query in ("red", None):
        given: Any = {"vector": {"sea": 1.0}, "group": "year", "per_group": 2}
        ids = [
            hit["id"]
            for page in pages(search, index, query, 1, budget=LEAST_BUDGET, **given)
            for hit in page["hits"]
        ]
        assert int(ids[0]) % 2 == int(ids[1]) % 2 != int(ids[2]) % 2
        assert len(ids) == len({*ids}) == 4


@given(documents=DOCUMENTS, budget=BUDGETS, context=st.integers(0, 3))
def test_greps_return_each_line_that_matches_once(
    documents: list[Any], budget: int, context: int
) -> None:
    texts, metadata, names = zip(*documents, strict=True) if documents else ((), (), ())
    index = index_of(list(texts), list(metadata), list(names))
    found = pages(grep, index, "ed", context=context, budget=budget)
    shown = [
        (line["number"], [line["text"][first:last] for first, last in line["spans"]][:1])
        for page in found
        for document in page["documents"]
        for line in document["lines"]
        if "spans" in line
    ]
    lines = [line for text in texts for line in enumerate(text.split("\n"), 1)]
    assert shown == [(number, ["ed"]) for number, line in lines if "ed" in line]
    assert {page["total"] for page in found} == {len(shown)}


PIECES = ["red ", "boat red ", "x ", "\x0b", "\x0c", "\u2028", "\x85", "\n", "\r", "\r\n"]
LINE_ENDS = re.compile("\r\n|\r|\n")


@given(text=st.lists(st.sampled_from(PIECES)).map("".join))
def test_all_that_tells_lines_counts_them_as_editors_do(text: str) -> None:
    lines = LINE_ENDS.split(text)
    index = BM25Index.from_texts([text])
    expected = [(number, line) for number, line in enumerate(lines, 1) if "red" in line]
    for hit in index.search("red"):
        assert [(line.number, line.text) for line in hit.lines] == expected
        for line in hit.lines:
            assert {line.text[span.start : span.end] for span in line.spans} == {"red"}
    (document,) = grep(index, "red", context=1).content["documents"] or ({"lines": []},)
    shown = [(line["number"], line["text"]) for line in document["lines"]]
    assert [one for one in shown if "red" in one[1]] == expected
    assert all(lines[number - 1] == own for number, own in shown)
    for number, line in expected:
        (part,) = read(index, "0", lines=f"{number}").content["documents"]
        assert (part["lines"], part["text"]) == ([number, number], line)
    for hit in search(index, "red", budget=LEAST_BUDGET).content["hits"]:
        first, last = hit["lines"]
        assert 1 <= first <= last <= len(lines)
        assert lines[first - 1 : last] == LINE_ENDS.split(hit["text"])


@given(document=st.tuples(LONG, METADATA, LONG), budget=BUDGETS)
def test_reads_return_the_whole_text(document: Any, budget: int) -> None:
    text, metadata, name = document
    index = index_of([text], [metadata], [name])
    found = pages(read, index, index.ids()[0], budget=budget)
    parts = [page["documents"][0] for page in found]
    joined = parts[0]["text"]
    for part in parts[1:]:
        joined += part["text"] if "start" in part else "\n" + part["text"]
    assert joined == text.encode("utf-8", "replace").decode()
    assert {page["total"] for page in found} == {text.count("\n") + 1}


def test_neighbours_of_lines_are_shown_once_and_what_matches_is_marked() -> None:
    index = BM25Index.from_texts(["0\n1\nx\nx\n4\n5\n6\nx"], ["a"])
    assert grep(index, "x", context=1).text == "a\n2- 1\n3: x\n4: x\n5- 4\n7- 6\n8: x"
    (document,) = grep(index, "x").content["documents"]
    assert [line["number"] for line in document["lines"]] == [3, 4, 8]


# --- cursors ------------------------------------------------------------------------


@pytest.fixture
def index() -> BM25Index:
    return BM25Index.from_texts(["red boat " * 40 + f"\nred {n}" for n in range(9)])


CALLS: list[tuple[Tool, dict[str, Any]]] = [
    (search, {"query": "red", "k": 2}),
    (grep, {"pattern": "red"}),
    (read, {"id": "3"}),
]


def ids_of(answer: Answer) -> list[str]:
    return [one["id"] for key in ("hits", "documents") for one in answer.content.get(key, ())]


def first_cursor(
    tool: Tool, index: BM25Index, arguments: dict[str, Any], budget: int = 1000
) -> Any:
    if tool is read:
        index.add(["line\n" * 400], ["3"], on_duplicate="replace")
    return tool(index, **arguments, budget=1000).content["cursor"]


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_cursor_stays_valid_through_commits_that_keep_what_came_before(
    tool: Tool, arguments: dict[str, Any], index: BM25Index
) -> None:
    cursor = first_cursor(tool, index, arguments)
    before = ids_of(tool(index, **arguments, cursor=cursor))
    index.add(["a green car"])
    index.compact()
    assert ids_of(tool(index, **arguments, cursor=cursor)) == before


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_a_cursor_says_that_it_is_stale(
    tool: Tool, arguments: dict[str, Any], index: BM25Index
) -> None:
    cursor = first_cursor(tool, index, arguments)
    index.add(["red"], on_duplicate="replace", ids=["3"])
    index.delete([id for id in index.ids() if id != "3"])
    with pytest.raises(ValueError, match="cursor is stale"):
        tool(index, **arguments, cursor=cursor)


def test_greps_go_on_after_documents_before_theirs_are_deleted(index: BM25Index) -> None:
    first = grep(index, "red", budget=2000).content
    assert first["documents"][-1]["id"] >= "1"
    index.delete(["0"])
    second = grep(index, "red", cursor=first["cursor"]).content
    assert second["documents"][0]["id"] >= first["documents"][-1]["id"]


@pytest.mark.parametrize("text", ["red\n" * 2_000, "red"])
def test_a_place_in_a_text_is_none_in_the_text_that_replaces_it(text: str) -> None:
    index = BM25Index.from_texts(["a", "red boat\n" * 200])
    cursor = grep(index, "red", budget=1000).content["cursor"]
    index.add([text], ["1"], on_duplicate="replace")
    with pytest.raises(ValueError, match="cursor is stale"):
        grep(index, "red", cursor=cursor)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scope": "another"}, "other arguments or another index"),
        ({"query": "boat", "pattern": "boat", "id": "4"}, "other arguments or another index"),
        ({"filter": {"$id": "1"}, "lines": "2-"}, "other arguments or another index"),
        ({"cursor": "x"}, "cursor must be one that this tool has returned, got 'x'"),
        ({"cursor": "0" * 10_000}, "cursor must be one that this tool has returned"),
        ({"cursor": 5}, "cursor must be a string, got int"),
    ],
)
def test_cursors_of_others_are_refused(
    tool: Tool, arguments: dict[str, Any], change: dict[str, Any], complaint: str, index: BM25Index
) -> None:
    cursor = first_cursor(tool, index, arguments)
    other = {**arguments, "cursor": cursor, **change}
    known = {"scope", "cursor", *arguments, "lines" if tool is read else "filter"}
    given = {name: value for name, value in other.items() if name in known}
    with pytest.raises((TypeError, ValueError), match=complaint):
        tool(index, **given)


@given(cursor=st.text(max_size=40) | st.from_regex(r"[0-9a-f]{10}\.[0-9-]{1,30}\.[0-9a-f]{10}"))
def test_forged_cursors_end_nothing(cursor: str) -> None:
    index = BM25Index.from_texts(["red"])
    for tool, arguments in CALLS:
        real = tool(index, **{**arguments, **({"id": "0"} if tool is read else {})}).text
        assert real
        with pytest.raises(ValueError, match="cursor"):
            tool(index, **{**arguments, **({"id": "0"} if tool is read else {})}, cursor=cursor)


def test_a_forged_place_is_stale_or_empty(index: BM25Index) -> None:
    cursor = first_cursor(search, index, {"query": "red"})
    for place in ("0", "5", "9" * 15):
        forged = re.sub(r"\.\d+\.", f".{place}.", cursor)
        with pytest.raises(ValueError, match="stale"):
            search(index, "red", cursor=forged)


# --- vectors, sources ---------------------------------------------------------------


def test_vectors_are_fused_with_words_and_paged(index: BM25Index) -> None:
    index.add([f"blue {n}" for n in range(5)], vectors=[{"sea": n + 1.0} for n in range(5)])
    expected = index.search_hybrid("red", {"sea": 1.0}, 100, fetch_k=1000)
    found = pages(search, index, "red", 3, vector={"sea": 1.0}, budget=3000)
    assert [hit["id"] for page in found for hit in page["hits"]] == [hit.id for hit in expected]
    found = pages(search, index, None, 2, vector={"sea": 1.0}, budget=3000)
    assert [page["total"] for page in found] == [5, 5, 5]


def test_a_source_is_read_by_the_lines_of_its_file() -> None:
    rows = [("c", 9), ("a", 1), ("b", 4), ("d", 12)]
    metadata = [{"source": "f.md", "line": line} for _, line in rows]
    texts = [f"text of {id}" for id, _ in rows]
    index = BM25Index.from_texts([*texts, "x"], [*(id for id, _ in rows), "x"], [*metadata, {}])

    def ids(lines: str | None) -> list[str]:
        return [one["id"] for one in read(index, source="f.md", lines=lines).content["documents"]]

    assert ids(None) == ["a", "b", "c", "d"]
    assert (ids("1"), ids("3-4"), ids("5-9"), ids("10-")) == (
        ["a"],
        ["a", "b"],
        ["b", "c"],
        ["c", "d"],
    )
    for lines in ("13", "99-"):
        with pytest.raises(DocumentNotFoundError, match="no document with these lines"):
            read(index, source="f.md", lines=lines)
    index.update_metadata(["x"], [{"source": "g.pdf"}])
    assert read(index, source="g.pdf").content["documents"][0]["text"] == "x"
    with pytest.raises(ValueError, match="do not say their lines"):
        read(index, source="g.pdf", lines="2")


def test_all_documents_that_have_a_part_of_a_long_line_are_read() -> None:
    texts = ["one\ntwo begins", "two goes on", "two ends\nthree", "five"]
    metadata = [{"source": "f", "line": line} for line in (1, 2, 2, 5)]
    index = BM25Index.from_texts(texts, metadata=metadata)
    for lines, expected in (("1", "0"), ("2", "012"), ("3", "2"), ("4", "2"), ("5", "3")):
        assert "".join(ids_of(read(index, source="f", lines=lines))) == expected


def test_names_that_an_answer_has_cut_are_read_if_no_others_begin_so() -> None:
    ids = ["long" * 50, "twins" * 50 + "1", "twins" * 50 + "2", "else" * 50]
    metadata = [{"t": 1, "source": id + "/file"} for id in ids[:3]] + [{"t": 2}]
    index = BM25Index.from_texts(["red one", "red two", "red three", "red four"], ids, metadata)
    shown = {hit["text"]: hit for hit in search(index, "red").content["hits"]}
    for name in ("id", "source"):
        given = {name: shown["red one"][name]}
        assert read(index, **given, within={"t": 1}).content["documents"][0]["text"] == "red one"
        with pytest.raises(DocumentNotFoundError, match=f"the {name} .*it was cut, and is not"):
            read(index, **{name: shown["red two"][name]})
    with pytest.raises(DocumentNotFoundError, match="it was cut"):
        read(index, shown["red four"]["id"], within={"t": 1})


def test_documents_of_a_source_whose_texts_are_not_stored_keep_to_the_budget_too() -> None:
    ids, metadata = [str(number) for number in range(100)], [{"source": "f"}] * 100
    index = BM25Index.from_texts(["red"] * 100, ids, metadata, store_text=False)
    told = [
        one["id"]
        for page in pages(read, index, None, "f", budget=1000)
        for one in page["documents"]
    ]
    assert told == ids


def test_a_source_of_many_documents_is_read_whole_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came behind the first 1,000 was left out, untold, and the last of these read for it."""
    metadata = [{"source": "book.txt", "line": line} for line in range(1, 1101)]
    index = BM25Index.from_texts([f"page {line}" for line in range(1, 1101)], metadata=metadata)
    assert read(index, source="book.txt").content["total"] == 1100
    (one,) = read(index, source="book.txt", lines="1050").content["documents"]
    assert one["text"] == "page 1050"
    monkeypatch.setattr("bm25rag.agents.reading._MOST_OF_SOURCE", 1099)
    with pytest.raises(ValueError, match="has 1,100 documents, more than 1,099: give the id"):
        read(index, source="book.txt", lines="1050")


@pytest.mark.parametrize(
    ("tool", "schema"),
    [
        (search, schemas.search_schema("", ["title"])),
        (grep, schemas.grep_schema()),
        (read, schemas.read_schema()),
    ],
)
def test_every_argument_that_is_advertised_is_understood(
    tool: Tool, schema: dict[str, Any]
) -> None:
    assert schema.keys() <= signature(tool).parameters.keys()


@pytest.mark.parametrize("name", ["filter", "must", "k", "decay", "group"])
def test_however_deep_arguments_are_nested_a_tool_answers(name: str, index: BM25Index) -> None:
    nested: Any = 1
    for _ in range(100_000):
        nested = {"$not": nested} if name in ("filter", "decay") else [nested]
    answer = IndexTool(lambda: index, "notes", "Notes").run(query="red", **{name: nested})
    assert answer.startswith("Error: ")


def test_a_tool_tells_of_no_fields_that_its_filter_hides() -> None:
    metadata: list[dict[str, Any]] = [{"tenant": "a", "year": 1}, {"tenant": "b", "salary": 2}]
    index = BM25Index.from_texts(["red", "red"], metadata=metadata)
    for within in ({"tenant": "a"}, lambda document: document["tenant"] == "a"):
        tool = IndexTool(lambda: index, "notes", "Notes", within=lambda _, own=within: own)  # type: ignore[misc]
        told = tool.parameters["properties"]["filter"]["description"]
        assert told.endswith("Fields here: tenant (string), year (number).")


@pytest.mark.parametrize("asked", [{"salary": "2"}, {"age": 1}])
def test_a_strict_filter_of_a_model_tells_of_no_fields_that_the_tools_filter_hides(
    asked: dict[str, Any],
) -> None:
    metadata: list[dict[str, Any]] = [{"tenant": "a"}, {"tenant": "b", "salary": 2}]
    index = BM25Index.from_texts(["red", "red"], metadata=metadata)
    tool = IndexTool(lambda: index, "notes", "Notes", within=lambda _: {"tenant": "a"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FilterWarning)  # to who runs the tool
        for filter in ({"$strict": asked}, {"$or": [{"$not": {"$strict": asked}}, asked]}):
            assert "salary" not in (told := tool.run(query="red", filter=filter)), told
            assert "Error" not in told
