"""What tells states of an index from each other, and what is logged of commits."""

from __future__ import annotations

import copy
import logging
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError
from bm25rag.open_shard import open_shard

TEXTS = ["red boat", "green tea", "blue sea", "a red sea"]
WRITES: dict[str, Callable[[BM25Index], object]] = {
    "add": lambda index: index.add(["a new boat"]),
    "delete": lambda index: index.delete(index.ids()[:1]),
    "update_metadata": lambda index: index.update_metadata(index.ids()[-1:], [{"n": len(index)}]),
    "replace": lambda index: index.add(["sea"], ids=["x"], on_duplicate="replace"),
}
KINDS: dict[str, dict[str, Any]] = {"plain": {}, "sharded": {"shards": 2}}
kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
@settings(max_examples=settings().max_examples // 3)
@given(steps=st.lists(st.sampled_from([*WRITES, "commit", "rollback", "nothing"]), max_size=6))
def test_every_visible_change_has_an_id_of_its_own_and_every_commit_one_for_all(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("ids") / "it"
    reader = BM25Index.build(TEXTS, folder, **KINDS[kind])
    committed, seen = reader.commit_id, {reader.commit_id}
    with BM25Index.open(folder, mode="w") as writer:
        assert writer.commit_id == committed
        for step in steps:
            before, documents = writer.commit_id, writer.get(writer.ids())
            if step == "commit":
                writer.commit()
                committed = writer.commit_id
                assert reader.refresh()
                assert reader.commit_id == committed == BM25Index.open(folder).commit_id
                assert committed not in seen
            elif step == "rollback":
                writer.rollback()
                assert writer.commit_id == committed
            elif step == "nothing":
                writer.delete(["unknown"])
                assert writer.commit_id == before
            else:
                WRITES[step](writer)
                changed = writer.get(writer.ids()) != documents
                assert not changed or writer.commit_id not in seen
            assert reader.commit_id == committed
            seen.add(writer.commit_id)


@kinds
def test_a_commit_has_its_id_in_other_processes_and_copies(tmp_path: Path, kind: str) -> None:
    index = BM25Index.build(TEXTS, tmp_path / "it", **KINDS[kind])
    shutil.copytree(tmp_path / "it", tmp_path / "copy")
    script = (
        "import sys; from bm25rag import BM25Index; print(BM25Index.open(sys.argv[1]).commit_id)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "copy")]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert found == index.commit_id == pickle.loads(pickle.dumps(index)).commit_id
    for folder in ("it", "copy"):  # which part here: commits of the same number
        with BM25Index.open(tmp_path / folder, mode="w") as writer:
            writer.update_metadata(["0"], [{"of": folder}])
    first, second = (BM25Index.open(tmp_path / folder).commit_id for folder in ("it", "copy"))
    assert first != second
    assert first.partition("-")[0] == second.partition("-")[0] == "2"


def test_an_index_in_memory_shares_its_id_with_copies_until_one_is_changed() -> None:
    index = BM25Index.from_texts(TEXTS)
    copies = [copy.copy(index), index.snapshot()]
    assert {one.commit_id for one in copies} == {index.commit_id}
    for one in [index, copies[0]]:
        one.add(["another"])
    copies += [copy.deepcopy(index), pickle.loads(pickle.dumps(index))]
    assert len({one.commit_id for one in [index, *copies]}) == 5
    assert BM25Index().commit_id != BM25Index().commit_id


def test_what_answers_otherwise_has_another_id(tmp_path: Path) -> None:
    index = BM25Index.build(TEXTS, tmp_path / "it", shards=2)
    same = BM25Index.open(tmp_path / "it")
    assert index.tune(k1=2.0).commit_id == same.tune(k1=2.0).commit_id
    shards = [open_shard(tmp_path / "it", number).searcher for number in (0, 1)]
    views = [index, index.tune(k1=2.0), index.tune(k1=3.0), *shards]
    views += [index.restricted({"0"}), index.restricted({"1"})]
    assert len({view.commit_id for view in views}) == len(views)


def test_what_is_kept_with_an_index_is_seen_and_changes_its_id(tmp_path: Path) -> None:
    index = BM25Index.from_texts(TEXTS)
    before = index.commit_id
    index.save(tmp_path / "it")
    assert index.commit_id == before
    index.save(tmp_path / "it", extra={"of": "mine"})
    assert index.commit_id != before


@kinds
def test_commits_merges_refreshes_and_refused_files_are_logged(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="bm25rag")
    folder = tmp_path / "it"
    reader = BM25Index.build(TEXTS, folder, **KINDS[kind])
    caplog.clear()
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["0"])
        writer.compact()
    assert reader.refresh()
    assert not reader.refresh()
    told = [(record.name, record.getMessage()) for record in caplog.records]
    names = [name for name, _ in told]
    assert names.count("bm25rag.commits") == names.count("bm25rag.refreshes") == 1
    assert "bm25rag.merges" in names
    assert all(str(folder) in said and reader.commit_id in said for name, said in told
               if name != "bm25rag.merges")  # fmt: skip
    (path, *_) = folder.rglob("segment-*.bin")
    path.write_bytes(path.read_bytes()[:-1])
    caplog.clear()
    with pytest.raises(CorruptIndexError):
        BM25Index.open(folder)
    assert {record.name for record in caplog.records} == {"bm25rag.files"}
    assert path.name in caplog.text


def test_without_logging_nothing_of_it_is_imported() -> None:
    script = (
        "import sys; from bm25rag import BM25Index; index = BM25Index.from_texts(['a b', 'c d']);"
        " index.add(['e']); index.compact(); sys.exit('logging' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
