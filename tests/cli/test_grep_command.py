"""``bm25rag grep``: lines of the texts of an index, for people and for programs."""

from __future__ import annotations

from pathlib import Path

from bm25rag import BM25Index
from support.commands import fails, ok, rows


def test_lines_are_shown_with_id_and_number() -> None:
    texts = ["one red\ntwo\nred \x1b[31m", "Red", "blue"]
    BM25Index.from_texts(texts, ["a", "b", "c"], [{"n": 1}, {"n": 2}, {}]).save("saved")
    assert ok("grep", "saved", "red").stdout == "a:1:one red\na:3:red \\x1b[31m\n"
    assert ok("grep", "saved", "red", "-i", "--filter", '{"n": 2}').stdout == "b:1:Red\n"
    assert ok("grep", "saved", "red", "-k", "1").stdout == "a:1:one red\n"
    assert ok("grep", "saved", "green").stdout == ""
    (found,) = rows(ok("grep", "saved", "^[Rr]ed$", "-E", "--json").stdout)
    expected = {"id": "b", "line": 1, "text": "Red", "spans": [[0, 3]], "metadata": {"n": 2}}
    assert found == expected


def test_mistakes_are_named(saved: Path) -> None:
    fails(2, "pattern is no regular expression of RE2", "grep", saved, "(", "-E")
    fails(2, "pattern must have 1 to 1,000 characters", "grep", saved, "")
    fails(2, "unknown operator", "grep", saved, "a", "--filter", '{"a": {"$b": 1}}')
    fails(3, "holds no bm25rag index", "grep", "gone", "a")
