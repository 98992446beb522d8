"""A served index answers as one index does, whatever dies; or it says which shards are missing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray", reason="Ray is not installed: make distributed")

from bm25rag import BM25Index, Hit, Query  # noqa: E402
from bm25rag.cli.app import commands  # noqa: E402
from bm25rag.distributed.ray import RayIndex, connect, serve, stop  # noqa: E402
from bm25rag.distributed.ray import build as build_files  # noqa: E402
from bm25rag.errors import (  # noqa: E402
    ClusterError,
    CorruptIndexError,
    DocumentNotFoundError,
    FilterError,
    NotAnIndexError,
    ShardUnavailableError,
)
from support.building import segment_of_shard  # noqa: E402
from support.cluster import (  # noqa: E402
    ON_A_CLUSTER,
    QUERIES,
    SIZES,
    VECTORS,
    WITH_VECTORS,
    plain_index,
    write_corpus,
    write_vectors,
)
from support.waiting import wait_until  # noqa: E402

pytestmark = ON_A_CLUSTER
CPUS = 0.1
SHARDS = 4


@pytest.fixture
def plain(tmp_path: Path) -> BM25Index:
    return plain_index(write_corpus(tmp_path / "in"))


@pytest.fixture
def folder(tmp_path: Path, plain: BM25Index) -> Path:
    BM25Index.build(plain.get(plain.ids()), tmp_path / "it", shards=SHARDS)
    return tmp_path / "it"


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, cluster: Any
) -> Iterator[tuple[RayIndex, BM25Index]]:
    """Serve an index, as "read", to all tests that only read; return its one index, too."""
    folder = tmp_path_factory.mktemp("read")
    plain = plain_index(write_corpus(folder / "in"))
    BM25Index.build(plain.get(plain.ids()), folder / "it", shards=SHARDS)
    yield serve(folder / "it", "read", num_cpus=CPUS), plain
    stop("read")


@pytest.fixture(autouse=True)
def stopping(cluster: Any) -> Iterator[None]:
    yield
    stop()


def processes(index: RayIndex) -> list[list[int]]:
    return [ray.get([host.process.remote() for host in part], timeout=30) for part in index._parts]


def nodes_of(name: str) -> list[str]:
    groups = ray.util.placement_group_table().values()
    (group,) = [
        one for one in groups if one["name"] == f"bm25rag/{name}" and one["state"] == "CREATED"
    ]
    return [group["bundles_to_node_id"][bundle] for bundle in sorted(group["bundles_to_node_id"])]


def during(work: Callable[[], object], flag: Path, act: Callable[[], object]) -> Any:
    """Do something when work that has begun has made a file; return what the work returns."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        wait_until(flag.exists)
        act()
        return future.result(timeout=90)


def holding(go: Path) -> Callable[[], None]:
    """Return what waits, on an actor, until a file is there; it is sent by value."""

    def hold() -> None:
        end = time.monotonic() + 300
        while not go.exists() and time.monotonic() < end:
            time.sleep(0.01)

    return hold


# -- answers -------------------------------------------------------------------------------------


def test_answers_are_those_of_one_index(served: tuple[RayIndex, BM25Index]) -> None:
    index, plain = served
    assert len(index._parts) == 3
    assert len(set(nodes_of("read"))) == 3
    for query in QUERIES:
        for k in (0, 3, 1000):
            assert index.search(query, k) == plain.search(query, k)
    for filter in ({"n": {"$gte": 150}}, {"d3", "d160"}, lambda metadata: metadata["n"] % 2):
        assert index.search("boat", 50, filter) == plain.search("boat", 50, filter)
        assert index.count(filter) == plain.count(filter)
    assert index.search("boat 2", 50, min_score=0.4) == plain.search("boat 2", 50, min_score=0.4)
    batch, expected = index.search_batch(QUERIES, 20), plain.search_batch(QUERIES, 20)
    assert batch.scores.tobytes() == expected.scores.tobytes()
    assert batch.rows.tolist() == expected.rows.tolist()
    assert batch.counts.tolist() == expected.counts.tolist()
    assert batch.hits() == expected.hits()
    assert batch.ids() == expected.ids()
    bare = index.search_batch(QUERIES, 20, contents=False)
    assert bare.ids() == expected.ids()
    with pytest.raises(ValueError, match="contents=True"):
        bare.hits()
    assert (len(index), batch.commit) == (len(plain), 1)
    assert index.get(["d9", "x", "d3"]) == plain.get(["d9", "d3"])
    assert index.explain("boat sea", "d33") == plain.explain("boat sea", "d33")
    with pytest.raises(DocumentNotFoundError, match="'x'"):
        index.explain("boat", "x")
    assert index.analyzer.terms("a boat") == ["boat"]
    assert repr(index) == "RayIndex('read', 3 parts, 1 replicas)"
    parts = Query("sea", must=["boat"], not_phrases=["boat 1"])
    assert index.search(parts, 50) == plain.search(parts, 50)
    view, expected_view = (one.restricted({"n": {"$gte": 150}}) for one in (index, plain))
    assert (view.search("boat 1"), len(view)) == (expected_view.search("boat 1"), 50)
    whole = index.search_batch(["boat"], partial=True)
    assert (whole.hits(), whole.missing) == ([plain.search("boat")], {})


def test_vectors_are_searched_as_in_one_index(tmp_path: Path) -> None:
    paths = write_vectors(write_corpus(tmp_path / "in"))
    plain = plain_index(paths, WITH_VECTORS)
    build_files(paths, tmp_path / "it", SHARDS, fields=WITH_VECTORS, num_cpus=CPUS, timeout=60)
    index = serve(tmp_path / "it", num_cpus=CPUS)
    filter = {"n": {"$gte": 100}}
    for vector in VECTORS:
        assert index.vectors.search(vector, 20, filter) == plain.vectors.search(vector, 20, filter)
        for method in ("minmax", "zscore", "rrf"):
            words: Any = {"fetch_k": 30, "method": method, "weights": [1, 0.5]}
            expected = plain.search_hybrid("boat 2", vector, 20, filter, **words)
            assert index.search_hybrid("boat 2", vector, 20, filter, **words) == expected
    best = index.vectors.search_batch(VECTORS[:1], min_score=2.0, partial=True)
    assert (best.hits(), best.missing) == ([plain.vectors.search(VECTORS[0], min_score=2.0)], {})
    batch, whole = index.vectors.search_batch(VECTORS, contents=False), plain.vectors
    assert batch.ids() == whole.search_batch(VECTORS).ids()
    assert batch.scores.tobytes() == whole.search_batch(VECTORS).scores.tobytes()
    assert index.search_hybrid("boat", {}, 0) == []
    with pytest.raises(ValueError, match="weights must not all be 0"):
        index.search_hybrid("boat", {}, weights=[0, 0])
    with pytest.raises(TypeError, match="vector must map terms to weights"):
        index.search_hybrid("boat", [1.0])  # type: ignore[arg-type]


def test_wrong_arguments_are_refused_as_by_an_index(served: tuple[RayIndex, BM25Index]) -> None:
    index, _ = served
    with pytest.raises(FilterError, match="unknown operator"):
        index.search("boat", filter={"n": {"$no": 1}})
    with pytest.raises(TypeError, match="queries"):
        index.search_batch("boat")
    with pytest.raises(ValueError, match="k must be an integer >= 0"):
        index.search("boat", -1)
    with pytest.raises(ValueError, match="min_score"):
        index.search("boat", min_score=float("nan"))
    with pytest.raises(TypeError, match="partial must be True or False"):
        index.search_batch(["boat"], partial="yes")  # type: ignore[arg-type]


def test_an_index_can_be_used_by_threads_tasks_and_datasets(
    served: tuple[RayIndex, BM25Index],
) -> None:
    index, plain = connect("read"), served[1]
    expected = plain.search("boat 1")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: index.search("boat 1"), range(40))) == [expected] * 40
    task = ray.remote(lambda one: one.search("boat 1")).options(num_cpus=CPUS)
    assert ray.get(task.remote(index), timeout=30) == expected


def test_queries_of_a_dataset_are_answered(served: tuple[RayIndex, BM25Index]) -> None:
    data, (index, plain) = pytest.importorskip("ray.data"), served
    queries = ["boat 1", "nothing", "sea"]
    dataset = data.from_items([{"id": n, "query": query} for n, query in enumerate(queries)])
    found = index.search_dataset(dataset, 3, num_cpus=CPUS).take_all()
    expected = plain.search_batch(queries, 3)
    assert [row["ids"] for row in sorted(found, key=lambda row: row["id"])] == expected.ids()
    assert [row["scores"] for row in sorted(found, key=lambda row: row["id"])] == [
        [hit.score for hit in hits] for hits in expected.hits()
    ]


# -- starting ------------------------------------------------------------------------------------


def test_replicas_are_on_different_nodes_and_too_few_nodes_are_an_error(folder: Path) -> None:
    with pytest.raises(ClusterError, match=r"4 nodes with 0\.1 free CPUs each.*there are 3 nodes"):
        serve(folder, replicas=4, num_cpus=CPUS, timeout=1)
    with pytest.raises(ClusterError, match="no index is served as 'bm25rag'"):
        connect()
    serve(folder, replicas=3, num_cpus=CPUS)
    assert len(set(nodes_of("bm25rag"))) == 3
    with pytest.raises(ClusterError, match="an index is served as 'bm25rag'"):
        serve(folder, num_cpus=CPUS)
    stop()
    stop()
    with pytest.raises(ValueError, match="nodes must be at most 4, the shards, got 5"):
        serve(folder, nodes=5, num_cpus=CPUS)


def test_a_folder_that_cannot_be_served_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError):
        serve(tmp_path / "nothing", num_cpus=CPUS)
    path = segment_of_shard(folder, 2)
    path.unlink()
    with pytest.raises(CorruptIndexError, match=path.name):
        serve(folder, num_cpus=CPUS)
    with pytest.raises(ClusterError, match="no index is served"):
        connect()


# -- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_actor_killed_in_the_middle_of_a_query(
    folder: Path, plain: BM25Index, tmp_path: Path, replicas: int
) -> None:
    """Another replica answers, or the actor when Ray has restarted it."""
    index, flag = serve(folder, replicas=replicas, nodes=1, num_cpus=CPUS), tmp_path / "flag"

    def slow(metadata: dict[str, Any]) -> bool:
        if not flag.exists():
            flag.with_suffix(".half").write_text(str(os.getpid()))
            flag.with_suffix(".half").rename(flag)
            time.sleep(120)
        return True

    def kill() -> None:
        os.kill(int(flag.read_text()), signal.SIGKILL)

    found = during(lambda: index.search("boat", 50, slow, deadline=60), flag, kill)
    assert found == plain.search("boat", 50)
    assert index.search("boat", 50) == plain.search("boat", 50)


def test_a_slow_replica_does_not_hold_up_an_answer(
    folder: Path, plain: BM25Index, tmp_path: Path
) -> None:
    """It is asked last once it has been slow; here it answers when the others have."""
    index, go = serve(folder, replicas=2, nodes=1, num_cpus=CPUS), tmp_path / "go"
    slow_one, hold = processes(index)[0][0], holding(go)

    def search(number: int) -> list[Hit]:
        def slow(metadata: dict[str, Any]) -> bool:
            if os.getpid() == slow_one:
                (tmp_path / f"asked-{number}").touch()
                hold()
            return True

        return index.search("harbour", 50, slow, deadline=8)

    for number in range(6):
        assert search(number) == plain.search("harbour", 50)
    go.touch()
    assert slow_one in processes(index)[0]  # when it has begun whatever it was asked before
    assert len(list(tmp_path.glob("asked-*"))) <= 1


def test_an_answer_that_takes_too_long_is_an_error_or_partial(
    folder: Path, plain: BM25Index, tmp_path: Path
) -> None:
    index, go = serve(folder, nodes=2, num_cpus=CPUS), tmp_path / "go"
    hold = holding(go)

    def slow(metadata: dict[str, Any]) -> bool:
        if metadata["n"] == 0:
            hold()
        return True

    with pytest.raises(ShardUnavailableError, match=r"shards 0, 1 of 4 .*within 2 s") as caught:
        index.search("boat", 500, slow, deadline=2)
    assert caught.value.shards == (0, 1)
    batch = index.search_batch(["boat"], 500, slow, deadline=2, partial=True)
    assert sorted(batch.missing) == [0, 1]
    assert batch.hits()[0] == [hit for hit in plain.search("boat", 500) if hit.metadata["n"] >= 100]
    go.touch()


def test_a_damaged_shard_is_named_at_once(folder: Path, plain: BM25Index) -> None:
    index = serve(folder, replicas=2, nodes=1, num_cpus=CPUS)
    path = segment_of_shard(folder, 2)
    data = bytearray(path.read_bytes())
    with path.open("r+b") as file:  # the file that is mapped
        file.write(bytes(byte ^ 1 for byte in data))
    begun = time.monotonic()
    with pytest.raises(ShardUnavailableError, match=r"shards 2 of 4 .*segment-"):
        index.search("boat", 500, deadline=120)
    assert time.monotonic() - begun < 60
    batch = index.search_batch(["boat", "word120"], 500, partial=True)
    assert (list(batch.missing), batch.counts.tolist()) == ([2], [150, 0])
    found = [h for h in plain.search("boat", 500) if not 100 <= h.metadata["n"] < 150]
    assert batch.hits() == [found, []]


def test_a_node_that_is_lost(folder: Path, plain: BM25Index, cluster: Any) -> None:
    """With a replica elsewhere there are answers; without, the shards that are missing."""
    serve(folder, "safe", replicas=2, nodes=1, num_cpus=CPUS)
    serve(folder, "alone", replicas=1, nodes=3, num_cpus=CPUS)
    safe, alone = connect("safe"), connect("alone")
    head = cluster.head_node.node_id
    lost = next(node for node in nodes_of("safe") if node != head)
    place = nodes_of("alone").index(lost)
    (node,) = [node for node in cluster.worker_nodes if node.node_id == lost]
    pids = [processes(alone)[place][0], processes(safe)[0][nodes_of("safe").index(lost)]]
    try:
        cluster.remove_node(node, allow_graceful=False)
        for pid in pids:  # they would outlive their node for a moment
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for _ in range(5):
            assert safe.search("boat 1", 50, deadline=8) == plain.search("boat 1", 50)
        with pytest.raises(ShardUnavailableError, match="within 2 s") as caught:
            alone.search("boat 1", deadline=2)
        edges = [0, 1, 2, 4]
        assert caught.value.shards == tuple(range(edges[place], edges[place + 1]))
        assert sorted(alone.search_batch(["boat 1"], deadline=1, partial=True).missing) == [
            *caught.value.shards
        ]
        assert alone.analyzer.language == "english"  # which any actor knows
    finally:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes(timeout=60)
    # Ray places the lost actors on the new node.
    assert alone.search("boat 1", 50, deadline=90) == plain.search("boat 1", 50)
    stop("safe")
    stop("alone")


# -- commits -------------------------------------------------------------------------------------


def test_refresh_moves_all_actors_to_the_last_commit(folder: Path) -> None:
    index = serve(folder, nodes=2, num_cpus=CPUS)
    with BM25Index.open(folder, mode="w") as writer:
        writer.delete(["d0", "d1"])
        writer.add(["a new boat"], ids=["new"])
        assert index.search_batch(["boat"]).commit == 1
    assert index.refresh() == 2
    assert index.search_batch(["boat"]).commit == 2
    assert index.search("new boat", 500) == BM25Index.open(folder).search("new boat", 500)


def test_answers_are_of_one_commit_while_commits_are_made(folder: Path) -> None:
    """One actor is restarted, and so in a later commit than the other; then that one."""
    index = serve(folder, nodes=2, num_cpus=CPUS)
    lengths, wrong = {1: 200}, []
    for commit in (2, 3):
        with BM25Index.open(folder, mode="w") as writer:
            writer.add([f"boat {commit}"] * 3)
            lengths[commit] = len(writer)
        os.kill(processes(index)[commit % 2][0], signal.SIGKILL)
        batch = index.search_batch(["boat"], 1000, deadline=60)
        wrong += [batch.commit] if batch.counts[0] != lengths[batch.commit] else []
        assert batch.commit == commit
    assert wrong == []


def test_searches_go_on_during_refreshes(folder: Path) -> None:
    index = serve(folder, replicas=1, nodes=3, num_cpus=CPUS)
    counts: dict[int, set[int]] = {}
    ended = False

    def search() -> None:
        while not ended:
            batch = index.search_batch(["boat"], 1000, deadline=60)
            counts.setdefault(batch.commit, set()).add(int(batch.counts[0]))

    thread = Thread(target=search)
    thread.start()
    try:
        for _ in range(2):
            with BM25Index.open(folder, mode="w") as writer:
                writer.add(["boat"])
            commit = index.refresh()
            wait_until(lambda: commit in counts)  # noqa: B023 - it is called at once
    finally:
        ended = True
        thread.join(timeout=90)
    assert {2, 3} <= counts.keys()
    assert all(found == {199 + commit} for commit, found in counts.items())


# -- the command line ----------------------------------------------------------------------------


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(commands, ["ray", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_the_command_line_builds_serves_and_searches(tmp_path: Path) -> None:
    plain = plain_index(write_corpus(tmp_path / "in"))
    folder, pattern = tmp_path / "it", tmp_path / "in" / "*.jsonl"
    built = run("build", pattern, "-o", folder, "--shards", 3, "--num-cpus", CPUS)
    assert "Indexed 200 documents" in built.stderr
    served = run("serve", folder, "--num-cpus", CPUS, "--nodes", 2)
    assert "Serving 200 documents as bm25rag" in served.stderr
    assert "Serving commit 1" in run("refresh").stderr
    path = segment_of_shard(folder, 2)
    data = path.read_bytes()
    path.write_bytes(bytes(len(data)))  # the file that is mapped
    failed = run("search", "boat", code=3)
    assert "shards 2 of 3" in failed.stderr
    assert "; --partial searches without them" in failed.stderr
    partial = run("search", "boat", "-k", 500, "--format", "jsonl", "--partial", code=4)
    assert "Warning: without shard 2" in partial.stderr
    assert 0 < len(partial.stdout.splitlines()) < 200
    path.write_bytes(data)
    found = run("search", "sea 1", "-k", 3, "--format", "trec").stdout.splitlines()
    assert [line.split()[2] for line in found] == [hit.id for hit in plain.search("sea 1", 3)]
    both = run("search", "sea 1", "--also", "boat", "--by-rank", "-k", 3, "--format", "trec")
    fused = plain.search_fused(["sea 1", "boat"], 3)
    assert [line.split()[2] for line in both.stdout.splitlines()] == [hit.id for hit in fused]
    excluding = run("search", "boat -harbour", "--syntax", "-k", 500, "--format", "jsonl")
    assert len(excluding.stdout.splitlines()) == 200 - SIZES[2]
    page = run("search", "harbour", "--group", "n", "--offset", 2, "-k", 1, "--format", "trec")
    assert page.stdout.split()[2:4] == [plain.search("harbour", offset=2)[0].id, "3"]
    run("search", "sea", "--by-rank", "--partial", code=2)
    run("stop")
    assert "no index is served" in run("search", "boat", code=3).stderr
