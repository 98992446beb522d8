"""What an index tells of its size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bm25rag import BM25Index
from bm25rag.following import follow
from bm25rag.merging import policy
from support.commands import ok

WORDS = [f"word{number}" for number in range(400)]


def fill(index: BM25Index, random: Random) -> None:
    for step in range(9):
        texts = [random.choices(WORDS, k=random.randint(5, 60)) for _ in range(60)]
        metadata = [{"n": number, "word": random.choice(WORDS)} for number in range(60)]
        index.add(texts, metadata=metadata, payloads=[b"payload"] * 60)
        if step % 2:
            index.delete(random.sample(index.ids(), 50))
    index.update_metadata(index.ids()[:9], [{"changed": True}] * 9)


@pytest.mark.parametrize("shards", [0, 2])
def test_bytes_are_those_of_the_files_and_compaction_frees_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    monkeypatch.setattr(policy, "LEAST", 0)  # so that there are several segments
    folder = tmp_path / "it"
    BM25Index.build([], folder, **({"shards": shards} if shards else {}))
    with BM25Index.open(folder, mode="w") as writer:
        fill(writer, Random(0))
    reader = BM25Index.open(folder)
    stats = reader.stats()
    files = [path.stat().st_size for path in folder.rglob("*-*.bin")]
    assert 0.8 * sum(files) < stats["bytes"] == sum(stats["bytes_by_kind"].values()) < sum(files)
    assert stats["deleted"] > 0
    with BM25Index.open(folder, mode="w") as writer:
        writer.compact()
    assert reader.refresh()
    after = reader.stats()
    freed = stats["bytes"] - after["bytes"]
    assert freed / 2 < stats["compaction_frees"] < 1.2 * freed
    assert (after["deleted"], after["segments"]) == (0, max(1, shards - 1))
    assert after["compaction_frees"] < after["bytes"] / 50


def test_the_age_of_a_commit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    BM25Index.from_texts(["red boat"]).save(tmp_path / "it")
    stats: dict[str, Any] = BM25Index.open(tmp_path / "it").stats()
    assert before <= datetime.fromisoformat(stats["committed"]) <= datetime.now(UTC)
    assert BM25Index().stats()["committed"] is None
    hours = datetime.fromisoformat(stats["committed"]) + timedelta(hours=50)

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return hours

    monkeypatch.setattr("bm25rag.cli.health.datetime", Later)
    assert "2 days ago" in ok("stats", tmp_path / "it").stdout


@pytest.mark.parametrize("shards", [0, 2])
def test_views_and_followed_folders_tell_the_commit_and_the_shards_of_the_folder(
    tmp_path: Path, shards: int
) -> None:
    folder = tmp_path / "it"
    BM25Index.build(["red boat", "sea"], folder, **({"shards": shards} if shards else {}))
    reader = BM25Index.open(folder)
    stats = reader.stats()
    assert (stats["shards"], stats["committed"] is None) == (shards, False)
    snapshot = reader.snapshot()
    assert follow(folder).current.stats() == snapshot.stats() == stats
    tuned = snapshot.tune(k1=0.5).stats()
    assert (tuned["committed"], tuned["shards"]) == (stats["committed"], shards)
