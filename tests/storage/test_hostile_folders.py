"""A damaged folder gives right answers or one clear exception, whatever was damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.errors import BM25Error, CorruptIndexError, NotAnIndexError, StorageError
from support.folders import QUERIES

needs_links = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "index"
    index = BM25Index.from_texts(
        [f"red boat word{number % 9} " * (1 + number % 5) for number in range(60)],
        metadata=[{"n": number, "name": f"é{number}"} for number in range(60)],
        payloads=[bytes([number]) * 20 for number in range(60)],
        vectors=[{"red": number / 7, f"word{number % 9}": 1.0} for number in range(60)],
    )
    index.save(folder)
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["3", "4"])
        writer.add(["green sea"])
    return folder


@pytest.fixture
def broken(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "broken"))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def everything(index: BM25Index) -> tuple[object, ...]:
    return (
        index.ids(),
        index.get(index.ids()),
        [index.search(query, k=100) for query in QUERIES],
        index.vocabulary(),
        index.document_frequencies().tolist(),
        index.to_scipy().toarray().tobytes(),
        index.count({"n": {"$gt": 30}}),
        index.vectors.get(index.ids()),
        [index.vectors.search({"red": 1.0, word: -9.0}, k=100) for word in ("word7", "no")],
    )


def holds_or_refuses(folder: Path, expected: tuple[object, ...], what: str) -> bool:
    """Open in each way; return whether the damage was refused (it may lie where nothing reads)."""
    refused = []
    for mmap in (True, False):
        try:
            found = everything(BM25Index.open(folder, mmap=mmap))
        except StorageError:
            refused.append(True)
        else:
            assert found == expected, what
            refused.append(False)
    try:
        BM25Index.verify(folder)
    except StorageError:
        refused.append(True)
    assert not any(refused) or refused[-1], f"{what}: verify saw nothing"
    return any(refused)


def damaged(path: Path, generator: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    good = path.read_bytes()
    size = len(good)
    if size:
        for place in {0, size - 1, *generator.integers(0, size, 10).tolist()}:
            flipped = bytearray(good)
            flipped[place] ^= 1 << int(generator.integers(8))
            yield f"bit of byte {place}", bytes(flipped)
        for length in {0, 1, size // 2, size - 1}:
            yield f"cut to {length}", good[:length]
        yield "all zeros", bytes(size)
        yield "all ones", b"\xff" * size
        yield "random", generator.bytes(size)
    yield "longer", good + b"\x00"


def test_any_damage_to_any_file_is_refused_or_harmless(saved: Path, tmp_path: Path) -> None:
    expected = everything(BM25Index.open(saved))
    generator = np.random.default_rng(5)
    target = tmp_path / "broken"
    refused = 0
    for path in files(saved):
        name = path.relative_to(saved)
        for what, content in damaged(path, generator):
            shutil.copytree(saved, target)
            (target / name).write_bytes(content)
            refused += holds_or_refuses(target, expected, f"{name}: {what}")
            shutil.rmtree(target)
    assert refused > 10


def test_verify_names_the_damaged_file(saved: Path, broken: Path) -> None:
    biggest = max(files(broken), key=lambda path: path.stat().st_size)
    biggest.write_bytes(b"\x00" * biggest.stat().st_size)
    for check in (BM25Index.verify, lambda path: BM25Index.open(path, verify=True)):
        with pytest.raises(CorruptIndexError, match=biggest.name):
            check(broken)
    BM25Index.verify(saved)


def test_a_missing_file_is_refused(saved: Path, tmp_path: Path) -> None:
    expected = everything(BM25Index.open(saved))
    for number, path in enumerate(files(saved)):
        target = Path(shutil.copytree(saved, tmp_path / str(number)))
        (target / path.relative_to(saved)).unlink()
        holds_or_refuses(target, expected, f"{path.name} missing")


def test_a_folder_that_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "notes.txt").write_text("hello")
    for place in ("missing", "file", "stranger"):
        for mode in ("r", "w"):
            with pytest.raises(NotAnIndexError, match=place):
                BM25Index.open(tmp_path / place, mode=mode)
        with pytest.raises(NotAnIndexError, match=place):
            BM25Index.verify(tmp_path / place)
    assert not (tmp_path / "missing").exists()
    assert [path.name for path in (tmp_path / "stranger").iterdir()] == ["notes.txt"]


def test_a_folder_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises((BM25Error, ValueError)):
        BM25Index.from_texts(["red"]).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_save_that_fails_leaves_the_folder_as_it_was(
    broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = everything(BM25Index.open(broken))

    def full(*_: object, **__: object) -> None:
        message = "no space left on device"
        raise OSError(28, message)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        patch.setattr("os.rename", full)
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space left"):
            BM25Index.from_texts(["something else"]).save(broken)
    assert everything(BM25Index.open(broken)) == expected
    BM25Index.verify(broken)


def link(place: Path, target: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def make_folder(place: Path) -> None:
    place.unlink(missing_ok=True)
    place.mkdir()


# What may stand in place of a file.
STRANGE: dict[str, Callable[[Path], None]] = {
    "a folder": make_folder,
    "a link to nothing": lambda place: link(place, place.with_name("nothing")),
    "a link to itself": lambda place: link(place, place),
    "a link to a folder": lambda place: link(place, place.parent),
}
WAYS: dict[str, Callable[[Path, BM25Index], object]] = {
    "open": lambda folder, _: BM25Index.open(folder),
    "open to write": lambda folder, _: BM25Index.open(folder, mode="w"),
    "verify": lambda folder, _: BM25Index.verify(folder),
    "refresh": lambda _, reader: reader.refresh(),
    "save": lambda folder, _: BM25Index.from_texts(["other"]).save(folder),
}


@needs_links
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", STRANGE)
def test_what_lies_in_the_place_of_the_manifest_is_named(broken: Path, what: str, way: str) -> None:
    reader = BM25Index.open(broken)
    STRANGE[what](broken / "manifest.json")
    with pytest.raises(CorruptIndexError, match=r"manifest\.json: is .*; remove it"):
        WAYS[way](broken, reader)


@needs_links
@pytest.mark.parametrize("what", STRANGE)
def test_what_lies_in_the_place_of_a_segment_is_named(broken: Path, what: str) -> None:
    segment = next(broken.glob("segment-*"))
    STRANGE[what](segment)
    for way in ("open", "open to write", "verify"):
        with pytest.raises(CorruptIndexError, match=f"{segment.name}: is .*; remove it"):
            WAYS[way](broken, BM25Index())


@needs_links
@pytest.mark.parametrize("what", [*STRANGE, "a link to a file"])
def test_what_lies_in_the_place_of_the_lock_stops_writers_and_not_readers(
    broken: Path, tmp_path: Path, what: str
) -> None:
    (tmp_path / "other").write_text("not ours")
    strange = STRANGE | {"a link to a file": lambda place: link(place, tmp_path / "other")}
    strange[what](broken / "lock")
    expected = everything(BM25Index.open(broken))
    BM25Index.verify(broken)
    for way in ("open to write", "save"):
        with pytest.raises(CorruptIndexError, match=r"lock: is .*; remove it"):
            WAYS[way](broken, BM25Index())
    assert everything(BM25Index.open(broken)) == expected
    assert (tmp_path / "other").read_text() == "not ours"


@needs_links
@pytest.mark.parametrize("way", ["open", "open to write", "verify", "save"])
def test_a_folder_that_is_a_link_to_itself_is_named(tmp_path: Path, way: str) -> None:
    link(tmp_path / "loop", tmp_path / "loop")
    with pytest.raises(NotAnIndexError, match="loop is a link to itself"):
        WAYS[way](tmp_path / "loop", BM25Index())


@needs_links
def test_files_behind_links_are_read_and_a_commit_leaves_what_they_lead_to(
    saved: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "linked"
    folder.mkdir()
    for path in files(saved):
        if path.name != "lock":
            (folder / path.name).symlink_to(path)
    expected = everything(BM25Index.open(saved))
    BM25Index.verify(folder)
    assert everything(BM25Index.open(folder)) == expected
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["7"])
        writer.compact()
    BM25Index.verify(folder)
    assert "7" not in BM25Index.open(folder)
    BM25Index.verify(saved)
    assert everything(BM25Index.open(saved)) == expected


def test_a_manifest_that_could_not_be_read_again_is_not_written(
    broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = everything(BM25Index.open(broken))
    monkeypatch.setattr("bm25rag.storage.manifest.LARGEST_MANIFEST", 10_000)
    with pytest.raises(ValueError, match="keep less in extra"):
        BM25Index.from_texts(["red"]).save(broken, extra={"large": "x" * 10_000})
    deep: dict[str, object] = {}
    for _ in range(300):
        deep = {"deeper": deep}
    with pytest.raises(ValueError, match=r"extra must be .*nested more than 100 levels"):
        BM25Index.from_texts(["red"]).save(broken, extra=deep)
    assert everything(BM25Index.open(broken)) == expected


@pytest.mark.parametrize("mode", ["x", "rw", "", None, 3, True])
def test_a_wrong_mode_is_named(broken: Path, mode: object) -> None:
    with pytest.raises((TypeError, ValueError), match="mode"):
        BM25Index.open(broken, mode=mode)
