"""A restricted view: with whatever arguments, it is as if the other documents were not there."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import FilterError, FilterWarning, ReadOnlyError, StorageError
from bm25rag.filters import parse_filter
from bm25rag.filters.nodes import Condition
from bm25rag.filters.operators import Exists, Operator
from bm25rag.hybrid import HybridSearch
from bm25rag.vectors import Vectors
from support.constants import SMALL
from support.holding import accepted, apply, bits, both_in_shards
from support.reference import Reference
from support.strategies import Step, corpora, histories, mixed, parameters

MINE, OTHERS = {"tenant": "me"}, {"tenant": "other"}
QUERY = ["red", "boat", "secret"]
IDS = ["m0", "o0", "m3", "o5", "gone", "unknown"]
WIDENING: list[Any] = [
    None,
    {},
    OTHERS,
    {"tenant": {"$exists": True}},
    {"$or": [MINE, OTHERS]},
    {"$not": MINE},
    {"$id": {"$in": IDS}},
    set(IDS),
    lambda metadata: True,
    {"$strict": {"hidden.field": 1}},
]


def written(index: BM25Index) -> BM25Index:
    """Add documents of two tenants, in several segments, some deleted, moved or changed since."""
    for first in range(0, 12, 4):
        numbers = range(first, first + 4)
        texts = [text for n in numbers for text in (f"red boat tea{n} blue", f"secret red code{n}")]
        metadata = [
            one for n in numbers for one in ({"n": n, **MINE}, {"hidden": {"field": n}, **OTHERS})
        ]
        vectors = [
            one for n in numbers for one in ({"boat": 1.5, f"t{n}": 1.0}, {"secret": 2.0, "z": 1.0})
        ]
        ids = [id for n in numbers for id in (f"m{n}", f"o{n}")]
        index.add(texts, ids, metadata, vectors=vectors)
    index.delete(["m2", "o3"])
    index.update_metadata(["m5", "o5"], [{"n": 5, **OTHERS}, {"n": 50, **MINE}])
    return index


@pytest.fixture(scope="module", params=["memory", "writer", "reader", "sharded"])
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BM25Index]:
    """Yield an index of every kind that can be read."""
    folder = tmp_path_factory.mktemp("index") / "index"
    if request.param == "memory":
        yield written(BM25Index())
    elif request.param == "writer":
        with BM25Index.open(folder, mode="a") as index:
            yield written(index)
    elif request.param == "reader":
        written(BM25Index()).save(folder)
        yield BM25Index.open(folder)
    else:
        BM25Index.build([], folder, shards=3)
        with BM25Index.open(folder, mode="w") as index:
            written(index)
        yield BM25Index.open(folder)


def alone(index: BM25Index, filter: Any) -> BM25Index:
    """Return an index of the documents that pass and no others, built anew."""
    documents = index.get(index.ids(filter))
    for document, vector in zip(documents, index.vectors.get(index.ids(filter)), strict=True):
        document.vector = vector or None
    made = BM25Index(index.analyzer, **parameters_of(index))
    made.add_documents(documents)
    return made


def parameters_of(index: BM25Index) -> dict[str, Any]:
    """Return the parameters of an index."""
    delta = {} if index.delta is None else {"delta": index.delta}
    return {name: getattr(index, name) for name in ("variant", "k1", "b", "delta_on")} | delta


def dense(matrix: Any, terms: list[str]) -> Any:
    """Return a sparse matrix as lists, with its terms."""
    return terms, matrix.toarray().tolist()


def batch_of(batch: Any) -> Any:
    """Return all that a batch says."""
    return batch.rows.tolist(), batch.scores.tolist(), batch.ids(), list(map(bits, batch.hits()))


def hybrid(index: BM25Index, filter: Any) -> Any:
    """Fuse what the index finds with what another retriever does, which knows all documents."""
    search = HybridSearch(index, QUERY, 5, filter, on_unknown="skip")
    search.take([(id, 1.0) for id in IDS])
    return bits(search.hits())


def documents(index: BM25Index) -> Any:
    """Return all documents as they are stored."""
    return [(one.id, one.text, one.metadata) for one in index.get(index.ids())]


# Whatever tells of documents: asked with every filter, and compared with an index of ours alone.
FILTERED: dict[str, Callable[[BM25Index, Any], Any]] = {
    "search": lambda i, f: bits(i.search(QUERY, 50, f, correct=True, offset=1)),
    "search_batch": lambda i, f: batch_of(i.search_batch([QUERY, ["secrt"]], 50, f, correct=True)),
    "search_hybrid": lambda i, f: bits(i.search_hybrid(QUERY, {"boat": 1.0, "secret": 9.0}, 50, f)),
    "search_fused": lambda i, f: bits(i.search_fused([QUERY, "boats"], 50, f)),
    "explain": lambda i, f: [str(i.explain(QUERY, id, f)) for id in IDS[::2][:1]],
    "expand": lambda i, f: i.expand(QUERY, f),
    "correct": lambda i, f: i.correct(["secre", "boats", "code1x", "tea10x"], f),
    "get": lambda i, f: [one.id for one in i.get(IDS, f)],
    "count": lambda i, f: i.count(f),
    "ids": lambda i, f: (i.ids(f), i.ids(f, k=2, offset=1)),
    "HybridSearch": hybrid,
    "vectors.search": lambda i, f: bits(i.vectors.search({"secret": 1.0, "boat": 2.0}, 50, f)),
    "vectors.search_batch": lambda i, f: batch_of(i.vectors.search_batch([{"z": 1.0}] * 2, 50, f)),
    "vectors.explain": lambda i, f: str(i.vectors.explain({"boat": 1.0}, "m0", f)),
}
PLAIN: dict[str, Callable[[BM25Index], Any]] = {
    "scores": lambda i: i.scores(QUERY).tolist(),
    "vocabulary": lambda i: i.vocabulary(),
    "document_frequencies": lambda i: i.document_frequencies().tolist(),
    "to_scipy": lambda i: dense(i.to_scipy(), i.vocabulary()),
    "stats": lambda i: {name: i.stats()[name] for name in STATS},
    "extra": lambda i: i.extra,
    "reanalyze": lambda i: documents(i.reanalyze()),
    "snapshot": lambda i: documents(i.snapshot()),
    "tune": lambda i: bits(i.tune(k1=3.0).search(QUERY, 50)),
    "restricted": lambda i: documents(i.restricted({"n": {"$gt": 3}})),
    "vectors.get": lambda i: i.vectors.get(IDS),
    "vectors.scores": lambda i: i.vectors.scores({"secret": 1.0, "boat": 2.0}).tolist(),
    "vectors.vocabulary": lambda i: i.vectors.vocabulary(),
    "vectors.document_frequencies": lambda i: i.vectors.document_frequencies().tolist(),
    "vectors.to_scipy": lambda i: dense(i.vectors.to_scipy(), i.vectors.vocabulary()),
    "vectors.__bool__": lambda i: bool(i.vectors),
    "__len__": len,
    "__contains__": lambda i: [id in i for id in IDS],
    "__copy__": lambda i: documents(copy.copy(i)),
    "__deepcopy__": lambda i: documents(copy.deepcopy(i)),
    "__reduce__": lambda i: documents(pickle.loads(pickle.dumps(i))),
    "__repr__": repr,
}
STATS = ("documents", "terms", "postings", "tokens", "average_length")
WRITES: dict[str, Callable[[BM25Index], Any]] = {
    "add": lambda i: i.add(["red"]),
    "add_documents": lambda i: i.add_documents([]),
    "delete": lambda i: i.delete(IDS),
    "update_metadata": lambda i: i.update_metadata(IDS, [MINE] * len(IDS)),
    "maintain": lambda i: i.maintain(),
    "compact": lambda i: i.compact(),
    "commit": lambda i: i.commit(),
    "rollback": lambda i: i.rollback(),
}
# What tells of no document, or is tested by itself below.
SETTINGS = {
    "analyzer",
    "fields",
    "variant",
    "k1",
    "b",
    "delta",
    "delta_on",
    "read_only",
    "commit_id",
}
APART = {"save", "refresh", "close", "vectors", "__init__", "__enter__", "__exit__"}
MAKERS = {"from_texts", "build", "open", "verify", "backup", "restore", "repair", "commits"}


def outcome(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return an answer, or the error in its place."""
    try:
        return ask(*arguments)
    except (ValueError, LookupError) as error:
        return type(error), str(error)


def test_every_public_name_has_been_considered() -> None:
    others = {"HybridSearch", "__deepcopy__", "__reduce__"}  # the latter are of what is beneath
    considered = {*FILTERED, *PLAIN, *WRITES, *SETTINGS, *APART, *MAKERS} - others
    own = {name: value for name, value in vars(BM25Index).items() if _is_public(name, value)}
    own |= {f"vectors.{n}": v for n, v in vars(Vectors).items() if _is_public(n, v)}
    assert own.keys() - {"vectors.__init__"} == considered


def _is_public(name: str, value: object) -> bool:
    dunder = name.startswith("__") and callable(value)
    return dunder or not name.startswith("_")


@pytest.mark.untraced
@pytest.mark.filterwarnings("ignore::bm25rag.errors.FilterWarning")
@pytest.mark.parametrize("ask", FILTERED.values(), ids=FILTERED)
def test_no_filter_finds_more_than_there_is(whole: BM25Index, ask: Callable[..., Any]) -> None:
    view, mine = whole.restricted(MINE, statistics="part"), alone(whole, MINE)
    nested = whole.restricted({"tenant": {"$in": ["me", "none"]}})
    for filter in WIDENING:
        expected = outcome(ask, mine, filter)
        for one in (view, view.snapshot(), nested.restricted(MINE, statistics="part")):
            assert outcome(ask, one, filter) == expected, filter


@pytest.mark.parametrize("ask", PLAIN.values(), ids=PLAIN)
def test_nothing_else_tells_of_more_either(whole: BM25Index, ask: Callable[..., Any]) -> None:
    view, mine = whole.restricted(MINE, statistics="part"), alone(whole, MINE)
    assert outcome(ask, view) == outcome(ask, mine)
    assert outcome(ask, view.snapshot()) == outcome(ask, mine)


@pytest.mark.filterwarnings("ignore::bm25rag.errors.FilterWarning")
def test_scores_by_the_whole_are_those_of_a_search_with_the_filter(whole: BM25Index) -> None:
    view = whole.restricted(MINE)
    for filter in WIDENING[:-1]:
        both = parse_filter({"$and": [MINE] + ([filter] if filter else [])})
        for name in ("search", "search_hybrid", "expand", "correct", "get", "count", "ids"):
            expected = outcome(FILTERED[name], whole, both)
            assert outcome(FILTERED[name], view, filter) == expected, (name, filter)
    assert [one.id for one in view.get(IDS)] == [one.id for one in whole.get(IDS, MINE)]
    rows = [whole.ids().index(id) for id in view.ids()]
    assert view.scores(QUERY).tolist() == whole.scores(QUERY)[rows].tolist()
    columns = [whole.vocabulary().index(term) for term in view.vocabulary()]
    assert (view.to_scipy().toarray() == whole.to_scipy().toarray()[rows][:, columns]).all()
    assert str(view.explain(QUERY, "m0")) == str(whole.explain(QUERY, "m0"))
    assert view.stats() == whole.restricted(MINE, statistics="part").stats()


def test_stats_are_counts_of_its_documents_and_nothing_else(whole: BM25Index) -> None:
    expected = {name: alone(whole, MINE).stats()[name] for name in STATS}
    for statistics in ("whole", "part"):
        view = whole.restricted(MINE, statistics=statistics)
        assert view.stats() == view.snapshot().stats() == expected
    fields = {"title": 3.0, "text": 1.0}
    texts = [{"title": "red", "text": "a boat"}, {"title": "blue red", "text": "sea"}]
    index = BM25Index.from_texts(texts, metadata=[MINE, OTHERS], fields=fields)
    own = BM25Index.from_texts(texts[:1], fields=fields).stats()
    assert index.restricted(MINE).stats() == {name: own[name] for name in STATS}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_nothing_can_be_written(whole: BM25Index, write: Callable[..., Any]) -> None:
    view = whole.restricted(MINE)
    assert view.read_only
    with pytest.raises(ReadOnlyError, match=r"a view made by restricted\(\)|mode='w'"):
        write(view)
    with view:  # commits nothing
        view.close()
    assert "o0" in whole


def test_what_is_saved_or_pickled_holds_no_bytes_of_others(
    whole: BM25Index, tmp_path: Path
) -> None:
    for number, view in enumerate([whole.restricted(MINE), whole.restricted(MINE).snapshot()]):
        folder = tmp_path / str(number)
        view.save(folder)
        for path in folder.iterdir():
            content = path.read_bytes()
            assert b"code0" not in content, path
            assert b"hidden" not in content, path
        BM25Index.verify(folder)
        assert documents(BM25Index.open(folder)) == documents(alone(whole, MINE))
        assert b"code0" not in pickle.dumps(view)
        assert b"code0" not in pickle.dumps(copy.copy(view))
        copied = copy.deepcopy(view.snapshot())
        assert copied.add(["new"]) == ["0"]


def test_copies_of_a_view_of_a_view_of_a_folder_are_restricted_by_both(
    whole: BM25Index, tmp_path: Path
) -> None:
    whole.save(tmp_path / "index")
    view = BM25Index.open(tmp_path / "index").restricted(MINE)
    ids = view.ids()
    nested = view.restricted({"$id": {"$ne": ids[0]}}, statistics="part")
    for copied in (
        nested,
        copy.copy(nested),
        copy.deepcopy(nested),
        pickle.loads(pickle.dumps(nested)),
    ):
        assert copied.ids() == ids[1:]
        assert bits(copied.search(QUERY, 50)) == bits(nested.search(QUERY, 50))


def test_a_key_that_others_have_is_neither_warned_of_nor_named(whole: BM25Index) -> None:
    view = whole.restricted(MINE)
    with pytest.raises(FilterError, match=r"no document has the field 'hidden\.field'.*'n'") as why:
        view.search(QUERY, filter={"$strict": {"hidden.field": 1}})
    assert "known fields: 'n', 'tenant'" in str(why.value) or "'tenant', 'n'" in str(why.value)
    with pytest.warns(FilterWarning, match=r"no document has the field 'n\.gt'"):
        view.count({"n": {"gt": 1}})


class Forged(Operator):
    """An operator that claims to be the one that restricts, and passes everything."""

    def __init__(self, key: Any) -> None:
        self.claimed = key

    @property
    def key(self) -> Any:
        return self.claimed

    def passes(self, value: Any, present: bool = True) -> bool:
        return True


def test_a_mask_that_was_cached_under_its_key_does_not_widen_it() -> None:
    index = written(BM25Index())
    real = parse_filter(MINE)
    assert isinstance(real, Condition)
    forged = Condition(("tenant",), Forged(real.operator.key))
    assert forged.key == real.key
    assert index.count(forged) == len(index)
    assert index.restricted(MINE).ids() == [
        "m0",
        "m1",
        "m3",
        "m4",
        "o5",
        *map("m{}".format, range(6, 12)),
    ]
    view = index.restricted(MINE)
    assert view.count(Condition(("x",), Exists(False))) == len(view)
    assert view.count(forged) == len(view)


def test_a_subclass_stays_what_it_is_and_restricted() -> None:
    class Own(BM25Index):
        def search(self, query: Any, k: int = 10, filter: Any = None, **rest: Any) -> Any:
            return super().search(query, k, None, **rest)

    view = Own.from_texts(["red", "red"], metadata=[MINE, OTHERS]).restricted(MINE)
    assert type(view) is type(view.restricted(MINE)) is type(view.tune(k1=2.0)) is Own
    assert [hit.id for hit in view.search("red", filter=OTHERS)] == ["0"]


def test_a_view_follows_writes_and_refreshes(tmp_path: Path) -> None:
    index = written(BM25Index())
    view, then = index.restricted(MINE), index.restricted(MINE).snapshot()
    index.add(["red"] * 2, ["m99", "o99"], [MINE, OTHERS])
    index.delete(["m0"])
    assert "m99" in view
    assert "o99" not in view
    assert "m0" not in view
    assert "m0" in then
    index.save(tmp_path / "index")
    reader = BM25Index.open(tmp_path / "index")
    seen, pickled = reader.restricted(MINE), pickle.loads(pickle.dumps(reader.restricted(MINE)))
    index.add(["red"], ["m100"], [MINE])
    index.save(tmp_path / "index")
    assert "m100" not in seen
    for one in (seen, pickled):
        assert one.refresh()
        assert not one.refresh()
        assert one.ids() == view.ids()
        assert bits(one.search(QUERY, 50)) == bits(view.search(QUERY, 50))
    with pytest.raises(StorageError, match="refresh needs"):
        view.refresh()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"filter": None}, TypeError, "needs a filter that rejects something, got None"),
        ({"filter": {}}, ValueError, "needs a filter that rejects something, got {}"),
        ({"filter": {"$gt": 1}}, FilterError, "unknown name"),
        ({"filter": MINE, "statistics": "none"}, ValueError, "'whole', 'part'"),
        ({"filter": MINE, "statistics": None}, TypeError, "'whole', 'part'"),
    ],
)
def test_a_wrong_restriction_is_an_error(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        written(BM25Index()).restricted(**arguments)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("constants", [{}, SMALL], ids=["usual", "small"])
@given(
    chosen=parameters(), steps=histories, query=mixed, label=st.integers(0, 2), k=st.integers(0, 9)
)
def test_after_any_history_a_part_is_an_index_of_its_own(
    constants: dict[str, Any], chosen: Any, steps: list[Step], query: Any, label: int, k: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(name, value)
        index, reference = BM25Index(**chosen), Reference(**chosen)
        check(index, reference, steps, query, label, k)


@pytest.mark.usefixtures("backend")
@given(
    shards=st.integers(1, 16),
    texts=corpora,
    chosen=parameters(),
    steps=histories,
    query=mixed,
    label=st.integers(0, 2),
    k=st.integers(0, 9),
)
@settings(max_examples=settings().max_examples // 2)
def test_a_part_of_shards_is_an_index_of_its_own(
    shards: int,
    texts: list[list[str]],
    chosen: Any,
    steps: list[Step],
    query: Any,
    label: int,
    k: int,
) -> None:
    with both_in_shards(shards, texts, **chosen) as (index, reference):
        check(index, reference, steps, query, label, k)


def check(
    index: BM25Index, reference: Reference, steps: list[Step], query: Any, label: int, k: int
) -> None:
    """Compare views of an index, made before the steps of a history, with their references."""
    views = [
        (index.restricted(filter), index.restricted(filter, statistics="part"), accept)
        for filter, accept in accepted(label)
        if filter != {}
    ]
    for step in steps:
        index = apply(index, reference, step)
    for by_whole, by_part, accept in views:
        part = copy.deepcopy(reference)
        part.delete([id for id in part.ids if not accept(id, part.metadata[id])])
        assert by_whole.ids() == by_part.ids() == part.ids
        assert bits(by_part.search(query, k)) == bits(part.search(query, k))
        assert [one.hex() for one in by_part.scores(query)] == [
            one.hex() for one in part.scores(query)
        ]
        assert bits(by_whole.search(query, k)) == bits(reference.search(query, k, accept))
        assert by_part.vocabulary() == list(part.vocabulary())
