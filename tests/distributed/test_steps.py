"""The steps of a build from files, done in this process: the same index, however often, by whom."""

from __future__ import annotations

import errno
import gzip
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bm25rag import BM25Index
from bm25rag.building.plan import check_plan
from bm25rag.cli.app import commands
from bm25rag.distributed.building import build as build_on_a_cluster
from bm25rag.distributed.host import Host
from bm25rag.distributed.operations import OPERATIONS, Found
from bm25rag.distributed.results import RayVectors
from bm25rag.distributed.sources import Reading, SourceFile, divide, find_sources, read_source
from bm25rag.distributed.steps import (
    Plan,
    begin,
    build_shard,
    check_unique,
    count_shard,
    finish,
    merge_partition,
)
from bm25rag.errors import ClusterError, CorruptIndexError, DuplicateIdError, StorageError
from bm25rag.live.index import new_state
from bm25rag.open_shard import OpenShard, Ranking, open_shard
from bm25rag.readers import Fields
from support.building import contents, segment_of_shard
from support.cluster import QUERIES, VECTORS, WITH_VECTORS, plain_index, write_corpus, write_vectors
from support.folders import no_leftovers
from support.killing import killed_at


def plan_of(
    files: Any, folder: Path, shards: int, read: Fields | None = None, **settings: Any
) -> Plan:
    reading = Reading(fields=read or Fields())
    divided = divide(find_sources(files, reading.format), shards)
    each = check_plan(new_state(**settings).stored(), 1 << 28, True, "error", False, 1, None)
    return Plan(str(folder), divided, reading, each)


def run(plan: Plan) -> BM25Index:
    begin(plan)
    count = len(plan.shards)
    receipts = [build_shard(plan, number) for number in range(count)]
    counted = [count_shard(plan.folder, receipt, count) for receipt in receipts]
    totals, *partitions = zip(*counted, strict=True)
    merged = [merge_partition(*parts) for parts in partitions]
    check_unique(plan, receipts, merged)
    finish(plan, receipts, totals, [one.terms for one in merged])
    return BM25Index.open(plan.folder)


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
@pytest.mark.parametrize("variant", ["lucene", "bm25+"])
def test_the_index_is_that_of_one_build(tmp_path: Path, shards: int, variant: Any) -> None:
    paths = write_corpus(tmp_path / "in")
    plain = plain_index(paths, variant=variant)
    index = run(plan_of(paths, tmp_path / "it", shards, variant=variant))
    for query in QUERIES:
        assert index.search(query, k=50) == plain.search(query, k=50)
    assert index.ids() == plain.ids()
    BM25Index.verify(tmp_path / "it")
    assert no_leftovers(tmp_path / "it")


@pytest.mark.parametrize("title", [2.0, 0.0])
def test_fields_are_metadata_by_their_names(tmp_path: Path, title: float) -> None:
    paths, fields = write_corpus(tmp_path / "in"), {"title": title, "text": 0.5}
    for path in paths:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        titled = [json.dumps(one | {"title": f"boat {one['n'] % 7}"}) for one in records]
        path.write_text("\n".join(titled), encoding="utf-8")
    read = Fields(weighted=("title", "text"))
    plain = plain_index(paths, read, fields=fields)
    index = run(plan_of(paths, tmp_path / "it", 3, read, fields=fields))
    for query in QUERIES:
        assert index.search(query, k=50) == plain.search(query, k=50)
    assert index.get(["d1"])[0].fields == {"title": "boat 1", "text": plain.get(["d1"])[0].text}
    BM25Index.verify(tmp_path / "it")


def test_sixteen_uneven_shards(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in", tuple(range(1, 40, 2)))
    index, plain = run(plan_of(paths, tmp_path / "it", 16)), plain_index(paths)
    assert index.search_batch(QUERIES, 100).hits() == [
        plain.search(query, 100) for query in QUERIES
    ]


def test_statistics_are_the_bytes_of_a_build_in_one_process(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in", (50, 50))
    run(plan_of(paths, tmp_path / "it", 2))
    documents = [
        d for path in paths for d in read_source(find_sources([path], "auto")[0], Reading())
    ]
    BM25Index.build(documents, tmp_path / "other", shards=2)
    assert contents(tmp_path / "it") == contents(tmp_path / "other")


@pytest.mark.slow
def test_a_build_that_was_killed_ends_with_the_same_bytes(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in", (6, 5, 7))
    run(plan_of(paths, tmp_path / "whole", 3))
    expected, kills = contents(tmp_path / "whole"), 0
    folder = tmp_path / "0"
    while killed_at(5 * kills, partial(run, plan_of(paths, folder, 3))):
        if not (folder / "manifest.json").exists():
            run(plan_of(paths, folder, 3))
        assert contents(folder) == expected
        kills += 1
        folder = tmp_path / str(kills)
    assert kills > 6


def test_shards_that_are_there_are_not_built_again(tmp_path: Path) -> None:
    plan = plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 3)
    begin(plan)
    receipt = build_shard(plan, 1)
    begin(plan)
    assert build_shard(plan, 1) == receipt
    assert build_shard(plan, 0).attempt != receipt.attempt


def test_a_cluster_builds_in_a_folder_and_not_behind_a_url(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a folder of this machine"):
        build_on_a_cluster(write_corpus(tmp_path / "in"), "s3://bucket/it", 2)


def test_a_receipt_of_another_plan_does_not_count(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    plan = plan_of(paths, tmp_path / "it", 3)
    begin(plan)
    receipt = build_shard(plan, 1)
    other = plan_of(paths, tmp_path / "it", 3, k1=0.9)
    assert build_shard(other, 1).attempt != receipt.attempt


def test_attempts_that_do_not_count_are_removed(tmp_path: Path) -> None:
    plan = plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 2)
    begin(plan)
    receipt = build_shard(plan, 0)
    (tmp_path / "it" / "building" / "shard-0001-abandoned").mkdir()
    begin(plan)
    names = sorted(path.name for path in (tmp_path / "it" / "building").iterdir())
    assert names == sorted(["plan.json", "shard-0000.json", receipt.attempt])


def test_a_file_that_changed_since_is_named(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    plan = plan_of(paths, tmp_path / "it", 3)
    begin(plan)
    build_shard(plan, 0)
    data = paths[0].read_bytes()
    paths[0].write_bytes(data.replace(b"boat", b"ship"))
    with pytest.raises(ValueError, match=r"part-0\.jsonl has changed since its shard was built"):
        build_shard(plan, 0)
    paths[0].write_bytes(data + b"\n")
    with pytest.raises(ValueError, match=r"part-0\.jsonl was added, removed or changed; build"):
        begin(plan_of(paths, tmp_path / "it", 3))


def test_other_settings_than_those_of_the_interrupted_build_are_named(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    begin(plan_of(paths, tmp_path / "it", 3))
    with pytest.raises(ValueError, match=r"parameters was .*'k1': 1\.2.*is .*'k1': 0\.9"):
        begin(plan_of(paths, tmp_path / "it", 3, k1=0.9))
    with pytest.raises(ValueError, match="shards was 3, is 2"):
        begin(plan_of(paths, tmp_path / "it", 2))
    with pytest.raises(ValueError, match="the files are in another order"):
        begin(plan_of([*paths[1:], paths[0]], tmp_path / "it", 3))


@pytest.mark.parametrize(("places", "shards"), [((0, 2), 3), ((0, 0), 3), ((2, 4), 5), ((0, 4), 1)])
def test_an_id_that_two_files_have_is_named_with_them(
    tmp_path: Path, places: tuple[int, int], shards: int
) -> None:
    paths = write_corpus(tmp_path / "in")
    for place in places:
        with paths[place].open("a", encoding="utf-8") as file:
            file.write('{"_id": "twice", "text": "boat"}\n')
    with pytest.raises(DuplicateIdError) as caught:
        run(plan_of(paths, tmp_path / "it", shards))
    names = [os.path.realpath(paths[place]) for place in places]
    where = f"twice in {names[0]}" if len(set(names)) == 1 else f"in {names[0]} and in {names[1]}"
    assert str(caught.value) == f"the id 'twice' occurs {where}; ids must differ"


# -- files ---------------------------------------------------------------------------------------


def file_of(size: int) -> SourceFile:
    return SourceFile("f", "jsonl", "f", False, size)


@pytest.mark.parametrize(
    ("sizes", "shards", "expected"),
    [
        ([1, 1, 1, 1], 2, [2, 2]),
        ([100, 1, 1, 1], 3, [1, 1, 2]),
        ([1, 1, 1, 100], 3, [2, 1, 1]),
        ([0, 0, 0], 3, [1, 1, 1]),
        ([5, 5, 5, 5, 5], 2, [3, 2]),
        ([3, 9, 2, 4, 6], 1, [5]),
    ],
)
def test_shards_have_about_as_many_bytes(sizes: list[int], shards: int, expected: Any) -> None:
    files = [file_of(size) for size in sizes]
    divided = divide(files, shards)
    assert [len(one) for one in divided] == expected
    assert [file for one in divided for file in one] == files


def test_fewer_files_than_shards_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shards must be at most 2, the files, got 3"):
        divide([file_of(1), file_of(1)], 3)


@pytest.mark.parametrize(
    ("names", "format"),
    [("", format) for format in ("auto", "jsonl", "csv", "passages", "lines", "text")]
    + [("*.md", "auto"), ("*.md", "text"), ("*.odd", "auto"), ("guide.md", "auto")]
    + [("guide.md page.html", "auto"), ("beir", "auto"), ("beir", "jsonl")],
)
def test_documents_are_those_of_the_command_line(tmp_path: Path, names: str, format: str) -> None:
    """Of a folder, of files that a pattern names, and of files that are named themselves."""
    folder = tmp_path / "in"
    write_corpus(folder, (2, 2))
    (folder / "guide.md").write_text("# One\n\nA boat.\n\n# Two\n\nThe sea.\n", encoding="utf-8")
    (folder / "page.html").write_text("<h1>Boats</h1><p>At sea.</p>", encoding="utf-8")
    (folder / "what.odd").write_text("A boat\n", encoding="utf-8")
    (folder / "more").mkdir()
    (folder / "more" / "t.csv").write_text("id,text\na,boat\nb,sea\n", encoding="utf-8")
    (folder / "more" / "z.jsonl.gz").write_bytes(gzip.compress(b'{"text": "boat"}\n'))
    (folder / ".hidden.txt").write_text("boat", encoding="utf-8")
    (folder / "beir" / "qrels").mkdir(parents=True)
    (folder / "beir" / "corpus.jsonl").write_text('{"_id": "1", "text": "boat"}\n')
    (folder / "beir" / "queries.jsonl").write_text('{"_id": "q", "text": "sea"}\n')
    sources = [str(folder / name) for name in names.split()] or [str(folder)]
    command = ["index", *sources, "-o", str(tmp_path / "plain"), "--format", format]
    CliRunner().invoke(commands, command, catch_exceptions=False)
    files = find_sources(sources if len(sources) > 1 else sources[0], format)
    read = [one for file in files for one in read_source(file, Reading(format=format))]
    plain = BM25Index.open(tmp_path / "plain")
    assert [(one.id, one.text, one.metadata) for one in read] == [
        (one.id, one.text, one.metadata) for one in plain.get(plain.ids())
    ]


def test_ids_are_those_of_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_corpus(folder, (2, 2))
    (folder / "guide.md").write_text("# One\n\nA boat.\n\n# Two\n\nThe sea.\n", encoding="utf-8")
    CliRunner().invoke(
        commands, ["index", str(folder), "-o", str(tmp_path / "plain")], catch_exceptions=False
    )
    index = run(plan_of(folder, tmp_path / "it", 3))
    plain = BM25Index.open(tmp_path / "plain")
    assert index.get(index.ids()) == plain.get(plain.ids())


def test_files_are_found_by_pattern_in_the_order_of_their_names(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    found = find_sources(str(tmp_path / "in" / "part-*.jsonl"), "auto")
    assert [file.path for file in found] == [os.path.realpath(path) for path in paths]


def test_files_that_are_missing_or_of_no_known_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl"):
        find_sources(tmp_path / "nowhere.jsonl", "auto")
    (tmp_path / "data.bin").touch()
    with pytest.raises(ValueError, match=r"data\.bin: its name does not show its kind"):
        find_sources(tmp_path / "data.bin", "auto")
    assert find_sources(tmp_path / "data.bin", "lines")[0].kind == "lines"
    with pytest.raises(FileNotFoundError, match=r"no file matches.*\*\.json"):
        find_sources(str(tmp_path / "*.json"), "auto")


# -- a server of shards, in this process ---------------------------------------------------------


def ask(hosts: list[Host], operation: str, *arguments: Any) -> Any:
    answers = [host.answer(operation, arguments) for host in hosts]
    assert [answer.failed for answer in answers] == [{}] * len(hosts)
    return OPERATIONS[operation].merge([answer.value for answer in answers], *arguments)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("contents", [False, True])
def test_answers_of_servers_merge_into_those_of_one_index(
    tmp_path: Path, parts: int, contents: bool
) -> None:
    paths = write_corpus(tmp_path / "in")
    plain = plain_index(paths)
    run(plan_of(paths, tmp_path / "it", 5))
    hosts = [Host(str(tmp_path / "it"), n, parts, 1, True, None, False) for n in range(parts)]
    for k in (0, 1, 10, 1000):
        for filter in (None, {"n": {"$gte": 70}}, {"d3", "d150"}):
            expected = plain.search_batch(QUERIES, k, filter)
            ranking, items, *_ = ask(hosts, "search", QUERIES, k, filter, None, contents)
            assert items == (expected.hits() if contents else expected.ids())
            assert ranking.rows.tolist() == expected.rows.tolist()
            assert ranking.scores.tobytes() == expected.scores.tobytes()
            assert ranking.counts.tolist() == expected.counts.tolist()
    assert ask(hosts, "count", {"n": {"$lt": 50}}) == 50
    assert ask(hosts, "explain", "boat", "d77", None) == plain.explain("boat", "d77")
    assert ask(hosts, "explain", "boat", "x", None) is None


@pytest.mark.parametrize("parts", [1, 3])
def test_answers_to_vectors_merge_into_those_of_one_index(tmp_path: Path, parts: int) -> None:
    paths = write_vectors(write_corpus(tmp_path / "in"))
    plain = plain_index(paths, WITH_VECTORS)
    run(plan_of(paths, tmp_path / "it", 5, WITH_VECTORS))
    hosts = [Host(str(tmp_path / "it"), n, parts, 1, True, None, False) for n in range(parts)]
    for k in (0, 10, 1000):
        for filter in (None, {"n": {"$gte": 70}}):
            expected = plain.vectors.search_batch(VECTORS, k, filter)
            ranking, items, *_ = ask(hosts, "search_vectors", VECTORS, k, filter, None, True)
            assert items == expected.hits()
            assert ranking.rows.tolist() == expected.rows.tolist()
            assert ranking.scores.tobytes() == expected.scores.tobytes()
            by_words, by_vectors = ask(hosts, "search_hybrid", "boat 2", VECTORS[0], k, filter)
            assert by_words.items == plain.search_batch(["boat 2"], k, filter).hits()
            assert by_vectors.items == expected.hits()[:1]


def test_each_question_of_a_batch_is_a_vector() -> None:
    asked: Any = RayVectors(lambda *_: pytest.fail("the actors were asked"))
    with pytest.raises(TypeError, match=r"vectors\[1\] must be a vector, got None"):
        asked.search_batch([{"boat": 1.0}, None])


def test_a_server_goes_to_a_later_commit_when_asked_for_it(tmp_path: Path) -> None:
    run(plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 3))
    host = Host(str(tmp_path / "it"), 0, 1, 1, True, None, False)
    first = 1, BM25Index.open(tmp_path / "it").commit_id
    assert host.answer("count", (None,))[:3] == (first, 3, 200)
    with BM25Index.open(tmp_path / "it", mode="w") as writer:
        writer.add(["a new boat"], ids=["new"])
    later = 2, BM25Index.open(tmp_path / "it").commit_id
    assert host.answer("count", (None,), first)[:3] == (first, 3, 200)
    assert host.answer("count", (None,), later)[:3] == (later, 3, 201)


@pytest.mark.parametrize("opened", [0, 1, 3])
def test_shards_of_a_restored_index_are_not_mixed_with_those_of_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: int
) -> None:
    """Another index of the same commit is restored when so many shards have been opened."""
    folder, backup = str(tmp_path / "it"), str(tmp_path / "backup")
    run(plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 3))
    run(plan_of(write_corpus(tmp_path / "other", (9, 9, 9)), tmp_path / "backup", 3))
    numbers = list[int]()

    def opening(folder: str, number: int, **options: Any) -> OpenShard:
        if len(numbers) == opened:
            BM25Index.restore(backup, folder, overwrite=True)
        numbers.append(number)
        return open_shard(folder, number, **options)

    monkeypatch.setattr("bm25rag.distributed.host.open_shard", opening)
    host = Host(folder, 0, 1, 1, True, None, False)
    before = host.answer("count", (None,))
    if opened == 3:
        assert before.value == 200
        BM25Index.restore(backup, folder, overwrite=True)
    host.refresh()
    after = host.answer("count", (None,))
    assert after[:3] == ((1, BM25Index.open(backup).commit_id), 3, 27)
    assert (before.value == after.value) == (before.commit == after.commit)


def test_a_server_answers_without_a_damaged_shard_and_says_so(tmp_path: Path) -> None:
    run(plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 3))
    segment = segment_of_shard(tmp_path / "it", 1)
    data = segment.read_bytes()
    segment.write_bytes(data[:-9])
    host = Host(str(tmp_path / "it"), 0, 1, 1, True, None, False)
    answer = host.answer("count", (None,))
    assert answer.value < 200
    assert list(answer.failed) == [1]
    assert segment.name in answer.failed[1]
    with pytest.raises(CorruptIndexError, match=segment.name):
        host.refresh().check()
    segment.write_bytes(data)
    host.refresh().check()
    assert host.answer("count", (None,)).value == 200


def test_a_server_that_cannot_reach_the_folder_leaves_the_answer_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client asks another replica after a ``StorageError``, and raises what is none."""
    run(plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 3))
    host = Host(str(tmp_path / "it"), 0, 1, 1, True, None, False)

    def stale(*_: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(tmp_path))

    with monkeypatch.context() as away:
        away.setattr("bm25rag.distributed.host.read_sharded", stale)
        with pytest.raises(StorageError, match=os.strerror(errno.ESTALE)):
            host.answer("count", (None,))
    assert host.answer("count", (None,)).value == 200

    def refused(_: object) -> bool:
        raise ConnectionError("the service of permissions is away")

    with pytest.raises(ConnectionError, match="permissions"):
        host.answer("count", (refused,))


class UnreadableError(Exception):
    """An exception that no other process can make again: its arguments are not those it keeps."""

    def __init__(self, user: str, right: str) -> None:
        super().__init__(f"{user} lacks {right}")


@pytest.mark.parametrize("within", [False, True])
def test_an_error_that_clients_could_not_read_is_told_in_words(
    tmp_path: Path, within: bool
) -> None:
    run(plan_of(write_corpus(tmp_path / "in"), tmp_path / "it", 3))
    host = Host(str(tmp_path / "it"), 0, 1, 1, True, None, False)

    def refused(_: object) -> bool:
        error = UnreadableError("anne", "reading")
        raise ValueError(error) if within else error

    told = f"{'ValueError' if within else 'UnreadableError'}: anne lacks reading"
    with pytest.raises(ClusterError, match=told):
        host.answer("count", (refused,))


def test_a_server_names_the_shard_of_which_a_text_is_damaged(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "in")
    with paths[4].open("a", encoding="utf-8") as file:
        file.write(json.dumps({"_id": "long", "text": "tide " + "boat " * 60_000}) + "\n")
    run(plan_of(paths, tmp_path / "it", 3))
    path = segment_of_shard(tmp_path / "it", 2)
    data = bytearray(path.read_bytes())
    data[data.index(b"tide boat") + 150_000] ^= 1  # in another block of the file
    path.write_bytes(data)
    host = Host(str(tmp_path / "it"), 0, 1, 1, True, None, False)
    answer = host.answer("search", (["tide", "word3"], 5, None, None, True))
    assert list(answer.failed) == [2]
    assert [[hit.id for hit in row] for row in answer.value.items] == [[], ["d3"]]
    bare = host.answer("search", (["tide"], 5, None, None, False))
    assert (bare.failed, bare.value.items) == ({}, [["long"]])


def test_nothing_is_behind_all_that_was_found() -> None:
    found = Found(Ranking(np.array([[3]]), np.array([[0.5]]), np.array([1])), [["a"]], [])
    behind = found.behind(10**30)
    assert (behind.ranking.counts.tolist(), behind.items) == ([0], [[]])
