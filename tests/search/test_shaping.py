"""Groups of documents, and scores that fall with age or a number: exact, in every search."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index, Decay, Prior
from bm25rag.decay import decay_dict
from bm25rag.errors import FilterError
from bm25rag.hybrid import HybridSearch
from bm25rag.search import finding
from support.constants import SMALL
from support.holding import accepted, apply, bits, both_in_shards
from support.reference import Reference
from support.strategies import Step, corpora, histories, mixed, parameters

NOW = datetime(2024, 3, 1, tzinfo=UTC)
DECAY = Decay("when", "10d", floor=0.25, now=NOW)
# By label, which the histories give documents; 0 has none.
AGES = {1: 1.0, 2: 0.3}
SHAPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"group": "label"}, {"group": lambda metadata: metadata.get("label")}),
    ({"decay": Prior("label", 2, floor=0.1)}, {"multiplier": lambda m: _prior(m)}),
    (
        {"group": "label", "decay": {"path": "label", "full": 2, "floor": 0.1}},
        {"group": lambda metadata: metadata.get("label"), "multiplier": lambda m: _prior(m)},
    ),
    ({"decay": Decay("label", "1d", missing=0.7)}, {"multiplier": lambda _: 0.7}),
]


def _prior(metadata: dict[str, Any]) -> float:
    return max(0.1, metadata.get("label", 0) / 2)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("constants", [{}, SMALL], ids=["usual", "small"])
@given(
    chosen=parameters(),
    steps=histories,
    query=mixed,
    page=st.tuples(st.integers(0, 4), st.integers(0, 3)),
    per_group=st.integers(1, 3),
    floor=st.sampled_from([None, 0.0, 0.2]),
    label=st.integers(0, 2),
)
def test_any_history_gives_the_references_results(
    constants: dict[str, Any],
    chosen: Any,
    steps: list[Step],
    query: Any,
    page: tuple[int, int],
    per_group: int,
    floor: float | None,
    label: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**constants, "bm25rag.search.shaping._FIRST": 1}.items():
            patch.setattr(name, value)
        index, reference = BM25Index(**chosen), Reference(**chosen)
        for step in steps:
            index = apply(index, reference, step)
        check(index, reference, query, page, per_group, floor, label)


@pytest.mark.usefixtures("backend")
@given(
    shards=st.integers(1, 16),
    texts=corpora,
    chosen=parameters(),
    steps=histories,
    query=mixed,
    page=st.tuples(st.integers(0, 4), st.integers(0, 3)),
    per_group=st.integers(1, 3),
    floor=st.sampled_from([None, 0.0, 0.2]),
    label=st.integers(0, 2),
)
@settings(max_examples=settings().max_examples // 2)
def test_shards_answer_as_one_index(
    shards: int,
    texts: list[list[str]],
    chosen: Any,
    steps: list[Step],
    query: Any,
    page: tuple[int, int],
    per_group: int,
    floor: float | None,
    label: int,
) -> None:
    with both_in_shards(shards, texts, **chosen) as (index, reference):
        for step in steps:
            apply(index, reference, step)
        check(index, reference, query, page, per_group, floor, label)


def check(
    index: BM25Index,
    reference: Reference,
    query: Any,
    page: tuple[int, int],
    per_group: int,
    floor: float | None,
    label: int,
) -> None:
    """Compare what is made of rankings with what the reference makes of them."""
    k, offset = page
    for given_, expected_ in SHAPES:
        groups = {"per_group": per_group} if "group" in given_ else {}
        given: dict[str, Any] = {**given_, **groups, "offset": offset, "min_score": floor}
        expected = {**expected_, **groups, "offset": offset}
        for filter, accept in [(None, None), *accepted(label)]:
            found = bits(index.search(query, k, filter, **given))
            assert found == bits(reference.search(query, k, accept, floor, **expected))
            batch = index.search_batch([query, ["a"]], k, filter, **given)
            assert bits(batch.hits()[0]) == found
            assert batch.counts[0] == len(found)
            all_of = reference.groups(query, accept, floor, **expected_)
            sizes = {hit.id: len(members) for members in all_of for hit in members}
            assert batch.totals()[0] == len(all_of)
            for hit in batch.hits()[0]:
                assert hit.group_size == (sizes[hit.id] if "group" in given else None)


VALUES: list[Any] = [
    "a", 1, 1.0, True, 2**70, ["x", 1], ["x", 1.0], {"y": 1}, date(2024, 1, 1), None, "1", "a",
    {"y": True}, datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), float("nan"),
]  # fmt: skip
GROUPS = ["a", 1, True, 2**70, ["x", 1], {"y": 1}, date(2024, 1, 1), None, "1", {"y": True},
          datetime(2024, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("changed", [False, True])
def test_groups_have_values_that_a_filter_takes_for_equal(changed: bool, tmp_path: Path) -> None:
    metadata = [{"at": {"deep": value}} for value in VALUES] + [{}, {"at": 1}]
    index = BM25Index.from_texts(
        ["red"] * len(metadata), metadata=[{}] * len(metadata) if changed else metadata
    )
    if changed:
        index.update_metadata(index.ids(), metadata)
    index.save(tmp_path / "index")
    for one in (index, BM25Index.open(tmp_path / "index")):
        found = one.search("red", 99, group="at.deep")
        assert one.search_batch(["red"], group="at.deep").totals() == len(found)
        every = one.search("red", 99, group="at.deep", per_group=9)
        assert sorted(int(hit.id) for hit in every) == [*range(len(metadata))]
        for hit in found:
            value = hit.metadata.get("at")
            value = value.get("deep") if isinstance(value, dict) else None
            if value is not None and value == value:
                equal = one.ids({"at.deep": {"$eq": value}})
                assert equal[0] == hit.id
                members = one.search(
                    "red", 1, {"$id": {"$in": equal}}, group="at.deep", per_group=99
                )
                assert [member.id for member in members] == equal
                assert hit.group_size == len(equal)
            else:
                assert hit.group_size == 1
        assert len(found) == len(GROUPS) + 3  # without a value, and not a number: each its own


def test_equal_texts_can_be_one_group_and_texts_that_are_not_stored_are_none() -> None:
    index = BM25Index.from_texts(["red", "red sea", "red", "red sea"], ids=list("abcd"))
    assert [hit.id for hit in index.search("red", group="$text")] == ["a", "b"]
    index.add(["red", "red"], ids=["e", "f"], store_text=False)
    assert [hit.id for hit in index.search("red", group="$text")] == ["a", "e", "f", "b"]


def test_so_many_matches_are_ranked_as_the_groups_need() -> None:
    metadata = [{"source": "one" if n < 500 else f"s{n}"} for n in range(520)]
    index = BM25Index.from_texts([["red"] * (60 - n // 10) for n in range(520)], metadata=metadata)
    found = index.search("red", 4, group="source")
    assert [hit.id for hit in found] == ["0", "500", "501", "502"]
    found = index.search("red", 3, group="source", per_group=2, offset=1)
    assert [hit.id for hit in found] == ["500", "501", "502"]


LANGUAGES: list[Any] = ["en", "de", 1, True]


def of_few_languages() -> BM25Index:
    """Make an index whose documents all have one of four languages."""
    words = [["red"] * (1 + n % 9) + ["sea"] * (n % 5) for n in range(2000)]
    metadata = [{"lang": LANGUAGES[n % 4], "stars": n % 7} for n in range(2000)]
    return BM25Index.from_texts(words, metadata=metadata)


def test_once_all_groups_are_found_no_more_matches_are_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of three languages, a search for ten took a hundred times as long as without groups.

    So it did with several segments, after changes, and where a document has no language.
    """
    index, widths, rank = of_few_languages(), [], finding._PlainMatches.rank

    def ranked(matches: Any, width: int, *given: Any) -> Any:
        widths.append(width)
        return rank(matches, width, *given)

    monkeypatch.setattr(finding._PlainMatches, "rank", ranked)
    assert len(index.search("red", group="lang")) == 4
    assert len(index.search("red", group="lang", per_group=9)) == 36
    index.add(["red"], metadata=[{"stars": 1}])  # a group of its own
    assert len(index.search("red", group="lang")) == 5
    assert len(index.search("red", group="lang", per_group=9)) == 37
    index.update_metadata(["7"], [{"lang": "fr"}])
    assert len(index.search("red", group="lang")) == 6
    assert max(widths) < 2000


@pytest.mark.parametrize("decay", [None, Prior("stars", 6, floor=0.1)])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("restricted", [False, True])
def test_all_groups_are_ranked_as_their_documents_are(
    restricted: bool, several: bool, decay: Prior | None
) -> None:
    """The worst language has one document, far behind those of the others."""
    index = of_few_languages()
    index.delete([str(n) for n in range(1, 2000, 4) if n != 5])
    if several:
        index.add(
            ["red", "sea red red", ["red"] * 9],
            metadata=[{"lang": one} for one in (1, "fr", 2)],
        )
        index.add(["red"], metadata=[{"stars": 3, "lang": None}])
        index.update_metadata(["8"], [{"lang": "it", "stars": 5}])
        assert index.stats()["segments"] > 1
    if restricted:
        index = index.restricted({"stars": {"$gte": 2}})
    query = {"red": 1.0, "sea": -2.0}
    hits = index.search(query, 2000, decay=decay)
    groups = [(repr(hit.metadata.get("lang") or hit.id), hit.id) for hit in hits]
    for k, offset, per_group in [(10, 0, 1), (10, 0, 3), (2, 1, 2), (9, 3, 1), (5, 4, 1)]:
        chosen = [*dict.fromkeys(group for group, _ in groups)][offset : offset + k]
        kept = {one: [id for group, id in groups if group == one][:per_group] for one in chosen}
        options: dict[str, Any] = {"group": "lang", "per_group": per_group, "offset": offset}
        found = index.search(query, k, decay=decay, **options)
        assert [hit.id for hit in found] == [
            id for group, id in groups if id in kept.get(group, ())
        ]


@pytest.mark.parametrize(
    ("value", "multiplier"),
    [
        (NOW - timedelta(days=5), 0.5**0.5),
        ("2024-02-20", 0.5),
        ("2024-02-20T00:00:00+00:00", 0.5),
        (date(2024, 2, 10), 0.25),
        ("1999-01-01", 0.25),
        (datetime(2030, 1, 1), 1.0),
        ("soon", 0.25),
        (1709251200, 0.25),
        (["2024-03-01"], 0.25),
        (None, 0.25),
    ],
)
def test_age_lowers_a_score_to_the_floor_and_explain_shows_by_how_much(
    value: Any, multiplier: float
) -> None:
    index = BM25Index.from_texts(["red", "blue"], metadata=[{"when": value}, {}])
    plain, (hit,) = index.explain("red", "0"), index.search("red", decay=DECAY)
    why = index.explain("red", "0", decay=DECAY)
    assert why.multiplier == multiplier
    assert why.score == hit.score == plain.score * multiplier
    assert ("decay" in str(why)) == (multiplier != 1.0)
    assert index.search("red", min_score=plain.score, decay=DECAY) == [hit][: multiplier == 1.0]


def test_a_negative_score_falls_too() -> None:
    index = BM25Index.from_texts(
        ["a b", "a"], metadata=[{"when": "2000-01-01"}, {}], variant="lucene"
    )
    old, new = index.search({"a": -1.0}, decay=DECAY), index.search({"a": -1.0})
    assert {hit.id: hit.score for hit in old} == {hit.id: hit.score / 0.25 for hit in new}


def test_without_a_now_ages_count_from_the_search() -> None:
    index = BM25Index.from_texts(
        ["red"], metadata=[{"when": datetime.now(UTC) - timedelta(days=1)}]
    )
    (hit,) = index.search("red", decay=Decay("when", timedelta(days=1), floor=0.1))
    assert hit.score == pytest.approx(index.search("red")[0].score / 2, rel=1e-3)


def test_fused_scores_are_lowered_and_grouped_after_fusion() -> None:
    metadata = [
        {"source": n // 2, "when": "2024-03-01" if n % 2 else "2000-01-01"} for n in range(6)
    ]
    texts = [f"red {'sea ' * n}" for n in range(6)]
    index = BM25Index.from_texts(
        texts, metadata=metadata, vectors=[{"red": n + 1.0} for n in range(6)]
    )
    fused = index.search_hybrid("red sea", {"red": 1.0}, 6)
    lowered = {hit.id: hit.score * (1.0 if int(hit.id) % 2 else 0.25) for hit in fused}
    shape: dict[str, Any] = {"decay": DECAY, "group": "source"}
    best = sorted(("1", "3", "5"), key=lambda id: -lowered[id])
    found = index.search_hybrid("red sea", {"red": 1.0}, 2, **shape)
    assert [(hit.id, hit.score) for hit in found] == [(id, lowered[id]) for id in best[:2]]
    search = HybridSearch(index, "red sea", 1, offset=1, **shape)
    search.take([(hit.id, hit.score) for hit in index.vectors.search({"red": 1.0})])
    assert [(hit.id, hit.score) for hit in search.hits()] == [(best[1], lowered[best[1]])]
    by_vectors = index.vectors.search_batch([{"red": 1.0}], 3, **shape).hits()[0]
    assert [hit.id for hit in by_vectors] == ["5", "3", "1"]


@pytest.mark.parametrize(
    "shape",
    [
        {"group": "n"},
        {"group": "n", "per_group": 2},
        {"decay": {"path": "n", "full": 1, "floor": 1}},
    ],
)
def test_equal_fused_scores_stay_in_the_order_of_their_ranks(shape: dict[str, Any]) -> None:
    texts, metadata = ["sea sea", "red red", "red"], [{"n": n} for n in range(3)]
    index = BM25Index.from_texts(texts, metadata=metadata, vectors=[{"a": 1.0}, {}, {}])
    fused = index.search_hybrid("red", {"a": 1.0}, method="rrf")
    assert [hit.id for hit in fused] == ["1", "0", "2"]
    assert fused[0].score == fused[1].score
    assert index.search_hybrid("red", {"a": 1.0}, method="rrf", **shape) == fused
    search = HybridSearch(index, "red", method="rrf", **shape)
    search.take([("0", 1.0)])
    assert search.hits() == fused


MOMENTS = [
    "2024-02-20", "2024-02-20T11:00:00+02:00", "1024-02-20", "0001-01-01", "2031-01-01", "soon", "",
    date(2024, 2, 29), datetime(2024, 2, 29, 1), datetime(1700, 2, 3, tzinfo=UTC), datetime.max,
    datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=3))), None, True, 5, ["2024-02-20"], {},
]  # fmt: skip
NUMBERS = [0, 1, 3, 4.5, 1e300, -2, 2**53 + 1, 2**70, -(2**70), 10**400, -(10**400), True, "3",
           None, float("nan"), float("inf"), -float("inf"), -0.0, [1], {}]  # fmt: skip


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize(
    ("values", "decay"),
    [
        (MOMENTS, DECAY),
        (MOMENTS, Decay("when", "9999999d", floor=0.1, now=NOW, missing=1.0)),
        (MOMENTS, Decay("when", "0.001s", floor=1e-9, now=datetime.max)),
        (MOMENTS, Decay("when", timedelta.max, floor=0.99999999, now=NOW)),
        (NUMBERS, Prior("when", 3, floor=0.01)),
        (NUMBERS, Prior("when", 2.0**80, missing=0.75)),
        (NUMBERS, Prior("when", 2.0**53, floor=1e-9)),
    ],
    ids=lambda value: None if isinstance(value, list) else repr(value)[:40],
)
def test_columns_of_metadata_give_the_multipliers_of_each_value(
    values: list[Any], decay: Decay | Prior, changed: bool, tmp_path: Path
) -> None:
    metadata = [{"when": value} for value in values] + [{}]
    index = BM25Index.from_texts(["red"] * 3, metadata=metadata[:3])
    index.add(["red"] * len(metadata), metadata=[{}] * len(metadata) if changed else metadata)
    index.delete(["0", "4"])
    if changed:
        index.update_metadata(index.ids(k=len(metadata)), metadata)
    (score,) = {hit.score for hit in index.search("red")}
    index.save(tmp_path / "index")
    for one in (index, BM25Index.open(tmp_path / "index")):
        for hit in one.search("red", 99, decay=decay):
            assert hit.score == score * decay.of(hit.metadata.get("when"))


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"group": 1}, TypeError, "group must be a path"),
    ({"group": np.array(["a", "b"])}, TypeError, "group must be a path"),
    ({"group": "$id"}, FilterError, "group: expected a path"),
    ({"group": "a\\b"}, FilterError, "group: expected"),
    ({"group": "a", "per_group": 0}, ValueError, "per_group must be an integer >= 1"),
    ({"per_group": 2}, ValueError, "per_group is for searches with group"),
    ({"decay": "date"}, TypeError, "decay must be a Decay"),
    ({"decay": {"half_life": "1d"}}, ValueError, "path is missing"),
    ({"decay": {"path": "a", "half": 1}}, ValueError, "unknown: 'half'"),
    ({"decay": {"path": "a", "half_life": "30"}}, ValueError, "units are s, min, h, d, w, y"),
    ({"decay": {"path": "a", "half_life": "1e9y"}}, ValueError, "half_life must be"),
    ({"decay": {"path": "a", "half_life": 30}}, TypeError, "half_life must be"),
    ({"decay": {"path": "a", "half_life": timedelta(0)}}, ValueError, "half_life must be"),
    ({"decay": {"path": "a", "half_life": "1d", "floor": 0}}, ValueError, "floor must be"),
    ({"decay": {"path": "a", "half_life": "1d", "now": "soon"}}, ValueError, "now must be"),
    ({"decay": {"path": "a", "half_life": "1d", "missing": 0.1}}, ValueError, "missing must be"),
    ({"decay": {"path": "a", "full": 0}}, ValueError, "full must be"),
    ({"decay": {"path": 1, "full": 1}}, TypeError, "path must be"),
    ({"decay": {"path": "date"}}, ValueError, "half_life or full is missing"),
]


@pytest.mark.parametrize(("given", "kind", "message"), WRONG, ids=lambda value: str(value)[:60])
def test_wrong_arguments_are_errors(
    given: dict[str, Any], kind: type[Exception], message: str
) -> None:
    index = BM25Index.from_texts(["red"])
    for search in (index.search, index.search_batch):
        with pytest.raises(kind, match=message):
            search(["red"], 0, **given)


@pytest.mark.parametrize(
    "decay", [DECAY, Decay("a", "0.5h", missing=1.0), Prior("a", 5, floor=0.1)]
)
def test_it_can_be_sent_and_saved(decay: Decay | Prior) -> None:
    assert pickle.loads(pickle.dumps(decay)) == decay
    made = decay_dict(decay)
    assert made is not None
    again = type(decay)(**made)
    for value in ("2024-02-01", 3, None):
        assert again.of(value) == decay.of(value)
