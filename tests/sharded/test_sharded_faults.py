"""A folder with a part that is missing, damaged or of another build is refused, and says why."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, FormatVersionError, NotAnIndexError
from bm25rag.open_shard import open_shard
from bm25rag.storage.manifest import _canonical
from support.building import segment_of_shard

TEXTS = [f"boat {number % 3} word{number}" for number in range(12)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    BM25Index.build(TEXTS, tmp_path / "it", shards=3)
    return tmp_path / "it"


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    outer = json.loads(path.read_text(encoding="utf-8"))
    change(outer["body"])
    outer["checksum"] = zlib.crc32(_canonical(outer["body"]))
    path.write_text(json.dumps(outer), encoding="utf-8")


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def statistics(folder: Path) -> Path:
    (path,) = folder.glob("statistics-*.bin")
    return path


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_a_file_of_a_shard_that_is_missing_is_named(folder: Path, shard: int) -> None:
    path = segment_of_shard(folder, shard)
    path.unlink()
    with pytest.raises(CorruptIndexError, match=rf"{path.name}: is missing; restore the folder"):
        BM25Index.open(folder)
    with pytest.raises(CorruptIndexError, match=path.name):
        open_shard(folder, shard)
    assert len(open_shard(folder, (shard + 1) % 3).searcher) == 4  # no other shard is looked at


@pytest.mark.parametrize("forged", [[4, 5, 4], [(1 << 62) - 1, (1 << 62) - 1, 4]])
def test_numbers_of_documents_that_a_shard_has_not_are_refused(
    folder: Path, forged: list[int]
) -> None:
    def forge(body: dict[str, Any]) -> None:
        body["shards"]["documents"] = forged

    edit(folder / "manifest.json", forge)
    with pytest.raises(CorruptIndexError, match=r"manifest\.json"):
        open_shard(folder, 1)


def test_a_missing_or_damaged_file_of_statistics_is_named(folder: Path) -> None:
    path = statistics(folder)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(CorruptIndexError, match=f"{path.name}: is .* bytes long"):
        BM25Index.open(folder)
    path.unlink()
    with pytest.raises(CorruptIndexError, match=path.name):
        BM25Index.open(folder)


def test_any_damaged_byte_of_the_statistics_is_noticed_before_it_counts(folder: Path) -> None:
    path = statistics(folder)
    expected = BM25Index.open(folder).search("boat 1 word5", k=20)
    for position in range(0, path.stat().st_size, 7):
        flip(path, position)
        try:
            found = BM25Index.open(folder).search("boat 1 word5", k=20)
        except CorruptIndexError as error:
            assert path.name in str(error)  # noqa: PT017 - it may not be raised
        else:
            assert found == expected
        with pytest.raises(CorruptIndexError):
            BM25Index.verify(folder)
        flip(path, position)
    BM25Index.verify(folder)


def test_a_damaged_shard_is_refused_when_it_is_used_or_verified(folder: Path) -> None:
    path = segment_of_shard(folder, 1)
    flip(path, path.stat().st_size - 200)
    for check in (
        lambda: BM25Index.verify(folder),
        lambda: BM25Index.verify(folder),
        lambda: BM25Index.open(folder, verify=True),
        lambda: BM25Index.open(folder, untrusted=True),
    ):
        with pytest.raises(CorruptIndexError, match=path.name):
            check()


def test_statistics_that_the_shards_do_not_have_are_noticed_by_verify(
    folder: Path, tmp_path: Path
) -> None:
    """A forged folder, whose checksums are right."""
    BM25Index.build([*TEXTS[:-1], "boat boat"], tmp_path / "other", shards=3)
    shutil.copy(statistics(tmp_path / "other"), folder)
    other = json.loads((tmp_path / "other" / "manifest.json").read_text(encoding="utf-8"))["body"]
    path = folder / other["shards"]["statistics"]["file"]
    edit(folder / "manifest.json", lambda body: body.update(shards=other["shards"]))
    BM25Index.open(folder)
    for check in (
        lambda: BM25Index.verify(folder),
        lambda: BM25Index.open(folder, verify=True),
        lambda: BM25Index.open(folder, untrusted=True),
    ):
        with pytest.raises(CorruptIndexError, match=f"{path.name}: does not agree"):
            check()


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(shards=None),
        lambda body: body["shards"].update(segments=[], documents=[]),
        lambda body: body["shards"]["segments"].pop(),
        lambda body: body["shards"].update(segments=[1, 1, 2]),
        lambda body: body["shards"].update(documents=[4, 4, -1]),
        lambda body: body["shards"].pop("documents"),
        lambda body: body["shards"].update(statistics=None),
        lambda body: body["shards"]["statistics"].update(file="../statistics.bin"),
        lambda body: body["shards"]["statistics"].update(file=body["segments"][0]["file"]),
        lambda body: body["shards"].update(capacity=None),
        lambda body: body["shards"].update(tokens=6),
        lambda body: body["shards"].update(tokens=[]),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    edit(folder / "manifest.json", change)
    with pytest.raises(CorruptIndexError):
        BM25Index.open(folder)


def test_a_manifest_that_is_damaged_or_newer_is_refused(folder: Path) -> None:
    path = folder / "manifest.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"capacity": ', '"capacity": 1'), encoding="utf-8")
    with pytest.raises(CorruptIndexError, match=r"manifest\.json: cannot be read"):
        BM25Index.open(folder)
    path.write_text(text.replace('"version": 1', '"version": 99'), encoding="utf-8")
    with pytest.raises(FormatVersionError, match="newer than 1: install bm25rag"):
        BM25Index.open(folder)
    path.write_text('{"format": "other"}', encoding="utf-8")
    with pytest.raises(NotAnIndexError, match="is not the manifest"):
        BM25Index.open(folder)


def test_the_number_of_a_shard_is_checked(folder: Path) -> None:
    with pytest.raises(ValueError, match="number must be less than 3, the shards, got 3"):
        open_shard(folder, 3)
    with pytest.raises(ValueError, match="number must be an integer >= 0"):
        open_shard(folder, -1)
    with pytest.raises(TypeError, match="number must be an integer"):
        open_shard(folder, "0")  # type: ignore[arg-type]


def test_the_documents_of_each_shard_are_verified(folder: Path) -> None:
    """They say which rows the documents of a shard have in the whole index."""
    edit(folder / "manifest.json", lambda body: body["shards"].update(documents=[5, 3, 4]))
    with pytest.raises(CorruptIndexError, match="does not agree with the shards"):
        BM25Index.verify(folder)


def test_files_that_others_left_in_the_folder_do_no_harm(folder: Path) -> None:
    (folder / "notes.txt").touch()
    assert len(BM25Index.open(folder)) == 12
