"""Sharded indexes behind URLs, whole and shard by shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bm25rag import BM25Index
from bm25rag.errors import NotAnIndexError
from bm25rag.open_shard import merge_hits, open_shard
from bm25rag.storage.remote_mirror import find_cache
from support.building import segment_of_shard
from support.folders import no_leftovers
from support.killing import Killed

URL = "memory://store/pages"
TEXTS = [f"page {n} about cats {'and dogs ' * (n % 3)}" for n in range(60)]
QUERIES = ["cats and dogs", "page 7 dogs", "nothing else"]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Build an index of three shards and upload it; the cache is empty."""
    monkeypatch.setenv("BM25RAG_CACHE", str(tmp_path / "cache"))
    MemoryFileSystem.store.clear()
    folder = tmp_path / "pages"
    BM25Index.build(TEXTS, folder, shards=3)
    upload(folder)
    yield folder
    MemoryFileSystem.store.clear()


def upload(folder: Path) -> None:
    MemoryFileSystem.store.clear()
    for path in folder.rglob("*"):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            MemoryFileSystem().pipe_file(f"/store/pages/{name}", path.read_bytes())


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the names of the files that are fetched from now on, as they are."""
    log: list[str] = []
    real = MemoryFileSystem.get_file

    def noted(self: Any, path: str, *rest: Any, **options: Any) -> None:
        log.append(path.removeprefix("/store/pages/"))
        real(self, path, *rest, **options)

    monkeypatch.setattr(MemoryFileSystem, "get_file", noted)
    return log


def change(folder: Path) -> None:
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["cats and one more dog"], ids=["new"])
    upload(folder)


def test_a_sharded_index_opens_from_a_url(folder: Path) -> None:
    local = BM25Index.open(folder)
    for opened in (BM25Index.open(URL), BM25Index.open(URL), BM25Index.open(URL, offline=True)):
        assert opened.stats()["shards"] == 3
        for query in QUERIES:
            assert opened.search(query) == local.search(query)
    BM25Index.verify(URL)
    BM25Index.verify(URL)
    assert BM25Index.open(URL, verify=True, untrusted=True).ids() == local.ids()


def test_after_a_commit_only_new_files_are_fetched(folder: Path, fetched: list[str]) -> None:
    reader = BM25Index.open(URL)
    assert len(fetched) == 4
    fetched.clear()
    change(folder)
    assert reader.refresh()
    assert reader.search("one more")[0].id == "new"
    kinds = sorted(Path(name).name.split("-")[0] for name in fetched)
    assert kinds == ["segment", "statistics"]
    assert no_leftovers(Path(find_cache(URL, None, None)[1]))


def test_a_shard_fetches_only_itself_and_the_statistics(folder: Path, fetched: list[str]) -> None:
    shard = open_shard(URL, 1)
    assert len(fetched) == 2
    assert sorted(fetched)[0] == segment_of_shard(folder, 1).name
    assert sorted(fetched)[1].startswith("statistics")
    assert shard.first_row == 20
    with pytest.raises(NotAnIndexError, match="one shard alone: open the URL once"):
        BM25Index.open(URL, offline=True)
    with pytest.raises(ValueError, match="number must be less than 3"):
        open_shard(URL, 3)
    shards = [open_shard(URL, number) for number in range(3)]
    whole = BM25Index.open(folder)
    for query in QUERIES:
        answers = [one.searcher.search(query) for one in shards]
        assert merge_hits(answers, 10) == whole.search(query)
    assert len(fetched) == 4


def test_shards_of_one_cache_do_not_disturb_each_other(folder: Path, fetched: list[str]) -> None:
    whole = BM25Index.open(URL)
    shards = [open_shard(URL, number) for number in range(2)]
    assert len(fetched) == 4
    change(folder)
    fetched.clear()
    for number in range(3):
        assert open_shard(URL, number).commit.startswith("2-")
    assert len(fetched) == 2  # the statistics, and what is new in the last shard
    assert shards[0].searcher.search("cats")
    assert whole.refresh()
    BM25Index.open(URL, offline=True, verify=True)
    assert no_leftovers(Path(find_cache(URL, None, None)[1]))


def test_an_index_built_anew_under_the_same_number_replaces_the_cache(
    folder: Path, tmp_path: Path
) -> None:
    reader = BM25Index.open(URL)
    other = tmp_path / "other"
    BM25Index.build([*TEXTS, "another cat"], other, shards=2)
    upload(other)
    assert reader.refresh()
    assert len(reader) == len(TEXTS) + 1
    BM25Index.open(URL, offline=True, verify=True)


def test_a_plain_index_and_a_sharded_one_are_told_apart(folder: Path) -> None:
    BM25Index.open(URL)
    MemoryFileSystem.store.clear()
    BM25Index.from_texts(TEXTS).save(URL)
    assert BM25Index.open(URL).stats()["shards"] == 0
    assert BM25Index.open(URL, offline=True).stats()["shards"] == 0
    with pytest.raises(NotAnIndexError):
        open_shard(URL, 0)


def test_a_build_needs_a_folder_of_this_machine() -> None:
    with pytest.raises(ValueError, match="folder of this machine"):
        BM25Index.build(TEXTS, URL, shards=2)


def test_a_backup_over_another_index_leaves_one_of_both_wherever_it_ends(
    folder: Path, tmp_path: Path
) -> None:
    """Both have a commit of the same number, as every index that is built anew."""
    other = tmp_path / "other"
    BM25Index.build([f"ship {number}" for number in range(40)], other, shards=2)
    old, new = (sorted(BM25Index.open(one).ids()) for one in (folder, other))
    states = []
    for number in count():
        upload(folder)
        killed = killed_in_store(number, lambda: BM25Index.backup(other, URL, overwrite=True))
        states.append(sorted(BM25Index.open(URL, verify=True).ids()))
        if not killed:
            break
        BM25Index.backup(other, URL, overwrite=True)
        assert sorted(BM25Index.open(URL, verify=True).ids()) == new
    assert states == [old] * (len(states) - 1) + [new]
    assert BM25Index.open(URL).commit_id == BM25Index.open(other).commit_id
    BM25Index.backup(folder, URL, overwrite=True)
    BM25Index.restore(URL, other, overwrite=True)
    assert sorted(BM25Index.open(other).ids()) == old


def killed_in_store(number: int, work: Callable[[], object]) -> bool:
    """Let nothing be written there from the n-th file on; return whether it came to that."""
    left = number

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def write(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return call(*args, **options)

        return write

    with pytest.MonkeyPatch.context() as patch:
        for name in ("put_file", "pipe_file", "cp_file"):
            patch.setattr(MemoryFileSystem, name, dying(getattr(MemoryFileSystem, name)))
        try:
            work()
        except Killed:
            return True
    return False
