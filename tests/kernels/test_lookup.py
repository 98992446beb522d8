"""What the kernels read of a segment: the same as Python's own way, and nothing unchecked."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bm25rag import Analyzer, BM25Index
from bm25rag.common.strings import utf8
from bm25rag.kernels import backend as backends
from bm25rag.kernels.records import FileBlocks, PostingsArrays, StringArrays
from bm25rag.segments.postings import Postings
from support.numbers import found_by_kernels

pytestmark = pytest.mark.usefixtures("backend")
# "plumless" and "buckeroo" have the same CRC-32.
TWINS = ("plumless", "buckeroo")
WORDS = (*TWINS, "a", "\u00e9", "\U0001f600", "word")


def looked_up(postings: Postings, term: str) -> list[int] | None:
    """Return what the kernels say; ``None`` if they leave the term to Python."""
    assert postings.arrays is not None
    return found_by_kernels(postings.arrays, term)


def without_kernels(postings: Postings, term: str) -> list[int]:
    number = postings.terms.find(utf8(term))
    count = postings.doc_blocks.count + 1
    return [0] * count if number < 0 else postings.starts(number).tolist()


def build(texts: list[str], doc_block: int) -> BM25Index:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", doc_block)
        return BM25Index.from_texts(texts, analyzer=Analyzer(tokenizer=str.split))


def postings_of(index: BM25Index) -> Postings:
    (view,) = index._snapshot.views
    return view.segment.postings


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=40),
    st.sampled_from([3, 7, 65_536]),
)
def test_terms_are_found_as_python_finds_them(texts: list[str], doc_block: int) -> None:
    postings = postings_of(build(["a", *texts], doc_block))
    every = (*WORDS, "absent", "")
    for term in every:
        found = looked_up(postings, term)
        assert found is not None or backends.current().name == "numpy" or term in TWINS
        assert found is None or found == without_kernels(postings, term)
        assert postings.find(utf8(term)).tolist() == without_kernels(postings, term)


def test_nothing_is_found_in_several_blocks_of_documents_without_terms(tmp_path: Path) -> None:
    index = build([""] * 10, 7)
    index.save(tmp_path / "index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 7)
        opened = BM25Index.open(tmp_path / "index", tokenizer=str.split)
    for each in (index, opened):
        assert postings_of(each).find(b"a").tolist() == [0, 0, 0]
        assert each.search("a") == []


def test_codes_of_many_kinds_take_four_bytes() -> None:
    postings = postings_of(build(["a b", "a a"], 65_536))
    postings.codes = postings.codes.astype(np.uint32)
    found = looked_up(postings, "a")
    assert found == without_kernels(postings, "a") or backends.current().name == "numpy"


def test_of_a_file_only_what_is_checked_is_read(tmp_path: Path) -> None:
    """At first the kernels check it, or leave it to Python; from then on, they answer."""
    texts = [f"{' '.join(WORDS)} only{number}" for number in range(30)]
    saved = build(texts, 7)
    saved.save(tmp_path / "index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 7)
        postings = postings_of(BM25Index.open(tmp_path / "index", tokenizer=str.split))
        assert postings.arrays is not None
        postings.arrays.file.flags[:] = 0  # the file has one block, which reading it has checked
        expected = postings_of(saved).find(b"word").tolist()
        if looked_up(postings, "word") is not None:
            assert checks_blocks()
            assert postings.arrays.file.flags.all()
            assert looked_up(postings, "word") == expected
        assert postings.find(b"word").tolist() == expected
        if backends.current().name != "numpy":
            assert looked_up(postings, "word") == expected
            assert looked_up(postings, "absent") is not None


def checks_blocks() -> bool:
    """Whether the kernels check blocks of files themselves."""
    if backends.current().name == "numpy":
        return False
    from bm25rag.kernels import checksum  # compiled, or interpreted: which is known by now

    return bool(checksum.IS_FAST)


@pytest.mark.parametrize("is_right", [True, False])
def test_kernels_check_blocks_of_a_file_or_leave_them_to_python(is_right: bool) -> None:
    """The offsets lie in the first block of 16 bytes, the data in the other two, one short."""
    data = bytes(np.array([0, 16, 17], np.uint32)) + bytes(4) + b"0123456789abcdefg"
    blocks = [data[first : first + 16] for first in range(0, len(data), 16)]
    sums = np.array(list(map(zlib.crc32, blocks)), np.uint32)
    sums[2] ^= not is_right
    whole, flags = np.frombuffer(data, np.uint8), np.zeros(3, np.uint8)
    offsets, characters = whole[:12].view(np.uint32), whole[16:]
    strings = StringArrays(offsets, characters, FileBlocks(flags, 16, [0, 16], whole, sums))
    decode = backends.current().decode
    if not checks_blocks():
        assert decode(strings, [0]) is None, "left to Python"
        assert not flags.any()
        return
    assert decode(strings, [0]) == ["0123456789abcdef"]
    assert flags.tolist() == [1, 1, 0], "nothing else is looked at"
    assert decode(strings, [0, 1]) == (["0123456789abcdef", "g"] if is_right else None)
    assert flags.tolist() == [1, 1, is_right]


def test_of_a_file_only_checked_strings_are_decoded() -> None:
    """The offsets lie in the first two blocks of 16 bytes, the data in the third and fourth."""
    flags = np.array([1, 1, 1, 0], np.uint8)
    offsets = np.array([0, 16, 17], np.uint64)
    data = np.frombuffer(b"0123456789abcdefg", np.uint8)
    strings = StringArrays(offsets, data, FileBlocks(flags, 16, [0, 32]))
    decode = backends.current().decode
    if backends.current().name == "numpy":
        assert decode(strings, [0]) is None, "left to Python"
        return
    assert decode(strings, [0, 0]) == ["0123456789abcdef"] * 2
    assert decode(strings, [0, 1]) is None
    flags[3] = 1
    assert decode(strings, [0, 1]) == ["0123456789abcdef", "g"]
    flags[1] = 0
    assert decode(strings, [1]) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("indptr", [1, 1, 3]),  # no postings
        ("indptr", [0, 9, 3]),
        ("documents", [0, 1, 1]),  # of the second block, which has one document
        ("documents", [0, 9, 0]),
        ("codes", [0, 5, 0]),
        ("edges", [[3]]),
        ("edges", [[0]]),
        ("high", [2]),
        ("high", []),
        ("before", [5]),
    ],
)
def test_what_is_wrong_is_left_to_python(name: str, value: list[int]) -> None:
    """Three documents in blocks of two: the first term in 0 and 2, the second in 1."""
    assert wrong_or_found() == [[0, 1, 2], [2, 3, 3]] or backends.current().name == "numpy"
    assert None in wrong_or_found(**{name: value})


def wrong_or_found(**changed: list[int]) -> list[list[int] | None]:
    arrays = {
        "indptr": np.array([0, 2, 3], np.uint32),
        "documents": np.array([0, 0, 1], np.uint16),
        "codes": np.zeros(3, np.uint16),
        "frequent": np.array([0], np.uint32),
        "edges": np.array([[1]], np.uint32),
        "before": np.array([0], np.uint32),
        "high": np.array([0], np.uint16),
    }
    for name, value in changed.items():
        arrays[name] = np.array(value, arrays[name].dtype)
    terms = sorted((zlib.crc32(term), term) for term in (b"one", b"two"))
    keys = np.array([key for key, _ in terms], np.uint32)
    data = np.frombuffer(b"".join(term for _, term in terms), np.uint8)
    strings = StringArrays(np.array([0, 3, 6], np.uint64), data)
    file = FileBlocks(np.ones(1, np.uint8), 1 << 16, [0] * 5)
    postings = PostingsArrays(
        strings, keys, code_count=1, size=3, block_size=2, file=file, **arrays
    )
    return [found_by_kernels(postings, term.decode()) for _, term in terms]
