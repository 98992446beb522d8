"""A build on disk ends with the files of an index that was built in memory, byte for byte."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bm25rag import BM25Index, Document
from bm25rag.additions import NewRecords
from bm25rag.building.gathering import PartsWriter
from bm25rag.common.chunks import Spools
from bm25rag.live.index import open_folder
from bm25rag.merging.merge import merge_in_chunks, merge_segments
from bm25rag.storage.folder_reader import FolderReader
from bm25rag.storage.manifest import read_manifest
from bm25rag.storage.segment_files import _segment_arrays, write_segment
from support.building import documents, segment_in_memory, segment_of, segment_of_shard
from support.constants import SMALL
from support.filter_strategies import METADATA
from support.strategies import TERMS

words = st.lists(st.sampled_from([*TERMS, "plumless", "buckeroo", "é", "\ud800", ""]), max_size=7)
texts = st.one_of(words.map(" ".join), words)
metadata = st.one_of(
    METADATA,
    st.builds(lambda name: {"name": name}, st.text(max_size=3)),
    st.sampled_from([{"n": 2**70}, {"n": float("nan")}, {"x": [1, [2], {"y": 3}]}, {"x": -1.5}]),
)
records = st.builds(
    Document,
    st.sampled_from([f"id{number}" for number in range(12)] + ["plumless", "buckeroo"]),
    words.map(" ".join),
    metadata,
    st.none() | st.binary(max_size=3),
)
fielded = st.none() | st.just({"title": 2.0, "text": 0.0, "notes": 1.0})


def in_fields(given: list[Document], fields: dict[str, float] | None) -> list[Document]:
    """Divide the texts of documents among fields, if there are any."""
    if fields is None:
        return given
    return [
        one
        if len(one.text or "") % 2
        else replace(
            one, text=None, fields={"title": (one.text or "")[:4], "notes": one.text or ""}
        )
        for one in given
    ]


# Each example writes dozens of files.
fewer = settings(max_examples=settings().max_examples // 2)
rooms = st.sampled_from([1, 2000, 5000, 1 << 30])


@pytest.fixture(scope="module", autouse=True)
def small(backend: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(name, value)
        yield


def built(folder: Path, part: int, merge: int, given: Any, **arguments: Any) -> BM25Index:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.building.gathering.part_room", lambda *_: part)
        for module in ("build", "gathering"):
            patch.setattr(f"bm25rag.building.{module}.merge_room", lambda _: merge)
        return BM25Index.build(given, folder, **arguments)


@fewer
@given(
    given=st.lists(records, max_size=10),
    on_duplicate=st.sampled_from(["skip", "replace"]),
    store_text=st.booleans(),
    part=rooms,
    merge=rooms,
    threads=st.sampled_from([1, 2]),
    fields=fielded,
)
def test_records(
    given: list[Document],
    on_duplicate: Any,
    store_text: bool,
    part: int,
    merge: int,
    threads: int,
    fields: dict[str, float] | None,
) -> None:
    given = in_fields(given, fields)
    settings = {"k1": 0.9, "fields": fields}
    add = {"on_duplicate": on_duplicate, "store_text": store_text, "threads": threads}
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        expected = segment_in_memory(folder / "memory", given, add, settings)
        index = built(folder / "disk", part, merge, iter(given), **settings, **add)
        assert segment_of(folder / "disk") == expected
        manifests = [read_manifest(str(folder / name)) for name in ("disk", "memory")]
        assert manifests[0].settings == manifests[1].settings
        assert manifests[0].tokens == manifests[1].tokens
        BM25Index.verify(folder / "disk")
        del index


@fewer
@given(given=st.lists(texts, max_size=14), part=rooms, merge=rooms)
def test_texts_and_lists_of_terms(given: list[Any], part: int, merge: int) -> None:
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        expected = segment_in_memory(folder / "memory", given, {}, {})
        index = built(folder / "disk", part, merge, iter(given))
        assert segment_of(folder / "disk") == expected
        assert index.ids() == [str(row) for row in range(len(given))]


@fewer
@given(
    parts=st.lists(st.lists(records, min_size=1, max_size=9), min_size=1, max_size=4),
    deleted=st.lists(st.sampled_from([f"id{number}" for number in range(12)]), max_size=6),
    room=rooms,
    threads=st.sampled_from([1, 2]),
    fields=fielded,
)
def test_segments_with_deleted_documents(
    parts: list[list[Document]],
    deleted: list[str],
    room: int,
    threads: int,
    fields: dict[str, float] | None,
) -> None:
    names = None if fields is None else tuple(fields)
    with tempfile.TemporaryDirectory() as folder:
        BM25Index(fields=fields).save(folder)
        for part in parts:
            reader = FolderReader(folder, True, None, False)
            index = open_folder(reader, PartsWriter.lock(folder, 0))
            records = NewRecords(in_fields(part, fields), True, False, names)
            index.add(records, "replace", 1)
            index.delete(deleted, None)
            index.commit()
            index.abandon()
        views = [view for view in BM25Index.open(folder)._live.state.snapshot.views if view.count]
        if not views:
            return
        with Spools(folder) as spools:
            arrays = merge_in_chunks(views, spools, room, threads)
            _, merged = write_segment(folder, arrays, (0,))
        _, expected = write_segment(folder, _segment_arrays(merge_segments(views), True), (0,))
        assert Path(folder, merged.name).read_bytes() == Path(folder, expected.name).read_bytes()


def test_long_strings_of_documents_that_are_partly_deleted(tmp_path: Path) -> None:
    """They are copied some at a time."""
    given = [Document(str(n % 7), "sea " * (n * 3000), {"n": str(n)}) for n in range(20)]
    expected = segment_in_memory(tmp_path / "memory", given, {"on_duplicate": "replace"}, {})
    built(tmp_path / "disk", 1, 1, given, on_duplicate="replace")
    assert segment_of(tmp_path / "disk") == expected


def test_shards(tmp_path: Path) -> None:

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.building.gathering.part_room", lambda *_: 1)
        BM25Index.build(documents(), tmp_path / "it", shards=3)
    for shard, (first, last) in enumerate([(0, 13), (13, 26), (26, 40)]):
        of_shard = [*documents()][first:last]
        expected = segment_in_memory(tmp_path / str(shard), of_shard, {}, {})
        assert segment_of_shard(tmp_path / "it", shard).read_bytes() == expected
