"""Unknown words of a query are replaced by known words with a similar spelling."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index, Correction
from bm25rag.columns.column import build_column
from bm25rag.errors import CorruptIndexError
from bm25rag.segments.similar_terms import Spelling
from support.reference import Query

pytestmark = pytest.mark.usefixtures("backend")

TEXTS = [
    "The receptor binds.",
    "A receptor and a preceptor.",
    "Binding of proteins",
    "2021 2022",
    "intercepted",
]


def edits(one: str, other: str) -> int:
    """Count edits by the recursion that defines them: optimal string alignment."""

    @cache
    def count(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        least = min(
            count(i - 1, j) + 1,
            count(i, j - 1) + 1,
            count(i - 1, j - 1) + (one[i - 1] != other[j - 1]),
        )
        if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
            least = min(least, count(i - 2, j - 2) + 1)
        return least

    return count(len(one), len(other))


letters = st.sampled_from(["a", "b", "é", "漢", "\U0001d49e", "\udc80"])
strings = st.text(letters, max_size=9)


@given(words=st.sets(strings, max_size=40), word=st.text(letters, min_size=3, max_size=9))
def test_all_near_terms_are_found_in_any_script(words: set[str], word: str) -> None:
    terms = sorted(words)
    spelling = Spelling(build_column(term.encode("utf-8", "surrogatepass") for term in terms), 7)
    near = {term for term in terms if edits(word, term) <= 1}
    assert sorted(spelling.near(word, 1)) == sorted(near)
    far = {term for term in terms if edits(word, term) <= 2 and term[0] == word[0]}
    assert sorted(spelling.near(word, 2)) == sorted(far)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("receptr", "receptor"),  # a letter left out
        ("recepttor", "receptor"),  # an extra letter
        ("receqtor", "receptor"),  # a different letter
        ("recetpor", "receptor"),  # two swapped
        ("reecptro", "receptor"),  # two edits of a long word
        ("proteni", "protein"),
        ("eecptro", "eecptro"),  # two, and the first letter is among them
        ("bnid", "bind"),
        ("interceptoin", "intercept"),  # as "interceptoins" is stemmed
        ("bdn", "bdn"),  # short
        ("prtien", "prtien"),  # two edits of a word that is not long
        ("2023", "2023"),  # a number
        ("receptor", "receptor"),
        ("unlike", "unlike"),
        ("sing", "sing"),  # although "using" has the stem "use"
    ],
)
def test_an_unknown_word_becomes_the_known_word_that_is_meant(typed: str, meant: str) -> None:
    index = BM25Index.from_texts(TEXTS)
    replaced = {typed: meant} if typed != meant else {}
    assert index.correct([typed, "bind"]) == Correction([meant, "bind"], replaced)
    hits = index.search([typed], correct=True)
    assert [hit.id for hit in hits] == [hit.id for hit in index.search([meant])]
    assert all(hit.corrections == (replaced or None) for hit in hits)


def test_what_is_one_edit_away_comes_before_a_more_frequent_stem_of_what_is() -> None:
    texts = ["A database.", "Data.", "More data."]  # "databs" without its b is stemmed to "data"
    index = BM25Index.from_texts(texts)
    assert index.correct("databse").corrections == {"databs": "databas"}
    texts[0] = "A disk."
    assert BM25Index.from_texts(texts).correct("databse").corrections == {"databs": "data"}


def test_the_most_frequent_word_is_chosen_and_the_first_of_equals() -> None:
    index = BM25Index.from_texts([["coal", "cost"], ["coat", "cost"], ["boat"], ["goat"], ["boat"]])
    assert index.correct(["boaz"]).corrections == {"boaz": "boat"}
    assert index.correct(["xoat"]).corrections == {"xoat": "boat"}
    assert index.correct(["cosl"]).corrections == {"cosl": "cost"}
    assert index.correct(["coa_"]).corrections == {"coa_": "coal"}
    index.delete(["2", "4"])
    assert index.correct(["xoat"]).corrections == {"xoat": "coat"}


@pytest.mark.parametrize("terms", [[b"\xff"], [b"abc\xc3", b"\xa9bcd"]])
def test_terms_that_are_not_utf_8_are_damage(terms: list[bytes]) -> None:
    with pytest.raises(CorruptIndexError, match="is not UTF-8"):
        Spelling(build_column(terms)).near("abcd", 2)


def test_hits_and_batches_say_what_was_corrected() -> None:
    index = BM25Index.from_texts(TEXTS)
    batch = index.search_batch(["the recetpor", "receptors", "zzzz"], correct=True)
    assert batch.corrections == [{"recetpor": "receptor"}, {}, {}]
    assert batch.ids() == [["0", "1"], ["0", "1"], []]
    first, second = batch.hits()[0]
    assert first.corrections == second.corrections == {"recetpor": "receptor"}
    assert first.corrections is not second.corrections
    assert "corrections={'recetpor': 'receptor'}" in repr(first)
    assert [hit.corrections for hit in batch.hits()[1]] == [None, None]
    assert index.search_batch(["the recetpor"]).corrections == []
    assert index.search("recetpor") == []


def test_a_corrected_query_can_be_searched_explained_and_expanded() -> None:
    index = BM25Index.from_texts(TEXTS)
    terms, corrections = index.correct("recetpor, recetpor and proteins")
    assert (terms, corrections) == (["receptor", "receptor", "protein"], {"recetpor": "receptor"})
    assert index.search(terms) == index.search("receptor receptor proteins")
    assert index.explain(terms, "0").terms[0].count == 2
    assert index.expand(terms)["receptor"] > 0


def test_replacements_get_the_weights_of_the_replaced_terms() -> None:
    index = BM25Index.from_texts(TEXTS)
    found = index.correct({"recetpor": 2, "protein": -1.0, "receptor": 0.5, "receptro": 1})
    assert found.terms == {"receptor": 3.5, "protein": -1.0}
    assert found.corrections == {"recetpor": "receptor", "receptro": "receptor"}


@pytest.mark.parametrize("hide", [{"user": "b"}, lambda metadata: metadata["user"] == "b"])
def test_words_of_documents_that_a_filter_rejects_are_neither_known_nor_offered(hide: Any) -> None:
    index = BM25Index.from_texts(
        [["secret", "gamma"], ["secrets", "gamme"], ["gamme"]],
        metadata=[{"user": "a"}, {"user": "b"}, {"user": "b"}],
    )
    assert index.correct(["secret"]).corrections == {}
    assert index.correct(["secret", "gamma", "gammb"], hide).corrections == {
        "secret": "secrets",  # which user b cannot distinguish from a word that nobody has
        "gamma": "gamme",
        "gammb": "gamme",
    }
    assert index.correct(["secre"], filter={"user": "c"}).corrections == {}
    hits = index.search(["gammx"], filter=hide, correct=True)
    assert [hit.id for hit in hits] == ["2", "1"]


def test_any_segments_and_deletions_correct_like_an_index_built_afresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)
    generator = random.Random(4)
    words = ["".join(generator.choices("abc", k=generator.randint(3, 9))) for _ in range(300)]
    index = BM25Index()
    for start in range(0, 300, 50):
        index.add([generator.choices(words[start:], k=4) for _ in range(40)])
    index.delete(index.ids()[::3])
    assert len(index._snapshot.views) > 1
    kept = index.ids()
    afresh = BM25Index.from_texts(index_terms(index), ids=kept)
    asked = [["".join(generator.choices("abc", k=generator.randint(4, 9)))] for _ in range(60)]
    found = [index.correct(query) for query in asked]
    assert found == [afresh.correct(query) for query in asked]
    assert sum(bool(one.corrections) for one in found) > 20
    batch = index.search_batch(asked, correct=True)
    assert batch.corrections == [one.corrections for one in found]
    assert batch.ids() == index.search_batch([one.terms for one in found]).ids()


def index_terms(index: BM25Index) -> list[list[str]]:
    """Read the terms of every document from the score matrix; nothing else matters here."""
    matrix, vocabulary = index.to_scipy().tocsr(), index.vocabulary()
    return [[vocabulary[c] for c in matrix[[row]].nonzero()[1]] for row in range(len(index))]


@pytest.mark.parametrize("query", ["", [], {}, "zzzzzzzz", ["x" * 41], ["", "\udc80bcd"]])
def test_a_query_without_similar_terms_stays_as_it_is(query: Query) -> None:
    for index in (BM25Index(), BM25Index.from_texts(TEXTS)):
        found = index.correct(query)
        assert found.corrections == {}
        assert index.search(found.terms) == index.search(query, correct=True) == []


def test_only_the_first_thirty_unknown_words_of_a_query_are_corrected() -> None:
    index = BM25Index.from_texts(TEXTS)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["receptor" + "".join(some) for some in product(letters, repeat=3)]
    words = [word[:7] + word[8:] for word in words for word in (word, word[:9], word[:-1])]
    found = index.correct([*words, "proteim"])
    assert 0 < len(found.corrections) <= 30
    assert set(found.corrections.values()) == {"receptor"}
    assert found.terms[-1] == "proteim"
    assert [hit.id for hit in index.search(words, correct=True)] == ["0", "1"]


@pytest.mark.parametrize("wrong", [1, None, "yes"])
def test_correct_is_true_or_false(wrong: Any) -> None:
    index = BM25Index.from_texts(TEXTS)
    with pytest.raises(TypeError, match="correct must be True or False, got"):
        index.search("receptor", correct=wrong)
    with pytest.raises(TypeError, match="correct must be True or False, got"):
        index.search_batch(["receptor"], correct=wrong)


@pytest.mark.parametrize(
    ("query", "error", "name"),
    [
        (b"word", TypeError, "query must be a str"),
        ({"word": float("nan")}, ValueError, r"query\['word'\] must be a number"),
    ],
)
def test_wrong_queries_are_named(query: Any, error: type[Exception], name: str) -> None:
    with pytest.raises(error, match=name):
        BM25Index.from_texts(TEXTS).correct(query)
