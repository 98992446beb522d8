"""Sparse vectors, compared bit for bit with plain dictionaries of Python floats."""

from __future__ import annotations

import copy
import pickle
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index, Document
from bm25rag.errors import DocumentNotFoundError, DuplicateIdError
from support.constants import SMALL
from support.environment import INTERPRETED
from support.holding import accepted, assert_same_scores, bits
from support.reference import Accept, Reference, ReferenceHit
from support.strategies import (
    IDS,
    Add,
    Delete,
    Relabel,
    Step,
    additions,
    deletions,
    queries,
    relabellings,
)

Vector: TypeAlias = Mapping[Any, float]


class Indexed(NamedTuple):
    """A vector as frameworks have it."""

    indices: list[Any]
    values: list[float]


class Message:
    """A vector as gRPC has it, whose class knows nothing of its parts."""

    def __init__(self, *parts: list[Any]) -> None:
        self._parts = dict(zip(("indices", "values"), parts, strict=True))

    def __getattr__(self, name: str) -> list[Any]:
        if name not in self._parts:
            raise AttributeError(name)
        return self._parts[name]


def rounded(weight: float) -> float:
    (single,) = struct.unpack("f", struct.pack("f", weight))
    assert isinstance(single, float)
    return single


@dataclass
class Plain(Reference):
    """The reference for texts, with the vectors of its documents in dicts."""

    vectors: dict[str, dict[str, float]] = field(default_factory=dict)

    def put(self, names: list[str], vectors: list[Vector | None], on_duplicate: str) -> None:
        present = set(self.documents)
        for name, vector in zip(names, vectors, strict=True):
            if on_duplicate == "replace" or name not in present:
                pairs = (vector or {}).items()
                self.vectors[name] = {str(t): rounded(w) for t, w in pairs if rounded(w)}
            present.add(name)

    def weights_of(self, name: str) -> dict[str, float]:
        return self.vectors.get(name, {})

    def dot(self, question: Vector, name: str) -> float:
        stored, total = self.weights_of(name), 0.0
        for term, weight in question.items():
            if str(term) in stored:
                total += weight * stored[str(term)]
        return total

    def found(self, question: Vector, accept: Accept | None = None) -> list[ReferenceHit]:
        hits = [
            ReferenceHit(row, name, self.dot(question, name))
            for row, name in enumerate(self.documents)
            if not self.weights_of(name).keys().isdisjoint(map(str, question))
            and (accept is None or accept(name, self.metadata[name]))
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.row))

    def columns(self) -> dict[str, int]:
        """Return every term by code point, with how many vectors have it."""
        each = [term for name in self.documents for term in self.weights_of(name)]
        return {term: each.count(term) for term in sorted(set(each))}

    def fused(
        self, query: list[str], question: Vector, depth: int, k: int
    ) -> list[tuple[str, str]]:
        rankings = [self.matches(query)[:depth], self.found(question)[:depth]]
        totals: dict[str, float] = {}
        for rank in range(depth):  # ties go by the better rank, that of the words first
            totals |= {one[rank].id: 0.0 for one in rankings if rank < len(one)} | totals
        for ranking in rankings:
            for hit in ranking:
                best, last = ranking[0].score, ranking[-1].score
                totals[hit.id] += (hit.score - last) / (best - last) if best > last else 1.0
        ordered = sorted(totals.items(), key=lambda pair: -pair[1])[:k]
        return [(id, score.hex()) for id, score in ordered]


# -- histories ---------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c", 0, 7, "é", "", "\ud800"])
# The smallest are 0 as float32, or numbers of few bits.
edges = [0.0, -0.0, 1.0, 2.0, 0.5, -0.3, -1.0, 1e30, -1e30, 1e-30, 1e-45, 1e-46, 5e-324]
weights = st.sampled_from(edges) | st.floats(-1e30, 1e30) | st.integers(-3, 9)
vectors = st.dictionaries(names, weights, max_size=6) | st.dictionaries(
    names, st.sampled_from([0.5, 1.0, 1.5]), max_size=6
)


@dataclass(frozen=True)
class AddVectors:
    """Documents added with vectors, some without."""

    of: Add
    vectors: list[Vector | None]
    how: str


@dataclass(frozen=True)
class Do:
    """What keeps the documents, or goes back to earlier ones."""

    what: str


@st.composite
def vectored(draw: st.DrawFn) -> AddVectors:
    of = draw(additions())
    size = len(of.texts)
    each = draw(st.lists(st.none() | vectors | vectors, min_size=size, max_size=size))
    return AddVectors(
        of, each, draw(st.sampled_from(["dicts", "objects", "documents", "iterator"]))
    )


steps = st.lists(
    st.one_of(
        vectored(),
        vectored(),
        vectored(),
        additions(),
        deletions,
        relabellings(),
        st.builds(Do, st.sampled_from(["compact", "maintain", "commit", "rollback", "reopen"])),
    ),
    max_size=9,
)


@pytest.fixture(scope="module", autouse=True)
def small(backend: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(name, value)
        patch.setattr("os.fsync", lambda _: None)
        yield


def add(index: BM25Index, of: Add, each: list[Vector | None], how: str) -> list[str]:
    metadata = [{"label": label} for label in of.labels]
    if how == "documents" and of.ids is not None:
        rows = zip(of.ids, of.texts, metadata, each, strict=True)
        documents = [Document(id, text, one, vector=v) for id, text, one, v in rows]
        return index.add_documents(documents, on_duplicate=of.on_duplicate)
    given: Any = each
    if how == "objects":
        given = [None if v is None else Indexed([*v], [*v.values()]) for v in each]
    if how == "iterator":
        given = iter(each)
    return index.add(of.texts, of.ids, metadata, on_duplicate=of.on_duplicate, vectors=given)


def take(index: BM25Index, plain: Plain, step: Step | AddVectors) -> None:
    match step:
        case AddVectors(of, each, how):
            ids, before = of.ids, copy.deepcopy(plain)
            metadata = [{"label": label} for label in of.labels]
            if ids is not None:
                plain.put(ids, each, of.on_duplicate)
            try:
                expected = plain.add(of.texts, ids, metadata, of.on_duplicate)
            except ValueError:
                plain.vectors = before.vectors
                with pytest.raises(DuplicateIdError):
                    add(index, of, each, how)
            else:
                if ids is None:
                    plain.put(expected, each, "replace")
                assert add(index, of, each, how) == expected
        case Add():
            take(index, plain, AddVectors(step, [None] * len(step.texts), "dicts"))
        case Delete(ids):
            assert index.delete(ids) == plain.delete(ids)
        case Relabel(ids, labels):
            metadata = [{"label": label} for label in labels]
            assert index.update_metadata(ids, metadata) == plain.update_metadata(ids, metadata)


class History:
    """An index opened for writing, its reference, and that of the last commit.

    Parameters
    ----------
    folder
        Where the index is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        BM25Index().save(folder)
        self.index = BM25Index.open(folder, mode="w")
        self.plain, self.committed = Plain(), Plain()

    def take(self, step: Step | AddVectors | Do) -> None:
        if not isinstance(step, Do):
            take(self.index, self.plain, step)
        elif step.what in ("compact", "maintain"):
            getattr(self.index, step.what)()
        elif step.what == "rollback":
            self.index.rollback()
            self.plain = copy.deepcopy(self.committed)
        else:
            self.index.commit()
            self.committed = copy.deepcopy(self.plain)
            if step.what == "reopen":
                self.index.close()
                self.index = BM25Index.open(self.folder, mode="w", verify=True)


def same(index: BM25Index, plain: Plain, question: Vector) -> None:
    assert bits(index.vectors.search(question, k=99)) == bits(plain.found(question))
    scores = index.vectors.scores(question)
    assert scores.dtype == np.float64
    expected = [plain.dot(question, name).hex() for name in plain.documents]
    assert [float(score).hex() for score in scores] == expected


def same_contents(index: BM25Index, plain: Plain) -> None:
    columns = plain.columns()
    assert index.vectors.vocabulary() == list(columns)
    assert bool(index.vectors) is bool(columns)
    assert index.vectors.document_frequencies().tolist() == list(columns.values())
    matrix = index.vectors.to_scipy()
    assert matrix.dtype == np.float32
    dense = [[plain.weights_of(id).get(term, 0.0) for term in columns] for id in plain.documents]
    assert matrix.toarray().tolist() == dense
    assert matrix.nnz == sum(columns.values())
    asked = [*reversed(plain.ids), "unknown", *plain.ids[:1]]
    stored = [plain.weights_of(id) for id in asked if id != "unknown"]
    assert index.vectors.get(asked) == stored


# Each example does much, or writes many files.
half = settings(max_examples=settings().max_examples // 2)
fewer = settings(max_examples=settings().max_examples // 4)
fewest = settings(max_examples=max(3, settings().max_examples // 20))


@fewer
@given(history=steps, question=vectors, query=queries)
def test_histories_stay_exact(history: list[Any], question: Vector, query: list[str]) -> None:
    with tempfile.TemporaryDirectory() as path:
        both = History(Path(path) / "index")
        views = []
        for step in history:
            both.take(step)
            same(both.index, both.plain, question)
            views.append((both.index.snapshot(), copy.deepcopy(both.plain)))
        index, plain = both.index, both.plain
        same_contents(index, plain)
        assert_same_scores(index, plain, query)  # vectors do not change those by a bit
        assert index.vocabulary() == list(plain.vocabulary())
        copies = [index.tune(variant="bm25+", k1=0.5), copy.copy(index), copy.deepcopy(index),
                  pickle.loads(pickle.dumps(index))]  # fmt: skip
        index.save(Path(path) / "copy")
        copies += [BM25Index.open(Path(path) / "copy", mmap=mmap) for mmap in (True, False)]
        BM25Index.verify(Path(path) / "copy")
        for other in copies:
            same(other, plain, question)
            same_contents(other, plain)
        for view, then in views[::2]:
            same(view, then, question)
        index.rollback()
        same(index, both.committed, question)
        index.close()
        del index, copies, other  # Windows keeps files that are mapped


@half
@given(
    history=st.lists(st.one_of(vectored(), vectored(), deletions, relabellings()), max_size=6),
    questions=st.lists(vectors, min_size=2, max_size=5),
    k=st.integers(0, 9) | st.just(10**6),
    label=st.integers(0, 2),
    floor=st.none() | st.sampled_from([-1.0, 0.0, 0.75, 1.0, 2.0]),
    threads=st.sampled_from([None, 1, 2, 4]),
)
def test_every_search_agrees(
    history: list[Any],
    questions: list[Vector],
    k: int,
    label: int,
    floor: float | None,
    threads: int | None,
) -> None:
    index, plain = BM25Index(), Plain()
    for step in history:
        take(index, plain, step)
    for filter, accept in [(None, None), *accepted(label)]:
        expected = [
            [hit for hit in plain.found(one, accept) if floor is None or hit.score >= floor][:k]
            for one in questions
        ]
        for question, hits in zip(questions, expected, strict=True):
            assert bits(index.vectors.search(question, k, filter, min_score=floor)) == bits(hits)
        batch = index.vectors.search_batch(questions, k, filter, min_score=floor, threads=threads)
        assert batch.rows.shape == (len(questions), min(k, len(plain.documents)))
        assert batch.ids() == [[hit.id for hit in hits] for hits in expected]
        assert [bits(hits) for hits in batch.hits()] == [bits(hits) for hits in expected]
    for name in plain.documents:
        explained(index, plain, questions[0], name)
    with pytest.raises(DocumentNotFoundError, match="unknown"):
        index.vectors.explain(questions[0], "unknown")


def explained(index: BM25Index, plain: Plain, question: Vector, name: str) -> None:
    why, columns, stored = (
        index.vectors.explain(question, name),
        plain.columns(),
        plain.weights_of(name),
    )
    assert (why.id, why.score.hex(), why.shift) == (name, plain.dot(question, name).hex(), 0.0)
    assert why.matched is not stored.keys().isdisjoint(map(str, question))
    for one, (term, weight) in zip(why.terms, question.items(), strict=True):
        assert (one.term, one.count) == (str(term), weight)
        assert (one.document_frequency, one.tf) == (columns.get(str(term), 0), str(term) in stored)
        assert one.idf == (str(term) in columns)
        assert (one.f, one.contribution) == (
            stored.get(str(term), 0.0), weight * stored.get(str(term), 0.0),
        )  # fmt: skip
    assert str(why)


@half
@given(
    history=st.lists(st.one_of(vectored(), vectored(), deletions), max_size=5),
    query=queries,
    question=vectors,
    k=st.integers(0, 9),
    depth=st.integers(0, 12),
)
def test_one_call_fuses_both_rankings(
    history: list[Any], query: list[str], question: Vector, k: int, depth: int
) -> None:
    index, plain = BM25Index(), Plain()
    for step in history:
        take(index, plain, step)
    hits = index.search_hybrid(query, question, k, fetch_k=depth)
    assert bits(hits) == plain.fused(query, question, max(depth, k), k)
    for filter, accept in accepted(1):
        for hit in index.search_hybrid(query, question, k, filter, method="rrf"):
            assert accept(hit.id, hit.metadata)
            assert hit.metadata == plain.metadata[hit.id]


@fewer
@given(texts=st.lists(st.lists(st.sampled_from("abcdef"), max_size=9), max_size=20), query=queries)
@pytest.mark.parametrize(
    "chosen", [{}, {"variant": "atire", "b": 0.3}, {"variant": "bm25l", "delta_on": "matched"}]
)
def test_the_eager_scores_of_an_index_as_vectors_give_its_scores(
    chosen: dict[str, Any], texts: list[list[str]], query: list[str]
) -> None:
    index = BM25Index.from_texts(texts, **chosen)
    other = BM25Index.from_texts([[]] * len(texts), vectors=index.to_scipy())
    columns = {term: column for column, term in enumerate(index.vocabulary())}
    question = {columns[term]: query.count(term) for term in query if term in columns}
    assert other.vectors.scores(question).tobytes() == index.scores(query).tobytes()


def test_the_same_vectors_in_every_form_give_the_same_files(tmp_path: Path) -> None:
    from scipy import sparse

    dense = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 0, -0.25]], np.float32)
    rows = [
        dict(zip(row.nonzero()[0].tolist(), row[row != 0].tolist(), strict=True)) for row in dense
    ]
    coo = sparse.coo_array(dense)
    places = np.nonzero(dense)
    halves = np.repeat(dense[places] / 2, 2), tuple(np.repeat(axis, 2) for axis in places)
    twice = sparse.coo_array(halves, dense.shape)
    forms: list[Any] = [
        rows, iter(rows), [{str(t): w for t, w in row.items()} for row in rows],
        [Indexed([*row], [*row.values()]) for row in rows],
        [Message([*row], [*row.values()]) for row in rows],
        [Indexed(np.array([*row], np.int32), np.array([*row.values()], np.float32))
         for row in rows],
        [{np.int64(t): np.float16(w) for t, w in row.items()} for row in rows],
        [{"indices": [*row], "values": [*row.values()]} for row in rows],
        [rows[0], None, rows[2]],
        sparse.csr_array(dense), sparse.csr_matrix(dense), sparse.csc_array(dense), coo, twice,
        [sparse.csr_array(row[None]) for row in dense], [sparse.coo_array(row) for row in dense],
    ]  # fmt: skip
    files = set()
    for number, form in enumerate(forms):
        index = BM25Index.from_texts(["red", "green", "blue"], vectors=form)
        index.save(tmp_path / str(number))
        (path,) = (tmp_path / str(number)).glob("segment-*")
        files.add(path.read_bytes())
    assert len(files) == 1
    for question in (rows[0], forms[3][0], sparse.coo_array(dense[0]), sparse.csr_array(dense[:1])):
        assert [hit.id for hit in index.vectors.search(question)] == ["0", "2"]


@pytest.mark.parametrize("size", [1, 4])
def test_weights_whose_bits_fit_into_a_byte_are_merged(tmp_path: Path, size: int) -> None:
    each = [{"a": 1e-45, "b": 3e-45}] * size
    index = BM25Index.from_texts(["x"] * size, vectors=each)
    index.add(["x"] * size, vectors=each)
    index.compact()
    index.save(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index", verify=True)
    expected = {term: rounded(weight) for term, weight in each[0].items()}
    assert opened.vectors.get(opened.ids()) == [expected] * 2 * size


def test_what_searches_vectors_can_be_sent_to_another_process() -> None:
    index = BM25Index.from_texts(["x", "y"], vectors=[{"a": 1}, {"a": 2}])
    search = pickle.loads(pickle.dumps(index.vectors.search))
    index.delete(["1"])
    assert [hit.id for hit in search({"a": 1})] == ["1", "0"]


def test_another_analyzer_leaves_vectors_as_they_are() -> None:
    index = BM25Index.from_texts(
        ["cats", "a dog", "eels"], vectors=[{"a": 0.1, 2: -1e-45}, None, {"a": 3}]
    )
    index.add(["a cat"], vectors=[{"": 1}])
    index.delete(["2"])
    again = index.reanalyze(Analyzer(language="german"))
    assert again.vocabulary() != index.vocabulary()
    assert again.vectors.get(again.ids()) == index.vectors.get(index.ids())
    assert again.vectors.vocabulary() == ["", "2", "a"]
    index.delete(["0", "3"])
    assert index.reanalyze()._snapshot.views[0].segment.vectors is None


def test_documents_without_terms_or_vectors_are_there_all_the_same() -> None:
    index = BM25Index.from_texts(["", "red"], vectors=[{"a": 1}, None])
    index.add(["green"])
    index.add([""], vectors=[{}])
    index.delete(["1"])
    assert index.vectors.get(["0", "2", "3"]) == [{"a": 1.0}, {}, {}]
    assert index.vectors.scores({"a": 2}).tolist() == [2.0, 0.0, 0.0]
    assert index.vectors.to_scipy().toarray().tolist() == [[1.0], [0.0], [0.0]]
    index.delete(["0"])
    assert index.vectors.search({"a": 1}) == []
    assert index.vectors.vocabulary() == []
    assert index.vectors.to_scipy().shape == (2, 0)
    empty = BM25Index()
    assert empty.vectors.search({"a": 1}) == empty.search_hybrid("a", {"a": 1}) == []
    assert empty.vectors.search_batch([{"a": 1}]).ids() == [[]]
    assert empty.vectors.to_scipy().shape == (0, 0)


@pytest.mark.skipif(INTERPRETED, reason="takes a minute without compiled kernels")
def test_more_weights_than_narrow_codes_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("segments.postings_builder.NARROW", "segments.doc_blocks.DOC_BLOCK"):
        monkeypatch.setattr(f"bm25rag.{name}", 65_536)
    monkeypatch.setattr("bm25rag.additions.CHUNK", 1 << 20)
    generator = np.random.default_rng(3)
    plain, size = Plain(), 1500
    each: list[Vector] = [
        dict(
            zip(
                generator.choice(400, 50, False).tolist(),
                generator.random(50).tolist(),
                strict=True,
            )
        )
        for _ in range(size)
    ]
    ids = plain.add([["a"]] * size)
    plain.put(ids, [*each], "replace")
    index = BM25Index.from_texts([["a"]] * size, vectors=each)
    (view,) = index._snapshot.views
    assert view.segment.vectors is not None
    assert view.segment.vectors.codes.dtype == np.uint32
    index.save(tmp_path / "index")
    questions = [{int(t): float(w) for t, w in enumerate(generator.random(400)[:many])}
                 for many in (1, 7, 60)]  # fmt: skip
    for question in questions:
        found = bits(plain.found(question))
        for one in (index, BM25Index.open(tmp_path / "index", verify=True)):
            for k in (1, 10, 2000):
                assert bits(one.vectors.search(question, k)) == found[:k]


# -- builds on disk ------------------------------------------------------------------------------

records = st.builds(
    Document,
    st.sampled_from(IDS),
    st.sampled_from(["a b", "a", "", "c c"]),
    vector=st.none() | vectors,
)
rooms = st.sampled_from([1, 3000, 1 << 30])


def files_of(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in folder.rglob("segment-*.bin"))


@contextmanager
def rooms_of(part: int, merge: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path, pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.building.gathering.part_room", lambda *_: part)
        patch.setattr("bm25rag.building.build.merge_room", lambda _: merge)
        yield Path(path)


@fewer
@given(records=st.lists(records, max_size=12), part=rooms, merge=rooms, threads=st.integers(1, 2))
def test_a_build_on_disk_ends_with_the_same_files(
    records: list[Document], part: int, merge: int, threads: int
) -> None:
    index = BM25Index()
    index.add_documents(records, on_duplicate="replace")
    with rooms_of(part, merge) as folder:
        index.save(folder / "memory")
        BM25Index.build(iter(records), folder / "disk", on_duplicate="replace", threads=threads)
        assert files_of(folder / "disk") == files_of(folder / "memory")
        BM25Index.verify(folder / "disk")


@fewest
@given(records=st.lists(records, max_size=12), part=rooms, merge=rooms)
def test_shards_answer_as_one_index(records: list[Document], part: int, merge: int) -> None:

    index = BM25Index()
    index.add_documents(records, on_duplicate="replace")
    with rooms_of(part, merge) as folder:
        sharded = BM25Index.build(iter(records), folder / "it", shards=3, on_duplicate="replace")
        alike(sharded, index)
        BM25Index.verify(folder / "it")
        with BM25Index.open(folder / "it", mode="w") as writer:
            for one in (writer, index):
                one.add(["a"], ["new"], vectors=[{"a": 3.0, "z": 1.0}])
                one.delete(["x", "1"])
        BM25Index.verify(folder / "it")
        opened = BM25Index.open(folder / "it")
        alike(opened, index)
        alike(copy.copy(opened), index)
        del sharded, opened  # Windows keeps files that are mapped


def alike(one: BM25Index, other: BM25Index) -> None:
    """Check that two indexes have the same vectors, and answer alike."""
    ids = other.ids()
    assert one.vectors.get(ids) == other.vectors.get(ids)
    for question in ({"a": 1.0, 0: -0.5, "z": 1.0}, {"": 2.0, "b": 1.0}):
        expected = other.vectors.search(question, 99)
        assert bits(one.vectors.search(question, 99)) == bits(expected)
        assert one.vectors.search_batch([question], 3).ids() == [[hit.id for hit in expected][:3]]
        assert one.vectors.scores(question).tobytes() == other.vectors.scores(question).tobytes()
        hybrid = [one.search_hybrid("a c", question, 9) for one in (one, other)]
        assert bits(hybrid[0]) == bits(hybrid[1])


def test_an_interrupted_build_goes_on_and_refuses_other_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bm25rag.building.gathering.part_room", lambda *_: 1)

    def given(count: int, changed: Any = None, fails: bool = False) -> Iterator[Document]:
        for number in range(count):
            vector: Any = {"a": number / 3, number: 1.0} if number % 2 else None
            yield Document(
                str(number), "red", vector=changed if number == 1 and changed else vector
            )
        if fails:
            message = "the source went away"
            raise OSError(message)

    with pytest.raises(OSError, match="went away"):
        BM25Index.build(given(20, fails=True), tmp_path / "it")
    for changed in ({"a": 1 / 3, 1: 1.5}, {"a": 1 / 3}, {"a": 1 / 3, 11: 1.0}, {1: 1.0, "b": 1 / 3},
                    {"a1": 1 / 3, "": 1.0}, {"x": 0}):  # fmt: skip
        with pytest.raises(ValueError, match="documents are not those"):
            BM25Index.build(given(30, changed), tmp_path / "it")
    BM25Index.build(given(30), tmp_path / "it")
    index = BM25Index()
    index.add_documents(given(30))
    index.save(tmp_path / "memory")
    assert files_of(tmp_path / "it") == files_of(tmp_path / "memory")
