"""What a kernel's caller is told, and what a table is worth then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bm25rag import BM25Index
from bm25rag.columns.column import join
from bm25rag.common.arrays import UInt32
from bm25rag.kernels import backend as backends
from bm25rag.kernels.scanner_interface import BEYOND, FoldArrays, Scanner, Texts
from support.environment import INTERPRETED, ROOT

_ALLOCATING = ("empty", "zeros", "full")


@contextmanager
def failing(number: int, error: type[BaseException]) -> Iterator[None]:
    """Let NumPy's allocation of this number, and all later ones, raise an error."""
    left = number

    def failing_late(allocate: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise error
            return allocate(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in _ALLOCATING:
            patch.setattr(np, name, failing_late(getattr(np, name)))
        yield


@pytest.fixture
def scanner() -> Scanner:
    if (scanner := backends.current().scanner) is None:
        pytest.skip("this backend has no scanner")
    return scanner


def texts_of(words: list[str]) -> Texts:
    data = "\n".join([*words, "\n" * BEYOND]).encode()
    return Texts(np.frombuffer(data, np.uint8), np.cumsum([len(word) + 1 for word in words]) - 1)


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="errors of interpreted kernels are Python's")
@pytest.mark.skipif("compiled" not in backends.available(), reason="nothing was compiled")
def test_nothing_that_can_raise_is_called_by_a_kernel_that_cannot_say_so(tmp_path: Path) -> None:
    """Cython writes such a call of its own wherever an error would be dropped."""
    pytest.importorskip("Cython")
    for name in ("LICENSE", "NOTICE", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, tmp_path)
    kernels = tmp_path / "bm25rag" / "kernels"
    shutil.copytree(ROOT / "bm25rag" / "kernels", kernels, ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "bm25rag" / "__init__.py").touch()
    with suppress(FileNotFoundError):  # what Cython has written of the same sources it keeps
        shutil.copytree(ROOT / "build" / "c", tmp_path / "build" / "c")
    swallowing = "import cython\n\n@cython.cfunc\n@cython.exceptval(check=False)\n"
    swallowing += "def _swallow() -> cython.void:\n    list()\n\ndef call():\n    _swallow()\n"
    (kernels / "planted.py").write_text(f'"""Drops errors."""\n\n{swallowing}', encoding="utf-8")
    command = [sys.executable, "setup.py", "--quiet", "--version"]
    environment = {
        name: value for name, value in os.environ.items() if name != "BM25RAG_CHECK_BOUNDS"
    }
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    generated = sorted((tmp_path / "build/c").rglob("*.c"))
    assert len(generated) > 9
    dropping = [path.stem for path in generated if '__Pyx_WriteUnraisable("' in path.read_text()]
    assert dropping == ["planted"], "what is called there must be declared to return an error"


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_table_of_words_is_usable_after_an_error_at_any_allocation(
    scanner: Scanner, error: type[BaseException]
) -> None:
    words = [f"{'long' * (n % 7)}{n % 1300}" for n in range(1500)]
    first, texts = texts_of(words[:20]), texts_of(words)
    expected = scanner.add_strings(texts, scanner.add_strings(first, scanner.new_words(4))[0])
    for number in range(1000):
        table, _ = scanner.add_strings(first, scanner.new_words(4))
        try:
            with failing(number, error):
                scanner.add_strings(texts, table)
        except error:
            table, numbers = scanner.add_strings(texts, table)
            assert numbers.tobytes() == expected[1].tobytes()
            used = table.used.tolist()
            assert used == expected[0].used.tolist()
            assert table.pool[: used[1]].tobytes() == expected[0].pool[: used[1]].tobytes()
        else:
            break
    assert number > 8


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_scan_that_failed_leaves_nothing_behind(
    scanner: Scanner, error: type[BaseException]
) -> None:
    fold_table = _fold_table()
    text = " ".join(f"w{n}" for n in range(900)) + " 日本語" * 40
    batch = join([text.encode()])
    texts = Texts(np.frombuffer(batch.data, np.uint8), np.cumsum(batch.lengths, dtype=np.int64))
    expected = scanner.scan(texts, fold_table, 1, True, True, False, [])
    for number in range(1000):
        spare: list[Any] = []
        try:
            with failing(number, error):
                scanner.scan(texts, fold_table, 1, True, True, False, spare)
        except error:
            again = scanner.scan(texts, fold_table, 1, True, True, False, spare)
            assert all(map(_same, again, expected))
        else:
            break
    assert number > 4


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("times", [1, 4 if INTERPRETED else 40])
def test_a_text_whose_scan_failed_is_scanned_as_before(
    scanner: Scanner, error: type[BaseException], times: int
) -> None:
    entries = _fold_table()
    text = " ".join(f"wör{n}" for n in range(70 * times)) + " 日本語" * 4
    find = backends.current().find_words
    expected = find(FoldArrays(entries), text, 1, True)
    assert expected == [f"wör{n}" for n in range(70 * times)] + ["日本", "本語", "語"] * 4
    for number in range(1000):
        arrays = FoldArrays(entries)
        try:
            with failing(number, error):
                find(arrays, text, 1, True)
        except error:
            assert find(arrays, text, 1, True) == expected
        else:
            break
    assert number > 4


def _same(one: UInt32, other: UInt32) -> bool:
    return one.tobytes() == other.tobytes()


def _fold_table() -> Any:
    from bm25rag.analysis import Analyzer
    from bm25rag.analysis.fold_table import fold_table

    table = fold_table(Analyzer().splitter.fold_rules)
    table.add_pages(range(0x110))
    return table.entries


@pytest.mark.skipif(INTERPRETED, reason="takes minutes; the kernels alone are tested above")
@pytest.mark.further
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_index_is_as_it_was_after_an_error_at_any_allocation(
    backend: str, error: type[BaseException]
) -> None:
    """And what is done next is right to the bit."""
    old = ["red tea", "green boat", "blue sea"]
    new = [" ".join(f"w{(7 * n + k) % 3000}" for k in range(40)) for n in range(30)]
    queries = ["red sea", "w1 w2", "w7 tea"] * 30
    index, grown = BM25Index.from_texts(old), BM25Index.from_texts([*old, *new])
    before = index.search_batch(queries, threads=1).scores.tobytes()
    after = grown.search_batch(queries, threads=1).scores.tobytes()
    for number in range(2000):
        try:
            with failing(number, error):
                index.add(new, threads=1)
        except error:
            assert len(index) == len(old)
            assert index.search_batch(queries, threads=1).scores.tobytes() == before
        else:
            break
    assert number > 20
    assert index.search_batch(queries, threads=1).scores.tobytes() == after
    for number in range(2000):
        try:
            with failing(number, error):
                found = index.search_batch(queries, threads=1)
        except error:
            continue
        break
    assert number > 2
    assert found.scores.tobytes() == after
