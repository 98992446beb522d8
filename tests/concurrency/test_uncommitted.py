"""What a writer did and never committed is lost, and that is said aloud, once."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bm25rag import BM25Index, Document
from bm25rag.errors import ReadOnlyError, UncommittedWarning
from support.cases import first


@pytest.fixture(params=["plain", "sharded"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "plain":
        BM25Index.from_texts(["red"]).save(tmp_path / "index")
    else:
        BM25Index.build([Document("0", "red"), Document("1", "red")], tmp_path / "index", shards=2)
    return tmp_path / "index"


@pytest.fixture(scope="module", autouse=True)
def _nothing_of_others() -> None:
    """Have what other tests have left say so before warnings are counted; let the rest be."""
    gc.collect()
    gc.freeze()


CHANGES: dict[str, Callable[[BM25Index], object]] = {
    "add": lambda index: index.add(["blue"]),
    "delete": lambda index: index.delete(["0"]),
    "update_metadata": lambda index: index.update_metadata(["0"], [{"n": 1}]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_closing_and_deleting_a_writer_say_what_is_lost_and_where(
    folder: Path, change: Callable[[BM25Index], object]
) -> None:
    writer = BM25Index.open(folder, mode="w")
    change(writer)
    with pytest.warns(UncommittedWarning, match=f"{folder} .* are lost: call commit") as caught:
        writer.close()
    assert [warning.filename for warning in caught] == [__file__]
    writer.close()
    del writer
    writer = BM25Index.open(folder, mode="w")
    change(writer)
    gone = weakref.ref(writer)
    with warnings.catch_warnings(record=True, action="always") as caught:
        del writer
        gc.collect()
    assert gone() is None
    assert [(warning.category, warning.filename) for warning in caught] == [
        (UncommittedWarning, __file__)
    ]
    BM25Index.open(folder, mode="w").close()  # the lock has been given up


def test_a_writer_in_a_cycle_warns_when_it_is_collected(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["blue"])
    cycle = [writer]
    cycle.append(cycle)  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True, action="always") as caught:
        del writer, cycle
        gc.collect()
    assert [warning.category for warning in caught] == [UncommittedWarning]


KEPT: dict[str, Callable[[BM25Index], object]] = {
    "commit": lambda index: index.commit(),
    "rollback": lambda index: index.rollback(),
    "nothing": lambda index: index.search("red"),
}


@pytest.mark.parametrize(
    "keep", [*KEPT, "save", "save elsewhere", "unchanged", "failed", "with", "with and error"]
)
def test_where_nothing_is_lost_nothing_is_said(folder: Path, keep: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer = BM25Index.open(folder, mode="w")
        if keep == "unchanged":
            writer.add([])
            writer.delete(["unknown"])
        elif keep == "failed":
            with pytest.raises(ValueError, match="already"):
                writer.add(["blue"], ids=["0"])
        elif keep.startswith("with"):
            with suppress(KeyError), writer:
                writer.add(["blue"])
                if keep == "with and error":
                    raise KeyError
        elif keep.startswith("save"):
            writer.add(["blue"])
            writer.save(folder if keep == "save" else folder.with_name("elsewhere"))
        elif keep != "nothing":
            writer.add(["blue"])
            KEPT[keep](writer)
        del writer
        gc.collect()


def test_views_of_a_writer_say_nothing_and_outlive_it(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["blue"])
    views = [writer.snapshot(), writer.tune(k1=2.0)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        del writer
        gc.collect()
        assert [len(view.search("blue")) for view in views] == [1, 1]
        del views
        gc.collect()
    assert [warning.category for warning in caught] == [UncommittedWarning]


ENDINGS = {
    "end": "",
    "exit": "sys.exit(3)",
    "error": "raise KeyError('mine')",
    "function": "def f(held):\n    sys.exit(0)\nf(writer)",
    "thread": "import threading\nt = threading.Thread(target=lambda: writer.add(['x']))\nt.start()",
    "child": "pid = os.fork()\nif pid == 0: sys.exit(0)\nos.waitpid(pid, 0)",
    "deleted": "del writer",
    "closed": "writer.close()",
}


def run(folder: Path, ending: str, change: str = "writer.add(['blue'])") -> str:
    code = (
        "import os, sys\nfrom bm25rag import BM25Index\n"
        f"writer = BM25Index.open({str(folder)!r}, mode='w')\n{change}\n{ending}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Exception ignored" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("folder", "ending"),
    [("sharded", "end"), *first(3, [("plain", ending) for ending in ENDINGS])],
    indirect=["folder"],
)
def test_python_shows_it_once_however_the_program_ends(folder: Path, ending: str) -> None:
    if ending == "child" and not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    said = run(folder, ENDINGS[ending])
    assert said.count("UncommittedWarning") == 1, said
    assert ("KeyError: 'mine'" in said) == (ending == "error")
    BM25Index.open(folder, mode="w").close()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_so_does_a_child_of_multiprocessing(folder: Path, tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys\nfrom bm25rag import BM25Index\n"
        "def work():\n    global writer\n"
        "    writer = BM25Index.open(sys.argv[1], mode='w')\n    writer.add(['blue'])\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context(sys.argv[2]).Process(target=work)\n"
        "    process.start()\n    process.join()\n"
    )
    command = [sys.executable, program, folder, method]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert said.count("UncommittedWarning") == 1, said


def test_a_program_that_loses_nothing_prints_nothing(folder: Path) -> None:
    done = "writer.add(['red']); writer.rollback()\nwriter.add(['blue']); writer.commit()"
    assert run(folder, "", done) == ""
    # A commit while the program ends comes before the warning.
    assert run(folder, "import atexit\natexit.register(writer.commit)") == ""
    assert len(BM25Index.open(folder).search("blue")) == 2


WRITES: list[Callable[[BM25Index], object]] = [
    *CHANGES.values(),
    lambda index: index.add([]),
    BM25Index.commit,
    BM25Index.rollback,
    BM25Index.maintain,
    BM25Index.compact,
]
REFUSED = {
    "reader": (lambda folder: BM25Index.open(folder), r"open it with mode='w'.*copy\.copy"),
    "reader of memory": (
        lambda folder: BM25Index.open(folder, mmap=False),
        "open it with mode='w'",
    ),
    "snapshot": (lambda folder: BM25Index.open(folder).snapshot(), "change the index that it was"),
    "view": (lambda folder: BM25Index.open(folder).tune(k1=2), r"copy\.copy\(index\)"),
}


@pytest.mark.parametrize(("opened", "advice"), REFUSED.values(), ids=REFUSED)
def test_what_refuses_to_be_changed_says_what_to_do(
    folder: Path, opened: Callable[[Path], BM25Index], advice: str
) -> None:
    index = opened(folder)
    before = index.ids()
    assert index.read_only
    for write in WRITES:
        with pytest.raises(ReadOnlyError, match=advice):
            write(index)
    assert index.ids() == before


def test_a_closed_writer_says_to_open_again(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.close()
    with pytest.raises(ReadOnlyError, match="open the folder again with mode='w'"):
        writer.add(["blue"])


def test_a_warning_that_is_an_error_leaves_no_lock_behind(folder: Path) -> None:
    writer = BM25Index.open(folder, mode="w")
    writer.add(["blue"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UncommittedWarning):
            writer.close()
    BM25Index.open(folder, mode="w").close()


def test_half_an_index_says_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a writer was made also wrote an ``AttributeError`` to the terminal."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with monkeypatch.context() as patch:
        patch.setattr("bm25rag.live.index.WriteLock", interrupt)
        with pytest.raises(KeyboardInterrupt):
            BM25Index.open(folder, mode="w")
    gc.collect()
    assert not unraisable
    BM25Index.open(folder, mode="w").close()
