"""Folders whose checksums are right and whose contents are not: whoever forged them gains nothing.

Every array and every value of the manifest is replaced by values of all wrong kinds,
written with valid checksums. Whatever is then asked is answered or refused with an
exception of ours; nothing is read out of bounds, imported or allocated beyond reason.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.errors import (
    CorruptIndexError,
    DocumentNotFoundError,
    NotAnIndexError,
    StorageError,
)
from bm25rag.storage import segment_files
from bm25rag.storage.manifest import MANIFEST
from support.folders import QUERIES, replaced, write_manifest

pytestmark = pytest.mark.usefixtures("backend")

HOSTILE_VALUES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**62, 2**64, 10**30, 1.5, float("nan"), float("inf"), "", "x",
    "../../etc/passwd", "/etc/passwd", "os.system", "\x00", [], [1], {}, {"a": 1}, [[[[]]]],
]  # fmt: skip


FILTERS: list[dict[str, Any]] = [
    {"n": {"$gt": 3}}, {"n": {"$in": [3, 4]}}, {"text": {"$lt": "t3"}},
    {"text": {"$contains": "3"}}, {"text": {"$date": {"$ne": "2024-01-01"}}},
    {"tags": {"$contains": 1}}, {"tags": ["x", 1, 1.5]}, {"none": None},
    {"day": {"$gt": date(2024, 1, 9)}}, {"day": {"$exists": False}},
]  # fmt: skip


def metadata(number: int) -> dict[str, Any]:
    """Make metadata that take every array of fields."""
    some = {"tags": ["x", number % 3, 1.5 * number], "day": date(2024, 1, 1 + number)}
    return {"n": number, "text": f"t{number % 7}", **(some if number % 4 else {})}


def index() -> BM25Index:
    """Make thirty documents."""
    return BM25Index.from_texts(
        [f"red boat word{number % 9} " * (1 + number % 5) for number in range(30)],
        metadata=[metadata(number) for number in range(30)],
        payloads=[bytes([number]) for number in range(30)],
    )


def use(folder: Path) -> None:
    """Ask everything of an index that may refuse any of it."""
    opened = BM25Index.open(folder)
    asks: list[Callable[[], object]] = [
        lambda: [opened.search(query, k=50) for query in QUERIES],
        lambda: opened.search_batch(QUERIES, k=50).hits(),
        lambda: opened.scores("red word7"),
        lambda: opened.get([*opened.ids(), "3", "x"]),
        lambda: opened.explain("red boat", "3"),
        *(partial(opened.count, filter) for filter in FILTERS),
        lambda: (opened.vocabulary, opened.document_frequencies(), opened.stats()),
        lambda: opened.to_scipy(),
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


def forgeries(values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Change an array in every way that checksums would not notice in a forged file."""
    yield "empty", values[:0]
    yield "twice as long", np.concatenate([values, values])
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64, np.bool_, np.float64, np.int64):
        if values.dtype != kind:
            yield f"of {np.dtype(kind)}", values.astype(kind)
    if not len(values):
        return
    yield "one shorter", values[:-1]
    yield "one longer", np.append(values, values[-1:])
    yield "reversed", values[::-1].copy()
    if values.dtype == np.bool_:
        yield "negated", ~values
        return
    for place in (0, len(values) // 2, len(values) - 1):
        for value in (0, 1, np.iinfo(values.dtype).max, np.iinfo(values.dtype).max // 2 + 1):
            changed = values.copy()
            changed[place] = value
            yield f"{value} at {place}", changed
    yield "all zero", np.zeros_like(values)
    yield "all the largest", np.full_like(values, np.iinfo(values.dtype).max)


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str, np.ndarray], None]:
    """Save an index with one array replaced."""
    write = segment_files.write_arrays

    def save(folder: Path, name: str, values: np.ndarray) -> None:
        def forged(path: Path, arrays: dict[str, np.ndarray]) -> Any:
            return write(path, {**arrays, name: values} if name in arrays else arrays)

        with monkeypatch.context() as patch:
            patch.setattr(segment_files, "write_arrays", forged)
            index().save(folder)

    return save


def arrays_of_an_index() -> dict[str, np.ndarray]:
    """Catch every array that a segment's file has."""
    found: dict[str, np.ndarray] = {}
    with pytest.MonkeyPatch.context() as patch:
        write = segment_files.write_arrays

        def look(path: Path, arrays: dict[str, np.ndarray]) -> Any:
            found.update(arrays)
            return write(path, arrays)

        patch.setattr(segment_files, "write_arrays", look)
        with tempfile.TemporaryDirectory() as folder:
            index().save(Path(folder) / "index")
    return found


@pytest.mark.parametrize("name", sorted(arrays_of_an_index()))
def test_a_forged_array_is_refused_or_harmless(
    name: str, tmp_path: Path, forge: Callable[[Path, str, np.ndarray], None]
) -> None:
    good = arrays_of_an_index()[name]
    for what, values in forgeries(good):
        if values.dtype.str[1:] not in ("u1", "u2", "u4", "u8", "b1"):
            continue  # a header cannot name it; see the test of headers
        folder = tmp_path / "index"
        forge(folder, name, values)
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
        ("texts.offsets", 1, 2**63),
        ("terms.offsets", 1, 2**63),
        ("lengths", 0, 2**31),
        ("fields.counts", 0, 2),
        ("fields.entries", 0, 29),
        ("fields.codes1", 0, 255),
        ("fields.numbers", 0, 2**62),
        ("fields.documents", 0, 2**31),
        ("fields.documents", -1, 30),
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


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a JSON tree, the inner ones too."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """Save an index that has changes beside its segment."""
    index().save(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.delete(["3"])
        writer.update_metadata(["5"], [{"n": 99}])
    return tmp_path / "index"


@pytest.mark.filterwarnings("ignore::bm25rag.errors.AnalyzerChangedWarning")
def test_a_forged_manifest_is_refused_or_harmless(committed: Path) -> None:
    body = json.loads((committed / MANIFEST).read_bytes())["body"]
    modules = set(sys.modules)
    for path in leaves(body):
        if "probe" in path[:2] and len(path) > 2:
            continue  # words and their stems; what changes there is a warning, tested elsewhere
        for value in HOSTILE_VALUES:
            write_manifest(committed, replaced(body, path, value))
            try:
                BM25Index.open(committed).search("red word7")
                BM25Index.verify(committed)
            except (StorageError, ValueError):
                pass
            except Exception as error:
                error.add_note(f"{path} = {value!r}")
                raise
    assert not {name for name in set(sys.modules) - modules if "passwd" in name}


@pytest.mark.parametrize("name", ["../other.bin", "/etc/passwd", "segment-0.bin/../../x", "lock"])
def test_no_path_leaves_the_folder(committed: Path, name: str) -> None:
    body = json.loads((committed / MANIFEST).read_bytes())["body"]
    body["segments"][0]["file"] = name
    write_manifest(committed, body)
    with pytest.raises(CorruptIndexError, match="file name"):
        BM25Index.open(committed)


def test_a_newer_format_says_so(committed: Path) -> None:
    path = committed / MANIFEST
    outer = json.loads(path.read_bytes())
    path.write_text(json.dumps(outer | {"version": outer["version"] + 1}))
    for mode in ("r", "w"):
        with pytest.raises(StorageError, match=r"(?s)version.*newer") as caught:
            BM25Index.open(committed, mode=mode)
        assert type(caught.value).__name__ == "FormatVersionError"


def test_a_manifest_of_brackets_only_is_refused(committed: Path) -> None:
    for content in (b"[" * 200_000, b"{}", b"[]", b"null", b"\xff\xfe", b"1" * 10_000, b""):
        (committed / MANIFEST).write_bytes(content)
        with pytest.raises((CorruptIndexError, NotAnIndexError), match=MANIFEST):
            BM25Index.open(committed)
