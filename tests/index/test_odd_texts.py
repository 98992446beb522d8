"""Odd and huge texts are handled like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from bm25rag import BM25Index
from support.environment import INTERPRETED

pytestmark = pytest.mark.usefixtures("backend")

not_interpreted = pytest.mark.skipif(
    INTERPRETED, reason="takes minutes with the kernels interpreted"
)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff red\ud834", "\ud83d\ude00 red"])
def test_lone_surrogates_are_text_like_any_other(text: str, tmp_path: Path) -> None:
    index = BM25Index.from_texts([text, "red"], ids=["odd", "red"])
    assert index.get(["odd"])[0].text == text
    index.search(text)
    index.save(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index")
    assert opened.get(["odd"])[0].text == text
    assert [hit.id for hit in opened.search("red")] == [hit.id for hit in index.search("red")]


def test_lone_surrogates_in_ids_and_metadata_come_back_or_are_refused(tmp_path: Path) -> None:
    index = BM25Index.from_texts(["red"], ids=["\ud800"], metadata=[{"\udc00": "\udfff"}])
    index.save(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index")
    assert opened.ids() == ["\ud800"]
    assert opened.get(["\ud800"])[0].metadata == {"\udc00": "\udfff"}
    assert opened.search("red")[0].id == "\ud800"


def test_two_surrogates_that_would_make_a_pair_stay_two_in_metadata() -> None:
    odd = {"\ud83d" + "\ude00": "\ud83d" + "\ude00"}
    index = BM25Index.from_texts(["red"], metadata=[odd])
    assert index.search("red")[0].metadata == odd


def test_nul_characters_are_kept(tmp_path: Path) -> None:
    index = BM25Index.from_texts(["re\x00d green\x00"], ids=["\x00"], metadata=[{"\x00": "\x00"}])
    index.save(tmp_path / "index")
    for each in (index, BM25Index.open(tmp_path / "index")):
        assert each.search("green")[0].text == "re\x00d green\x00"
        assert each.ids() == ["\x00"]


@not_interpreted
def test_a_document_of_ten_megabytes() -> None:
    text = "lorem ipsum dolor sit amet consectetur " * 270_000
    assert len(text) > 10_000_000
    index = BM25Index.from_texts([text, "lorem"])
    assert {hit.id for hit in index.search("lorem")} == {"0", "1"}
    assert index.explain("ipsum", "0").terms[0].tf == 270_000


def test_a_word_of_a_million_letters() -> None:
    word = "x" * (20_000 if INTERPRETED else 1_000_000)
    index = BM25Index.from_texts([f"red {word}", "red"])
    assert [hit.id for hit in index.search(word)] == ["0"]


@pytest.mark.untraced
@not_interpreted
def test_a_query_of_a_million_terms() -> None:
    index = BM25Index.from_texts(["red apple", "green tea", "red boat"])
    distinct = " ".join(f"w{number}" for number in range(100_000))
    hits = index.search(distinct + " red" * 900_000)
    assert [hit.id for hit in hits] == ["0", "2"]
    assert hits[0].score == pytest.approx(900_000 * index.search("red")[0].score)
    assert index.search(["red"] * 1_000_000)[0].id == "0"
