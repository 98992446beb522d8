"""Whatever a model passes, a tool answers within its budget or says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index, Document
from bm25rag.agents import Answer
from bm25rag.agents.answers import BUDGET
from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from bm25rag.errors import BM25Error

jsonschema = pytest.importorskip("jsonschema", reason="the extra mcp is not installed")

# What takes more room in JSON, or as a repr, than it has characters.
SIGNS = [
    "red",
    "boat",
    "sea",
    '"',
    "\\",
    "\n",
    "\x01",
    "\ud800",
    "\U000e0001",
    "\U0001f600",
    "漢",
    " ",
]
WORDS = st.lists(st.sampled_from(SIGNS), max_size=9).map("".join)
LONG = st.builds(lambda word, times: word * times, WORDS, st.sampled_from([1, 1, 30, 300]))
NUMBERS = st.sampled_from([-1, 0, 1, 2, 100, 101, 1000, 2**63, 10**400, 0.5, 1e308])
KEYS = st.sampled_from(
    [
        "$eq",
        "$gte",
        "$in",
        "$or",
        "$not",
        "$date",
        "$id",
        "year",
        "path",
        "full",
        "half_life",
        "floor",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | LONG,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | WORDS, inner, max_size=3),
    max_leaves=6,
)
KINDS = ["must", "must_not", "phrases", "not_phrases"]
HOSTILE = ["x" * 5000, "\U000e0001" * 150, "\x01" * 130, "漢" * 300, "\U0001f600" * 200]
RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "index": st.sampled_from(["plain", "rich", "titled"]),
    "query": LONG,
    "pattern": WORDS,
    "regex": st.booleans(),
    "ignore_case": st.booleans(),
    "context": st.integers(0, 10),
    "k": st.integers(1, 100),
    "id": st.sampled_from([*HOSTILE, "0", "1"]),
    "ids": st.lists(LONG, max_size=9) | st.just(HOSTILE * 20),
    "source": st.sampled_from(HOSTILE),
    "lines": st.sampled_from(["1", "1-2", "2-"]),
    "budget": st.sampled_from([1000, 1001, 1500, 8000]),
    "filter": st.dictionaries(KEYS, VALUES, max_size=2),
    "group": st.sampled_from(["year", "$text"]),
    "per_group": st.integers(1, 10),
    "field": st.sampled_from(["title", "text", "body"]),
    "decay": st.just({"path": "year", "full": 5, "floor": 0.5}),
    "vector": st.dictionaries(WORDS, st.floats(0, 2), max_size=3),
    "cursor": st.just("0123456789.1.0123456789"),
    "documents": st.lists(
        st.fixed_dictionaries({"id": LONG, "text": LONG, "metadata": VALUES}), max_size=3
    ),
    "on_duplicate": st.sampled_from(["skip", "replace"]),
    **dict.fromkeys(["also", *KINDS], st.lists(WORDS, max_size=2)),
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> IndexTools:
    folder = tmp_path_factory.mktemp("served")
    texts = [f"red boat {number} \U0001f600\n" * (1 + 40 * number) for number in range(9)]
    documents = [
        Document(id, texts[place], {"source": id, "line": 1 + place, "year": place, id[:50]: id})
        for place, id in enumerate(HOSTILE)
    ]
    plain = BM25Index()
    plain.add_documents(documents)
    plain.save(folder / "plain")
    rich: dict[str, Any] = {
        "metadata": [{"year": number % 3} for number in range(9)],
        "vectors": [{"sea": 1.0 + number} for number in range(9)],
    }
    BM25Index.from_texts(texts, **rich).save(folder / "rich")
    titled = BM25Index(fields={"title": 2.0, "text": 1.0})
    titled.add([{"title": "red sea", "text": text} for text in texts])
    titled.save(folder / "titled")
    served = [Served(folder / name) for name in ("plain", "rich", "titled")]
    return IndexTools(served, write=True)


def check(tools: IndexTools, name: str, arguments: dict[str, Any]) -> Answer:
    answer = tools.call(name, arguments)
    budget = arguments.get("budget")
    shown = json.dumps(answer.content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    shown.encode()
    answer.text.encode()
    assert max(len(shown), len(answer.text)) <= (BUDGET if budget is None else budget)
    (schema,) = (tool.returns for tool in tools.tools() if tool.name == name)
    jsonschema.validate(answer.content, schema)
    return answer


@given(data=st.data())
def test_every_call_is_answered_within_its_budget_or_refused_with_a_reason(
    tools: IndexTools, data: st.DataObject
) -> None:
    for _ in range(3):
        tool = data.draw(st.sampled_from(tools.tools()))
        named = [
            name for name in tool.properties if name in tool.required or data.draw(st.booleans())
        ]
        arguments = {name: data.draw(RIGHT[name]) for name in named}
        if data.draw(st.integers(0, 3)) == 0:
            arguments[data.draw(st.sampled_from([*tool.properties]))] = data.draw(VALUES)
        try:
            answer = check(tools, tool.name, arguments)
            while "cursor" in answer.content:
                arguments["cursor"] = answer.content["cursor"]
                answer = check(tools, tool.name, arguments)
        except (BM25Error, OSError, TypeError, ValueError):
            pass  # which the protocol tells the model


def test_hostile_ids_fit_into_every_answer(tmp_path: Path) -> None:
    ids = [f"{start}{number}" for start in ("漢" * 300, "\U000e0001" * 150) for number in range(50)]
    BM25Index.from_texts(["red boat"] * 100, ids).save(tmp_path / "it")
    tools = IndexTools([Served(tmp_path / "it")], write=True)
    many = "red " + " ".join(f"w{number}" for number in range(500))
    for id in ids[::50]:
        check(tools, "explain", {"query": many, "id": id, "budget": 1000})
    again = [{"id": id, "text": "a blue boat"} for id in ids]
    added = check(tools, "add", {"documents": again, "on_duplicate": "replace"}).content
    assert added["total"] == 100 > added["returned"] > 20
    assert check(tools, "delete", {"ids": ids}).content["total"] == 100
    assert len(BM25Index.open(tmp_path / "it")) == 0


@pytest.mark.parametrize("index", ["plain", "titled"])
@pytest.mark.parametrize("metadata", ["year", [1], True])
def test_metadata_that_are_no_object_are_refused(
    tools: IndexTools, index: str, metadata: object
) -> None:
    documents = [{"id": "new", "text": "red", "metadata": metadata}]
    with pytest.raises(ValueError, match=r"documents\[0\] must be an object with id"):
        tools.call("add", {"index": index, "documents": documents})


def test_groups_are_in_the_schema_of_the_answer(tmp_path: Path) -> None:
    metadata = [{"year": number % 3} for number in range(9)]
    BM25Index.from_texts(["red boat"] * 9, metadata=metadata).save(tmp_path / "it")
    tools = IndexTools([Served(tmp_path / "it")])
    answer = check(tools, "search", {"query": "red", "group": "year"})
    assert [hit["group_size"] for hit in answer.content["hits"]] == [3, 3, 3]
