"""What the format promises: a saved index answers as before, and later versions have room."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index, __version__
from bm25rag.errors import CorruptIndexError, FormatVersionError
from bm25rag.storage import manifest
from bm25rag.storage.manifest import LOCK, MANIFEST
from support.folders import body_of, write_manifest
from support.forging import Folder

QUERIES = [["boat"], ["red", "boat", "red"], ["sea", "海"], ["unknown"], []]
FILTERS: list[dict[str, Any] | None] = [None, {"n": {"$gte": 2}}, {"lang": "en"}]
TUNED: list[dict[str, Any]] = [{}, {"variant": "bm25+", "b": 0.3}, {"variant": "tfldp"}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Save an index that has all that the format knows: parts, deletions, changes, odd values."""
    monkeypatch.setattr("bm25rag.merging.policy.LEAST", 0)  # so that there are several parts
    when = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    index = BM25Index()
    index.add(
        ["A red boat", "The sea, the sea", "Red red boats", "", "海の船 boat", "ß \ud800 sea"],
        metadata=[
            {"n": 1, "lang": "en"},
            {"n": 2.5, "lang": "en", "tags": ["a", "b"], "deep": {"er": None}},
            {"n": True, "day": datetime.date(2024, 5, 1), "at": when},
            None,
            {"n": 2**70, "lang": "ja", "$dollar": "x", "ключ": "значение"},
            {"n": "2"},
        ],
        payloads=[b"", b"\x00\xff", None, None, b"payload", None],
        vectors=[{"a": 1.0, "7": -0.5}, None, {"a": 2.0}, {}, None, None],
    )
    index.add(["boat " * 300, "sea boat"], ids=["", "long-id" * 40], store_text=False)
    index.save(tmp_path / "index", extra={"kept": [1, "two"]})
    with BM25Index.open(tmp_path / "index", mode="w") as writer:
        writer.delete(["0"])
        writer.commit()
        writer.add([["red", "boat", "terms"]], metadata=[{"n": 3}])
        writer.update_metadata(["1", "4"], [{"n": 7, "lang": "fr"}, {}])
        writer.commit()
        writer.delete(["3"])
    return tmp_path / "index"


def answers(index: BM25Index) -> dict[str, Any]:
    """Return what an index answers, as JSON values, without the help of its analyzer."""
    documents = index.get(index.ids())
    return {
        "documents": [
            [one.id, one.text, repr(sorted(one.metadata.items())), repr(one.payload)]
            for one in documents
        ],
        "frequencies": index.document_frequencies().tolist(),
        "extra": index.extra,
        "analyzer": index.analyzer.to_dict(),
        "vectors": [[hit.id, hit.score.hex()] for hit in index.vectors.search({"a": 1, "7": 2})],
        "hits": [
            [[hit.id, hit.score.hex()] for hit in index.tune(**tuned).search(query, filter=chosen)]
            for tuned in TUNED
            for query in QUERIES
            for chosen in FILTERS
        ],
    }


def test_an_index_answers_the_same_however_it_is_read_and_written(folder: Path) -> None:
    kinds = {path.name.partition("-")[0] for path in folder.iterdir()} - {LOCK}
    assert kinds == {"manifest.json", "segment", "changes"}
    expected = answers(BM25Index.open(folder))
    assert len(expected["documents"]) == 7
    assert sum(map(len, expected["hits"])) > 20
    for mmap in (True, False):
        assert answers(BM25Index.open(folder, mmap=mmap, verify=True)) == expected
    reader = BM25Index.open(folder)
    with BM25Index.open(folder, mode="w") as writer:
        assert answers(writer) == expected
        writer.add(["brandnew"], ids=["brandnew"])
        writer.delete(["brandnew"])
        writer.compact()
        assert answers(writer) == expected
    assert reader.refresh()
    assert answers(reader) == expected


def put_needs(folder: Path, **needs: Any) -> None:
    """Have a folder need more than this version knows, as a later bm25rag would write it."""
    body = body_of(folder)
    body["needs"] |= needs
    write_manifest(folder, body)
    outer = json.loads((folder / MANIFEST).read_bytes())
    (folder / MANIFEST).write_text(json.dumps(outer | {"written_by": "7.1"}))


WRITES: list[Callable[[Path], object]] = [
    lambda folder: BM25Index.open(folder, mode="w"),
    lambda folder: BM25Index.from_texts(["red"]).save(folder, overwrite=True),
    lambda folder: BM25Index.open(folder).save(folder, overwrite=True),
]
READS: list[Callable[[Path], object]] = [
    lambda folder: BM25Index.open(folder),
    lambda folder: BM25Index.open(folder, untrusted=True),
    lambda folder: BM25Index.verify(folder),
]


def test_a_manifest_says_who_wrote_it_in_which_version(folder: Path) -> None:
    outer = json.loads((folder / MANIFEST).read_bytes())
    assert (outer["version"], outer["written_by"]) == (1, __version__)
    assert outer["body"]["needs"] == {"read": [], "write": []}


@pytest.mark.parametrize("use", [*READS, *WRITES])
def test_a_later_format_is_refused_and_the_bm25rag_that_reads_it_is_named(
    folder: Path, use: Callable[[Path], object]
) -> None:
    text = '{"format": "bm25rag", "version": 2, "written_by": "7.1"}'
    (folder / MANIFEST).write_text(text)
    message = r"manifest\.json has format version 2, newer than 1: install bm25rag 7\.1 or newer"
    with pytest.raises(FormatVersionError, match=message):
        use(folder)
    assert (folder / MANIFEST).read_text() == text


@pytest.mark.parametrize("use", [*READS, *WRITES])
def test_what_a_reader_must_know_and_does_not_is_named(
    folder: Path, use: Callable[[Path], object]
) -> None:
    put_needs(folder, read=["positions"])
    before = (folder / MANIFEST).read_bytes()
    message = r"needs a reader that knows positions.*: install bm25rag 7\.1 or newer"
    with pytest.raises(FormatVersionError, match=message):
        use(folder)
    assert (folder / MANIFEST).read_bytes() == before


def test_what_only_a_writer_must_know_can_be_read_and_is_preserved(folder: Path) -> None:
    expected = answers(BM25Index.open(folder))
    put_needs(folder, write=["journal"])
    before = (folder / MANIFEST).read_bytes()
    for read in READS:
        read(folder)
    assert answers(BM25Index.open(folder)) == expected
    message = r"needs a writer that knows journal.*mode='r', or install bm25rag 7\.1 or newer"
    for write in WRITES:
        with pytest.raises(FormatVersionError, match=message):
            write(folder)
    assert (folder / MANIFEST).read_bytes() == before


def test_a_reader_that_knows_what_is_needed_reads_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_needs(folder, read=["positions"], write=["journal"])
    monkeypatch.setattr(manifest, "KNOWN", frozenset({"positions", "journal"}))
    with BM25Index.open(folder, mode="w") as writer:
        writer.add(["green"], ids=["green"])
    assert BM25Index.open(folder).search("green")


@pytest.mark.parametrize("needs", [None, 3, [["x"]], [None, "x"], [3, 4]])
def test_needs_that_nobody_can_have_written_are_refused(folder: Path, needs: Any) -> None:
    put_needs(folder, read=needs)
    with pytest.raises(CorruptIndexError, match="cannot be read"):
        BM25Index.open(folder)


def test_what_nobody_needs_is_ignored_and_stays_while_its_file_does(
    folder: Path, tmp_path: Path
) -> None:
    expected = answers(BM25Index.open(folder))
    parts = Folder.read(folder)
    for piece in parts.pieces:
        piece.segment["positions"] = np.arange(5, dtype=np.uint32)
    parts.settings["later"] = {"kept": False}
    later = tmp_path / "later"
    parts.write(later)
    assert answers(BM25Index.open(later, untrusted=True)) == expected
    with BM25Index.open(later, mode="w") as writer:
        writer.delete(["long-id" * 40])
    pieces = Folder.read(later).pieces
    assert pieces
    assert all("positions" in piece.segment for piece in pieces)
    with BM25Index.open(later, mode="w") as writer:
        writer.compact()
    assert "positions" not in Folder.read(later).pieces[0].segment
    assert "later" not in Folder.read(later).settings
