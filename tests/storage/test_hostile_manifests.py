"""Manifests with a valid checksum and forged contents: the forger gains nothing.

Every value is replaced by wrong values of every kind. Whatever is then asked is answered, or
refused with one of our exceptions; nothing is imported, and no excessive memory is allocated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, NotAnIndexError, StorageError
from bm25rag.kernels import backend
from bm25rag.storage.manifest import MANIFEST, VERSION
from support.folders import replaced, thirty_documents, write_manifest

HOSTILE_VALUES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**62, 2**64, 10**30, 1.5, float("nan"), float("inf"), "", "x",
    "../../etc/passwd", "/etc/passwd", "os.system", "\x00", [], [1], {}, {"a": 1}, [[[[]]]],
]  # fmt: skip


pytestmark = pytest.mark.untraced


@pytest.fixture(autouse=True)
def _fastest() -> Iterator[None]:
    """Search on the default backend: manifests are read before any backend is involved."""
    with backend.use(backend.available()[0]):
        yield


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to every value of a JSON tree, inner ones included.

    Of a list the first and the last: 175 stop words are read alike.
    """
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for number in {0, len(value) - 1} if value else ():
            yield from leaves(value[number], (*path, number))


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    thirty_documents().save(tmp_path / "index")
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.delete(["3"])
        writer.update_metadata(["5"], [{"n": 99}])
    return tmp_path / "index"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bm25rag.errors.AnalyzerChangedWarning")
def test_a_forged_manifest_is_refused_or_harmless(committed: Path) -> None:
    body = json.loads((committed / MANIFEST).read_bytes())["body"]
    modules = set(sys.modules)
    for path in leaves(body):
        if "probe" in path[:2] and len(path) > 2:
            continue  # words and their stems; changes there give a warning, tested elsewhere
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
    path.write_text(json.dumps(outer | {"version": VERSION + 1}))
    for mode in ("r", "w"):
        with pytest.raises(StorageError, match=r"(?s)version.*newer") as caught:
            BM25Index.open(committed, mode=mode)
        assert type(caught.value).__name__ == "FormatVersionError"


def test_a_manifest_of_brackets_only_is_refused(committed: Path) -> None:
    for content in (b"[" * 200_000, b"{}", b"[]", b"null", b"\xff\xfe", b"1" * 10_000, b""):
        (committed / MANIFEST).write_bytes(content)
        with pytest.raises((CorruptIndexError, NotAnIndexError), match=MANIFEST):
            BM25Index.open(committed)
