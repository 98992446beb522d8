"""Queries with parts: what matches must have, must not have, and have in a row."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index, Document, Query
from bm25rag.analysis.word_scanner import ScannedWords, WordScanner, borrow, give_back
from bm25rag.analysis.written import WholeWords, whole_words, written
from bm25rag.errors import CorruptIndexError, IncompleteWarning
from bm25rag.hybrid import HybridSearch
from bm25rag.kernels import backend
from bm25rag.search.phrases import WordsInText
from support.constants import SMALL
from support.environment import INTERPRETED
from support.holding import accepted, as_document, bits, in_shards
from support.reference import Parts, Reference
from support.strategies import LABELS, parameters

pytestmark = pytest.mark.usefixtures("backend")

STOPPED = frozenset("st")
# Of some words "ab" is another spelling, of questions also "2a".
WORDS = st.sampled_from([*"abcdst", "a-b", "ab", "s-a", "sa", "s-t", "2", "2a", "a-2"])
ANALYZER = Analyzer(None, stopwords=STOPPED)
corpora = st.lists(st.lists(WORDS, max_size=9), max_size=24)
part = st.lists(WORDS, min_size=1, max_size=3)
parts = st.lists(part, max_size=2)
weights = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([2.0, 0.5, 0.0, -1.0]))
wordings = st.dictionaries(
    st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    st.sampled_from([1.0, 0.1, 0.7, -0.3, 0.0]),
    max_size=3,
)


@st.composite
def asked(draw: st.DrawFn) -> Parts:
    """Draw a query with parts."""
    kinds = [draw(st.one_of(st.just([]), parts)) for _ in range(4)]
    also = draw(st.just({}) | wordings)
    return Parts(draw(st.lists(WORDS, max_size=3) | weights), *kinds, also=also)


def as_query(query: Parts) -> Query:
    """Return the same as users write it."""
    names = ("must", "must_not", "phrases", "not_phrases")
    given_parts = {name: [" ".join(one) for one in getattr(query, name)] for name in names}
    text = query.text if isinstance(query.text, dict) else " ".join(query.text)
    also = {" ".join(words): weight for words, weight in query.also.items()}
    return Query(text, field=query.field, also=also, **given_parts)


def divided(text: list[str], fields: dict[str, float] | None) -> Any:
    """Return a document, its words among its fields if it has any."""
    names = fields and list(dict.fromkeys([*fields, "text"]))
    size = names and -(-len(text) // len(names))
    return {name: text[n * size :][:size] for n, name in enumerate(names)} if names else text


def joined(document: Any) -> Any:
    """Return the same as users write it."""
    if isinstance(document, dict):
        return {name: " ".join(words) for name, words in document.items()}
    return " ".join(document)


def held(
    texts: list[list[str]], again: list[int], gone: list[int], **chosen: Any
) -> tuple[BM25Index, Reference]:
    """Make an index and its reference by adding, replacing and deleting documents."""
    index, reference = BM25Index(ANALYZER, **chosen), new_reference(**chosen)
    documents, ids, labels = labelled(texts, **chosen)
    half = len(texts) // 2
    for block in (slice(0, half), slice(half, None)):
        index.add([*map(joined, documents[block])], ids[block], labels[block])
        reference.add(documents[block], ids[block], labels[block])
    change(index, reference, documents, again, gone)
    return index, reference


def new_reference(**chosen: Any) -> Reference:
    """Return an empty one with the rules of the analyzer."""
    return Reference(stopped=STOPPED, joins=True, **chosen)


def labelled(
    texts: list[list[str]], **chosen: Any
) -> tuple[list[Any], list[str], list[dict[str, int]]]:
    """Return documents, their ids, and their metadata."""
    documents = [divided(text, chosen.get("fields")) for text in texts]
    numbers = range(len(texts))
    return documents, [*map(str, numbers)], [{"label": LABELS[number % 3]} for number in numbers]


def change(
    index: BM25Index, reference: Reference, documents: list[Any], again: list[int], gone: list[int]
) -> None:
    """Replace and delete documents."""
    for number in again:
        if number < len(documents):
            index.add([joined(documents[-1])], [str(number)], on_duplicate="replace")
            reference.add([documents[-1]], [str(number)], on_duplicate="replace")
    deleted = [str(number) for number in gone if number < len(documents)]
    assert index.delete(deleted) == reference.delete(deleted)


def check(index: BM25Index, reference: Reference, query: Parts, k: int, label: int) -> None:
    """Compare all that takes queries with the reference."""
    own = as_query(query)
    assert bits(index.search(own, len(reference.ids) + 1)) == bits(reference.matches(query))
    assert [float(score).hex() for score in index.scores(own)] == [
        score.hex() for score in reference.scores(query)
    ]
    floor = 0.25
    for given_filter, accept in accepted(label):
        expected = bits(reference.search(query, k, accept))
        assert bits(index.search(own, k, given_filter)) == expected
        found = reference.search(query, 99, accept, floor)
        page = index.search(own, k, given_filter, min_score=floor, offset=1)
        assert bits(page) == bits(found[1 : k + 1])
        batch = index.search_batch([own, "a b", own], k, given_filter)
        assert bits(batch.hits()[0]) == bits(batch.hits()[2]) == expected
        assert bits(batch.hits()[1]) == bits(reference.search(["a", "b"], k, accept))
        assert (batch.rows[0, len(expected) :] == -1).all()
    matching = {hit.id: hit.score for hit in reference.matches(query)}
    for name in reference.ids:
        why = index.explain(own, name)
        assert why.matched == (name in matching)
        assert why.matched <= all(one.passed for one in why.parts)
        assert matching.get(name, why.score).hex() == why.score.hex()
        assert str(why).count("failed") == sum(not one.passed for one in why.parts)


positions = st.lists(st.integers(0, 23), max_size=4)
histories: dict[str, Any] = {
    "texts": corpora,
    "query": asked(),
    "label": st.sampled_from(LABELS),
    "again": positions,
    "gone": positions,
    "k": st.integers(1, 6),
}


def with_context(chosen: dict[str, Any], has_context: bool) -> dict[str, Any]:
    """Return the parameters with a context among the fields, if there are any."""
    fields = chosen.get("fields")
    if not fields or not has_context:
        return chosen
    named = {"context" if name == "notes" else name: own for name, own in fields.items()}
    return chosen | {"fields": named}


@given(chosen=st.builds(with_context, parameters(), st.booleans()), **histories)
def test_matches_have_all_parts_and_the_scores_of_all_terms(
    chosen: dict[str, Any],
    texts: list[list[str]],
    query: Parts,
    label: int,
    again: list[int],
    gone: list[int],
    k: int,
) -> None:
    index, reference = held(texts, again, gone, **chosen)
    check(index, reference, query, k, label)
    if reference.fields:
        field = list(reference.fields)[label % len(reference.fields)]
        if field == "context":  # in which no words are looked for
            query = replace(query, phrases=[], not_phrases=[])
            if not all(map(reference.clauses, [*query.must, *query.must_not])):
                return
        check(index, reference, replace(query, field=field), k, label)


@pytest.fixture(scope="module")
def small_constants() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(name, value)
        patch.setattr("bm25rag.search.parts._FIRST", 1)
        patch.setattr("bm25rag.search.parts._RARE", 1)
        yield


@pytest.mark.usefixtures("small_constants")
@given(**histories)
def test_so_it_is_with_small_constants(
    texts: list[list[str]], query: Parts, label: int, again: list[int], gone: list[int], k: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.search.parts._BYTES", 8)
        check(*held(texts, again, gone), query, k, label)


@given(shards=st.integers(1, 16), chosen=parameters(), **histories)
@settings(max_examples=settings().max_examples // 2)
def test_shards_answer_as_one_index(
    shards: int,
    chosen: dict[str, Any],
    texts: list[list[str]],
    query: Parts,
    label: int,
    again: list[int],
    gone: list[int],
    k: int,
) -> None:
    documents, ids, labels = labelled(texts, **chosen)
    reference = new_reference(**chosen)
    reference.add(documents, ids, labels)
    records = [*map(as_document, ids, map(joined, documents), labels)]
    with in_shards(shards, records, analyzer=ANALYZER, **chosen) as index:
        change(index, reference, documents, again, gone)
        check(index, reference, query, k, label)
        index.commit()
        opened = BM25Index.open(index._live.attachment.folder)  # type: ignore[attr-defined]
        check(opened, reference, query, k, label)


ENGLISH = BM25Index.from_texts(
    [
        "York is old.",
        "New York is a new city.",
        "A new and old city, says York.",
        "To be, or not to be: that is the question.",
        "Be to or: the state of the arts.",
        "Use the .NET framework, or camelCase, and don't look back",
        "東京大学院です。",
        "ภาษาไทยง่าย",
    ],
    ids=["york", "new", "old", "hamlet", "arts", "net", "todai", "thai"],
    vectors=[{"x": 8.0 - n} for n in range(8)],
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Query("city", phrases=["New York"]), ["new"]),
        (Query("York", must=["cities"]), ["new", "old"]),
        (Query("city", must=["york is"], must_not=["new"]), ["york"]),
        (Query("york", must_not=["new york"]), ["york"]),
        (Query("york", not_phrases=["new york"]), ["york", "old"]),
        (Query(phrases=["to be or not to be"]), ["hamlet"]),
        (Query("question arts", must=["the"]), ["hamlet", "arts", "net"]),
        (Query("city", must_not=["is a"]), ["old"]),
        (Query(phrases=["state of the art"]), ["arts"]),
        (Query(phrases=["use .net frameworks"]), []),
        (Query(phrases=["use the net framework"]), ["net"]),
        (Query(phrases=["don't looking"]), ["net"]),
        (Query(phrases=["東京大学"]), ["todai"]),
        (Query(phrases=["大学京"]), []),
        (Query(phrases=["院 です"]), ["todai"]),
        (Query(phrases=["ไทย"]), ["thai"]),
        (Query("york", must_not=["unknown"]), ["york", "new", "old"]),
        (Query("york", must=["unknown"]), []),
        (Query(must_not=["unknown"]), []),
        (Query(["york"], must=[["citi"]]), ["new", "old"]),
        (Query({"york": 2.0}, must=["city"], phrases=[["new", "york"]]), ["new"]),
        (Query("York city"), ["new", "old", "york"]),
    ],
)
def test_parts_are_analysed_as_texts_are(query: Query, found: list[str]) -> None:
    assert sorted(hit.id for hit in ENGLISH.search(query)) == sorted(found)
    if "york" in query.phrases or "york" in query.must:
        assert ENGLISH.search(query)[0].spans


@pytest.mark.parametrize("others", [0, 9])
def test_a_word_of_several_terms_is_no_row_of_words(others: int) -> None:
    texts = ["camelcase camel case", "the camelCase", "camel case"][: 1 + others]
    index = BM25Index.from_texts(texts, analyzer=Analyzer(None, identifiers=True))
    for phrase in ("camelCase", ["camelcase\0camel\0case"]):
        found = index.search(Query({"camel": 1.0, "case": 1.0}, phrases=[phrase]))
        assert [hit.id for hit in found] == (["1"] if others else [])
    rows = index.search(Query(phrases=["camel case"]))
    assert sorted(hit.id for hit in rows) == ["0", "2"][: 1 + others]


WRITTEN = st.lists(
    st.sampled_from(["camelCase", "camel", "case", "camelcase", ".NET", "net", "3.11", "3", "11",
                     "東京大学", "東京", "京", "กรุงเทพ", "e-mail", "don't", "the", "x_y", "y",
                     "email", "E.mail's", "e", "mail", "l'e-mail", "o-brien", "O'Brien", "0",
                     "a.b-c.net", "abc", "type", "2", "type2", "١-a", "É-mail"]),
    max_size=7,
).map(" ".join)  # fmt: skip


@pytest.mark.parametrize(
    "analyzer",
    [
        ENGLISH.analyzer,
        Analyzer(None, identifiers=True),
        Analyzer(None, ngrams=3),
        Analyzer("thai"),
    ],
    ids=repr,
)
@example(texts=["the camelcase camel case", ".NET net"], phrase="camelCase")
@given(texts=st.lists(WRITTEN, min_size=1, max_size=6), phrase=WRITTEN)
def test_one_text_is_looked_into_as_many_are(
    analyzer: Analyzer, texts: list[str], phrase: str
) -> None:
    words = WholeWords.of(written(analyzer, phrase, question=True))
    wanted = WordsInText(words, True).spellings
    each_words = [whole_words(analyzer, text, wanted) for text in texts]
    spelt = [WholeWords.of(written(analyzer, text)) for text in texts]
    assert [own.words for own in each_words] == [own.words for own in spelt]
    scanner = borrow(analyzer)
    if scanner is None or not words.words:
        return  # there is no compiled code that looks into many
    scanned = scanner.scan(texts)
    single = WholeWords([*dict.fromkeys(words.words)])
    for part in (WordsInText(words, True), WordsInText(single, False)):
        each = [part.found_in(own) for own in each_words]
        assert part.found_in_each(scanned).tolist() == each == [*map(part.found_in, spelt)]
    give_back(analyzer, scanner)


SPELT = {
    "hyphen": "Send an e-mail address now",
    "one": "An email address is sent",
    "apart": "the e mail address",
    "mail": "a mail address",
    "att": "AT&T stock",
    "at": "t stock at noon",
    "number": "type 2 diabetes",
    "joined": "type2 diabetes",
    "both": "the e-mail wi-fi",
    "host": "at docs.python.org now",
    "greek": "οδος-α: e-mail address",
    "french": "l'e-mail address",
    "arabic": "١-a type",
}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Query.parse("+e-mail"), "hyphen one apart both greek french"),
        (Query(must=["e-mails"]), "hyphen one apart both greek french"),
        (Query(must=["email"]), "hyphen one both greek french"),
        (Query(must=["e mail"]), "hyphen apart both greek french"),
        (Query("address", must_not=["e-mail"]), "mail"),
        (Query("address", must_not=["email"]), "apart mail"),
        (Query(phrases=["e-mail address"]), "hyphen one apart greek french"),
        (Query(phrases=["email address"]), "hyphen one greek french"),
        (Query("address", not_phrases=["email address"]), "apart mail"),
        (Query(phrases=["e mail wifi"]), "both"),
        (Query(phrases=["the email wi fi"]), "both"),
        (Query(phrases=["mail wi"]), "both"),
        (Query(phrases=["email"]), "hyphen one both greek french"),
        (Query(must=["AT&T"]), "att"),
        (Query("stock", must_not=["AT&T"]), "at"),
        (Query(phrases=["att stock"]), "att"),
        (Query(must=["type 2"]), "number joined"),
        (Query(phrases=["type 2 diabetes"]), "number joined"),
        (Query(must=["type2"]), "joined"),
        (Query(must=["python.org"]), "host"),
        (Query(phrases=["docspythonorg now"]), "host"),
        (Query(phrases=["python.org now"]), "host"),
        (Query(phrases=["l'e-mail"]), "hyphen one both greek french"),
    ],
    ids=repr,
)
def test_words_are_there_as_they_are_written_or_joined(query: Query, found: str) -> None:
    index = BM25Index.from_texts([*SPELT.values()], [*SPELT])
    assert {hit.id for hit in index.search(query, 20)} == {*found.split()}
    for id in SPELT:
        assert index.explain(query, id).matched == (id in found.split())
    one_by_one = [BM25Index.from_texts([text], [id]) for id, text in SPELT.items()]
    assert {hit.id for own in one_by_one for hit in own.search(query)} == {*found.split()}


def test_what_is_lacking_is_the_word_as_it_is_written() -> None:
    index = BM25Index.from_texts([*SPELT.values()], [*SPELT])
    (why,) = index.explain(Query("address", must=["e-mail"]), "mail").parts
    assert str(why) == "must 'e-mail': failed, the document lacks 'e'"
    (why,) = index.explain(Query("stock", must=["AT&T"]), "at").parts
    assert str(why) == "must 'AT&T': failed, the document lacks 'att'"


def test_a_required_word_of_stop_words_of_questions_matches_by_any_spelling() -> None:
    index = BM25Index.from_texts(["what would how", "whathow", "what else", "cats"])
    assert {hit.id for hit in index.search(Query(must=["what-how"]))} == {"0", "1"}


def test_a_phrase_of_many_joined_words_takes_linear_time() -> None:
    """There are two to the power of its words spellings."""
    text, phrase = "a-b " * 3000, "ab " * 200 + "a-b " * 200 + "c"
    index = BM25Index.from_texts([text + "c", text, text + "ab c"])
    found = index.search(Query(phrases=[phrase, "a b " * 199 + "ab", phrase.upper()]))
    assert sorted(hit.id for hit in found) == ["0", "2"]


def test_parts_score_as_text_and_a_mapping_scores_alone() -> None:
    def score(query: Any) -> float:
        return ENGLISH.search(query)[0].score

    parts_score = score(Query("city", must=["york"], phrases=["new york"]))
    assert parts_score == score("city york new york")
    assert score(Query({"citi": 2.0}, must=["york"])) == score({"citi": 2.0})
    assert score(Query(must=[["york", "york"]])) == score(["york", "york"])
    assert ENGLISH.scores(Query(phrases=[["york"] * 2])).tolist() == [
        *ENGLISH.scores(["york", "york"])
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain -- text - C++ e-mail 12\" a+b", Query("plain -- text - C++ e-mail 12\" a+b")),
        ('"new york" +pizza  -pineapple cheap',
         Query("cheap", phrases=["new york"], must=["pizza"], must_not=["pineapple"])),
        ('-"not this" +"but this" “and these”',
         Query(not_phrases=["not this"], phrases=["but this", "and these"])),
        ('+„neu hier“ -«pas ça» „offen «»',
         Query('„offen «»', phrases=["neu hier"], not_phrases=["pas ça"])),
        ('+C++ -.5 "open', Query('"open', must=["C++"], must_not=[".5"])),
        ('"" "!?" +- -+a +" " -...', Query('"" "!?" +- -+a +" " -...')),
        ('say"no"more "yes"', Query('say"no"more', phrases=["yes"])),
        ("", Query("")),
    ],
)  # fmt: skip
def test_signs_are_read_where_words_begin(text: str, expected: Query) -> None:
    parsed = Query.parse(text)
    assert parsed == expected
    assert hash(parsed) == hash(expected)
    assert pickle.loads(pickle.dumps(parsed)) == expected
    assert ENGLISH.search(text) == ENGLISH.search(Query(text))  # a plain text is never parsed


@given(text=st.text(st.sampled_from('ab "+-“”„«»\n'), max_size=40))
def test_nothing_is_refused_as_a_text_to_parse(text: str) -> None:
    assert len(ENGLISH.search(Query.parse(text), 99)) <= len(ENGLISH)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Query(3), TypeError, "text must be a str"),
        (lambda: Query("a", must="b"), TypeError, "must must be a list of texts, got the str 'b'"),
        (lambda: Query("a", phrases=[""]), ValueError, r"phrases\[0\] must not be empty"),
        (lambda: Query("a", phrases=[[]]), ValueError, r"phrases\[0\] must not be empty"),
        (lambda: Query("a", must=["b", 3]), TypeError, r"must\[1\] must be a str, a list"),
        (lambda: Query("a", must_not={"b": 1}), TypeError, "must_not must be an iterable"),
        (lambda: Query("a", timeout=0), ValueError, "timeout must be more than 0"),
        (lambda: Query("a", timeout="1"), TypeError, "timeout must be a number"),
        (lambda: Query.parse(["a"]), TypeError, "text must be a str, got list"),
        (lambda: ENGLISH.search(Query("a", must=["?!"])), ValueError,
         r"query.must\[0\], '\?!', has no words"),
        (lambda: ENGLISH.search_batch([Query("a"), Query(phrases=["a b " * 5000])]), ValueError,
         r"queries\[1\].phrases\[0\] has 10,000 words, at most 1,000"),
        (lambda: ENGLISH.search(Query({"a": float("nan")}, must=["b"])), ValueError, "query.text"),
    ],
    ids=range(12),
)  # fmt: skip
def test_bad_parts_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.slow
def test_long_parts_are_looked_for_at_once() -> None:
    many = 1000 if INTERPRETED else 20_000
    texts = ["net x " * many + "y", ".NET x " * many + "y", "x y"]
    index = BM25Index.from_texts(texts)
    row = "net x " * 499
    assert len(index.search(Query(phrases=[row]))) == 2
    assert index.search(Query(phrases=[row + "net y"])) == []
    words = {"must": ["x " * 25 * many], "must_not": ["c " * 25 * many]}
    assert len(index.search(Query(**words))) == 3


def test_texts_that_are_not_stored_are_asked_for_in_vain() -> None:
    index = BM25Index.from_texts(["new york", "york"], store_text=False)
    assert [hit.id for hit in index.search(Query(must=["new york"], must_not=["old"]))] == ["0"]
    for query in (Query(phrases=["new york"]), Query("york", must=["the"])):
        with pytest.raises(ValueError, match=r"that of the document '.' is not stored"):
            index.search(query)
    with pytest.raises(ValueError, match="store_text=True"):
        index.explain(Query(phrases=["new york"]), "0")
    assert index.search(Query(phrases=["york lore"])) == []


def test_a_damaged_text_is_found_before_it_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.columns.packing.LEAST", 1 << 20)  # small ones may be set still
    BM25Index.from_texts(["new york is new"] * 9).save(tmp_path / "index")
    (path,) = (tmp_path / "index").glob("segment-*")
    data = bytearray(path.read_bytes())
    at = data.index(b"new york is new")
    data[at : at + 4] = b"old "
    path.write_bytes(data)
    index = BM25Index.open(tmp_path / "index")
    with pytest.raises(CorruptIndexError, match=path.name):
        index.search(Query(phrases=["new york"]))


def test_a_count_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    index = BM25Index.from_texts(["x y"] * 500, metadata=[{"n": 1}] * 500)
    query = Query(phrases=["x y"], timeout=60)
    batch, (hit,) = index.search_batch([query], 1), index.search(query, 1, group="n")
    assert (batch.counts.tolist(), batch.cut) == ([1], [])
    monkeypatch.setattr("bm25rag.search.parts.monotonic", partial(next, count(0, 100)))
    with pytest.warns(IncompleteWarning, match="matches may be missing"):
        assert batch.totals()[0] < 500
    with pytest.warns(IncompleteWarning):
        assert hit.group_size == 1  # itself


def test_what_was_found_in_time_is_not_lost_by_looking_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = [1] * 60 + [2] * 10 + [3] * 400
    metadata = [{"n": group} for group in groups]
    index = BM25Index.from_texts(["x y"] * len(groups), metadata=metadata)
    query = Query(phrases=["x y"], timeout=60)
    enough_for_one_look = partial(chain, [0.0, 0.0], repeat(100.0))
    monkeypatch.setattr("bm25rag.search.parts.monotonic", enough_for_one_look().__next__)
    with pytest.warns(IncompleteWarning):
        hits = index.search(query, 3, group="n")
    assert [hit.metadata["n"] for hit in hits] == [1, 2]
    few = index.restricted({"n": 2})
    monkeypatch.setattr("bm25rag.search.parts.monotonic", enough_for_one_look().__next__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # all that there are were looked at
        assert len(few.search(query, 99)) == 10


def test_a_search_that_is_cut_says_so_and_has_the_best() -> None:
    index = BM25Index.from_texts(["x y"] * 50 + ["y x"] * 50)
    query = Query(phrases=["y x"], timeout=1e-9)
    with pytest.warns(IncompleteWarning, match="matches may be missing") as caught:
        batch = index.search_batch(["x", query, query.replaced(timeout=60)], 5)
    assert batch.cut == [1]
    assert batch.counts.tolist() == [5, 0, 5]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(query.replaced(phrases=[], must=["x"]))  # looks at no text


def test_only_texts_of_the_fields_in_question_are_looked_at_and_many_of_them_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if backend.current().scanner is None:
        pytest.skip("texts are looked at one by one without the compiled scanner")
    index = BM25Index(fields={"title": 1.0, "text": 1.0})
    index.add([{"title": "of the", "text": f"the of {number}"} for number in range(5000)])
    scanned: list[Sequence[str]] = []
    scan = WordScanner.scan

    def noting(self: WordScanner, texts: Sequence[str]) -> ScannedWords:
        scanned.append(texts)
        return scan(self, texts)

    monkeypatch.setattr(WordScanner, "scan", noting)
    assert not index.search(Query(phrases=[{"title": "the of"}]))
    assert {*chain.from_iterable(scanned)} == {"of the"}
    assert sum(map(len, scanned)) == 5000
    assert len(scanned) < 15


def test_both_retrievers_find_what_a_query_restricts_them_to() -> None:
    query = Query("city", must_not=["old york"], not_phrases=["of the arts"])
    hybrid = HybridSearch(ENGLISH, query)
    ranking = [(id, 1.0) for id in ENGLISH.ids()]
    assert hybrid.take(ranking)
    expected = {"new", "hamlet", "net", "todai", "thai"}
    assert {hit.id for hit in hybrid.hits()} == expected
    assert {hit.id for hit in ENGLISH.search_hybrid(query, {"x": 1.0})} == expected
    (hit,) = ENGLISH.search_hybrid(query, {"x": 1.0}, 2, {"new", "york"})
    assert hit.id == "new"
    wrong = HybridSearch(ENGLISH, Query("city", must=["yorck"]), correct=True, expand=True)
    assert wrong.take(ranking)
    assert {hit.id for hit in wrong.hits()} == {"york", "new", "old"}


@pytest.mark.parametrize("kind", ["must", "phrases"])
def test_words_beside_a_corrected_one_still_count_as_they_are_written_or_joined(kind: str) -> None:
    texts = [
        "the email received",
        "an e-mail received",
        "e mail received",
        "AT&T company",
        "received",
    ]
    index = BM25Index.from_texts([*texts, "att company", "the company"])
    for part, typed, ids in (
        ("e-mail received", "e-mail receivedx", {"0", "1", "2"}),
        ("AT&T company", "AT&T compnay", {"3", "5"}),
    ):
        for text in (part, typed):
            query = Query("", **{kind: [text]})  # type: ignore[arg-type]
            hits = index.search(pickle.loads(pickle.dumps(query)), correct=True)
            assert {hit.id for hit in hits} == ids
            assert all(bool(hit.corrections) == (text == typed) for hit in hits)


def test_corrections_and_expansions_keep_the_parts() -> None:
    query = Query.parse('"nwe yorck" +ctiy -yorck')
    corrected = ENGLISH.correct(query)
    assert corrected.corrections == {"yorck": "york", "ctiy": "citi"}
    assert corrected.terms == Query(
        {"citi": 1.0, "nwe": 1.0, "york": 1.0},
        must=[["citi"]],
        phrases=[["nwe", "york"]],
        must_not=["yorck"],
    )
    fixed = query.replaced(phrases=["yorck is"])
    (hit,) = ENGLISH.search(fixed, correct=True, k=1)
    assert hit.id == "new"
    assert hit.corrections == {"yorck": "york", "ctiy": "citi"}
    plain = ENGLISH.expand("city york")
    expanded = ENGLISH.expand(Query("city", must=["york"]))
    assert isinstance(plain, dict)
    assert isinstance(expanded, Query)
    assert expanded.must == ("york",)
    assert set(expanded.text) <= set(plain)


@pytest.mark.parametrize("asked", [Query("city yorck"), Query("city", also={"yorck": 0.5})])
def test_a_query_without_parts_stays_a_query_too(asked: Query) -> None:
    terms = ENGLISH.correct(asked).terms
    expanded = ENGLISH.expand(asked)
    assert isinstance(terms, Query)
    assert isinstance(expanded, Query)
    assert "york" in terms.text
    assert (terms.also, expanded.also) == ({}, {})
    assert [hit.id for hit in ENGLISH.search(terms)] == [
        hit.id for hit in ENGLISH.search(asked, correct=True)
    ]


def test_hits_of_queries_with_parts_know_their_words_when_sent() -> None:
    (hit,) = ENGLISH.search(Query("city", phrases=["new york"]))
    sent = pickle.loads(pickle.dumps(hit))
    assert sent.spans == hit.spans
    assert [span.term for span in hit.spans] == ["new", "york", "new", "citi"]


def test_tokenizers_cut_phrases_as_texts() -> None:
    index = BM25Index(Analyzer(tokenizer=lambda text: text.split("|")))
    index.add_documents([Document("1", "a b|c|d"), Document("2", "c|a b|d")])
    assert [hit.id for hit in index.search(Query(phrases=["a b|c"]))] == ["1"]
    assert np.array_equal(index.scores(Query("d", must_not=["c"])), index.scores("d"))


def test_parts_may_be_in_one_field() -> None:
    index = BM25Index(fields={"title": 2.0, "text": 1.0, "notes": 0.0})
    documents = [
        {"title": "New York", "text": "A city.", "notes": "secret"},
        {"title": "Cities", "text": "New York and Rome."},
        {"text": "A new city in York"},
    ]
    index.add(documents, ["york", "cities", "new"])

    def found(query: Query) -> list[str]:
        return sorted(hit.id for hit in index.search(query))

    assert found(Query("city")) == ["cities", "new", "york"]
    assert found(Query("city", field="title")) == ["cities"]
    assert found(Query(phrases=["new york"])) == ["cities", "york"]
    assert found(Query(phrases=["new york"], field="text")) == ["cities"]
    assert found(Query("york", must_not=[{"title": "york"}])) == ["cities", "new"]
    assert found(Query("york", not_phrases=[{"text": "new york", "title": "new york"}])) == ["new"]
    assert found(Query(must=["york", {"title": "cities"}])) == ["cities"]
    assert found(Query(phrases=["york city"])) == []  # no phrase goes on in another field
    assert found(Query(must=["secret"])) == found(Query(must=["city"], field="notes")) == []
    parsed = Query.parse('title:"new york" -text:rome note:this +title:new', fields=index.fields)
    assert parsed.phrases == Query(phrases=[{"title": "new york"}]).phrases
    assert parsed.text == "note:this"
    assert found(parsed) == ["york"]
    assert Query.parse("title:york").text == "title:york"
    assert parsed.as_text() == "note:this new new york"
    corrected = index.correct(Query(must=[{"title": "yorck"}])).terms
    assert found(corrected) == ["york"]
    why = index.explain(Query("rome", must_not=[{"text": "city"}], field="title"), "york")
    assert [one.passed for one in why.parts] == [False, False]
    assert str(why).endswith(
        "must_not 'city' in text: failed, the document has it\n"
        "  text ('rome',) in title: failed, the document lacks 'rome'"
    )
    with pytest.raises(ValueError, match="the index has no field 'body'; it has 'title', 'text'"):
        index.search(Query("city", field="body"))
    with pytest.raises(ValueError, match="the index has no fields, so nothing is in 'title'"):
        ENGLISH.search(Query(must=[{"title": "york"}]))
    with pytest.raises(ValueError, match="the index has no field 'body'"):
        index.explain(Query("city", field="body"), "york")
    with pytest.raises(TypeError, match=r"must\[0\]\['title'\] must be a str, a list"):
        Query(must=[{"title": 3}])
    with pytest.raises(TypeError, match="fields must be names"):
        Query.parse("a", fields=[3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="field must be a str or None"):
        Query("a", field=3)  # type: ignore[arg-type]
