"""Texts in pieces: they come back as they were, whatever happens to the folder."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import BM25Index, Document
from bm25rag.columns import packing
from bm25rag.errors import CorruptIndexError
from bm25rag.kernels import backend
from support.forging import Folder

TEXTS = ["", "a", "the theory of the other thing " * 9, "\0a\0", "größe 漢字 \ud800!", "x" * 5000]
packs = pytest.mark.skipif(backend.current().name == "numpy", reason="this backend does not pack")


@pytest.fixture(autouse=True)
def every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "LEAST", 1)
    monkeypatch.setattr(packing, "_OFTEN", 2)


def texts_of(index: BM25Index) -> list[str | None]:
    return [document.text for document in index.get(index.ids())]


@pytest.mark.parametrize("mmap", [True, False])
def test_texts_survive_saving_merging_and_copying(tmp_path: Path, mmap: bool) -> None:
    BM25Index.from_texts(TEXTS * 3).save(tmp_path / "a")
    with BM25Index.open(tmp_path / "a", mode="w", mmap=mmap) as writer:
        writer.add(["not kept"], store_text=False)
        writer.add(TEXTS)
        writer.delete(["1", "7"])
        writer.commit()
        writer.compact()
        writer.commit()
    expected = TEXTS * 3
    del expected[7], expected[1]
    reader = BM25Index.open(tmp_path / "a", mmap=mmap)
    assert texts_of(reader) == [*expected, None, *TEXTS]
    assert texts_of(pickle.loads(pickle.dumps(reader))) == texts_of(reader)
    assert [hit.text for hit in reader.search("theory", k=9)] == [TEXTS[2]] * 4
    reader.save(tmp_path / "b")
    BM25Index.verify(tmp_path / "b")
    assert texts_of(BM25Index.open(tmp_path / "b")) == texts_of(reader)


@packs
def test_frequent_strings_take_little_room(tmp_path: Path) -> None:
    text = "a passage of which all words occur again and again in this passage of words"
    index = BM25Index.from_texts([text] * 500)
    index.save(tmp_path / "a")
    BM25Index.build((Document(str(n), text) for n in range(500)), tmp_path / "b")
    for name in ("a", "b"):
        arrays = Folder.read(tmp_path / name).pieces[0].segment
        packed = sum(arrays[f"texts.{part}"].nbytes for part in ("numbers", "pieces"))
        assert packed < 500 * len(text) / 2


@packs
@given(st.lists(st.text(), max_size=9), st.lists(st.text("abc \0é"), max_size=30))
def test_what_is_packed_is_put_together_again(seen: list[str], texts: list[str]) -> None:
    hot = backend.current()
    known, data = laid_out(seen + texts * 3), laid_out(texts)
    pieces = hot.find_pieces(*known, 2)
    assert pieces is not None
    numbers, ends = hot.pack(pieces, *data)
    found = hot.unpack(pieces.bytes, numbers, ends[:-1], ends[1:])
    assert found is not None
    assert found[0].tobytes() == data[0].tobytes()[:-8]
    assert found[1].tolist() == data[1].tolist()
    from bm25rag.kernels.numpy_twin import NumpyBackend

    twin = NumpyBackend().unpack(pieces.bytes, numbers, ends[:-1], ends[1:])
    assert twin is not None
    assert [one.tobytes() for one in twin] == [one.tobytes() for one in found]


def laid_out(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    each = [text.encode("utf-8", "surrogatepass") for text in texts]
    data = np.frombuffer(b"".join(each) + bytes(8), np.uint8)
    return data, np.cumsum([0, *map(len, each)], dtype=np.int64)


def beyond(segment: dict[str, np.ndarray]) -> None:
    segment["texts.numbers"] = segment["texts.numbers"] | np.uint16(0xFF00)


def fewer(segment: dict[str, np.ndarray]) -> None:
    segment["texts.pieces"] = segment["texts.pieces"][:1]


def falling(segment: dict[str, np.ndarray]) -> None:
    segment["texts.offsets"] = segment["texts.offsets"][::-1].copy()


def far(segment: dict[str, np.ndarray]) -> None:
    segment["texts.offsets"] = segment["texts.offsets"] + np.uint32(2**20)


def ragged(segment: dict[str, np.ndarray]) -> None:
    segment["texts.numbers"] = np.append(segment["texts.numbers"], np.uint16(65))


def not_text(segment: dict[str, np.ndarray]) -> None:
    segment["texts.pieces"] = segment["texts.pieces"] | np.uint64(0xFF)


@packs
@pytest.mark.parametrize("forge", [beyond, fewer, falling, far, not_text])
def test_forged_pieces_are_refused_when_they_are_read(
    tmp_path: Path, forge: Callable[[dict[str, np.ndarray]], None]
) -> None:
    BM25Index.from_texts(TEXTS).save(tmp_path / "a")
    folder = Folder.read(tmp_path / "a")
    forge(folder.pieces[0].segment)
    folder.write(tmp_path / "b")
    index = BM25Index.open(tmp_path / "b")
    for read in (lambda: texts_of(index), lambda: BM25Index.verify(tmp_path / "b")):
        with pytest.raises(CorruptIndexError, match=r"restore|not UTF-8"):
            read()


@packs
def test_hidden_pieces_are_found_by_verify(tmp_path: Path) -> None:
    BM25Index.from_texts(TEXTS).save(tmp_path / "a")
    folder = Folder.read(tmp_path / "a")
    ragged(folder.pieces[0].segment)
    folder.write(tmp_path / "b")
    with pytest.raises(CorruptIndexError, match=r"texts\.offsets does not cover"):
        BM25Index.verify(tmp_path / "b")
