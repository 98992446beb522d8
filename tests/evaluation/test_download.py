"""BEIR's collections by name, from a server on this machine: whole, interrupted and hostile."""

from __future__ import annotations

import hashlib
import io
import re
import stat
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bm25rag.evaluation import beir, download, load_beir
from support.commands import fails, ok
from support.evaluation import QUERIES, TEXTS, write_tiny_collection


class Server(ThreadingHTTPServer):
    """Serves one archive, perhaps cut off, perhaps without ranges; notes what it is asked."""

    body = b""
    cut: int | None = None
    ranges = True
    announced = True
    refuses = False
    length = ""
    sent = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/beir"


class Answers(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        given = self.headers.get("Range")
        self.server.asked.append((self.path, given))
        if self.path != "/beir/scifact.zip":
            self.send_error(404)
            return
        whole, start = self.server.body, 0
        if given and self.server.ranges:
            start = int(given.removeprefix("bytes=").removesuffix("-"))
            if start >= len(whole) or self.server.refuses:
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
        elif self.server.refuses:
            self.send_error(416)
            return
        else:
            self.send_response(200)
        if self.server.announced:
            self.send_header("Content-Length", self.server.length or str(len(whole) - start))
        self.end_headers()
        body = whole[start : self.server.cut]
        with suppress(ConnectionError):
            for at in range(0, len(body), 1 << 16):
                self.wfile.write(body[at : at + (1 << 16)])
                self.server.sent += 1 << 16

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve the tiny collection as if it were SciFact, within an empty current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    serving = Server()
    publish(serving, monkeypatch, tiny_archive())
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield serving
    serving.shutdown()
    serving.server_close()
    thread.join()


def publish(server: Server, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    server.body = body
    archive = beir.BEIR["scifact"]._replace(md5=hashlib.md5(body).hexdigest())
    monkeypatch.setitem(beir.BEIR, "scifact", archive)


def zipped(files: dict[str | zipfile.ZipInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return made.getvalue()


def tiny_archive() -> bytes:
    folder = Path(write_tiny_collection())
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return zipped(
        {f"scifact/{one.relative_to(folder).as_posix()}": one.read_bytes() for one in files}
    )


def left(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def test_a_collection_is_downloaded_checked_and_unpacked(server: Server) -> None:
    made = download("scifact", "data", url=server.url)
    assert made == Path("data/scifact")
    loaded = load_beir(made)
    assert loaded.queries == QUERIES
    assert {one.id: one.text for one in loaded.read()} == TEXTS
    assert left("data") == ["scifact"], "neither the archive nor anything else stays"
    assert download("scifact", "data", url=server.url) == made
    assert server.asked == [("/beir/scifact.zip", None)], "what is there is not fetched again"


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_goes_on(server: Server, ranges: bool) -> None:
    server.cut = 300
    with pytest.raises(ConnectionError, match=r"after 300 of [\d,]+ bytes.* the next download con"):
        download("scifact", "data", url=server.url)
    assert left("data") == ["scifact.zip.part"]
    server.cut, server.ranges = None, ranges
    assert load_beir(download("scifact", "data", url=server.url)).queries == QUERIES
    assert [asked for _, asked in server.asked] == [None, "bytes=299-"]
    assert left("data") == ["scifact"]


def test_what_was_fetched_but_not_unpacked_is_not_fetched_again(server: Server) -> None:
    Path("data").mkdir()
    Path("data/scifact.zip.part").write_bytes(server.body)
    download("scifact", "data", url=server.url)
    assert [asked for _, asked in server.asked] == [f"bytes={len(server.body) - 1}-"]
    assert left("data") == ["scifact"]


def test_another_archive_is_refused_and_removed(server: Server) -> None:
    server.body = server.body[:-1] + b"?"
    with pytest.raises(ValueError, match="not the archive that BEIR published: its MD5 sum is"):
        download("scifact", "data", url=server.url)
    assert left("data") == []


def test_what_is_longer_than_the_file_is_removed(server: Server) -> None:
    Path("data").mkdir()
    Path("data/scifact.zip.part").write_bytes(server.body + b"more")
    with pytest.raises(ConnectionError, match=r"answered 416 .* is removed, try again"):
        download("scifact", "data", url=server.url)
    assert left("data") == []


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("scifact/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "name",
    [
        "../out",
        "scifact/../../out",
        "/out",
        "other/corpus.jsonl",
        "scifact",
        "scifact/c:out",
        link(),
    ],
    ids=str,
)
def test_an_archive_that_leads_elsewhere_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str | zipfile.ZipInfo
) -> None:
    publish(server, monkeypatch, zipped({"scifact/corpus.jsonl": b"{}", name: b"/etc/passwd"}))
    with pytest.raises(ValueError, match="which is not a file in scifact/"):
        download("scifact", "data", url=server.url)
    assert left("data") == []
    assert "out" not in left(".")


def test_an_archive_with_more_than_there_is_room_for_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, monkeypatch, zipped({"scifact/corpus.jsonl": bytes(10_000)}))
    with pytest.raises(ValueError, match="the archive has 10,000 bytes unpacked; at most 1,000"):
        download("scifact", "data", url=server.url, max_unpacked=1000)
    assert left("data") == []


def test_a_file_gives_no_more_than_it_declares(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bomb: 100,000 bytes that are declared as 10."""
    body = zipped({"scifact/corpus.jsonl": bytes(100_000)})
    size = (100_000).to_bytes(4, "little")
    assert body.count(size) == 2
    publish(server, monkeypatch, body.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(ValueError, match="not an archive that can be unpacked"):
        download("scifact", "data", url=server.url)
    assert left("data") == []


@pytest.mark.parametrize("announced", [True, False])
def test_what_is_larger_than_expected_is_not_fetched(server: Server, announced: bool) -> None:
    server.body, server.announced = bytes(60_000_000), announced
    with pytest.raises(ValueError, match=r"bytes or more, and at most 6,000,000 .* --max-size"):
        download("scifact", "data", url=server.url)
    assert left("data") == []
    assert server.sent < 60_000_000
    fails(
        3,
        "at most 1,000,000",
        "download",
        "scifact",
        "data",
        "--url",
        server.url,
        "--max-size",
        "1MB",
    )
    fails(2, "--max-size must be a size", "download", "scifact", "data", "--max-size", "big")


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({}, "corpus.jsonl"),
        ({"scifact/corpus.jsonl": b""}, "queries.jsonl"),
        ({"scifact/corpus.jsonl": b"", "scifact/queries.jsonl": b""}, "qrels/*.tsv"),
    ],
)
def test_an_archive_without_a_collection_is_refused_and_removed(
    server: Server, monkeypatch: pytest.MonkeyPatch, files: dict[Any, bytes], missing: str
) -> None:
    publish(server, monkeypatch, zipped(files))
    with pytest.raises(ValueError, match=re.escape(f"has no scifact/{missing}: it holds no")):
        download("scifact", "data", url=server.url)
    assert left("data") == []


def test_what_is_no_archive_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(server, monkeypatch, b"<html>moved</html>")
    with pytest.raises(ValueError, match="not an archive that can be unpacked"):
        download("scifact", "data", url=server.url)


def test_the_command_says_where_it_is_and_what_went_wrong(server: Server) -> None:
    arguments = ("download", "scifact", "data", "--url")
    assert ok(*arguments, server.url).stdout == f"{Path('data/scifact')}\n"
    assert "there already" in ok(*arguments, server.url).stderr
    elsewhere = ("download", "nfcorpus", "data", "--url")
    fails(3, "nfcorpus.zip: the server answered 404", *elsewhere, server.url)
    fails(3, "is there a network, or does it need a proxy", *elsewhere, "http://127.0.0.1:9")
    fails(3, "url must begin with https://", *elsewhere, "file:///etc")
    fails(2, "'nowhere' is not one of", "download", "nowhere", "data")
    Path("file").touch()
    fails(3, "file", "download", "nfcorpus", "file", "--url", server.url)


def test_the_names_and_sums_are_those_of_beir() -> None:
    assert len(beir.BEIR) == len({one.md5 for one in beir.BEIR.values()}) == 15
    assert all(len(one.md5) == 32 for one in beir.BEIR.values())
    with pytest.raises(ValueError, match=r"name must be .* got 'Scifact'"):
        download("Scifact", ".")


def test_a_refused_range_without_a_part_is_an_answer_like_others(server: Server) -> None:
    server.refuses = True
    with pytest.raises(ConnectionError, match="the server answered 416"):
        download("scifact", "data", url=server.url)
    assert left("data") == []


def test_a_length_that_no_file_has_is_not_believed(server: Server) -> None:
    server.length = "9" * 5_000
    assert download("scifact", "data", url=server.url) == Path("data/scifact")


@pytest.mark.parametrize("kept", [b"", b"PK"])
def test_an_empty_answer_is_no_archive_and_what_is_there_is_kept(
    server: Server, kept: bytes
) -> None:
    Path("data").mkdir()
    part = Path("data/scifact.zip.part")
    if kept:
        part.write_bytes(kept)
    server.announced, server.cut = False, 0
    with pytest.raises(ConnectionError, match="the server's answer is empty"):
        download("scifact", "data", url=server.url)
    assert (part.read_bytes() if part.exists() else b"") == kept
