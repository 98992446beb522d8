"""``explain``: the score term by term, and the words that do not count."""

from __future__ import annotations

from pathlib import Path

from bm25rag import Analyzer, BM25Index
from support.commands import fails, ok

DROPPED = "words of the query that do not count:"


def dropped(index: Path | str, query: str, id: str) -> dict[str, str]:
    """Return the words that are said not to count, with the reasons."""
    shown = ok("explain", index, query, id).stdout
    lines = shown.partition(f"{DROPPED}\n")[2].splitlines()
    return dict(line.strip().split(maxsplit=1) for line in lines)


def test_explain_prints_the_explanation(saved: Path) -> None:
    explanation = BM25Index.open(saved).explain("red sea", "boat")
    assert ok("explain", saved, "red sea", "boat").stdout == f"{explanation}\n"
    tuned = BM25Index.open(saved).tune(k1=0.1).explain("red sea", "boat")
    assert ok("explain", saved, "red sea", "boat", "--k1", 0.1).stdout == f"{tuned}\n"
    fails(3, "'plane'", "explain", saved, "red sea", "plane")
    filter_ = '{"year": 1999}'
    fails(3, "'boat'", "explain", saved, "red sea", "boat", "--filter", filter_)


def test_words_that_do_not_count_are_listed_with_the_reason(saved: Path) -> None:
    assert dropped(saved, "How is THE red C++-boat of zebras and a __ sea?", "boat") == {
        "__": "not a word: it has no letter or digit",
        "how": "a stop word of questions",
        "is": "a stop word",
        "the": "a stop word",
        "c++": "in no document of the index",
        "of": "a stop word",
        "zebras": "in no document of the index (as 'zebra')",
        "and": "a stop word",
        "a": "a stop word",
    }


def test_a_stop_word_of_questions_counts_where_nothing_else_is_left(saved: Path) -> None:
    assert dropped(saved, "the how", "boat") == {
        "the": "a stop word",
        "how": "in no document of the index",
    }


def test_a_word_that_is_only_in_other_documents_counts(saved: Path) -> None:
    assert DROPPED not in ok("explain", saved, "bird sky red", "boat").stdout


def test_a_word_of_a_deleted_document_is_in_none(saved: Path) -> None:
    ok("delete", saved, "bird")
    assert dropped(saved, "sky boat", "boat") == {"sky": "in no document of the index"}


def test_a_query_of_nothing_but_stop_words_keeps_them(saved: Path) -> None:
    unknown = "in no document of the index"
    assert dropped(saved, "the and", "boat") == {"the": unknown, "and": unknown}
    assert dropped(saved, "?!", "boat") == {}


def test_words_as_they_could_have_been_written_are_no_words_of_the_query(saved: Path) -> None:
    """A query for "e-boat" is also one for "eboat"."""
    assert dropped(saved, "e-boat", "boat") == {"e": "in no document of the index"}


def test_words_in_other_scripts_are_told_whole() -> None:
    index = BM25Index(Analyzer("hindi"))
    index.add(["हिन्दी में 東京都 है"], ids=["a"])
    index.save("saved")
    assert dropped("saved", "हिन्दी में नमस्ते 東京駅 क", "a") == {
        "में": "a stop word",
        "नमस्ते": f"in no document of the index (as {index.analyzer.terms('नमस्ते')[0]!r})",
        "京駅": "in no document of the index",
        "駅": "in no document of the index",
        "क": "in no document of the index",
    }


def test_a_pattern_of_ones_own_is_shown() -> None:
    index = BM25Index(Analyzer(token_pattern=r"[a-z]{4,}"))
    index.add(["some words"], ids=["a"])
    index.save("saved")
    reason = "too short or otherwise not a word for the token pattern '[a-z]{4,}'"
    assert dropped("saved", "abc words 1234", "a") == {"abc": reason, "1234": reason}
