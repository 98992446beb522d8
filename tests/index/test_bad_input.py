"""Wrong input gives the right answer or one clear exception, and changes nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index, Document
from bm25rag.errors import BM25Error, MetadataError

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture
def index() -> BM25Index:
    return BM25Index.from_texts(
        ["red apple", "green tea", "red boat"], metadata=[{"n": 0}, {"n": 1}, {"n": 2}]
    )


def state(index: BM25Index) -> tuple[Any, ...]:
    """Return everything about an index that can be seen from outside."""
    documents = index.get(index.ids())
    return (
        [(d.id, d.text, d.metadata, d.payload) for d in documents],
        index.vocabulary(),
        index.document_frequencies().tolist(),
        index.scores("red green tea boat apple").tobytes(),
        [(hit.id, hit.score) for hit in index.search("red green")],
        index.stats(),
    )


def refuses(
    index: BM25Index, error: type[Exception], words: str, call: Callable[[], object]
) -> None:
    """Expect an error with these words, and an unchanged index, its id counter included."""
    before = state(index)
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.type in (TypeError, ValueError) or issubclass(caught.type, BM25Error)
    assert state(index) == before
    assert index.add(["one more"]) == ["3"]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("texts", lambda index, one, _: index.add(one)),
        ("queries", lambda index, one, _: index.search_batch(one)),
        ("ids", lambda index, one, _: index.get(one)),
        ("variant", lambda index, _, two: index.tune(variant=two)),
        ("per_group", lambda index, _, two: index.search("red", per_group=two)),
        ("per_group", lambda index, *_: index.search("red", per_group=True)),
    ],
)
def test_arrays_where_none_belong_are_refused_by_the_name(
    index: BM25Index, name: str, call: Callable[..., object]
) -> None:
    one, two = np.array("red"), np.array([1, 2])
    refuses(index, TypeError, f"^{name} must be", lambda: call(index, one, two))


# -- texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "texts", ["bare", b"bare", bytearray(b"bare"), None, 3, 3.5, ...], ids=repr
)
def test_texts_that_are_no_iterable_of_texts(index: BM25Index, texts: Any) -> None:
    refuses(index, TypeError, "texts", lambda: index.add(texts))


@pytest.mark.parametrize(
    "bad",
    [None, b"bytes", 3, 3.5, True, np.str_, ["a", 3], ["a", None], [b"a"], {"a": 1}, {"a"},
     math.nan, [["a"]]],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 2])
def test_a_text_of_a_wrong_type_is_named_by_its_place(
    index: BM25Index, bad: Any, place: int
) -> None:
    texts: list[Any] = ["fine", "fine"]
    texts.insert(place, bad)
    refuses(index, TypeError, rf"texts\[{place}\]", lambda: index.add(texts))


def test_an_iterable_that_fails_midway_adds_nothing(index: BM25Index) -> None:
    def texts(count: int) -> Iterator[str]:
        for number in range(count):
            yield f"word{number} red"
        message = "the source went away"
        raise ValueError(message)

    refuses(index, ValueError, "the source went away", lambda: index.add(texts(5)))
    index = BM25Index.from_texts(["red apple", "green tea", "red boat"])
    refuses(index, ValueError, "the source went away", lambda: index.add(texts(5000)))


# -- arguments that go with texts ----------------------------------------------------------------


@pytest.mark.parametrize(
    "ids", ["ab", b"ab", 3, [1, 2.0], ["a", True], ["a", None], ["a", b"b"]], ids=repr
)
def test_ids_of_a_wrong_type(index: BM25Index, ids: Any) -> None:
    refuses(index, TypeError, "ids", lambda: index.add(["x", "y"], ids=ids))


@pytest.mark.parametrize("name", ["ids", "metadata", "payloads"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_mismatched_lengths(index: BM25Index, name: str, count: int) -> None:
    values = {"ids": ["a", "b", "c"], "metadata": [{}, {}, {}], "payloads": [b"", b"", b""]}
    given: dict[str, Any] = {name: values[name][:count]}
    refuses(index, ValueError, name, lambda: index.add(["x", "y"], **given))
    fresh = BM25Index.from_texts(["red apple", "green tea", "red boat"])
    given = {name: iter(values[name][:count])}
    refuses(fresh, ValueError, name, lambda: fresh.add(iter(["x", "y"]), **given))


@pytest.mark.parametrize("metadata", [{"a": 1}, "ab", [1, 2], [{}, 3], [{}, "x"], 3], ids=repr)
def test_metadata_that_is_no_dict_per_document(index: BM25Index, metadata: Any) -> None:
    refuses(index, TypeError, "metadata", lambda: index.add(["x", "y"], metadata=metadata))


@pytest.mark.parametrize("payloads", [b"ab", "ab", ["x", "y"], [b"x", 3], 3], ids=repr)
def test_payloads_of_a_wrong_type(index: BM25Index, payloads: Any) -> None:
    refuses(index, TypeError, "payloads", lambda: index.add(["x", "y"], payloads=payloads))


@pytest.mark.parametrize(("policy", "error"), [("ignore", ValueError), (None, TypeError)])
def test_an_unknown_policy_for_duplicates(index: BM25Index, policy: Any, error: Any) -> None:
    refuses(index, error, "on_duplicate", lambda: index.add(["x"], on_duplicate=policy))


@pytest.mark.parametrize("method", ["add", "add_documents"])
@pytest.mark.parametrize("name", ["store_text", "progress"])
@pytest.mark.parametrize("flag", [1, None, np.array([True, False])], ids=["1", "None", "array"])
def test_a_flag_of_an_addition(index: BM25Index, method: str, name: str, flag: Any) -> None:
    given = {"add": ["x"], "add_documents": [Document("a", "x")]}[method]
    call = getattr(index, method)
    refuses(index, TypeError, f"{name} must be True or", lambda: call(given, **{name: flag}))


@pytest.mark.parametrize("method", ["delete", "get"])
@pytest.mark.parametrize("ids", ["0", b"0", 0, None, [0.0], [None]], ids=repr)
def test_ids_to_delete_or_get_of_a_wrong_type(index: BM25Index, method: str, ids: Any) -> None:
    refuses(index, TypeError, "ids", lambda: getattr(index, method)(ids))


def test_updating_metadata_with_wrong_input(index: BM25Index) -> None:
    before = state(index)
    wrong: list[tuple[Any, Any, type[Exception], str]] = [
        ("0", [{}], TypeError, "ids"),
        (["0"], {"a": 1}, TypeError, "metadata"),
        (["0", "1"], [{}], ValueError, "metadata"),
        (["0"], [{}, {}], ValueError, "metadata"),
        (["0", "1"], [{"fine": 1}, {"bad": {1}}], MetadataError, r"metadata\[1\].*'1'.*'bad'"),
    ]
    for ids, metadata, error, words in wrong:
        with pytest.raises(error, match=words):
            index.update_metadata(ids, metadata)
        assert state(index) == before


# -- metadata values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [{1}, frozenset({1}), b"x", 1j, np.complex128(1), np.array([1j]), np.timedelta64(1, "ns"),
     np.datetime64(20_000, "Y"), Fraction(1, 2), time(1), timedelta(1), ..., range(3),
     datetime(2024, 1, 1, tzinfo=timezone(timedelta(microseconds=500)))],
    ids=repr,
)  # fmt: skip
def test_a_value_that_cannot_be_stored_is_named_by_document_and_key(
    index: BM25Index, value: Any
) -> None:
    metadata: list[dict[str, Any]] = [{"fine": 1}, {"outer": [{"inner": value}]}]
    ids = ["good", "culprit"]
    words = r"(?s)metadata\[1\].*culprit.*outer.0.inner"
    refuses(index, MetadataError, words, lambda: index.add(["x", "y"], ids, metadata))


@pytest.mark.parametrize("key", [1, None, True, (1,), b"k", 1.5, np.int64(1)], ids=repr)
def test_a_key_that_is_no_str_is_refused(index: BM25Index, key: Any) -> None:
    metadata = [{"outer": {key: 1}}]
    words = "(?s)culprit.*outer"
    refuses(index, MetadataError, words, lambda: index.add(["x"], ["culprit"], metadata))


def test_metadata_that_contains_itself_is_refused(index: BM25Index) -> None:
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    refuses(index, MetadataError, "loop", lambda: index.add(["x"], metadata=[loop]))


def test_metadata_nested_very_deeply_is_refused_or_comes_back() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    index = BM25Index()
    with pytest.raises(MetadataError, match="deep"):
        index.add(["x"], metadata=[{"deep": deep}])
    assert index.ids() == []


def test_dates_and_huge_integers_are_fine() -> None:
    values = {"d": date(2024, 1, 1), "t": datetime(2024, 1, 1, 1), "i": 10**4000, "n": -(2**64)}
    index = BM25Index.from_texts(["red"], metadata=[values])
    assert index.search("red")[0].metadata == values


def test_integers_beyond_pythons_own_limit_of_digits_come_back_or_are_refused() -> None:
    index = BM25Index()
    try:
        index.add(["red"], metadata=[{"i": 10**5000}])
    except MetadataError:
        assert len(index) == 0
    else:
        assert index.search("red")[0].metadata == {"i": 10**5000}


# -- searching ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [True, False, 1.0, 3.7, "3", None, [3], np.float32(3), np.True_])
def test_a_k_that_is_no_integer(index: BM25Index, k: Any) -> None:
    refuses(index, TypeError, r"\bk\b", lambda: index.search("red", k=k))
    with pytest.raises(TypeError, match=r"\bk\b"):
        index.search_batch(["red"], k=k)


@pytest.mark.parametrize("k", [-1, -(10**30), np.int64(-3)])
def test_a_negative_k(index: BM25Index, k: Any) -> None:
    refuses(index, ValueError, r"\bk\b", lambda: index.search("red", k=k))
    with pytest.raises(ValueError, match=r"\bk\b"):
        index.search_batch(["red"], k=k)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 10**30, np.int8(2), np.uint64(2**64 - 1)])
def test_every_k_that_is_an_integer_from_zero(index: BM25Index, k: Any) -> None:
    assert [hit.id for hit in index.search("red", k=k)] == ["0", "2"][: int(k)]
    assert index.search_batch(["red"], k=k).ids() == [["0", "2"][: int(k)]]


@pytest.mark.parametrize("query", [None, b"red", 3, ["red", 3], {"red": "1"}, [b"red"]], ids=repr)
def test_a_query_of_a_wrong_type(index: BM25Index, query: Any) -> None:
    refuses(index, TypeError, "query", lambda: index.search(query))
    for call in (index.scores, lambda query: index.explain(query, "0")):
        with pytest.raises(TypeError, match="query"):
            call(query)
    with pytest.raises(TypeError, match=r"queries\[1\]"):
        index.search_batch(["red", query])


@pytest.mark.parametrize("queries", ["red", b"red", None, 3], ids=repr)
def test_queries_of_a_wrong_type(index: BM25Index, queries: Any) -> None:
    refuses(index, TypeError, "queries", lambda: index.search_batch(queries))


@pytest.mark.parametrize(
    ("minimum", "error"), [("1", TypeError), (True, TypeError), ([], TypeError),
                           (math.nan, ValueError)]
)  # fmt: skip
def test_a_min_score_of_a_wrong_kind(index: BM25Index, minimum: Any, error: Any) -> None:
    refuses(index, error, "min_score", lambda: index.search("red", min_score=minimum))
    with pytest.raises(error, match="min_score"):
        index.search_batch(["red"], min_score=minimum)


@pytest.mark.parametrize(
    ("threads", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError),
                           ("2", TypeError)]
)  # fmt: skip
def test_threads_of_a_wrong_kind(index: BM25Index, threads: Any, error: Any) -> None:
    unread = map(pytest.fail, ["queries are read before threads are checked"])
    refuses(index, error, "threads", lambda: index.search_batch(unread, threads=threads))
    with pytest.raises(error, match="threads"):
        index.vectors.search_batch(unread, threads=threads)


@pytest.mark.parametrize("given", ["0", 3, ["0"], {"n": {"$bad": 1}}, {"$and": 3}, {1: 2}, {1, 2}])
def test_a_malformed_filter_is_an_error_wherever_it_is_given(index: BM25Index, given: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: index.search("red", filter=given),
        lambda: index.search("unknown", filter=given),
        lambda: index.search("red", k=0, filter=given),
        lambda: index.search_batch(["red"], filter=given),
        lambda: index.search_batch([], filter=given),
        lambda: index.explain("red", "0", filter=given),
        lambda: index.get(["0"], filter=given),
        lambda: index.ids(given),
        lambda: index.count(given),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError), match="filter"):
            call()


def test_an_error_in_a_callable_filter_comes_through(index: BM25Index) -> None:
    with pytest.raises(KeyError, match="missing"):
        index.search("red", filter=lambda metadata: metadata["missing"])


@pytest.mark.parametrize("name", [0.0, None, b"0"])
def test_an_id_to_explain_of_a_wrong_type(index: BM25Index, name: Any) -> None:
    refuses(index, TypeError, r"\bid\b", lambda: index.explain("red", name))


# -- parameters -----------------------------------------------------------------------------------

WRONG_PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    *(({name: bad}, ValueError, rf"\b{name}\b")
      for name, bad in itertools.product(("k1", "b"), (math.nan, math.inf, -math.inf, -0.1))),
    *(({name: bad}, TypeError, rf"\b{name}\b")
      for name, bad in itertools.product(("k1", "b"), ("1", True, 1j, [1]))),
    ({"b": 1.0000001}, ValueError, r"\bb\b"),
    ({"k1": 1.1e30}, ValueError, r"\bk1\b"),
    *(({"variant": "bm25+", "delta": bad}, ValueError, "delta")
      for bad in (math.nan, math.inf, -1, 1.1e30)),
    *(({"variant": "bm25l", "delta": bad}, TypeError, "delta") for bad in ("1", True)),
    *(({"variant": name, "delta": 1.0}, ValueError, "delta")
      for name in ("lucene", "robertson", "atire", "tfidf")),
    *(({"variant": "tfldp", "delta": bad}, ValueError, "delta") for bad in (0, 0.3, 1 / math.e)),
    ({"variant": "bm26"}, ValueError, "(?s)lucene.*bm26"),
    ({"variant": 3}, TypeError, "variant"),
    ({"delta_on": "none"}, ValueError, "(?s)delta_on.*matched.*none"),
    ({"delta_on": 3}, TypeError, "delta_on"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "error", "words"), WRONG_PARAMETERS, ids=repr)
def test_wrong_parameters(
    index: BM25Index, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        BM25Index(**given)
    refuses(index, error, words, lambda: index.tune(**given))


@pytest.mark.parametrize("analyzer", ["english", str.split, 3])
def test_an_analyzer_that_is_none(analyzer: Any) -> None:
    with pytest.raises(TypeError, match="analyzer"):
        BM25Index(analyzer=analyzer)


def test_whole_numbers_and_numpy_numbers_are_parameters_too() -> None:
    index = BM25Index(k1=2, b=np.float32(0.5), variant="bm25l", delta=np.int64(1))
    assert [type(value) for value in (index.k1, index.b, index.delta)] == [float, float, float]


# -- hints ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda index: BM25Index(analyzer="german"), r"write Analyzer\('german'\)"),
        (lambda index: index.add([Path("a.txt")]), r"path\.read_text\(\)"),
        (lambda index: index.add([{"text": "red"}]), "take its text out first"),
    ],
)
def test_what_is_often_mistaken_is_refused_with_the_way_out(
    index: BM25Index, call: Callable[[Any], object], hint: str
) -> None:
    refuses(index, TypeError, hint, lambda: call(index))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("k", lambda index, text: index.search("red", k=text)),
        ("min_score", lambda index, text: index.search("red", min_score=text)),
        ("on_duplicate", lambda index, text: index.add(["red"], on_duplicate=text)),
        ("analyzer", lambda index, text: BM25Index(text)),
    ],
)
def test_a_whole_text_in_the_wrong_place_is_not_the_message(
    index: BM25Index, name: str, call: Callable[..., object]
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{name} must be ") as caught:
        call(index, "red tea " * 1000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("wrong", ["no", 0, None, [], np.array([True, False])], ids=repr)
def test_what_is_neither_true_nor_false_opens_and_overwrites_nothing(
    index: BM25Index, tmp_path: Path, wrong: Any
) -> None:
    index.save(tmp_path)
    with pytest.raises(TypeError, match="overwrite must be True or False"):
        BM25Index().save(tmp_path, overwrite=wrong)
    for name in ("mmap", "verify", "untrusted", "offline"):
        with pytest.raises(TypeError, match=f"{name} must be True or False"):
            BM25Index.open(tmp_path, **{name: wrong})
    assert len(BM25Index.open(tmp_path, verify=np.True_, mmap=np.False_)) == 3  # type: ignore[arg-type]


# -- a list where a text was meant -----------------------------------------------------------------


def test_a_text_in_a_list_that_finds_nothing_is_warned_of(index: BM25Index) -> None:
    with pytest.warns(UserWarning, match="pass the text, 'dates compared'") as caught:
        assert index.search(["dates compared"]) == []
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="pass the text, 'red apple'") as caught:
        index.search_batch(["red", ["red apple"]])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("query", ["dates compared", ["unknown"], ["red", "red apple"], [], {}])
def test_other_queries_that_find_nothing_are_not_warned_of(index: BM25Index, query: Any) -> None:
    index.search(query, filter={"n": 99})
