"""What is damaged is dropped and told, and all else stays as it was."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError, LockedError, NotAnIndexError
from bm25rag.open_shard import open_shard
from bm25rag.storage import repair
from support.building import segment_of_shard
from support.commands import fails, ok
from support.folders import no_leftovers
from support.killing import killed_at

KINDS: dict[str, dict[str, Any]] = {"plain": {}, "sharded": {"shards": 3}}


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.merging.policy.LEAST", 0)
        patch.setattr("bm25rag.storage.checksummed_file.BLOCK", 256)  # not all is in one block
        yield


@pytest.fixture(scope="module", params=KINDS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an index with several segments, with deletions and new metadata of them."""
    folder = tmp_path_factory.mktemp(request.param) / "it"
    texts = [f"boat {number % 3} word{number}" * 9 for number in range(60)]
    BM25Index.build(texts, folder, **KINDS[request.param])
    for step in range(2):
        with BM25Index.open(folder, mode="w") as writer:
            writer.add([f"red boat {step}", f"sea {step}"], metadata=[{"step": step}] * 2)
            writer.delete([str(20 * step + 1)])
            writer.update_metadata([str(20 * step + 2)], [{"new": step}])
    assert BM25Index.open(folder).stats()["segments"] >= 2
    return folder


def state(folder: Path) -> Any:
    BM25Index.verify(folder)
    index = BM25Index.open(folder)
    return index.get(index.ids())


def flip(path: Path, place: float | bytes) -> None:
    """Change one bit of a file: at a share of its length, or where some bytes are."""
    data = bytearray(path.read_bytes())
    at = data.index(place) if isinstance(place, bytes) else int(place * (len(data) - 1))
    data[at] ^= 1
    path.unlink()  # it may have another name in another folder
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "empty": lambda path: path.write_bytes(b""),
}


@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_all_that_is_not_damaged_stays_and_all_that_goes_is_named(
    original: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "it"
    shutil.copytree(original, folder)
    before = {one.id: one for one in state(folder)}
    files = sorted(path for path in folder.rglob("*.bin"))
    chosen = data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=3, unique=True))
    for path in chosen:
        kind = data.draw(st.sampled_from(["flipped", *DAMAGES]))
        if kind == "flipped":
            flip(path, data.draw(st.floats(0, 1)))
        else:
            DAMAGES[kind](path)
    with pytest.raises(CorruptIndexError):
        BM25Index.verify(folder)
    told = BM25Index.repair(folder, dry_run=True)
    with pytest.raises(CorruptIndexError):
        BM25Index.verify(folder)
    assert BM25Index.repair(folder) == told
    after = {one.id: one for one in state(folder)}
    assert all(before[id] == one for id, one in after.items())
    named = {id for damage in told for id in damage.ids}
    unknown = [damage.unknown for damage in told]
    gone = before.keys() - after.keys()
    if None not in unknown:
        assert len(named & before.keys()) <= len(gone) <= len(named) + sum(filter(None, unknown))
    assert named & before.keys() <= gone
    assert not named & after.keys()
    if all(n == 0 for n in unknown):
        assert gone == named & before.keys()
    for damage in told:
        assert damage.path in damage.problem
        assert any(Path(damage.path) == path for path in chosen) or "changes" in str(chosen)
    assert BM25Index.repair(folder) == []
    aside = {path.name for path in folder.glob("*.damaged")}
    assert len(aside) == sum(not _was_missing(damage.problem) for damage in told)
    with BM25Index.open(folder, mode="w") as writer:
        assert writer.add(["a new boat"]) == ["64"]


def _was_missing(problem: str) -> bool:
    return problem.endswith("bin: is missing")


def test_what_is_whole_is_left_alone(original: Path, tmp_path: Path) -> None:
    shutil.copytree(original, tmp_path / "it")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "it").rglob("*.*")}
    assert BM25Index.repair(tmp_path / "it") == []
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "it").rglob("*.*")}


@pytest.mark.parametrize("name", ["read_views", "read_statistics"])
def test_a_commit_meanwhile_is_no_damage(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "read_statistics" and "plain" in str(original):
        pytest.skip("a plain index stores no statistics")
    folder = shutil.copytree(original, tmp_path / "it")
    then = getattr(repair, name)

    def commit_first(*given: Any) -> Any:
        monkeypatch.undo()
        with BM25Index.open(folder, mode="w") as writer:
            writer.compact()  # removes the files of the commit before
        return then(*given)

    monkeypatch.setattr(repair, name, commit_first)
    assert BM25Index.repair(folder, dry_run=True) == []


def test_where_a_repair_ends_there_is_the_damaged_index_or_the_repaired_one(
    original: Path, tmp_path: Path
) -> None:
    shutil.copytree(original, tmp_path / "damaged")
    path = max((tmp_path / "damaged").rglob("segment-*"), key=lambda path: path.stat().st_size)
    flip(path, 0.6)
    shutil.copytree(tmp_path / "damaged", tmp_path / "repaired")
    (damage,) = BM25Index.repair(tmp_path / "repaired")
    expected, seen = state(tmp_path / "repaired"), set()
    for number in count():
        folder = tmp_path / f"killed{number}"
        shutil.copytree(tmp_path / "damaged", folder)
        if not killed_at(number, lambda folder=folder: BM25Index.repair(folder)):  # type: ignore[misc]
            break
        again = BM25Index.repair(folder)
        assert [one.ids for one in again] in ([], [damage.ids])
        seen.add(bool(again))
        assert state(folder) == expected
        assert len([*folder.glob("*.damaged")]) == 1
    assert seen == {True, False}


def test_the_shards_stay_what_they_were(tmp_path: Path) -> None:
    BM25Index.build([f"boat {number}" for number in range(9)], tmp_path / "it", shards=3)
    path = segment_of_shard(tmp_path / "it", 1)
    path.unlink()
    with pytest.raises(CorruptIndexError):
        BM25Index.open(tmp_path / "it")
    (damage,) = BM25Index.repair(tmp_path / "it")
    assert (damage.path, damage.ids, damage.unknown) == (str(path), [], None)
    assert [one.id for one in state(tmp_path / "it")] == ["0", "1", "2", "6", "7", "8"]
    assert open_shard(tmp_path / "it", 2).searcher.ids() == ["6", "7", "8"]
    assert not len(open_shard(tmp_path / "it", 1).searcher)


def test_two_files_with_one_id_are_not_both_kept(tmp_path: Path) -> None:
    from support.forging import Folder

    BM25Index.from_texts(["red boat", "sea"]).save(tmp_path / "one")
    forged = Folder.read(tmp_path / "one")
    forged.pieces.append(forged.pieces[0])
    forged.write(tmp_path / "it")
    with pytest.raises(CorruptIndexError, match="another file has"):
        BM25Index.verify(tmp_path / "it")
    (damage,) = BM25Index.repair(tmp_path / "it")
    assert damage.ids == ["0", "1"]
    assert [one.id for one in state(tmp_path / "it")] == ["0", "1"]


def test_settings_stay_although_their_tokenizer_is_not_there(tmp_path: Path) -> None:
    from bm25rag import Analyzer

    index = BM25Index(Analyzer(tokenizer=str.split), k1=0.7)
    index.add(["Red boat"])
    index.save(tmp_path / "it", extra={"mine": 1})
    with BM25Index.open(tmp_path / "it", mode="w", tokenizer=str.split) as writer:
        writer.add(["Blue sea"])
    assert len([*(tmp_path / "it").glob("segment-*")]) == 2
    newest = max((tmp_path / "it").glob("segment-*"), key=lambda path: path.stat().st_mtime_ns)
    flip(newest, b"Blue sea")
    (damage,) = BM25Index.repair(tmp_path / "it")
    assert damage.ids == ["1"]
    opened = BM25Index.open(tmp_path / "it", tokenizer=str.split)
    assert (opened.k1, opened.extra, opened.ids()) == (0.7, {"mine": 1}, ["0"])
    assert {path.name for path in (tmp_path / "it").glob("*.damaged")} == {f"{newest.name}.damaged"}
    (tmp_path / "it" / f"{newest.name}.damaged").unlink()
    assert no_leftovers(tmp_path / "it")


def test_what_cannot_be_repaired_is_said(original: Path, tmp_path: Path) -> None:
    folder = tmp_path / "it"
    shutil.copytree(original, folder)
    with BM25Index.open(folder, mode="w"):
        with pytest.raises(LockedError):
            BM25Index.repair(folder)
        assert BM25Index.repair(folder, dry_run=True) == []
    (folder / "manifest.json").write_text('{"format": "x"')
    with pytest.raises(CorruptIndexError, match="restore the folder"):
        BM25Index.repair(folder)
    with pytest.raises(NotAnIndexError):
        BM25Index.repair(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


def test_the_command_line_repairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    BM25Index.from_texts(["red boat", "sea"], ids=["one", "two"]).save("it")
    assert ok("repair", "it").stdout == "it: no damage found\n"
    (path,) = Path("it").glob("segment-*")
    flip(path, b"red boat")
    told = json.loads(ok("repair", "it", "--dry-run", "--json").stdout)
    assert told[0]["ids"] == ["one", "two"]
    assert told[0]["path"] == os.path.realpath(path)
    fails(3, path.name, "verify", "it")
    shown = ok("repair", "it").stdout.splitlines()
    assert shown[0].endswith("2 documents")
    assert shown[1:] == ["  one", "  two"]
    ok("verify", "it")
    assert BM25Index.open("it").ids() == []
