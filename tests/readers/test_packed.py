"""Files packed by gzip and zstd, for every kind of text."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import Document
from bm25rag.errors import MissingDependencyError
from bm25rag.evaluation import load_beir
from bm25rag.readers import (
    KINDS,
    find_beir_corpus,
    kind_of,
    read_csv,
    read_html,
    read_json,
    read_jsonl,
    read_lines,
    read_passages,
    read_queries,
    read_text,
    read_tsv,
)
from support.cases import first
from support.commands import write

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# without a time: the ids of the tests are the same in every worker
gz = partial(gzip.compress, mtime=0)
PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gz, ".zst": zstd.compress}


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize(
    ("read", "name", "content"),
    [
        (read_jsonl, "a.jsonl", '{"id": 1, "text": "x"}\n{"text": "y"}\n'),
        (read_json, "a.json", '[{"id": 1, "text": "x"}]'),
        (read_csv, "a.csv", "id,text\n1,x\n"),
        (read_tsv, "a.tsv", "id\ttext\n1\tx\n"),
        (read_html, "a.html", "<h1>One</h1><p>x"),
        (read_text, "a.txt", "x\n"),
        (read_lines, "a.txt", "x\ny\n"),
        (read_passages, "a.md", "# One\n\nx\n\n# Two\n\ny"),
        (read_queries, "queries.jsonl", '{"_id": "q", "text": "x"}\n'),
    ],
)
def test_a_packed_file_is_read_as_the_one_inside(
    read: Callable[[Path], Iterator[Any]], name: str, content: str, suffix: str
) -> None:
    plain = write(name, content)
    expected = list(read(plain))
    packed = write(name + suffix.upper(), PACK[suffix](content.encode()))
    named = [json.dumps(found).replace(packed.name, name) for found in map(_parts, read(packed))]
    assert expected
    assert named == [json.dumps(_parts(found)) for found in expected]


def _parts(found: Any) -> Any:
    return [found.id, found.text, getattr(found, "metadata", None)]


def test_the_kind_is_that_of_the_name_inside() -> None:
    for suffix, kind in KINDS.items():
        for packed in ("", *PACK, ".GZ"):
            assert kind_of(Path(f"a.b{suffix}{packed}")) == kind
    assert kind_of(Path("a.gz")) is None
    assert kind_of(Path(".zst")) is None


def test_a_beir_folder_may_be_packed() -> None:
    write("d/corpus.jsonl.zst", zstd.compress(b'{"_id": "1", "text": "x"}\n'))
    write("d/queries.jsonl.gz", gz(b'{"_id": "q", "text": "x"}\n'))
    write("d/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\t1\t1\n")
    assert find_beir_corpus(Path("d")) == Path("d/corpus.jsonl.zst")
    collection = load_beir("d")
    assert list(collection.read()) == [Document("1", "x")]
    assert collection.queries == {"q": "x"}


def test_frames_one_after_the_other_are_one_file() -> None:
    """As zstd's and pzstd's own concatenations are."""
    path = write("a.txt.zst", zstd.compress(b"one\n") + zstd.compress(b"two\n"))
    assert [document.text for document in read_lines(path)] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.zst", b"no zstd at all"),
        ("a.jsonl.zst", gz(b"{}")),
        ("a.jsonl.zst", zstd.compress(b'{"text": "x"}\n' * 999)[:-5]),
        ("a.jsonl.gz", zstd.compress(b"{}")),
        ("a.jsonl.gz", gz(b'{"text": "x"}\n' * 999)[:-5]),
    ],
)
def test_what_is_not_what_its_name_says_is_named(name: str, content: bytes) -> None:
    kind = "zstd" if name.endswith("zst") else "gzip"
    with pytest.raises(ValueError, match=rf"^a\.jsonl\.\w+: not a complete {kind} file \("):
        list(read_jsonl(write(name, content)))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a.txt.zst", zstd.compress(b"x"))
    for module in ("backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bm25rag\[zstd\]'"):
        list(read_text(path))


@pytest.mark.parametrize("suffix", ["", *PACK])
@pytest.mark.parametrize("kind", first(1, ["jsonl", "csv", "txt"]))
def test_the_first_document_comes_before_the_file_is_read(
    kind: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(1).integers(0, 2**63, 50_000).astype(str).tolist()
    lines = {
        "jsonl": (read_jsonl, "".join(f'{{"text": "{number}"}}\n' for number in numbers)),
        "csv": (read_csv, "text\n" + "\n".join(numbers)),
        "txt": (read_lines, "\n".join(numbers)),
    }
    read, content = lines[kind]
    path = write(f"a.{kind}{suffix}", PACK.get(suffix, bytes)(content.encode()))
    opened = []

    def remember(self: Path, mode: str) -> io.BufferedReader:
        opened.append(io.BufferedReader(io.FileIO(self)))
        return opened[-1]

    monkeypatch.setattr(Path, "open", remember)
    documents = read(path)
    assert next(documents).text == numbers[0]
    assert opened[0].tell() < path.stat().st_size / 2
    assert sum(1 for _ in documents) == len(numbers) - 1
    assert opened[0].closed
