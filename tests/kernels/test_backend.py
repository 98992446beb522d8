"""Who runs the hot loops, and what is said where it is not compiled code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import bm25rag
from bm25rag import BM25Index
from bm25rag.kernels import backend
from bm25rag.kernels.boundary import Backend
from bm25rag.scoring.variants import VariantName
from support.cases import first
from support.environment import INTERPRETED
from support.holding import bits
from support.reference import Reference

PACKAGE = Path(bm25rag.__file__).parent
# More postings than there are, for ``ranking.COARSE``, and few enough to be multiplied.
NEVER = 1 << 40


def run(code: str, folder: Path = PACKAGE.parent, **settings: str) -> tuple[str, str]:
    """Run code with the package in a folder; return what it wrote, and its warnings."""
    without_gil = "ignore:The global interpreter lock"
    command = [sys.executable, "-P", "-W", "always", "-W", without_gil, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(folder), **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


SEARCH = """
from bm25rag import BM25Index
index = BM25Index.from_texts(["red tea", "green tea"])
print([(hit.id, hit.score) for hit in index.search("tea")], end="")
index.search_batch(["tea"] * 100)
"""


@pytest.mark.skipif(
    os.environ.get("BM25RAG_KERNELS") == "numpy", reason="NumPy alone was asked for"
)
def test_the_compiled_backend_is_there() -> None:
    """Else most tests would run in NumPy alone, and nobody would notice."""
    assert backend.why_not_compiled() is None
    assert backend.available() == ("compiled", "numpy")
    assert backend.current().name == "compiled"


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL all the time"
)
def test_kernels_turn_on_the_gil_that_guards_what_their_threads_share() -> None:
    asked = "from bm25rag.kernels import backend; backend.current(); print(sys._is_gil_enabled())"
    assert run(f"import sys; {asked}")[0] == "True\n"


def test_from_an_archive_the_warning_says_that_compiled_code_needs_a_folder(tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", PACKAGE.parent, PACKAGE.name)
    asked = "from bm25rag.kernels import backend; print(backend.current().name)"
    found, said = run(asked, Path(packed), BM25RAG_KERNELS="")
    assert found == "numpy\n"
    assert "kernels is no folder: an archive cannot hold compiled code" in said


def test_importing_loads_no_kernel_and_numpy_may_be_chosen_without_a_word() -> None:
    loaded, _ = run("import sys, bm25rag; print(*sys.modules)")
    assert "bm25rag.kernels.boundary" in loaded
    assert "bm25rag.kernels.compiled" not in loaded
    found, said = run(SEARCH, BM25RAG_KERNELS="numpy")
    assert said == ""
    assert found.startswith("[('0', 0.08287")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("remove", "was not compiled when bm25rag was built, which needs Python's headers"),
        ("remove", "install it again from where it came with pip's options '-v --no-binary"),
        ("rename", "searching.cpython-27-other.so in "),
        ("damage", "searching"),
    ],
)
def test_without_compiled_code_numpy_answers_and_says_so_once(
    tmp_path: Path, change: str, reason: str
) -> None:
    copy = tmp_path / "bm25rag"
    shutil.copytree(PACKAGE, copy)
    for path in (copy / "kernels").glob("searching.*"):
        if path.suffix in {".so", ".pyd"}:
            if change == "damage":
                path.write_bytes(b"no library")
            elif change == "rename":
                path.rename(path.with_name("searching.cpython-27-other.so"))
            else:
                path.unlink()
    expected, _ = run(SEARCH, BM25RAG_KERNELS="numpy")
    found, said = run(SEARCH, tmp_path, BM25RAG_KERNELS="")
    assert found == expected
    assert said.count("RuntimeWarning: bm25rag runs in NumPy") == 1
    assert reason in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("nothing", None),
        ("copy", None),
        ("remove", "searching in {kernels} was never compiled, which needs Python's headers"),
        ("remove", "that it names; run 'pip install -v .' in {checkout}, which says what fails"),
        ("rename", "searching.cpython-27-other.so in {kernels} is for another Python; run 'pip"),
        ("edit", "in {kernels} is older than searching.py; run 'pip install -v .' in {checkout}"),
        ("declare", "in {kernels} is older than signs.pxd; run 'pip install -v .' in {checkout}"),
    ],
)
def test_a_checkout_says_what_is_wrong_with_its_compiled_modules_and_what_to_do(
    tmp_path: Path, change: str, reason: str | None
) -> None:
    kernels = tmp_path / "bm25rag" / "kernels"
    shutil.copytree(PACKAGE, tmp_path / "bm25rag")
    (tmp_path / "setup.py").touch()
    (library,) = (path for path in kernels.glob("searching.*") if path.suffix in {".so", ".pyd"})
    built = library.stat().st_mtime
    if change == "remove":
        library.unlink()
    elif change == "rename":
        library.rename(kernels / "searching.cpython-27-other.so")
    elif change == "copy":  # in an order that nobody chose
        os.utime(kernels / "searching.py", (built + 0.5, built + 0.5))
    elif change != "nothing":
        source = kernels / ("searching.py" if change == "edit" else "signs.pxd")
        source.touch()  # wheels have no .pxd files
        os.utime(source, (built + 60, built + 60))
    _, said = run(SEARCH, tmp_path, BM25RAG_KERNELS="")
    assert said.count("RuntimeWarning: bm25rag runs in NumPy") == (reason is not None)
    assert (reason or "").format(kernels=kernels, checkout=tmp_path) in said


def test_what_is_installed_is_not_judged_by_its_age(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "bm25rag")
    late = time.time() + 60  # installers write files in any order
    os.utime(tmp_path / "bm25rag" / "kernels" / "searching.py", (late, late))
    assert run(SEARCH, tmp_path, BM25RAG_KERNELS="")[1] == ""


def test_loading_the_kernels_puts_nothing_of_another_name_into_sys_modules() -> None:
    names, _ = run(
        "import sys; from bm25rag.kernels import backend; backend.current();"
        f"print(*(name for name, one in sys.modules.items() if {str(PACKAGE)!r} in str(one)))",
        BM25RAG_KERNELS="",
    )
    assert "bm25rag.kernels.shared" in names.split()
    assert all(name.startswith("bm25rag") for name in names.split())


@pytest.mark.parametrize("name", backend.available())
def test_every_backend_has_every_loop(name: str) -> None:
    """They are no abstract methods, without which there would be no backend."""
    loops = Backend.__annotations__.keys() - {"name"}
    assert "_search" in loops
    with backend.use(name):
        assert [loop for loop in loops if not hasattr(backend.current(), loop)] == []


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
    found = set()
    for name in backend.available():
        with backend.use(name):
            index = BM25Index.from_texts(texts)
            for window, coarse, k in product((256, 8192), (0, NEVER), (1, 10, 999)):
                monkeypatch.setattr("bm25rag.search.ranking.WINDOW", window)
                monkeypatch.setattr("bm25rag.search.ranking.COARSE", coarse)
                batch = index.search_batch(asked, k=k)
                found.add((k, batch.rows.tobytes(), batch.scores.tobytes()))
    assert len(found) == 3


@pytest.mark.parametrize("doc_block", [4096] if INTERPRETED else [4096, 1 << 16])
def test_backends_agree_on_many_windows(monkeypatch: pytest.MonkeyPatch, doc_block: int) -> None:
    """The queries mix rare and common terms."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", doc_block)
    generator = np.random.default_rng(5)
    texts = texts_of_many_windows(generator)
    queries = [["1", "2", "300"], ["450", "1"], ["7", "7", "400", "3"], ["1"]]
    queries += [[str(word) for word in row] for row in generator.integers(1, 60, (20, 5))]
    assert_backends_agree(monkeypatch, texts, queries)


def test_backends_agree_where_terms_are_not_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking a term up begins where its posting would be if they were."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 4096)
    generator = np.random.default_rng(17)
    texts = []
    for number in range(600 if INTERPRETED else 9000):
        words = ["first"] * (number % 4096 < 1000) + ["last"] * (number % 4096 > 3000)
        words += ["most"] * (number % 7 > 0) + ["rare"] * (number % 191 == 3)
        texts.append(" ".join(words + ["a", "b"][: generator.integers(0, 3)]))
    queries = [["rare", "first", "last", "most"], ["rare", "most", "a"], ["last", "first", "b"]]
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
        for n, row in enumerate(generator.integers(1, 60, (10 if INTERPRETED else 40, 5)).tolist())
    ]
    asked[::7] = [["1", "2", "300"]] * len(asked[::7])
    assert_backends_agree(monkeypatch, texts, asked)


@pytest.mark.parametrize(
    "variant", ["lucene", "tfldp"] if INTERPRETED else ["lucene", "bm25+", "bm25l", "tfldp"]
)
@pytest.mark.parametrize("narrow", [1 << 16, 3])
def test_coarse_sums_change_no_bit(
    monkeypatch: pytest.MonkeyPatch, variant: VariantName, narrow: int
) -> None:
    """Long queries, with ties, floors, filters, several segments and deleted documents."""
    monkeypatch.setattr("bm25rag.segments.postings_builder.NARROW", narrow)  # of codes, or wide
    taken: list[bool] = []
    if INTERPRETED:  # compiled, nobody sees it
        from bm25rag.kernels import searching

        way = searching.rank_coarsely
        monkeypatch.setattr(
            searching, "rank_coarsely", lambda *given: taken.append(way(*given)) or taken[-1]
        )
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 1024)
    monkeypatch.setattr("bm25rag.search.ranking.WINDOW", 512)  # only many windows have such sums
    generator = np.random.default_rng(11)
    texts = texts_of_many_windows(generator)[:4000]
    index = BM25Index(variant=variant)
    index.add(texts, metadata=[{"n": n % 100} for n in range(len(texts))])
    index.add(texts[:700], ids=[f"again {n}" for n in range(700)])
    some = generator.integers(1, 200, (4 if INTERPRETED else 12, 30))
    queries = [[str(word) for word in row] for row in some]

    def answers() -> list[bytes]:
        found = []
        filters = (None, {"n": {"$lt": 50}}, {"n": {"$ne": 3}}, {"n": 7})
        for k, floor, accepted in product((1, 7, 60), (None, 9.0), filters):
            batch = index.search_batch(queries, k=k, min_score=floor, filter=accepted)
            found += [batch.rows.tobytes(), batch.scores.tobytes()]
        return found

    for _ in range(2):
        monkeypatch.setattr("bm25rag.search.ranking.COARSE", 0)
        coarse = answers()
        monkeypatch.setattr("bm25rag.search.ranking.COARSE", NEVER)
        assert answers() == coarse
        index.delete([index.search(" ".join(queries[0]), k=1)[0].id])
    assert any(taken) == INTERPRETED


@pytest.mark.parametrize("variant", first(1, get_args(VariantName)))
def test_terms_looked_up_as_the_floor_rises_change_no_bit(
    monkeypatch: pytest.MonkeyPatch, variant: VariantName
) -> None:
    """Many small blocks: rare terms are walked to the last, frequent ones only in the first."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 64)
    monkeypatch.setattr("bm25rag.search.ranking.WINDOW", 32)
    monkeypatch.setattr("bm25rag.search.ranking.COARSE", 0)
    dropped: list[bool] = []
    drained: list[int] = []
    if INTERPRETED:  # compiled, nobody sees it, and in small blocks no look-up pays
        from bm25rag.kernels import coarse

        monkeypatch.setattr(coarse, "_LOOK_UP", 1)
        monkeypatch.setattr(coarse, "_SCARCE", 1)
        drain_walked = coarse._drain_walked
        monkeypatch.setattr(
            coarse, "_drain_walked", lambda *given: drained.append(1) or drain_walked(*given)
        )
        are_few = coarse._are_few
        monkeypatch.setattr(
            coarse, "_are_few", lambda *given: dropped.append(are_few(*given)) or dropped[-1]
        )
    texts = texts_of_many_windows(np.random.default_rng(13))[: 300 if INTERPRETED else 1500]
    index, reference = BM25Index(variant=variant), Reference(variant=variant)
    ids = [str(number) for number in range(len(texts))]
    metadata = [{"label": number % 3} for number in range(len(texts))]
    index.add(texts, ids, metadata)
    reference.add(texts, ids, metadata)
    queries = [["1", "2", "300"], ["450", "1"], ["7", "7", "40", "3"], ["60", "30", "2", "1", "5"]]
    for query, k, label in product(queries, (1, 2, 10, 100, len(texts)), (None, {"$ne": 1})):
        found = index.search_batch([query], k=k, filter=label and {"label": label}).hits()[0]
        accepted = None if label is None else lambda _, data: data["label"] != 1
        assert bits(found) == bits(reference.search(query, k, accept=accepted))
    if INTERPRETED and variant != "robertson":  # which has no coarse sums: its idf may be negative
        assert True in dropped
        assert drained


def test_a_guess_that_is_too_high_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the best, but fewer than are wanted, are in the block that is walked first."""
    monkeypatch.setattr("bm25rag.segments.doc_blocks.DOC_BLOCK", 64)
    monkeypatch.setattr("bm25rag.search.ranking.WINDOW", 32)
    started: list[int] = []
    if INTERPRETED:  # compiled, nobody sees it
        from bm25rag.kernels import coarse

        start = coarse.start
        monkeypatch.setattr(coarse, "start", lambda *given: started.append(1) or start(*given))
    texts = [["a", "b", "c"][: 1 + number % 3] + ["d"] * (number % 9) for number in range(64 * 20)]
    for last in (0, 40, 64):
        some = texts + [["a", "b", "c"]] * last
        index = BM25Index.from_texts(some, metadata=[{"n": n % 7} for n in range(len(some))])
        for k, floor, accepted in product(
            (20, 45, 300), (None, 0.5, 3.0), (None, {"n": {"$lt": 4}}, {"n": {"$ne": 3}})
        ):
            found = []
            for coarsely in (0, NEVER):
                monkeypatch.setattr("bm25rag.search.ranking.COARSE", coarsely)
                batch = index.search_batch([["a", "b", "c"]], k, accepted, min_score=floor)
                found.append((batch.rows.tobytes(), batch.scores.tobytes()))
            assert found[0] == found[1]
    assert started or not INTERPRETED


@pytest.mark.parametrize("limit", ["_MOST_TERMS", "_MOST_BYTES"])
@pytest.mark.parametrize("most", [1, 2, 40, 1000])
def test_a_batch_of_more_terms_than_are_remembered(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    """Terms beyond a hundred characters are looked up, and numbered, every time."""
    monkeypatch.setattr("bm25rag.search.snapshot._FEWEST_TERMS", 1)
    monkeypatch.setattr(f"bm25rag.search.snapshot.{limit}", most)
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
