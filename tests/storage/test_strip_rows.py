"""Rows of bounds are stored with vectors, and checked as everything in a file is."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from bm25rag import BM25Index, Document
from bm25rag.errors import CorruptIndexError
from bm25rag.segments.strip_rows import RowMaker
from support.forging import Folder, forgeries

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.untraced]

SMALL = {
    "bm25rag.search.ranking.WINDOW": 64,
    "bm25rag.search.ranking.COARSE": 0,
    "bm25rag.segments.doc_blocks.DOC_BLOCK": 128,
    "bm25rag.segments.postings.STRIP_COST": 0,
    "bm25rag.segments.postings.STRIPS_WORTH": 0,
    "bm25rag.segments.strip_rows.STRIPS_FROM": 100,
    "bm25rag.segments.strip_rows.LEAST_IN_STRIP": 0.0,
    # "0" has a level for each strip, others have pairs; "9" has a gap that is divided.
    "bm25rag.segments.strip_rows.DENSE": 0.05,
    "bm25rag.storage.checksummed_file.BLOCK": 64,
}
SIZE = 700
ROWS = ["vectors.strips.levels", "vectors.strips.offsets", "vectors.strips.terms"]
QUESTIONS = [{"0": 1.0, "3": 0.5, "9": 2.0}, {"1": 1.0}, {str(term): 1.0 for term in range(10)}]


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in SMALL.items():
            monkeypatch.setattr(name, value)
        yield


def vectors(size: int = SIZE) -> list[dict[str, float]]:
    generator = np.random.default_rng(1)
    found = []
    for number in range(size):
        weights = (1 + generator.integers(0, 99, 9)) / 8
        terms = {"0", str(1 + number // 90)}
        if generator.random() < 1 / 6:
            terms.add(str(generator.integers(1, 9)))
        found.append({term: float(weights[int(term)]) for term in sorted(terms)})
    found[0]["9"] = found[-1]["9"] = 1.5
    return found


def made(size: int = SIZE) -> BM25Index:
    return BM25Index.from_texts([[]] * size, vectors=vectors(size))


def answers(index: BM25Index) -> list[list[tuple[str, str]]]:
    return [
        [(hit.id, hit.score.hex()) for hit in index.vectors.search(question, k)]
        for question in QUESTIONS
        for k in (1, 10)
    ]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows") / "index"
    made().save(folder)
    return folder


@pytest.fixture(scope="module")
def right() -> list[list[tuple[str, str]]]:
    with patch("bm25rag.segments.strip_rows.STRIPS_FROM", SIZE + 1):
        return answers(made())


def arrays_of(folder: Path) -> dict[str, np.ndarray]:
    (piece,) = Folder.read(folder).pieces
    return piece.segment


def test_a_file_has_the_rows_and_searches_use_them(
    saved: Path, right: list[list[tuple[str, str]]]
) -> None:
    arrays = arrays_of(saved)
    assert sorted(name for name in arrays if "strips" in name) == ROWS
    sizes = np.diff(arrays["vectors.strips.offsets"])
    assert np.count_nonzero(sizes == 6 * 64) == 1
    assert (arrays["vectors.strips.levels"][1::2] == 0).any()
    with patch.object(RowMaker, "rows", side_effect=AssertionError("made again")):
        opened = BM25Index.open(saved)
        assert answers(opened) == right
    (view,) = opened.vectors._snapshot.views
    assert view.segment.postings.strips is not None
    levels = view.segment.postings.strips.levels
    assert levels.tolist() == arrays["vectors.strips.levels"].tolist()
    assert not levels.flags.writeable  # mapped


@pytest.mark.further
def test_all_ways_to_one_segment_store_the_same_rows(
    saved: Path, right: list[list[tuple[str, str]]], tmp_path: Path
) -> None:
    def check(name: str) -> None:
        assert answers(BM25Index.open(tmp_path / name)) == right
        for array in ROWS:
            assert arrays_of(tmp_path / name)[array].tolist() == expected[array].tolist()

    expected = arrays_of(saved)
    given = [Document(str(n), "", vector=one) for n, one in enumerate(vectors())]
    BM25Index.build(given, tmp_path / "built")
    check("built")
    with (
        patch("bm25rag.additions.CHUNK", 250),
        patch("bm25rag.building.gathering.part_room", lambda *_: 1),
        patch("bm25rag.building.build.merge_room", lambda *_: 1 << 10),
        patch.object(RowMaker, "each", autospec=True, side_effect=RowMaker.each) as each,
        # No part makes rows, which only the index itself has.
        patch.object(RowMaker, "rows", side_effect=AssertionError("made for a part")),
    ):
        BM25Index.build(given, tmp_path / "in parts")
    assert each.call_count > 3  # ranges of terms
    check("in parts")
    with patch.multiple("bm25rag.merging.policy", LEAST=0, SHARE=1 << 30):
        index = BM25Index()
        for first in range(0, SIZE, 250):
            index.add_documents(given[first : first + 250])
    index.compact()
    index.save(tmp_path / "compacted")
    check("compacted")
    pickle.loads(pickle.dumps(BM25Index.open(saved))).save(tmp_path / "pickled")
    check("pickled")
    BM25Index.open(saved).save(tmp_path / "copied")
    check("copied")


def test_rows_of_a_merge_are_those_of_the_living_vectors(tmp_path: Path) -> None:
    index = made()
    gone = [str(number) for number in range(0, SIZE, 3)]
    index.delete(gone)
    before = answers(index)
    index.compact()
    assert answers(index) == before
    index.save(tmp_path / "index")
    BM25Index.verify(tmp_path / "index")
    left = [one for number, one in enumerate(vectors()) if number % 3]
    BM25Index.from_texts([[]] * len(left), vectors=left).save(tmp_path / "anew")
    for name in ROWS:
        merged, anew = (arrays_of(tmp_path / one)[name] for one in ("index", "anew"))
        assert merged.tolist() == anew.tolist()


def test_few_vectors_and_those_of_any_sign_have_no_rows_in_files(tmp_path: Path) -> None:
    made(90).save(tmp_path / "few")
    signed = [dict(one, x=-1.0) for one in vectors(120)]
    BM25Index.from_texts([[]] * 120, vectors=signed).save(tmp_path / "signed")
    for name in ("few", "signed"):
        assert not any("strips" in array for array in arrays_of(tmp_path / name))


@pytest.mark.parametrize("dense", [0.0, 0.3])
def test_rows_of_a_writer_with_other_constants_are_right(
    saved: Path, right: list[list[tuple[str, str]]], tmp_path: Path, dense: float
) -> None:
    """From how many documents on, which terms, and in which form is what the writer thinks."""
    constants = {"STRIPS_FROM": SIZE, "LEAST_IN_STRIP": 0.4, "DENSE": dense}
    with patch.multiple("bm25rag.segments.strip_rows", **constants):
        made().save(tmp_path / "other")
    arrays, own = arrays_of(tmp_path / "other"), arrays_of(saved)
    sizes = np.diff(arrays["vectors.strips.offsets"])
    assert 0 < len(sizes) < len(own["vectors.strips.terms"])
    assert (sizes == 6 * 64).all() == (dense == 0.0)
    with patch.multiple("bm25rag.segments.strip_rows", STRIPS_FROM=10 * SIZE):
        BM25Index.verify(tmp_path / "other")
        assert answers(BM25Index.open(tmp_path / "other", untrusted=True)) == right


def test_each_flipped_byte_of_a_row_is_found_when_it_is_used(
    saved: Path, tmp_path: Path, backend: str
) -> None:
    (path,) = saved.glob("segment-*")
    data = path.read_bytes()
    levels = arrays_of(saved)["vectors.strips.levels"].tobytes()
    start = data.index(levels)
    for place in range(0, len(levels), 97):
        folder = tmp_path / str(place)
        shutil.copytree(saved, folder)
        changed = bytearray(data)
        changed[start + place] ^= 1
        (folder / path.name).write_bytes(changed)
        opened = BM25Index.open(folder)
        if backend == "compiled":  # NumPy does not use them
            with pytest.raises(CorruptIndexError, match=r"segment-.*vectors.strips.levels"):
                answers(opened)
        with pytest.raises(CorruptIndexError, match="segment-"):
            BM25Index.verify(folder)


def lower_a_level(rows: dict[str, np.ndarray], pairs: bool) -> None:
    """Make one level say less, of a row with a level for each strip or of pairs."""
    levels, offsets = rows["vectors.strips.levels"].copy(), rows["vectors.strips.offsets"]
    (row,) = np.flatnonzero(np.diff(offsets) == 6 * 64)
    start = int(offsets[row + 1 if pairs else row])
    place = start + (1 if pairs else int(np.flatnonzero(levels[start:])[0]))
    levels[place] -= 1
    rows["vectors.strips.levels"] = levels


def raise_a_level(rows: dict[str, np.ndarray]) -> None:
    levels, offsets = rows["vectors.strips.levels"].copy(), rows["vectors.strips.offsets"]
    (row,) = np.flatnonzero(np.diff(offsets) == 6 * 64)
    levels[int(offsets[row]) + 63] = 255  # of a strip without a document
    rows["vectors.strips.levels"] = levels


LIES: dict[str, Callable[[dict[str, np.ndarray]], None]] = {
    "a level that is too low": lambda rows: lower_a_level(rows, False),
    "a level of a pair that is too low": lambda rows: lower_a_level(rows, True),
    "a level where no document is": raise_a_level,
    "rows of other terms": lambda rows: rows.update(
        {"vectors.strips.terms": rows["vectors.strips.terms"][::-1].copy()}
    ),
    "weights of any sign": lambda rows: rows.update(
        {"vectors.code_weight": rows["vectors.code_weight"] | 0x80000000}
    ),
}


def compact(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["1"])
        writer.compact()


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize(
    "check", [BM25Index.verify, partial(BM25Index.open, untrusted=True), compact]
)
def test_rows_that_lie_are_found(
    saved: Path, tmp_path: Path, lie: str, check: Callable[[Path], object]
) -> None:
    forged = Folder.read(saved)
    LIES[lie](forged.pieces[0].segment)
    forged.write(tmp_path / "index")
    with pytest.raises(CorruptIndexError, match=r"segment-\d+\.bin: vectors\..* restore"):
        check(tmp_path / "index")


def forged_row(saved: Path, whole: bool, change: Callable[[np.ndarray], None]) -> Folder:
    """Change the longest row of pairs, or the one with a level for each strip."""
    forged = Folder.read(saved)
    arrays = forged.pieces[0].segment
    levels, offsets = arrays["vectors.strips.levels"].copy(), arrays["vectors.strips.offsets"]
    sizes = np.diff(offsets)
    row = int(np.argmax(np.where((sizes == 6 * 64) == whole, sizes, 0)))
    change(levels[offsets[row] : offsets[row + 1]])
    arrays["vectors.strips.levels"] = levels
    return forged


def test_levels_that_are_too_high_find_the_same(
    saved: Path, tmp_path: Path, right: list[list[tuple[str, str]]]
) -> None:
    """Also of strips without a document."""
    forged_row(saved, True, lambda row: row.fill(255)).write(tmp_path / "index")
    assert answers(BM25Index.open(tmp_path / "index")) == right
    with pytest.raises(CorruptIndexError, match=r"vectors\.strips\.levels does not agree"):
        BM25Index.verify(tmp_path / "index")


@pytest.mark.parametrize("gap", [0, 255])
def test_pairs_that_leave_the_strips_or_stay_are_refused_before_they_are_used(
    saved: Path, tmp_path: Path, backend: str, gap: int
) -> None:
    def change(row: np.ndarray) -> None:
        row[::2], row[1::2] = gap, 255

    forged_row(saved, False, change).write(tmp_path / "index")
    opened = BM25Index.open(tmp_path / "index")
    if backend == "compiled":  # NumPy does not use them
        with pytest.raises(CorruptIndexError, match="does not ascend within the strips"):
            answers(opened)
    with pytest.raises(CorruptIndexError, match=r"vectors\.strips\.levels does not agree"):
        BM25Index.verify(tmp_path / "index")


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5, 6, -2, -1])
def test_a_single_pair_that_stays_is_refused_wherever_it_is(
    saved: Path, tmp_path: Path, backend: str, place: int
) -> None:
    """Pairs are checked four at once, and the rest one by one."""

    def change(row: np.ndarray) -> None:
        row[::2][place] = 0

    forged_row(saved, False, change).write(tmp_path / "index")
    if backend == "compiled":  # NumPy does not use them
        with pytest.raises(CorruptIndexError, match="does not ascend within the strips"):
            answers(BM25Index.open(tmp_path / "index"))
    with pytest.raises(CorruptIndexError, match=r"vectors\.strips\.levels does not agree"):
        BM25Index.verify(tmp_path / "index")


@pytest.mark.parametrize("name", ROWS)
def test_a_forged_array_of_rows_is_refused_or_harmless(
    saved: Path, tmp_path: Path, name: str
) -> None:
    def ask(index: BM25Index) -> None:
        answers(index)
        index.vectors.search_batch(QUESTIONS * 9, k=3).hits()

    folder = Folder.read(saved)
    right = folder.pieces[0].segment[name]
    for what, values in forgeries(right):
        if values.dtype.str[1:] not in ("u1", "u2", "u4", "u8", "b1"):
            continue
        forged, path = folder.copy(), tmp_path / what.replace(" ", "-")
        forged.pieces[0].segment[name] = values
        forged.write(path)
        with suppress(CorruptIndexError):
            ask(BM25Index.open(path))
        if values.dtype.kind == "u" and values.tolist() == right.tolist():
            continue
        with pytest.raises(CorruptIndexError, match=r"segment-.*vectors\."):
            BM25Index.verify(path)


@pytest.mark.parametrize("name", ROWS)
def test_a_missing_array_of_rows_is_named(saved: Path, tmp_path: Path, name: str) -> None:
    forged = Folder.read(saved)
    del forged.pieces[0].segment[name]
    forged.write(tmp_path / "index")
    with pytest.raises(CorruptIndexError, match=f"{name} is missing"):
        BM25Index.open(tmp_path / "index")


def test_without_rows_all_postings_are_walked(
    saved: Path, tmp_path: Path, right: list[list[tuple[str, str]]]
) -> None:
    forged = Folder.read(saved)
    for name in ROWS:
        del forged.pieces[0].segment[name]
    forged.write(tmp_path / "index")
    BM25Index.verify(tmp_path / "index")
    assert answers(BM25Index.open(tmp_path / "index")) == right
