"""Segments with valid checksums and forged arrays: the forger gains nothing.

Every array is replaced by wrong values of every kind, written with valid checksums. Whatever
is then asked is answered, or refused with one of our exceptions; nothing is read out of bounds,
and no excessive memory is allocated.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, DocumentNotFoundError, StorageError
from bm25rag.storage import segment_files
from support.folders import QUERIES, thirty_documents
from support.forging import forgeries

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.untraced]

FILTERS: list[dict[str, Any]] = [
    {"n": {"$gt": 3}}, {"n": {"$in": [3, 4]}}, {"text": {"$lt": "t3"}},
    {"text": {"$contains": "3"}}, {"text": {"$date": {"$ne": "2024-01-01"}}},
    {"tags": {"$contains": 1}}, {"tags": ["x", 1, 1.5]}, {"none": None},
    {"day": {"$gt": date(2024, 1, 9)}}, {"day": {"$exists": False}},
]  # fmt: skip


# NaN, both infinities, 1e31, 0 and -0 as float32.
WRONG_WEIGHTS = [0x7FC00000, 0x7F800000, 0xFF800000, 0x72FC6F7C, 0, 0x80000000]


# The arrays that other code reads in an index with fields.
OF_FIELDS = re.compile(r"text_fields|code|lengths")


def use(folder: Path) -> None:
    opened = BM25Index.open(folder)
    asks: list[Callable[[], object]] = [
        lambda: [opened.search(query, k=50) for query in QUERIES],
        lambda: opened.search_batch(QUERIES, k=50).hits(),
        lambda: opened.scores("red word7"),
        lambda: opened.get([*opened.ids(), "3", "x"]),
        lambda: opened.explain("red boat", "3"),
        lambda: opened.expand("red boat", fb_docs=3),
        *(partial(opened.count, filter) for filter in FILTERS),
        lambda: (opened.vocabulary(), opened.document_frequencies(), opened.stats()),
        lambda: opened.to_scipy(),
        lambda: [opened.vectors.search({term: 0.5}, k=50) for term in ("red", "word7", "no")],
        lambda: opened.vectors.search_batch([{"red": 1, "word3": -1}] * 2, k=50).hits(),
        lambda: (opened.vectors.scores({"word7": 1}), opened.vectors.explain({"red": 1}, "3")),
        lambda: (opened.vectors.get(["3", "x"]), opened.vectors.to_scipy()),
        lambda: opened.search_hybrid("red", {"word1": 1}),
        lambda: opened.save(folder.with_name("copy")),
    ]
    refused = None
    for ask in asks:
        try:
            ask()
        except DocumentNotFoundError:
            continue
        except StorageError as error:
            refused = error
    if refused is not None:
        raise refused


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str, np.ndarray], None]:
    write = segment_files.write_arrays

    def save(folder: Path, name: str, values: np.ndarray, fields: bool = False) -> None:
        def forged(path: Path, arrays: dict[str, np.ndarray]) -> Any:
            return write(path, {**arrays, name: values} if name in arrays else arrays)

        with monkeypatch.context() as patch:
            patch.setattr(segment_files, "write_arrays", forged)
            thirty_documents(fields).save(folder)

    return save


@cache
def arrays_of_an_index(fields: bool = False) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    with pytest.MonkeyPatch.context() as patch:
        write = segment_files.write_arrays

        def look(path: Path, arrays: dict[str, np.ndarray]) -> Any:
            found.update(arrays)
            return write(path, arrays)

        patch.setattr(segment_files, "write_arrays", look)
        with tempfile.TemporaryDirectory() as folder:
            thirty_documents(fields).save(Path(folder) / "index")
    return found


@pytest.mark.parametrize("forged", [b"titl\xfftext", b"titl\xc3\xa9ext"])
def test_names_of_fields_that_are_not_utf8_are_refused_with_their_file(
    forged: bytes, tmp_path: Path, forge: Callable[..., None]
) -> None:
    """Together the second are, but not each."""
    name = "text_fields.names.data"
    assert arrays_of_an_index(True)[name].tobytes() == b"titletext"
    forge(tmp_path / "index", name, np.frombuffer(forged, np.uint8), True)
    with pytest.raises(CorruptIndexError, match=r"segment.*text_fields\.names"):
        BM25Index.verify(tmp_path / "index")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fields"),
    [(name, False) for name in sorted(arrays_of_an_index())]
    + [(name, True) for name in sorted(arrays_of_an_index(True)) if OF_FIELDS.match(name)],
)
def test_a_forged_array_is_refused_or_harmless(
    name: str, fields: bool, backend: str, tmp_path: Path, forge: Callable[..., None]
) -> None:
    """With NumPy, which cannot read beyond an array, a third of the changes, others for each."""
    first = sorted(arrays_of_an_index(fields)).index(name) % 3
    some = slice(first, None, 3) if backend == "numpy" else slice(None)
    for what, values in [*forgeries(arrays_of_an_index(fields)[name])][some]:
        if values.dtype.str[1:] not in ("u1", "u2", "u4", "u8", "b1"):
            continue  # a header cannot name it; see the test of headers
        folder = tmp_path / "index"
        forge(folder, name, values, fields)
        try:
            use(folder)
            BM25Index.verify(folder)
        except StorageError:
            pass
        except Exception as error:
            error.add_note(f"{name}: {what}")
            raise
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("documents", 0, 60_000),
        ("codes", 0, 60_000),
        ("indptr", 1, 0),
        ("indptr", 1, 2**31),
        ("indptr", -1, 2**31),
        ("code_tf", 0, 0),
        ("ids.order", 0, 2**31),
        ("texts.offsets", 1, 2**31),
        ("terms.offsets", 1, 2**31),
        ("lengths", 0, 2**31),
        ("fields.counts", 0, 2),
        ("fields.entries", 0, 29),
        ("fields.codes1", 0, 255),
        ("fields.numbers", 0, 2**62),
        ("fields.documents", 0, 2**31),
        ("fields.documents", -1, 30),
        ("vectors.documents", 0, 60_000),
        ("vectors.codes", 0, 60_000),
        ("vectors.indptr", 1, 2**31),
        ("vectors.terms.keys", 0, 0),
        ("vectors.terms.data", 0, 255),
        *(("vectors.code_weight", place, bits) for place in (0, -1) for bits in WRONG_WEIGHTS),
        *(("vectors.bounds", place, bits) for place in (0, 1) for bits in WRONG_WEIGHTS),
    ],
)
def test_verify_finds_what_is_out_of_range(
    name: str,
    place: int,
    value: int,
    tmp_path: Path,
    forge: Callable[[Path, str, np.ndarray], None],
) -> None:
    values = arrays_of_an_index()[name].copy()
    values[place] = value
    forge(tmp_path / "index", name, values)
    with pytest.raises(CorruptIndexError, match="segment"):
        BM25Index.verify(tmp_path / "index")
