"""A callable filter is asked about matches that pass the rest, best first, until k are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.filters import And, CallableFilter, on_documents, parse_filter, split

pytestmark = pytest.mark.usefixtures("backend")

WORDS = ["red", "boat", "tea", "sea"]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> BM25Index:
    """Make many documents in several segments, some of them deleted."""
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)
    made = BM25Index()
    for start in range(0, 400, 100):
        numbers = range(start, start + 100)
        made.add(
            [" ".join(WORDS[: 1 + n % 4]) + " x" * (n % 7) for n in numbers],
            metadata=[{"n": n, "even": n % 2 == 0} for n in numbers],
        )
    made.delete(made.ids()[::9])
    assert len(made._snapshot.views) > 1
    return made


class Asked:
    """A filter that passes some documents and records which ones it was asked about."""

    def __init__(self, passes: Callable[[int], object]) -> None:
        self.passes = passes
        self.numbers: list[int] = []

    def __call__(self, metadata: dict[str, Any]) -> object:
        self.numbers.append(metadata["n"])
        return self.passes(metadata["n"])


def ranked(index: BM25Index, query: str) -> list[int]:
    return [hit.metadata["n"] for hit in index.search(query, k=10_000)]


def test_it_is_asked_best_first_until_k_are_found(index: BM25Index) -> None:
    order = ranked(index, "tea")
    ask = Asked(lambda n: n % 3 == 0)
    hits = index.search("tea", k=4, filter=ask)
    expected = [n for n in order if n % 3 == 0][:4]
    assert [hit.metadata["n"] for hit in hits] == expected
    assert ask.numbers == order[: order.index(expected[-1]) + 1]


def test_it_may_be_asked_about_what_is_fetched_for_an_id(index: BM25Index) -> None:
    asked: list[str] = []

    def fetch(id: str) -> tuple[str, str | None]:
        asked.append(id)
        return id, index.get([id])[0].text

    even = parse_filter({"even": True})
    assert even is not None
    short = CallableFilter(lambda pair: len(pair[1]) < 20, fetch)
    hits = index.search("tea", k=1000, filter=And((short, even)))
    expected = index.search("tea", k=1000, filter=even)
    assert [hit.id for hit in hits] == [hit.id for hit in expected if len(hit.text or "") < 20]
    assert asked == [hit.id for hit in expected]
    assert short.key is None


@pytest.mark.parametrize("query", ["unknown", "", "the"])
def test_it_is_not_asked_where_nothing_matches(index: BM25Index, query: str) -> None:
    ask = Asked(lambda n: True)
    assert index.search(query, filter=ask) == []
    assert index.search("red", k=0, filter=ask) == []
    assert ask.numbers == []


@pytest.mark.parametrize("name", ["$and", "$or"])
@pytest.mark.parametrize("turned", [False, True])
def test_it_is_asked_only_where_the_rest_leaves_it_open(
    index: BM25Index, name: str, turned: bool
) -> None:
    ask = Asked(lambda n: n % 3 == 0)
    parts: list[Any] = [ask, {"even": True}]
    hits = index.search("red", k=10_000, filter={name: parts[::-1] if turned else parts})
    order = ranked(index, "red")
    both: dict[str, list[int]] = {
        "$and": [n for n in order if n % 6 == 0],
        "$or": [n for n in order if n % 3 == 0 or n % 2 == 0],
    }
    assert [hit.metadata["n"] for hit in hits] == both[name]
    assert ask.numbers == [n for n in order if (n % 2 == 0) is (name == "$and")]


def test_counting_asks_only_where_the_rest_leaves_it_open_too(index: BM25Index) -> None:
    ask = Asked(lambda n: True)
    count = index.count({"$and": [ask, {"even": True}, {"n": {"$lt": 100}}]})
    assert len(ask.numbers) == count == index.count({"even": True, "n": {"$lt": 100}})


def test_a_batch_asks_about_each_document_once(index: BM25Index) -> None:
    ask = Asked(lambda n: n % 5 == 0)
    queries = ["red", "tea", "unknown", "sea boat"] * 20
    batch = index.search_batch(queries, k=3, filter=ask)
    assert set(Counter(ask.numbers).values()) == {1}
    for query, hits in zip(queries, batch.hits(), strict=True):
        assert [hit.metadata["n"] for hit in hits] == [
            n for n in ranked(index, query) if n % 5 == 0
        ][:3]


@given(
    queries=st.lists(st.lists(st.sampled_from([*WORDS, "x", "unknown"]), max_size=3), max_size=3),
    k=st.integers(0, 500),
    modulus=st.integers(1, 40),
    floor=st.none() | st.floats(0, 1),
    negated=st.booleans(),
)
def test_a_callable_finds_what_an_equal_dict_finds(
    queries: list[list[str]], k: int, modulus: int, floor: float | None, negated: bool
) -> None:
    index = MANY
    wanted = [n for n in range(300) if n % modulus == 0]
    ask: Any = lambda metadata: metadata["n"] % modulus == 0  # noqa: E731
    asked, known = ask, {"n": {"$in": wanted}}
    if negated:
        asked, known = {"$not": ask}, {"n": {"$nin": wanted}}
    found = index.search_batch(queries, k, asked, min_score=floor)
    expected = index.search_batch(queries, k, known, min_score=floor)
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()
    assert found.counts.tolist() == expected.counts.tolist()
    assert index.ids(asked) == index.ids(known)
    assert index.count({"$and": [asked]}) == index.count(known)


def many() -> BM25Index:
    made = BM25Index.from_texts(
        [[*WORDS[: 1 + n % 4], *["x"] * (n % 7)] for n in range(300)],
        metadata=[{"n": n} for n in range(300)],
    )
    made.delete(made.ids()[::7])
    return made


MANY = many()


def test_nothing_that_is_known_is_asked() -> None:
    ids = frozenset(map(str, range(500)))
    known = parse_filter({"$or": [{"a": 1}, {"$not": set(ids)}]})
    assert known is not None
    assert not known.per_document
    assert split(known) == (known, None)


# -- functions that are none of true and false ------------------------------------------------


def generator(metadata: dict[str, Any]) -> Any:
    yield metadata["n"] > 5


async def coroutine(metadata: dict[str, Any]) -> bool:
    return metadata["n"] > 5


async def async_generator(metadata: dict[str, Any]) -> Any:
    yield metadata["n"] > 5


@pytest.mark.parametrize("function", [generator, coroutine, async_generator])
def test_what_returns_no_answer_is_refused_before_anything_is_searched(function: Any) -> None:
    for filter in (function, {"$and": [{"n": 1}, function]}):
        with pytest.raises(TypeError, match="filter: expected a function that returns true or"):
            MANY.search("unknown", filter=filter)


@pytest.mark.parametrize("function", [generator, async_generator, coroutine])
def test_it_is_refused_when_that_shows_only_at_the_call(function: Any) -> None:
    with pytest.raises(TypeError, match="filter: expected a function that returns true or"):
        MANY.search(["red"], filter=lambda metadata: function(metadata))


def test_an_iterator_is_no_answer_either() -> None:
    with pytest.raises(TypeError, match="an iterator"):
        MANY.search(["red"], filter=lambda metadata: map(bool, [0]))


def test_a_warning_tells_nothing_of_documents_that_the_filter_rejects() -> None:
    index = BM25Index.from_texts(["secretword"], metadata=[{"p": 0}])
    for word in ("secretword", "unknown"):
        assert index.search([word, "a b"], filter={"p": 1}) == []  # warnings are errors here


def test_a_filter_that_changes_during_the_search_counts_as_it_was() -> None:
    members = [1, 2, 3]
    filter: dict[str, Any] = {"n": {"$in": members}}

    def change(metadata: dict[str, Any]) -> bool:
        members.clear()
        filter.clear()
        return True

    hits = MANY.search(["red"], filter={"$and": [change, filter]})
    assert sorted(hit.metadata["n"] for hit in hits) == [1, 2, 3]


def test_functions_anywhere_in_a_filter_are_given_what_an_adapter_fetches() -> None:
    """A framework's document in place of the metadata."""
    asked: list[object] = []

    def judge(document: object) -> bool:
        asked.append(document)
        return document != "document b"

    filter = {"$or": [{"n": 1}, {"$and": [judge, {"$not": {"n": {"$gt": 3}}}]}]}
    parsed = parse_filter(filter)
    assert parsed is not None
    index = BM25Index.from_texts(
        ["red"] * 3, ids=["a", "b", "c"], metadata=[{"n": 2}, {"n": 2}, {"n": 1}]
    )
    hits = index.search("red", filter=on_documents(parsed, lambda id: f"document {id}"))
    assert [hit.id for hit in hits] == ["a", "c"]
    assert set(asked) <= {"document a", "document b", "document c"}
    assert "document b" in asked
    plain = parse_filter({"n": 1})
    assert plain is not None
    assert on_documents(plain, str) is plain
