"""Queries expanded by RM3, compared with a slow implementation of the same model."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.search import expansion
from bm25rag.segments.postings import Postings
from bm25rag.storage.checked_postings import CheckedPostings
from support.holding import apply, bits
from support.reference import Query, Reference
from support.strategies import Step, corpora, histories, mixed, parameters

pytestmark = pytest.mark.usefixtures("backend")

WORDS = ["ab", "cd", "ef", "gh", "ij", "k", "x" * 21]


def rm3(
    reference: Reference, query: Query, docs: int, terms: int, share: float
) -> dict[str, float]:
    hits = reference.search(query, docs)
    most = max(len(reference.documents) / 10, min(docs, len(reference.documents)))

    def best(values: dict[str, float]) -> dict[str, float]:
        return dict(sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))[:terms])

    def unit(values: dict[str, float]) -> dict[str, float]:
        size = sum(map(abs, values.values()))
        return {term: value / size if size else 0.0 for term, value in values.items()}

    model: dict[str, float] = {}
    for hit in hits:
        words = reference.documents[hit.id]
        counts = {
            word: float(words.count(word))
            for word in set(words)
            if 2 <= len(word) <= 20 and reference.df(word) <= most
        }
        for word, value in unit(best(counts)).items() if hit.score > 0 else ():
            model[word] = model.get(word, 0.0) + value * hit.score
    model = unit(best(model))
    original = unit(dict(query) if isinstance(query, dict) else {t: query.count(t) for t in query})
    added = model if share < 1 else {}
    return {
        term: share * original.get(term, 0.0) + (1 - share) * model.get(term, 0.0)
        for term in [*original, *added]
    }


def doubled(texts: list[list[str]]) -> list[list[str]]:
    """Rewrite a corpus in terms that are long enough, except one, which is too long."""
    longer = dict(zip("abcdef", WORDS, strict=False)) | {"f": "x" * 21}
    return [[longer[word] for word in text] for text in texts]


asked = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=5) | st.dictionaries(
    st.sampled_from(WORDS), st.floats(-2, 4).map(lambda value: round(value, 2)), max_size=4
)


@given(
    chosen=parameters(fields=False),
    texts=corpora.map(doubled),
    query=asked,
    docs=st.integers(0, 12),
    terms=st.integers(0, 4),
    share=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_the_expansion_is_that_of_the_paper(
    chosen: dict[str, Any],
    texts: list[list[str]],
    query: Query,
    docs: int,
    terms: int,
    share: float,
) -> None:
    index, reference = BM25Index(**chosen), Reference(**chosen)
    index.add(texts)
    reference.add(texts)
    found = index.expand(query, fb_docs=docs, fb_terms=terms, original_query_weight=share)
    assert found == pytest.approx(rm3(reference, query, docs, terms, share), rel=1e-9, abs=1e-12)


@given(chosen=parameters(), steps=histories, query=mixed)
def test_any_history_expands_as_an_index_built_afresh_to_the_bit(
    chosen: dict[str, Any], steps: list[Step], query: Query
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.search.expansion._SHORTEST", 1)
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 5)
        index, reference = BM25Index(**chosen), Reference(**chosen)
        for step in steps:
            index = apply(index, reference, step)
        survivors = list(reference.documents.values())
        afresh = BM25Index.from_texts(survivors, ids=reference.ids, **chosen)
        found = list(index.expand(query, fb_docs=3).items())
        assert found == list(afresh.expand(query, fb_docs=3).items())
        assert bits(index.search(dict(found))) == bits(afresh.search(dict(found)))


TEXTS = [
    "The e-mail of AT&T's U.S. office: type 2, 3.5 and state_of_the_art; e-mail!",
    "Der Zug nach Köln fährt über Düsseldorf, zügig zu jedem Zug.",
    "北京大学の東京タワー 한국어 문서 ภาษาไทย ab ab Straße ﬁne naïve\ud800",
    "to be or not to be",
    "",
    "getUserName2 user_name sha256",
    "AB ab cd",
]
ANALYZERS = [
    Analyzer(),
    Analyzer("german", also=[(Analyzer(None, ngrams=3), 0.5)]),
    Analyzer("code"),
    Analyzer("turkish", ngrams=2),
    Analyzer("chinese", token_pattern=r"\S+"),
]


def expand_each(index: BM25Index) -> list[list[tuple[str, float]]]:
    wanted = {"fb_docs": 3, "fb_terms": 99, "original_query_weight": 0.1}
    return [list(index.expand(f"{text} {text}", **wanted).items()) for text in TEXTS]


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_stored_texts_have_the_terms_of_the_postings_to_the_bit(
    analyzer: Analyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "_COMMON", 1)
    stored = BM25Index.from_texts(TEXTS, analyzer=analyzer)
    bare = BM25Index.from_texts(TEXTS, analyzer=analyzer, store_text=False)
    expected = expand_each(bare)
    assert all(map(len, expected[:4]))
    monkeypatch.setattr(expansion, "_fill", None)
    assert expand_each(stored) == expected


def test_so_have_the_texts_of_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_COMMON", 1)
    weights = {"title": 0.3, "none": 0.0, "text": 0.7, "context": 0.1}
    stored, bare = BM25Index(fields=weights), BM25Index(fields=weights)
    for title, text in pairwise(TEXTS):
        given = {"title": title, "none": title, "text": text}
        documents = [Document(text, fields=given, context=title[::-1]), Document(title + "!", text)]
        stored.add_documents(documents)
        bare.add_documents(documents, store_text=False)
    expected = expand_each(bare)
    assert all(map(len, expected[:4]))
    monkeypatch.setattr(expansion, "_fill", None)
    assert expand_each(stored) == expected


def test_what_a_tokenizer_returned_is_read_of_the_postings() -> None:
    asked: list[str] = []

    def tokenizer(text: str) -> list[str]:
        asked.append(text)
        return text.split()

    index = BM25Index.from_texts(["wine cheese", "cats"], analyzer=Analyzer(tokenizer=tokenizer))
    asked.clear()
    assert list(index.expand("wine")) == ["wine", "cheese"]
    assert asked == ["wine"]


def test_few_documents_are_looked_for_among_postings_as_they_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 150,000 passages all were turned into numbers of documents, which took 100 ms, not 35."""
    index = BM25Index.from_texts(["wine and cheese", "cats"], store_text=False)
    monkeypatch.setattr(Postings, "between", None)
    assert list(index.expand("wine")) == ["wine", "chees"]


def test_an_expanded_query_finds_documents_without_its_words() -> None:
    index = BM25Index.from_texts(
        ["cars and engines", "engines and pistons", "pistons", "apples"], store_text=False
    )
    assert [hit.id for hit in index.search("cars")] == ["0"]
    expanded = index.expand("cars")
    assert expanded == pytest.approx({"car": 0.9, "engin": 0.1})
    assert [hit.id for hit in index.search(expanded)] == ["0", "1"]


def test_weighted_counts_are_added_in_order_whatever_sum_does() -> None:
    """Since Python 3.12, it compensates for rounding."""
    index = BM25Index(fields={"title": 0.3})
    index.add([{"title": ["ab", "cd", "cd", "ef", "ef", "ef"]}])
    shares = {"ab": 0.16666666666666669, "ef": 0.5000000000000001, "cd": 0.33333333333333337}
    assert index.expand(["ab"], original_query_weight=0.0) == shares


def test_documents_that_a_filter_rejects_are_not_used_for_expansion() -> None:
    texts = ["cars secrets", "cars engines"]
    index = BM25Index.from_texts(texts, metadata=[{"user": "a"}, {"user": "b"}])
    assert set(index.expand("cars", filter={"user": "b"})) == {"car", "engin"}
    assert set(index.expand("cars")) == {"car", "engin", "secret"}


@pytest.mark.parametrize("query", ["", {}, [], "unknown"])
def test_a_query_without_matches_is_not_expanded(query: Query) -> None:
    index = BM25Index.from_texts(["cars", "engines"])
    expanded = index.expand(query)
    assert list(expanded) == (["unknown"] if query else [])
    assert index.search(expanded) == []
    assert BM25Index().expand(query) == expanded


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"fb_docs": -1}, ValueError, "fb_docs must be an integer"),
        ({"fb_docs": True}, TypeError, "fb_docs must be an integer"),
        ({"fb_terms": 2.0}, TypeError, "fb_terms must be an integer"),
        ({"original_query_weight": 1.5}, ValueError, "original_query_weight must be a number"),
        ({"original_query_weight": np.nan}, ValueError, "original_query_weight must be a number"),
        ({"query": {"a": np.nan}}, ValueError, r"query\['a'\] must be a number"),
        ({"query": b"cars"}, TypeError, "query must be a str"),
        ({"filter": 3}, TypeError, "filter"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: dict[str, Any], error: type[Exception], name: str
) -> None:
    with pytest.raises(error, match=name):
        BM25Index.from_texts(["cars"]).expand(**({"query": "cars"} | arguments))


def test_expanding_checks_of_an_opened_index_only_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["ab cd ef", "ab gh", "cd ij"]
    BM25Index.from_texts(texts).save(tmp_path / "index")
    index = BM25Index.open(tmp_path / "index")
    monkeypatch.setattr(CheckedPostings, "check_all", pytest.fail)
    assert index.expand("ab", fb_docs=1) == BM25Index.from_texts(texts).expand("ab", fb_docs=1)
