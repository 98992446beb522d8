"""``--restrict``: commands, and a language model, see some of the documents as if they were all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from bm25rag.errors import BM25Error
from support.commands import fails, ok, rows

RECENT = '{"year": {"$gte": 2022}}'


def test_commands_see_nothing_else(saved: Path) -> None:
    only = ("--restrict", RECENT)
    found = rows(ok("search", saved, "red blue sea", "--format", "jsonl", *only).stdout)
    assert {row["id"] for row in found} <= {"sea", "bird"}
    wider = ("--filter", '{"year": {"$exists": true}}')
    assert (
        rows(ok("search", saved, "red blue sea", "--format", "jsonl", *only, *wider).stdout)
        == found
    )
    assert [row["id"] for row in rows(ok("export", saved, *only).stdout)] == ["sea", "bird"]
    told = json.loads(ok("stats", saved, "--json", *only).stdout)
    assert told["documents"] == 2
    assert told.keys().isdisjoint({"deleted", "bytes_by_kind", "compaction_frees"})
    assert "documents" in ok("stats", saved, *only).stdout
    assert ok("grep", saved, "r", *only).stdout.count("\n") == 1
    fails(3, "no document with the id 'car'", "explain", saved, "red", "car", *only)
    fails(2, "$near", "search", saved, "red", "--restrict", '{"year": {"$near": 1}}')
    fails(2, "rejects something", "search", saved, "red", "--restrict", "{}")


def test_a_language_model_hears_of_nothing_else(saved: Path) -> None:
    tools = IndexTools([Served(saved, restrict=json.loads(RECENT))])
    assert len(tools) == 2
    assert "2 documents" in tools.describe()
    for filter in (None, {"year": {"$exists": True}}, {"$id": "car"}):
        content, _ = tools.call("search", {"query": "red car boat sea", "filter": filter})
        assert "car" not in str(content).replace("'query': 'red car boat sea'", "")
        content, _ = tools.call("grep", {"pattern": "car", "filter": filter})
        assert "road" not in str(content)
    with pytest.raises((LookupError, ValueError)):
        tools.call("read", {"id": "car"})
    assert tools.call("count", {"filter": {"$id": "car"}})[0] == {"count": 0}
    with pytest.raises(LookupError, match="there is no document with the id 'car'"):
        tools.call("explain", {"query": "red", "id": "car"})
    fails(2, "either --write or --restrict", "mcp", saved, "--write", "--restrict", RECENT)


def test_scores_are_by_the_statistics_of_all_or_of_the_part(saved: Path) -> None:
    index = BM25Index.open(saved)

    def scores(*options: str) -> list[tuple[str, float]]:
        found = ok("search", saved, "red sea", "--format", "jsonl", "--restrict", RECENT, *options)
        return [(row["id"], row["score"]) for row in rows(found.stdout)]

    expected = {}
    for statistics in ("whole", "part"):
        view = index.restricted(json.loads(RECENT), statistics=statistics)  # type: ignore[arg-type]
        expected[statistics] = [(hit.id, hit.score) for hit in view.search("red sea")]
        assert scores("--statistics", statistics) == expected[statistics]
        given: Any = {"restrict": json.loads(RECENT), "statistics": statistics}
        hits = IndexTools([Served(saved, **given)]).call("search", {"query": "red sea"})[0]["hits"]
        assert [(hit["id"], hit["score"]) for hit in hits] == expected[statistics]
    assert scores() == expected["whole"] != expected["part"]
    assert "[default: part]" in ok("mcp", "--help").stdout
    for command in (("search", saved, "red"), ("mcp", saved), ("inspect", saved)):
        fails(2, "--statistics is for --restrict", *command, "--statistics", "whole")
    order = ("--statistics", "part", "--restrict", RECENT)  # either may come first
    assert rows(ok("search", saved, "red sea", "--format", "jsonl", *order).stdout)


def test_groups_and_decay_are_options(saved: Path) -> None:
    whole = rows(ok("search", saved, "red blue sea", "--format", "jsonl").stdout)
    grouped = rows(
        ok("search", saved, "red blue sea", "--format", "jsonl", "--group", "none").stdout
    )
    assert grouped == [row | {"group_size": 1} for row in whole]
    (answer,) = rows(ok("search", saved, "red blue sea", "--json", "--group", "none").stdout)
    assert answer["groups"] == len(whole)
    assert " group " in ok("search", saved, "red", "--group", "none").stdout
    decay = '{"path": "year", "full": 10000, "floor": 0.001}'
    lowered = rows(ok("search", saved, "red", "--format", "jsonl", "--decay", decay).stdout)
    assert max(row["score"] for row in lowered) < 0.3 * max(row["score"] for row in whole)
    assert "decay" in ok("explain", saved, "red", "car", "--decay", decay).stdout
    fails(2, "path is missing", "search", saved, "red", "--decay", '{"half_life": "1d"}')
    tools = IndexTools([Served(saved)])
    content, _ = tools.call(
        "search", {"query": "red", "decay": json.loads(decay), "group": "$text"}
    )
    assert all(row["id"] in str(content) for row in lowered)
    assert content["total"] == len(lowered)
    assert {hit["group_size"] for hit in content["hits"]} == {1}


WORDS = ["red", "boat", "sea", "cat", "the"]
ASKED = st.sampled_from([*WORDS, "secret"])
FILTERS = st.sampled_from(
    [
        None,
        {"tenant": "theirs"},
        {"$not": {"tenant": "ours"}},
        {"secret": {"$exists": True}},
        {"$or": [{"$id": "1"}, {"year": {"$gte": 1}}]},
    ]
)
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
CALLS = st.one_of(
    st.tuples(
        st.just("search"),
        st.fixed_dictionaries(
            {"query": ASKED, "k": st.integers(1, 4), "filter": FILTERS, "budget": st.just(1000)},
            optional={
                "also": st.lists(ASKED, max_size=2),
                "must_not": st.lists(ASKED, max_size=1),
                "phrases": st.just(["red boat"]),
                "group": st.sampled_from(["year", "tenant", "$text"]),
                "decay": st.just({"path": "year", "full": 3, "floor": 0.2}),
                "vector": st.sampled_from([{"shared": 1.0}, {"secret": 1.0}]),
            },
        ),
    ),
    st.tuples(
        st.just("grep"),
        st.fixed_dictionaries({"pattern": ASKED, "filter": FILTERS, "regex": st.booleans()}),
    ),
    st.tuples(st.just("read"), st.fixed_dictionaries({"id": st.sampled_from("0123456789")})),
    st.tuples(st.just("read"), st.fixed_dictionaries({"source": st.sampled_from("fg")})),
    st.tuples(
        st.just("explain"),
        st.fixed_dictionaries(
            {"query": ASKED, "id": st.sampled_from("01234"), "also": st.lists(ASKED, max_size=2)}
        ),
    ),
    st.tuples(st.just("count"), st.fixed_dictionaries({"filter": FILTERS})),
)


def heard(tools: IndexTools, name: str, arguments: dict[str, Any]) -> list[Any]:
    """Return all pages of an answer, or the error."""
    pages: list[Any] = []
    cursor = None
    try:
        while not pages or cursor is not None:
            answer = tools.call(name, arguments | ({} if cursor is None else {"cursor": cursor}))
            pages.append(json.dumps(answer))
            cursor = answer.content.get("cursor")
    except (BM25Error, TypeError, ValueError) as error:
        pages.append(str(error))
    return pages


@given(
    documents=st.lists(
        st.tuples(TEXTS, st.booleans(), st.integers(0, 3), st.sampled_from("fg")),
        min_size=1,
        max_size=9,
    ),
    calls=st.lists(CALLS, min_size=4, max_size=9),
)
def test_no_call_of_a_restricted_server_tells_it_from_one_without_the_others(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Any], calls: list[Any]
) -> None:
    made = [
        (
            str(number),
            text if ours else f"{text} secret",
            {"tenant": "ours" if ours else "theirs", "year": year, "source": source}
            | ({} if ours else {"secret": 1}),
            {"shared": 1.0 + year} | ({} if ours else {"secret": 1.0}),
        )
        for number, (text, ours, year, source) in enumerate(documents)
    ]
    own = [one for one in made if one[2]["tenant"] == "ours"]
    folder = tmp_path_factory.mktemp("restricted")
    for name, some in (("all", made), ("own", own)):
        ids, texts, metadata, vectors = zip(*some, strict=True) if some else ((), (), (), ())
        index = BM25Index()
        index.add(texts, list(ids), list(metadata), vectors=list(vectors))
        index.save(folder / name / "docs")
    restricted = IndexTools([Served(folder / "all" / "docs", restrict={"tenant": "ours"})])
    alone = IndexTools([Served(folder / "own" / "docs")])
    told = [[tool[:4] for tool in tools.tools()] for tools in (restricted, alone)]
    assert told[0] == told[1]
    for name, arguments in calls:
        assert heard(restricted, name, dict(arguments)) == heard(alone, name, dict(arguments))
