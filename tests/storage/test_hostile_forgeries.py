"""Forged folders with valid checksums: ``verify`` refuses them, or everything works.

``forging.py`` and ``forgeries.py`` take folders apart and change what they mean; ``use_forged.py``
uses each in every way, in a process of its own, which an access out of bounds may kill.
"""

from __future__ import annotations

import math
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import settings

from bm25rag import BM25Index
from bm25rag.errors import CorruptIndexError
from bm25rag.kernels import backend
from support.environment import ROOT
from support.forging import Folder, Piece, empty, put_ids, put_strings, put_terms, strings


@pytest.mark.slow
@pytest.mark.parametrize("name", backend.available())
def test_what_verify_lets_through_works_and_nothing_crashes(name: str) -> None:
    # 120 in `make test`, 3,000 in `make soak`; fewer for NumPy, which cannot read beyond an array.
    cases = max(120, settings().max_examples ** 2 // 30) // (4 if name == "numpy" else 1)
    command = [sys.executable, "-W", "error", "-m", "support.use_forged", name, "0", str(cases)]
    done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True)
    last = "\n".join(done.stdout.splitlines()[-40:])
    assert done.returncode == 0, f"{last}\n{done.stderr}"
    assert f"{cases} cases" in last


def replace(name: str, place: int, value: int) -> Callable[[Piece], None]:
    """Return a function that replaces one element of a segment's array."""

    def change(piece: Piece) -> None:
        values = piece.segment[name].copy()
        values[place] = value
        piece.segment[name] = values

    return change


def swap(name: str) -> Callable[[Piece], None]:
    """Return a function that swaps the first two elements of a segment's array."""

    def change(piece: Piece) -> None:
        values = piece.segment[name].copy()
        values[[0, 1]] = values[[1, 0]]
        piece.segment[name] = values

    return change


def string(name: str, place: int, value: bytes | None) -> Callable[[Piece], None]:
    """Return a function that replaces one string of a segment's column of documents."""

    def change(piece: Piece) -> None:
        values = strings(piece.segment, name, len(piece.segment["lengths"]))
        values[place] = value
        put_strings(piece.segment, name, values)

    return change


def terms_of(piece: Piece) -> list[bytes]:
    return [
        term or b"" for term in strings(piece.segment, "terms", len(piece.segment["terms.keys"]))
    ]


def term_twice(piece: Piece) -> None:
    terms = terms_of(piece)
    put_terms(piece.segment, [terms[1], *terms[1:]])


def terms_by_text(piece: Piece) -> None:
    put_strings(piece.segment, "terms", sorted(terms_of(piece)))


def terms_of_one_key_turned(piece: Piece) -> None:
    terms = terms_of(piece)
    place = terms.index(b"buckeroo")
    assert terms[place + 1] == b"plumless"
    terms[place : place + 2] = terms[place + 1], terms[place]
    put_terms(piece.segment, terms, ordered=False)


def term_that_is_no_text(piece: Piece) -> None:
    put_terms(piece.segment, [b"\xff", *terms_of(piece)[1:]])


def id_twice(piece: Piece) -> None:
    count = len(piece.segment["lengths"])
    put_ids(piece.segment, [b"same" for _ in range(count)])


def id_of_another_segment(piece: Piece) -> None:
    ids = [one or b"" for one in strings(piece.segment, "ids", len(piece.segment["lengths"]))]
    put_ids(piece.segment, [*ids[:-1], b"later"])


def id_that_is_no_text(piece: Piece) -> None:
    ids = [one or b"" for one in strings(piece.segment, "ids", len(piece.segment["lengths"]))]
    put_ids(piece.segment, [*ids[:-1], b"\xff"])


def codes_of_other_lengths(piece: Piece) -> None:
    # The same total length, swapped: a merge would repair it, scores would not notice.
    lengths = piece.segment["code_length"].copy()
    piece.segment["code_length"] = lengths + np.uint32(1)


def flag_of_two(piece: Piece) -> None:
    flags = piece.segment["payloads.null"].view(np.uint8).copy()
    flags[0] = 2
    piece.segment["payloads.null"] = flags.view(np.bool_)


def hidden_string(piece: Piece) -> None:
    flags = piece.segment["payloads.null"].copy()
    flags[1] = True
    piece.segment["payloads.null"] = flags


def hidden_data(piece: Piece) -> None:
    piece.segment["texts.data"] = np.append(piece.segment["texts.data"], np.uint8(65))


def character_cut_in_two(piece: Piece) -> None:
    offsets = piece.segment["texts.offsets"].copy()
    text = piece.segment["texts.data"].tobytes()
    offsets[1] = text.index("é".encode()) + 1
    piece.segment["texts.offsets"] = offsets


def field_strings_turned(piece: Piece) -> None:
    arrays = piece.segment
    count = len(arrays["fields.strings.offsets"]) - 1
    put_strings(arrays, "fields.strings", strings(arrays, "fields.strings", count)[::-1])


def new_metadata(data: bytes) -> Callable[[Piece], None]:
    """Return a function that replaces metadata from a later commit."""

    def change(piece: Piece) -> None:
        put_strings(piece.changes[0], "metadata", [data])

    return change


def weight(place: int, value: float) -> Callable[[Piece], None]:
    return replace("vectors.code_weight", place, int(np.float32(value).view(np.uint32)))


def other_bounds(piece: Piece) -> None:
    piece.segment["vectors.bounds"] = np.array([-8, 8], np.float32).view(np.uint32)


def terms_of_vectors_turned(piece: Piece) -> None:
    put_terms(piece.segment, [b"plumless", b"buckeroo"], ordered=False, name="vectors.terms")


def term_of_a_vector_that_is_no_text(piece: Piece) -> None:
    put_terms(piece.segment, [b"\xff", b"plumless"], name="vectors.terms")


# What a merge relies on, and what only verify finds.
FORGED: dict[str, Callable[[Piece], None]] = {
    "a term twice": term_twice,
    "terms in order of their text": terms_by_text,
    "terms of one key the wrong way round": terms_of_one_key_turned,
    "a key that is no CRC-32": replace("terms.keys", 0, 0),
    "an id twice": id_twice,
    "ids in a wrong order": swap("ids.order"),
    "an order that names a document twice": replace("ids.order", 0, 1),
    "codes of other lengths": codes_of_other_lengths,
    "a flag that is 2": flag_of_two,
    "a missing string that is there": hidden_string,
    "data that belong to no string": hidden_data,
    "strings of a field out of order": field_strings_turned,
    "no documents": empty,
    "a weight that is no number": weight(0, math.nan),
    "a weight that is infinite": weight(0, math.inf),
    "a weight that is 0": weight(0, 0.0),
    "a weight beyond the bounds": weight(0, 8.0),
    "bounds that are no numbers": replace("vectors.bounds", 0, 0x7FC00000),
    "bounds that no weight has": other_bounds,
    "terms of vectors of one key the wrong way round": terms_of_vectors_turned,
    "a posting of a vector twice": replace("vectors.documents", 1, 1),
    "a code beyond the weights": replace("vectors.codes", 0, 60_000),
}
VERIFIED: dict[str, Callable[[Piece], None]] = {
    "a term that is no UTF-8": term_that_is_no_text,
    "a term of a vector that is no UTF-8": term_of_a_vector_that_is_no_text,
    "an id that is no UTF-8": id_that_is_no_text,
    "a text that is not UTF-8": string("texts", 0, b"\xff"),
    "a text that ends within a character": character_cut_in_two,
    "an id of another segment": id_of_another_segment,
    "metadata that are a list": string("metadata", 0, b"[]"),
    "metadata that is not JSON": string("metadata", 0, b"{"),
    "metadata that is not UTF-8": string("metadata", 0, b'{"n":"\xff"}'),
    "metadata of which two keys are read as one": string("metadata", 0, b'{"$a":1,"a":2}'),
    "metadata with a date that is not seen": string(
        "metadata", 0, b'{"n":{"\\u0024date":"2024-01-01"}}'
    ),
    "metadata with a date that there is not": string("metadata", 0, b'{"n":{"$date":"x"}}'),
    "metadata nested too deep": string("metadata", 0, b'{"n":' + b"[" * 150 + b"]" * 150 + b"}"),
    "metadata that fields do not know": string("metadata", 0, b'{"n":77,"name":"a"}'),
    "a document without its metadata": string("metadata", 0, None),
    "fields that metadata do not know": swap("fields.codes1"),
    "new metadata that are a number": new_metadata(b"1"),
    "new metadata that is not JSON": new_metadata(b'{"n":'),
}


@pytest.fixture(scope="module")
def taken_apart(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Make an index of two segments; the first has changes and two terms with the same key."""
    folder = tmp_path_factory.mktemp("forgeries") / "index"
    assert zlib.crc32(b"plumless") == zlib.crc32(b"buckeroo")
    index = BM25Index.from_texts(
        ["one é", "two é", *[["red", *["plumless"] * n, "buckeroo"] for n in range(1, 7)]],
        metadata=[{"n": number, "name": "ab"[number % 2]} for number in range(8)],
        payloads=[None, *[bytes([number]) for number in range(1, 8)]],
        vectors=[None, *[{"plumless": number / 3, "buckeroo": -number} for number in range(1, 8)]],
    )
    index.save(folder)
    with patch.multiple("bm25rag.merging.policy", LEAST=0, SHARE=1 << 30):
        with BM25Index.open(folder, mode="w") as writer:
            writer.update_metadata(["1"], [{"n": 11}])
        with BM25Index.open(folder, mode="w") as writer:
            writer.add(["A red café", "Then a café"], ["later", "last"])
    return Folder.read(folder)


@pytest.mark.parametrize("what", FORGED | VERIFIED)
def test_verify_names_a_forged_file(taken_apart: Folder, tmp_path: Path, what: str) -> None:
    forged = taken_apart.copy()
    (FORGED | VERIFIED)[what](forged.pieces[0])
    forged.write(tmp_path / "index")
    for check in (BM25Index.verify, lambda path: BM25Index.open(path, verify=True)):
        with pytest.raises(CorruptIndexError, match=r"(segment|changes)-\d+\.bin: .* restore"):
            check(tmp_path / "index")


@pytest.mark.parametrize("what", FORGED)
def test_a_merge_refuses_a_forged_file(taken_apart: Folder, tmp_path: Path, what: str) -> None:
    forged = taken_apart.copy()
    FORGED[what](forged.pieces[0])
    forged.write(tmp_path / "index")
    with pytest.raises(CorruptIndexError, match=r"segment-\d+\.bin: .* restore"):
        BM25Index.open(tmp_path / "index", mode="w").compact()


def test_two_segments_with_one_id_are_not_merged(taken_apart: Folder, tmp_path: Path) -> None:
    forged = taken_apart.copy()
    id_of_another_segment(forged.pieces[0])
    forged.write(tmp_path / "index")
    with pytest.raises(CorruptIndexError, match="two documents have the id b'later'"):
        BM25Index.open(tmp_path / "index", mode="w").compact()


def test_a_hit_whose_id_is_no_text_is_named_among_those_of_several_segments(
    taken_apart: Folder, tmp_path: Path, backend: str
) -> None:
    forged = taken_apart.copy()
    id_that_is_no_text(forged.pieces[0])
    forged.write(tmp_path / "index")
    index = BM25Index.open(tmp_path / "index")
    for ask in (lambda: index.search("plumless red"), index.search_batch(["plumless red"]).hits):
        with pytest.raises(CorruptIndexError, match="a stored string is not UTF-8"):
            ask()


@pytest.mark.parametrize("name", ["commit", "next_id"])
def test_a_count_that_would_soon_end_is_named(
    taken_apart: Folder, tmp_path: Path, name: str
) -> None:
    forged, folder = taken_apart.copy(), tmp_path / "index"
    if name == "commit":
        forged.commit = (1 << 62) - 1
    else:
        forged.settings["next_id"] = (1 << 62) - 1
    forged.write(folder)
    with pytest.raises(CorruptIndexError, match=rf"manifest\.json: {name} is .*restore"):
        BM25Index.verify(folder)
    before = BM25Index.open(folder).ids()
    writer = BM25Index.open(folder, mode="w")
    writer.add(["more", "and more"])
    with pytest.raises(CorruptIndexError, match=r"manifest\.json"):
        writer.commit()
    writer.rollback()
    writer.close()
    assert BM25Index.open(folder).ids() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("language", 5), ("stemmer", []), ("tokenizer", {}), ("stopwords", "x"), ("cjk", "x"),
        ("normalize", "x"), ("token_pattern", "("), ("token_pattern", "(" * 5000),
        ("token_pattern", "a{99999999999999}"), ("unknown", 1),
    ],
)  # fmt: skip
def test_verify_names_a_wrong_analyzer(
    taken_apart: Folder, tmp_path: Path, name: str, value: object
) -> None:
    forged = taken_apart.copy()
    forged.settings["analyzer"][name] = value
    forged.write(tmp_path / "index")
    with pytest.raises(CorruptIndexError, match=r"manifest\.json: wrong analyzer"):
        BM25Index.verify(tmp_path / "index")
    with pytest.raises(ValueError, match=r"cannot be made here|pass that callable"):
        BM25Index.open(tmp_path / "index")


def test_verify_needs_no_stemmer_of_a_language_that_is_not_known_here(
    taken_apart: Folder, tmp_path: Path
) -> None:
    forged = taken_apart.copy()
    forged.settings["analyzer"] |= {"language": "klingon", "stemmer": "klingon"}
    forged.write(tmp_path / "index")
    BM25Index.verify(tmp_path / "index")
    with pytest.raises(ValueError, match=r"cannot be made here: .*klingon"):
        BM25Index.open(tmp_path / "index")
