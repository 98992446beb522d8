"""Contexts are searched with their texts, and never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bm25rag import Analyzer, BM25Index, Document, Query
from bm25rag.agents import grep, read, search
from bm25rag.cli.mcp.served import Served
from bm25rag.cli.mcp.tools import IndexTools
from support.commands import ok, rows, write

SECRET = "Quarterly filing of Acme Corporation"
DOCUMENTS = [
    Document("acme", "Revenue rose by three percent.", {"source": "a"}, context=SECRET),
    Document("zeta", "Revenue fell.", {"source": "b"}, context="Filing of Zeta."),
    Document("none", "A text on revenue at Acme.", {"source": "c"}),
]


def make(**options: Any) -> BM25Index:
    index = BM25Index(fields={"context": 1.0}, **options)
    index.add_documents(DOCUMENTS)
    return index


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    make().save(tmp_path / "it.bm25")
    return tmp_path / "it.bm25"


def test_a_context_scores_as_if_it_stood_before_the_text() -> None:
    joined = BM25Index.from_texts(
        [" ".join(filter(None, (one.context, one.text))) for one in DOCUMENTS],
        [one.id for one in DOCUMENTS],
    )
    for query in ("acme revenue", "filing", "quarterly three", "revenue"):
        found, expected = make().search(query), joined.search(query)
        assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in expected]
    assert make().tune(fields={"context": 0.0}).search("filing") == []


def test_nothing_shows_it_but_the_document_and_explain() -> None:
    index = make()
    hit = index.search("quarterly revenue")[0]
    assert (hit.id, hit.text, hit.fields) == ("acme", DOCUMENTS[0].text, {"text": hit.text})
    assert [span.term for span in hit.spans] == ["revenu"]
    assert [line.text for line in hit.lines] == [hit.text]
    assert SECRET not in f"{hit!r} {hit.snippet(500)} {hit.metadata}"
    with pytest.raises(KeyError):
        hit.of_field("context")
    why = index.explain("quarterly revenue", "acme")
    assert [one.fields for one in why.terms] == [
        {"context": 1, "text": 0},
        {"context": 0, "text": 1},
    ]
    assert "context: 1" in str(why)
    assert [one.context for one in index.get(["acme", "none"])] == [SECRET, None]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Query(must=["filing acme"]), ["acme"]),
        (Query("revenue", must_not=["filing"]), ["none"]),
        (Query("filing", field="context"), ["zeta", "acme"]),
        (Query(must=[{"context": "acme"}]), ["acme"]),
        (Query("filing", phrases=["Acme Corporation"]), []),
        (Query(phrases=["acme"]), ["none"]),
        (Query("revenue", not_phrases=["acme"]), ["zeta", "acme"]),
        (Query("revenue", must=["of"]), []),
        (Query(phrases=["revenue rose"]), ["acme"]),
    ],
)
def test_phrases_are_looked_for_in_the_text_alone(query: Query, found: list[str]) -> None:
    for index in (make(), make().restricted({"source": {"$in": ["a", "b", "c"]}})):
        hits = index.search(query)
        assert [hit.id for hit in hits] == found
        for one in DOCUMENTS:
            assert index.explain(query, one.id).matched == (one.id in found)


@pytest.mark.parametrize(
    "part", [{"phrases": ["acme"]}, {"must": ["of"]}, {"not_phrases": ["x y"]}]
)
def test_phrases_in_a_context_are_refused(part: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="looked for in a context"):
        make().search(Query("revenue", field="context", **part))


def test_it_is_kept_by_whatever_keeps_documents(tmp_path: Path, saved: Path) -> None:
    stored = make().get(["acme", "zeta", "none"])
    again = BM25Index(fields={"context": 1.0})
    for one in stored:  # segments that are merged
        again.add_documents([one])
    again.compact()
    BM25Index.build(DOCUMENTS, tmp_path / "shards", shards=2, fields={"context": 1.0})
    same = [BM25Index.open(saved), again, BM25Index.open(tmp_path / "shards")]
    same += [make().reanalyze(), again.restricted({"source": {"$in": ["a", "b", "c"]}})]
    for index in same:
        assert index.get(index.ids()) == stored
        assert [hit.id for hit in index.search("quarterly")] == ["acme"]
    other = make().reanalyze(Analyzer(None, lowercase=False))
    assert [hit.id for hit in other.search("Acme")] == ["none", "acme"]


def test_agents_never_see_it(tmp_path: Path) -> None:
    """Not even where it came from the metadata, as the command line and the adapters take it."""
    lines = [
        {"id": one.id, "text": one.text, "metadata": {**one.metadata, "context": one.context}}
        for one in DOCUMENTS
    ]
    write(str(tmp_path / "d.jsonl"), "\n".join(map(json.dumps, lines)))
    folder = tmp_path / "it.bm25"
    ok("index", tmp_path / "d.jsonl", "-o", folder, "--field", "context=1")
    index = BM25Index.open(folder)
    tools = IndexTools([Served(folder)])
    answers = [
        search(index, "quarterly filing"),
        read(index, "acme"),
        read(index, source="a"),
        grep(index, "Revenue", context=3),
        grep(index, "Quarterly"),
        tools.call("search", {"query": "quarterly", "phrases": ["revenue rose"]}),
        tools.call("explain", {"query": "quarterly", "id": "acme"}),
    ]
    assert [answer.content["total"] for answer in answers] == [2, 1, 1, 2, 0, 1, 1]
    assert "1 times here: context 1, idf" in answers[-1].text
    for answer in answers:
        assert "Acme Corporation" not in json.dumps(answer.content) + answer.text


def test_it_is_exported_and_synced(tmp_path: Path, saved: Path) -> None:
    exported = rows(ok("export", saved).stdout)
    assert [one["metadata"].get("context") for one in exported] == [SECRET, "Filing of Zeta.", None]
    notes = tmp_path / "notes"
    write(str(notes / "d.jsonl"), "\n".join(map(json.dumps, exported)))
    ok("index", notes, "-o", tmp_path / "again.bm25", "--field", "context=1")
    assert "0 replaced, 3 unchanged" in ok("sync", notes, tmp_path / "again.bm25").stderr
    exported[1]["metadata"]["context"] = "Filing of Omega."
    write(str(notes / "d.jsonl"), "\n".join(map(json.dumps, exported)))
    assert "1 replaced, 2 unchanged" in ok("sync", notes, tmp_path / "again.bm25").stderr
    assert BM25Index.open(tmp_path / "again.bm25").search("omega")[0].text == "Revenue fell."


@pytest.mark.parametrize(
    ("document", "index", "error", "said"),
    [
        (Document("a", "b", context="c"), BM25Index(), ValueError, "fields={'context': 1.0}"),
        (
            Document("a", "b", context="c"),
            BM25Index(fields={"title": 1.0}),
            ValueError,
            "has a context, but the index has no field for it",
        ),
        (Document("a", "b", context=7), make(), TypeError, r"documents\[0\].context must be a str"),
        (
            Document("a", "b", context={"text": "c"}),
            make(),
            TypeError,
            r"documents\[0\].context must be a str",
        ),
        (
            Document("a", "b", fields={"context": "c"}, context="d"),
            make(),
            ValueError,
            r"a context that is not fields\['context'\]",
        ),
        (Document("a", "b", context=["c"]), make(), TypeError, "all texts or all lists of terms"),
    ],
)
def test_wrong_contexts_are_refused(
    document: Any, index: BM25Index, error: type[Exception], said: str
) -> None:
    before = len(index)
    with pytest.raises(error, match=said):
        index.add_documents([document])
    assert len(index) == before
