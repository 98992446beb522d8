"""Who runs the hot loops, and when Numba is loaded."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import Backend
from support.environment import INTERPRETED


def run(code: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


def test_opening_and_searching_do_not_load_numba_and_warmup_does(tmp_path: Path) -> None:
    BM25Index.from_texts(["red tea", "green tea"]).save(tmp_path / "index")
    run(
        "import sys\n"
        "from bm25rag import BM25Index\n"
        "from bm25rag.kernels import backend\n"
        "index = BM25Index.open('index')\n"
        "cold = index.search('tea')\n"
        "index.search_batch(['tea'] * 100)\n"
        "assert 'numba' not in sys.modules\n"
        "index.warmup()\n"
        "assert ('numba' in sys.modules) == ('compiled' in backend.available())\n"
        "assert index.search('tea') == cold\n",
        tmp_path,
    )


@pytest.mark.skipif("compiled" not in backend.available(), reason="Numba is not installed")
def test_a_long_build_in_many_chunks_is_worth_compiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work counts together, however small the chunks are."""
    asked: list[int] = []
    real = backend.current

    def current(work: int) -> Backend:
        asked.append(work)
        return real(0)

    monkeypatch.setattr("bm25rag.analysis.encoder.backend.current", current)
    monkeypatch.setattr("bm25rag.additions.CHUNK", 10)
    with backend.use("numpy"):
        BM25Index.from_texts(["ten letters"] * 5)
    assert [work for work in asked if work >= 88] == [8 * 11 * count for count in range(1, 6)]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ValueError, match="name must be one of"), backend.use("fortran"):
        pass


def texts_of_many_windows(generator: np.random.Generator) -> list[list[str]]:
    """Draw enough documents for several document blocks and windows."""
    words = np.minimum(generator.zipf(1.3, size=(2_000 if INTERPRETED else 20_000, 12)), 500)
    return [[str(word) for word in row] for row in words.tolist()]


def assert_backends_agree(
    monkeypatch: pytest.MonkeyPatch, texts: list[list[str]], asked: list[Any]
) -> None:
    """Hold every backend, size of windows and way to walk them against the first."""
    monkeypatch.setattr("bm25rag.search.ranking._HEAVY_BY_K", 0)
    found = set()
    for name in backend.available():
        with backend.use(name):
            index = BM25Index.from_texts(texts)
            for window, heavy, k in product((256, 8192), (0, 1 << 60), (1, 10, 999)):
                monkeypatch.setattr("bm25rag.search.ranking.WINDOW", window)
                monkeypatch.setattr("bm25rag.search.ranking.HEAVY", heavy)
                batch = index.search_batch(asked, k=k)
                found.add((k, batch.rows.tobytes(), batch.scores.tobytes()))
    assert len(found) == 3


@pytest.mark.parametrize("doc_block", [4096, 1 << 16])
def test_backends_agree_on_many_windows(monkeypatch: pytest.MonkeyPatch, doc_block: int) -> None:
    """Queries are of rare and of common terms."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", doc_block)
    generator = np.random.default_rng(5)
    texts = texts_of_many_windows(generator)
    queries = [["1", "2", "300"], ["450", "1"], ["7", "7", "400", "3"], ["1"]]
    queries += [[str(word) for word in row] for row in generator.integers(1, 60, (20, 5))]
    assert_backends_agree(monkeypatch, texts, queries)


def test_backends_agree_on_weights_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 4096)
    generator = np.random.default_rng(7)
    texts = texts_of_many_windows(generator)
    kinds = [
        lambda size: generator.integers(1, 4, size).astype(float),
        lambda size: generator.random(size) + 0.01,
        lambda size: generator.normal(0, 2, size),
        lambda size: generator.choice([0.0, 1.0, -1.0], size),
        lambda size: 10.0 ** generator.integers(-30, 30, size),
    ]
    asked: list[Any] = [
        dict(zip(map(str, row), kinds[n % 5](5).tolist(), strict=True))
        for n, row in enumerate(generator.integers(1, 60, (40, 5)).tolist())
    ]
    asked[::7] = [["1", "2", "300"]] * len(asked[::7])
    assert_backends_agree(monkeypatch, texts, asked)


@pytest.mark.parametrize("most", [1, 2, 1000])
def test_a_batch_of_more_terms_than_are_remembered(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Terms beyond a hundred characters are looked up, and numbered, every time."""
    monkeypatch.setattr("bm25rag.search.snapshot._FEWEST_TERMS", 1)
    monkeypatch.setattr("bm25rag.search.snapshot._MOST_TERMS", most)
    long = "x" * 101
    index = BM25Index.from_texts([[long, "a"], ["b", "c"]])
    for _ in range(3):
        assert index.search_batch([[long], [long], ["a"], ["c", long], ["d"]]).ids() == [
            ["0"],
            ["0"],
            ["0"],
            ["0", "1"],
            [],
        ]
