"""A cluster builds the index that one process builds, whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed: make distributed")

from bm25rag import Analyzer, BM25Index  # noqa: E402
from bm25rag.distributed.ray import build  # noqa: E402
from bm25rag.errors import ClusterError, DuplicateIdError, LockedError  # noqa: E402
from bm25rag.readers import Fields  # noqa: E402
from bm25rag.storage.folder_lock import lock_folder  # noqa: E402
from support.building import contents  # noqa: E402
from support.cluster import ON_A_CLUSTER, QUERIES, plain_index, write_corpus  # noqa: E402
from support.waiting import wait_until  # noqa: E402

pytestmark = ON_A_CLUSTER
CPUS = 0.1


def check(index: BM25Index, plain: BM25Index) -> None:
    assert index.ids() == plain.ids()
    for query in QUERIES:
        assert index.search(query, k=50) == plain.search(query, k=50)
    assert index.search("boat", 50, {"n": {"$gte": 100}}) == plain.search(
        "boat", 50, {"n": {"$gte": 100}}
    )


def test_a_cluster_builds_the_same_index(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    settings: dict[str, Any] = {"variant": "bm25l", "k1": 0.9, "analyzer": Analyzer("german")}
    pattern = str(tmp_path / "in" / "*.jsonl")
    index = build(
        pattern, tmp_path / "it", 3, extra={"of": "me"}, num_cpus=CPUS, timeout=60, **settings
    )
    check(index, plain_index(paths, **settings))
    assert index.extra == {"of": "me"}
    BM25Index.verify(tmp_path / "it")
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        writer.add(["a new boat"], ids=["new"])
    with pytest.raises(FileExistsError):
        build(paths, tmp_path / "it", 3, num_cpus=CPUS, timeout=60)


def test_titles_are_fields(tmp_path: Path) -> None:
    records = [{"id": f"d{n}", "title": f"cat {n}", "text": "sea " * n} for n in range(4)]
    paths = [tmp_path / f"{place}.jsonl" for place in range(2)]
    for place, path in enumerate(paths):
        path.write_text(
            "".join(f"{json.dumps(one)}\n" for one in records[2 * place :][:2]), "utf-8"
        )
    given = [{"title": one["title"], "text": one["text"]} for one in records]
    weights = {"title": 2.0, "text": 0.5}
    plain = BM25Index.from_texts(given, [one["id"] for one in records], fields=weights)
    index = build(paths, tmp_path / "it", 2, num_cpus=CPUS, timeout=60, field_weights=weights)
    rows = ray.data.from_items(records)
    dataset = build(rows, tmp_path / "rows", 2, num_cpus=CPUS, timeout=60, field_weights=weights)
    for built in (index, dataset):
        for query in ("cat", "sea 2"):
            found = [(hit.id, hit.score, hit.fields) for hit in built.search(query)]
            assert found == [(hit.id, hit.score, hit.fields) for hit in plain.search(query)]


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    paths, killed = write_corpus(tmp_path / "in"), tmp_path / "killed"

    def split(text: str) -> list[str]:
        if "word70" in text and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return text.split()

    analyzer = Analyzer(tokenizer=split)
    index = build(paths, tmp_path / "it", 2, num_cpus=CPUS, timeout=60, analyzer=analyzer)
    assert killed.exists()
    check(index, plain_index(paths, analyzer=analyzer))


def test_workers_that_die_again_and_again_are_an_error_and_the_build_goes_on_later(
    tmp_path: Path,
) -> None:
    """As they do for want of memory."""
    paths, fixed = write_corpus(tmp_path / "in"), tmp_path / "fixed"

    def split(text: str) -> list[str]:
        if "word150" in text and not fixed.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return text.split()

    settings: dict[str, Any] = {
        "num_cpus": CPUS,
        "timeout": 60,
        "analyzer": Analyzer(tokenizer=split),
    }
    with pytest.raises(ClusterError, match=r"shard 1: its worker died.*make more shards"):
        build(paths, tmp_path / "it", 2, max_retries=1, **settings)
    fixed.touch()
    check(
        build(paths, tmp_path / "it", 2, **settings),
        plain_index(paths, analyzer=Analyzer(tokenizer=split)),
    )


def test_a_build_whose_driver_was_killed_goes_on_to_the_same_bytes(
    tmp_path: Path, cluster: Any
) -> None:
    paths = write_corpus(tmp_path / "in", (300,) * 8)
    program = (
        "import sys, time, ray; from bm25rag.distributed import building; "
        # It is killed before its end, however late the test is.
        "building.check_unique = lambda *_: time.sleep(600); "
        "ray.init(address=sys.argv[1], log_to_driver=False); "
        "building.build(sys.argv[2], sys.argv[3], 8, num_cpus=1)"
    )
    arguments = [cluster.address, str(tmp_path / "in" / "*.jsonl"), str(tmp_path / "it")]
    with subprocess.Popen([sys.executable, "-c", program, *arguments]) as driver:
        try:
            wait_until(lambda: list((tmp_path / "it").glob("building/shard-*.json")))
        finally:
            driver.kill()
    assert not (tmp_path / "it" / "manifest.json").exists()
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "it").glob("building/*/segment*")}
    index = build(paths, tmp_path / "it", 8, num_cpus=1, timeout=60)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "it").rglob("segment*")}
    assert any(kept.get(path.name) == time_ for path, time_ in done.items())
    build(paths, tmp_path / "whole", 8, num_cpus=1, timeout=60)
    assert contents(tmp_path / "it") == contents(tmp_path / "whole")
    assert index.ids() == plain_index(paths).ids()


def test_an_id_in_two_shards_is_named_with_its_files(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    for place in (1, 4):
        with paths[place].open("a", encoding="utf-8") as file:
            file.write('{"_id": "twice", "text": "boat"}\n')
    message = r"'twice' occurs in .*part-1\.jsonl and in .*part-4\.jsonl"
    with pytest.raises(DuplicateIdError, match=message):
        build(paths, tmp_path / "it", 3, num_cpus=CPUS, timeout=60)


def test_errors_of_a_task_are_those_of_its_input(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    paths[3].write_text("no JSON\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"part-3\.jsonl:1: invalid JSON"):
        build(paths, tmp_path / "it", 3, num_cpus=CPUS, timeout=60)


def test_a_build_that_no_node_has_room_for_ends_with_its_time(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in", (2, 2))
    with pytest.raises(ClusterError, match=r"2 of 2 tasks .*within 1 seconds.*num_cpus"):
        build(paths, tmp_path / "it", 2, num_cpus=64, timeout=1)


def test_one_build_at_a_time(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in", (2, 2))
    (tmp_path / "it").mkdir()
    held = lock_folder(str(tmp_path / "it"))
    with pytest.raises(LockedError):
        build(paths, tmp_path / "it", 2, num_cpus=CPUS, timeout=60)
    held.release()


def test_a_dataset_is_built_in_the_order_of_its_rows(tmp_path: Path) -> None:
    data = pytest.importorskip("ray.data")
    plain = plain_index(write_corpus(tmp_path / "in"))
    rows = [{"id": one.id, "body": one.text, **one.metadata} for one in plain.get(plain.ids())]
    dataset = data.from_items(rows, override_num_blocks=7)
    fields = Fields("id", ("body",))
    index = build(dataset, tmp_path / "it", 3, fields=fields, num_cpus=CPUS, timeout=60)
    check(index, plain)
    with pytest.raises(ValueError, match=r"shard \d of the dataset:1: no text field"):
        build(dataset, tmp_path / "other", 2, num_cpus=CPUS, timeout=60)
